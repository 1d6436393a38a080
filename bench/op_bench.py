#!/usr/bin/env python3
"""Compares wick's ops with PyTorch's on this CPU, with equal shapes, precision and numbers of threads.

The rows are matrix products, softmax, norms, attention, reductions, convolutions, pools, elementwise
ops, casts, indexing, sorting, scans, random numbers and movement. wick's rows come from
build/release/bin/op_bench, PyTorch's from bench/peers/torch_ops.py. Both processes stay alive and run
each row in turn, for several rounds, so that changes of the machine's speed affect both. Times are the
minimum of all rounds; the ratio is PyTorch's time divided by wick's (2: wick takes half the time).
Memory is reused on both sides. Writes bench/results/<date>-<cpu>-ops.json and .md.
Without --python, PyTorch is installed from a package index into a virtual environment.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import harness

SLOW_S = 0.25  # a slower call runs in one round only
SERVER = harness.ROOT / "bench" / "peers" / "torch_ops.py"


def ensure_python(named):
    """Returns a Python that has torch."""
    if named:
        return named
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "wick" / "peers" / "torch"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if subprocess.run([python, "-c", "import torch, numpy"], stderr=subprocess.DEVNULL).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "numpy"], check=True)
    return python


class Side:
    """A process that answers each line with a line."""

    def __init__(self, command):
        # glibc returns large blocks to the system when they are freed, and new pages cost more than
        # most ops. These settings give PyTorch, which has no cache of its own, a cache.
        keep = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
                "MALLOC_TOP_PAD_": str(1 << 28)}
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **keep})

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise harness.BenchError(f"{self.process.args[0]}: ended with code "
                                     f"{self.process.wait()}")
        return json.loads(line)

    def ask(self, threads, key):
        self.process.stdin.write(f"{threads} {key}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def is_close(ours, theirs):
    """Returns whether noise may decide if a row meets its target; such rows run more rounds."""
    return theirs is not None and theirs < SLOW_S and 0.75 < theirs / ours["seconds"] < 1.1


def measure_row(wick, peer, key, threads, rounds):
    best, theirs = None, None
    for done in range(2 * rounds):
        if done >= rounds and not is_close(best, theirs):
            break
        ours = wick.ask(threads, key)
        if best is None:
            best = ours
        best["limit_seconds"] = min(best["limit_seconds"], ours["limit_seconds"])
        best["seconds"] = min(best["seconds"], ours["seconds"])
        if theirs is not None and theirs > SLOW_S:
            continue
        other = peer.ask(threads, key)["seconds"]
        if other is not None:
            theirs = other if theirs is None else min(theirs, other)
    best["share"] = round(best["limit_seconds"] / best["seconds"], 3)
    if theirs is not None:
        best["peer_seconds"] = theirs
        best["ratio"] = round(theirs / best["seconds"], 3)
        best["peer_share"] = round(best["limit_seconds"] / theirs, 3)
    best["pass"] = passes(best)
    return best


def passes(row):
    """Returns whether the row is at least as fast as the peer, or nearly as fast if it is near a limit."""
    if "ratio" not in row:
        return None
    return row["ratio"] >= target(row)


def target(row):
    near = row["limit"] != "none" and row.get("peer_share", 0) >= 0.85
    return 0.9 if near else 1.0


def milliseconds(seconds):
    return "–" if seconds is None else f"{seconds * 1e3:.4g}"


def markdown_row(row):
    limited = row["limit"] != "none"
    share = f"{row['share']:.2f} of {row['limit']}" if limited else "–"
    theirs = f"{row['peer_share']:.2f}" if limited and "ratio" in row else "–"
    verdict = {True: "", False: "**below**", None: "no peer"}[row["pass"]]
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else "–"
    return (f"| `{row['key']}` | {row['threads']} | {milliseconds(row['seconds'])} "
            f"| {milliseconds(row.get('peer_seconds'))} | {ratio} | {target(row)} | {share} "
            f"| {theirs} | {verdict} |")


def markdown(report):
    facts, rows = report["machine"], report["rows"]
    judged = [row for row in rows if row["pass"] is not None]
    twice = sum(row["ratio"] >= 2 for row in judged)
    return "\n".join([
        f"# wick's ops and PyTorch's, {facts['date']}", "",
        f"{facts['cpu']} ({facts['cpu_generation']}), {facts['cpus']} CPUs, {facts['system']}; "
        f"{', '.join(facts['flags'])}.", "",
        f"wick at {facts['commit'] or 'an unknown commit'}; {facts['peer']}; {facts['compiler']}. "
        "Best of interleaved rounds, memory reused on both sides; a share is of a limit measured "
        "in the same run.", "",
        f"{sum(row['pass'] for row in judged)} of {len(judged)} rows reach PyTorch's speed (0.9 of "
        f"it where that is at 0.85 of a limit), {twice} twice that. The limits: `fma` and `dot`, "
        "multiply-adds of f32 and dot products of bf16 in registers; `copy` and `read`, of 64 MiB, "
        "which smaller rows may exceed; none for what none of them bounds.", "",
        "| row | threads | wick, ms | PyTorch, ms | PyTorch / wick | target | wick's share "
        "| PyTorch's | |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(markdown_row, rows)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=lambda p: Path(p).resolve(),
                        default=harness.ROOT / "build" / "release" / "bin" / "op_bench",
                        help="wick's program (build/release/bin/op_bench)")
    parser.add_argument("--python", help="a Python that has torch (default: a new environment)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="T")
    parser.add_argument("--rounds", type=int, default=2,
                        help="rounds per row, doubled for rows near the target (2)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only rows whose key matches")
    parser.add_argument("--out", type=Path, default=harness.ROOT / "bench" / "results",
                        help="folder of the result files (bench/results)")
    parser.add_argument("--dry", action="store_true", help="print only, write no files")
    options = parser.parse_args()
    if not os.access(options.bench, os.X_OK):
        raise harness.BenchError(f"no {options.bench}: build the target op_bench")
    listed = subprocess.run([options.bench, "--list"], check=True, capture_output=True, text=True)
    keys = [key for key in listed.stdout.split("\n") if key and re.search(options.only, key)]
    started = time.time()
    report = {"machine": harness.machine(), "rows": []}
    wick = Side([options.bench, "--serve"])
    peer = Side([ensure_python(options.python), SERVER])
    report["machine"]["peer"] = f"PyTorch {peer.answer()['version']}"
    for key in keys:
        for threads in options.threads:
            row = measure_row(wick, peer, key, threads, options.rounds)
            report["rows"].append(row)
            print(markdown_row(row), file=sys.stderr, flush=True)
    wick.close()
    peer.close()
    report["wall_s"] = round(time.time() - started)
    if not options.dry:
        print(harness.write_results(report, markdown(report), options.out, "-ops"))
    return 1 if any(row["pass"] is False for row in report["rows"]) else 0


if __name__ == "__main__":
    harness.run_main(main)
