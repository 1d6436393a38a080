"""Gemma 3 and BERT in NumPy, in float64, written from their papers and the published configurations.

They share no code with wick: weights are decoded by the package gguf, or read from safetensors here.
"""

import json
import math
import pathlib
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


def softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def erf(x: Floats) -> Floats:
    return np.vectorize(math.erf)(x)


class Gemma3:
    """Gemma 3 from a GGUF file, of which it keeps the decoded weights."""

    def __init__(self, path: pathlib.Path) -> None:
        reader = gguf.GGUFReader(path)
        self.keys = {key: field.contents() for key, field in reader.fields.items() if key.startswith("gemma3.")}
        tensors = {t.name: t for t in reader.tensors}
        # 168 million elements, of which only some rows are decoded.
        self.table = tensors.pop("token_embd.weight")
        self.weights = {name: gguf.dequantize(t.data, t.tensor_type) for name, t in tensors.items()}

    def key(self, name: str) -> Any:
        return self.keys["gemma3." + name]

    def matrix(self, name: str) -> Floats:
        return self.weights[name + ".weight"].astype(np.float64)

    def norm(self, x: Floats, name: str) -> Floats:
        # The converter has added 1 to the weights.
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + self.key("attention.layer_norm_rms_epsilon"))
        return x / scale * self.matrix(name)

    def rotated(self, x: Floats, base: float) -> Floats:
        """x [heads, tokens, size]: pairs (i, i + size / 2) turn by position / base^(2i / size)."""
        tokens, half = x.shape[1], x.shape[2] // 2
        angles = np.outer(np.arange(tokens), base ** (-np.arange(half) / half))
        first, second = x[..., :half], x[..., half:]
        return np.concatenate([first * np.cos(angles) - second * np.sin(angles),
                               second * np.cos(angles) + first * np.sin(angles)], -1)

    def attention(self, x: Floats, layer: int) -> Floats:
        name, tokens = f"blk.{layer}.attn_", len(x)
        heads, shared, size = (self.key("attention." + k) for k in ("head_count", "head_count_kv", "key_length"))
        q, k, v = ((x @ self.matrix(name + which).T).reshape(tokens, -1, size).transpose(1, 0, 2) for which in "qkv")
        # Every sixth layer sees all keys; the others see a window, with another base.
        everything = layer % 6 == 5
        base = self.key("rope.freq_base") if everything else 10000.0
        q = self.rotated(self.norm(q, name + "q_norm"), base)
        k = self.rotated(self.norm(k, name + "k_norm"), base)
        k, v = (np.repeat(y, heads // shared, 0) for y in (k, v))
        distance = np.subtract.outer(np.arange(tokens), np.arange(tokens))
        seen = (distance >= 0) & (everything | (distance < self.key("attention.sliding_window")))
        scores = np.where(seen, q @ k.transpose(0, 2, 1) / math.sqrt(size), -np.inf)
        mixed = (softmax(scores) @ v).transpose(1, 0, 2).reshape(tokens, -1)
        return mixed @ self.matrix(name + "output").T

    def feed_forward(self, x: Floats, layer: int) -> Floats:
        name = f"blk.{layer}.ffn_"
        g, u = (x @ self.matrix(name + which).T for which in ("gate", "up"))
        gelu = 0.5 * g * (1 + np.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3)))
        return (gelu * u) @ self.matrix(name + "down").T

    def embeddings(self, ids: list[int]) -> Floats:
        return gguf.dequantize(self.table.data[ids], self.table.tensor_type).astype(np.float64)

    def logits(self, ids: list[int], columns: list[int]) -> Floats:
        """Returns these columns of the logits of every token."""
        x = self.embeddings(ids)
        x = x * math.sqrt(x.shape[1])
        for layer in range(self.key("block_count")):
            name = f"blk.{layer}."
            x = x + self.norm(self.attention(self.norm(x, name + "attn_norm"), layer), name + "post_attention_norm")
            x = x + self.norm(self.feed_forward(self.norm(x, name + "ffn_norm"), layer), name + "post_ffw_norm")
        return self.norm(x, "output_norm") @ self.embeddings(columns).T


def read_safetensors(path: pathlib.Path) -> dict[str, Floats]:
    """Reads a file of float32 tensors."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, of in json.loads(data[8:start]).items():
        if name != "__metadata__" and of["dtype"] == "F32":
            first, last = of["data_offsets"]
            flat = np.frombuffer(data[start + first:start + last], np.float32)
            tensors[name] = flat.reshape(of["shape"]).astype(np.float64)
    return tensors


class Bert:
    """BERT from a Hugging Face directory; embeddings are means over the tokens, scaled to the norm 1."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = read_safetensors(folder / "model.safetensors")

    def linear(self, x: Floats, name: str) -> Floats:
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x: Floats, name: str) -> Floats:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def layer(self, x: Floats, name: str) -> Floats:
        heads = self.config["num_attention_heads"]
        tokens, width = x.shape

        def split(which: str) -> Floats:
            return self.linear(x, f"{name}attention.self.{which}").reshape(tokens, heads, -1).transpose(1, 0, 2)

        q, k, v = (split(which) for which in ("query", "key", "value"))
        mixed = softmax(q @ k.transpose(0, 2, 1) / math.sqrt(width // heads)) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(tokens, width)
        x = self.norm(x + self.linear(mixed, name + "attention.output.dense"), name + "attention.output.LayerNorm")
        inner = self.linear(x, name + "intermediate.dense")
        inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
        return self.norm(x + self.linear(inner, name + "output.dense"), name + "output.LayerNorm")

    def embedding(self, ids: list[int]) -> Floats:
        tables = [self.weights[f"embeddings.{which}_embeddings.weight"] for which in ("word", "position", "token_type")]
        x = self.norm(tables[0][ids] + tables[1][:len(ids)] + tables[2][0], "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            x = self.layer(x, f"encoder.layer.{layer}.")
        mean = x.mean(0)
        return mean / np.sqrt((mean**2).sum())


