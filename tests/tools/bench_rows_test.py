#!/usr/bin/env python3
"""Fails if a row of ops.def has no row in op_bench.

Usage: bench_rows_test.py OPS_DEF OP_BENCH"""

import re
import subprocess
import sys

ROW = re.compile(r"^WICK_[A-Z_]+\((\w+), ", re.MULTILINE)
# Rows that op_bench has under another name.
CALLED = {"copy": "transpose_copy", "cast": "to_f32", "conv_transpose1d": "input_conv1d",
          "conv_transpose2d": "input_conv2d"}


def missing(rows, names):
    """A name of op_bench is the row's, or the row's with what tells its kinds apart."""
    kinds = re.compile(r"(_|\d)")
    return [row for row in rows if not any(
        name == CALLED.get(row, row) or
        (name.startswith(CALLED.get(row, row)) and kinds.match(name[len(CALLED.get(row, row)):]))
        for name in names)]


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
    if missing(["no_such_op"], names) != ["no_such_op"]:
        sys.exit("a row can be missing without being missed")
    print(f"{len(rows)} rows of ops.def in {len(names)} of op_bench")


if __name__ == "__main__":
    main()
