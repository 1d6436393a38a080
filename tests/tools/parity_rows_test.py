#!/usr/bin/env python3
"""Fails if a row of ops.def has no parity test: every op must be named by a registered case, but for
those that no backend sees, because the tensor layer makes them of others; tests/tensor holds them.

Usage: parity_rows_test.py OPS_DEF TEST_BINARY..."""

import re
import subprocess
import sys

ROW = re.compile(r"^WICK_(?:UNARY|UNARY_WITH|TEST|BINARY|COMPARE|REDUCE|ARG|OP)\s*\(\s*(\w+)\s*,", re.MULTILINE)

# Made of other rows in wick/tensor/composed_ops.cpp, or views around the row of two dimensions.
COMPOSED = {"var", "logsumexp", "any", "all", "einsum", "group_norm", "batch_norm", "conv1d",
            "conv_transpose1d", "max_pool1d", "avg_pool1d", "upsample_nearest1d"}
# Rows whose backend method has another name.
NAMED = {"conv_transpose2d": "conv2d_input"}


def listed(binary):
    """The ops of a test binary's cases, which are called Parity.<op>.<dtype>…"""
    out = subprocess.run([binary, "--gtest_list_tests"], check=True, capture_output=True, text=True)
    tested, suite = set(), ""
    for line in out.stdout.splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
            continue
        parts = re.split(r"[./]", suite + line.strip())
        if parts[0] == "Parity" and len(parts) > 1:
            tested.add(parts[1])
    return tested


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        ops = ROW.findall(file.read())
    if len(ops) < 30:
        sys.exit(f"{sys.argv[1]}: only {len(ops)} rows were read")
    tested = set().union(*(listed(binary) for binary in sys.argv[2:]))
    missing = [op for op in ops if op not in COMPOSED and NAMED.get(op, op) not in tested]
    missing += [f"{op} (no such row)" for op in sorted(COMPOSED | NAMED.keys()) if op not in ops]
    if missing:
        sys.exit("no parity test: " + " ".join(missing))
    print(f"{len(ops)} ops, {len(COMPOSED)} of them made of others, each other with a parity test")


if __name__ == "__main__":
    main()
