# The CMake package: library, headers, and what find_package(fairlead) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(fairlead_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fairlead)

install(TARGETS fairlead EXPORT fairlead-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY fairlead/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fairlead COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*_impl.h" EXCLUDE)
install(EXPORT fairlead-targets NAMESPACE fairlead:: DESTINATION ${fairlead_package_dir}
        COMPONENT development)

configure_package_config_file(cmake/fairlead-config.cmake.in fairlead-config.cmake
                              INSTALL_DESTINATION ${fairlead_package_dir})
# Before 1.0 a minor release may change the interface: docs/stability.md.
write_basic_package_version_file(fairlead-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fairlead-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/fairlead-config-version.cmake
        DESTINATION ${fairlead_package_dir} COMPONENT development)
