#!/usr/bin/env python3
"""Compares wick with llama.cpp on models with random weights (random_gguf.py), interleaved in one run, on a GPU or the CPU.

Rows: prompts ("pp") and decoding ("tg"), tokens/s. The ratio is the median over rounds of wick/peer within a round. Prints rows
as JSON and a Markdown table, and writes --out. Exits with 1 if a target is missed
or, with --keep-going, a model failed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import harness
import llama_cpp
import random_gguf

# The minimum ratio of wick to llama.cpp, for decoding and for prompts.
GPU_TARGETS = {
    "8b:Q4_0": (2.0, 2.0), "8b:Q4_K": (2.2, 2.0), "8b:Q8_0": (1.7, 1.7), "8b:BF16": (1.15, 1.2), "1b:Q4_0": (2.2, None),
    "8b:Q4_K_M": (2.0, 2.0), "8b:Q5_K_M": (2.0, 2.0), "8b:Q6_K": (2.0, 2.0), "8b:Q3_K_M": (2.0, 2.0), "8b:Q2_K_M": (2.0, 2.0),
    "8b:IQ4_XS_M": (2.0, 2.0), "gpt-oss-20b:MXFP4_M": (1.8, 2.0), "qwen3-30b-a3b:Q4_K": (1.8, 2.0),
}
CPU_TYPES = ["Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "Q2_K", "Q3_K", "IQ4_XS", "MXFP4"]
CPU_TARGETS = ({f"1b:{kind}": (1.0, 2.0) for kind in CPU_TYPES} | {"1b:BF16": (1.0, 1.3), "1b:F16": (1.0, 1.3)} |
               {f"3b-moe:{kind}": (1.0, 2.0) for kind in ("Q4_0", "Q4_K")} |
               # Models that fit the last cache.
               {f"smollm2-135m:{kind}": (1.2, 2.0) for kind in ("Q4_1", "Q4_0", "Q8_0")} |
               {f"smollm2-135m:{kind}": (1.2, 1.3) for kind in ("F16", "BF16")} | {"gemma3-270m:Q4_K_M": (1.2, 2.0)})
AVX2_TARGETS = {model: (1.2, 1.2) for model in CPU_TARGETS}


def wick_speed(options, model, threads):
    command = [options.wick, "bench", "-m", model, "--device", options.device, "-p", options.prompt, "-n", options.tokens,
               "-r", options.repeats, "--json"] + (["-t", threads] if threads else [])
    return {row["test"]: row["tps"] for row in harness.Child(command).json()["rows"]}


def peer_speed(options, binary, model, threads):
    command = [binary, "-m", model, "-p", options.prompt, "-n", options.tokens, "-r", options.repeats, "-o", "json"]
    command += ["-t", threads] if threads else ["-ngl", 99, "-fa", 1]
    return {f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}": statistics.median(row["samples_ts"])
            for row in harness.Child(command).json()}


def measure(options, peer, model, name, threads, targets):
    """Yields the rows of one model and number of threads (None: a GPU)."""
    rounds = [(wick_speed(options, model, threads), peer_speed(options, peer, model, threads) if peer else {})
              for _ in range(options.rounds)]
    for test, target in zip((f"tg{options.tokens}", f"pp{options.prompt}"), targets):
        row = {"model": name, "threads": threads, "test": test, "wick": round(statistics.median(r[0][test] for r in rounds), 1)}
        if peer:
            row["peer"] = round(statistics.median(r[1][test] for r in rounds), 1)
            row["ratio"] = round(statistics.median(r[0][test] / r[1][test] for r in rounds), 3)
        yield row | {"target": target}


def compare(options, peer, table, folder):
    """Returns the rows, and whether a model failed."""
    rows, failed = [], False
    for name in options.models or table:
        shape, kind = name.split(":")
        model = Path(folder) / f"{shape}.{kind}.gguf"
        random_gguf.write(random_gguf.SHAPES[shape], kind, model)
        for threads in options.threads if options.device == "cpu" else [None]:
            try:
                for row in measure(options, peer, model, name, threads, table.get(name, (None, None))):
                    rows.append(row)
                    print(json.dumps(row), flush=True)
            except harness.BenchError as error:
                if not options.keep_going:
                    raise
                print(f"random_models: {name}: {error}", file=sys.stderr, flush=True)
                failed = True
        model.unlink()
    return rows, failed


def markdown(rows):
    yield "| model | threads | test | wick | llama.cpp | ratio | target |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        cells = [row["model"].replace(":", " "), row["threads"] or "–", row["test"], f"{row['wick']:,.1f}",
                 f"{row['peer']:,.1f}" if "peer" in row else "–", f"{row['ratio']:.2f}" if "ratio" in row else "–",
                 f"≥ {row['target']}" if row["target"] else "–"]
        yield f"| {' | '.join(map(str, cells))} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("--device", default="cuda:0", help="an NVIDIA GPU (default: cuda:0), or cpu")
    parser.add_argument("--architecture", default="90a", help="architecture for which the peer is built")
    parser.add_argument("--avx2", action="store_true", help="CPU kernels for AVX2 only, of both sides")
    parser.add_argument("--no-amx", action="store_true", help="llama.cpp without AMX, where its native build ends with an illegal \
instruction")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="repeats of a test in each round")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, os.cpu_count() or 1], help="numbers of CPU threads")
    parser.add_argument("--models", nargs="*", help="a selection, such as 8b:Q4_0 (default: those with a target)")
    parser.add_argument("--no-peer", action="store_true", help="measure wick only")
    parser.add_argument("--keep-going", action="store_true", help="report a model that fails, and go on")
    parser.add_argument("--folder", help="folder for the models during the run (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    if options.avx2 and options.device != "cpu":
        parser.error("--avx2 needs --device cpu")
    harness.check_wick(options.wick)
    table = GPU_TARGETS if options.device != "cpu" else AVX2_TARGETS if options.avx2 else CPU_TARGETS
    peer = None
    if options.avx2:
        os.environ["WICK_CPU_ISA"] = "v3"
    if not options.no_peer:
        peer = (llama_cpp.ensure_cuda(options.architecture) if options.device != "cpu" else
                llama_cpp.ensure_avx2() if options.avx2 else
                llama_cpp.ensure_without_amx() if options.no_amx else harness.peer()["llama-bench"])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows, failed = compare(options, peer, table, folder)
    print("\n".join(markdown(rows)))
    if options.out:
        options.out.write_text(json.dumps({"machine": harness.machine(), "device": options.device, "rows": rows}, indent=1))
    missed = [r for r in rows if r["target"] and "ratio" in r and r["ratio"] < r["target"]]
    return 1 if missed or failed else 0


if __name__ == "__main__":
    harness.run_main(main)
