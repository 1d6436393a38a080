import math
import re

import numpy as np
import pytest

import wick


def body(text: str) -> str:
    """What brackets hold, without the spaces that line columns up under the opening bracket."""
    text = text[text.index("(") + 1 : -1]
    return "\n".join(line.strip() for line in text.splitlines())


def without_dtype(text: str) -> str:
    return re.sub(r",\s*dtype=float\d+$", "", body(text))


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 2.0],
        [0.1, 0.25, -3.0],
        [1e-5, 1.0],
        [1e10, -2.5],
        [math.nan, 1.5, math.inf],
        [math.nan, -math.inf],
        [1 / 3, 2 / 3],
        [[1.5, 2.0], [3.25, -4.0]],
        [[[1.0], [2.0]], [[3.0], [4.0]]],
        [123456.0, 1.0],
        [0.0, -0.0],
        [1e-30, 3e-31],
        [16777216.0, 3.0],
        [float(i) / 7 for i in range(30)],
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_like_numpy(values: list[float], dtype: str) -> None:
    with np.errstate(all="ignore"), np.printoptions(linewidth=88 - 1):
        theirs = repr(np.array(values, dtype=dtype))
    mine = repr(wick.tensor(values, dtype=dtype))
    assert without_dtype(mine) == without_dtype(theirs)


def test_integers_and_suffixes() -> None:
    assert repr(wick.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(wick.tensor([1, 2], dtype="int32")) == "tensor([1, 2], dtype=int32)"
    assert repr(wick.tensor(1.0, dtype="float16")) == "tensor(1., dtype=float16)"
    assert repr(wick.tensor(0.1, dtype="bfloat16")) == "tensor(0.1, dtype=bfloat16)"
    assert repr(wick.tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(wick.tensor([])) == "tensor([])"
    assert repr(wick.zeros(0, 3)) == "tensor([], shape=(0, 3))"
    assert str(wick.tensor(7)) == "tensor(7)"
    assert repr(wick.quantize(wick.zeros(2, 32), "q8_0")) == "tensor(<blocks>, shape=(2, 32), dtype=q8_0)"
    assert repr(wick.arange(3).reshape(3, 1)) == "tensor([[0],\n        [1],\n        [2]])"


def test_large_ones_show_their_ends() -> None:
    assert repr(wick.arange(10**6)) == (
        "tensor([     0,      1,      2, ..., 999997, 999998, 999999], shape=(1000000,))"
    )
    text = repr(wick.zeros(2000, 5))
    assert text.count("\n") == 6 and "..." in text and text.endswith("shape=(2000, 5))")
    assert len(repr(wick.zeros(10**4, 10**3).broadcast_to((50, 10**4, 10**3)))) < 10000
    assert repr(wick.arange(10**4).reshape(10, 10, 1, 100)[::-1].mT).endswith("shape=(10, 10, 100, 1))")


def test_only_what_is_shown_is_read() -> None:
    wick.set_memory_limit("cpu", 64 << 20)
    try:
        text = repr(wick.tensor(1.0).expand(2**30, 2**30))
    finally:
        wick.set_memory_limit("cpu", 0)
    assert text.count("1., 1., 1., ..., 1., 1., 1.") == 6 and text.endswith("shape=(1073741824, 1073741824))")
