# SPDX-License-Identifier: Apache-2.0
#
# Target weft_version: build/gen/weft_version.h, which says from what commit a program is made. Looked up at each
# build and written only when it has changed. Also the script that does it: cmake -DOUT=... -DROOT=... -P.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.22)
  execute_process(COMMAND git -C "${ROOT}" describe --always --dirty --abbrev=12 OUTPUT_VARIABLE version
    RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)  # no git, or sources without their history
    set(version "unknown")
  endif()
  set(text "// SPDX-License-Identifier: Apache-2.0\n#pragma once\nnamespace weft {\n")
  string(APPEND text "inline constexpr const char* kVersion = \"${version}\";\n}\n")
  if(EXISTS "${OUT}")
    file(READ "${OUT}" before)
  endif()
  if(NOT "${before}" STREQUAL "${text}")
    file(WRITE "${OUT}" "${text}")
  endif()
  return()
endif()

add_custom_target(weft_version
  COMMAND "${CMAKE_COMMAND}" "-DOUT=${WEFT_GEN}/weft_version.h" "-DROOT=${WEFT_ROOT}" -P "${CMAKE_CURRENT_LIST_FILE}"
  BYPRODUCTS "${WEFT_GEN}/weft_version.h"
  VERBATIM)
