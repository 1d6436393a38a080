#!/usr/bin/env python3
"""Compares the errors of `wick quantize` with those of llama.cpp's quantisers on the same weights.

The weights are normal, heavy-tailed (Student's t, 4 degrees of freedom) and those of a model. The error
of a tensor is the root of the mean square of value - weight; with an importance matrix, columns are
weighted by it. wick runs as the command, on a GGUF file; llama.cpp's ggml_quantize_chunk is called in
the library that --ggml names (libggml-base.so of a build of llama.cpp with shared libraries). Both
results are decoded by PyPI's gguf, or here for types that it doesn't have. Needs numpy and gguf. Prints a Markdown
table of the largest ratio
wick / llama.cpp of all tensors. Exits with 1 if a ratio is above 1.02, with 2 if something can't run.
"""

import argparse
import ctypes
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

LIMIT = 1.02
TYPES = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq2_xxs", "iq2_xs",
         "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "iq1_m", "tq1_0", "tq2_0", "mxfp4", "nvfp4",
         "q1_0", "q2_0"]
# wick quantises these with an importance matrix only; llama.cpp's library refuses some of them, too.
NEED_IMPORTANCE = ["iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs"]
REFUSED_BY_PEER = ["iq1_s", "iq2_xxs", "iq2_xs"]
# Formats that the package gguf doesn't decode: the tensor type's number, values and bytes of a block.
FEW_BITS = {"q1_0": (41, 128, 18), "q2_0": (42, 64, 18)}


def sizes(name):
    """The tensor type's number, and the values and bytes of a block."""
    if name in FEW_BITS:
        return FEW_BITS[name]
    kind = gguf.GGMLQuantizationType[name.upper()]
    return int(kind), *gguf.GGML_QUANT_SIZES[kind]


def decode(name, data):
    """The values of rows of blocks."""
    if name not in FEW_BITS:
        return gguf.quants.dequantize(data, gguf.GGMLQuantizationType[name.upper()])
    blocks = data.reshape(-1, FEW_BITS[name][2])
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.float32)
    levels = 2 * bits - 1 if name == "q1_0" else bits[:, ::2] + 2 * bits[:, 1::2] - 1
    return (scales * levels).reshape(data.shape[0], -1)


def read_tensors(path):
    """The names, types' numbers and rows of bytes of a file's tensors. The package's reader stops at types that it
    doesn't know, so this reads what `wick quantize` writes for this script: keys without arrays."""
    data = Path(path).read_bytes()
    at = 8

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value[0] if len(value) == 1 else value

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return data[at - size:at].decode()

    tensors, keys = take("QQ")
    for _ in range(keys):
        text()
        kind = take("I")
        text() if kind == 8 else take("BbHhIif?"[kind] if kind < 8 else {10: "Q", 11: "q", 12: "d"}[kind])
    rows = [(text(), [take("Q") for _ in range(take("I"))], take("I"), take("Q")) for _ in range(tensors)]
    begin = (at + 31) // 32 * 32
    return {name: (number, shape, data[begin + offset:]) for name, shape, number, offset in rows}


class Peer:
    """llama.cpp's quantisers."""

    def __init__(self, library):
        self.chunk = ctypes.CDLL(library).ggml_quantize_chunk
        pointer = ctypes.POINTER(ctypes.c_float)
        self.chunk.argtypes = [ctypes.c_int, pointer, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                               ctypes.c_int64, pointer]
        self.chunk.restype = ctypes.c_size_t

    def values(self, name, weights, importance):
        return decode(name, self.quantized(name, weights, importance))

    def quantized(self, name, weights, importance):
        rows, k = weights.shape
        number, values_per_block, size = sizes(name)
        out = np.zeros((rows, k // values_per_block * size), np.uint8)
        floats = ctypes.POINTER(ctypes.c_float)
        weights = np.ascontiguousarray(weights, np.float32)
        if importance is None and name in REFUSED_BY_PEER:
            importance = np.ones(k)
        columns = None if importance is None else np.ascontiguousarray(importance, np.float32)
        pointer = None if columns is None else columns.ctypes.data_as(floats)
        self.chunk(number, weights.ctypes.data_as(floats), out.ctypes.data, 0, rows, k, pointer)
        return out


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
        if importance is None and name in NEED_IMPORTANCE:
            importance = {tensor: np.ones(weights.shape[1]) for tensor, weights in tensors.items()}
        if importance is not None:
            write_importance(self.folder / "imatrix.gguf", importance)
            options += ["--imatrix", self.folder / "imatrix.gguf"]
        subprocess.run([self.command, "quantize", source, target, "q8_0", *options], check=True,
                       stdout=subprocess.DEVNULL)
        found = {}
        number, values_per_block, size = sizes(name)
        for tensor, (kind, shape, data) in read_tensors(target).items():
            assert kind == number, (tensor, kind)
            k, rows = shape
            row_bytes = k // values_per_block * size
            found[tensor] = decode(name, np.frombuffer(data, np.uint8, rows * row_bytes).reshape(rows, row_bytes))
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
        print(f"    {{DType::{name}, " + ", ".join(f"{f:.9g}" for f in figures) + "},")


def compare(peer, wick, data, name):
    """The largest ratios of a data set's tensors: plain, and with the importance matrix."""
    tensors = {n: w for n, w in data["tensors"].items() if w.shape[1] % sizes(name)[1] == 0}
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


def cpu_seconds(work):
    """The processor time of the least of three runs of a function, including its child processes."""
    def now():
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    times = []
    for _ in range(3):
        begin = now()
        work()
        times.append(now() - begin)
    return min(times)


def print_speeds(peer, command, folder, types):
    """Nanoseconds per value on one thread. Those of wick are the command's time less that of a copy in f32."""
    rows, k = 1024, 4096
    random = np.random.default_rng(1)
    weights = random.normal(0, 0.02, (rows, k)).astype(np.float32)
    importance = random.lognormal(0, 1.5, k)
    source, target = Path(folder) / "in.gguf", Path(folder) / "out.gguf"
    writer = gguf.GGUFWriter(source, "llama")
    writer.add_tensor("blk.0.attn_q.weight", weights)
    finish(writer)
    write_importance(Path(folder) / "imatrix.gguf", {"blk.0.attn_q.weight": importance})
    options = ["-t", "1", "--imatrix", Path(folder) / "imatrix.gguf"]

    def run(kind):
        subprocess.run([command, "quantize", source, target, "f32", "--tensor-type", f"*={kind}", *options],
                       check=True, stdout=subprocess.DEVNULL)

    copy = cpu_seconds(lambda: run("f32"))
    print("| type | wick | llama.cpp | ratio |\n|---|---|---|---|")
    for name in types:
        ours = (cpu_seconds(lambda: run(name)) - copy) * 1e9 / weights.size
        theirs = cpu_seconds(lambda: peer.quantized(name, weights, importance)) * 1e9 / weights.size
        print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wick", default="build/release/bin/wick")
    parser.add_argument("--ggml", required=True, metavar="LIBRARY")
    parser.add_argument("--model", help="a GGUF file with weights to compare")
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="for its importance matrix")
    parser.add_argument("--layers", type=int, nargs="*", default=[0, 10, 20])
    parser.add_argument("--types", nargs="*", default=TYPES)
    parser.add_argument("--speed", action="store_true", help="print the time per value instead")
    parser.add_argument("--test-data", action="store_true", help="print the peer's figures for search_test")
    options = parser.parse_args()
    peer = Peer(options.ggml)
    if options.test_data:
        print_test_figures(peer)
        return 0
    if options.speed:
        with tempfile.TemporaryDirectory() as folder:
            print_speeds(peer, options.wick, folder, options.types)
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
