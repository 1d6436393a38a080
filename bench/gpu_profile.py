#!/usr/bin/env python3
"""Counts the memory and LDS accesses of GPU kernels with the software AMD GPU, as JSON and a table.

Runs each case of gpu_profile (ninja gpu_profile) with the emulator's profile (make emu), as each of
--architectures, and reports what one call of the op adds:

  ratio      transactions divided by the minimum for its operands' bytes. A transaction is a segment of
             128 bytes on gfx10 and newer, and of 64 bytes on gfx9. For loops: what a loop of twice the
             length adds. The ratio is the product of traffic and scatter.
  traffic    bytes of the kernels' loads and stores divided by those of the operands. More than 1 means
             that some are read again, possibly from a cache. Scalar loads don't count.
  scatter    transactions divided by the minimum for the requested bytes
  conflicts  LDS cycles beyond the minimum, per LDS access; for loops as above
  scratch    bytes per work-item
  matrix     share of matrix instructions (WMMA, MFMA) in the issue slots of the vector ALU, of what a
             loop of twice the length adds. A matrix instruction takes the slots in which its SIMD starts
             no other one: 32 on gfx11, 8 or 16 on gfx90a; any other instruction of the vector ALU takes
             one. Scalar, memory and wait instructions issue beside them.
  VGPRs, occupancy: those of the kernel that moves most bytes; resident waves per SIMD, and the limit

Targets: ratio at most 1.05 for cases without a loop, scatter at most 1.1 for loops, matrix at least 70 %
in attention and convolutions of 16 bits, no conflicts and no scratch. Exit codes: 0 all targets met, 1
one missed, 2 could not run; 77 with --skip if there is no emulator.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATIO, SCATTER, MATRIX = 1.05, 1.1, 0.7
MATRIX_CASES = ("flash.", "gradient_", "conv.f16", "conv.bf16")


# Reasons why cases miss a target, by the start of their names.
WHY = {
    "copy_anywhere": "the 512 bytes of a wave of 32 that start inside a cache line are in five lines, not four: the "
                     "fifth line is also the next wave's first, which the cache serves",
    "few.q6_k": "high bits of a block are loaded by words, one of each row's four; nibbles go by 16 bytes",
    "many.q6_k": "a chunk's scales, 64 bytes of a column and 32 bytes of f16 d of a unit's rows, are parts of lines",
    "gemv.": "each thread block of 32 rows reads the activations again, out of the cache",
    "conv.": "a wave's pieces of 16 bytes are in the lines of 32 pixels; the next slabs take the rest of these lines "
             "out of the cache",
    "flash.bf16": "an MFMA takes a quarter of the slots of a WMMA, so the softmax and the splitting of exponentials "
                  "into three terms weigh more",
    "flash.": "the softmax and the splitting of exponentials into terms take 17 vector instructions a score",
    "gradient_": "beside its products, a score takes its exponential, and its weight and its gradient are each split "
                 "into two terms",
    "matmul.f32": "rows of a slab are parts of lines",
    "matmul.f16.large": "a slab has 64 bytes of a row, half a line: the other half comes out of the cache with the "
                        "next; deeper slabs of large tiles don't fit into registers",
    "matmul.f16.thin": "a group has 32 columns of b, 64 bytes of a row, so that there are groups enough; a's rows "
                       "come by 16 bytes a lane",
}


class Failed(Exception):
    pass


def profile(args, architecture, case, times, scale):
    """Returns the counts of one run by kernel, and the bytes that an op must move."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "profile.json"
        env = dict(os.environ, WICK_HIP_LIBRARY=str(args.library), WICK_EMU_DEVICES=architecture,
                   WICK_EMU_PROFILE=str(file), WICK_EMU_THREADS="1")
        env.pop("WICK_EMU_CHECK", None)
        run = subprocess.run([args.program, "hip:0", case, str(times), str(scale)], env=env,
                             capture_output=True, text=True)
        if run.returncode != 0:
            raise Failed(f"{case} on {architecture}: {run.stderr.strip()}")
        kernels = json.loads(file.read_text())["kernels"]
    if case.startswith(MATRIX_CASES) and "matrix_cycles" not in kernels[0]:
        raise Failed("the emulator is older than this script: make emu")
    return {k["name"]: k for k in kernels}, json.loads(run.stdout)["bytes"]


def counts(kernel, line):
    memory = kernel["global"]
    return {"asked": memory["load_bytes"] + memory["store_bytes"],
            "transactions": memory[f"transactions_{line}"], "accesses": kernel["lds"]["accesses"],
            "conflicts": kernel["lds"]["conflict_cycles"], "launches": kernel["launches"],
            "instructions": kernel["instructions"]["total"], "valu": kernel["instructions"]["valu"],
            "matrix_cycles": kernel.get("matrix_cycles", 0)}


NOTHING = dict.fromkeys(("asked", "transactions", "accesses", "conflicts", "launches",
                         "instructions", "valu", "matrix_cycles"), 0)


def one_call(args, architecture, case, scale, line, prefix):
    """Returns what the second of two calls adds, for each kernel whose name starts with `prefix`."""
    once, bytes_moved = profile(args, architecture, case, 1, scale)
    twice, _ = profile(args, architecture, case, 2, scale)
    result = {}
    for name, kernel in twice.items():
        before = counts(once[name], line) if name in once else NOTHING
        added = {key: value - before[key] for key, value in counts(kernel, line).items()}
        if added["launches"] > 0 and name.startswith(prefix):
            result[name] = (added, kernel)
    return result, bytes_moved


def total(kernels):
    return {key: sum(added[key] for added, _ in kernels.values()) for key in NOTHING}


def matrix_share(sums, architecture):
    # A SIMD starts a vector instruction of a wave of 64 every four cycles, of a wave of 32 every cycle.
    slots = sums["matrix_cycles"] / (4 if architecture.startswith("gfx9") else 1)
    return slots / max(slots + sums["valu"], 1)


def measure(args, architecture, case, loop, prefix):
    line = 64 if architecture.startswith("gfx9") else 128
    kernels, bytes_moved = one_call(args, architecture, case, 1, line, prefix)
    sums = total(kernels)
    if loop:
        longer, longer_bytes = one_call(args, architecture, case, 2, line, prefix)
        more = total(longer)
        sums = {key: more[key] - value for key, value in sums.items()}
        bytes_moved = longer_bytes - bytes_moved
        kernels = longer
    row = {"case": case, "architecture": architecture, "loop": loop, "bytes": bytes_moved,
           "kernels": sorted(kernels), "instructions": sums["instructions"],
           "ratio": round(sums["transactions"] * line / bytes_moved, 3),
           "traffic": round(sums["asked"] / bytes_moved, 3),
           "scatter": round(sums["transactions"] * line / sums["asked"], 3),
           "conflicts": round(sums["conflicts"] / max(sums["accesses"], 1), 3),
           "conflict_cycles": sums["conflicts"],
           "matrix": round(matrix_share(sums, architecture), 3),
           "scratch": max(kernel["scratch_bytes"] for _, kernel in kernels.values())}
    _, main_kernel = max(kernels.values(), key=lambda k: k[0]["asked"])
    row.update(kernel=main_kernel["name"], vgprs=main_kernel["vgprs"],
               lds_bytes=main_kernel["lds_bytes"], occupancy=main_kernel["occupancy"])
    row["missed"] = [name for name, missed in (
        ("ratio", not loop and row["ratio"] > RATIO), ("scatter", row["scatter"] > SCATTER),
        ("matrix", case.startswith(MATRIX_CASES) and row["matrix"] < MATRIX),
        ("conflicts", row["conflict_cycles"] > 0), ("scratch", row["scratch"] > 0)) if missed]
    return row


def with_scratch(folder):
    """Returns the kernels that use scratch, as {bytes: names}, of all images of an architecture."""
    found = {}
    for file in sorted(folder.iterdir()):
        with open(file, "rb") as image:
            if image.read(4) != b"\x7fELF":
                continue
        notes = subprocess.run(["llvm-readelf-19", "--notes", file], capture_output=True, text=True,
                               check=True).stdout
        for scratch, name in re.findall(r"\.private_segment_fixed_size: (\d+).*?\.symbol: +(\w+)\.kd",
                                        notes, re.DOTALL):
            if int(scratch) > 0:
                found.setdefault(int(scratch), []).append(name)
    return found


def scratch_text(args):
    parts = ["## Kernels with scratch\n"]
    for architecture in args.architectures.split(","):
        found = with_scratch(args.images / architecture)
        parts += [f"- {architecture}, {scratch} bytes: {', '.join(found[scratch])}" for scratch in sorted(found)]
        if not found:
            parts.append(f"- {architecture}: none")
    return "\n".join(parts) + "\n"


def table(rows):
    lines = ["| case | kernel | ratio | traffic | scatter | conflicts | matrix | scratch | VGPRs | occupancy |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        def cell(name, text):
            return f"**{text}**" if name in r["missed"] else text
        lines.append(
            f"| {r['case']}{', its loop' if r['loop'] else ''} | {r['kernel']} "
            f"| {cell('ratio', r['ratio'])} | {r['traffic']} | {cell('scatter', r['scatter'])} "
            f"| {cell('conflicts', r['conflicts'])} "
            f"| {cell('matrix', format(r['matrix'], '.0%') if r['matrix'] > 0 else '')} "
            f"| {cell('scratch', r['scratch'])} "
            f"| {r['vgprs']} | {r['occupancy']:.0%} |")
    return "\n".join(lines)


def text_of(rows, date):
    parts = [f"# What GPU kernels ask of memory and LDS, {date}\n",
             "Counted by the software AMD GPU: `bench/gpu_profile.py`, which says what the columns are. "
             "Bold: beyond the\ntarget. A ratio holds all accesses against the operands' bytes, so what a cache "
             "serves counts, too.\n"]
    for architecture in dict.fromkeys(r["architecture"] for r in rows):
        parts += [f"## {architecture}\n", table([r for r in rows if r["architecture"] == architecture]), ""]
    missed = list(dict.fromkeys(r["case"] for r in rows if r["missed"]))
    reasons = {case: max((name for name in WHY if case.startswith(name)), key=len, default=None) for case in missed}
    if missed:
        parts.append("## Why\n")
        for name in dict.fromkeys(reasons.values()):
            cases = ", ".join(case for case in missed if reasons[case] == name)
            parts.append(f"- {cases}: {WHY.get(name, 'not known yet')}")
        parts.append("")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/gpu_profile")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/emu/lib/libamdhip64.so.6")
    parser.add_argument("--architectures", default="gfx1100,gfx90a")
    parser.add_argument("--cases", help="names of the cases to run (default: all)")
    parser.add_argument("--images", type=pathlib.Path,
                        help="also list the kernels with scratch of all images in this folder "
                             "(build/release/wick/backend/gpu/kernels)")
    parser.add_argument("--skip", action="store_true", help="exit with 77 (skip) if there is no emulator")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, help="write OUT.json and OUT.md")
    args = parser.parse_args()
    for path, target in ((args.program, "ninja gpu_profile"), (args.library, "make emu")):
        if not path.exists():
            print(f"gpu_profile.py: no {path}: {target}", file=sys.stderr)
            return 77 if args.skip and path == args.library else 2
    listed = [line.split(",") for line in subprocess.run([args.program, "--list"], capture_output=True,
                                                      text=True, check=True).stdout.splitlines()]
    wanted = args.cases.split(",") if args.cases else [name for name, _, _ in listed]
    kinds = {name: (kind == "loop", prefix) for name, kind, prefix in listed}
    if unknown := [name for name in wanted if name not in kinds]:
        print(f"gpu_profile.py: no such case: {', '.join(unknown)}", file=sys.stderr)
        return 2
    jobs = [(args, a, name, *kinds[name]) for a in args.architectures.split(",") for name in wanted]
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            rows = list(pool.map(lambda job: measure(*job), jobs))
    except Failed as error:
        print(f"gpu_profile.py: {error}", file=sys.stderr)
        return 2
    date = datetime.date.today().isoformat()
    text = text_of(rows, date)
    if args.images:
        text += "\n" + scratch_text(args)
    print(text)
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps({"date": date, "rows": rows}, indent=1) + "\n")
        args.out.with_suffix(".md").write_text(text)
    missed = [f"{r['case']} on {r['architecture']}: {', '.join(r['missed'])}" for r in rows if r["missed"]]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
