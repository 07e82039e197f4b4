# SPDX-License-Identifier: Apache-2.0
#
#   weft_test(<name> SOURCES a.cpp ... [LIBS lib ...] [MODELS verilated ...] [DEPENDS target ...])
#
# makes build/tests/<name>, a Catch2 program, from sources relative to the calling folder. If it has
# MODELS there is a second program, build/tests/waves/<name>, linked with their tracing twins and
# built by `make test T=... WAVES=1`. Each is registered for the test runner (sw/tools/runtests.py),
# which reads the names of the test cases from the sources: give TEST_CASE a plain string literal.

add_library(weft_test_main STATIC EXCLUDE_FROM_ALL "${WEFT_ROOT}/tests/common/main.cpp")
target_include_directories(weft_test_main PUBLIC "${WEFT_ROOT}/tests/common" "${WEFT_ROOT}")

function(weft_test name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS;MODELS;DEPENDS" ${ARGN})
  if(A_UNPARSED_ARGUMENTS OR NOT A_SOURCES)
    message(FATAL_ERROR "weft_test(${name}): needs SOURCES; not understood: '${A_UNPARSED_ARGUMENTS}'")
  endif()
  set(sources "")
  set(absent "")
  foreach(file IN LISTS A_SOURCES)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND sources "${file}")
    if(NOT EXISTS "${file}")
      list(APPEND absent "${file}")
    endif()
  endforeach()

  set(kinds "plain")
  if(absent)
    # One folder half written must not stop everybody's configure step: only this test fails.
    set(kinds "")
    foreach(target test_${name} test_${name}_waves)
      add_custom_target(${target} COMMAND ${CMAKE_COMMAND} -E echo "weft_test(${name}): no file ${absent}"
                                  COMMAND ${CMAKE_COMMAND} -E false)
    endforeach()
  elseif(A_MODELS)
    list(APPEND kinds "waves")
  endif()
  foreach(kind IN LISTS kinds)
    if(kind STREQUAL "plain")
      set(target test_${name})
      set(dir "${WEFT_BUILD}/tests")
      set(suffix "")
      add_executable(${target} EXCLUDE_FROM_ALL ${sources})
    else()
      set(target test_${name}_waves)
      set(dir "${WEFT_BUILD}/tests/waves")
      set(suffix "_fst")
      add_executable(${target} EXCLUDE_FROM_ALL ${sources})
    endif()
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${dir}")
    set(models "${A_MODELS}")
    list(TRANSFORM models APPEND "${suffix}")
    target_link_libraries(${target} PRIVATE weft_test_main ${A_LIBS} ${models})
    target_compile_definitions(${target} PRIVATE
      WEFT_TEST_PROGRAM="${name}" WEFT_SOURCE_DIR="${WEFT_ROOT}" WEFT_BUILD_DIR="${WEFT_BUILD}")
    add_dependencies(${target} wire_gen ${A_DEPENDS})
  endforeach()
  add_dependencies(all_tests test_${name})

  list(JOIN sources "\", \"" joined)
  set(waves false)
  if(A_MODELS)
    set(waves true)
  endif()
  set_property(GLOBAL APPEND PROPERTY WEFT_TESTS
    "{\"name\": \"${name}\", \"waves\": ${waves}, \"sources\": [\"${joined}\"]}")
endfunction()

# Called once, after every folder has registered its tests.
function(weft_write_test_list)
  get_property(tests GLOBAL PROPERTY WEFT_TESTS)
  list(JOIN tests ",\n " joined)
  file(WRITE "${WEFT_BUILD}/tests/list.json.new" "[${joined}]\n")
  file(RENAME "${WEFT_BUILD}/tests/list.json.new" "${WEFT_BUILD}/tests/list.json")
endfunction()
