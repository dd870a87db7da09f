# Build options, and what the targets of this project are compiled with.
# Developer things are off unless this is the top-level project.
option(FAIRLEAD_BUILD_PYTHON "Build the Python extension fairlead._core" OFF)
option(FAIRLEAD_BUILD_TESTS "Build the C++ tests" ${PROJECT_IS_TOP_LEVEL})
option(FAIRLEAD_BUILD_TOOLS "Build the native program fairlead-convert" ${PROJECT_IS_TOP_LEVEL})
option(FAIRLEAD_INSTALL "Install the library, its headers and the CMake package" ${PROJECT_IS_TOP_LEVEL})
option(FAIRLEAD_WERROR "Warnings are errors" OFF)
option(FAIRLEAD_BUILD_FUZZ "Build the libFuzzer targets (Clang)" OFF)
option(FAIRLEAD_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(FAIRLEAD_THREAD_TESTS "Of the C++ tests only those that start threads" OFF)
# A third of the compiler's time. Off elsewhere, so that a missing include is found.
option(FAIRLEAD_PRECOMPILE "Parse the headers that most files include once" OFF)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

# Warnings and sanitizers of one of our own targets; third-party code is not held to them.
function(fairlead_compile_options target)
  # GCC 12 sees overlaps where strings are joined that are none (its bug 105651).
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wno-sign-conversion
                                           $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                                           $<$<BOOL:${FAIRLEAD_WERROR}>:-Werror>)
  # A wheel does not depend on where it was built: messages name files within the repository.
  if(DEFINED SKBUILD)
    target_compile_options(${target} PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
                                             -ffile-prefix-map=${PROJECT_BINARY_DIR}/=)
  endif()
  if(FAIRLEAD_SANITIZE)
    # What looks at every pointer of a member access costs half of the compiler's time, and
    # AddressSanitizer finds nearly all of it.
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined
                                             -fno-sanitize=null,alignment,object-size,vptr
                                             -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

# What nearly every file of the core includes, read once for all files of the target.
function(fairlead_precompile target)
  if(FAIRLEAD_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <functional> <map> <set> <unordered_map>
                              "${PROJECT_SOURCE_DIR}/fairlead/base/error.h"
                              "${PROJECT_SOURCE_DIR}/fairlead/graph/graph.h")
  endif()
endfunction()
