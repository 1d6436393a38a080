"""Shared code of the scripts that compare two builds: their options, and the report of each row's ratio new speed / old speed."""
import argparse
import json
import pathlib
import statistics


def parser(description, rounds):
    """Returns a parser with the options that the scripts share. `rounds` is the default of --rounds."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("old")
    result.add_argument("new")
    result.add_argument("--rounds", type=int, default=rounds)
    result.add_argument("--limit", type=float, default=0.98)
    result.add_argument("--out")
    return result


def print_row(ratio, row):
    print(f"{ratio:.3f} {row}", flush=True)


def summarise(ratios, limit):
    """Prints how many of {row: ratio} are below the limit. Returns exit status 1 if any is below, or if there are no rows."""
    below = sum(ratio < limit for ratio in ratios.values())
    middle = f", median {statistics.median(ratios.values()):.3f}" if ratios else ""
    print(f"{len(ratios)} rows, {below} below {limit}{middle}")
    return 1 if below or not ratios else 0


def write_report(path, report):
    """Writes JSON to the path. Does nothing without a path."""
    if path:
        pathlib.Path(path).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
