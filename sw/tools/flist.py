# SPDX-License-Identifier: Apache-2.0
"""Reads the .f lists of rtl/: one file, +incdir+DIR, -f LIST or // comment a line.

Paths are relative to the repository root whatever list they stand in. `build/...` names a generated
file and moves with the build directory. A file named by several lists counts once, at its first
place.
"""
import os
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@dataclass
class Sources:
    files: list = field(default_factory=list)  # absolute, in order of first mention
    incdirs: list = field(default_factory=list)
    flags: list = field(default_factory=list)  # anything else, passed on (+define+...)
    lists: list = field(default_factory=list)  # the .f files read


def resolve(path, build):
    """A path as the lists write it, made absolute."""
    if os.path.isabs(path):
        return path
    head, _, tail = path.partition("/")
    if head == "build" and tail:
        return os.path.join(os.path.abspath(build), tail)
    return os.path.join(ROOT, path)


def expand(lists, build, sources=()):
    """All the files of the .f `lists` and then `sources`; SystemExit names what is wrong and where."""
    out = Sources()

    def add(bucket, item):
        if item not in bucket:
            bucket.append(item)

    def read(path, came_from):
        full = resolve(path, build)
        if full in out.lists:
            return
        out.lists.append(full)
        try:
            with open(full, encoding="utf-8") as handle:
                lines = handle.read().splitlines()
        except OSError as error:
            raise SystemExit(f"{came_from}: cannot read the list '{path}': {error.strerror}")
        for number, line in enumerate(lines, 1):
            line = line.split("//")[0].split("#")[0].strip()
            if not line:
                continue
            if line.startswith(("-f ", "-F ")):
                read(line[3:].strip(), f"{path}:{number}")
            elif line.startswith("+incdir+"):
                add(out.incdirs, resolve(line[len("+incdir+"):], build))
            elif line.startswith("-I"):
                add(out.incdirs, resolve(line[2:].strip(), build))
            elif line.startswith(("+", "-")):
                add(out.flags, line)
            else:
                full_file = resolve(line, build)
                if not os.path.exists(full_file):
                    raise SystemExit(f"{path}:{number}: no file '{line}'")
                add(out.files, full_file)

    for item in lists:
        read(item, "command line")
    for item in sources:
        full_file = resolve(item, build)
        if not os.path.exists(full_file):
            raise SystemExit(f"command line: no file '{item}'")
        add(out.files, full_file)
    return out
