"""Custom ops: a softmax with its gradient, a fused swiglu, a bias that is stored as bytes, and a rotation in
place. Each has a body for the CPU, in NumPy, and one for GPUs of both vendors. Run with a device: cuda:0."""

import sys
from typing import Any

import numpy as np

import wick


class Softmax(wick.CustomOp1):
    name = "my_softmax"

    def shape(self, x: wick.Tensor) -> wick.Tensor:
        return x

    def cpu(self, out: Any, x: Any) -> None:
        np.exp(x - x.max(axis=-1, keepdims=True), out=out)
        out /= out.sum(axis=-1, keepdims=True)

    gpu_source = """
        const i64 n = x_shape[x_rank - 1], row = global_index();
        if (row >= x_elems / n) return;
        float top = x[row * n], sum = 0;
        for (i64 i = 1; i < n; ++i) top = larger(top, x[row * n + i]);
        for (i64 i = 0; i < n; ++i) sum += out[row * n + i] = exp(x[row * n + i] - top);
        for (i64 i = 0; i < n; ++i) out[row * n + i] /= sum;"""

    def backward(self, x: wick.Tensor, y: wick.Tensor, grad: wick.Tensor) -> wick.Tensor:
        return y * (grad - (y * grad).sum(-1, keepdim=True))


class Swiglu(wick.CustomOp2):
    """silu(gate) * up. The GPU's body takes every float dtype."""

    name = "swiglu"

    def shape(self, gate: wick.Tensor, up: wick.Tensor) -> wick.Tensor:
        if gate.shape != up.shape or gate.dtype != up.dtype:
            raise ValueError(f"swiglu: gate {gate.shape} and up {up.shape} differ")
        return gate

    def cpu(self, out: Any, gate: Any, up: Any) -> None:
        out[...] = gate / (1 + np.exp(-gate)) * up

    gpu_source = """
        const i64 i = global_index();
        if (i < out_elems) out[i] = narrow<out_type>(silu(widen(gate[i])) * widen(up[i]));"""

    def backward(
        self, gate: wick.Tensor, up: wick.Tensor, y: wick.Tensor, grad: wick.Tensor
    ) -> tuple[wick.Tensor, wick.Tensor]:
        s = wick.sigmoid(gate)
        return grad * up * s * (gate * (1 - s) + 1), grad * wick.silu(gate)


class QuantisedBias(wick.CustomOp3):
    """x + bias, where element i of the bias is scales[i // 32] * (codes[i] - 128)."""

    name = "quantised_bias"
    block = 32

    def shape(self, x: wick.Tensor, codes: wick.Tensor, scales: wick.Tensor) -> wick.Tensor:
        if codes.shape != (x.shape[-1],) or codes.dtype != wick.uint8:
            raise ValueError(f"quantised_bias: x {x.shape}, codes {codes.shape}: need uint8 [n]")
        return x

    def cpu(self, out: Any, x: Any, codes: Any, scales: Any) -> None:
        steps = np.repeat(scales, self.block)[: len(codes)]
        np.add(x, steps * (codes.astype(np.float32) - 128), out=out)

    gpu_source = """
        const i64 i = global_index(), column = i % codes_elems;
        if (i < out_elems) {
          out[i] = x[i] + scales[column / block] * static_cast<float>(int{codes[column]} - 128);
        }"""

    def constants(self, out: wick.GpuArray, *inputs: wick.GpuArray) -> dict[str, Any]:
        return {"block": self.block}

    def backward(
        self, x: wick.Tensor, codes: wick.Tensor, scales: wick.Tensor, y: wick.Tensor, grad: wick.Tensor
    ) -> tuple[wick.Tensor, None, None]:
        return grad, None, None


class Rotary(wick.InplaceOp3):
    """Rotates the pairs (x[.., 2i], x[.., 2i + 1]) of x [heads, tokens, d]; cos and sin are [tokens, d / 2]."""

    name = "rotary"

    def check(self, x: wick.Tensor, cos: wick.Tensor, sin: wick.Tensor) -> None:
        if x.ndim != 3 or cos.shape != (x.shape[1], x.shape[2] // 2) or sin.shape != cos.shape:
            raise ValueError(f"rotary: x {x.shape}, cos {cos.shape}: need [h, t, d] and [t, d / 2]")

    def cpu(self, x: Any, cos: Any, sin: Any) -> None:
        a, b = x[..., 0::2].copy(), x[..., 1::2].copy()
        x[..., 0::2] = a * cos - b * sin
        x[..., 1::2] = a * sin + b * cos

    def grid(self, out: wick.GpuArray, *inputs: wick.GpuArray) -> int:
        return out.size // 2

    # The target keeps its strides.
    gpu_source = """
        const i64 pair = global_index();
        if (pair >= x_elems / 2) return;
        const i64 at = offset_of(2 * pair, x_shape, x_strides);
        const float a = x[at], b = x[at + x_strides[2]];
        const float c = cos[pair % cos_elems], s = sin[pair % sin_elems];
        x[at] = a * c - b * s;
        x[at + x_strides[2]] = a * s + b * c;"""


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    wick.manual_seed(1)

    def randn(*shape: int) -> wick.Tensor:
        return wick.randn(*shape).to(device)

    x, up = randn(4, 70), randn(4, 70)
    leaf = x.detach().requires_grad_()
    y = wick.apply_op1(leaf, Softmax())
    assert wick.allclose(y, wick.softmax(x), 1e-4, 1e-6)
    seed = randn(4, 70)
    y.backward(seed)
    own = x.detach().requires_grad_()
    wick.softmax(own).backward(seed)
    assert leaf.grad is not None and own.grad is not None
    assert wick.allclose(leaf.grad, own.grad, 1e-3, 1e-5)
    print("my_softmax", y[0, :3].tolist())

    gated = wick.apply_op2(x, up, Swiglu())
    assert wick.allclose(gated, wick.silu(x) * up, 1e-4, 1e-5)
    print("swiglu", gated[0, :3].tolist())

    codes = wick.tensor([37 * i % 256 for i in range(70)], dtype=wick.uint8).to(device)
    biased = wick.apply_op3(x, codes, randn(3), QuantisedBias())
    print("quantised_bias", biased[0, :3].tolist())

    heads, cos, sin = randn(2, 5, 8), randn(5, 4), randn(5, 4)
    expected = wick.rope_interleaved(heads, cos, sin)
    wick.inplace_op3(heads, cos, sin, Rotary())
    assert wick.allclose(heads, expected, 1e-4, 1e-5)
    print("rotary", heads[0, 1, :3].tolist())

    # A compiled function replays custom ops like others.
    layer = wick.compile(lambda a, b: wick.apply_op1(wick.apply_op2(a, b, Swiglu()), Softmax()))
    for _ in range(3):
        result = layer(x, up)
    assert wick.allclose(result, wick.softmax(gated), 1e-4, 1e-6)


if __name__ == "__main__":
    main()
