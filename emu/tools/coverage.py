#!/usr/bin/env python3
"""Compares the opcodes that the compiler emits for the corpus with the implemented and tested ones.

  coverage.py --opcodes BIN/emu_opcode_tests [--write docs/emu-coverage.md] [--check]

Compiles emu/tests/corpus/*.hip at each optimization level and reads the mnemonics from the
disassembly. The opcode test program lists the mnemonics that have a row in the tables (--implemented ARCH)
and those that have a directed test (--list-tested). --check exits with 1 if the corpus has an opcode without either.
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
LEVELS = [["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", "-mwavefrontsize64"]]
# Each architecture has its own matrix instructions.
EXCEPT = {"gfx1100": ["mfma"], "gfx90a": ["matrix"], "gfx942": ["mfma", "matrix"], "gfx1200": ["mfma", "matrix"],
          "gfx1030": ["mfma", "matrix"], "gfx1101": ["mfma"], "gfx1151": ["mfma"], "gfx1201": ["mfma", "matrix"]}
# An instruction counts as tested on an architecture if it has a directed test on one of these others.
LIKE = {"gfx942": ["gfx90a"], "gfx1200": ["gfx1100"], "gfx1030": ["gfx90a", "gfx1100"], "gfx1101": ["gfx1100"],
        "gfx1151": ["gfx1100", "gfx1200"], "gfx1201": ["gfx1200", "gfx1100"]}
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


def emitted(arch, folder):
    jobs = []
    for source in sorted(CORPUS.glob("*.hip")):
        if source.stem in EXCEPT[arch]:
            continue
        for i, flags in enumerate(LEVELS):
            if arch.startswith("gfx9"):
                flags = [f for f in flags if f != "-mwavefrontsize64"]
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


def table(arch, total, implemented, tested):
    rows = []
    for name in sorted(total):
        single = name.replace("v_dual_", "v_") if name.startswith("v_dual_") else name
        state = "implemented" if single in implemented else "**missing**"
        checked = "tested" if f"{arch} {name}" in tested else "**untested**"
        for like in LIKE.get(arch, []):
            if "**" in checked and f"{like} {name}" in tested:
                checked = f"tested on {like}"
        rows.append((name, total[name], state, checked))
    return rows


def write(path, tables):
    lines = ["# Opcodes of the emulator", "",
             "`emu/tools/coverage.py` generates this file. It lists the opcodes that clang emits for",
             "`emu/tests/corpus` at -O0, -O1, -O2, -O3, -Os and for waves of 64. \"Tested\" means that the",
             "opcode has a directed test. The results of the corpus are also compared with the host's on gfx1100,",
             "gfx90a, gfx942, gfx1030, gfx1151 and gfx1200. The corpus's kernels of matrix instructions are only",
             "those of gfx11 and gfx90a; the directed tests cover those of gfx942, gfx950 and gfx1200.", ""]
    for arch, rows in tables.items():
        missing = sum("missing" in r[2] for r in rows)
        untested = sum("untested" in r[3] for r in rows)
        lines += [f"## {arch}", "",
                  f"{len(rows)} opcodes, {missing} missing, {untested} without a directed test.", "",
                  "| opcode | uses | | |", "|---|---|---|---|"]
        lines += [f"| {n} | {c} | {s} | {t} |" for n, c, s, t in rows]
        lines.append("")
    pathlib.Path(path).write_text("\n".join(lines))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--opcodes", required=True)
    options.add_argument("--write")
    options.add_argument("--check", action="store_true")
    options.add_argument("--arch", action="append")
    given = options.parse_args()
    tested = asked(given.opcodes, "--list-tested")
    tables, gaps = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for arch in given.arch or EXCEPT:
            total = emitted(arch, folder)
            names = "\n".join(sorted({n.replace("v_dual_", "v_") for n in total}))
            implemented = asked(given.opcodes, "--implemented", arch, text=names)
            tables[arch] = table(arch, total, implemented, tested)
            for name, _, state, checked in tables[arch]:
                if "**" in state or "**" in checked:
                    gaps.append(f"{arch} {name}: {state} {checked}")
    if given.write:
        write(given.write, tables)
    for gap in gaps:
        print(gap.replace("*", ""))
    print(", ".join(f"{arch}: {len(rows)} opcodes" for arch, rows in tables.items()),
          f"{len(gaps)} gaps")
    return 1 if given.check and gaps else 0


if __name__ == "__main__":
    sys.exit(main())
