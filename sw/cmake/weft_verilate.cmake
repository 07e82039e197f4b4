# SPDX-License-Identifier: Apache-2.0
#
# SystemVerilog as CMake targets.
#
#   weft_verilate(<name> TOP <module>
#                 [SOURCES a.sv ...] [FLISTS rtl/x/x.f ...] [INCLUDES dir ...]
#                 [PARAMS Depth=4 ...] [THREADS n] [CHUNKS n] [ARGS flag ...] [LIBS lib ...])
#
# makes the static library <name> holding class V<name> (#include "V<name>.h"), and <name>_fst, the
# same class with FST tracing, built when something links it. Paths are relative to the repository
# root. LIBS hold what the SystemVerilog calls (DPI). CHUNKS splits the hot code of a large model into
# that many files compiled side by side. Code is compiled with -O3; there must be no other -O after
# it. Assertions are on, uninitialised and X values are random (seeded by the context of the model).

if(NOT WEFT_VERILATOR)
  file(GLOB _bin "${WEFT_VENV}/lib/python3*/site-packages/verilator/bin/verilator_bin")
  if(NOT _bin)
    message(FATAL_ERROR "no Verilator in ${WEFT_VENV}; run sw/tools/setup/setup.sh sim, or set VERILATOR=")
  endif()
  list(GET _bin 0 WEFT_VERILATOR)
endif()
get_filename_component(_root "${WEFT_VERILATOR}" REALPATH)
get_filename_component(_root "${_root}" DIRECTORY)
get_filename_component(_root "${_root}" DIRECTORY)
if(NOT EXISTS "${_root}/include/verilated.h")
  execute_process(COMMAND "${WEFT_VERILATOR}" --getenv VERILATOR_ROOT
                  OUTPUT_VARIABLE _root OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _bad)
  if(_bad)
    message(FATAL_ERROR "VERILATOR=${WEFT_VERILATOR} does not run")
  endif()
endif()
set(WEFT_VERILATOR_ROOT "${_root}")

# An older one fails on the RTL, with messages that do not tell why.
file(STRINGS "${WEFT_ROOT}/sw/tools/setup/requirements-sim.txt" _pinned REGEX "^verilator==")
string(REGEX REPLACE "^verilator==([0-9.]+).*" "\\1" _pinned "${_pinned}")
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "VERILATOR_ROOT=${_root}" "${WEFT_VERILATOR}" --version
                OUTPUT_VARIABLE _version ERROR_QUIET)
# The pinned one, built without its history, tells no number.
if(_version MATCHES "^Verilator ([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_LESS _pinned)
  message(FATAL_ERROR "VERILATOR=${WEFT_VERILATOR} is ${CMAKE_MATCH_1}, expected ${_pinned} or newer")
endif()

# The run-time, once without and once with FST tracing.
set(_inc "${WEFT_VERILATOR_ROOT}/include")
foreach(_kind "" "_fst")
  set(_rt verilated_rt${_kind})
  set(_files verilated verilated_threads verilated_random verilated_dpi)
  if(_kind)
    list(APPEND _files verilated_fst_c)
  endif()
  list(TRANSFORM _files REPLACE "(.+)" "${_inc}/\\1.cpp")
  add_library(${_rt} STATIC EXCLUDE_FROM_ALL ${_files})
  target_include_directories(${_rt} SYSTEM PUBLIC "${_inc}" "${_inc}/vltstd")
  target_compile_options(${_rt} PRIVATE -w -O3)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # does not inline all that GCC does
    target_link_libraries(${_rt} PUBLIC atomic)
  endif()
  target_link_libraries(${_rt} PUBLIC Threads::Threads)
  if(_kind)
    target_compile_definitions(${_rt} PUBLIC VM_TRACE=1 VM_TRACE_FST=1 WEFT_TRACE=1)
    target_link_libraries(${_rt} PUBLIC lz4 z)
  else()
    target_compile_definitions(${_rt} PUBLIC VM_TRACE=0)
  endif()
endforeach()

function(weft_verilate name)
  cmake_parse_arguments(A "RANDOM_LOCALS" "TOP;THREADS;CHUNKS" "SOURCES;FLISTS;INCLUDES;PARAMS;ARGS;LIBS" ${ARGN})
  if(A_UNPARSED_ARGUMENTS OR NOT A_TOP)
    message(FATAL_ERROR "weft_verilate(${name}): needs TOP; not understood: '${A_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT A_CHUNKS)
    set(A_CHUNKS 1)
  endif()
  if(NOT A_THREADS)
    set(A_THREADS 1)
  endif()
  set(options --top ${A_TOP} --name ${name} --chunks ${A_CHUNKS} --threads ${A_THREADS})
  if(A_RANDOM_LOCALS)
    list(APPEND options --random-locals)
  endif()
  foreach(item IN LISTS A_FLISTS)
    list(APPEND options --flist=${item})
  endforeach()
  foreach(item IN LISTS A_SOURCES)
    list(APPEND options --source=${item})
  endforeach()
  foreach(item IN LISTS A_INCLUDES)
    list(APPEND options --include=${item})
  endforeach()
  foreach(item IN LISTS A_PARAMS)
    list(APPEND options --param=${item})
  endforeach()
  foreach(item IN LISTS A_ARGS)
    list(APPEND options --arg=${item})
  endforeach()

  foreach(kind "" "_fst")
    set(target ${name}${kind})
    set(dir "${CMAKE_BINARY_DIR}/verilated/${target}")
    file(MAKE_DIRECTORY "${dir}")
    set(hot "")
    math(EXPR last "${A_CHUNKS} - 1")
    foreach(i RANGE ${last})
      list(APPEND hot "${dir}/${name}_${i}.cpp")
    endforeach()
    set(slow "${dir}/${name}_slow.cpp")
    set(trace "")
    if(kind)
      set(trace --trace)
    endif()
    add_custom_command(
      OUTPUT ${slow} ${hot} "${dir}/V${name}.h"
      COMMAND "${WEFT_PYTHON}" "${WEFT_ROOT}/sw/tools/verilate.py" --verilator "${WEFT_VERILATOR}"
              --build "${WEFT_BUILD}" --out "${dir}" --depfile "${dir}/deps.d" ${trace} ${options}
      DEPENDS "${WEFT_ROOT}/sw/tools/verilate.py" wire_gen
      DEPFILE "${dir}/deps.d"
      COMMENT "Verilating ${target}"
      VERBATIM)
    add_library(${target} STATIC EXCLUDE_FROM_ALL ${hot} ${slow})
    add_dependencies(${target} wire_gen)
    set_source_files_properties(${hot} PROPERTIES COMPILE_OPTIONS "-O3")
    set_source_files_properties(${slow} PROPERTIES COMPILE_OPTIONS "-O0")
    target_compile_options(${target} PRIVATE -w)
    target_include_directories(${target} SYSTEM PUBLIC "${dir}")
    target_link_libraries(${target} PUBLIC verilated_rt${kind} ${A_LIBS})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY WEFT_MODELS ${name})
endfunction()
