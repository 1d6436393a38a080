#!/usr/bin/env python3
"""Compares the start of wick with a model file with the time of reading the file, and with llama.cpp's start and peak memory.

For each round, in turn: the file is read from its beginning to its end, `wick generate` produces one token for a prompt of one
token, and llama.cpp does the same. Each finds the file in the page cache, or ("disk") not in it. wick's load is what it reports
as `load_ms`; a start is the time from exec to exit, which includes the token. Prints medians of the rounds as Markdown, and
exits with 1 if wick's load takes more than 1.3 times as long as reading, if its start takes longer than llama.cpp's, or if its
peak resident memory is above 1.1 times llama.cpp's.

The default model has random weights (random_gguf.py 8b Q4_0, 4.5 GB) and is written to a temporary folder.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import harness
import llama_cpp
import random_gguf

TARGET = 1.3  # wick's load / reading
MOST_MEMORY = 1.1  # of llama.cpp's


def forget(path):
    """Drops the file from the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_ms(path):
    started = time.perf_counter_ns()
    harness.warm_page_cache(path)
    return (time.perf_counter_ns() - started) / 1e6


def run_wick(options, path):
    child = harness.Child([options.wick, "generate", "-m", path, "-p", "a", "-n", 1, "--temp", 0, "--json", "--ctx", 512])
    found = child.json()
    return {"wick load": found["load_ms"], "wick start": child.wall_ms, "wick MB": child.checked_peak_bytes() / 1e6}


def run_peer(completion, path):
    child = harness.Child([completion, "-m", path, "-p", "a", "-n", 1, "--temp", 0, "-c", 512, "--no-warmup",
                           "-no-cnv", "-fit", "off", "--no-display-prompt"])
    return {"llama.cpp start": child.wall_ms, "llama.cpp MB": child.checked_peak_bytes() / 1e6}


def measure(options, completion, path, cached):
    """Returns {what: [ms or MB of each round]}."""
    rounds = {}
    steps = [lambda: {"read": read_ms(path)}, lambda: run_wick(options, path)]
    if completion:
        steps.append(lambda: run_peer(completion, path))
    for _ in range(options.rounds):
        for step in steps:
            if not cached:
                forget(path)
            for what, value in step().items():
                rounds.setdefault(what, []).append(value)
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("--model", type=Path, help="a GGUF file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="without llama.cpp")
    parser.add_argument("--no-amx", action="store_true", help="llama.cpp without AMX, as in random_models.py")
    options = parser.parse_args()
    harness.check_wick(options.wick)
    completion = (None if options.alone else
                  llama_cpp.ensure_without_amx(tool="llama-completion") if options.no_amx else
                  harness.peer()["llama-completion"])
    failed = False
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = options.model or Path(folder) / "8b.Q4_0.gguf"
        if not options.model:
            random_gguf.write(random_gguf.SHAPES["8b"], "Q4_0", path)
            subprocess.run(["sync", path], check=True)
        print(f"{path.name}, {path.stat().st_size / 1e9:.2f} GB; ms, medians of {options.rounds} rounds (least to most)\n")
        print("| file | what | ms or MB | of the time of reading |\n|---|---|---|---|")
        for name, cached in (("page cache", True), ("disk", False)):
            if cached:
                harness.warm_page_cache(path)
            rounds = measure(options, completion, path, cached)
            for what, values in rounds.items():
                ratio = statistics.median(value / read for value, read in zip(values, rounds["read"]))
                of_reading = "–" if what.endswith("MB") else f"{ratio:.2f}"
                print(f"| {name} | {what} | {statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f}) | {of_reading} |",
                      flush=True)
                failed = failed or (what == "wick load" and ratio > TARGET)
            for what, most in (("start", 1.0), ("MB", MOST_MEMORY)) if completion else ():
                ratio = statistics.median(rounds["wick " + what]) / statistics.median(rounds["llama.cpp " + what])
                print(f"| {name} | wick / llama.cpp, {what} | {ratio:.2f} (target {most}) | – |", flush=True)
                failed = failed or ratio > most
    return 1 if failed else 0


if __name__ == "__main__":
    harness.run_main(main)
