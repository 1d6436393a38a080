#!/usr/bin/env python3
"""Writes ctest entries for a GoogleTest binary: one for each suite Parity/<row>, whose tests share operands and
references if they run in one process, and one for each of the other tests.

Usage: list_rows.py BINARY OUT"""

import os
import subprocess
import sys


def suites(binary):
    """Returns the suites with their tests, in the binary's order."""
    out = subprocess.run([binary, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
    found, suite = {}, None
    for line in out.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = found.setdefault(name.rstrip("."), [])
        elif suite is not None:
            suite.append(name)
    return found


def main():
    binary, out = sys.argv[1:]
    lines = []

    def entry(name, pattern, timeout, cost=0):
        lines.append(f'add_test([=[{name}]=] "{binary}" [=[--gtest_filter={pattern}]=])')
        lines.append(f"set_tests_properties([=[{name}]=] PROPERTIES TIMEOUT {timeout} COST {cost})")

    for suite, tests in suites(binary).items():
        if suite.startswith("Parity/"):
            # Some take a minute, so none starts last, when the other cores have nothing left to run.
            entry(suite, suite + ".*", 900, cost=10)
            continue
        for test in tests:
            entry(f"{suite}.{test}", f"{suite}.{test}", 120)
    if not lines:
        sys.exit(f"{binary}: no tests")
    with open(out + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(out + ".new", out)


if __name__ == "__main__":
    main()
