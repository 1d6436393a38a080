"""What users of PyTorch write, and would be surprised by: each does as PyTorch, or is an error that says what to write."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
import wick

X = wick.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])


def test_linear_takes_a_bias_third_and_fused_arguments_by_name() -> None:
    x, w, b = wick.ones(2, 3), wick.ones(3, 3), wick.tensor([1.0, 2.0, 3.0])
    assert wick.linear(x, w, b).tolist() == wick.linear(x, w, bias=b).tolist() == [[4, 5, 6]] * 2
    assert x.linear(wick.Weight(w), b).tolist() == [[4, 5, 6]] * 2
    fused = wick.linear(x, w, norm=b, eps=0.0)
    assert np.allclose(fused.numpy(), wick.linear(wick.rms_norm(x, b, 0.0), w).numpy())
    assert np.allclose(wick.linear(x, w, b, norm=b, eps=0.0).numpy(), (fused + b).numpy())
    with pytest.raises(TypeError):
        wick.linear(x, w, b, b)  # type: ignore[misc]
    for wrong in [wick.ones(2), wick.ones(1, 3), wick.ones(1)]:
        with pytest.raises(wick.Error, match=r"linear: bias of another shape: .*need \[3\]"):
            wick.linear(x, w, wrong)
    weight = wick.ones(3, 3, requires_grad=True)
    bias = wick.ones(3, requires_grad=True)
    wick.linear(x, weight, bias).sum().backward()
    assert bias.grad is not None and bias.grad.tolist() == [2, 2, 2]


def test_max_along_a_dim_gives_values_and_indices() -> None:
    for name in ["max", "min"]:
        values, indices = getattr(X, name)(1)
        best = getattr(wick, "arg" + name)(X, 1)
        assert values.tolist() == getattr(X, "a" + name)(1).tolist() and indices.tolist() == best.tolist()
        assert getattr(wick, name)(X, 1).values.tolist() == values.tolist()
        assert getattr(X, name)(dim=-1, keepdim=True).indices.shape == (2, 1)
        assert getattr(X, name)().item() == getattr(X.numpy(), name)()
        with pytest.raises(TypeError, match=f"{name}: dim: need one int.* a{name} gives values over any dims"):
            getattr(X, name)((0, 1))
    pair = X.max(1)
    assert len(pair) == 2 and pair[0].tolist() == pair.values.tolist() and pair[-1].tolist() == pair.indices.tolist()
    assert wick.max(X, wick.tensor(4.5)).tolist() == wick.maximum(X, wick.tensor(4.5)).tolist()
    assert X.amax().item() == 6 and X.amax((0, 1)).item() == 6 and X.amin(0, keepdim=True).shape == (1, 3)
    assert X.sort().values.tolist() == np.sort(X.numpy()).tolist() and X.topk(1).indices.tolist() == [[0], [1]]
    leaf = wick.tensor([1.0, 5.0], requires_grad=True)
    leaf.max(0).values.backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [0, 1]


def test_dtypes_equal_their_names() -> None:
    for same in ["float32", "f32", "torch.float32", "wick.float32", np.float32, np.dtype("float32"), wick.float32]:
        assert X.dtype == same and not X.dtype != same
    for other in ["float64", "int32", "no such dtype", 32, None, float, wick.int32, np.int64]:
        assert X.dtype != other and not X.dtype == other
    assert len({wick.float32, wick.float32, wick.int32}) == 2 and {wick.float32: 1}[X.dtype] == 1
    assert X.device == "cpu"


def test_grad_can_be_set_and_cleared() -> None:
    p = wick.ones(2, requires_grad=True)
    (p * 3).sum().backward()
    assert p.grad is not None and p.grad.tolist() == [3, 3]
    p.grad = None
    assert p.grad is None
    p.grad = wick.tensor([1.0, 2.0])
    (p * 3).sum().backward()
    assert p.grad.tolist() == [4, 5]
    for wrong in [wick.ones(3), wick.ones(2, dtype="float16")]:
        with pytest.raises(wick.Error, match="grad: a gradient that doesn't fit: .*need the leaf's shape"):
            p.grad = wrong
    with pytest.raises(wick.Error, match="grad: not a leaf"):
        (p * 2).grad = wick.ones(2)
    with pytest.raises(TypeError):
        p.grad = 1  # type: ignore[assignment]


WHOLE = wick.tensor([1, 2, 3])
TRAPS: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("a float beside integers", lambda: WHOLE + 0.5, TypeError, r"convert with .to\(wick.float32\)"),
    ("the mean of integers", lambda: WHOLE.mean(), TypeError, "mean: not for this dtype"),
    ("two dtypes", lambda: WHOLE + wick.ones(3), TypeError, "nothing is promoted: convert one"),
    ("truth of many", lambda: bool(wick.ones(2)), wick.Error, "not one element"),
    ("a chain of comparisons", lambda: 0 < wick.ones(2) < 2, wick.Error, "not one element"),
    ("the length of a number", lambda: len(wick.tensor(1.0)), TypeError, "."),
    ("a power of integers", lambda: WHOLE**2, TypeError, "pow: not for this dtype"),
    ("writing in place", lambda: WHOLE.__setitem__(0, 1), TypeError, "."),
]


@pytest.mark.parametrize("call, error, says", [t[1:] for t in TRAPS], ids=[t[0] for t in TRAPS])
def test_errors_that_say_what_to_write(call: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
