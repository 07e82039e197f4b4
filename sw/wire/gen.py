#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the SystemVerilog package, the C++ header and their relatives from wire.yaml.

    build/venv/bin/python sw/wire/gen.py --out build/gen
    build/venv/bin/python sw/wire/gen.py --pages docs/*.md     # the marked pieces of pages instead (pages.py)

The description is checked first; a mistake in it ends the run with one line per mistake that names the place, and
status 2. An output is written only when its text changes, so that a run without a change rebuilds nothing.
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile
import zlib

import jinja2
import yaml

import pages

# The register tools load slowly, so they are imported where they are used: a mistake in the YAML shows at once.

HERE = pathlib.Path(__file__).resolve().parent

SV_KEYWORDS = set("""
alias always and assert assign assume automatic before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex
casez cell chandle checker class clocking cmos config const constraint context continue cover covergroup coverpoint cross
deassign default defparam design disable dist do edge else end endcase endclass endfunction endmodule endpackage endtask
enum event eventually expect export extends extern final first_match for force foreach forever fork forkjoin function
generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include
initial inout input inside instance int integer interconnect interface intersect join join_any join_none large let
liblist library local localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime
nmos nor noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on
sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand
trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
""".split())
CPP_KEYWORDS = set("""
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval constexpr
constinit continue co_await co_return co_yield decltype default delete do double else enum explicit export extern false
float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register requires return short signed sizeof static struct switch template this throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
""".split())


class Problems:
    """Collects everything wrong with the description, so that one run shows all of it."""

    def __init__(self, source):
        self.source = source
        self.texts = []

    def add(self, where, text):
        self.texts.append(f"{self.source}: {where}: {text}")

    def stop_if_any(self):
        if self.texts:
            for text in self.texts:
                print(text, file=sys.stderr)
            sys.exit(2)


class UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word; here that is an error."""


def _unique_mapping(loader, node, deep=False):
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=deep)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key '{key}' given twice", key_node.start_mark)
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def load_yaml(path):
    try:
        with open(path, encoding="utf-8") as f:
            data = yaml.load(f, Loader=UniqueKeyLoader)
    except (OSError, yaml.YAMLError) as e:
        print(f"{path}: {' '.join(str(e).split())}", file=sys.stderr)
        sys.exit(2)
    if not isinstance(data, dict):
        print(f"{path}: expected a mapping at the top", file=sys.stderr)
        sys.exit(2)
    return data


# ---- naming ------------------------------------------------------------------------------------------------------
def camel(key):
    """RETRY_LIMIT or retry_limit -> RetryLimit"""
    return "".join(part[:1].upper() + part[1:].lower() for part in key.split("_"))


def uint_type(bits):
    return next(f"std::uint{w}_t" for w in (8, 16, 32, 64) if bits <= w)


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


# ---- reading and checking ----------------------------------------------------------------------------------------
def check_keys(bad, where, entry, allowed, needed=()):
    if not isinstance(entry, dict):
        bad.add(where, f"expected a mapping, got {entry!r}")
        return False
    for key in entry:
        if key not in allowed:
            bad.add(where, f"unknown key '{key}' (expected one of {', '.join(sorted(allowed))})")
    missing = [key for key in needed if key not in entry]
    for key in missing:
        bad.add(where, f"key '{key}' is missing")
    return not missing


def check_name(bad, where, name, pattern):
    if not isinstance(name, str) or not re.fullmatch(pattern, name):
        bad.add(where, f"name '{name}' does not match {pattern}")
    elif name in SV_KEYWORDS or name in CPP_KEYWORDS:
        bad.add(where, f"name '{name}' is a keyword of SystemVerilog or C++")


def read_constants(bad, raw):
    out = []
    for name, c in raw.items():
        where = f"constants.{name}"
        check_name(bad, where, name, r"[A-Z][A-Z0-9_]*")
        if not check_keys(bad, where, c, {"value", "width", "doc"}, {"value", "doc"}):
            continue
        width = c.get("width")
        if width is not None and (not is_int(width) or not 1 <= width <= 64):
            bad.add(where, f"width {width!r} is not 1..64")
            continue
        if not is_int(c["value"]) or not 0 <= c["value"] < 1 << (width or 32):
            bad.add(where, f"value {c['value']!r} does not fit {width or 32} bits")
            continue
        out.append({"name": name, "cpp": "k" + camel(name), "value": c["value"], "width": width,
                    "type": uint_type(width or 32), "doc": c["doc"]})
    return out


def read_enums(bad, raw):
    out = []
    prefixes = {}
    for name, e in raw.items():
        where = f"enums.{name}"
        check_name(bad, where, name, r"[a-z][a-z0-9_]*")
        if not check_keys(bad, where, e, {"prefix", "width", "values", "doc"}, {"prefix", "width", "values"}):
            continue
        if not is_int(e["width"]) or not 1 <= e["width"] <= 32:
            bad.add(where, f"width {e['width']!r} is not 1..32")
            continue
        if e["prefix"] in prefixes:
            bad.add(where, f"prefix '{e['prefix']}' is also that of {prefixes[e['prefix']]}")
        prefixes[e["prefix"]] = where
        by_value = {}
        values = []
        for key, v in e["values"].items():
            vw = f"{where}.{key}"
            check_name(bad, vw, key, r"[A-Z][A-Z0-9_]*")
            if not check_keys(bad, vw, v, {"value", "doc", "layout"}, {"value"}):
                continue
            if not is_int(v["value"]) or not 0 <= v["value"] < 1 << e["width"]:
                bad.add(vw, f"value {v['value']!r} does not fit {e['width']} bits")
                continue
            if v["value"] in by_value:
                bad.add(vw, f"value {v['value']:#x} is also that of {by_value[v['value']]}")
            by_value[v["value"]] = key
            values.append({"key": key, "sv": e["prefix"] + camel(key), "value": v["value"],
                           "doc": v.get("doc", ""), "layout": v.get("layout")})
        out.append({"name": name, "cpp": camel(name), "prefix": e["prefix"], "width": e["width"],
                    "type": uint_type(e["width"]), "values": values,
                    "hex": all(v["layout"] for v in values)})
    return out


def read_fields(bad, where, raw, enums, big_endian):
    """Fields with their bit offset. `enum` makes a field of that type; `names` only prints a number by the enum's names
    (a header field carries whatever the wire brought). A field of several bytes starts on a byte; a smaller one stays inside its byte:
    the codecs rely on it, and a reader of a hex dump is grateful."""
    enum_by_name = {e["name"]: e for e in enums}
    fields, seen, offset = [], set(), 0
    for f in raw:
        fw = f"{where}.{f.get('name', '?') if isinstance(f, dict) else f}"
        if not check_keys(bad, fw, f, {"name", "bits", "doc", "enum", "names"}, {"name", "bits"}):
            return [], 0
        check_name(bad, fw, f["name"], r"[a-z][a-z0-9_]*")
        if f["name"] in seen:
            bad.add(fw, "name used twice")
        seen.add(f["name"])
        bits = f["bits"]
        if not is_int(bits) or bits < 1:
            bad.add(fw, f"bits {bits!r} is not a positive number")
            return [], 0
        if bits >= 8 and (offset % 8 or bits % 8):
            bad.add(fw, f"{bits} bits at bit {offset}: a field of 8 bits or more is whole bytes from a byte boundary")
        elif bits < 8 and offset % 8 + bits > 8:
            bad.add(fw, f"{bits} bits at bit {offset}: the field crosses a byte boundary")
            return [], 0
        enum = f.get("enum")
        names = f.get("names", enum)
        if names is not None:
            if names not in enum_by_name:
                bad.add(fw, f"no enum '{names}'")
                enum = names = None
            elif enum_by_name[names]["width"] != bits:
                bad.add(fw, f"{bits} bits, but enum {names} has {enum_by_name[names]['width']}")
        byte, low = offset // 8, offset % 8
        # C++: shift of a small field inside its byte. Headers count bits from the top, records from the bottom.
        shift = (8 - low - bits if big_endian else low) if bits < 8 else 0
        if enum:
            ctype = camel(enum)
        elif bits == 1:
            ctype = "bool"
        elif bits <= 64:
            ctype = uint_type(bits)
        else:
            ctype = f"std::array<std::uint8_t, {bits // 8}>"
        fields.append({"name": f["name"], "bits": bits, "doc": f.get("doc", ""), "enum": enum, "names": names, "offset": offset,
                       "byte": byte, "bytes": bits // 8, "shift": shift,
                       "mask": ((1 << bits) - 1) << shift if bits < 8 else None, "ctype": ctype,
                       "sv": f"{enum}_e" if enum else ("logic" if bits == 1 else f"logic [{bits - 1}:0]")})
        offset += bits
    return fields, offset


def read_headers(bad, raw, enums):
    out = []
    for name, h in raw.items():
        where = f"headers.{name}"
        check_name(bad, where, name, r"[a-z][a-z0-9_]*")
        if not check_keys(bad, where, h, {"doc", "fields", "trailer"}, {"doc", "fields"}):
            continue
        fields, bits = read_fields(bad, where, h["fields"], enums, big_endian=True)
        if fields and bits % 8:
            bad.add(where, f"{bits} bits are not whole bytes")
        out.append({"name": name, "cpp": camel(name), "doc": h["doc"], "fields": fields, "bytes": bits // 8,
                    "trailer": h.get("trailer")})
    return out


def read_records(bad, raw, enums):
    out = []
    for name, r in raw.items():
        where = f"records.{name}"
        check_name(bad, where, name, r"[a-z][a-z0-9_]*")
        if not check_keys(bad, where, r, {"doc", "bytes", "fields"}, {"doc", "bytes", "fields"}):
            continue
        fields, bits = read_fields(bad, where, r["fields"], enums, big_endian=False)
        if fields and bits != 8 * r["bytes"]:
            bad.add(where, f"fields are {bits} bits, bytes says {8 * r['bytes']}")
        for f in fields:
            if f["bits"] in (16, 32, 64) and f["byte"] % f["bytes"]:
                bad.add(f"{where}.{f['name']}", f"{f['bits']} bits at byte {f['byte']}: not naturally aligned")
        out.append({"name": name, "cpp": camel(name), "doc": r["doc"], "fields": fields, "bytes": r["bytes"]})
    return out


def read_layouts(bad, raw, headers, constants):
    by_name = {h["name"]: h for h in headers}
    const = {c["name"]: c["value"] for c in constants}
    out = []
    for name, stack in raw.items():
        where = f"layouts.{name}"
        check_name(bad, where, name, r"[a-z][a-z0-9_]*")
        unknown = [h for h in stack if h not in by_name]
        for h in unknown:
            bad.add(where, f"no header '{h}'")
        if unknown:
            continue
        size = sum(by_name[h]["bytes"] for h in stack)
        limit = f"HDR_{name.upper()}_BYTES"
        if const.get(limit) != size:
            bad.add(where, f"headers are {size} bytes, constant {limit} says {const.get(limit)}")
        out.append({"name": name, "headers": [by_name[h] for h in stack], "bytes": size})
    return out


def load_wire(path):
    bad = Problems(path)
    raw = load_yaml(path)
    sections = {"constants", "headers", "layouts", "enums", "records"}
    check_keys(bad, "top", raw, sections, sections)
    bad.stop_if_any()
    constants = read_constants(bad, raw["constants"])
    enums = read_enums(bad, raw["enums"])
    headers = read_headers(bad, raw["headers"], enums)
    records = read_records(bad, raw["records"], enums)
    layouts = read_layouts(bad, raw["layouts"], headers, constants)
    names = {lay["name"] for lay in layouts}
    for e in enums:
        for v in e["values"]:
            if v["layout"] is not None and v["layout"] not in names:
                bad.add(f"enums.{e['name']}.{v['key']}", f"no layout '{v['layout']}'")
    clash = {h["name"] for h in headers} & {r["name"] for r in records}
    for name in clash:
        bad.add(f"records.{name}", "also the name of a header")
    bad.stop_if_any()
    return {"constants": constants, "enums": enums, "headers": headers, "records": records, "layouts": layouts,
            "constant": {c["name"]: c["value"] for c in constants},
            "offset": {h["name"]: {f["name"]: f["byte"] for f in h["fields"]} for h in headers}}


def read_counters(path, wire):
    """Counters of a node and of a port, each with the place of its bits in the struct that brings its events."""
    bad = Problems(path)
    raw = load_yaml(path)
    check_keys(bad, "top", raw, {"node", "port"}, {"node", "port"})
    bad.stop_if_any()
    drops = next(e for e in wire["enums"] if e["name"] == "drop")
    for i, v in enumerate(drops["values"]):
        if v["value"] != i:
            bad.add("drop", f"reason {v['key']} of wire.yaml is {v['value']}, expected {i}: an index may not be left out")
    out = {}
    for scope in ("node", "port"):
        blocks = []
        for name, b in raw[scope].items():
            where = f"{scope}.{name}"
            check_name(bad, where, name, r"[a-z][a-z0-9_]*")
            if not check_keys(bad, where, b, {"struct", "events"}, {"events"}):
                continue
            events = []
            for event, e in b["events"].items():
                check_name(bad, f"{where}.{event}", event, r"[a-z][a-z0-9_]*")
                if not check_keys(bad, f"{where}.{event}", e, {"doc", "bits"}, {"doc"}):
                    continue
                bits = e.get("bits", 1)
                if not is_int(bits) or not 1 <= bits <= 32:
                    bad.add(f"{where}.{event}", f"bits {bits!r} is not 1..32")
                    continue
                events.append({"name": event, "bits": bits, "doc": e["doc"]})
            blocks.append({"name": name, "events": events, "struct": b.get("struct")})
        if scope == "port":
            if "drop" in raw[scope]:
                bad.add("port.drop", "comes from wire.yaml by itself")
            blocks.append({"name": "drop", "struct": None, "events": [
                {"name": v["key"].lower(), "bits": 1, "doc": "frames dropped: " + v["doc"]} for v in drops["values"]]})
        bad.stop_if_any()
        lsb = sum(e["bits"] for b in blocks for e in b["events"])
        out[scope + "_bits"] = lsb
        index = 0
        for b in blocks:
            for e in b["events"]:
                lsb -= e["bits"]
                e.update(index=index, lsb=lsb, id=camel(b["name"]) + camel(e["name"]))
                index += 1
            # Reason i is bit i of the drop vector, so its first counter is the lowest bit.
            if b["name"] == "drop":
                for e, place in zip(b["events"], sorted(e["lsb"] for e in b["events"])):
                    e["lsb"] = place
        out[scope] = blocks
        out[scope + "_events"] = [e for b in blocks for e in b["events"]]
    return out


def read_package(path):
    """Text of a package, without semicolons in its comments."""
    try:
        return re.sub(r"//[^\n]*", lambda m: m.group().replace(";", ","), path.read_text(encoding="utf-8"))
    except OSError as e:
        print(f"{path}: {e.strerror}", file=sys.stderr)
        sys.exit(2)


def read_struct(bad, text, name, what="", enums=()):
    """Fields of a packed struct of plain logic (or of the given enums, by type: width), each with its lowest bit, and the
    bits of all. The first field is the most significant. Nothing, and a problem, if there is no such struct."""
    struct = re.search(r"typedef struct packed \{([^{}]*)\}\s*" + name + ";", text)
    if not struct:
        bad.add(name, f"not found{what}")
        return None
    widths = dict(enums)
    kinds = "|".join(["logic", *widths])
    fields = []
    for line in filter(None, map(str.strip, struct.group(1).splitlines())):
        field = re.fullmatch(rf"({kinds})\s*(?:\[(\d+):0\])?\s*([a-z][a-z0-9_]*);\s*(?://\s*(.*))?", line)
        if line.startswith("//"):
            continue
        if not field:
            bad.add(name, f"'{line}' is not 'logic [n:0] name;'")
            continue
        bits = widths[field[1]] if field[1] in widths else int(field[2] or 0) + 1
        check_name(bad, f"{name}.{field[3]}", field[3], r"[a-z][a-z0-9_]*")
        if bits > 64:
            bad.add(f"{name}.{field[3]}", f"{bits} bits, at most 64")
        fields.append({"name": field[3], "bits": bits, "doc": field[4] or "",
                       "ctype": "bool" if bits == 1 else uint_type(min(bits, 64))})
    lsb = 0
    for field in reversed(fields):
        field["lsb"] = lsb
        lsb += field["bits"]
    return fields, lsb


def read_trace(path, wire):
    """The engine's trace port, me_trace_t of weft_pkg.sv: what the simulator picks apart every cycle."""
    bad = Problems(path)
    enums = {f"{e['name']}_e": e["width"] for e in wire["enums"]}
    found = read_struct(bad, read_package(path), "me_trace_t", enums=enums)
    bad.stop_if_any()
    fields, bits = found
    return {"fields": fields, "bits": bits}


def read_tables(path):
    """Configuration tables out of weft_pkg.sv: the enum cfg_table_e and, for each of its names CfgX, the packed struct
    cfg_x_t of plain logic fields. CFG_DATA[0] has the low bits."""
    bad = Problems(path)
    text = read_package(path)
    enum = re.search(r"typedef enum logic[^{]*\{([^}]*)\}\s*cfg_table_e;", text)
    if not enum:
        bad.add("cfg_table_e", "not found")
        bad.stop_if_any()
    tables = []
    for name, value in re.findall(r"Cfg(\w+)\s*=\s*4'd(\d+)", enum.group(1)):
        struct_name = f"cfg_{name.lower()}_t"
        found = read_struct(bad, text, struct_name, f" (table Cfg{name})")
        if not found:
            continue
        fields, bits = found
        if bits > 512:
            bad.add(struct_name, f"{bits} bits, CFG_DATA holds 512")
        tables.append({"name": name, "value": int(value), "fields": fields, "bits": bits})
    bad.stop_if_any()
    return tables


def compile_registers(path):
    """Compiles the SystemRDL; its own messages go to stderr."""
    import peakrdl_regblock.udps
    import systemrdl
    rdl = systemrdl.RDLCompiler()
    for udp in peakrdl_regblock.udps.ALL_UDPS:
        rdl.register_udp(udp)
    try:
        rdl.compile_file(str(path))
        return rdl.elaborate()
    except systemrdl.RDLCompileError:
        sys.exit(2)


def list_registers(root):
    registers = []
    for reg in root.top.registers():
        registers.append({
            "name": reg.inst_name, "cpp": "k" + camel(reg.inst_name), "doc": reg.get_property("name"),
            "addr": reg.raw_absolute_address if reg.is_array else reg.absolute_address,
            "count": reg.array_dimensions[0] if reg.is_array else None,
            "fields": [{"name": f.inst_name, "cpp": camel(f.inst_name), "lsb": f.lsb, "bits": f.width,
                        "access": f.get_property("sw").name, "reset": f.get_property("reset"),
                        "doc": f.get_property("desc")} for f in reg.fields()]})
    return registers


def interface_hash(*parts):
    """One number for everything hardware and software must agree on; texts for readers do not count."""
    def strip(x):
        if isinstance(x, dict):
            return {k: strip(v) for k, v in x.items() if k not in ("doc", "trailer", "struct")}
        return [strip(v) for v in x] if isinstance(x, list) else x
    return zlib.crc32(json.dumps(strip(list(parts)), sort_keys=True).encode())


# ---- writing -----------------------------------------------------------------------------------------------------
def write_if_changed(path, text):
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"gen: {path}")
    return True


def write_regblock(root, out):
    """The register block as PeakRDL writes it. Read data and responses are registered: the block must close at the
    datapath's clock, and a few cycles do not matter to a register access."""
    from peakrdl_regblock import RegblockExporter
    from peakrdl_regblock.cpuif.axi4lite import AXI4Lite_Cpuif_flattened
    with tempfile.TemporaryDirectory() as tmp:
        RegblockExporter().export(root, tmp, cpuif_cls=AXI4Lite_Cpuif_flattened, address_width=16, err_if_bad_addr=True,
                                  err_if_bad_rw=True, retime_read_fanin=True, retime_read_response=True)
        for name in ("weft_regs_pkg.sv", "weft_regs.sv"):
            write_if_changed(out / name, (pathlib.Path(tmp) / name).read_text(encoding="utf-8"))


def write_html(root, out):
    from peakrdl_html import HTMLExporter
    HTMLExporter().export(root, str(out))
    print(f"gen: {out}/index.html")


def refresh_pages(wire, paths):
    """All pages are read and made before the first is written, so a mistake changes none."""
    made = []
    for path in paths:
        try:
            made.append((path, pages.refresh(path.read_text(encoding="utf-8"), wire)))
        except (OSError, pages.Unknown) as e:
            print(f"{path}: {getattr(e, 'strerror', None) or e}", file=sys.stderr)
            sys.exit(2)
    for path, text in made:
        write_if_changed(path, text)


def environment():
    env = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), undefined=jinja2.StrictUndefined,
                             trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    env.filters["camel"] = camel
    return env


def main():
    parser = argparse.ArgumentParser(description="generate packages and headers from sw/wire/wire.yaml")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=pathlib.Path, help="folder to write to (build/gen)")
    what.add_argument("--pages", type=pathlib.Path, nargs="+", help="pages whose marked pieces are made anew")
    parser.add_argument("--counters", type=pathlib.Path, default=HERE / "counters.yaml", help="list of the counters")
    parser.add_argument("--wire", type=pathlib.Path, default=HERE / "wire.yaml", help="description of the wire")
    parser.add_argument("--html", action="store_true", help="also write the register map as HTML to OUT/html")
    args = parser.parse_args()

    env = environment()
    wire = load_wire(args.wire)
    if args.pages:
        refresh_pages(wire, args.pages)
        return
    counters = read_counters(args.counters, wire)
    package = HERE.parents[1] / "rtl" / "pkg" / "weft_pkg.sv"
    tables = read_tables(package)
    root = compile_registers(HERE / "weft_regs.rdl")
    registers = list_registers(root)
    everything = dict(wire, **counters, tables=tables, registers=registers, trace=read_trace(package, wire),
                      hash=interface_hash(wire, counters, tables, registers))
    for name in ("weft_wire_pkg.sv", "weft_wire.h", "weft.lua", "weft_counters_pkg.sv", "weft_counters.h", "weft_cfg.h",
                 "weft_trace.h", "weft_regs.h", "weft_interface_pkg.sv", "wire_tables.md"):
        write_if_changed(args.out / name, env.get_template(name + ".j2").render(**everything))
    write_regblock(root, args.out)
    if args.html:
        write_html(root, args.out / "html")


if __name__ == "__main__":
    main()
