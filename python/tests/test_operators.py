import operator

import numpy as np
import pytest

import wick

A = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]], dtype=np.float32)
B = np.array([[2.0], [-4.0]], dtype=np.float32)
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.mark.parametrize("op", ARITHMETIC)
def test_tensors_and_numbers(op) -> None:  # type: ignore[no-untyped-def]
    a, b = wick.from_numpy(A), wick.from_numpy(B)
    for mine, theirs in [
        (op(a, b), op(A, B)),
        (op(b, a), op(B, A)),
        (op(a, 2), op(A, np.float32(2))),
        (op(2.5, a), op(np.float32(2.5), A)),
        (op(np.float32(3), a), op(np.float32(3), A)),
    ]:
        assert isinstance(mine, wick.Tensor) and mine.dtype is wick.float32
        assert np.array_equal(mine.numpy(), theirs)


def test_zero_keeps_its_sign() -> None:
    zero = wick.tensor([-0.0])
    assert np.signbit((zero * 2).numpy()).all() and np.signbit((zero - 0).numpy()).all()


def test_integers() -> None:
    x = wick.tensor([7, -8])
    assert (x + 1).tolist() == [8, -7] and (10 - x).tolist() == [3, 18]
    assert (x // 2).tolist() == [3, -4] and (-x).tolist() == [-7, 8] and abs(x).tolist() == [7, 8]
    assert (+x).tolist() == x.tolist() and (x * True).tolist() == x.tolist()
    with pytest.raises(TypeError, match="a float with int64"):
        x + 0.5
    with pytest.raises(OverflowError):
        wick.tensor([1], dtype="uint8") + 256
    with pytest.raises(OverflowError):
        wick.tensor([1], dtype="uint8") + (-1)
    with pytest.raises(OverflowError):
        x + 2**63
    for quotient in [lambda: x / 2, lambda: 2 / x, lambda: x / x, lambda: x / 0]:
        with pytest.raises(TypeError, match=r"use // for integer quotients, or convert first: x.to\(wick.float32\)"):
            quotient()
    assert wick.div(x, 2).tolist() == [3, -4]  # truncates, as the table of ops says
    assert (wick.tensor([1.0]) + 2**70).item() == 2.0**70


def test_floor_division() -> None:
    low = -(2**31)
    a = np.array([7, -7, 7, -7, 6, low, low, 0], dtype=np.int32)
    b = np.array([2, 2, -2, -2, -3, 3, 2**31 - 1, 5], dtype=np.int32)
    assert (wick.from_numpy(a) // wick.from_numpy(b)).tolist() == (a // b).tolist()
    assert (wick.from_numpy(a) // 3).tolist() == (a // 3).tolist()
    assert (100 // wick.from_numpy(b)).tolist() == (100 // b).tolist()
    assert (wick.tensor([7, 200], dtype="uint8") // 3).tolist() == [2, 66]
    assert (wick.tensor([-1.5, 1.5]) // 1).tolist() == [-2, 1]
    one = wick.tensor([1])
    for call in [lambda: one // 0, lambda: 0 // (one - 1), lambda: one // (one - 1), lambda: one // one.to("int32"),
                 lambda: one // wick.ones(2, 3, 4)[:, :, :3] // wick.ones(2)]:  # fmt: skip
        with pytest.raises(wick.Error, match="^//: ") as raised:
            call()
        assert raised.value.op == "//"
    with pytest.raises(wick.Error, match="^div: integer division by zero"):
        wick.div(one, 0)


def test_refused() -> None:
    x = wick.tensor([1.0, 2.0])
    for bad in ["a", None, [1.0], object()]:
        with pytest.raises(TypeError):
            x + bad
        with pytest.raises(TypeError):
            bad * x
    with pytest.raises(TypeError):
        A[0, :2] * x
    with pytest.raises(wick.Error, match="add: dtypes differ") as raised:
        x + wick.tensor([1, 2])
    assert raised.value.op == "add" and isinstance(raised.value, RuntimeError)
    with pytest.raises(wick.Error, match="add: "):
        x + wick.zeros(3)


def test_no_operator_changes_its_operand() -> None:
    x = before = wick.tensor([1.0])
    x += 1
    assert x.item() == 2 and before.item() == 1


def test_matmul() -> None:
    a = np.arange(6, dtype=np.float64).reshape(2, 3)
    x = wick.from_numpy(a)
    assert (x @ x.T).tolist() == (a @ a.T).tolist() == wick.matmul(x, x.mT).tolist()
    with pytest.raises(wick.Error, match="matmul: inner dimensions differ"):
        x @ x
    with pytest.raises(TypeError):
        x @ 2  # type: ignore[operator]
