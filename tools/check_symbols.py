#!/usr/bin/env python3
"""Checks that the kernel objects of an instruction set define no symbols that the linker could use for
other objects: no weak symbols (inline functions, templates), and no global symbols except their tables.
An inline std function compiled for AVX-512 must never be used by code for all machines."""
import argparse
import pathlib
import subprocess
import sys


def breaches(obj):
    lines = subprocess.run(["nm", "-C", "--defined-only", str(obj)], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    for line in lines:
        fields = line.split(maxsplit=2)
        if len(fields) < 3:
            continue
        kind, symbol = fields[1], fields[2]
        if kind in "WwVvu":
            yield f"{obj.name}: weak symbol {symbol}"
        if kind in "TDBRGS" and not symbol.startswith("wick::cpu::"):
            yield f"{obj.name}: global symbol {symbol}"
        if kind == "T":
            yield f"{obj.name}: global function {symbol}; publish it through the table"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="build folder")
    args = parser.parse_args()
    objects = sorted((args.build / "wick").rglob("wick_kernels_*.dir/**/*.o"))
    if not objects:
        print(f"no kernel objects below {args.build}")
        return 1
    found = [b for obj in objects for b in breaches(obj)]
    print("\n".join(found) if found else f"symbols: {len(objects)} kernel objects clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
