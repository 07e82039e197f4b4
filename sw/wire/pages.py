# SPDX-License-Identifier: Apache-2.0
"""Pieces of documentation that are made from wire.yaml: header diagrams and tables inside hand-written pages.

A page marks the place, and everything up to the end mark is replaced:

    <!-- wire.yaml: diagram bth wth -->     headers one under the other, 32 bits a row
    <!-- wire.yaml: fields hello -->        table of the fields of a header or record
    <!-- wire.yaml: enum cap -->            table of the values of an enum
    <!-- end -->
"""
import re
import string

BLOCK = re.compile(r"^(<!-- wire\.yaml: (\w+) ([\w ]+?) -->\n).*?^(<!-- end -->)$", re.M | re.S)
MARK = re.compile(r"^<!-- wire\.yaml:.*$", re.M)
SCALE = ["        0               1               2               3", "        " + "0 1 2 3 4 5 6 7 " * 3 + "0 1 2 3 4 5 6 7"]
ROW = 32
MARGIN = 7  # columns left of the drawing: the header's name


class Unknown(Exception):
    """A mark that asks for what wire.yaml does not have."""


def letters(fields, used):
    """A letter for each field whose cell is narrower than its name; `used` are taken, and more are added."""
    out = {}
    for f in fields:
        if len(f["name"]) > 2 * f["bits"] - 1:
            first = f["name"][0]
            candidates = [first, first.upper(), *f["name"][1:], *string.ascii_letters]
            out[f["name"]] = next(c for c in candidates if c.isalpha() and c not in used)
            used.add(out[f["name"]])
    return out


def rule(above, below):
    """The line between two rows, each a list with the field of every bit (None: nothing there)."""
    width = max(len(above), len(below))
    at = [[row[i] if 0 <= i < len(row) else None for i in range(-1, width + 1)] for row in (above, below)]
    text = ""
    for i in range(width + 1):
        quarters = [at[0][i], at[0][i + 1], at[1][i + 1], at[1][i]]
        if i == 0 or i == width or len(set(map(str, quarters))) > 1:
            text += "+" if quarters[0] != quarters[1] or quarters[2] != quarters[3] or i in (0, width) else "-"
        else:
            text += " "
        if i < width:
            text += " " if quarters[1] == quarters[2] else "-"
    return text


def cells(row, names, begun):
    """The text of one row; a field that began in an earlier row has its name there only."""
    text, i = "|", 0
    while i < len(row):
        end = i
        while end < len(row) and row[end] == row[i]:
            end += 1
        width = 2 * (end - i) - 1
        label = "" if row[i] in begun else names[row[i]]
        begun.add(row[i])
        text += ((" " if len(label) < width else "") + label).ljust(width) + "|"
        i = end
    return text


def diagram(headers):
    """ASCII drawing of headers that follow each other, 32 bits a row, bit 0 the first on the wire."""
    out, last, legend, used = list(SCALE), [], [], set()
    for header in headers:
        short = letters(header["fields"], used)
        names = {f["name"]: short.get(f["name"], f["name"]) for f in header["fields"]}
        legend += [f"{letter} = {name}" for name, letter in short.items()]
        bits = [f["name"] for f in header["fields"] for _ in range(f["bits"])]
        begun = set()
        for start in range(0, len(bits), ROW):
            row = bits[start:start + ROW]
            tagged = [(header["name"], name) for name in row]
            out.append(" " * MARGIN + rule(last, tagged))
            label = f" {header['name'].upper()}" if start == 0 else ""
            out.append(label.ljust(MARGIN) + cells(row, names, begun))
            last = tagged
        if header["trailer"]:
            out.append(" " * MARGIN + rule(last, [("then", "")] * ROW))
            out.append(" " * MARGIN + "| 0..8 words of history ".ljust(2 * ROW) + "|")
            last = [("then", "")] * ROW
    out.append(" " * MARGIN + rule(last, []))
    if legend:
        out.append(" " + ", ".join(legend))
    return "```\n" + "\n".join(line.rstrip() for line in out) + "\n```\n"


def cell(text):
    return str(text).replace("|", "\\|")


def fields(layout):
    rows = ["| byte | field | bits | |", "|---|---|---|---|"]
    for f in layout["fields"]:
        place = f"{f['byte']} bit {f['shift']}" if f["bits"] < 8 else f["byte"]
        names = f" (enum {f['names']})" if f["names"] else ""
        rows.append(f"| {place} | {f['name']} | {f['bits']} | {cell(f['doc'])}{names} |")
    if layout.get("trailer"):
        rows += ["", "Then: " + layout["trailer"] + ("" if layout["trailer"].endswith(".") else ".")]
    return "\n".join(rows) + "\n"


def enum(e):
    rows = ["| value | name | |", "|---|---|---|"]
    for v in e["values"]:
        value = f"{v['value']:#04x}" if e["hex"] else v["value"]
        rows.append(f"| {value} | {v['key']} | {cell(v['doc'] or 'layout ' + str(v['layout']))} |")
    return "\n".join(rows) + "\n"


def block(wire, kind, names):
    """The text for one mark."""
    headers = {h["name"]: h for h in wire["headers"]}
    every = {"diagram": headers, "fields": headers | {r["name"]: r for r in wire["records"]},
             "enum": {e["name"]: e for e in wire["enums"]}}
    if kind not in every:
        raise Unknown(f"'{kind}' is none of {', '.join(every)}")
    for name in names:
        if name not in every[kind]:
            raise Unknown(f"{kind}: wire.yaml has no '{name}'")
    if kind == "diagram":
        return diagram([headers[name] for name in names])
    return "\n".join({"fields": fields, "enum": enum}[kind](every[kind][name]) for name in names)


def refresh(text, wire):
    """`text` with all marked pieces made anew. Raises Unknown."""
    if len(MARK.findall(text)) != len(BLOCK.findall(text)):
        raise Unknown("a mark without its '<!-- end -->', or not of the form '<!-- wire.yaml: kind name -->'")
    return BLOCK.sub(lambda m: m.group(1) + block(wire, m.group(2), m.group(3).split()) + m.group(4), text)
