#!/usr/bin/env python3
"""Compares `wick bench` of two builds: model_compare.py OLD_WICK NEW_WICK [--models …] [--device cpu] [--rounds 2] [--out FILE].

A model is a file, or SHAPE:TYPE of random_gguf.py with random weights, which don't affect the speed. The builds run in turn, so
that changes of the machine's speed affect both. A row's ratio is the new build's maximum speed divided by the old build's, and
the median of the rounds counts; above 1 the new build is faster. Prints each row and a summary of the rows below --limit, and
exits with 1 if there are any.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import compare
import random_gguf

MODELS = ["1b:Q4_0", "8b:Q4_0", "8b:Q4_K", "8b:Q8_0", "8b:BF16"]


def speeds(program, model, args):
    """Returns {test: tokens per second} of one run."""
    command = [program, "bench", "-m", model, "--device", args.device, "-p", *args.prompts, "-n", *args.tokens, "-d", args.depth,
               "-r", args.repeats, "--json"]
    if args.threads:
        command += ["-t", *args.threads]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"model_compare: {program}: {done.stderr.strip()[-300:]}")
    threads = len(args.threads or []) > 1
    return {f"{row['test']} {row['threads']} threads" if threads else row["test"]: row["tps_max"]
            for row in json.loads(done.stdout)["rows"]}


def main():
    parser = compare.parser(__doc__, rounds=2)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--prompts", nargs="*", default=["512"])
    parser.add_argument("--tokens", nargs="*", default=["128"])
    parser.add_argument("--threads", nargs="*", help="numbers of CPU threads")
    parser.add_argument("--depth", default="0", help="tokens in the cache before each test")
    parser.add_argument("--repeats", default="3", help="repeats of a test in each round")
    args = parser.parse_args()
    ratios, report = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models:
            model = pathlib.Path(name)
            if not model.exists():
                shape, kind = name.split(":")
                model = pathlib.Path(folder) / f"{shape}.{kind}.gguf"
                random_gguf.write(random_gguf.SHAPES[shape], kind, model)
            rounds = [(speeds(args.old, model, args), speeds(args.new, model, args)) for _ in range(args.rounds)]
            if model.parent == pathlib.Path(folder):
                model.unlink()
            for test in rounds[0][0]:
                row = f"{name} {test}"
                ratios[row] = statistics.median(new[test] / old[test] for old, new in rounds)
                report[row] = {"old": [old[test] for old, _ in rounds], "new": [new[test] for _, new in rounds],
                               "ratio": round(ratios[row], 4)}
                compare.print_row(ratios[row], f"{row}: {report[row]['old']} -> {report[row]['new']}")
    compare.write_report(args.out, {"device": args.device, "depth": args.depth, "rows": report})
    return compare.summarise(ratios, args.limit)


if __name__ == "__main__":
    sys.exit(main())
