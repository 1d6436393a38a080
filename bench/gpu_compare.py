#!/usr/bin/env python3
"""Compares the GPU benchmarks of two builds: gpu_compare.py OLD_BIN NEW_BIN [--device cuda:0] [--rounds 2] [--out FILE].

The folders contain gpu_bench, gpu_bench_linear, gpu_bench_attention and gpu_overhead of an older and a newer commit. Their
runs alternate, so that both see the same machine. A row's ratio is the older build's minimum time divided by the newer
one's; a ratio above 1 means that the newer build is faster. Prints the rows below --limit and a summary, and exits with 1
if there are any.
"""
import json
import pathlib
import subprocess
import sys

import compare

PROGRAMS = [["gpu_overhead"], ["gpu_bench_attention", "steps"], ["gpu_bench_attention", "prompts"], ["gpu_bench_linear"],
            ["gpu_bench"]]
MEASURED = {"us", "gb_s", "share_of_copy", "submit_us", "target_us", "met", "tops", "share"}


def rows_of(program, text):
    """Returns {row: microseconds} from a program's output."""
    if program == "gpu_overhead":
        report = json.loads(text)
        return {f"gpu_overhead {name}": cost["us"] for name, cost in report.items() if isinstance(cost, dict)}
    rows = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict) or "us" not in row:
            continue
        name = " ".join(f"{key} {value}" for key, value in row.items()
                        if key not in MEASURED and not isinstance(value, float))
        rows[f"{program} {name}"] = row["us"]
    return rows


def run(folder, command, device, limit):
    path = pathlib.Path(folder) / command[0]
    try:
        done = subprocess.run([path, device, *command[1:]], capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        text = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        print(f"{path}: ran out of time", file=sys.stderr)
        return rows_of(command[0], text) if command[0] != "gpu_overhead" else {}
    if done.returncode != 0:
        print(f"{path}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return rows_of(command[0], done.stdout)


def main():
    parser = compare.parser(__doc__, rounds=2)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=200, help="time limit for one run of one program")
    args = parser.parse_args()
    times = {"old": {}, "new": {}}
    for command in PROGRAMS:
        for _ in range(args.rounds):
            for which in ("old", "new"):
                for row, us in run(getattr(args, which), command, args.device, args.seconds).items():
                    times[which].setdefault(row, []).append(us)
    ratios = {row: min(old) / min(times["new"][row]) for row, old in times["old"].items()
              if row in times["new"] and min(times["new"][row]) > 0}
    for ratio, row in sorted((ratio, row) for row, ratio in ratios.items() if ratio < args.limit):
        compare.print_row(ratio, f"{row}: {times['old'][row]} -> {times['new'][row]}")
    compare.write_report(args.out, {
        "device": args.device, "rounds": args.rounds,
        "rows": {row: {"old_us": times["old"][row], "new_us": times["new"][row], "ratio": round(ratio, 4)}
                 for row, ratio in ratios.items()}})
    return compare.summarise(ratios, args.limit)


if __name__ == "__main__":
    sys.exit(main())
