"""Functions that move elements, and those whose arguments have PyTorch's order, beside NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import wick

A = np.arange(24.0).reshape(2, 3, 4) + 1
X = wick.tensor(A)
FLOATS = ["float64", "float32", "float16", "bfloat16"]


def check_gradient(call: Callable[..., wick.Tensor], *arrays: np.ndarray) -> None:
    """The gradient of a weighted sum of the result, beside central differences."""
    leaves = [wick.tensor(a, dtype="float64", requires_grad=True) for a in arrays]
    result = call(*leaves)
    weights = np.random.default_rng(3).standard_normal(result.shape)
    grads = wick.grad((result * wick.tensor(weights)).sum(), leaves)
    h = 1e-5
    for at, (a, g) in enumerate(zip(arrays, grads)):
        for place in np.ndindex(a.shape):
            sides = []
            for by in (h, -h):
                moved = [np.array(b, dtype="float64") for b in arrays]
                moved[at][place] += by
                sides.append((call(*[wick.tensor(m) for m in moved]).numpy() * weights).sum())
            assert g[place].item() == pytest.approx((sides[0] - sides[1]) / (2 * h), rel=1e-4, abs=1e-6), (at, place)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 33])
def test_cumprod(n: int) -> None:
    a = np.random.default_rng(n).uniform(-1.5, 1.5, (3, n, 2))
    for dim in (0, 1, 2, -1):
        assert np.allclose(wick.tensor(a).cumprod(dim).numpy(), a.cumprod(dim), rtol=1e-12)
    for dtype, eps in [("float32", 1.2e-7), ("float16", 1e-3), ("bfloat16", 8e-3)]:
        x = wick.tensor(a).to(dtype)
        exact = x.to("float64").numpy().cumprod(1)
        y = x.cumprod(1)
        assert y.dtype == dtype and np.allclose(y.to("float64").numpy(), exact, rtol=eps, atol=1e-7)
    assert wick.cumprod(wick.tensor(a)).tolist() == wick.tensor(a).cumprod(-1).tolist()


def test_cumprod_of_integers() -> None:
    x = wick.tensor([[2, 3, 0, 5], [1, -2, 3, 4]])
    assert x.cumprod(1).tolist() == [[2, 6, 0, 0], [1, -2, -6, -24]]
    assert x.to("int32").cumprod(0).dtype == wick.int32
    assert wick.tensor([200, 2], dtype="uint8").cumprod(0).tolist() == [200, 144]
    assert wick.tensor([True, True, False, True]).cumprod(0).tolist() == [1, 1, 0, 0]
    assert wick.tensor([True]).cumprod(0).dtype == wick.int64
    assert wick.zeros(3, 0).cumprod(1).shape == (3, 0)
    with pytest.raises(IndexError, match="^cumprod: "):
        x.cumprod(2)
    # Products below and beyond float32's range that come back into it.
    assert wick.tensor([1e-30, 1e30, 1e30, 1e-30]).cumprod(0).numpy() == pytest.approx([1e-30, 1, 1e30, 1])
    # A zero in front of elements whose product is beyond the dtype.
    assert wick.tensor([0.0] + [1000.0] * 60, dtype="float16").cumprod(0).tolist() == [0] * 61
    assert wick.tensor([0.0] + [1e30] * 9).cumprod(0).tolist() == [0] * 10
    check_gradient(lambda t: t.cumprod(1), np.array([[0.5, 2.0, -1.5, 0.7, 1.1], [2.0, 0.0, 3.0, 1.0, -1.0]]))


def test_median() -> None:
    a = np.array([[3.0, 1.0, 2.0, 7.0], [5.0, 8.0, 6.0, 4.0]])
    x = wick.tensor(a)
    assert x.median().item() == 4 and wick.median(x).shape == ()
    values, indices = x.median(1)
    assert values.tolist() == [2, 5] and indices.tolist() == [2, 0]
    assert x.median(0, keepdim=True).values.tolist() == [[3, 1, 2, 4]] and x.median(dim=-1).values.tolist() == [2, 5]
    nan = wick.tensor([[1.0, math.nan, 0.0], [1.0, 2.0, 3.0]])
    values, indices = nan.median(1)
    assert math.isnan(values[0].item()) and values[1].item() == 2 and indices.tolist() == [1, 1]
    assert math.isnan(nan.median().item())
    assert wick.tensor([4, 2, 9]).median().item() == 4
    check_gradient(lambda t: t.median(1).values, a)
    check_gradient(lambda t: t.median(), a)
    for call in [lambda: wick.zeros(0).median(), lambda: wick.zeros(2, 0).median(1)]:
        with pytest.raises(ValueError, match="^median: no elements"):
            call()


def test_round_to() -> None:
    x = wick.tensor([1.2345, -1.2345, 2.5, 1234.5678, 1e300, math.inf, -math.inf, 0.0], dtype="float64")
    assert x.round_to(2).tolist() == [1.23, -1.23, 2.5, 1234.57, 1e300, math.inf, -math.inf, 0]
    assert x.round_to(0).tolist()[2:4] == [3, 1235] and x.round_to().equal(x.round())
    assert x.round_to(-2).tolist()[3] == 1200 and x.round_to(300).tolist()[0] == 1.2345
    assert wick.tensor([0.125, 1.375]).round_to(2).tolist() == pytest.approx([0.13, 1.38])
    assert math.isnan(wick.tensor(math.nan).round_to(1).item())
    assert wick.tensor([1.26], dtype="float16").round_to(1).dtype == wick.float16
    with pytest.raises(ValueError, match="^round_to: decimals out of range: 301"):
        x.round_to(301)
    with pytest.raises(TypeError, match="^round_to: unsupported dtype"):
        wick.ones(2, dtype="int64").round_to(1)


def test_broadcast_left() -> None:
    y = wick.tensor(A[0]).broadcast_left((2, 5))
    assert y.shape == (2, 5, 3, 4) and y.tolist() == np.broadcast_to(A[0], (2, 5, 3, 4)).tolist()
    assert X.broadcast_left(2).shape == (2, 2, 3, 4) and X.broadcast_left(()).equal(X)
    check_gradient(lambda t: t.broadcast_left((2, 2)), A[0])
    with pytest.raises(ValueError, match="^broadcast_left: too many dimensions"):
        X.broadcast_left((1,) * 6)


def test_embedding() -> None:
    table = A.reshape(6, 4)
    weight, ids = wick.tensor(table), np.array([[5, 0, 3], [1, 1, 2]])
    for dtype in ["int64", "int32", "uint32", "uint8"]:
        places = wick.tensor(ids, dtype=dtype)
        assert wick.embedding(places, weight).tolist() == table[ids].tolist()
        assert weight.embedding(places).tolist() == table[ids].tolist()
    assert wick.embedding(wick.tensor(2), weight).tolist() == table[2].tolist()
    check_gradient(lambda t: wick.embedding(wick.tensor(ids), t), table)
    packed = wick.quantize(wick.ones(4, 64), "q8_0")
    assert wick.embedding(wick.tensor([3, 1]), packed).shape == (2, 64)
    with pytest.raises(IndexError, match="^embedding: "):
        weight.embedding(wick.tensor([6]))
    with pytest.raises(ValueError, match="^embedding: wrong rank"):
        X.embedding(wick.tensor([0]))
    with pytest.raises(TypeError, match="^embedding: "):
        wick.embedding(weight, weight)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "uint8", "bool"])
def test_slice_scatter(dtype: str) -> None:
    x = X.to(dtype) if dtype != "bool" else X > 7
    source = x.flip(0)
    base, new = x.tolist(), source.tolist()
    for dim, cut, arguments in [
        (0, slice(1, 2), (0, 1, 2)), (1, slice(0, 2), (1, None, 2)), (2, slice(1, None), (2, 1)),
        (2, slice(-3, -1), (2, -3, -1)), (2, slice(0, 4, 3), (2, None, None, 3)), (1, slice(1, 100, 2), (1, 1, 100, 2)),
        (1, slice(2, 1), (1, 2, 1)), (2, slice(None), (-1,)),
    ]:
        index = (slice(None),) * dim + (cut,)
        expected = np.array(base)
        expected[index] = np.array(new)[index]
        got = x.slice_scatter(source[index], *arguments)
        assert got.tolist() == expected.tolist() and got.dtype == dtype
    assert x.tolist() == base


def test_slice_scatter_without_an_end() -> None:
    # Candle's form: the source's size says where it ends.
    expected = A.copy()
    expected[:, 1:2] = 0
    assert X.slice_scatter(wick.zeros(2, 1, 4, dtype="float64"), 1, 1).tolist() == expected.tolist()
    assert X.slice_scatter(wick.zeros(2, 1, 4, dtype="float64"), dim=1, start=1, end=2).tolist() == expected.tolist()
    b = A[:, :2] * 3
    check_gradient(lambda t, s: t.slice_scatter(s, 1, 1), A, b)
    check_gradient(lambda t, s: t.slice_scatter(s, 1, 0, 3, 2), A, b)
    ones = wick.ones(2, 2, 4, dtype="float64")
    for call, message in [
        (lambda: X.slice_scatter(ones, 1, 2), "sizes don't fit: .*: need up to 1 along the dim"),
        (lambda: X.slice_scatter(ones, 1, 0, 1), "sizes don't fit: .*: need 1 along the dim"),
        (lambda: X.slice_scatter(ones[0], 1), "sizes don't fit"), (lambda: X.slice_scatter(ones, 0), "sizes don't fit"),
        (lambda: X.slice_scatter(ones, 1, 0, 2, 0), "a step below 1: 0"),
        (lambda: X.slice_scatter(ones.to("float32"), 1), "dtypes differ"),
        (lambda: X.slice_scatter(ones, 3), "dimension out of range"),
    ]:
        with pytest.raises(wick.Error, match=f"^slice_scatter: {message}"):
            call()


@pytest.mark.parametrize(
    "where",
    [
        slice(0, 1), (slice(None), slice(1, 3)), (slice(0, 1), slice(1, 3), slice(2, None)), [slice(1, 2), slice(None)],
        (slice(None), slice(None, None, 2), slice(1, 4, 2)), (slice(-1, None), slice(-2, 100), slice(None, -1)),
        (slice(2, 1),), (), (slice(None),) * 3,
    ],
)
def test_slice_assign(where: object) -> None:
    index = tuple(where) if isinstance(where, list) else where
    expected = A.copy()
    source = -A[index]
    expected[index] = source
    got = X.slice_assign(where, wick.tensor(source))
    assert got.tolist() == expected.tolist()
    # What broadcasts, too; and x stays as it was.
    expected[index] = 7
    assert X.slice_assign(where, wick.tensor(7.0, dtype="float64")).tolist() == expected.tolist()
    assert X.tolist() == A.tolist()
    check_gradient(lambda t, s: t.slice_assign(where, s), A, source)
    check_gradient(lambda t, s: t.slice_assign(where, s), A, np.ones(()))


def test_slice_assign_refuses() -> None:
    one = wick.ones(1, dtype="float64")
    for call, message in [
        (lambda: X.slice_assign((slice(None),) * 4, one), "more slices than dims"),
        (lambda: X.slice_assign(slice(None, None, -1), one), "a step below 1: -1"),
        (lambda: X.slice_assign(slice(0, 1), X), "sizes don't fit"),
        (lambda: X.slice_assign(slice(0, 2), wick.ones(5, dtype="float64")), "shapes don't broadcast"),
        (lambda: X.slice_assign(slice(0, 1), wick.ones(1)), "dtypes differ"),
    ]:
        with pytest.raises(wick.Error, match=f"^slice_assign: {message}"):
            call()
    for where in [1, "a", None, (slice(0, 1), 1), slice("a", None)]:
        with pytest.raises(TypeError, match="^slice_assign: "):
            X.slice_assign(where, one)


def test_orders_of_pytorch() -> None:
    ids = np.array([[[1, 0, 2, 2]], [[0, 0, 1, 1]]])
    index = wick.tensor(ids)
    expected = np.take_along_axis(A, ids, 1)
    for got in [X.gather(1, index), wick.gather(X, 1, index), X.gather(dim=1, index=index), X.gather(axis=1, index=index),
                X.gather(index, 1)]:  # fmt: skip
        assert got.tolist() == expected.tolist()
    source = wick.tensor(-expected)
    assert X.scatter(1, index, source).equal(X.scatter(index, source, 1))
    assert X.scatter_add(dim=1, index=index, src=source).equal(X.scatter_add(index, source, 1))
    places = wick.tensor([2, 0])
    assert X.index_select(1, places).tolist() == A[:, [2, 0]].tolist()
    assert X.index_add(1, places, X[:, :2]).equal(X.index_add(places, X[:, :2], 1))
    assert X.flip(dims=(0, 1)).tolist() == A[::-1, ::-1].tolist()
    with pytest.raises(IndexError, match="^gather: "):
        X.gather(3, index)


def test_flat_padding() -> None:
    for flat, pairs in [((1, 2), [(1, 2)]), ([1, 2, 3, 0], [(3, 0), (1, 2)]), ((1, 0, 0, 1, 2, 2), [(2, 2), (0, 1), (1, 0)])]:
        assert X.pad(flat).equal(X.pad(pairs))
        rows = [(0, 0)] * (3 - len(pairs)) + pairs
        assert wick.pad(X, flat, value=-1).tolist() == np.pad(A, rows, constant_values=-1).tolist()
    assert X.pad((1, 1), "reflect").tolist() == np.pad(A, [(0, 0), (0, 0), (1, 1)], mode="reflect").tolist()
    assert X.pad(()).equal(X)
    for wrong in [(1,), (1, 2, 3)]:
        with pytest.raises(ValueError, match="^pad: an odd number of sizes"):
            X.pad(wrong)
    with pytest.raises(ValueError, match="^pad: more paddings than dimensions"):
        X.pad((1,) * 8)
    with pytest.raises(ValueError, match="^pad: no such mode: around"):
        X.pad((1, 1), "around")


def test_empty() -> None:
    for dtype in ["float32", "float64", "float16", "int64", "uint8", "bool"]:
        x = wick.empty(3, 4, dtype=dtype)
        assert x.shape == (3, 4) and x.dtype == dtype
        x.fill_(1)
        assert x.sum().item() == 12
        assert wick.empty_like(x).dtype == dtype and wick.empty_like(x, "float32").shape == (3, 4)
    truths = wick.empty(1000, dtype="bool")
    assert set(truths.tolist()) <= {False, True}
    assert wick.empty((2, 0)).tolist() == [[], []] and wick.empty(2, requires_grad=True).requires_grad
    with pytest.raises(ValueError):
        wick.empty(-1)
