#!/usr/bin/env python3
"""Runs all parity tests on the available devices and writes a summary as Markdown: rows of ops.def by dtype, layout and
device.

Usage: parity.py [--build build/release] [--out FILE] [--devices cuda:0,hip:0] [--jobs N] [--rows add,silu] [--chains N]

The CPU runs with every instruction set. Each of the other devices that is available is compared with the CPU. Exits
with 1 if a test failed."""

import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["parity_test", "attention_bound_test", "matmul_test", "linear_float_test", "linear_quantized_test",
            "quantize_test"]
ORDER = ["contiguous", "transposed", "broadcast", "sliced", "stepped", "scattered", "empty", "rank0", "rank8"]


def environment(devices):
    env = dict(os.environ)
    env.pop("WICK_TEST_DEVICES", None)
    if devices:
        env["WICK_TEST_DEVICES"] = devices
    return env


def suites(program, devices):
    out = subprocess.run([program, "--gtest_list_tests"], env=environment(devices), check=True, capture_output=True,
                         text=True).stdout
    return [line.split("#")[0].strip().rstrip(".") for line in out.splitlines() if line and not line.startswith(" ")]


def run(program, pattern, devices):
    """Runs one process. Returns its tests: (suite, name, "pass", "skip" or "fail", seconds, message)."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([program, f"--gtest_filter={pattern}", f"--gtest_output=json:{report}", "--gtest_brief=1"],
                              env=environment(devices), capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 1) or not report.exists():
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            return [(pattern, "(the process)", "fail", 0.0, f"ended with {done.returncode}: " + " ".join(said))]
        tests = []
        for suite in json.loads(report.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                verdict, message = "pass", ""
                if test.get("failures"):
                    verdict, message = "fail", test["failures"][0]["failure"].strip().splitlines()[-1]
                elif test.get("result") == "SKIPPED":
                    verdict = "skip"
                tests.append((suite["name"], test["name"], verdict, float(test["time"].rstrip("s")), message))
        return tests


def absent(build, device):
    """Returns why a device is unavailable, or None if it is available."""
    done = subprocess.run([build / "bin" / "parity_test", "--gtest_filter=Parity/neg.f32.contiguous.*"],
                          env=environment(device), capture_output=True, text=True, check=False)
    found = re.search(r"absent: (.*)", done.stdout)
    return found.group(1) if found else None


def cpu_name():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    fields = dict(re.findall(r"^([^:\n]*?)\s*: (.*)$", text, re.MULTILINE))
    return f"{fields.get('model name', platform.processor())}, {os.cpu_count()} processors"


def split(suite, name):
    """Returns (row, dtype, layout, device) of a row's test, and None for other tests."""
    parts = name.split(".")
    if not suite.startswith("Parity/") or len(parts) < 3:
        return None
    return suite[len("Parity/"):], parts[0], ".".join(parts[1:-1]), parts[-1]


def said(counts):
    if not counts:
        return "–"
    text = f"{counts['pass']}"
    if counts["skip"]:
        text += f", {counts['skip']} skipped"
    if counts["fail"]:
        text += f", **{counts['fail']} FAILED**"
    return text


def summary(tests, chains, missing, jobs, seconds):
    rows, others = collections.defaultdict(list), collections.defaultdict(collections.Counter)
    for suite, name, verdict, took, _ in tests:
        key = split(suite, name)
        if key:
            rows[key[:2]].append((key[2], key[3], verdict, took))
        else:
            others[suite][verdict] += 1
    total = collections.Counter(test[2] for test in tests)
    devices = sorted({entry[1] for entries in rows.values() for entry in entries})
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [f"# The parity suite, {datetime.date.today()}", "",
             f"`tools/parity.py` on {cpu_name()}: of {sum(total.values())} tests {total['pass']} passed, {total['skip']} were "
             f"skipped and {total['fail']} failed; {seconds:.0f} s with {jobs} processes at once, "
             f"{used.ru_utime + used.ru_stime:.0f} s of processor time.", "", f"Devices: {', '.join(devices)}."]
    lines += [f"SKIPPED {device}: {why}" for device, why in missing.items()]
    lines += ["", chains, ""]
    failures = [test for test in tests if test[2] == "fail"]
    if failures:
        lines += ["## Failures", ""] + [f"- `{suite}.{name}`: {message}" for suite, name, _, _, message in failures] + [""]
    lines += ["## Rows", "", "Tests that passed, by device: a test is a layout, over values and shapes. Seconds are those "
              "of all devices; one of them waits for the reference that they share.", "",
              "| row | dtype | layouts | " + " | ".join(devices) + " | s |", "|---|---|---|" + "---|" * (len(devices) + 1)]
    for (row, dtype), entries in sorted(rows.items()):
        layouts = sorted({e[0] for e in entries}, key=lambda x: (ORDER.index(x) if x in ORDER else 99, x))
        text = " ".join(layouts) if len(layouts) <= 14 else f"{len(layouts)} shapes and layouts"
        cells = [said(collections.Counter(e[2] for e in entries if e[1] == device)) for device in devices]
        lines.append(f"| {row} | {dtype} | {text} | " + " | ".join(cells) + f" | {sum(e[3] for e in entries):.2f} |")
    lines += ["", "## Others", "", "| tests | passed |", "|---|---|"]
    lines += [f"| {suite} | {said(counts)} |" for suite, counts in sorted(others.items())]
    return "\n".join(lines) + "\n", not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--devices", default="cuda:0,hip:0", help="devices besides the CPU")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--rows", default="", help="only these rows")
    parser.add_argument("--chains", type=int, default=20000)
    options = parser.parse_args()
    started = time.monotonic()

    missing, found = {}, []
    for device in filter(None, options.devices.split(",")):
        why = absent(options.build, device)
        if why is None:
            found.append(device)
        else:
            missing[device] = why
            print(f"SKIPPED {device}: {why}")
    work = []
    only = set(filter(None, options.rows.split(",")))
    for devices in [""] + ([",".join(found)] if found else []):
        for name in PROGRAMS:
            program = options.build / "bin" / name
            for suite in suites(program, devices):
                if not only or suite.removeprefix("Parity/") in only:
                    work.append((program, suite + ".*", devices))
    chains = "Chains of random ops were left out."
    tests, good = [], True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(run, *job) for job in work]
        chain_run = None
        if options.chains > 0:
            chain_run = pool.submit(subprocess.run, [options.build / "bin" / "parity_chains", "--count",
                                                     str(options.chains)],
                                    env=environment(",".join(found)), capture_output=True, text=True, check=False)
        for job, future in zip(work, futures):
            part = future.result()
            tests += part
            failed = [test for test in part if test[2] == "fail"]
            for suite, name, _, _, message in failed[:10]:
                print(f"FAILED {suite}.{name}: {message}")
            if failed or sys.stdout.isatty():
                print(f"{job[1]} {job[2]}: {len(part)} tests, {len(failed)} failed", flush=True)
        if chain_run:
            done = chain_run.result()
            good = done.returncode == 0
            chains = "Chains of random ops: " + (done.stdout.strip().splitlines() or ["nothing was said"])[-1]
            if not good:
                print(done.stdout, done.stderr)
    text, passed = summary(tests, chains, missing, options.jobs, time.monotonic() - started)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print("\n".join(text.splitlines()[2:3]), chains, sep="\n")
    sys.exit(0 if good and passed else 1)


if __name__ == "__main__":
    main()
