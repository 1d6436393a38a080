#!/usr/bin/env python3
"""Compares op_bench of two builds: op_compare.py OLD_OP_BENCH NEW_OP_BENCH [--only REGEX] [--rounds 3] [--threads 1] [--out FILE].

Both programs run each row in turn, so that they see the same machine. A row's ratio is the older build's minimum time
divided by the newer one's; a ratio above 1 means that the newer build is faster. Prints the rows below --limit and exits
with 1 if there are any.
"""
import json
import re
import subprocess
import sys

import compare


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
    parser = compare.parser(__doc__, rounds=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    old_keys = set(keys_of(args.old))
    keys = [key for key in keys_of(args.new) if key in old_keys and re.search(args.only, key)]
    old, new = Server(args.old), Server(args.new)
    ratios = {}
    for key in keys:
        times = [(old.seconds(args.threads, key), new.seconds(args.threads, key)) for _ in range(args.rounds)]
        ratios[key] = min(t[0] for t in times) / min(t[1] for t in times)
        if ratios[key] < args.limit:
            compare.print_row(ratios[key], key)
    if not ratios:
        sys.exit("op_compare: no such rows")
    compare.write_report(args.out, ratios)
    return compare.summarise(ratios, args.limit)


if __name__ == "__main__":
    sys.exit(main())
