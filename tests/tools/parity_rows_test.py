#!/usr/bin/env python3
"""Fails if a row of ops.def lacks a parity test. There must be a test `Parity/<row>.<dtype>.<layout>.<device>` for every
dtype of the row, every layout that its operands can have, and every device of the list.

Usage: parity_rows_test.py OPS_DEF TEST_BINARY..."""

import pathlib
import re
import subprocess
import sys

ROW = re.compile(
    r"^WICK_(?:UNARY|UNARY_WITH|TEST|BINARY|COMPARE|REDUCE|ARG|OP)\s*\(\s*(\w+)\s*,\s*(\w+)\s*,", re.MULTILINE)

INTEGERS = ["u8", "u32", "i16", "i32", "i64"]
FLOATS = ["bf16", "f16", "f32", "f64", "f8e4m3"]
DTYPES = {
    "Real": INTEGERS + FLOATS,
    # Backends treat bool as u8: tests/tensor/bool_test.cpp covers each row.
    "Any": INTEGERS + FLOATS,
    "Integers": INTEGERS,
    "Bits": INTEGERS,
    "Floats": FLOATS,
    "Activations": ["bf16", "f16", "f32"],
}
QUANT = re.compile(r"^WICK_QUANT\((\w+), .*, (written|searched|read), \d+\)$", re.MULTILINE)
LAYOUTS = ["contiguous", "transposed", "broadcast", "sliced", "stepped", "empty", "rank0", "rank8"]

# Layouts that operands of a row can't have, with the reason. All others are required.
NO_DIM = {"rank0": "it goes along a dim"}
RANK_3_OR_4 = {"rank0": "ranks 3 and 4 alone", "rank8": "ranks 3 and 4 alone"}
WINDOWS = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "max_pool1d", "max_pool2d", "avg_pool1d",
           "avg_pool2d", "upsample_nearest1d", "upsample_nearest2d", "upsample_bilinear2d", "attention"]
LINES = ["cat", "argmax", "argmin", "gather", "scatter", "scatter_add", "index_add", "index_select", "sort", "argsort", "topk",
         "cumsum", "cumprod", "softmax", "log_softmax", "rms_norm", "layer_norm", "softmax_grad", "log_softmax_grad", "norm_grad"]
CANNOT = {
    "iota": {"broadcast": "it has no input"},
    "rope": {"rank0": "it goes along two dims"},
    "rope_interleaved": {"rank0": "it goes along two dims"},
    "group_norm": {"rank0": "it has channels"},
    "batch_norm": {"rank0": "it has channels"},
    "matmul": {"rank0": "it goes along two dims"},
    "tril": {"rank0": "it goes along two dims"},
    "triu": {"rank0": "it goes along two dims"},
    "store_in_pages": {"rank0": "rank 3 alone", "rank8": "rank 3 alone"},
    "causal_conv": {"rank0": "rank 2 alone", "rank8": "rank 2 alone"},
    "ssm_scan": {"rank0": "rank 3 alone", "rank8": "rank 3 alone"},
    "gated_delta_scan": {"rank0": "rank 3 alone", "rank8": "rank 3 alone"},
}
CANNOT.update({row: RANK_3_OR_4 for row in WINDOWS})
CANNOT.update({row: NO_DIM for row in LINES})
# Rows of weights, whose block rows are dense: their tests' names contain shapes and kinds of layout
# instead.
OWN_NAMES = {"linear", "quantize", "dequantize"}
# Float GEMMs don't depend on VNNI: the VNNI instruction set uses v4's kernels.
NO_VNNI = {("matmul", dtype) for dtype in INTEGERS + FLOATS} | {("linear", dtype) for dtype in FLOATS}


def has_kernels(device, row, dtype):
    """Whether an instruction set has kernels of its own for a row. AMX has those of quantised weights alone."""
    if device == "cpu-amx":
        return row in OWN_NAMES and dtype not in FLOATS
    return device != "cpu-v4-vnni" or (row, dtype) not in NO_VNNI


def tests_of(binary):
    """Returns the tests of rows in a binary as (row, dtype, layout, device)."""
    out = subprocess.run([binary, "--gtest_list_tests"], check=True, capture_output=True, text=True)
    found, suite = set(), ""
    for line in out.stdout.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        elif suite.startswith("Parity/"):
            parts = (suite[len("Parity/"):] + name).split(".")
            if len(parts) >= 4:
                found.add((parts[0], parts[1], parts[-2], parts[-1]))
    return found


def missing(rows, tests):
    """Returns the missing tests, as names or patterns of names."""
    devices = sorted({test[3] for test in tests})
    names = {row for row, _ in rows}
    lacking = [f"{row}: no such row" for row in sorted(CANNOT.keys() | OWN_NAMES) if row not in names]
    if not devices:
        return lacking + ["any device"]
    there = {}
    for row, dtype, layout, device in tests:
        there.setdefault((row, dtype), set()).add((layout, device))
    for row, dtypes in rows:
        for dtype in DTYPES[dtypes]:
            if row in {"quantize", "dequantize"} and dtype in FLOATS:
                continue
            of = there.get((row, dtype), set())
            on = [device for device in devices if has_kernels(device, row, dtype)]
            if row in OWN_NAMES:
                lacking += [f"{row}.{dtype}.*.{device}" for device in on if device not in {d for _, d in of}]
                continue
            layouts = [layout for layout in LAYOUTS if layout not in CANNOT.get(row, {})]
            lacking += [f"{row}.{dtype}.{layout}.{device}" for layout in layouts for device in on
                        if (layout, device) not in of]
    return lacking


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    if len(rows) < 30:
        sys.exit(f"{sys.argv[1]}: only {len(rows)} rows were read")
    with open(pathlib.Path(sys.argv[1]).parents[1] / "math/quants.def", encoding="utf-8") as file:
        quants = QUANT.findall(file.read())
    DTYPES["Weights"] = DTYPES["Activations"] + [name for name, _ in quants]
    DTYPES["Written"] = DTYPES["Activations"] + [name for name, writes in quants if writes == "written"]
    if len(DTYPES["Written"]) < 9 or len(quants) < 15:
        sys.exit(f"quants.def: only {len(quants)} rows were read")
    tests = set().union(*(tests_of(binary) for binary in sys.argv[2:]))
    lacking = missing(rows, tests)
    if lacking:
        sys.exit(f"{len(lacking)} parity tests are missing:\n" + "\n".join("  Parity/" + name for name in lacking[:60]))
    # Checks that missing tests would be found.
    for gone in sorted(tests)[:: max(1, len(tests) // 97)]:
        row = dict(rows).get(gone[0])
        asked = row and gone[0] not in OWN_NAMES and gone[1] in DTYPES[row] and gone[2] in LAYOUTS
        if asked and gone[2] not in CANNOT.get(gone[0], {}) and not missing(rows, tests - {gone}):
            sys.exit(f"Parity/{'.'.join(gone)} can be missing without being missed")
    print(f"{len(rows)} rows, {len(tests)} tests of a row, dtype, layout and device")


if __name__ == "__main__":
    main()
