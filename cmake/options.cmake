# Build options and the warnings that are errors here.
option(FAIRLEAD_BUILD_PYTHON "Build the Python extension" OFF)
option(FAIRLEAD_BUILD_TESTS "Build the C++ tests" ${PROJECT_IS_TOP_LEVEL})
option(FAIRLEAD_BUILD_FUZZ "Build the libFuzzer targets (Clang)" OFF)
option(FAIRLEAD_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

function(fairlead_warnings target)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror)
  endif()
  if(FAIRLEAD_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=address,undefined -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()
