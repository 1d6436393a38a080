#!/usr/bin/env python3
"""Holds the estimates of amd_times.py against published times: the order of both, with Kendall's tau.

The times are of llama.cpp on a Radeon RX 7900 XTX, published in its pull requests 18537 and 26284 (columns of the code before the
change): tokens/s of prompts in micro-batches, and of single tokens. For each, llama.cpp's ROCm build (peers/llama_rocm.py) runs a
random model of that shape on the emulated gfx1100, with 2 and with 4 layers; the difference stands for each further layer. The
builds aren't the same, so times may differ by more than the estimate's error. Needs some minutes for each row.
"""
import argparse
import itertools
import json
import os
import tempfile
from pathlib import Path

import amd_times
import harness
import llama_rocm
import random_gguf
from rocm import options

# (shape, type, tokens of a micro-batch or 1, tokens/s)
PUBLISHED = [
    ("1b", "IQ4_XS_M", 64, 7811.50), ("1b", "IQ4_XS_M", 128, 10306.37), ("1b", "IQ4_XS_M", 256, 14751.24),
    ("1b", "Q2_K_M", 64, 5192.98), ("8b", "Q4_K_M", 1, 105.75), ("8b", "Q5_K_M", 1, 100.63), ("8b", "Q5_K_M", 64, 1793.85),
]
FEW, MORE, TOKENS = 2, 4, 2


def run(args, model, count, tokens):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.json"
        llama_rocm.generate(model, [3 + i % 900 for i in range(count)], tokens, args.library, more={
            "WICK_EMU_DEVICES": "gfx1100", "WICK_EMU_PROFILE": str(file), "WICK_EMU_CHECK": "none"})
        return amd_times.total(json.loads(file.read_text()))


def of_layers(args, shape, kind, batch, layers):
    """Returns the bound and the estimate of a step of a model of so many layers, in seconds."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        model = Path(folder) / "model.gguf"
        random_gguf.write(random_gguf.SHAPES[shape] | dict(layers=layers), kind, model)
        if batch > 1:
            return run(args, model, batch, 1)
        long, short = run(args, model, 4, 1 + TOKENS), run(args, model, 4, 1)
        return {key: (long[key] - short[key]) / TOKENS for key in long}


def estimate(args, shape, kind, batch):
    few, more = (of_layers(args, shape, kind, batch, layers) for layers in (FEW, MORE))
    layers = random_gguf.SHAPES[shape]["layers"]
    return {key: few[key] + (more[key] - few[key]) / (MORE - FEW) * (layers - FEW) for key in few}


def kendall(a, b):
    """The share of pairs in the same order, less that of pairs in the other order."""
    pairs = list(itertools.combinations(range(len(a)), 2))
    same = sum(1 if (a[i] - a[j]) * (b[i] - b[j]) > 0 else -1 for i, j in pairs)
    return same / len(pairs)


def main():
    parser = options.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    llama_rocm.add_library_option(parser)
    rows = range(len(PUBLISHED))
    parser.add_argument("--rows", type=int, nargs="+", choices=rows, default=rows, help="a selection")
    parser.add_argument("--folder", type=options.existing, default=os.environ.get("TMPDIR"),
                        help="folder for the models (default: a temporary one)")
    args = parser.parse_args()
    print("| model | tokens | published, ms | at least, ms | estimate, ms | estimate / published |")
    print("|" + "---|" * 6)
    published, estimates = [], []
    for number in args.rows:
        shape, kind, batch, speed = PUBLISHED[number]
        made = estimate(args, shape, kind, batch)
        published.append(batch / speed)
        estimates.append(made["estimate"])
        print(f"| {shape} {kind} | {batch} | {1e3 * published[-1]:.2f} | {1e3 * made['at least']:.2f} | {1e3 * made['estimate']:.2f} "
              f"| {made['estimate'] / published[-1]:.2f} |", flush=True)
    if len(published) > 1:
        print(f"\nKendall's tau: {kendall(published, estimates):.2f}")
    return 0


if __name__ == "__main__":
    harness.run_main(main)
