# Third-party libraries, each with its reason: found on the system first, otherwise a pinned release
# is fetched. They are used inside our sources alone; all but simdjson are header only, so what
# installs Fairlead needs no other.
include(FetchContent)

# fairlead_header_library(<name> HEADER <file> REPOSITORY <url> COMMIT <hash> INCLUDE <folder in it>)
# makes the target fairlead_<name>. The library's own CMake is not run: only its headers are wanted,
# and old releases ask for CMake versions that new CMake refuses.
function(fairlead_header_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;REPOSITORY;COMMIT;INCLUDE" "")
  string(TOUPPER ${name}_INCLUDE_DIR variable)
  find_path(${variable} ${arg_HEADER} DOC "Where ${arg_HEADER} is")
  set(directory ${${variable}})
  if(NOT directory)
    message(STATUS "${name}: not on this system, fetching ${arg_COMMIT}")
    FetchContent_Declare(${name} GIT_REPOSITORY ${arg_REPOSITORY} GIT_TAG ${arg_COMMIT}
                         SOURCE_SUBDIR no-cmake-of-its-own)
    FetchContent_MakeAvailable(${name})
    set(directory ${${name}_SOURCE_DIR}/${arg_INCLUDE})
  endif()
  add_library(fairlead_${name} INTERFACE)
  target_include_directories(fairlead_${name} SYSTEM INTERFACE ${directory})
endfunction()

# protozero writes and reads protobuf by streaming: no 2 GB limit, no generated code.
# Debian: libprotozero-dev. Pinned: 1.7.1, which is what Debian has.
fairlead_header_library(protozero
  HEADER protozero/pbf_writer.hpp
  REPOSITORY https://github.com/mapbox/protozero.git
  COMMIT f379578a3f7c8162aac0ac31c2696de09a5b5f93
  INCLUDE include)

# simdjson reads the programs in .pt2 archives: megabytes of JSON, checked UTF-8, no recursion.
# Debian: libsimdjson-dev, a shared library, which the CMake package then asks for too. Pinned: 3.0.1,
# which is what Debian has, as one source file compiled into ours.
find_package(simdjson CONFIG QUIET)
set(fairlead_simdjson_on_system ${simdjson_FOUND})
if(NOT simdjson_FOUND)
  message(STATUS "simdjson: not on this system, fetching 3.0.1")
  FetchContent_Declare(simdjson GIT_REPOSITORY https://github.com/simdjson/simdjson.git
                       GIT_TAG 0d2455029d845e801809dd54b01ae47173d7d8e8
                       SOURCE_SUBDIR no-cmake-of-its-own)
  FetchContent_MakeAvailable(simdjson)
endif()
# fairlead_link_simdjson(<target>)
function(fairlead_link_simdjson target)
  if(fairlead_simdjson_on_system)
    target_link_libraries(${target} PRIVATE simdjson::simdjson)
  else()
    target_sources(${target} PRIVATE ${simdjson_SOURCE_DIR}/singleheader/simdjson.cpp)
    set_source_files_properties(${simdjson_SOURCE_DIR}/singleheader/simdjson.cpp
                                PROPERTIES COMPILE_OPTIONS -w)
    target_include_directories(${target} SYSTEM PRIVATE ${simdjson_SOURCE_DIR}/singleheader)
  endif()
endfunction()

# doctest runs the C++ tests: the fastest to compile of its kind.
# Debian: doctest-dev. Pinned: 2.4.11.
if(FAIRLEAD_BUILD_TESTS)
  fairlead_header_library(doctest
    HEADER doctest/doctest.h
    REPOSITORY https://github.com/doctest/doctest.git
    COMMIT ae7a13539fb71f270b87eb2e874fbac80bc8dda2
    INCLUDE .)
endif()

# nanobind: the smallest and fastest bindings. It comes from PyPI with the build requirements of
# pyproject.toml, and the interpreter that has it says where it is.
if(FAIRLEAD_BUILD_PYTHON)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)
endif()
