#!/usr/bin/env python3
"""Compares wick with llama.cpp on the same model files, types and threads, interleaved in one run.

Rows: pp512 and tg128 (tokens/s), start (ms from exec to exit for one token after a short prompt,
no warm-up run on either side), and the peak resident memory with a short and with a long prompt.
A ratio is the median over rounds of wick/peer within a round: both sides of a round run within seconds
of each other, so changes of the machine's speed cancel out. A round is noisy if other processes kept
more than --others cores busy; up to --patience extra rounds replace noisy ones.
Writes bench/results/<date>-<cpu>.json and .md. Exits with 1 if a target is missed.
"""

import argparse
import json
import re
import statistics
import sys
import time
from pathlib import Path

import harness
import models

SHORT_PROMPT = "The capital of France is"
CTX = 512
# The ratio of wick to llama.cpp: minimum for speed, maximum for start and memory.
SPEED_TARGETS = {
    "pp512": {"Q4_0": 2.3, "Q4_1": 6.0, "Q8_0": 3.3, "F16": 1.2, "BF16": 1.2},
    "tg128": {"Q4_0": 1.5, "Q4_1": 1.9, "Q8_0": 1.4, "F16": 1.2, "BF16": 1.2},
}
FILE_TARGETS = {"pp512": 2.0, "tg128": 1.2}  # of quantised models given by --files
LIMITS = {"start": 1.10, "memory_short": 1.15, "memory_long": 1.15}
TESTS = [*SPEED_TARGETS, *LIMITS]
UNITS = {"pp512": "tokens/s", "tg128": "tokens/s", "start": "ms", "memory_short": "MiB",
         "memory_long": "MiB"}


def long_prompt():
    """Returns some 400 tokens, which fill most of a context of 512 and run in one batch."""
    words = "the quick brown fox jumps over the lazy dog and then goes home to sleep".split()
    return " ".join(words[i % len(words)] for i in range(380))


def wick_speed(wick, model, threads):
    child = harness.Child([wick, "bench", "-m", model, "-p", 512, "-n", 128, "-t", threads,
                           "--json"])
    rows = {row["test"]: row for row in child.json()["rows"] if row["threads"] == threads}
    return {test: [row["tps"], row["tps_max"]] for test, row in rows.items()}, child


def peer_speed(binaries, model, threads):
    child = harness.Child([binaries["llama-bench"], "-m", model, "-p", 512, "-n", 128, "-t",
                           threads, "-r", 2, "-o", "json"])
    rows = {}
    for row in child.json():
        test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
        samples = row["samples_ts"]
        rows[test] = [statistics.median(samples), max(samples)]
    return rows, child


def wick_generate(wick, model, threads, prompt, count):
    child = harness.Child([wick, "generate", "-m", model, "-p", prompt, "-n", count, "--temp", 0,
                           "--json", "--threads", threads, "--ctx", CTX])
    found = child.json()
    return child, {key: found.get(key) for key in ("load_ms", "first_token_ms")}


def peer_generate(binaries, model, threads, prompt, count):
    # "-fit off": fitting to GPU memory loads the model twice and has no use here. Without it the
    # peer starts a third faster, and the comparison uses its faster figure.
    child = harness.Child([binaries["llama-completion"], "-m", model, "-p", prompt, "-n", count,
                           "--temp", 0, "-t", threads, "-c", CTX, "--no-warmup", "-no-cnv",
                           "-fit", "off", "--no-display-prompt"])
    return child, peer_times(child.stderr)


def peer_times(log):
    """Reads the peer's own clock: its log lines begin with minutes.seconds.milliseconds.microseconds."""
    times = {}
    ready = re.search(r"^(\d+)\.(\d+)\.(\d+)\.(\d+) .*threadpool init", log, re.M)
    if ready:
        minutes, seconds, ms, us = map(int, ready.groups())
        times["load_ms"] = (minutes * 60 + seconds) * 1e3 + ms + us / 1e3
    prompt = re.search(r"prompt eval time =\s+([\d.]+) ms", log)
    if prompt:
        times["prompt_ms"] = float(prompt.group(1))
    return times


def speed_side(side, options, binaries, path, threads):
    call = wick_speed if side == "wick" else peer_speed
    rows, child = call(options.wick if side == "wick" else binaries, path, threads)
    return {test: {"value": pair[0], "best": pair[1]} for test, pair in rows.items()}, child


def task_side(test, side, options, binaries, path, threads):
    call = wick_generate if side == "wick" else peer_generate
    prompt, count = {"start": (SHORT_PROMPT, 1), "memory_short": (SHORT_PROMPT, 64),
                     "memory_long": (long_prompt(), 16)}[test]
    child, times = call(options.wick if side == "wick" else binaries, path, threads, prompt, count)
    value = child.wall_ms if test == "start" else child.checked_peak_bytes() / 2**20
    return {test: {"value": value, "best": value, **times}}, child


def interleave(measure, options, repeats, patience):
    """Runs rounds of (wick, peer), swapping the order each round. Returns [{side: {test: …}, others_cores}]."""
    sides = ["peer"] if options.peer_only else ["wick", "peer"]
    rounds = []
    while True:
        result = {"others_cores": 0.0}
        for side in sides if len(rounds) % 2 == 0 else sides[::-1]:
            result[side], child = measure(side)
            result["others_cores"] = round(max(result["others_cores"], child.others_cores), 3)
        rounds.append(result)
        quiet = sum(r["others_cores"] <= options.others for r in rounds)
        if len(rounds) >= repeats and (quiet >= repeats or
                                       len(rounds) >= repeats + patience):
            return rounds


def summarise(test, type_name, threads, rounds, options):
    """Returns one row of the table from the rounds of one test, using only quiet rounds if there are any."""
    quiet = [r for r in rounds if r["others_cores"] <= options.others]
    used = quiet or rounds
    higher = test in SPEED_TARGETS
    best = max if higher else min
    row = {"test": test, "type": type_name, "threads": threads, "unit": UNITS[test],
           "rounds": len(used), "noisy_rounds": len(rounds) - len(quiet),
           "others_cores": max(r["others_cores"] for r in used)}
    for side in ("wick", "peer"):
        cells = [r[side][test] for r in used if test in r.get(side, {})]
        if cells:
            row[side] = statistics.median(cell["value"] for cell in cells)
            row[side + "_best"] = best(cell["best"] for cell in cells)
            for key in ("load_ms", "first_token_ms", "prompt_ms"):
                known = [cell[key] for cell in cells if cell.get(key) is not None]
                if known:
                    row[f"{side}_{key}"] = statistics.median(known)
    if "wick" in row and "peer" in row:
        pairs = [r["wick"][test]["value"] / r["peer"][test]["value"] for r in used]
        row["ratio"] = statistics.median(pairs)
        row["ratio_best"] = row["wick_best"] / row["peer_best"]
        if not higher:
            target = LIMITS[test]
        elif type_name in files(options):
            target = FILE_TARGETS[test]
        else:
            target = SPEED_TARGETS[test].get(type_name)
        if target is not None:
            row["target"] = target
            row["pass"] = row["ratio"] >= target if higher else row["ratio"] <= target
    return row


def files(options):
    """Returns {name of the file without its suffix: path} of --files."""
    return {path.stem: path for path in options.files}


def measure_all(options, binaries, paths):
    rows = []
    for type_name, path in ({name: paths[name] for name in options.types} | files(options)).items():
        harness.warm_page_cache(path)  # neither side includes reading from the disk
        for threads in options.threads:
            speed_tests = [test for test in SPEED_TARGETS if test in options.tests]
            jobs = [(speed_tests, options.repeats, lambda side: speed_side(
                side, options, binaries, path, threads))] if speed_tests else []
            for test in (test for test in LIMITS if test in options.tests):
                repeats = options.repeats * 3 if test == "start" else 2  # a start is short
                jobs.append(([test], repeats, lambda side, test=test: task_side(
                    test, side, options, binaries, path, threads)))
            for tests, repeats, measure in jobs:
                # Other processes cost time, but no memory.
                patience = 0 if tests[0].startswith("memory") else options.patience
                rounds = interleave(measure, options, repeats, patience)
                for test in tests:
                    rows.append(summarise(test, type_name, threads, rounds, options))
                    print(markdown_row(rows[-1]), file=sys.stderr, flush=True)
    return rows


def cell(value, digits):
    return "–" if value is None else f"{value:.{digits}f}"


def markdown_row(row):
    sign = "≥" if row["test"] in SPEED_TARGETS else "≤"
    digits = 0 if row["test"] == "pp512" else 1
    target = f"{sign} {row['target']:g}" if "target" in row else "–"
    verdict = {True: "pass", False: "**fail**", None: "–"}[row.get("pass")]
    noise = f"{row['others_cores']:.2f}"
    return (f"| {row['test']} | {row['type']} | {row['threads']} | {row['unit']} "
            f"| {cell(row.get('wick'), digits)} | {cell(row.get('peer'), digits)} "
            f"| {cell(row.get('wick_best'), digits)} | {cell(row.get('peer_best'), digits)} "
            f"| {cell(row.get('ratio'), 2)} | {cell(row.get('ratio_best'), 2)} | {target} "
            f"| {verdict} | {noise} |")


def markdown(report):
    facts = report["machine"]
    rows = report["rows"]
    judged = [row for row in rows if "pass" in row]
    lines = [
        f"# wick and llama.cpp, {facts['date']}", "",
        f"{facts['cpu']} ({facts['cpu_generation']}), {facts['cpus']} CPUs, "
        f"{facts['memory_bytes'] / 2**30:.0f} GiB, {facts['system']}; "
        f"{', '.join(facts['flags'])}.", "",
        f"wick at {facts['commit'] or 'an unknown commit'}; peer: {facts['peer']}, native; "
        f"{facts['compiler']}. Models: SmolLM2-135M-Instruct by type, others by name.", "",
        f"Targets met: {sum(row['pass'] for row in judged)} of {len(judged)}." if judged else
        "The peer alone: no ratios.", "",
        "Columns: median over rounds; best; ratio is the median of the ratios inside each round. "
        "Others: cores that other processes kept busy, at worst, in the rounds used.", "",
        "| test | type | threads | unit | wick | llama.cpp | wick best | llama.cpp best | ratio "
        "| best/best | target | | others |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [markdown_row(row) for row in rows]
    starts = [row for row in rows if row["test"] == "start"]
    if starts:
        lines += ["", "Where the start goes, each by its own clock (ms; medians):", "",
                  "| type | threads | wick load | wick first token | llama.cpp load "
                  "| llama.cpp prompt |", "|---|---|---|---|---|---|"]
        lines += [f"| {row['type']} | {row['threads']} | {cell(row.get('wick_load_ms'), 1)} "
                  f"| {cell(row.get('wick_first_token_ms'), 1)} "
                  f"| {cell(row.get('peer_load_ms'), 1)} | {cell(row.get('peer_prompt_ms'), 1)} |"
                  for row in starts]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("--files", nargs="*", type=Path, default=[], help="other model files, which are named in the rows")
    parser.add_argument("--types", nargs="*", choices=models.TYPES, metavar="TYPE",
                        default=["Q4_0", "Q4_1", "Q8_0", "F16", "BF16"],
                        help=f"of {' '.join(models.TYPES)} (default: those with targets)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="T")
    parser.add_argument("--tests", nargs="+", choices=TESTS, default=TESTS, metavar="TEST",
                        help=f"of {' '.join(TESTS)} (default: all)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds per row (3; start: 9)")
    parser.add_argument("--patience", type=int, default=2, help="extra rounds that replace noisy ones (2)")
    parser.add_argument("--others", type=float, default=0.10, metavar="CORES",
                        help="a round is noisy if other processes used more cores (0.10)")
    parser.add_argument("--peer-only", action="store_true", help="measure llama.cpp only")
    parser.add_argument("--out", type=Path, default=harness.ROOT / "bench" / "results",
                        help="folder of the result files (bench/results)")
    parser.add_argument("--dry", action="store_true", help="print only, write no files")
    options = parser.parse_args()
    if not options.peer_only:
        harness.check_wick(options.wick)
    binaries, paths = harness.peer(), models.ensure(options.types)
    started = time.time()
    report = {"machine": harness.machine(), "peer_only": options.peer_only}
    report["rows"] = measure_all(options, binaries, paths)
    report["wall_s"] = round(time.time() - started)
    if options.dry:
        print(json.dumps(report, indent=1))
    else:
        print(harness.write_results(report, markdown(report), options.out,
                                    "-peer" if report["peer_only"] else ""))
    return 1 if any(row.get("pass") is False for row in report["rows"]) else 0


if __name__ == "__main__":
    harness.run_main(main)
