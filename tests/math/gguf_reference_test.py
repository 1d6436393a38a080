#!/usr/bin/env python3
"""Compares the decoding of random blocks with the Python package `gguf`, for every format of quants.def that it has.

Usage: gguf_reference_test.py QUANTS_DEF DECODE_BLOCKS"""

import re
import subprocess
import sys

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

ROW = re.compile(r"^WICK_QUANT\((\w+), \w+, (\d+), (\d+), (\d+),", re.MULTILINE)
BLOCKS = 4000


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [(name, *map(int, numbers)) for name, *numbers in ROW.findall(file.read())]
    compared, absent, failed = [], [], False
    random = numpy.random.default_rng(1)
    for name, number, values, size in rows:
        if number not in set(GGMLQuantizationType):
            absent.append(name)
            continue
        kind = GGMLQuantizationType(number)
        blocks = random.integers(0, 256, size=(BLOCKS, size), dtype=numpy.uint8)
        blocks[:256, 0] = numpy.arange(256)
        with numpy.errstate(all="ignore"):
            try:
                want = quants.dequantize(blocks, kind).reshape(-1)
            except NotImplementedError:
                absent.append(name)
                continue
        if kind.name.lower() != name or GGML_QUANT_SIZES[kind] != (values, size):
            sys.exit(f"{name}: the package has {kind.name} of {GGML_QUANT_SIZES[kind]}")
        got = numpy.frombuffer(subprocess.run([sys.argv[2], name], input=blocks.tobytes(), check=True,
                                              capture_output=True).stdout, numpy.float32)
        same = (got.view(numpy.uint32) == want.view(numpy.uint32)) | (numpy.isnan(got) & numpy.isnan(want))
        compared.append(name)
        if not same.all():
            at = int(numpy.argmin(same))
            print(f"{name}: {int((~same).sum())} values differ, the first at {at}: {got[at]}, the package's {want[at]}")
            failed = True
    print(f"{len(compared)} formats compared: {' '.join(compared)}; the package doesn't have {' '.join(absent)}")
    return 1 if failed or len(compared) < 23 else 0


if __name__ == "__main__":
    sys.exit(main())
