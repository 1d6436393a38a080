#!/usr/bin/env python3
"""Runs the parity tests on the available devices.

Usage: parity.py [--build build/release] [--out FILE] [--record FOLDER] [--devices cuda:0,hip:0] [--only-devices]
                 [--jobs N] [--rows add,silu] [--layouts contiguous,stepped] [--tests PATTERN] [--seconds N] [--chains N]
                 [--commit NAME]

The CPU runs with every instruction set, unless --only-devices is given. Each of the other devices that is available is
compared with the CPU. --out: a summary as Markdown, rows of ops.def by dtype, layout and device. --record: a result
file for the CPU and for each device, which names the commit and the emulator's checks; tools/parity_table.py makes
docs/parity-results.md of the files in bench/results.
--tests: of the suites of weights, only the tests whose names match, such as '*_f32'.
--seconds: rows that haven't begun by then are left out; the longest rows come last.
--commit: the commit of the sources, if they aren't a checkout of git.
Exits with 1 if a test failed.

On a machine with an NVIDIA GPU, this adds its column to docs/parity-results.md:

    tools/parity.py --devices cuda:0 --only-devices --jobs 2 --record bench/results && tools/parity_table.py
"""

import argparse
import collections
import concurrent.futures
import datetime
import fnmatch
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

PROGRAMS = ["parity_test", "attention_bound_test", "matmul_test", "linear_float_test"]
CPU_PROGRAMS = ["linear_quantized_test", "quantize_test"]
DEVICE_PROGRAMS = ["gpu_linear_test"]
# Rows that take long, on emulated GPUs above all.
LONG = re.compile("attention|conv|linear|matmul|sort|topk|sample|quantize|pool|upsample|scatter|Gpu")
# How a line of the emulator's reports begins, and the name of the failed test that stands for one.
REPORT, EMULATOR = "wick-emu: ", "(the emulator)"
# Suites whose tests are named by shapes and kinds.
WITHOUT_LAYOUTS = ("quantize", "dequantize", "linear")
# Tests that store twice in one place on purpose, which the emulator's checks report as a race.
MISUSE = ("Parity.paged_attention.outside", "Parity.store_in_pages.errors")
ORDER = ["contiguous", "transposed", "broadcast", "sliced", "stepped", "scattered", "empty", "rank0", "rank8"]

# A test: `work` is the number of kernels and copies that a GPU ran for it; None on the CPU.
Test = collections.namedtuple("Test", "suite name verdict seconds message work")


def environment(devices, shard=(0, 1)):
    env = dict(os.environ)
    env.pop("WICK_TEST_DEVICES", None)
    env["GTEST_SHARD_INDEX"], env["GTEST_TOTAL_SHARDS"] = map(str, shard)
    if devices:
        env["WICK_TEST_DEVICES"] = devices
    return env


def suites(program, devices):
    out = subprocess.run([program, "--gtest_list_tests"], env=environment(devices), check=True, capture_output=True,
                         text=True).stdout
    return [line.split("#")[0].strip().rstrip(".") for line in out.splitlines()
            if line and not line.startswith((" ", "Running main()"))]


def tests_of(program, suite, devices):
    """The names of a suite's tests."""
    out = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={suite}.*"], env=environment(devices), check=True,
                         capture_output=True, text=True).stdout
    return [line.split("#")[0].strip() for line in out.splitlines() if line.startswith("  ")]


def has_layouts(suite):
    """Whether a suite's tests are named by layouts. Those of weights are named by shapes and kinds."""
    return suite.startswith("Parity/") and suite.removeprefix("Parity/") not in WITHOUT_LAYOUTS


def pattern_of(program, suite, devices, layouts, only):
    """A filter for the tests of a suite, or None if there are none. `layouts`: only these, for the suites whose tests are
    named by layouts. `only`: a pattern of the other suites' tests."""
    if has_layouts(suite):
        return ":".join(f"{suite}.*.{layout}.*" for layout in layouts) if layouts else suite + ".*"
    if not only:
        checked = os.environ.get("WICK_EMU_CHECK") and MISUSE[0].startswith(suite + ".")
        return f"{suite}.*-{':'.join(MISUSE)}" if checked else suite + ".*"
    return ":".join(f"{suite}.{name}" for name in tests_of(program, suite, devices) if fnmatch.fnmatch(name, only)) or None


def run(program, pattern, devices, shard, chips):
    """Runs one process, part `shard` of a suite, and returns its tests. Adds the names of the devices to `chips`. What the
    emulator reports is a failed test."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([program, f"--gtest_filter={pattern}", f"--gtest_output=json:{report}", "--gtest_brief=1"],
                              env=environment(devices, shard), capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 1) or not report.exists():
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            return [Test(pattern, "(the process)", "fail", 0.0, f"ended with {done.returncode}: " + " ".join(said), None)]
        tests = []
        report = json.loads(report.read_text())
        for device in devices.split(",") if devices else []:
            chip = report.get("device_" + device.replace(":", "_"))
            if chip:
                chips[device] = chip_name(device, chip)
        for suite in report["testsuites"]:
            for test in suite["testsuite"]:
                verdict, message = "pass", ""
                if test.get("failures"):
                    verdict, message = "fail", test["failures"][0]["failure"].strip().splitlines()[-1]
                elif test.get("result") == "SKIPPED":
                    verdict = "skip"
                work = int(test["device_work"]) if "device_work" in test else None
                name = test["name"]
                tests.append(Test(suite["name"], name, verdict, float(test["time"].rstrip("s")), message, work))
        reports = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(REPORT)]
        tests += [Test(pattern.split(":")[0], EMULATOR, "fail", 0.0, line, None) for line in reports]
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


def chip_name(device, description):
    """The chip of a device, from its description. The software AMD GPU describes itself as the product that it
    imitates; tests/backend/on_emulator.sh names its architecture."""
    emulated = os.environ.get("WICK_EMU_DEVICES")
    return f"emulated {emulated}" if device.startswith("hip:") and emulated else description.split(",")[0]


def commit_name():
    """The commit of the sources, and whether they were changed since."""
    def git(*words):
        done = subprocess.run(["git", "-C", pathlib.Path(__file__).resolve().parents[1], *words], capture_output=True,
                              text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    name = git("rev-parse", "--short=12", "HEAD")
    if name is None:
        return "unknown"
    return name + (" with changes" if git("status", "--porcelain", "--untracked-files=no", "--", "wick", "tests") else "")


def checks_of(chip):
    """The checks of the emulator that were on, and "exact blocks" if each tensor had a block of its own; None for other
    chips."""
    if not chip.startswith("emulated "):
        return None
    names = [name for name in os.environ.get("WICK_EMU_CHECK", "").split(",") if name]
    return names + (["exact blocks"] if os.environ.get("WICK_GPU_POOL") == "exact" else [])


def split(test, devices):
    """Returns (row, dtype, layout, device) of a row's test, and None for other tests."""
    parts = test.name.split(".")
    if test.suite.startswith("Types/Gpu") and "/" in test.name and "," not in devices:
        kind, types = test.name.split("/")
        return "linear", types.rsplit("_", 1)[0], kind, devices
    if not test.suite.startswith("Parity/") or len(parts) < 3:
        return None
    return test.suite[len("Parity/"):], parts[0], ".".join(parts[1:-1]), parts[-1]


def said(counts):
    if not counts:
        return "–"
    text = f"{counts['pass']}"
    if counts["idle"]:
        text += f" + {counts['idle']} without work"
    if counts["skip"]:
        text += f", {counts['skip']} skipped"
    if counts["fail"]:
        text += f", **{counts['fail']} FAILED**"
    return text


def outcome(test):
    """A test's verdict. A test that passed although its GPU had nothing to do (empty tensors) is "idle"."""
    return "idle" if test.verdict == "pass" and test.work == 0 else test.verdict


def summary(tests, chains, missing, jobs, seconds):
    """`tests`: pairs of a test and the devices of its process."""
    rows, others = collections.defaultdict(list), collections.defaultdict(collections.Counter)
    for test, devices in tests:
        key = split(test, devices)
        if key:
            rows[key[:2]].append((key[2], key[3], outcome(test), test.seconds))
        else:
            others[test.suite][outcome(test)] += 1
    total = collections.Counter(test.verdict for test, _ in tests)
    native = sum(1 for test, _ in tests if test.verdict == "pass" and test.work)
    idle = sum(1 for test, _ in tests if outcome(test) == "idle")
    devices = sorted({entry[1] for entries in rows.values() for entry in entries})
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [f"# The parity suite, {datetime.date.today()}", "",
             f"`tools/parity.py` on {cpu_name()}: of {sum(total.values())} tests {total['pass']} passed, {total['skip']} were "
             f"skipped and {total['fail']} failed; {seconds:.0f} s with {jobs} processes at once, "
             f"{used.ru_utime + used.ru_stime:.0f} s of processor time.", "", f"Devices: {', '.join(devices)}."]
    if native + idle > 0:
        lines += ["", f"On GPUs {native} of the tests that passed launched kernels, and {idle} had nothing to compute. Of "
                  "neither did an op copy anything to the host."]
    lines += [f"SKIPPED {device}: {why}" for device, why in missing.items()]
    lines += ["", chains, ""]
    failures = [test for test, _ in tests if test.verdict == "fail"]
    if failures:
        lines += ["## Failures", ""] + [f"- `{test.suite}.{test.name}`: {test.message}" for test in failures] + [""]
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


def new_path(folder, slug):
    """The path of a new result file. Further files of a day get numbers."""
    name = f"{datetime.datetime.now(datetime.timezone.utc).date()}-parity-{slug}"
    paths = [folder / f"{name}.json"] + [folder / f"{name}-{number}.json" for number in range(2, 1000)]
    return next(path for path in paths if not path.exists())


def record(folder, tests, group, devices, chip, ran, seconds, commit):
    """Writes the result file of the CPU's instruction sets, or of one other device: for each device, row and dtype the
    numbers of tests that [ran natively, had nothing to compute, were skipped, failed]. The file's head says when and where
    the tests ran, their commit, the emulator's checks (null for other chips) and the number of its reports, and what was
    asked for."""
    kinds = ["pass", "idle", "skip", "fail"]
    counts = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * 4)))
    for test, of in tests:
        key = split(test, of)
        if key and key[3] in devices:
            counts[key[3]][key[0]][key[1]][kinds.index(outcome(test))] += 1
    slug = re.sub(r"[^a-z0-9]+", "-", (group if group == "cpu" else chip).lower()).strip("-")
    path = new_path(folder, slug)
    finished = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"date": finished[:10], "finished": finished, "commit": commit, "chip": chip, "checks": checks_of(chip),
            "reports": sum(test.name == EMULATOR for test, _ in tests), "host": cpu_name(), "what": ran, "seconds": round(seconds)}
    lines = [json.dumps(head, ensure_ascii=False)[:-1] + ', "devices": {']
    for d, device in enumerate(sorted(counts)):
        lines.append(f'{json.dumps(device)}: {{')
        rows = sorted(counts[device].items())
        lines += [f"{json.dumps(row)}: {json.dumps(dict(sorted(of.items())))}" + ("," if i + 1 < len(rows) else "")
                  for i, (row, of) in enumerate(rows)]
        lines.append("}" + ("," if d + 1 < len(counts) else ""))
    path.write_text("\n".join(lines) + "\n}}\n", encoding="utf-8")
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path, help="the folder for result files")
    parser.add_argument("--devices", default="cuda:0,hip:0", help="devices besides the CPU")
    parser.add_argument("--only-devices", action="store_true", help="leaves out the instruction sets of the CPU")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--rows", default="", help="only these rows")
    parser.add_argument("--layouts", default="", help="only these layouts")
    parser.add_argument("--tests", default="", help="of the suites of weights, only the tests that match this pattern")
    parser.add_argument("--commit", default=None)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--chains", type=int, default=20000)
    options = parser.parse_args()
    started = time.monotonic()
    commit = options.commit or commit_name()

    missing, found, chips = {}, [], {}
    for device in filter(None, options.devices.split(",")):
        why = absent(options.build, device)
        if why is None:
            found.append(device)
        else:
            missing[device] = why
            print(f"SKIPPED {device}: {why}")
    if options.only_devices and not found:
        sys.exit("none of the devices is available")
    work = []
    only = set(filter(None, options.rows.split(",")))
    layouts = list(filter(None, options.layouts.split(",")))
    for devices in ([] if options.only_devices else [""]) + found:
        for name in PROGRAMS + (DEVICE_PROGRAMS if devices else CPU_PROGRAMS):
            program = options.build / "bin" / name
            for suite in suites(program, devices):
                row = "linear" if name in DEVICE_PROGRAMS else suite.removeprefix("Parity/")
                parts = options.jobs if name in DEVICE_PROGRAMS else 1  # its suites take minutes
                if only and row not in only:
                    continue
                pattern = pattern_of(program, suite, devices, layouts, options.tests)
                if pattern:
                    work += [(program, pattern, devices, (part, parts)) for part in range(parts)]
    work.sort(key=lambda job: bool(LONG.search(job[1])))
    chains = "Chains of random ops were left out."

    def run_in_time(*job):
        return run(*job, chips) if time.monotonic() - started < options.seconds else None

    tests, good, left_out = [], True, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(run_in_time, *job) for job in work]
        chain_run = None
        if options.chains > 0:
            chain_run = pool.submit(subprocess.run, [options.build / "bin" / "parity_chains", "--count",
                                                     str(options.chains)],
                                    env=environment(",".join(found)), capture_output=True, text=True, check=False)
        for job, future in zip(work, futures):
            part = future.result()
            if part is None:
                left_out.append(job[1].split(".")[0])
                continue
            tests += [(test, job[2]) for test in part]
            failed = [test for test in part if test.verdict == "fail"]
            for test in failed[:10]:
                print(f"FAILED {test.suite}.{test.name}: {test.message}", flush=True)
            if failed or sys.stdout.isatty():
                print(f"{job[1]} {job[2]}: {len(part)} tests, {len(failed)} failed", flush=True)
        if chain_run:
            done = chain_run.result()
            good = done.returncode == 0
            chains = "Chains of random ops: " + (done.stdout.strip().splitlines() or ["nothing was said"])[-1]
            if not good:
                print(done.stdout, done.stderr)
    seconds = time.monotonic() - started
    ran = {"rows": options.rows or "all", "layouts": options.layouts or "all"}
    if options.tests:
        ran["tests of weights"] = options.tests
    if left_out:
        ran["left out for lack of time"] = f"{len(left_out)} of {len(work)} suites, {', '.join(dict.fromkeys(left_out))}"
        print(f"{len(left_out)} of {len(work)} suites were left out: {options.seconds:.0f} s had passed")
    text, passed = summary(tests, chains, missing, options.jobs, seconds)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    if options.record:
        if not options.only_devices:
            own = [pair for pair in tests if not pair[1]]
            names = {key[3] for key in (split(*pair) for pair in own) if key}
            record(options.record, own, "cpu", names, cpu_name(), ran, seconds, commit)
        for device in found:
            if device not in chips and os.environ.get("WICK_EMU_DEVICES"):
                chips[device] = chip_name(device, "")  # gpu_linear_test doesn't name its device
            if device not in chips:
                sys.exit(f"{device}: no test said which chip it is")
            own = [pair for pair in tests if pair[1] == device]
            record(options.record, own, device, {device}, chips[device], ran, seconds, commit)
    print("\n".join(text.splitlines()[2:3]), chains, sep="\n")
    sys.exit(0 if good and passed else 1)


if __name__ == "__main__":
    main()
