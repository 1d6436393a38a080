#!/usr/bin/env python3
"""Checks that the loops over wick/math in an object file have no calls and use full-width vectors.

Exits with 1 and a line per finding if a loop calls a function, or if a loop that should be
vectorized isn't.
"""
import argparse
import re
import subprocess
import sys

# Loops that the compiler leaves scalar, with the reason why this is accepted. All others must be
# vectorized.
SCALAR = {
    "V3": [
        r"rem_loop2<double>",  # the number of rounds depends on the quotient
        r"(sin|cos)_loop<double>",  # a branch for large arguments; kernels use the form without it
        r"cast_loop<.*\blong\b",  # no vector conversion between floats and i64 before AVX-512
        r"quantize_loop",  # not performance critical: weights are quantized once
        r"dequantize_loop",  # 16-byte vectors suit a block of 16 bytes
        r"activation_loop",
    ],
    "V4": [r"rem_loop2<double>", r"(sin|cos)_loop<double>", r"quantize_loop", r"dequantize_loop", r"activation_loop"],
}
WIDTH = {"V3": "ymm", "V4": "zmm"}


def functions(objdump, path):
    """Yields (demangled name, instruction lines) of every function in the object."""
    command = [objdump, "-d", "-C", "--no-show-raw-insn", path]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    name, lines = None, []
    for line in text.splitlines():
        head = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if head:
            if name:
                yield name, lines
            name, lines = head.group(1), []
        elif name and line.strip():
            lines.append(line)
    if name:
        yield name, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--isa", choices=sorted(WIDTH), required=True)
    parser.add_argument("object")
    args = parser.parse_args()
    seen = bad = 0
    for name, lines in functions(args.objdump, args.object):
        seen += 1
        calls = [l for l in lines if re.search(r"\tcall", l)]
        # A jump to another function means that the compiler has folded functions with equal bodies.
        folded = len(lines) <= 4 and any(re.search(r"\tjmp", l) for l in lines)
        wide = any(WIDTH[args.isa] in l for l in lines)
        accepted = any(re.search(p, name) for p in SCALAR[args.isa])
        if calls:
            bad += 1
            print(f"calls: {name}: {calls[0].split(chr(9))[-1]}")
        elif not wide and not folded and not accepted:
            bad += 1
            print(f"not vectorised: {name}")
    if seen < 150:
        print(f"only {seen} functions in {args.object}")
        bad += 1
    print(f"{seen} functions, {bad} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
