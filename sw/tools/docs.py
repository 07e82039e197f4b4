# SPDX-License-Identifier: Apache-2.0
"""Checks the links of README.md and docs/, and writes the register reference to build/gen/html.

Every relative link must lead to a file of the repository, and every #anchor to a heading of it.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")


def anchors(path):
    """Headings as the anchors that the usual renderers make of them."""
    with open(path, encoding="utf-8") as handle:
        text = re.sub(r"^```.*?^```", "", handle.read(), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", text, re.M)}


def broken_links(path):
    with open(path, encoding="utf-8") as handle:
        text = re.sub(r"^```.*?^```", "", handle.read(), flags=re.M | re.S)
    out = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(full):
            out.append(f"{os.path.relpath(path, ROOT)}: link to '{target}': no such file")
        elif anchor and full.endswith(".md") and anchor not in anchors(full):
            out.append(f"{os.path.relpath(path, ROOT)}: link to '{target}': no such heading")
    return out


def main():
    pages = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True))]
    messages = [line for page in pages if os.path.exists(page) for line in broken_links(page)]
    print(f"links of {len(pages)} pages: {'ok' if not messages else str(len(messages)) + ' broken'}")
    for line in messages:
        print(line)
    result = subprocess.run([sys.executable, os.path.join(ROOT, "sw/wire/gen.py"), "--out", os.path.join(BUILD, "gen"),
                             "--html"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode != 0:
        print(result.stdout)
        return 1
    print(f"registers: {os.path.relpath(BUILD, ROOT)}/gen/html/index.html")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
