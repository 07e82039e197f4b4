# SPDX-License-Identifier: Apache-2.0
#
#   weft_bench(<name> SOURCES a.cpp ... [LIBS lib ...] [MODELS verilated ...] [DEPENDS target ...])
#
# makes build/bench/<name>, a program that measures and calls weft::bench::report() of
# tests/common/weft_bench.h for each figure. `make bench` runs them one after the other.
add_custom_target(all_benches)

function(weft_bench name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS;MODELS;DEPENDS" ${ARGN})
  if(A_UNPARSED_ARGUMENTS OR NOT A_SOURCES)
    message(FATAL_ERROR "weft_bench(${name}): needs SOURCES; not understood: '${A_UNPARSED_ARGUMENTS}'")
  endif()
  foreach(file IN LISTS A_SOURCES)
    get_filename_component(file "${file}" ABSOLUTE)
    if(NOT EXISTS "${file}")  # as in weft_test(): only this one fails
      add_custom_target(bench_${name} COMMAND ${CMAKE_COMMAND} -E echo "weft_bench(${name}): no file ${file}"
                                      COMMAND ${CMAKE_COMMAND} -E false)
      add_dependencies(all_benches bench_${name})
      return()
    endif()
  endforeach()
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${A_SOURCES})
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${WEFT_BUILD}/bench")
  target_include_directories(bench_${name} PRIVATE "${WEFT_ROOT}/tests/common" "${WEFT_ROOT}")
  target_link_libraries(bench_${name} PRIVATE ${A_LIBS} ${A_MODELS})
  target_compile_definitions(bench_${name} PRIVATE WEFT_SOURCE_DIR="${WEFT_ROOT}" WEFT_BUILD_DIR="${WEFT_BUILD}")
  add_dependencies(bench_${name} wire_gen ${A_DEPENDS})
  add_dependencies(all_benches bench_${name})
  set_property(GLOBAL APPEND PROPERTY WEFT_BENCHES ${name})
endfunction()

# Called once, after every folder has registered its own.
function(weft_write_bench_list)
  get_property(benches GLOBAL PROPERTY WEFT_BENCHES)
  list(JOIN benches "\n" joined)
  file(WRITE "${WEFT_BUILD}/bench/list.txt" "${joined}\n")
endfunction()
