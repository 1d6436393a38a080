#!/usr/bin/env python3
"""Checks the interface between the host and the GPU kernels (wick/backend/gpu). Each kernel must take one struct that
an *_abi.h declares and that a KernelFamily on the host uses. No constant may be defined on both sides with the same
name and number. Loops must be unrolled by powers of two, because nvcc 13.0 leaves out the remainder of a loop that is
unrolled by 3. The macro of a wave's lanes is missing in newer compilers: kernels use WICK_WAVE. Prints each violation
and exits with 1 if there is any."""
import argparse
import pathlib
import re
import sys

SOURCES = {".h", ".cpp", ".gpu"}
COMMENT = re.compile(r"//[^\n]*")
STRUCT = re.compile(r"^struct (\w+Args)\b", re.MULTILINE)
KERNEL = re.compile(r"\bWICK_KERNEL\(([^,()]+(?:\([^()]*\))?)\s*,\s*(\w+)")
GLOBAL = re.compile(r"\bWICK_GLOBAL\b|\b__global__\b")
FAMILY = re.compile(r"\bKernelFamily<(\w+Args)\b")
CONSTANTS = re.compile(r"\bconstexpr\s+(?:[\w:]+\s+)+(k[A-Z][^;(]*);")
NUMBER = re.compile(r"\s*(k[A-Z]\w*)\s*(?:=|\{)\s*([0-9][\w ]*(?:<<\s*\d+)?)\s*\}?\s*$")
UNROLL = re.compile(r"#pragma unroll (\d+)")
MIRROR = re.compile(r"\bas (?:in )?kernels/|\bas in [\w/]+\.(?:cpp|gpu|h)\b")


def constants(text):
    """Yields the name and the number of each constant that a text defines as a plain number."""
    for declared in CONSTANTS.findall(COMMENT.sub("", text)):
        for one in declared.split(","):
            if match := NUMBER.match(one):
                yield match[1], re.sub(r"\s", "", match[2])


def breaches(root):
    home = root / "wick/backend/gpu"
    structs, taken, families, numbers = {}, [], set(), {}
    for file in sorted(home.rglob("*")):
        if file.suffix not in SOURCES:
            continue
        path, text = file.relative_to(root).as_posix(), file.read_text()
        on_device = "/kernels/" in path
        for number, line in enumerate(text.splitlines(), 1):
            if match := MIRROR.search(line):
                yield f"{path}:{number}: '{match[0]}…': share the constant in an *_abi.h"
            if (match := UNROLL.search(line)) and int(match[1]).bit_count() != 1:
                yield f"{path}:{number}: '{match[0]}': unroll by a power of two"
            if "__AMDGCN_WAVEFRONT_SIZE" in line and not path.endswith("/device/features.h"):
                yield f"{path}:{number}: newer compilers lack __AMDGCN_WAVEFRONT_SIZE: use WICK_WAVE"
        for name, value in constants(text):
            numbers.setdefault((name, value), {}).setdefault(on_device, path)
        if not on_device:
            families.update(FAMILY.findall(text))
            continue
        if path.endswith("_abi.h"):
            structs.update((name, path) for name in STRUCT.findall(text))
        elif not path.endswith("/device/device.h"):
            taken += [(path, name, args) for name, args in KERNEL.findall(text)]
            if GLOBAL.search(text):
                yield f"{path}: declare kernels by WICK_KERNEL"
    for path, kernel, args in taken:
        if args not in structs:
            yield f"{path}: {kernel} takes {args}, which no *_abi.h declares"
    used = {args for _, _, args in taken}
    for name, path in sorted(structs.items()):
        if name not in used:
            yield f"{path}: no kernel takes {name}"
        if name not in families:
            yield f"{path}: no KernelFamily is of {name}"
    for (name, value), sides in sorted(numbers.items()):
        if len(sides) == 2:
            yield f"{sides[False]}: {name} = {value} is also defined in {sides[True]}: share it"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    found = list(breaches(parser.parse_args().root))
    print("\n".join(found) if found else "kernels: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
