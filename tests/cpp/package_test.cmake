# Installs the build into a fresh prefix, builds the example against it as a stranger would, runs it.
#   cmake -DBUILD_DIR=... -DEXAMPLE_DIR=... -DWORK_DIR=... -DGOLDEN=... -DGENERATOR=... -DCOMPILER=... -P package_test.cmake
file(REMOVE_RECURSE ${WORK_DIR})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix --component development)
run(${CMAKE_COMMAND} -S ${EXAMPLE_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/sizes)
if(NOT output STREQUAL "batch*sequence = 6\n")
  message(FATAL_ERROR "Expected 'batch*sequence = 6', got '${output}'")
endif()
run(${WORK_DIR}/build/convert ${GOLDEN}/mlp.pt2 ${WORK_DIR}/mlp.onnx)
if(NOT output MATCHES "Mul Sigmoid Mul" OR output MATCHES "Gelu" OR NOT EXISTS ${WORK_DIR}/mlp.onnx)
  message(FATAL_ERROR "Expected a file with 'Mul Sigmoid Mul' in place of Gelu, got '${output}'")
endif()
execute_process(COMMAND ${WORK_DIR}/build/convert ${WORK_DIR}/none.pt2 ${WORK_DIR}/none.onnx
                RESULT_VARIABLE code ERROR_VARIABLE words)
if(NOT code EQUAL 1 OR EXISTS ${WORK_DIR}/none.onnx)
  message(FATAL_ERROR "Expected an error for a file that is not there, got ${code} '${words}'")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
