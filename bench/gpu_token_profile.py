#!/usr/bin/env python3
"""Counts what a GPU executes for each token that SmolLM2-135M (Q4_1) generates, with the software AMD
GPU, as JSON and a table.

Runs `wick generate` (ninja wick_cli) with the emulator's profile (make emu), as each of --architectures,
for a prompt of five tokens and 8 and then 16 generated tokens. The difference, divided by 8, is what a
token at a depth of about 17 costs. An instruction is one of a wave. Transactions are segments of 64
bytes. Targets on gfx1100: 10.5 million instructions, 2.5 million of them in attention. Exit codes: 0
targets met, 1 one missed, 2 could not run.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import fetch_model  # noqa: E402

SHORT, LONG = 8, 16
PROMPT = "The capital of France is"
MOST = {"all": 10.5e6, "attention": 2.5e6}  # instructions, on gfx1100


class Failed(Exception):
    pass


def generate(args, architecture, tokens):
    """Returns the profile of all kernels by name."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "profile.json"
        env = dict(os.environ, WICK_HIP_LIBRARY=str(args.library), WICK_EMU_DEVICES=architecture,
                   WICK_EMU_PROFILE=str(file), WICK_EMU_THREADS="1")
        env.pop("WICK_EMU_CHECK", None)
        run = subprocess.run([args.wick, "generate", "-m", args.model, "--device", "hip:0", "-p", PROMPT,
                              "-n", str(tokens), "--temp", "0", "--ignore-eos"], env=env,
                             capture_output=True, text=True)
        if run.returncode != 0:
            raise Failed(f"{architecture}: {run.stderr.strip()}")
        return {k["name"]: k for k in json.loads(file.read_text())["kernels"]}


def counts(kernel):
    memory = kernel["global"]
    return {"launches": kernel["launches"], "waves": kernel["waves"],
            "instructions": kernel["instructions"]["total"], "matrix": kernel["instructions"]["matrix"],
            "bytes": memory["load_bytes"] + memory["store_bytes"],
            "transactions": memory["transactions_64"],
            "conflict_cycles": kernel["lds"]["conflict_cycles"]}


def measure(args, architecture):
    before, after = (generate(args, architecture, tokens) for tokens in (SHORT, LONG))
    rows = []
    for name, kernel in after.items():
        of = counts(kernel)
        base = counts(before[name]) if name in before else dict.fromkeys(of, 0)
        row = {key: (value - base[key]) / (LONG - SHORT) for key, value in of.items()}
        if row["launches"] > 0:
            rows.append({"kernel": name, "vgprs": kernel["vgprs"], "scratch": kernel["scratch_bytes"],
                         **row})
    rows.sort(key=lambda row: -row["instructions"])

    def total(prefix):
        some = [row for row in rows if row["kernel"].startswith(prefix)]
        return {key: sum(row[key] for row in some) for key in of}

    return {"architecture": architecture, "kernels": rows, "all": total(""),
            "attention": total("decode")}


def text_of(result):
    def line(name, row):
        return (f"| {name} | {row['launches']:.0f} | {row['waves']:.0f} "
                f"| {row['instructions'] / 1e6:.2f} M | {row['bytes'] / 1e6:.1f} MB "
                f"| {row['transactions'] / 1e6:.3f} M | {row['conflict_cycles']:.0f} |")

    return "\n".join([f"## {result['architecture']}\n",
                      "| kernel | launches | waves | instructions | bytes | transactions | bank conflicts |",
                      "|---|---|---|---|---|---|---|",
                      *(line(row["kernel"], row) for row in result["kernels"]),
                      line("all", result["all"]), ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wick", type=pathlib.Path, default=ROOT / "build/release/bin/wick")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/emu/lib/libamdhip64.so.6")
    parser.add_argument("--model", type=pathlib.Path, help="the model's file (default: fetched)")
    parser.add_argument("--architectures", default="gfx1100,gfx90a")
    parser.add_argument("--out", type=pathlib.Path, help="write OUT.json and OUT.md")
    args = parser.parse_args()
    for path, target in ((args.wick, "ninja wick_cli"), (args.library, "make emu")):
        if not path.exists():
            print(f"gpu_token_profile.py: no {path}: {target}", file=sys.stderr)
            return 2
    try:
        args.model = args.model or fetch_model.fetch()
        results = [measure(args, architecture) for architecture in args.architectures.split(",")]
    except (Failed, fetch_model.FetchError) as error:
        print(f"gpu_token_profile.py: {error}", file=sys.stderr)
        return 2
    text = "\n".join(text_of(result) for result in results)
    print(text)
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        args.out.with_suffix(".md").write_text(text)
    missed = [f"{result['architecture']}: {of}: {result[of]['instructions'] / 1e6:.2f} M instructions"
              for result in results if result["architecture"] == "gfx1100"
              for of, most in MOST.items() if result[of]["instructions"] > most]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
