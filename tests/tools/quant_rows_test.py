#!/usr/bin/env python3
"""Counts what a block format takes: fails if the name of one that has no kernels of its own stands in more than three
files, its row in quants.def among them. The tests of all rows show that it works everywhere with these files alone.

Usage: quant_rows_test.py ROOT"""

import pathlib
import re
import sys

ROW = re.compile(r"^WICK_QUANT\((\w+), (\w+), [^)]*, (own|decoded), (written|read), \d+, \d+\)$", re.MULTILINE)
FOLDERS = ["wick", "apps", "python", "tools", "cmake", "docs", "examples"]
ENDINGS = {".h", ".cpp", ".def", ".gpu", ".py", ".md", ".txt", ".cmake", ".pyi"}
MADE = {"docs/ops.md"}      # by tools/ops_docs.py
REPORTS = {"docs/status.md"}  # what was measured
MOST = 3


def main():
    root = pathlib.Path(sys.argv[1])
    rows = ROW.findall((root / "wick/math/quants.def").read_text(encoding="utf-8"))
    decoded = [row for row in rows if row[2] == "decoded"]
    if len(decoded) < 5 or len(decoded) == len(rows):
        sys.exit(f"{len(rows)} rows of quants.def read, {len(decoded)} without kernels of their own")
    texts = {}
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in ENDINGS):
        name = path.relative_to(root).as_posix()
        if name not in MADE | REPORTS:
            texts[name] = path.read_text(encoding="utf-8")
    failed = False
    for name, kind, _, _ in decoded:
        word = re.compile(rf"(?<![a-z0-9])(?:Block)?{re.escape(kind)}(?![a-z0-9])|(?<![a-z0-9_]){name}(?![a-z0-9_])",
                          re.IGNORECASE)
        files = [path for path, text in texts.items() if word.search(text)]
        print(f"{name}: {len(files)} files: {' '.join(files)}")
        if len(files) > MOST or "wick/math/quants.def" not in files:
            print(f"quant_rows_test: {name} takes {len(files)} files, {MOST} at most")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
