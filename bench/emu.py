#!/usr/bin/env python3
"""Measures the speed of the AMD emulator and prints JSON.

Runs emu_bench (built by the target emu_bench of emu/) with checks off and on, with every host
instruction set that this machine has, and with one and two threads. Compares the figures with their
targets. For add_1m and gemm_256 these are 200 million wave-instructions per second and core with checks
off, and 120 million with checks on; 1.8 times as many with two threads; and with AVX2 at least 0.4 of
AVX-512. With one thread, a rate is computed from CPU time, so other programs matter little; the speedup
of two threads is computed from wall time. These are gfx1100's; on gfx90a, whose waves have 64 lanes, the target for gemm_256 is 250
million with checks off.
Also measures the time to load and decode a kernel of 2000 instructions (at most 20 ms), for the first
time and again. Exit codes: 0 all targets met, 1 one missed, 2 could not run.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def has_avx512():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return all(f" {flag}" in flags for flag in ("avx512f", "avx512bw", "avx512vl", "avx512dq"))


def run(build, isa, check, threads, repeats, chip="gfx1100"):
    env = dict(os.environ, WICK_EMU_ISA=isa, WICK_EMU_CHECK=check, WICK_EMU_THREADS=str(threads), WICK_EMU_DEVICES=chip)
    env.pop("WICK_EMU_PROFILE", None)
    out = subprocess.run([build / "bin/emu_bench", build / f"bench.{chip}.hsaco", str(repeats)], env=env,
                         capture_output=True, text=True)
    if out.returncode != 0:
        print(out.stderr, file=sys.stderr)
        sys.exit(2)
    return json.loads(out.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/emu")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=pathlib.Path, help="also write the JSON to this file")
    args = parser.parse_args()
    if not (args.build / "bin/emu_bench").exists():
        print(f"emu.py: no emu_bench in {args.build}: ninja -C {args.build} emu_bench", file=sys.stderr)
        return 2

    isas = ["v4", "v3"] if has_avx512() else ["v3"]
    runs = [run(args.build, isa, check, threads, args.repeats)
            for isa in isas for check in ("none", "all") for threads in (1, 2)]

    def row(kernel, isa, check, threads):
        for r in runs:
            if (r["isa"], r["checks"], r["threads"]) == (isa, check, threads):
                return next(row for row in r["rows"] if row["kernel"] == kernel)
        return None

    def rate(kernel, isa, check, threads):
        return row(kernel, isa, check, threads)["million_per_s"]

    targets = []

    def target(name, value, least):
        targets.append({"target": name, "value": round(value, 3), "least": least,
                        "met": value >= least})

    best = isas[0]
    for kernel in ("add_1m", "gemm_256"):
        if best == "v4":
            target(f"{kernel}, checks off: million/s", rate(kernel, "v4", "none", 1), 200)
            target(f"{kernel}, checks on: million/s", rate(kernel, "v4", "all", 1), 120)
            target(f"{kernel}, AVX2 / AVX-512",
                   rate(kernel, "v3", "none", 1) / rate(kernel, "v4", "none", 1), 0.4)
        target(f"{kernel}, two threads / one",
               row(kernel, best, "none", 1)["ms"] / row(kernel, best, "none", 2)["ms"], 1.8)
    of_wave64 = {check: run(args.build, best, check, 1, args.repeats, "gfx90a")["rows"] for check in ("none", "all")}
    target("gemm_256 on gfx90a, checks off: million/s",
           next(row for row in of_wave64["none"] if row["kernel"] == "gemm_256")["million_per_s"], 250)
    load = runs[0]["load"]
    target("20 ms / load and decode of 2000 instructions", 20 / load["first_ms"], 1)
    result = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "cpu": cpu_name(), "cpus": os.cpu_count(), "targets": targets, "runs": runs, "gfx90a": of_wave64}
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 0 if all(t["met"] for t in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
