#!/usr/bin/env python3
"""Compares the time of calls from Python in two builds: python_compare.py OLD_PYTHON NEW_PYTHON [--rounds 5] [--out FILE].

OLD_PYTHON and NEW_PYTHON are Python programs, each with one build of wick installed. They run the rows of python_overhead.py in
turn, in separate processes. A row's ratio is the old build's minimum time divided by the new build's; above 1 the new build is
faster. Prints the rows below --limit and a summary, and exits with 1 if there are any.
"""
import json
import pathlib
import subprocess
import sys

import compare

CODE = """
import json, timeit, wick
import python_overhead
wick.set_num_threads(1)
names = python_overhead.of(wick)
rows = {}
for name, code in python_overhead.ROWS.items():
    timer = timeit.Timer(code, globals=names)
    count = max(int(2e-3 / max(min(timer.repeat(3, 10)) / 10, 1e-8)), 10)
    rows[name] = min(timer.timeit(count) / count for _ in range(10)) * 1e9
print(json.dumps(rows))
"""


def nanoseconds(python):
    """Returns {row: nanoseconds} of one process."""
    done = subprocess.run([python, "-c", CODE], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"python_compare: {python}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def main():
    args = compare.parser(__doc__, rounds=5).parse_args()
    rounds = [(nanoseconds(args.old), nanoseconds(args.new)) for _ in range(args.rounds)]
    times = {row: (min(old[row] for old, _ in rounds), min(new[row] for _, new in rounds)) for row in rounds[0][0]}
    ratios = {row: old / new for row, (old, new) in times.items()}
    for row, ratio in sorted(ratios.items(), key=lambda item: item[1]):
        if ratio < args.limit:
            compare.print_row(ratio, f"{row}: {times[row][0]:.0f} -> {times[row][1]:.0f} ns")
    compare.write_report(args.out, {row: {"old_ns": old, "new_ns": new, "ratio": round(old / new, 4)}
                                    for row, (old, new) in times.items()})
    return compare.summarise(ratios, args.limit)


if __name__ == "__main__":
    sys.exit(main())
