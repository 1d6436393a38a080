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

# Rows whose tests have no layouts, so that every run of them has all layouts.
WITHOUT_LAYOUTS = ("quantize", "dequantize", "linear")

# A column of the table: the runs of one device whose counts it shows, the newest first.
Column = collections.namedtuple("Column", "heading rows runs")
# A result file, and the rows of one device whose counts the table takes from it.
Run = collections.namedtuple("Run", "result rows file")


def is_gpu(device):
    return not device.startswith("cpu")


def layouts_of(result, row):
    """The layouts that a run tested of a row; None: all."""
    named = result["what"].get("layouts", "all")
    return None if named == "all" or row in WITHOUT_LAYOUTS else set(named.split(","))


def column_of(heading, runs):
    """Takes each row and dtype from the newest run that has it, and adds older runs of other layouts. runs: a result, the
    rows of the device, and the file's name; the newest first."""
    rows, seen, used = {}, collections.defaultdict(list), []
    for result, of_device, file in runs:
        taken = {}
        for row, dtypes in of_device.items():
            layouts = layouts_of(result, row)
            for dtype, counts in dtypes.items():
                before = seen[row, dtype]
                if any(layouts is None or other is None or layouts & other for other in before):
                    continue
                before.append(layouts)
                taken.setdefault(row, {})[dtype] = counts
                sums = rows.setdefault(row, {}).setdefault(dtype, [0] * 4)
                rows[row][dtype] = [a + b for a, b in zip(sums, counts)]
        if taken:
            used.append(Run(result, taken, file))
    return Column(heading, rows, used)


def columns(root):
    """The results of each chip and device; CPUs first."""
    runs = collections.defaultdict(list)
    for path in (root / RESULTS).glob("*-parity-*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        for device, rows in result["devices"].items():
            heading = result["chip"] if is_gpu(device) else device
            runs[is_gpu(device), heading].append((result, rows, path.name))
    newest_first = {key: sorted(of, key=lambda run: (run[0].get("finished", run[0]["date"]), run[2]), reverse=True)
                    for key, of in runs.items()}
    return [column_of(key[1], newest_first[key]) for key in sorted(newest_first)]


def total(rows):
    counts = [0] * 4
    for of in rows.values():
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


def checks(result):
    """The emulator's checks of a run, and how often it reported something."""
    if not result["chip"].startswith("emulated "):
        return "–"
    if "checks" not in result:
        return "not recorded"
    if not result["checks"]:
        return "none"
    return f"{', '.join(result['checks'])}: {result['reports'] or 'no'} report{'' if result['reports'] == 1 else 's'}"


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
           "## Runs", "", "A row's numbers are those of the newest run of the row, and of older runs of other layouts. The numbers "
           "of a run are those that the table takes from it. Checks are those of "
           "[the emulator](../emu/README.md#what-the-checks-report); with exact blocks, each tensor has memory of its own "
           "(`WICK_GPU_POOL=exact`).", "",
           "| column | date | commit | chip | checks | what ran | tests | passed natively | nothing to compute | skipped | "
           "failed | file |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for column in all_columns:
        for result, rows, file in column.runs:
            native, idle, skipped, failed = total(rows)
            out.append(f"| {column.heading} | {result['date']} | {result.get('commit', 'not recorded')} | {result['chip']} | "
                       f"{checks(result)} | {what(result)} | {native + idle + skipped + failed} | {native} | {idle} | "
                       f"{skipped} | {failed} | [{file}](../{RESULTS}/{file}) |")
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
