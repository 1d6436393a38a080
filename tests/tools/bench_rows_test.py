#!/usr/bin/env python3
"""Fails if a row of ops.def has no row in op_bench.

Usage: bench_rows_test.py OPS_DEF OP_BENCH"""

import re
import subprocess
import sys

ROW = re.compile(r"^WICK_[A-Z_]+\((\w+), ", re.MULTILINE)
# Rows that have another name in op_bench.
CALLED = {"copy": "transpose_copy", "cast": "to_f32", "conv_transpose1d": "input_conv1d",
          "conv_transpose2d": "input_conv2d"}


def missing(rows, names):
    """Returns the rows without a benchmark. A benchmark belongs to the row with the longest name that its name
    begins with; the rest of its name distinguishes variants."""
    begins = {CALLED.get(row, row): row for row in rows}
    found = set()
    for name in names:
        of = [begin for begin in begins if re.match(re.escape(begin) + r"(_|\d|$)", name)]
        if of:
            found.add(begins[max(of, key=len)])
    return [row for row in rows if row not in found]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    if len(rows) < 100:
        sys.exit(f"{sys.argv[1]}: only {len(rows)} rows were read")
    out = subprocess.run([sys.argv[2], "--list"], check=True, capture_output=True, text=True).stdout
    names = {line.split(".")[0] for line in out.splitlines()}
    lacking = missing(rows, names)
    if lacking:
        sys.exit("no row of op_bench is of " + ", ".join(lacking))
    # Checks that a missing row would be found, whatever other rows start with its name.
    for row in rows:
        called = CALLED.get(row, row)
        own = {name for name in names if row not in missing(rows, {name})}
        if missing(rows, names - own) != [row]:
            sys.exit(f"{called} can be missing without being missed")
    print(f"{len(rows)} rows of ops.def in {len(names)} of op_bench")


if __name__ == "__main__":
    main()
