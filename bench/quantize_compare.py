#!/usr/bin/env python3
"""Compares the errors of `wick quantize` with those of llama.cpp's quantisers on the same weights.

The weights are normal, heavy-tailed (Student's t, 4 degrees of freedom) and those of a model. The error
of a tensor is the root of the mean square of value - weight; with an importance matrix, columns are
weighted by it. wick runs as the command, on a GGUF file; llama.cpp's ggml_quantize_chunk is called in
the library that --ggml names (libggml-base.so of a build of llama.cpp with shared libraries). Both
results are decoded by PyPI's gguf. Needs numpy and gguf. Prints a Markdown table of the largest ratio
wick / llama.cpp of all tensors. Exits with 1 if a ratio is above 1.02, with 2 if something can't run.
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

LIMIT = 1.02
TYPES = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
         "iq4_xs", "mxfp4"]


def number(name):
    return gguf.GGMLQuantizationType[name.upper()]


def block(name):
    return gguf.GGML_QUANT_SIZES[number(name)][0]


class Peer:
    """llama.cpp's quantisers."""

    def __init__(self, library):
        self.chunk = ctypes.CDLL(library).ggml_quantize_chunk
        pointer = ctypes.POINTER(ctypes.c_float)
        self.chunk.argtypes = [ctypes.c_int, pointer, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                               ctypes.c_int64, pointer]
        self.chunk.restype = ctypes.c_size_t

    def values(self, name, weights, importance):
        rows, k = weights.shape
        values_per_block, size = gguf.GGML_QUANT_SIZES[number(name)]
        out = np.zeros((rows, k // values_per_block * size), np.uint8)
        floats = ctypes.POINTER(ctypes.c_float)
        weights = np.ascontiguousarray(weights, np.float32)
        columns = None if importance is None else np.ascontiguousarray(importance, np.float32)
        pointer = None if columns is None else columns.ctypes.data_as(floats)
        self.chunk(int(number(name)), weights.ctypes.data_as(floats), out.ctypes.data, 0, rows, k, pointer)
        return gguf.quants.dequantize(out, number(name))


def write_importance(path, importance):
    writer = gguf.GGUFWriter(path, "")
    writer.add_string("general.type", "imatrix")
    for name, columns in importance.items():
        writer.add_tensor(name + ".in_sum2", columns.astype(np.float32).reshape(1, -1))
        writer.add_tensor(name + ".counts", np.ones((1, 1), np.float32))
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Wick:
    """The command, on files with all tensors of a data set."""

    def __init__(self, command, folder):
        self.command, self.folder = command, Path(folder)

    def values(self, name, tensors, importance):
        source, target = self.folder / "in.gguf", self.folder / "out.gguf"
        writer = gguf.GGUFWriter(source, "llama")
        for tensor, weights in tensors.items():
            writer.add_tensor(tensor, np.ascontiguousarray(weights, np.float32))
        finish(writer)
        options = ["--tensor-type", f"*={name}"]
        if importance is not None:
            write_importance(self.folder / "imatrix.gguf", importance)
            options += ["--imatrix", self.folder / "imatrix.gguf"]
        subprocess.run([self.command, "quantize", source, target, "q8_0", *options], check=True,
                       stdout=subprocess.DEVNULL)
        found = {}
        for tensor in gguf.GGUFReader(target).tensors:
            assert tensor.tensor_type == number(name), (tensor.name, tensor.tensor_type)
            found[tensor.name] = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        return found


def error(values, weights, importance):
    squares = (values.astype(np.float64) - weights) ** 2
    if importance is not None:
        squares = squares * importance
    return float(np.sqrt(squares.mean()))


def normal_data(random, rows, k):
    return {f"blk.{i}.attn_q.weight": random.normal(0, 0.02, (rows, k)) for i in range(2)}


def heavy_data(random, rows, k):
    return {f"blk.{i}.attn_q.weight": 0.02 * random.standard_t(4, (rows, k)) for i in range(2)}


def model_data(path, layers):
    tensors = {}
    for tensor in gguf.GGUFReader(path).tensors:
        parts = tensor.name.split(".")
        if parts[0] == "blk" and int(parts[1]) in layers and len(tensor.shape) == 2:
            tensors[tensor.name] = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return tensors


def model_importance(options, folder):
    """The importance matrix of a model on a text, by `wick imatrix`."""
    out = Path(folder) / "model-imatrix.gguf"
    subprocess.run([options.wick, "imatrix", "-m", options.model, "-f", options.text, "-o", out, "--chunks",
                    "4"], check=True, stdout=subprocess.DEVNULL)
    tensors = {t.name: t.data for t in gguf.GGUFReader(out).tensors}
    return {name[:-len(".in_sum2")]: np.asarray(sums).reshape(-1) / float(tensors[name[:-8] + ".counts"].max())
            for name, sums in tensors.items() if name.endswith(".in_sum2")}


def test_data():
    """The data of tests/backend/search_test.cpp: normal, heavy-tailed and importance."""
    rows, k = 16, 1024
    raw = np.random.MT19937()
    raw._legacy_seeding(7)
    uniform = lambda count: raw.random_raw(count).astype(np.float64) / 4294967296.0
    gauss = lambda count: uniform(12 * count).reshape(count, 12).cumsum(axis=1)[:, -1] - 6
    normal = (0.02 * gauss(rows * k)).reshape(rows, k)
    parts = gauss(5 * rows * k).reshape(rows * k, 5)
    heavy = (0.02 * parts[:, 0] / np.sqrt((parts[:, 1:] ** 2).sum(axis=1) / 4)).reshape(rows, k)
    return normal.astype(np.float32), heavy.astype(np.float32), np.exp(1.5 * gauss(k)).astype(np.float32)


def print_test_figures(peer):
    """The peer's relative errors, for tests/backend/search_figures.inc."""
    normal, heavy, importance = test_data()
    for name in TYPES:
        if name == "q8_0":
            continue
        figures = []
        for weights in (normal, heavy):
            for columns in (None, importance):
                values = peer.values(name, weights, columns)
                zeros = np.zeros_like(weights)
                figures.append(error(values, weights, columns) / error(zeros, weights, columns))
        print(f"    {{DType::{name}, " + ", ".join(f"{f:.6g}" for f in figures) + "},")


def compare(peer, wick, data, name):
    """The largest ratios of a data set's tensors: plain, and with the importance matrix."""
    tensors = {n: w for n, w in data["tensors"].items() if w.shape[1] % block(name) == 0}
    ratios = []
    for use_importance in (False, True):
        importance = {n: data["importance"][n] for n in tensors} if use_importance else None
        found = wick.values(name, tensors, importance)
        worst, exact = 0.0, True
        for tensor, weights in tensors.items():
            columns = importance[tensor] if use_importance else None
            theirs = error(peer.values(name, weights, columns), weights, columns)
            ours = error(found[tensor], weights, columns)
            # Weights that come from blocks of this type are representable but for roundings: then the
            # ratio of two roundings says nothing.
            negligible = 1e-3 * error(np.zeros_like(weights), weights, columns)
            if max(ours, theirs) > negligible:
                worst, exact = max(worst, ours / theirs), False
        ratios.append(None if exact else worst)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wick", default="build/release/bin/wick")
    parser.add_argument("--ggml", required=True, metavar="LIBRARY")
    parser.add_argument("--model", help="a GGUF file with weights to compare")
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="for its importance matrix")
    parser.add_argument("--layers", type=int, nargs="*", default=[0, 10, 20])
    parser.add_argument("--types", nargs="*", default=TYPES)
    parser.add_argument("--test-data", action="store_true", help="print the peer's figures for search_test")
    options = parser.parse_args()
    peer = Peer(options.ggml)
    if options.test_data:
        print_test_figures(peer)
        return 0
    random = np.random.default_rng(1)
    data = {"normal": {"tensors": normal_data(random, 64, 4096)},
            "heavy-tailed": {"tensors": heavy_data(random, 64, 4096)}}
    for of in data.values():
        of["importance"] = {n: random.lognormal(0, 1.5, w.shape[1]) for n, w in of["tensors"].items()}
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        if options.model:
            data["model"] = {"tensors": model_data(options.model, options.layers),
                             "importance": model_importance(options, folder)}
        wick = Wick(options.wick, folder)
        print("| type |" + "".join(f" {name} | {name}, importance |" for name in data))
        print("|---|" + "---|" * 2 * len(data))
        for name in options.types:
            ratios = [ratio for of in data.values() for ratio in compare(peer, wick, of, name)]
            worst = max([worst] + [ratio for ratio in ratios if ratio is not None])
            cells = ["exact" if ratio is None else f"{ratio:.3f}" for ratio in ratios]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nLargest ratio {worst:.3f}, limit {LIMIT}")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as failure:
        print(f"quantize_compare: {failure}", file=sys.stderr)
        sys.exit(2)
