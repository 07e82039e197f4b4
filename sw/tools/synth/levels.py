# SPDX-License-Identifier: Apache-2.0
"""Counts cells and logic levels of a mapped netlist (Yosys write_json, Xilinx cells and $lut).

A level is a LUT, or a carry chain whatever its length, or the asynchronous read of a LUT RAM. Levels
are counted along the longest path between registers, block RAMs, DSP blocks and ports. Buffers and
wires are free. (Yosys' own ltp after abc9 is no such count: it adds carry elements one by one and
follows picoseconds of another family.)
"""
import json
import re
import sys

FREE = re.compile(r"IBUF|OBUF|BUFG|BUFGCE|\$_BUF_")
LUT = re.compile(r"\$lut$|LUT[1-6]$|INV$|\$_NOT_$|MUXF[789]$")
CARRY = re.compile(r"CARRY[48]$")
# LUTs that a RAM or shift register made of LUTs takes.
LUTRAM = {"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2,
          "RAM256X1S": 4, "RAM512X1S": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8,
          "RAM64X8SW": 8, "RAM32X16DR8": 8, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1}
RAMB = {"RAMB36E2": 1.0, "RAMB36E1": 1.0, "RAMB18E2": 0.5, "RAMB18E1": 0.5}
BIT = re.compile(r"\[\d+\]")
REGISTER = re.compile(r"(FD[RSCP]E|LD[CP]E)(_1)?$")


def read_address(kind, output, port):
    """Whether input `port` of the LUT RAM `kind` is an address that `output` reads by."""
    if kind.startswith("SRL"):
        return output in ("Q", "Q15", "Q31") and output == "Q" and port.startswith("A")
    if match := re.match(r"DO([A-H])", output):
        return port == "ADDR" + match.group(1)
    if output.startswith("DPO"):
        return port.startswith("DPRA")
    return re.match(r"A\d?$|A\d$", port) is not None


class Netlist:
    def __init__(self, module):
        self.cells = module["cells"]
        self.ports = module.get("ports", {})
        self.ends, self.driver, self.via = None, {}, {}  # by measure(); via: the input a level comes from
        self.names = {}
        for name, net in module.get("netnames", {}).items():
            for index, bit in enumerate(net["bits"]):
                if isinstance(bit, int) and (bit not in self.names or not net.get("hide_name")):
                    self.names[bit] = f"{name}[{index}]" if len(net["bits"]) > 1 else name

    def counts(self):
        """Totals of each resource; bram in RAMB36, lutram in LUTs."""
        total = {"lut": 0, "ff": 0, "bram": 0.0, "lutram": 0, "uram": 0, "dsp": 0, "carry": 0}
        other = {}
        for cell in self.cells.values():
            kind = cell["type"]
            if LUT.match(kind):
                total["lut"] += not kind.startswith("MUXF")
            elif REGISTER.match(kind):
                total["ff"] += 1
            elif kind in RAMB:
                total["bram"] += RAMB[kind]
            elif kind in LUTRAM:
                total["lutram"] += LUTRAM[kind]
            elif kind.startswith("URAM288"):
                total["uram"] += 1
            elif kind.startswith("DSP"):
                total["dsp"] += 1
            elif CARRY.match(kind):
                total["carry"] += 1
            elif not FREE.match(kind) and kind != "$scopeinfo":
                other[kind] = other.get(kind, 0) + 1
        if other:
            # A cell this script does not know would make every figure a lie.
            raise SystemExit(f"cells that the meter does not know: {other}")
        return total

    def arcs(self, cell):
        """(input port, output port) pairs with a combinational path."""
        kind = cell["type"]
        inputs = [port for port, way in cell["port_directions"].items() if way != "output"]
        outputs = [port for port, way in cell["port_directions"].items() if way == "output"]
        if LUT.match(kind) or FREE.match(kind) or CARRY.match(kind):
            return [(i, o) for o in outputs for i in inputs]
        if kind in LUTRAM:
            return [(i, o) for o in outputs for i in inputs if read_address(kind, o, i)]
        return []

    def measure(self):
        """Levels of every end of a path: a list of (levels, bit, where). Kept, with what it rests on."""
        if self.ends is not None:
            return self.ends
        driver = self.driver  # bit -> (cell, output port); only of combinational arcs
        for name, cell in self.cells.items():
            for _, output in self.arcs(cell):
                for bit in cell["connections"].get(output, ()):
                    if isinstance(bit, int):
                        driver[bit] = (name, output)
        # Value of a bit: levels up to and including its driver. Carry bits remember that the chain
        # they belong to is paid for, so that the next element of it is free.
        level, via = {}, self.via

        def cost(cell, port_in, bit_in):
            kind = cell["type"]
            if FREE.match(kind):
                return 0
            if CARRY.match(kind) and port_in in ("CI", "CI_TOP") and bit_in in driver:
                before = self.cells[driver[bit_in][0]]["type"]
                return 0 if CARRY.match(before) else 1
            return 1

        def evaluate(start):
            stack = [start]
            while stack:
                bit = stack[-1]
                if bit in level and level[bit] is not None:
                    stack.pop()
                    continue
                if bit not in driver:
                    level[bit] = 0
                    stack.pop()
                    continue
                name, output = driver[bit]
                cell = self.cells[name]
                sources = [(port, b) for port, o in self.arcs(cell) if o == output
                           for b in cell["connections"].get(port, ()) if isinstance(b, int)]
                waiting = [b for _, b in sources if level.get(b) is None]
                if waiting:
                    if bit in level:  # seen, and its inputs still wait for it: a loop
                        raise SystemExit(f"combinational loop through {self.names.get(bit, bit)}")
                    level[bit] = None
                    on_stack = [b for b in waiting if b in level]
                    if on_stack:
                        raise SystemExit(f"combinational loop through {self.names.get(on_stack[0], on_stack[0])}")
                    stack.extend(waiting)
                    continue
                best, best_bit = (1 if cell["type"] in LUTRAM else 0), None
                for port, b in sources:
                    value = level[b] + cost(cell, port, b)
                    if value > best or best_bit is None:
                        best, best_bit = max(value, best), b
                level[bit], via[bit] = best, best_bit
                stack.pop()

        found = []
        for name, cell in self.cells.items():
            through = {i for i, _ in self.arcs(cell)}
            for port, way in cell["port_directions"].items():
                if way != "output" and port not in through:
                    found += [(bit, f"{cell['type']}.{port} {self.name_of(name)}")
                              for bit in cell["connections"].get(port, ())]
        for name, port in self.ports.items():
            if port["direction"] != "input":
                found += [(bit, f"port {name}") for bit in port["bits"]]
        self.ends = []
        for bit, where in found:
            if isinstance(bit, int):
                evaluate(bit)
                self.ends.append((level[bit], bit, where))
        return self.ends

    def name_of(self, cell):
        """A register or RAM by the signal it drives: flattening leaves no better name."""
        for port, way in self.cells[cell]["port_directions"].items():
            for bit in self.cells[cell]["connections"].get(port, ()) if way == "output" else ():
                if bit in self.names:
                    return self.names[bit]
        return cell

    def path_to(self, bit, where):
        """Cells from start to end: (type, output net, source)."""
        path = [("end", where, "")]
        while bit is not None:
            name = self.names.get(bit, str(bit))
            if bit in self.driver:
                cell = self.cells[self.driver[bit][0]]
                path.append((cell["type"], name, cell.get("attributes", {}).get("src", "")))
            else:
                path.append(("start", name, ""))
            bit = self.via.get(bit)
        return path[::-1]

    def worst(self):
        """(levels, path): the longest path."""
        longest = max(self.measure(), key=lambda end: end[0], default=None)
        return (longest[0], self.path_to(*longest[1:])) if longest else (0, [])

    def beyond(self, limit):
        """The longest path from each signal to each other that is deeper than `limit`, all bits of a signal
        taken together: a list of (levels, number of ends, path), deepest first. A large block is slow to map,
        so one look should show all that is to be mended."""
        kinds = {}
        for levels, bit, where in self.measure():
            if levels > limit:
                path = self.path_to(bit, where)
                key = (BIT.sub("", path[0][1]), BIT.sub("", where))
                best, ends, _ = kinds.get(key, (0, 0, None))
                kinds[key] = (max(best, levels), ends + 1, path if levels > best else kinds[key][2])
        return sorted(kinds.values(), key=lambda kind: (-kind[0], -kind[1]))


def load(path, top):
    with open(path, encoding="utf-8") as handle:
        return Netlist(json.load(handle)["modules"][top])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: levels.py NETLIST.json TOP")
    netlist = load(sys.argv[1], sys.argv[2])
    depth, steps = netlist.worst()
    print(json.dumps({**netlist.counts(), "levels": depth}))
    for step in steps:
        print("  ", *step)
