#!/usr/bin/env python3
"""Lists the opcodes of each chip and what tests them.

  coverage.py --opcodes BIN/emu_opcode_tests [--write docs/emu-coverage.md] [--check] [--quick]

Compiles emu/tests/corpus/*.hip at each optimization level (--quick: one chip of each generation, -O0 and -O2) and reads the mnemonics from the
disassembly. The opcode test program lists the mnemonics that have a row in the tables (--implemented ARCH),
those that have a directed test (--list-tested), and those that LLVM knows on a chip (--known ARCH).
--check exits with 1 if the corpus has an opcode without a row or a directed test.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "emu/tests/corpus"
LEVELS = [["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"]]
QUICK_LEVELS = [["-O0"], ["-O2"]]
QUICK_CHIPS = ["gfx90a", "gfx1030", "gfx1100", "gfx1200"]
WAVE64 = ["-O2", "-mwavefrontsize64"]
# Each architecture has its own matrix instructions.
EXCEPT = {"gfx1100": ["mfma"], "gfx1101": ["mfma"], "gfx1151": ["mfma"], "gfx1030": ["mfma", "matrix"],
          "gfx1200": ["mfma", "matrix"], "gfx1201": ["mfma", "matrix"], "gfx90a": ["matrix"],
          "gfx942": ["mfma", "matrix"]}
# clang 19 doesn't know gfx950, which runs gfx942's code.
LIKE = {"gfx950": "gfx942"}
SUFFIX = re.compile(r"(_e32|_e64|_dpp|_sdwa|_e64_dpp|_dpp8)+$")


def compile_one(job):
    arch, source, flags, out = job
    subprocess.run(
        ["clang++-19", "-x", "hip", "-std=c++20", "--offload-device-only",
         "--no-gpu-bundle-output", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib",
         "-ffp-contract=off", "-Wno-everything", "-c", str(source), "-o", out] + flags, check=True)
    text = subprocess.run(["llvm-objdump-19", "-d", "--no-show-raw-insn", out], check=True,
                          capture_output=True, text=True).stdout
    return mnemonics(text)


def mnemonics(text):
    found = {}
    for line in text.splitlines():
        if not line.startswith("\t"):
            continue
        for part in line.split("//")[0].split("::"):
            words = part.split()
            if not words or not re.match(r"[a-z]", words[0]):
                continue
            name = SUFFIX.sub("", words[0])
            found[name] = found.get(name, 0) + 1
    return found


def emitted(arch, levels, folder):
    jobs = []
    for source in sorted(CORPUS.glob("*.hip")):
        if source.stem in EXCEPT[arch]:
            continue
        for i, flags in enumerate(levels if arch.startswith("gfx9") else levels + [WAVE64]):
            jobs.append((arch, source, flags, f"{folder}/{arch}_{source.stem}_{i}.o"))
    total = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(compile_one, jobs):
            for name, count in found.items():
                total[name] = total.get(name, 0) + count
    return total


def asked(program, *words, text=None):
    return set(subprocess.run([program, *words], input=text, check=True, capture_output=True,
                              text=True).stdout.split("\n"))


def single(name):
    """The instruction of a half of a dual instruction."""
    return name.replace("v_dual_", "v_", 1)


def gaps_of(arch, total, implemented, tested):
    """Opcodes of the corpus without a row or a directed test."""
    gaps = []
    for name in sorted(total):
        if single(name) not in implemented:
            gaps.append(f"{arch} {name}: missing")
        if f"{arch} {name}" not in tested:
            gaps.append(f"{arch} {name}: no directed test")
    return gaps


def cell(arch, name, total, known, tested):
    if f"{arch} {name}" not in tested and name not in known and name not in total:
        return "-"
    parts = ["D"] if f"{arch} {name}" in tested else []
    if name in total:
        parts.append(str(total[name]))
    return ", ".join(parts) or "**none**"


def write(path, program, totals, tested):
    chips = list(totals)
    names = sorted({n for total in totals.values() for n in total} | {t.split()[1] for t in tested if t})
    lines = ["# Opcodes of the emulator", "",
             "`emu/tools/coverage.py` generates this file. Its rows are the opcodes that clang emits for `emu/tests/corpus` at",
             "-O0, -O1, -O2, -O3, -Os and for waves of 64, and those with a directed test. D: the opcode has a directed test on",
             "the chip, with a reference of its own. A number: its uses in the corpus, whose results are compared with the",
             "host's on each chip. -: LLVM 19 says that the chip has no such instruction, or has it under another name. gfx950,",
             "which clang 19 doesn't know, runs gfx942's code. The corpus's kernels of matrix instructions are only those of",
             "gfx11 and gfx90a; the directed tests cover those of the other chips.", "",
             "| chip | opcodes | directed tests | in the corpus |", "|---|---|---|---|"]
    columns = {}
    for arch in chips:
        known = asked(program, "--known", arch, text="\n".join(names))
        columns[arch] = [cell(arch, n, totals[arch], known, tested) for n in names]
        cells = columns[arch]
        lines.append(f"| {arch} | {sum(c != '-' for c in cells)} | {sum('D' in c for c in cells)} | {len(totals[arch])} |")
    lines += ["", "| opcode | " + " | ".join(chips) + " |", "|---|" + "---|" * len(chips)]
    for i, name in enumerate(names):
        lines.append(f"| {name} | " + " | ".join(columns[arch][i] for arch in chips) + " |")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--opcodes", required=True)
    options.add_argument("--write")
    options.add_argument("--check", action="store_true")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--arch", action="append")
    given = options.parse_args()
    levels, chips = (QUICK_LEVELS, QUICK_CHIPS) if given.quick else (LEVELS, list(EXCEPT))
    tested = asked(given.opcodes, "--list-tested")
    totals, gaps = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for arch in given.arch or chips:
            totals[arch] = emitted(arch, levels, folder)
    for arch, like in LIKE.items():
        if like in totals:
            totals[arch] = totals[like]
    for arch, total in totals.items():
        names = "\n".join(sorted({single(n) for n in total}))
        gaps += gaps_of(arch, total, asked(given.opcodes, "--implemented", arch, text=names), tested)
    if given.write:
        write(given.write, given.opcodes, totals, tested)
    for gap in gaps:
        print(gap)
    print(", ".join(f"{arch}: {len(total)} opcodes" for arch, total in totals.items()), f"{len(gaps)} gaps")
    return 1 if given.check and gaps else 0


if __name__ == "__main__":
    sys.exit(main())
