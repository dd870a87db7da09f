# The CMake package: library, headers, and what find_package(fairlead) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(fairlead_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fairlead)

install(TARGETS fairlead EXPORT fairlead-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)

# The public headers are fairlead/fairlead.h and the headers that it lists.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS fairlead/fairlead.h)
file(STRINGS fairlead/fairlead.h fairlead_includes REGEX "^#include \"fairlead/.*\"")
list(TRANSFORM fairlead_includes REPLACE "^#include \"(.*)\".*" "\\1")
foreach(header fairlead/fairlead.h ${fairlead_includes})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
endforeach()

install(EXPORT fairlead-targets NAMESPACE fairlead:: DESTINATION ${fairlead_package_dir}
        COMPONENT development)

configure_package_config_file(cmake/fairlead-config.cmake.in fairlead-config.cmake
                              INSTALL_DESTINATION ${fairlead_package_dir})
# Before 1.0 a minor release may change the interface: docs/stability.md.
write_basic_package_version_file(fairlead-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fairlead-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/fairlead-config-version.cmake
        DESTINATION ${fairlead_package_dir} COMPONENT development)
