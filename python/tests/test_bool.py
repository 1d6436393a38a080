"""bool: what comparisons give, and what it does in operators, masks, sums, numbers and arrays."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
import wick

N = np.array([[1, -2, 3, 0], [0, 5, -6, 7]])
X = wick.tensor(N)
MASK, NOT = X > 0, X <= 0


def test_comparisons_give_it() -> None:
    for made in [X > 0, X == X, wick.isnan(wick.ones(2)), wick.any(X), wick.all(X, 1), wick.logical_not(X)]:
        assert made.dtype is wick.bool
    assert MASK.tolist() == (N > 0).tolist() and MASK.tolist()[0][0] is True
    assert repr(wick.tensor([True, False])) == "tensor([ True, False], dtype=bool)"
    assert repr(wick.bool) == "wick.bool" and pickle.loads(pickle.dumps(wick.bool)) is wick.bool
    assert pickle.loads(pickle.dumps(MASK)).tolist() == MASK.tolist()


def test_operators_are_logical() -> None:
    for a, b in product([True, False], repeat=2):
        x, y = wick.tensor([a]), wick.tensor([b])
        for other in [y, b, np.bool_(b)]:
            assert (x & other).tolist() == [a and b] and (x & other).dtype is wick.bool
            assert (x | other).tolist() == [a or b]
            assert (x ^ other).tolist() == [a != b]
            assert (x == other).tolist() == [a == b] and (x < other).tolist() == [a < b]
        assert (~x).tolist() == [not a] and (b & x).tolist() == [a and b]
    assert (~MASK).tolist() == NOT.tolist() and (~~MASK).tolist() == MASK.tolist()


def test_masks_select_what_is_set() -> None:
    assert X[MASK].tolist() == N[N > 0].tolist() and X[~MASK].tolist() == N[~(N > 0)].tolist()
    assert wick.where(MASK, X, 0).tolist() == np.where(N > 0, N, 0).tolist()
    assert wick.where(MASK, MASK, True).tolist() == np.where(N > 0, N > 0, True).tolist()
    assert X.masked_fill(~MASK, 9).tolist() == np.where(N > 0, N, 9).tolist()
    assert X[MASK.to("uint8")].tolist() == X[MASK].tolist()


def test_sums_count() -> None:
    assert (wick.ones(300) > 0).sum().item() == 300
    for dim in [0, 1]:
        for f in ["sum", "prod"]:
            mine, theirs = getattr(MASK, f)(dim), getattr(N > 0, f)(dim)
            assert mine.dtype is wick.int64 and mine.tolist() == theirs.tolist()
    assert MASK.cumsum(1).tolist() == (N > 0).cumsum(1).tolist() and MASK.cumsum(1).dtype is wick.int64
    assert wick.argmax(MASK, 1).tolist() == (N > 0).argmax(1).tolist()


def test_casts() -> None:
    for dtype in "uint8 uint32 int16 int32 int64 bfloat16 float16 float32 float64 float8_e4m3".split():
        there = MASK.to(dtype)
        assert there.tolist() == (N > 0).astype(int).tolist() and there.to(wick.bool).tolist() == MASK.tolist()
    assert wick.tensor([0.0, -0.0, 0.5, float("nan")]).to(bool).tolist() == [False, False, True, True]
    assert wick.tensor([2, 0], dtype="bool").tolist() == [True, False]


def test_making_and_reading() -> None:
    for dtype in [wick.bool, "bool", bool, np.bool_, np.dtype("bool")]:
        assert wick.zeros(2, dtype=dtype).dtype is wick.bool
    assert wick.full((2,), True).dtype is wick.bool and wick.full((2,), 1).dtype is wick.int64
    assert wick.tensor([True, 1]).dtype is wick.int64 and wick.tensor(True).item() is True
    assert wick.ones(3, dtype="bool").tolist() == [True] * 3
    assert bool(wick.tensor([True])) is True and int(wick.tensor([True])) == 1


def test_arrays() -> None:
    mine = wick.from_numpy(N > 0)
    assert mine.dtype is wick.bool and mine.tolist() == MASK.tolist()
    theirs = MASK.numpy()
    assert theirs.dtype == np.bool_ and (theirs == (N > 0)).all() and memoryview(MASK).format == "?"
    assert np.from_dlpack(MASK).dtype == np.bool_ and wick.from_dlpack(N > 0).tolist() == MASK.tolist()
    # Bytes that are neither 0 nor 1 are true, as for NumPy.
    odd = np.array([0, 1, 2, 255], dtype=np.uint8).view(np.bool_)
    for made in [wick.from_numpy(odd), wick.tensor(odd), wick.from_dlpack(odd)]:
        assert made.sum().item() == 3 and made.to("uint8").tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("call", [
    lambda: MASK + MASK, lambda: -MASK, lambda: MASK * 2, lambda: MASK.mean(), lambda: MASK @ MASK.T, lambda: MASK << MASK,
], ids=["add", "neg", "mul", "mean", "matmul", "shift"])
def test_arithmetic_says_which_cast(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError, match="convert (it|the tensor) first"):  # to what: test_hints.py
        call()
