# SPDX-License-Identifier: Apache-2.0
"""The level counter on netlists small enough to count by hand."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../sw/tools/synth"))
import levels  # noqa: E402


def cell(kind, outputs, **pins):
    """A cell whose pins are lists of bits; `outputs` names those it drives."""
    ways = {pin: "output" if pin in outputs else "input" for pin in pins}
    return {"type": kind, "port_directions": ways, "connections": pins}


def lut(output, *inputs):
    return cell("$lut", "Y", A=list(inputs), Y=[output])


def register(q, d):
    return cell("FDRE", "Q", C=[1], CE=["1"], R=["0"], D=[d], Q=[q])


def netlist(cells, ports=None):
    return levels.Netlist({"cells": cells, "ports": ports or {}, "netnames": {}})


class Levels(unittest.TestCase):
    def test_register_to_register_without_logic_is_zero(self):
        n = netlist({"a": register(10, 11), "b": register(12, 10)})
        self.assertEqual(n.worst()[0], 0)
        self.assertEqual(n.counts()["ff"], 2)

    def test_luts_in_a_row_count_one_each_and_the_longest_branch_wins(self):
        n = netlist({"r": register(10, 13), "l1": lut(11, 10), "l2": lut(12, 11, 10), "l3": lut(13, 12, 10)})
        depth, path = n.worst()
        self.assertEqual(depth, 3)
        self.assertEqual([step[0] for step in path], ["start", "$lut", "$lut", "$lut", "end"])
        self.assertEqual(n.counts()["lut"], 3)

    def test_ports_begin_and_end_paths(self):
        ports = {"a": {"direction": "input", "bits": [10]}, "y": {"direction": "output", "bits": [12]}}
        self.assertEqual(netlist({"l1": lut(11, 10), "l2": lut(12, 11)}, ports).worst()[0], 2)

    def test_a_carry_chain_counts_one_whatever_its_length(self):
        cells = {"r": register(10, 60), "l": lut(20, 10)}
        carry_in = "0"
        for i in range(8):
            cells[f"c{i}"] = cell("CARRY4", ("CO", "O"), CI=[carry_in], DI=[20], S=[20], CO=[30 + i], O=[40 + i])
            carry_in = 30 + i
        cells["out"] = lut(60, 47)
        self.assertEqual(netlist(cells).worst()[0], 3)  # LUT, chain, LUT
        self.assertEqual(netlist(cells).counts()["carry"], 8)

    def test_two_carry_chains_in_a_row_count_two(self):
        cells = {"r": register(10, 41),
                 "c0": cell("CARRY4", ("CO", "O"), CI=["0"], DI=[10], S=[10], CO=[30], O=[40]),
                 "c1": cell("CARRY4", ("CO", "O"), CI=["0"], DI=[40], S=[40], CO=[31], O=[41])}
        self.assertEqual(netlist(cells).worst()[0], 2)

    def test_block_ram_cuts_a_path(self):
        ram = cell("RAMB18E2", ("DOUTADOUT",), ADDRARDADDR=[12], DOUTADOUT=[13])
        n = netlist({"r": register(10, 14), "l1": lut(11, 10), "l2": lut(12, 11), "m": ram, "l3": lut(14, 13)})
        self.assertEqual(n.worst()[0], 2)
        self.assertEqual(n.counts()["bram"], 0.5)

    def test_reading_a_lut_ram_is_a_level_and_writing_it_ends_the_path(self):
        ram = cell("RAM32M16", ("DOA",), ADDRA=[11], ADDRH=[16], DIA=[15], DOA=[12], WCLK=[1])
        n = netlist({"r": register(10, 13), "l1": lut(11, 10), "m": ram, "l2": lut(13, 12),
                     "w1": lut(14, 10), "w2": lut(15, 14), "w3": lut(16, 15)})
        self.assertEqual(n.worst()[0], 3)
        self.assertEqual(n.counts()["lutram"], 8)

    def test_all_kinds_of_path_beyond_a_limit_are_told_deepest_first(self):
        cells = {"l1": lut(11, 10), "l2": lut(12, 11), "l3": lut(13, 12),
                 "a": register(20, 12), "b": register(21, 12), "c": register(22, 13), "d": register(23, 11)}
        names = {"q": [10], "pair": [20, 21], "deep": [22], "shallow": [23]}
        n = levels.Netlist({"cells": cells, "netnames": {name: {"bits": bits} for name, bits in names.items()}})
        self.assertEqual([(deep, ends, path[0][1], path[-1][1]) for deep, ends, path in n.beyond(1)],
                         [(3, 1, "q", "FDRE.D deep"), (2, 2, "q", "FDRE.D pair[0]")])
        self.assertEqual(n.beyond(3), [])

    def test_a_loop_is_named_instead_of_followed_for_ever(self):
        with self.assertRaises(SystemExit):
            netlist({"r": register(10, 12), "l1": lut(11, 12), "l2": lut(12, 11)}).worst()

    def test_an_unknown_cell_stops_the_count(self):
        with self.assertRaises(SystemExit):
            netlist({"x": cell("$mystery", "Y", A=[1], Y=[2])}).counts()


if __name__ == "__main__":
    unittest.main()
