#!/usr/bin/env python3
"""Measures the cost of a call from Python, compared with PyTorch's, and the time of `import wick`.

Both run in one process and measure each row in turn, for several rounds of which the fastest counts, so
that changes of the machine's speed affect both. Run it with a Python that has wick (`pip install .`) and
torch:

    python bench/python_overhead.py

--check exits with 1 if a 1-element add takes more than half of PyTorch's time, or `import wick` takes
more than 60 ms (in a new process, less the time of an empty one).
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import timeit

from harness import machine

MOST_IMPORT_MS = 60
MOST_ADD_RATIO = 0.5

# name: the expression for both libraries. x and y have one element, m and n have 64 x 64.
ROWS = {
    "x + y": "x + y",
    "x * 2": "x * 2.0",
    "lib.add(x, y)": "lib.add(x, y)",
    "-x": "-x",
    "x.exp()": "x.exp()",
    "x.sum()": "x.sum()",
    "x.item()": "x.item()",
    "x[0]": "x[0]",
    "m.T": "m.T",
    "m[1:3, ::2]": "m[1:3, ::2]",
    "m[ids]": "m[ids]",
    "m[m > 2]": "m[m > 2]",
    "m.reshape(-1)": "m.reshape(-1)",
    "lib.cat([x, y])": "lib.cat([x, y])",
    "lib.softmax(m, -1)": "lib.softmax(m, -1)",
    "m @ n": "m @ n",
    "lib.zeros(2, 2)": "lib.zeros(2, 2)",
    "v + x, with gradient": "v + x",
    "forward and backward": "((v * x).sum() * 3.0).backward()",
}


def process_ms(code):
    """Returns the median wall time of new processes that run the code."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def import_times():
    empty, wick = process_ms("pass"), process_ms("import wick")
    log = subprocess.run([sys.executable, "-X", "importtime", "-c", "import wick"], check=True,
                         capture_output=True, text=True).stderr
    inside = int(log.strip().splitlines()[-1].split("|")[1]) / 1e3
    return {"process_ms": wick, "empty_process_ms": empty, "import_ms": wick - empty,
            "importtime_ms": inside}


def of(lib):
    x, y = lib.tensor([1.0]), lib.tensor([2.0])
    v = lib.tensor([1.0], requires_grad=True)
    return {"lib": lib, "x": x, "y": y, "v": v, "m": lib.ones((64, 64)), "n": lib.ones((64, 64)),
            "ids": lib.tensor([1, 5])}


def call_times(rounds):
    import torch

    import wick

    torch.set_num_threads(1)
    wick.set_num_threads(1)
    sides = {"wick": of(wick), "torch": of(torch)}
    rows = {}
    for name, code in ROWS.items():
        best = {}
        for _ in range(rounds):
            for side, names in sides.items():
                timer = timeit.Timer(code, globals=names)
                count = max(int(2e-3 / max(min(timer.repeat(3, 10)) / 10, 1e-8)), 10)
                ns = timer.timeit(count) / count * 1e9
                best[side] = min(best.get(side, ns), ns)
        rows[name] = {**best, "ratio": best["wick"] / best["torch"]}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--import-only", action="store_true", help="measure only the import; doesn't need PyTorch")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    result = {"machine": {**machine(), "python": sys.version.split()[0]}, "import": import_times()}
    t = result["import"]
    print(f"import wick: {t['import_ms']:.1f} ms ({t['process_ms']:.1f} ms a process, "
          f"{t['empty_process_ms']:.1f} an empty one; {t['importtime_ms']:.1f} by -X importtime)")
    good = t["import_ms"] <= MOST_IMPORT_MS
    if not options.import_only:
        import torch

        result["machine"]["peer"] = f"PyTorch {torch.__version__}"
        result["calls_ns"] = rows = call_times(options.rounds)
        print(f"{'call':24}{'wick ns':>10}{'torch ns':>10}{'ratio':>8}")
        for name, row in rows.items():
            print(f"{name:24}{row['wick']:10.0f}{row['torch']:10.0f}{row['ratio']:8.2f}")
        good = good and rows["x + y"]["ratio"] <= MOST_ADD_RATIO
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
    if options.check and not good:
        print("slower than promised", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
