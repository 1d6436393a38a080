#!/usr/bin/env python3
"""Fails if a row of ops.def has no parity test: every op must be named by a registered case.

Usage: parity_rows_test.py OPS_DEF TEST_BINARY..."""

import re
import subprocess
import sys

ROW = re.compile(r"^WICK_(?:UNARY|UNARY_WITH|TEST|BINARY|COMPARE|REDUCE|ARG|OP)\s*\(\s*(\w+)\s*,", re.MULTILINE)


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
    missing = [op for op in ops if op not in tested]
    if missing:
        sys.exit("no parity test: " + " ".join(missing))
    print(f"{len(ops)} ops, each with a parity test")


if __name__ == "__main__":
    main()
