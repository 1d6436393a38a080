#!/usr/bin/env python3
"""Makes tables of gpu_bench's output, as JSON and Markdown.

  gpu_table.py ROWS.jsonl --machine TEXT --date DATE --out PATH    writes PATH.json and PATH.md

A row misses its target, and is in italics, if its share of the copy speed is below 0.95, or below 0.90
for elements of 16 bits or fewer.
"""
import argparse
import json
import re
from pathlib import Path

NARROW = re.compile(r"f16|bf16|f8e4m3|u8|i16")
COLUMNS = re.compile(r"dims 0b1$|dim 0$")
FAMILIES = (
    ("Functions", lambda op: re.match(r"[a-z_]+\.\w+\[\d+\]$", op)),
    ("Functions of numbers in a cache, which memory doesn't limit",
     lambda op: op.endswith("in cache")),
    ("Broadcast operands", lambda op: op.startswith("add ")),
    ("Copies", lambda op: op.startswith("copy ")),
    ("Casts", lambda op: op.startswith("cast.")),
    ("Reductions of columns",
     lambda op: re.match(r"sum|max|argmax", op) and COLUMNS.search(op)),
    ("Reductions of rows", lambda op: re.match(r"sum|max|min|mean|argmax", op)),
    ("Softmax", lambda op: "softmax" in op),
    ("Norms", lambda op: re.match(r"rms_norm\.", op)),
    ("Others", lambda op: True),
)


def target(op):
    return 0.90 if NARROW.search(op) else 0.95


def markdown(head, rows):
    # Rows whose data stays in a cache show the speed of a function's arithmetic, including the
    # start and end of kernels. They have no target.
    measured = [row for row in rows if not row["op"].endswith("in cache")]
    short = [row for row in measured if row["share_of_copy"] < target(row["op"])]
    lines = [f"# Elementwise ops, copies, casts and reductions on a GPU, {head['date']}", "",
             f"{head['machine']}; copies at {head['copy_gb_s']} GB/s. Shares of the speed of "
             "copying in the same round; medians of nine.", "",
             f"{len(measured) - len(short)} of {len(measured)} rows reach 0.95, or 0.90 with 16 bits and "
             "fewer.", ""]
    rest = list(rows)
    for title, belongs in FAMILIES:
        mine = [row for row in rest if belongs(row["op"])]
        rest = [row for row in rest if row not in mine]
        if not mine:
            continue
        lines += [f"## {title}", "", "| op | us | GB/s | share |", "|---|---:|---:|---:|"]
        for row in mine:
            share = f"{row['share_of_copy']:.3f}"
            mark = f"*{share}*" if row in short else share
            lines.append(f"| {row['op']} | {row['us']:.1f} | {row['gb_s']} | {mark} |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.rows.read_text().splitlines()]
    head = {"machine": options.machine, "date": options.date, **lines[0]}
    rows = lines[1:]
    page = markdown(head, rows)
    Path(options.out + ".md").write_text(page, encoding="utf-8")
    text = json.dumps({**head, "rows": rows}, indent=0)
    Path(options.out + ".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
