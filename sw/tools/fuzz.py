# SPDX-License-Identifier: Apache-2.0
"""Fuzzes with libFuzzer under the sanitizers; `make fuzz` calls it.

    fuzz.py [TARGET...]        targets: parser, endpoint (tests/fuzz/<target>.cpp); all without a name

From the environment: BUILD, FUZZ_SECONDS (of each target, 60), KEEP=1 (the committed corpus becomes the smallest
inputs that reach all that was reached). Corpora are text, tests/fuzz/corpus/<target>.txt, one input a line in
hexadecimal. An input that breaks something is printed as such a line; exit status 1.
"""
import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGETS = ("parser", "endpoint")
LONGEST = {"parser": 300, "endpoint": 600}  # bytes of an input
KEEP_BYTES = 8192  # of a committed corpus


def read_corpus(path):
    with open(path, encoding="ascii") as handle:
        return [bytes.fromhex(line) for line in handle if line.strip() and not line.startswith("#")]


def build(clang, target, out):
    program = os.path.join(out, target)
    sources = [os.path.join(ROOT, "tests/fuzz", name) for name in ("main.cpp", target + ".cpp")]
    sources += sorted(glob.glob(os.path.join(ROOT, "sw/ref/*.cpp"))) + [os.path.join(ROOT, "sw/wire/frame.cpp")]
    gen = os.path.join(os.path.abspath(os.environ.get("BUILD", "build")), "gen")
    subprocess.run([clang, "-std=c++20", "-O1", "-g1", "-fsanitize=fuzzer,address,undefined",
                    "-fno-sanitize-recover=all", f"-DWEFT_TARGET={target}", f"-I{ROOT}", f"-I{ROOT}/sw/wire",
                    f"-I{gen}", *sources, "-o", program], check=True)
    return program


def keep(program, target, work, text):
    """The smallest corpus of the same reach becomes the committed one, shortest inputs first."""
    smallest = work + ".min"
    shutil.rmtree(smallest, ignore_errors=True)
    os.makedirs(smallest)
    subprocess.run([program, "-merge=1", smallest, work], check=True, stderr=subprocess.DEVNULL)
    inputs = []
    for name in os.listdir(smallest):
        with open(os.path.join(smallest, name), "rb") as handle:
            inputs.append(handle.read())
    inputs.sort(key=lambda data: (len(data), data))
    with open(text, encoding="ascii") as handle:
        comments = [line for line in handle if line.startswith("#")]
    total, lines = 0, []
    for data in inputs:
        total += len(data)
        if total > KEEP_BYTES:
            break
        lines.append(data.hex() + "\n")
    with open(text + ".new", "w", encoding="ascii") as handle:
        handle.writelines(comments + [line for line in lines if line.strip()])
    os.replace(text + ".new", text)
    print(f"{target}: {len(lines)} inputs kept of {len(inputs)}")


def main():
    names = sys.argv[1:] or TARGETS
    for name in names:
        if name not in TARGETS:
            print(f"fuzz: no target '{name}'; there are {', '.join(TARGETS)}", file=sys.stderr)
            return 2
    seconds = os.environ.get("FUZZ_SECONDS") or "60"
    if not seconds.isdigit() or int(seconds) == 0:
        print(f"fuzz: FUZZ_SECONDS is '{seconds}', expected a whole number above 0", file=sys.stderr)
        return 2
    clang = shutil.which("clang++-14") or shutil.which("clang++")
    if not clang:
        print("fuzz: no clang++; apt-get install clang-14 libclang-rt-14-dev", file=sys.stderr)
        return 2
    out = os.path.join(os.environ.get("BUILD", "build"), "fuzz")
    os.makedirs(out, exist_ok=True)
    status = 0
    for target in names:
        program = build(clang, target, out)
        text = os.path.join(ROOT, "tests/fuzz/corpus", target + ".txt")
        work = os.path.join(out, "corpus_" + target)
        os.makedirs(work, exist_ok=True)
        for i, data in enumerate(read_corpus(text)):
            with open(os.path.join(work, f"committed_{i}"), "wb") as handle:
                handle.write(data)
        found = os.path.join(out, target + "-found-")
        run = subprocess.run([program, f"-max_total_time={seconds}", f"-max_len={LONGEST[target]}", "-timeout=20",
                              "-print_final_stats=1", f"-artifact_prefix={found}", work],
                             stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        stats = [line for line in run.stderr.splitlines() if line.startswith("stat::number_of_exec")]
        if run.returncode:
            status = 1
            print(run.stderr[-6000:])
            for path in sorted(glob.glob(found + "*"), key=os.path.getmtime)[-1:]:
                with open(path, "rb") as handle:
                    print(f"{target}: broken by this line of {os.path.relpath(text, ROOT)}:\n{handle.read().hex()}")
        else:
            print(f"{target}: {seconds} s, {stats[0].split()[-1] if stats else '?'} inputs, nothing found")
            if os.environ.get("KEEP"):
                keep(program, target, work, text)
    return status


if __name__ == "__main__":
    sys.exit(main())
