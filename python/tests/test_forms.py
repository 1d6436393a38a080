"""The names and call forms of PyTorch that users look for, each against NumPy."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest

import wick

A = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4) / 7 - 1.3
V = np.array([2.0, -1.0, 0.5], dtype=np.float32)
M = np.arange(12.0, dtype=np.float32).reshape(3, 4)
N = np.array([3, 1, 2, 3, 1, 1], dtype=np.int64)
IDS = np.array([[2, 0], [1, 1]])
x, v, m, n = (wick.tensor(a) for a in (A, V, M, N))
ids = wick.tensor(IDS)


def sigmoid(a: Any) -> Any:
    return 1 / (1 + np.exp(-a))


def run_counts(a: Any) -> Any:
    return np.unique(a, return_inverse=True, return_counts=True)


# A call, and NumPy's result.
FORMS: list[tuple[Callable[[], Any], Any]] = [
    # Reductions: dim and axis, keepdim and keepdims, by position and by name.
    (lambda: x.sum(), A.sum()),
    (lambda: x.sum(1), A.sum(1)),
    (lambda: x.sum(-1, True), A.sum(-1, keepdims=True)),
    (lambda: x.sum((0, 2), keepdim=True), A.sum((0, 2), keepdims=True)),
    (lambda: x.sum(axis=1, keepdims=True), A.sum(1, keepdims=True)),
    (lambda: wick.sum(x, dim=1, keepdims=True), A.sum(1, keepdims=True)),
    (lambda: x.mean(axis=(0, 1), keepdims=True), A.mean((0, 1), keepdims=True)),
    (lambda: x.prod(2, keepdims=True), A.prod(2, keepdims=True)),
    (lambda: x.amax(0, keepdims=True), A.max(0, keepdims=True)),
    (lambda: x.amin(axis=0, keepdims=False), A.min(0)),
    (lambda: x.max(1, keepdims=True).values, A.max(1, keepdims=True)),
    (lambda: x.min(axis=1, keepdims=True).indices, A.argmin(1, keepdims=True)),
    (lambda: x.argmax(), A.argmax()),
    (lambda: x.argmax(1, keepdims=True), A.argmax(1, keepdims=True)),
    (lambda: x.any(1, keepdims=True), A.any(1, keepdims=True)),
    (lambda: (x > -9).all(axis=1, keepdims=True), np.ones((2, 1, 4), bool)),
    (lambda: x.logsumexp(1, keepdims=True), np.log(np.exp(A).sum(1, keepdims=True))),
    (lambda: x.var(1), A.var(1, ddof=1)),
    (lambda: x.var(1, unbiased=False, keepdims=True), A.var(1, keepdims=True)),
    (lambda: x.std(), A.std(ddof=1)),
    (lambda: x.std(axis=0, correction=0, keepdim=True), A.std(0, keepdims=True)),
    (lambda: x.std(0, unbiased=False, keepdims=True), A.std(0, keepdims=True)),
    (lambda: x.norm(), np.linalg.norm(A)),
    (lambda: x.norm(1, 0), abs(A).sum(0)),
    (lambda: x.norm(p=math.inf, dim=1, keepdims=True), abs(A).max(1, keepdims=True)),
    (lambda: x.norm(dim=1), np.sqrt((A * A).sum(1))),
    (lambda: v.median(), np.float32(0.5)),
    (lambda: x.median(1, keepdims=True).values, np.sort(A, 1)[:, 1:2]),
    (lambda: x.median(axis=1).indices, np.full((2, 4), 1)),
    (lambda: x.cumprod(1), A.cumprod(1)),
    (lambda: wick.cumprod(x, axis=-1), A.cumprod(-1)),
    # Elements.
    (lambda: m.exp().log2(), np.log2(np.exp(M))),
    (lambda: wick.log10(m + 1), np.log10(M + 1)),
    (lambda: x.exp2(), np.exp2(A)),
    (lambda: x.tan(), np.tan(A)),
    (lambda: x.sinh() + x.cosh(), np.exp(A)),
    (lambda: (x * 3).trunc(), np.trunc(A * 3)),
    (lambda: x.square(), A * A),
    (lambda: wick.leaky_relu(x), np.where(A > 0, A, 0.01 * A)),
    (lambda: x.leaky_relu(negative_slope=0.2), np.where(A > 0, A, 0.2 * A)),
    (lambda: wick.softplus(x, beta=2, threshold=20), np.log1p(np.exp(2 * A)) / 2),
    (lambda: wick.mish(x), A * np.tanh(np.log1p(np.exp(A)))),
    (lambda: wick.selu(v), 1.0507010 * np.where(V > 0, V, 1.6732632 * np.expm1(V))),
    (lambda: wick.hardsigmoid(x), np.clip(A / 6 + 0.5, 0, 1)),
    (lambda: wick.hardswish(x), A * np.clip(A / 6 + 0.5, 0, 1)),
    (lambda: (v / 0).isfinite(), np.zeros(3, bool)),
    (lambda: x.clamp(-0.5, 0.5), A.clip(-0.5, 0.5)),
    (lambda: x.clamp(min=0), A.clip(0)),
    (lambda: x.clamp(max=0.5), A.clip(max=0.5)),
    # Matrix products.
    (lambda: x @ wick.ones(4), A @ np.ones(4)),
    (lambda: v @ m, V @ M),
    (lambda: m.T.mm(m), M.T @ M),
    (lambda: wick.bmm(x, x.transpose(1, 2)), A @ A.transpose(0, 2, 1)),
    (lambda: m.T.mv(v), M.T @ V),
    (lambda: v.dot(v), V @ V),
    (lambda: wick.outer(v, v), np.outer(V, V)),
    (lambda: wick.einsum("ij,jk", m.T, m), M.T @ M),
    (lambda: wick.einsum("ij->ji", m), M.T),
    (lambda: wick.einsum("i,i", v, v), V @ V),
    # Slices and indices.
    (lambda: wick.stack(x.unbind()), A),
    (lambda: x.unbind(-1)[3], A[..., 3]),
    (lambda: v.repeat_interleave(2), V.repeat(2)),
    (lambda: x.repeat_interleave(2), A.repeat(2)),
    (lambda: wick.repeat_interleave(x, repeats=2, dim=1), A.repeat(2, 1)),
    (lambda: v.repeat_interleave(wick.tensor([2, 0, 1])), V.repeat([2, 0, 1])),
    (lambda: x.repeat_interleave(wick.tensor([1, 3]), dim=0), A.repeat([1, 3], 0)),
    (lambda: x.repeat_interleave(wick.tensor([2]), 1), A.repeat([2], 1)),
    (lambda: wick.stack(wick.meshgrid(v, n, indexing="ij")[:1]), [np.meshgrid(V, N, indexing="ij")[0]]),
    (lambda: wick.meshgrid([v, n.float()], indexing="xy")[1], np.meshgrid(V, N, indexing="xy")[1]),
    (lambda: m.gather(0, ids), np.take_along_axis(M[:, :2], IDS, 0)),
    (lambda: wick.gather(m, 1, ids[:, :1]), np.take_along_axis(M[:2], IDS[:, :1], 1)),
    (lambda: m.index_select(0, wick.tensor([2, 0])), M[[2, 0]]),
    (lambda: x.pad((1, 2)), np.pad(A, ((0, 0), (0, 0), (1, 2)))),
    (lambda: wick.pad(x, (1, 0, 0, 2), value=3.0), np.pad(A, ((0, 0), (0, 2), (1, 0)), constant_values=3)),
    (lambda: wick.pad(x, (1, 1), mode="reflect"), np.pad(A, ((0, 0), (0, 0), (1, 1)), mode="reflect")),
    (lambda: n.unique(), np.unique(N)),
    (lambda: n.unique(return_inverse=True)[1], run_counts(N)[1]),
    (lambda: n.unique(return_counts=True)[1], run_counts(N)[2]),
    (lambda: wick.unique(n, True, True, True)[2], run_counts(N)[2]),
    (lambda: wick.unique(m > 5, return_inverse=True)[1], (M > 5).astype(int)),
    (lambda: (x > 0).nonzero(), np.argwhere(A > 0)),
    (lambda: x.masked_select(x > 0), A[A > 0]),
    (lambda: x[x > 0], A[A > 0]),
    # Images.
    (lambda: wick.max_pool2d(x, 2, stride=1), np.maximum.reduce([A[:, :-1, :-1], A[:, 1:, :-1], A[:, :-1, 1:], A[:, 1:, 1:]])),
    (lambda: wick.adaptive_avg_pool2d(x, 1), A.mean((1, 2), keepdims=True)),
    (lambda: wick.adaptive_max_pool1d(x, 2), A.reshape(2, 3, 2, 2).max(-1)),
    (lambda: wick.interpolate(x, size=8), A.repeat(2, -1)),
    (lambda: wick.conv1d(x, wick.ones(1, 3, 3), padding="same")[:, :, 1], A[:, :, :3].sum((1, 2))[:, None]),
    (lambda: wick.conv1d(x[0], wick.ones(1, 3, 2)), (A[0, :, :-1] + A[0, :, 1:]).sum(0, keepdims=True)),
    # Creation and conversion.
    (lambda: wick.linspace(0, 1, 5), np.linspace(0, 1, 5)),
    (lambda: wick.linspace(start=0, end=1, steps=3), np.linspace(0, 1, 3)),
    (lambda: wick.randperm(6).sort().values, np.arange(6)),
    (lambda: wick.randint(1, (2, 2)), np.zeros((2, 2))),
    (lambda: wick.randint(4, 5, (3,)), np.full(3, 4)),
    (lambda: wick.randint(high=1, size=(2,)), np.zeros(2)),
    (lambda: wick.tensor([v, V]), np.stack([V, V])),
    (lambda: wick.tensor([[v[0], 1.0], [2, 3]]), np.array([[2, 1], [2, 3]])),
    (lambda: x.half().float(), A.astype(np.float16)),
    (lambda: (x * 3).long(), (A * 3).astype(np.int64)),
    (lambda: n.double().to(x), N),
    (lambda: v.bool(), np.ones(3, bool)),
    # Functions of Candle.
    (lambda: x.slice_scatter(wick.zeros(2, 3, 2), 2, 1), np.concatenate([A[..., :1], np.zeros((2, 3, 2)), A[..., 3:]], -1)),
    (lambda: x.slice_assign((slice(0, 1),), wick.tensor(0.0))[0], np.zeros((3, 4))),
    (lambda: v.broadcast_left(2), np.stack([V, V])),
    (lambda: x.round_to(1), np.sign(A) * np.floor(abs(A) * 10 + 0.5) / 10),
    (lambda: m.embedding(ids), M[IDS]),
]


@pytest.mark.parametrize("at", range(len(FORMS)))
def test_form(at: int) -> None:
    call, expected = FORMS[at]
    got = call().to("float64").numpy()
    assert got.shape == np.shape(expected)
    assert np.allclose(got, np.asarray(expected, dtype=np.float64), rtol=2e-6, atol=2e-6)


def test_names_of_one_argument() -> None:
    for call in (lambda: x.sum(1, keepdim=True, keepdims=True), lambda: x.std(0, keepdim=True, keepdims=True)):
        with pytest.raises(TypeError, match="keepdim and keepdims are two names of one argument"):
            call()
    with pytest.raises(TypeError, match="^sum: no argument is named 'keepdimss': takes .*keepdim"):
        x.sum(1, keepdimss=True)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="^sum: keepdims: need a bool"):
        x.sum(1, keepdims="yes")  # type: ignore[call-overload]


def test_bools_by_position_are_refused_where_pytorch_means_another_argument() -> None:
    for f in (wick.std, wick.var):
        with pytest.raises(TypeError, match="too many arguments"):
            f(x, 0, False)  # type: ignore[call-overload]


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64"])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 0, 0), (3, 1, 1), ((2, 3), (1, 2), (1, 0)), (4, 3, 2)])
def test_places_of_max_pool2d(dtype: str, kernel: Any, stride: Any, padding: Any) -> None:
    image = wick.randint(0, 9, (2, 3, 7, 6)).to(dtype)
    image = -image if dtype == "float32" else image
    values, places = wick.max_pool2d(image, kernel, stride, padding, return_indices=True)
    assert places.dtype is wick.uint32 and values.dtype == dtype
    assert values.tolist() == wick.max_pool2d(image, kernel, stride, padding).tolist()
    flat = image.reshape(2, 3, 42)
    assert flat.gather(places.reshape(2, 3, -1), 2).reshape(values.shape).tolist() == values.tolist()
    # The index is that of the first maximum of each window.
    (kh, kw), (ph, pw) = np.broadcast_to(kernel, 2), np.broadcast_to(padding, 2)
    sh, sw = np.broadcast_to(stride, 2) if stride else (kh, kw)
    a = image.to("float64").numpy()
    for b, c, i, j in np.ndindex(*values.shape):
        window = [
            (-a[b, c, r, q], r * 6 + q)
            for r in range(max(i * sh - ph, 0), min(i * sh - ph + kh, 7))
            for q in range(max(j * sw - pw, 0), min(j * sw - pw + kw, 6))
        ]
        assert places[b, c, i, j].item() == min(window)[1]


def test_places_of_other_pools() -> None:
    values, places = x.max_pool1d(2, return_indices=True)
    assert places.tolist() == [[[1, 3]] * 3] * 2 and values.tolist() == x.max_pool1d(2).tolist()
    for size in [(2, 3), (3, 4), (1, 1), (3, 2)]:
        values, places = wick.adaptive_max_pool2d(-x, size, return_indices=True)
        assert values.tolist() == wick.adaptive_max_pool2d(-x, size).tolist()
        assert (-x).reshape(2, 12).gather(1, places.reshape(2, -1)).reshape(values.shape).tolist() == values.tolist()
    values, places = wick.adaptive_max_pool1d(x, 3, True)
    assert places.tolist() == [[[1, 2, 3]] * 3] * 2
    assert isinstance(wick.adaptive_max_pool1d(x, 3, return_indices=False), wick.Tensor)
    nan = wick.tensor([[[1.0, math.nan, 5.0, math.nan]]])
    assert nan.max_pool1d(4, return_indices=True)[1].tolist() == [[[1]]]
    low = wick.full((1, 1, 3), -math.inf)
    assert low.max_pool1d(3, 1, 1, return_indices=True)[1].tolist() == [[[0, 0, 1]]]
    leaf = wick.tensor([[[1.0, 3.0, 2.0, 2.0]]], requires_grad=True)
    leaf.max_pool1d(2, return_indices=True)[0].sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[[0, 1, 1, 0]]]
    with pytest.raises(wick.Error, match="^max_pool2d: too much padding"):
        wick.max_pool2d(x, 2, 1, 2, return_indices=True)


def test_unique_with_all_its_parts() -> None:
    a = wick.tensor([[3.0, -0.0, 3.0], [math.nan, 0.0, 1.0]])
    values, inverse, counts = a.unique(return_inverse=True, return_counts=True)
    assert values.tolist()[:3] == [0, 1, 3] and counts.tolist() == [2, 1, 2, 1]
    assert inverse.tolist() == [[2, 0, 2], [3, 0, 1]] and inverse.dtype is wick.int64
    values, inverse, counts = wick.zeros(0, 2).unique(return_inverse=True, return_counts=True)
    assert (values.shape, inverse.shape, counts.shape) == ((0,), (0, 2), (0,))
    assert isinstance(n.unique(sorted=False), wick.Tensor)


def test_repeat_interleave_refuses() -> None:
    with pytest.raises(wick.Error, match="^repeat_interleave: counts of another shape"):
        x.repeat_interleave(wick.tensor([1, 2, 3]), 0)
    with pytest.raises(wick.Error, match="^repeat_interleave: a negative count"):
        v.repeat_interleave(wick.tensor([1, -2, 3]))
    with pytest.raises(wick.DTypeError, match="^repeat_interleave: counts of another dtype"):
        v.repeat_interleave(wick.tensor([1.0, 2.0, 3.0]))
    for counts in ([1, 2**60, 1], [2**63 - 1, 1, 1]):
        with pytest.raises(MemoryError, match="^repeat_interleave: out of memory"):
            v.repeat_interleave(wick.tensor(counts))
    leaf = wick.tensor([1.0, 2.0, 3.0], requires_grad=True)
    leaf.repeat_interleave(wick.tensor([2, 0, 3])).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [2, 0, 3]


def test_writing() -> None:
    leaf = wick.zeros(2, 3, requires_grad=True)
    with wick.no_grad():
        leaf[0] = 1
        leaf[:, 1].sum()
        leaf.add_(wick.ones(2, 3), alpha=2).mul_(2).sub_(1).div_(2).clamp_(0, 2)
        leaf[leaf > 1.9] = 7
        assert leaf.tolist() == [[7, 7, 7], [1.5, 1.5, 1.5]]
        leaf.copy_(wick.ones(2, 3))
        leaf.zero_()
    assert leaf.tolist() == [[0] * 3] * 2 and leaf.requires_grad
    target = wick.zeros(4)
    with pytest.raises(wick.Error, match="slice_set"):
        wick.slice_set(target, target[:2], 0, 1)


def test_hints() -> None:
    with pytest.raises(TypeError, match="mean.*convert it first.*float32"):
        n.mean()
    with pytest.raises(TypeError, match="linear"):
        wick.linear(m, m, v, v)  # type: ignore[call-overload]
    wick.manual_seed(3)
    first = [wick.rand(2, 3), wick.randn((2,)), wick.rand_like(m), wick.randn_like(m)]
    wick.manual_seed(3)
    again = [wick.rand((2, 3)), wick.randn(2), wick.rand_like(m), wick.randn_like(m)]
    assert [a.tolist() for a in first] == [b.tolist() for b in again]
    assert wick.empty(2, 3).shape == wick.empty((2, 3)).shape == (2, 3)
    assert v.allclose(v + 1e-9) and not v.equal(v + 1) and wick.equal(v, v)
