"""Shared code of the benchmark scripts: paths, and running and measuring child processes."""

import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench" / "peers")]

import fetch_model  # noqa: E402
import llama_cpp  # noqa: E402

# Instruction sets that determine the speed of kernels.
FLAGS_OF_INTEREST = ["avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni",
                     "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16", "amx_fp16",
                     "asimddp", "i8mm", "bf16", "sve", "sve2"]


class BenchError(Exception):
    """A failure that the user can fix; its text is one line."""


def default_wick():
    return ROOT / "build" / "release" / "bin" / "wick"


def add_wick_option(parser):
    parser.add_argument("--wick", type=lambda p: Path(p).resolve(), default=default_wick(),
                        help="the wick binary (default: build/release/bin/wick)")


def check_wick(path):
    if not os.access(path, os.X_OK):
        raise BenchError(f"no wick binary at {path}: build it, or name one with --wick")
    return path


def peer():
    """Returns {name: path} of the peer's binaries, which the first call builds."""
    return llama_cpp.ensure()["binaries"]


class Child:
    """A finished child process: its output, wall time from exec to exit, and peak resident memory."""

    def __init__(self, command):
        command = [str(word) for word in command]
        # Output goes to files, not pipes, so that nobody has to read it during the measurement.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            busy_before = busy_seconds()
            started = time.perf_counter_ns()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            # wait4 returns this child's own usage; getrusage(RUSAGE_CHILDREN) returns the maximum
            # over all children.
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                # A stopped benchmark must not leave a process that disturbs the next one.
                process.kill()
                process.wait()
                raise
            self.wall_ms = (time.perf_counter_ns() - started) / 1e6
            wall_s = self.wall_ms / 1e3
            others_s = busy_seconds() - busy_before - usage.ru_utime - usage.ru_stime
            # The number of cores that other processes kept busy, which makes a figure doubtful. The
            # clock of /proc/stat ticks every 10 ms on each CPU, so two ticks may be noise.
            self.others_cores = max(0.0, (others_s - 0.02) / wall_s)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.stdout = out.read().decode("utf-8", "replace")
            self.stderr = err.read().decode("utf-8", "replace")
        self.peak_bytes = usage.ru_maxrss * 1024
        if process.returncode != 0:
            last = (self.stderr.strip().splitlines() or ["(no message)"])[-1]
            raise BenchError(f"{' '.join(command)}: exit code {process.returncode}: {last}")

    def checked_peak_bytes(self):
        """Returns the peak resident memory of the child alone."""
        # Linux carries over the peak memory of the process that calls exec, which is this Python
        # process. A figure that isn't above our own peak therefore says nothing about the child.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if self.peak_bytes <= own:
            raise BenchError(f"peak memory hidden below the benchmark's own {own >> 20} MiB")
        return self.peak_bytes

    def json(self):
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise BenchError(f"no JSON in the output: {error}: {self.stdout[:120]!r}") from None


def busy_seconds():
    """Returns the CPU time of all processes since boot (0 if /proc/stat is missing)."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def warm_page_cache(path):
    """Reads the file in small pieces, since this process must stay small: see Child.checked_peak_bytes."""
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        while file.readinto(buffer):
            pass


def first_line(command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, cwd=ROOT)
    except OSError:
        return ""
    return (result.stdout.splitlines() or [""])[0]


def cpu_name_and_flags():
    name, flags = platform.machine(), []
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = (part.strip() for part in line.partition(":"))
                if key == "model name":
                    name = value
                elif key in ("flags", "Features"):
                    flags = value.split()
                    break
    except OSError:
        pass
    return name, [flag for flag in FLAGS_OF_INTEREST if flag in flags]


def cpu_generation():
    """Returns family and model, because hypervisors shorten the name to something like "AMD EPYC"."""
    values = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = (part.strip() for part in line.partition(":"))
                if key in ("cpu family", "model", "stepping"):
                    values.setdefault(key, value)
    except OSError:
        pass
    return " ".join(f"{key.split()[-1]} {value}" for key, value in values.items())


def machine():
    """Returns the facts about the machine that a reader needs to interpret a figure."""
    name, flags = cpu_name_and_flags()
    commit = first_line(["git", "rev-parse", "--short=12", "HEAD"])
    if commit and first_line(["git", "status", "--porcelain", "--untracked-files=no"]):
        commit += " + changes"
    return {
        "cpu": name,
        "cpu_generation": cpu_generation(),
        "cpus": len(os.sched_getaffinity(0)),
        "flags": flags,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "compiler": first_line(["c++", "--version"]),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()) + " UTC",
        "commit": commit,
        "peer": f"llama.cpp ({llama_cpp.PACKAGE} {llama_cpp.VERSION})",
        "load_1min": round(os.getloadavg()[0], 2),
    }


def write_results(report, markdown, folder, suffix=""):
    """Writes a report as JSON and its table to <date>-<cpu><suffix>.json and .md. Returns the table's path.
    Both files get a temporary name first, so that an interrupted run leaves no incomplete file."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = report["machine"]
    slug = re.sub(r"[^a-z0-9]+", "-", f"{facts['cpu']} {facts['cpu_generation']}".lower())
    stem = f"{facts['date'][:10]}-{slug.strip('-')}{suffix}"
    for ending, text in ((".json", json.dumps(report, indent=1) + "\n"), (".md", markdown)):
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(folder / (stem + ending))
    return folder / (stem + ".md")


def run_main(main):
    """Runs a script's main. An expected failure gives one line on stderr and exit code 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except (BenchError, llama_cpp.PeerError, fetch_model.FetchError, OSError) as error:
        print(f"{Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{Path(sys.argv[0]).stem}: interrupted", file=sys.stderr)
        sys.exit(130)
