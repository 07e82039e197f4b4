# SPDX-License-Identifier: Apache-2.0
"""The list of counters and the event structs of the blocks agree: the node assigns one to the other, bit by bit."""
import os
import re
import unittest

import yaml

ROOT = os.path.join(os.path.dirname(__file__), "../../..")
WIDTHS = {"plen_t": 13, "psn_t": 24}  # of weft_pkg.sv, as far as event structs use them


def fields(text, name):
    """(name, bits) of the fields of the packed struct `name`, most significant first."""
    body = re.search(r"typedef struct packed \{((?:(?!typedef)[^}])*)\}\s*" + name + ";", text)
    if not body:
        raise AssertionError(f"no packed struct {name}")
    out = []
    for line in re.sub(r"//.*", "", body.group(1)).split(";"):
        if not line.strip():
            continue
        match = re.fullmatch(r"\s*(\w+)\s*(?:\[(\d+):0\])?\s*(\w+)\s*", line)
        if not match:
            raise AssertionError(f"{name}: '{line.strip()}' is not understood")
        kind, high, field = match.groups()
        out.append((field, int(high or 0) + 1 if kind == "logic" else WIDTHS[kind]))
    return out


class Counters(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "sw/wire/counters.yaml"), encoding="utf-8") as handle:
            self.blocks = {name: block for scope in yaml.safe_load(handle).values() for name, block in scope.items()}

    def test_each_block_has_the_fields_of_its_struct(self):
        compared = 0
        for name, block in self.blocks.items():
            if "struct" not in block:
                continue
            with self.subTest(block=name):
                with open(os.path.join(ROOT, block["struct"]["file"]), encoding="utf-8") as handle:
                    expected = fields(handle.read(), block["struct"]["name"])
                self.assertEqual([(e, v.get("bits", 1)) for e, v in block["events"].items()], expected)
                compared += 1
        self.assertGreaterEqual(compared, 5)

    def test_a_field_more_or_in_another_place_is_noticed(self):
        text = "typedef struct packed {\n logic a;  // x\n logic [3:0] b;\n} t;"
        self.assertEqual(fields(text, "t"), [("a", 1), ("b", 4)])
        self.assertNotEqual(fields(text.replace("logic a", "logic c"), "t"), [("a", 1), ("b", 4)])


if __name__ == "__main__":
    unittest.main()
