#!/usr/bin/env python3
"""Compares the error codes of a HIP runtime with a recorded list: codes_check.py LIST PROGRAM LIBRARY [7]"""

import pathlib
import subprocess
import sys

name, program, *arguments = sys.argv[1:]
lines = pathlib.Path(__file__).with_name(name).read_text().splitlines()
wanted = []
for line in lines:
    if not line.startswith("#"):
        what, _, code = line.rpartition(": ")
        wanted.append(f"{what}: {code.rpartition('; here ')[2]}")
done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
got = done.stdout.splitlines()
for number in range(max(len(got), len(wanted))):
    one, other = (lines[number] if number < len(lines) else "nothing" for lines in (got, wanted))
    if one != other:
        sys.exit(f"the runtime says '{one}' where {name} has '{other}'")
if done.returncode != 0:
    sys.exit(f"{program} ended with {done.returncode}")
print(f"{len(got)} lines are as in {name}")
