# SPDX-License-Identifier: Apache-2.0
"""Frame vectors against a routine that shares nothing with the C++: headers packed from wire.yaml, CRC by zlib.

tests/unit/comply/test_vectors.cpp holds the C++ to the same files.
"""
import json
import os
import struct
import unittest
import zlib

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
with open(os.path.join(ROOT, "sw/wire/wire.yaml"), encoding="utf-8") as handle:
    WIRE = yaml.safe_load(handle)


def load(name):
    with open(os.path.join(HERE, "vectors", name), encoding="utf-8") as handle:
        return json.load(handle)["vectors"]


def icrc(packet):
    """Of an IPv4 packet, from the IP header to the last byte in front of the ICRC; as it stands on the wire."""
    masked = bytearray(packet)
    for at in (1, 8, 10, 11, 26, 27, 32):  # TOS, TTL, IP checksum, UDP checksum, byte 4 of the BTH
        masked[at] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def ip_checksum(header):
    total = sum(struct.unpack(">10H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def pack(header, values):
    bits, value = 0, 0
    for field in WIRE["headers"][header]["fields"]:
        width = field["bits"]
        given = values.get(field["name"], 0)
        assert given >> width == 0, f"{header}.{field['name']} = {given} does not fit {width} bits"
        value, bits = value << width | given, bits + width
    return value.to_bytes(bits // 8, "big")


def build(vector):
    """The frame that a vector's fields say, with lengths, checksum and ICRC worked out here."""
    fields = vector["fields"]
    payload = bytes.fromhex(vector.get("payload", ""))
    hist = b"".join(struct.pack(">I", word) for word in vector.get("hist", []))
    opcodes = {spec["value"]: spec["layout"] for spec in WIRE["enums"]["opcode"]["values"].values()}
    stack = WIRE["layouts"][opcodes[fields["bth"]["opcode"]]]
    tail = b"".join(pack(h, fields[h]) for h in stack[3:]) + hist + payload + bytes(-len(payload) % 4)
    udp_bytes = 8 + len(tail) + 4
    udp = pack("udp", {**fields["udp"], "len": udp_bytes, "csum": 0})
    ip_fields = {**fields["ipv4"], "len": 20 + udp_bytes, "csum": 0}
    ip_fields["csum"] = ip_checksum(pack("ipv4", ip_fields))
    packet = pack("ipv4", ip_fields) + udp + tail
    return pack("eth", fields["eth"]) + packet + icrc(packet)


class Vectors(unittest.TestCase):
    def test_packets_of_others_have_the_icrc_that_we_work_out(self):
        vectors = load("roce.json")
        self.assertGreaterEqual(len(vectors), 5)
        for v in vectors:
            with self.subTest(v["name"]):
                self.assertTrue(v["source"])
                self.assertEqual(icrc(bytes.fromhex(v["packet"])).hex(), v["icrc"])

    def test_every_opcode_has_a_vector_and_its_bytes_are_what_the_fields_say(self):
        vectors = load("weft.json")
        for v in vectors:
            with self.subTest(v["name"]):
                self.assertEqual(build(v).hex(), v["frame"])
        seen = {v["fields"]["bth"]["opcode"] for v in vectors}
        self.assertEqual(seen, {spec["value"] for spec in WIRE["enums"]["opcode"]["values"].values()})

    def test_a_changed_bit_is_noticed(self):
        v = load("weft.json")[0]
        frame = bytearray(bytes.fromhex(v["frame"]))
        for at in (34, 60, len(frame) - 5):  # UDP source port, WTH, last covered byte
            frame[at] ^= 1
            self.assertNotEqual(icrc(bytes(frame[14:-4])), bytes(frame[-4:]))
            frame[at] ^= 1
        self.assertEqual(icrc(bytes(frame[14:-4])), bytes(frame[-4:]))
