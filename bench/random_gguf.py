#!/usr/bin/env python3
"""Writes a GGUF model with random weights, for measuring speed: random_gguf.py SHAPE TYPE FILE.

SHAPE names the architecture and sizes. TYPE is the type of the matrices, such as Q4_K, or one of llama.cpp's mixtures, such as
Q4_K_M; Q2_K_M, IQ4_XS_M and MXFP4_M are the mixtures that it calls Q2_K, IQ4_XS and MXFP4_MOE. Values repeat after a few
million, since the speed doesn't depend on them.
"""
import argparse
import array
import random
import struct
import sys

LLAMA = dict(architecture="llama", head=64, vocabulary=128256, rope=500000.0)
QWEN = dict(architecture="qwen3moe", heads=32, kv_heads=4, head=128, vocabulary=151936, rope=1000000.0, used=8)
GEMMA = dict(architecture="gemma3", head=256, vocabulary=262144, rope=1000000.0, tied=True)
SHAPES = {
    "tiny": LLAMA | dict(hidden=256, ff=768, layers=2, heads=4, kv_heads=2, vocabulary=1000),
    "1b": LLAMA | dict(hidden=2048, ff=8192, layers=16, heads=32, kv_heads=8, tied=True),
    "8b": LLAMA | dict(hidden=4096, ff=14336, layers=32, heads=32, kv_heads=8, head=128),
    "tiny-oss": dict(architecture="gpt-oss", hidden=256, ff=256, layers=2, heads=4, kv_heads=2, head=64, vocabulary=1000, rope=150000.0, experts=8, used=4),
    "tiny-moe": QWEN | dict(hidden=256, ff=256, layers=2, heads=4, head=64, kv_heads=2, experts=16, vocabulary=1000),
    "3b-moe": QWEN | dict(hidden=1024, ff=512, layers=24, heads=16, experts=64),
    "smollm2-135m": LLAMA | dict(hidden=576, ff=1536, layers=30, heads=9, kv_heads=3, vocabulary=49152, rope=100000.0, tied=True),
    "gemma3-270m": GEMMA | dict(hidden=640, ff=2048, layers=18, heads=4, kv_heads=1, window=512),
    "gemma3-4b": GEMMA | dict(hidden=2560, ff=10240, layers=34, heads=8, kv_heads=4, window=1024),
    "qwen3-30b-a3b": QWEN | dict(hidden=2048, ff=768, layers=48, experts=128),
    "gpt-oss-20b": dict(architecture="gpt-oss", hidden=2880, ff=2880, layers=24, heads=64, kv_heads=8, head=64, vocabulary=201088,
                        rope=150000.0, experts=32, used=4),
}


def half(value):
    return struct.pack("<e", value)


# For each type: GGML's number, the values and bytes of a block, and the bytes to write at offsets of each block: the scales,
# which make values of some hundredths.
TYPES = {
    "F32": (0, 1, 4, {}), "F16": (1, 1, 2, {}), "BF16": (30, 1, 2, {}),
    "Q4_0": (2, 32, 18, {0: half(0.004)}), "Q4_1": (3, 32, 20, {0: half(0.004), 2: half(-0.03)}),
    "Q5_0": (6, 32, 22, {0: half(0.002)}), "Q5_1": (7, 32, 24, {0: half(0.002), 2: half(-0.03)}), "Q8_0": (8, 32, 34, {0: half(0.0003)}),
    "Q2_K": (10, 256, 84, {80: half(0.002), 82: half(0.003)}), "Q3_K": (11, 256, 110, {108: half(0.0005)}),
    "Q4_K": (12, 256, 144, {0: half(0.0001), 2: half(0.0008)}), "Q5_K": (13, 256, 176, {0: half(0.00005), 2: half(0.0008)}),
    "Q6_K": (14, 256, 210, {208: half(0.00002)}), "IQ4_XS": (23, 256, 136, {0: half(0.00001)}),
    "MXFP4": (39, 32, 17, {0: b"\x79"}),
}
ALIGNMENT = 32
REPEAT_BLOCKS = 1 << 18
U32, I32, F32, STRING, ARRAY = 4, 5, 6, 8, 9


def more_bits(layer, layers):
    """Whether llama.cpp's mixtures of a size M give ffn_down and attn_v of this layer more bits."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def mixed(low, high):
    return lambda name, layer, layers: high if name in ("attn_v", "ffn_down") and more_bits(layer, layers) else low


def mixed_q3(name, layer, layers):
    if name == "attn_v":
        return "Q5_K" if layer < 2 else "Q4_K"
    if name == "ffn_down":
        return "Q5_K" if layer < layers // 16 else "Q4_K"
    return "Q4_K" if name == "attn_output" else "Q3_K"


def mixed_q2(name, _layer, _layers):
    return {"attn_v": "Q4_K", "attn_output": "Q3_K", "ffn_down": "Q3_K"}.get(name, "Q2_K")


def mixed_iq4(name, layer, layers):
    return "Q5_K" if name == "attn_v" or name == "ffn_down" and layer < layers // 8 else "IQ4_XS"


def mixed_mxfp4(name, _layer, _layers):
    return "MXFP4" if name.endswith("_exps") else "Q8_0"


# Functions (name of the tensor without "blk.N.", layer, layers) -> type. The output matrix of all with K-quants is Q6_K.
MIXTURES = {"Q4_K_M": mixed("Q4_K", "Q6_K"), "Q5_K_M": mixed("Q5_K", "Q6_K"), "Q3_K_M": mixed_q3, "Q2_K_M": mixed_q2,
            "IQ4_XS_M": mixed_iq4, "MXFP4_M": mixed_mxfp4}
KINDS = [*TYPES, *MIXTURES]
# What llama.cpp's mixtures store instead of types with blocks of 256 values if the columns aren't a multiple of that.
SHORT = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


def type_of(kind, name, layer, shape, columns):
    """Returns the type of a matrix of a file of this kind. The embedding of mixtures has the type of the output matrix if it is
    tied."""
    if name == "token_embd" and kind in MIXTURES and shape.get("tied"):
        name = "output"
    if name == "output" and (kind in ("Q4_K", "IQ4_XS_M") or kind.endswith("_K_M")):
        found = "Q6_K"
    else:
        found = MIXTURES[kind](name, layer, shape["layers"]) if kind in MIXTURES else kind
    return SHORT.get(found, found) if kind in MIXTURES and columns % 256 else found


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


def sizes(shape):
    """Yields (key, value) of the numbers that describe the architecture."""
    yield "context_length", 8192
    yield "embedding_length", shape["hidden"]
    yield "block_count", shape["layers"]
    yield "feed_forward_length", shape["ff"]
    yield "attention.head_count", shape["heads"]
    yield "attention.head_count_kv", shape["kv_heads"]
    yield "attention.key_length", shape["head"]
    yield "attention.value_length", shape["head"]
    yield "attention.layer_norm_rms_epsilon", 1e-5
    yield "rope.freq_base", shape["rope"]
    yield "rope.dimension_count", shape["head"]
    yield "vocab_size", shape["vocabulary"]
    if "experts" in shape:
        yield "expert_count", shape["experts"]
        yield "expert_used_count", shape["used"]
        yield "expert_feed_forward_length", shape["ff"]
    if shape["architecture"] == "gemma3":
        yield "attention.sliding_window", shape["window"]
    if shape["architecture"] == "gpt-oss":
        yield "attention.sliding_window", 128
        yield "rope.scaling.type", "yarn"
        yield "rope.scaling.factor", 32.0
        yield "rope.scaling.original_context_length", 4096


def metadata(shape):
    # llama.cpp falls back to the tokens of bytes for text that has no others.
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + [f"t{i}" for i in range(259, shape["vocabulary"])]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(words) - 259)
    name = shape["architecture"]
    kind_of = {int: U32, float: F32, str: STRING}
    return [
        entry("general.architecture", STRING, name),
        *(entry(f"{name}.{key}", kind_of[type(value)], value) for key, value in sizes(shape)),
        entry("tokenizer.ggml.model", STRING, "llama"),
        entries("tokenizer.ggml.tokens", STRING, words),
        entries("tokenizer.ggml.scores", F32, [-float(i) for i in range(len(words))]),
        entries("tokenizer.ggml.token_type", I32, kinds),
        entry("tokenizer.ggml.bos_token_id", U32, 1),
        entry("tokenizer.ggml.eos_token_id", U32, 2),
    ]


def layer_vectors(shape):
    """Yields (name, dims) of the F32 tensors of a layer, apart from the router."""
    hidden, q, kv = shape["hidden"], shape["heads"] * shape["head"], shape["kv_heads"] * shape["head"]
    name, experts = shape["architecture"], shape.get("experts")
    yield "attn_norm.weight", [hidden]
    yield ("post_attention_norm.weight" if name == "gpt-oss" else "ffn_norm.weight"), [hidden]
    if name == "gemma3":
        yield "post_attention_norm.weight", [hidden]
        yield "post_ffw_norm.weight", [hidden]
    if name in ("qwen3moe", "gemma3"):
        yield "attn_q_norm.weight", [shape["head"]]
        yield "attn_k_norm.weight", [shape["head"]]
    if name == "gpt-oss":
        for of, dims in (("attn_q", [q]), ("attn_k", [kv]), ("attn_v", [kv]), ("attn_output", [hidden]), ("ffn_gate_inp", [experts]),
                         ("ffn_gate_exps", [shape["ff"], experts]), ("ffn_up_exps", [shape["ff"], experts]),
                         ("ffn_down_exps", [hidden, experts])):
            yield f"{of}.bias", dims
        yield "attn_sinks.weight", [shape["heads"]]


def layer_matrices(shape):
    """Yields (name without ".weight", dims) of the matrices of a layer, columns first."""
    hidden, ff = shape["hidden"], shape["ff"]
    kv, q = shape["kv_heads"] * shape["head"], shape["heads"] * shape["head"]
    yield from (("attn_q", [hidden, q]), ("attn_k", [hidden, kv]), ("attn_v", [hidden, kv]), ("attn_output", [q, hidden]))
    experts = [shape["experts"]] if "experts" in shape else []
    suffix = "_exps" if experts else ""
    yield from ((f"ffn_gate{suffix}", [hidden, ff] + experts), (f"ffn_up{suffix}", [hidden, ff] + experts),
                (f"ffn_down{suffix}", [ff, hidden] + experts))


def tensors(shape, kind):
    """Yields (name, dims with the columns first, type, whether the values are random instead of ones)."""
    hidden = shape["hidden"]
    yield "token_embd.weight", [hidden, shape["vocabulary"]], type_of(kind, "token_embd", 0, shape, hidden), True
    yield "output_norm.weight", [hidden], "F32", False
    if not shape.get("tied"):
        yield "output.weight", [hidden, shape["vocabulary"]], type_of(kind, "output", 0, shape, hidden), True
    for i in range(shape["layers"]):
        for name, dims in layer_vectors(shape):
            yield f"blk.{i}.{name}", dims, "F32", False
        if "experts" in shape:
            yield f"blk.{i}.ffn_gate_inp.weight", [hidden, shape["experts"]], "F32", True
        for name, dims in layer_matrices(shape):
            yield f"blk.{i}.{name}.weight", dims, type_of(kind, name, i, shape, dims[0]), True


def size_of(dims, kind):
    _, values, size, _ = TYPES[kind]
    count = 1
    for dim in dims:
        count *= dim
    return count // values * size


def pattern(kind):
    """Returns the bytes that matrices of a type repeat: floats of some 0.01 to 0.03, or random quants."""
    source = random.Random(0)
    _, values, size, scales = TYPES[kind]
    blocks = REPEAT_BLOCKS if values > 1 else REPEAT_BLOCKS * 8
    data = bytearray(source.randbytes(blocks * size))
    if values == 1:
        top = 0x24 if kind == "F16" else 0x3c  # sign, exponent and at most two more bits
        data[size - 1::size] = bytes(top | (b & 0x80) for b in data[size - 1::size])
    for offset, scale in scales.items():
        for i, byte in enumerate(scale):
            data[offset + i::size] = bytes([byte]) * blocks
    return bytes(data)


def write(shape, kind, path):
    table = list(tensors(shape, kind))
    head = metadata(shape)
    patterns = {}
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(table), len(head)) + b"".join(head))
        at = 0
        for name, dims, type_name, _ in table:
            file.write(text(name) + struct.pack("<I", len(dims)) +
                       struct.pack(f"<{len(dims)}Q", *dims) +
                       struct.pack("<IQ", TYPES[type_name][0], at))
            at += -(-size_of(dims, type_name) // ALIGNMENT) * ALIGNMENT
        file.write(b"\0" * (-file.tell() % ALIGNMENT))
        for _, dims, type_name, randomly in table:
            left = size_of(dims, type_name)
            if randomly:
                if type_name not in patterns:
                    patterns[type_name] = pattern(type_name)
                data = patterns[type_name]
                for start in range(0, left, len(data)):
                    file.write(memoryview(data)[:left - start])
            else:
                file.write(struct.pack("<f", 1.0) * (left // 4))
            file.write(b"\0" * (-left % ALIGNMENT))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=KINDS)
    parser.add_argument("file")
    options = parser.parse_args()
    write(SHAPES[options.shape], options.type, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
