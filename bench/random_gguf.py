#!/usr/bin/env python3
"""Writes a Llama GGUF with random weights, for measuring speed: random_gguf.py SHAPE TYPE FILE.

SHAPE: tiny, 1b or 8b (Llama 3's shapes). TYPE: the type of the matrices: Q4_0 Q4_1 Q8_0 Q4_K Q6_K BF16
F16 F32. With Q4_K the output matrix is Q6_K, as quantizers make it. Values repeat after a few million,
since the speed doesn't depend on them.
"""
import argparse
import array
import random
import struct
import sys

SHAPES = {
    "tiny": dict(hidden=256, ff=768, layers=2, heads=4, kv_heads=2, head=64, vocabulary=1000),
    "1b": dict(hidden=2048, ff=8192, layers=16, heads=32, kv_heads=8, head=64, vocabulary=128256),
    "8b": dict(hidden=4096, ff=14336, layers=32, heads=32, kv_heads=8, head=128,
               vocabulary=128256),
}
# For each type: GGML's number, the values and bytes of a block, and the offsets of its f16 scales.
TYPES = {"F32": (0, 1, 4, []), "F16": (1, 1, 2, []), "BF16": (30, 1, 2, []),
         "Q4_0": (2, 32, 18, [0]), "Q4_1": (3, 32, 20, [0, 2]), "Q8_0": (8, 32, 34, [0]),
         "Q4_K": (12, 256, 144, [0, 2]), "Q6_K": (14, 256, 210, [208])}
ALIGNMENT = 32
REPEAT_BLOCKS = 1 << 18
U32, I32, F32, STRING, ARRAY = 4, 5, 6, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    head = text(key) + struct.pack("<I", kind)
    return head + (text(value) if kind == STRING else
                   struct.pack({U32: "<I", F32: "<f"}[kind], value))


def entries(key, kind, values):
    head = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    if kind == STRING:
        return head + b"".join(text(v) for v in values)
    return head + array.array({F32: "f", I32: "i"}[kind], values).tobytes()


def metadata(shape):
    words = ["<unk>", "<s>", "</s>"] + [f"t{i}" for i in range(3, shape["vocabulary"])]
    kinds = [2, 3, 3] + [1] * (len(words) - 3)
    return [
        entry("general.architecture", STRING, "llama"),
        entry("llama.context_length", U32, 8192),
        entry("llama.embedding_length", U32, shape["hidden"]),
        entry("llama.block_count", U32, shape["layers"]),
        entry("llama.feed_forward_length", U32, shape["ff"]),
        entry("llama.attention.head_count", U32, shape["heads"]),
        entry("llama.attention.head_count_kv", U32, shape["kv_heads"]),
        entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        entry("llama.rope.freq_base", F32, 500000.0),
        entry("llama.rope.dimension_count", U32, shape["head"]),
        entry("llama.vocab_size", U32, shape["vocabulary"]),
        entry("tokenizer.ggml.model", STRING, "llama"),
        entries("tokenizer.ggml.tokens", STRING, words),
        entries("tokenizer.ggml.scores", F32, [-float(i) for i in range(len(words))]),
        entries("tokenizer.ggml.token_type", I32, kinds),
        entry("tokenizer.ggml.bos_token_id", U32, 1),
        entry("tokenizer.ggml.eos_token_id", U32, 2),
    ]


def tensors(shape, kind):
    """Yields (name, rows or None for a vector of ones, columns, type)."""
    hidden, ff = shape["hidden"], shape["ff"]
    kv, q = shape["kv_heads"] * shape["head"], shape["heads"] * shape["head"]
    yield "token_embd.weight", shape["vocabulary"], hidden, kind
    yield "output_norm.weight", None, hidden, "F32"
    if hidden != SHAPES["1b"]["hidden"]:  # the 1B model ties it to the embedding
        yield "output.weight", shape["vocabulary"], hidden, "Q6_K" if kind == "Q4_K" else kind
    for i in range(shape["layers"]):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{name}.weight", None, hidden, "F32"
        for name, rows, columns in (("attn_q", q, hidden), ("attn_k", kv, hidden),
                                    ("attn_v", kv, hidden), ("attn_output", hidden, q),
                                    ("ffn_gate", ff, hidden), ("ffn_up", ff, hidden),
                                    ("ffn_down", hidden, ff)):
            yield f"blk.{i}.{name}.weight", rows, columns, kind


def size_of(rows, columns, kind):
    _, values, size, _ = TYPES[kind]
    return (rows or 1) * columns // values * size


def pattern(kind):
    """Returns the bytes that matrices of a type repeat: floats of some 0.01 to 0.03, or random quants."""
    source = random.Random(0)
    _, values, size, scales = TYPES[kind]
    blocks = REPEAT_BLOCKS if values > 1 else REPEAT_BLOCKS * 8
    data = bytearray(source.randbytes(blocks * size))
    if values == 1:
        top = 0x24 if kind == "F16" else 0x3c  # sign, exponent and at most two more bits
        data[size - 1::size] = bytes(top | (b & 0x80) for b in data[size - 1::size])
    for at in scales:
        low, high = struct.pack("<e", 0.004)
        data[at::size] = bytes([low]) * blocks
        data[at + 1::size] = bytes([high]) * blocks
    return bytes(data)


def write(shape, kind, path):
    table = list(tensors(shape, kind))
    head = metadata(shape)
    patterns = {}
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(table), len(head)) + b"".join(head))
        at = 0
        for name, rows, columns, type_name in table:
            dims = [columns] if rows is None else [columns, rows]
            file.write(text(name) + struct.pack("<I", len(dims)) +
                       struct.pack(f"<{len(dims)}Q", *dims) +
                       struct.pack("<IQ", TYPES[type_name][0], at))
            at += -(-size_of(rows, columns, type_name) // ALIGNMENT) * ALIGNMENT
        file.write(b"\0" * (-file.tell() % ALIGNMENT))
        for _, rows, columns, type_name in table:
            left = size_of(rows, columns, type_name)
            if rows is None:
                file.write(struct.pack("<f", 1.0) * columns)
            else:
                data = patterns.setdefault(type_name, pattern(type_name))
                for start in range(0, left, len(data)):
                    file.write(memoryview(data)[:left - start])
            file.write(b"\0" * (-left % ALIGNMENT))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("file")
    options = parser.parse_args()
    write(SHAPES[options.shape], options.type, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
