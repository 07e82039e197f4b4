# SPDX-License-Identifier: Apache-2.0
#
# Target wire_gen: build/gen/, the packages and headers made from sw/wire (see sw/wire/gen.py).
# Everything verilated and every test depends on it already; a library that includes a generated
# header links weft_gen_headers.

set(_gen "${WEFT_ROOT}/sw/wire/gen.py")
add_library(weft_gen_headers INTERFACE)
target_include_directories(weft_gen_headers INTERFACE "${WEFT_GEN}")

file(GLOB _inputs CONFIGURE_DEPENDS "${WEFT_ROOT}/sw/wire/*.py" "${WEFT_ROOT}/sw/wire/*.yaml"
  "${WEFT_ROOT}/sw/wire/*.rdl" "${WEFT_ROOT}/sw/wire/templates/*" "${WEFT_ROOT}/rtl/pkg/weft_pkg.sv")
if(EXISTS "${_gen}")
  set(_made weft_wire_pkg.sv weft_wire.h weft.lua weft_counters_pkg.sv weft_counters.h weft_cfg.h weft_trace.h
    weft_regs_pkg.sv weft_regs.sv weft_regs.h weft_interface_pkg.sv wire_tables.md)
  list(TRANSFORM _made PREPEND "${WEFT_GEN}/")
  add_custom_command(
    OUTPUT ${_made}
    COMMAND "${WEFT_PYTHON}" "${_gen}" --out "${WEFT_GEN}"
    DEPENDS ${_inputs}
    WORKING_DIRECTORY "${WEFT_ROOT}"
    COMMENT "Generating build/gen from sw/wire"
    VERBATIM)
  add_custom_target(wire_gen DEPENDS ${_made})
else()
  add_custom_target(wire_gen)
endif()
add_dependencies(weft_gen_headers wire_gen)
