#!/usr/bin/env python3
"""Tests codes_check.py with programs that stand in for emu_codes: codes_check_test.py"""

import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
LINES = [line for line in (FOLDER / "codes.txt").read_text().splitlines() if not line.startswith("#")]


def check(lines, status):
    """Runs codes_check.py on a program that prints lines and ends with a status."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + f"\nEND\nexit {status}\n")
        program.chmod(0o755)
        return subprocess.run([sys.executable, FOLDER / "codes_check.py", "codes.txt", program], capture_output=True,
                              text=True, check=False)


def expect(done, code, said):
    if done.returncode != code or said not in done.stdout + done.stderr:
        sys.exit(f"expected {code} and '{said}', not {done.returncode} and '{done.stdout}{done.stderr}'")


own = [f"{line.rpartition(': ')[0]}: {line.rpartition(': ')[2].rpartition('; here ')[2]}" for line in LINES]
expect(check(own, 0), 0, f"{len(own)} lines are as in codes.txt")
expect(check(own, 3), 1, "ended with 3")
expect(check(own[:-1], 0), 1, "the runtime says 'nothing'")
print("codes_check.py finds wrong lines and a failed program")
