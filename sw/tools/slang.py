# SPDX-License-Identifier: Apache-2.0
"""SystemVerilog into Yosys by its slang front end. Never read_verilog -sv: that one mis-synthesises
arrays of structs and 2-D typedefs without a word."""
from pyosys import libyosys as ys


def read(top, sources, params=(), ignore_assertions=True):
    """A new design holding `top`; `sources` is flist.Sources, `params` a list of Name=value."""
    design = ys.Design()
    command = ["read_slang", "--top", top]
    if ignore_assertions:
        command.append("--ignore-assertions")
    for param in params:
        command += ["-G", param]
    for directory in sources.incdirs:
        command += ["-I", directory]
    command += [flag for flag in sources.flags if flag.startswith("+define+")]
    ys.Pass.call(design, command + sources.files)
    return design
