# SPDX-License-Identifier: Apache-2.0
"""Verilates one module into a fixed number of C++ files, so that CMake can compile them as its own.

The files Verilator writes are not known before it ran. This script gathers them into NAME_0.cpp ..
NAME_<chunks-1>.cpp (hot code) and NAME_slow.cpp (constructors, trace set-up) which include them. A
hash of everything included stands inside, so a file is rewritten, and compiled again, exactly when
the model changed. Called by weft_verilate() in sw/cmake/weft_verilate.cmake.
"""
import argparse
import filecmp
import hashlib
import os
import re
import shutil
import subprocess
import sys

import flist


# In front of hot code. With --x-initial unique a variable that a clocked block declares without a value
# gets a random one each time the block runs, from a hash of its module's name: in wide loops that took
# more time than all else. Here it starts as 0. Code that reads one before it is written then has one value
# in simulation and any in hardware, and neither linter sees that: so a model of --random-locals (or all, with
# WEFT_RANDOM_LOCALS=1 in the environment) leaves them random, for tests that compare it with one that does not.
# Registers get their random values in the constructor, which is slow code.
HOT = """\
#include "cpp/{prefix}__pch.h"
#define VL_SCOPED_RAND_RESET_I(bits, hash, salt) 0
#define VL_SCOPED_RAND_RESET_Q(bits, hash, salt) 0
#define VL_SCOPED_RAND_RESET_W(bits, words, hash, salt) static_cast<void>(0)
#define VL_MURMUR64_HASH(name) 0
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verilator", required=True)
    parser.add_argument("--build", required=True, help="build directory; 'build/...' in lists means this")
    parser.add_argument("--out", required=True, help="directory for the C++")
    parser.add_argument("--name", required=True, help="class is V<name>")
    parser.add_argument("--top", required=True)
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--random-locals", action="store_true", help="see HOT")
    parser.add_argument("--depfile", required=True)
    parser.add_argument("--flist", action="append", default=[])
    parser.add_argument("--source", action="append", default=[])
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--arg", action="append", default=[])
    return parser.parse_args()


def verilator_root(binary):
    """Where the run-time sources are: beside the binary, or as a distribution's Verilator says."""
    beside = os.path.dirname(os.path.dirname(os.path.realpath(binary)))
    if os.path.exists(os.path.join(beside, "include", "verilated.h")):
        return beside
    return subprocess.run([binary, "--getenv", "VERILATOR_ROOT"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def classes(makefile):
    """(fast, slow): the C++ files that V<name>_classes.mk lists."""
    groups = {"FAST": [], "SLOW": []}
    with open(makefile, encoding="utf-8") as handle:
        text = handle.read().replace("\\\n", " ")
    for kind, speed, files in re.findall(r"^VM_(CLASSES|SUPPORT)_(FAST|SLOW) \+=(.*)$", text, re.M):
        groups[speed] += [name + ".cpp" for name in files.split()]
    return groups["FAST"], groups["SLOW"]


def split(files, directory, parts):
    """Contiguous groups of about the same number of bytes."""
    sizes = [os.path.getsize(os.path.join(directory, name)) for name in files]
    total, groups, done = sum(sizes) or 1, [[] for _ in range(parts)], 0
    for name, size in zip(files, sizes):
        groups[min(parts - 1, (done + size // 2) * parts // total)].append(name)
        done += size
    return groups


def write_if_changed(path, text):
    try:
        with open(path, encoding="utf-8") as handle:
            if handle.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)


def publish(fresh, out):
    """Moves what changed from `fresh` to `out` and deletes what is no longer made."""
    made = set(os.listdir(fresh))
    for name in made:
        source, target = os.path.join(fresh, name), os.path.join(out, name)
        if not os.path.exists(target) or not filecmp.cmp(source, target, shallow=False):
            os.replace(source, target)
    for name in set(os.listdir(out)) - made:
        os.remove(os.path.join(out, name))


def main():
    args = arguments()
    build = os.path.abspath(args.build)
    prefix = "V" + args.name
    sources = flist.expand(args.flist, build, args.source)
    if not sources.files:
        raise SystemExit(f"{args.name}: no source file; give SOURCES or FLISTS")
    out = os.path.join(os.path.abspath(args.out), "cpp")
    fresh = out + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh)
    os.makedirs(out, exist_ok=True)

    root = verilator_root(args.verilator)
    waivers = [path for path in (os.path.join(flist.ROOT, "rtl/lint/waivers.vlt"),) if os.path.exists(path)]
    # Warnings are shown, not fatal: `make lint` is the gate, and it knows the same waivers.
    command = [args.verilator, "--cc", "--assert", "--no-timing", "-Wall", "-Wno-fatal", "--quiet",
               "-Wno-UNUSEDSIGNAL", "-Wno-UNUSEDPARAM",
               "--x-initial", "unique", "--x-assign", "unique", "-O3",
               "--top-module", args.top, "--prefix", prefix, "--Mdir", fresh]
    if args.chunks > 1:
        command += ["--output-split", "5000", "--output-split-cfuncs", "2000"]
    if args.threads > 1:
        command += ["--threads", str(args.threads)]
    if args.trace:
        command += ["--trace-fst", "--trace-structs"]
    command += ["-I" + flist.resolve(path, build) for path in sources.incdirs + args.include]
    command += ["-G" + param for param in args.param]
    command += args.arg + sources.flags + waivers + sources.files
    # Paths from the root keep messages short and the generated code the same on every machine.
    command = [os.path.relpath(item, flist.ROOT) if item.startswith(flist.ROOT + "/") and item.endswith((".sv", ".v"))
               else item for item in command]
    result = subprocess.run(command, cwd=flist.ROOT, env=dict(os.environ, VERILATOR_ROOT=root))
    if result.returncode != 0:
        return result.returncode

    with open(os.path.join(fresh, f"{prefix}__ver.d"), encoding="utf-8") as handle:
        inputs = handle.read().replace("\\\n", " ").split(":", 1)[1].split()
    fast, slow = classes(os.path.join(fresh, f"{prefix}_classes.mk"))
    for name in os.listdir(fresh):
        if not name.endswith((".h", ".cpp")):
            os.remove(os.path.join(fresh, name))
    headers = hashlib.sha256()
    for name in sorted(os.listdir(fresh)):
        if name.endswith(".h"):
            with open(os.path.join(fresh, name), "rb") as handle:
                headers.update(handle.read())
    publish(fresh, out)
    shutil.rmtree(fresh)

    groups = split(fast, out, args.chunks)
    random_locals = args.random_locals or os.environ.get("WEFT_RANDOM_LOCALS") == "1"
    for label, files in [(str(i), group) for i, group in enumerate(groups)] + [("slow", slow)]:
        content = headers.copy()
        for name in files:
            with open(os.path.join(out, name), "rb") as handle:
                content.update(handle.read())
        text = f"// content {content.hexdigest()}\n"
        if label != "slow" and not random_locals:
            text += HOT.format(prefix=prefix)
        text += "".join(f'#include "cpp/{name}"\n' for name in files)
        write_if_changed(os.path.join(args.out, f"{args.name}_{label}.cpp"), text)
    write_if_changed(os.path.join(args.out, f"{prefix}.h"),
                     f'// content {headers.hexdigest()}\n#pragma once\n#include "cpp/{prefix}.h"\n'
                     f'#include "cpp/{prefix}___024root.h"\n')

    depends = [path if os.path.isabs(path) else os.path.join(flist.ROOT, path) for path in inputs]
    depends = [path for path in depends if os.path.exists(path)]
    depends += sources.lists + waivers + [os.path.abspath(__file__), os.path.abspath(flist.__file__)]
    escaped = " \\\n  ".join(path.replace(" ", "\\ ") for path in dict.fromkeys(depends))
    target = os.path.join(os.path.abspath(args.out), f"{args.name}_slow.cpp")
    with open(args.depfile, "w", encoding="utf-8") as handle:
        handle.write(f"{target}: {escaped}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
