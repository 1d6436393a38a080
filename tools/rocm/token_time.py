"""The time of a token of SmolLM2 behind AMD's runtime and on the emulator's own front end, measured in alternation."""

import datetime
import json
import os
import statistics

from rocm.errors import RocmError
from rocm.machine import Machine
from rocm.processes import Process
from rocm.suites import reason

TOKENS = 8
MOST_SECONDS = 600  # for one process
TARGET = 1.2  # the most times longer that a token may take behind AMD's runtime
SIDES = ("amd", "own")
# A thread computes, and no accesses are checked: the hook behind AMD's runtime has no checks.
ENVIRONMENT = {"WICK_EMU_THREADS": "1", "WICK_EMU_CHECK": "none"}


HEAD = f"""
## The time of a token

`tools/real_rocm.py token` runs `wick bench` with SmolLM2-135M Q4_1 in alternation behind AMD's runtime and on the emulator's own,
with one thread of the emulator and no checks. Times are the median of the rounds (least to most) for a token, {TOKENS} tokens
from an empty cache. The ratio is the median of the rounds' ratios; the target is at most {TARGET}.

| HIP | chip | AMD's runtime, ms | the emulator's own, ms | ratio | rounds | load | date |
|---|---|---|---|---|---|---|---|
"""
# What was found about the times, by hand.
EXPLAINED = """
Behind AMD's runtime, three threads poll while the emulator's thread computes: the program's, which waits in ROCr, and two of ROCr's
(seen with a debugger, with `HSA_ENABLE_INTERRUPT=1` too). The emulator therefore
[lowers their priority](../emu/README.md#behind-amds-own-runtime). Without that, a token takes 3 to 6 times as long on two cores as on
the emulator's own runtime, whose threads sleep while they wait.
"""


class Timer:
    """Runs `wick bench` on a chip with either side's HIP."""

    def __init__(self, machine, wick, emulator, model):
        self.machine, self.wick, self.emulator, self.model = machine, wick, emulator, model

    def milliseconds(self, side):
        """Of a token: the mean of TOKENS tokens from an empty cache, after as many that aren't measured."""
        words = ["bench", "-m", self.model, "--device", "hip:0", "-p", "0", "-n", TOKENS, "-r", 1, "-t", 1, "--json"]
        if side == "amd":
            command, env = self.machine.command(self.wick, words), self.machine.environment(ENVIRONMENT)
        else:
            env = dict(os.environ, WICK_HIP_LIBRARY=str(self.emulator / "lib" / "libamdhip64.so.6"),
                       WICK_EMU_DEVICES=self.machine.chips[0], **ENVIRONMENT)
            command = [str(word) for word in (self.wick, *words)]
        process = Process(command, env, MOST_SECONDS)
        lines = list(process.lines())
        if process.child.returncode != 0:
            raise RocmError(f"wick bench, {side}: {process.end()}: {reason(lines)}")
        text = "\n".join(lines)
        rows = json.loads(text[text.index("{"):text.rindex("}") + 1])["rows"]
        return 1000 / next(row["tps"] for row in rows if row["test"] == f"tg{TOKENS}")


def measure(timer, release, chip, rounds):
    """A row of results: the times of each round, and the machine's load before it."""
    row = {"suite": "token", "release": release, "chip": chip, "date": str(datetime.date.today()),
           "cores": len(os.sched_getaffinity(0)), "load": [], **{side: [] for side in SIDES}}
    for number in range(rounds):
        row["load"].append(round(os.getloadavg()[0], 2))
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            row[side].append(round(timer.milliseconds(side), 1))
    return row


def run(releases, chips, wick, emulator, model, rounds):
    """Yields a row for each release and chip. releases: a dictionary of the folders of each."""
    for release, folders in releases.items():
        for chip in chips:
            with Machine(folders, emulator, [chip], [wick.parent.parent / "lib"]) as machine:
                yield measure(Timer(machine, wick, emulator, model), release, chip, rounds)


def ratio(row):
    """The median of the rounds' ratios: load that lasts for a round slows both of its sides."""
    return statistics.median(amd / own for amd, own in zip(row["amd"], row["own"]))


def line(row):
    return (f"{row['release']} {row['chip']}: {ratio(row):.2f}; AMD's runtime {row['amd']} ms, the emulator's {row['own']} ms, "
            f"load {row['load']} on {row['cores']} cores")


def times(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def table(rows):
    """The section of docs/amd.md; nothing without results."""
    if not rows:
        return ""
    text = HEAD
    for row in rows:
        share = f"{ratio(row):.2f}" if ratio(row) <= TARGET else f"**{ratio(row):.2f}**"
        load = f"{min(row['load']):.1f} to {max(row['load']):.1f} on {row['cores']} cores"
        text += (f"| {row['release']} | {row['chip']} | {times(row['amd'])} | {times(row['own'])} | {share} | {len(row['amd'])} "
                 f"| {load} | {row['date']} |\n")
    return text + EXPLAINED
