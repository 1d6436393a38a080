#!/usr/bin/env python3
"""Makes docs/parity-results.md, the table of ops by dtype and device, of the result files that `parity.py --record` has
written to bench/results.

Usage: parity_table.py [--check] [--root FOLDER]

--check writes nothing, and fails if the page is out of date."""

import argparse
import collections
import json
import pathlib
import sys

PAGE, RESULTS = "docs/parity-results.md", "bench/results"
DTYPES = ["u8", "u32", "i16", "i32", "i64", "bf16", "f16", "f32", "f64", "f8e4m3"]

# A column of the table: the newest result of one device.
Column = collections.namedtuple("Column", "heading device result rows file")


def is_gpu(device):
    return not device.startswith("cpu")


def columns(root):
    """The newest results of each chip and device; CPUs first."""
    newest = {}
    for path in sorted((root / RESULTS).glob("*-parity-*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for device, rows in result["devices"].items():
            heading = f"{result['chip']}" if is_gpu(device) else device
            newest[is_gpu(device), heading] = Column(heading, device, result, rows, path.name)
    return [newest[key] for key in sorted(newest)]


def total(column):
    counts = [0] * 4
    for of in column.rows.values():
        for cell in of.values():
            counts = [a + b for a, b in zip(counts, cell)]
    return counts


def cell(column, row, dtype):
    counts = column.rows.get(row, {}).get(dtype)
    if counts is None:
        return "–"
    native, idle, skipped, failed = counts
    text = f"{native}" + (f" + {idle}" if idle else "")
    if skipped:
        text = f"{text}, {skipped} skipped" if native + idle else "skipped"
    return text + (f", **{failed} failed**" if failed else "")


def order(dtype):
    return (DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES), dtype)


def what(result):
    parts = [f"{key}: {value}" for key, value in result["what"].items() if value != "all"]
    return "; ".join(parts) or "all rows and layouts"


def page(root):
    all_columns = columns(root)
    if not all_columns:
        sys.exit(f"parity_table: there are no results in {RESULTS}")
    out = ["# Results of the parity suite", "",
           f"`tools/parity_table.py` makes this page of the result files in [{RESULTS}](../{RESULTS}), which `tools/parity.py "
           "--record` writes. [The parity suite](parity.md) says what the tests compare. A test is a row of ops.def, a dtype "
           "and a layout on one device, over many values and shapes.", "",
           "On a GPU a test is native if the device launched kernels for it and no op copied anything to the host; a test "
           "with a host fallback fails. Tests of empty tensors have nothing to compute, and are counted apart.", "",
           "This command, on a machine with an NVIDIA GPU, adds a column or brings it up to date:", "",
           "    tools/parity.py --devices cuda:0 --only-devices --jobs 2 --record bench/results && tools/parity_table.py", "",
           "## Runs", "", "| column | date | chip | what ran | tests | passed natively | nothing to compute | skipped | failed | file |",
           "|---|---|---|---|---|---|---|---|---|---|"]
    for column in all_columns:
        native, idle, skipped, failed = total(column)
        out.append(f"| {column.heading} | {column.result['date']} | {column.result['chip']} | {what(column.result)} | "
                   f"{native + idle + skipped + failed} | {native} | {idle} | {skipped} | {failed} | "
                   f"[{column.file}](../{RESULTS}/{column.file}) |")
    out += ["", "## Rows", "",
            "The number of tests that passed; after a plus sign, those that had nothing to compute. –: not run. Rows of "
            "weights are named by the weight's dtype. Names with a suffix are parts of an op: its gradients, or one of "
            "its fused forms. GPUs quantise and dequantise blocks in `gpu_ops_test` and `captured_rows_test`.", "",
            "| row | dtypes | " + " | ".join(column.heading for column in all_columns) + " |",
            "|---|---|" + "---|" * len(all_columns)]
    for row in sorted({row for column in all_columns for row in column.rows}):
        dtypes = sorted({d for column in all_columns for d in column.rows.get(row, {})}, key=order)
        lines = {}
        for dtype in dtypes:
            lines.setdefault(tuple(cell(column, row, dtype) for column in all_columns), []).append(dtype)
        out += [f"| {row} | {' '.join(group)} | " + " | ".join(cells) + " |" for cells, group in lines.items()]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    text, path = page(options.root), options.root / PAGE
    if not options.check:
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        sys.exit(f"parity_table: {PAGE} is stale: run tools/parity_table.py")


if __name__ == "__main__":
    main()
