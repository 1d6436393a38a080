#!/usr/bin/env python3
"""Compares op_bench of two builds: op_compare.py OLD_OP_BENCH NEW_OP_BENCH [--only REGEX] [--rounds 3] [--threads 1] [--out FILE].

Both programs serve rows in turn, so that they see the same machine. A row's ratio is the older build's least time over the
newer one's; above 1 the newer is faster. Prints the rows below --limit; exits with 1 if there are any.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys


class Server:
    def __init__(self, path):
        self.process = subprocess.Popen([path, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, threads, key):
        self.process.stdin.write(f"{threads} {key}\n")
        self.process.stdin.flush()
        row = json.loads(self.process.stdout.readline())
        return row.get("seconds") or row.get("ms", 0) / 1e3 or row.get("us", 0) / 1e6


def keys_of(path):
    return subprocess.run([path, "--list"], capture_output=True, text=True, check=True).stdout.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=0.98)
    parser.add_argument("--out")
    args = parser.parse_args()
    old_keys = set(keys_of(args.old))
    keys = [key for key in keys_of(args.new) if key in old_keys and re.search(args.only, key)]
    old, new = Server(args.old), Server(args.new)
    ratios = {}
    for key in keys:
        times = [(old.seconds(args.threads, key), new.seconds(args.threads, key)) for _ in range(args.rounds)]
        ratios[key] = min(t[0] for t in times) / min(t[1] for t in times)
        if ratios[key] < args.limit:
            print(f"{ratios[key]:.3f} {key}", flush=True)
    if not ratios:
        sys.exit("op_compare: no such rows")
    below = sum(ratio < args.limit for ratio in ratios.values())
    print(f"{len(ratios)} rows, {below} below {args.limit}, median {statistics.median(ratios.values()):.3f}")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(ratios, indent=1) + "\n", encoding="utf-8")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
