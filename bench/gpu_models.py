#!/usr/bin/env python3
"""Compares wick with llama.cpp on a GPU: random models with Llama 3's shapes, interleaved in one run.

Rows: tg128 and pp512 (tokens/s). The ratio is the median over rounds of wick/peer within a round.
Prints a table, and writes JSON to --out. Exits with 1 if a target is missed.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
import llama_cpp
import random_gguf

# The minimum ratio of wick to llama.cpp.
TARGETS = {
    ("8b", "Q4_0"): {"tg128": 2.0, "pp512": 2.0},
    ("8b", "Q4_K"): {"tg128": 2.2, "pp512": 2.0},
    ("8b", "Q8_0"): {"tg128": 1.7, "pp512": 1.7},
    ("8b", "BF16"): {"tg128": 1.15, "pp512": 1.2},
    ("1b", "Q4_0"): {"tg128": 2.2},
}


def run_json(command):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise harness.BenchError(f"{Path(command[0]).name}: {last}")
    return json.loads(result.stdout)


def wick_speed(wick, model, device):
    rows = run_json([wick, "bench", "-m", model, "--device", device, "-p", 512, "-n", 128, "-r", 3,
                     "--json"])["rows"]
    return {row["test"]: row["tps"] for row in rows}


def peer_speed(binary, model):
    rows = run_json([binary, "-m", model, "-p", 512, "-n", 128, "-r", 3, "-ngl", 99, "-fa", 1, "-o",
                     "json"])
    return {f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}":
            statistics.median(row["samples_ts"]) for row in rows}


def compare(options, peer, folder):
    rows = []
    for (shape, kind), targets in TARGETS.items():
        if options.models and f"{shape}:{kind}" not in options.models:
            continue
        model = Path(folder) / f"{shape}.{kind}.gguf"
        random_gguf.write(random_gguf.SHAPES[shape], kind, model)
        rounds = []
        for _ in range(options.rounds):
            ours = wick_speed(options.wick, model, options.device)
            rounds.append((ours, peer_speed(peer, model) if peer else {}))
        model.unlink()
        for test in ("tg128", "pp512"):
            ours = statistics.median(r[0][test] for r in rounds)
            row = {"model": f"{shape} {kind}", "test": test, "wick": round(ours, 1)}
            if peer:
                row["peer"] = round(statistics.median(r[1][test] for r in rounds), 1)
                row["ratio"] = round(statistics.median(r[0][test] / r[1][test] for r in rounds), 3)
            row["target"] = targets.get(test)
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--architecture", default="90a", help="architecture for which the peer is built")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--models", nargs="*", help="a selection of models, such as 8b:Q4_0 (default: all)")
    parser.add_argument("--no-peer", action="store_true", help="measure wick only")
    parser.add_argument("--folder", help="folder for the models during the run (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    try:
        harness.check_wick(options.wick)
        peer = None if options.no_peer else llama_cpp.ensure_cuda(options.architecture)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            rows = compare(options, peer, folder)
    except (harness.BenchError, llama_cpp.PeerError, OSError) as error:
        print(f"gpu_models: {error}", file=sys.stderr)
        return 2
    if options.out:
        options.out.write_text(json.dumps(
            {"date": datetime.date.today().isoformat(), "device": options.device,
             "cores": os.cpu_count(), "rows": rows}, indent=1))
    missed = [r for r in rows if r["target"] and "ratio" in r and r["ratio"] < r["target"]]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
