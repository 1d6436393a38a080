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
        with pytest.raises(wick.Error, match=r"linear: bias has the wrong shape: .*need \[3\]"):
            wick.linear(x, w, wrong)
    for dtype in ["float64", "bool", "int64", "bfloat16"]:
        for weights in [w, wick.Weight(w)]:
            with pytest.raises(TypeError, match=r"^linear: bias has the wrong dtype: x f32.*convert the bias to f32$"):
                wick.linear(x, weights, b.to(dtype))
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
    ("the mean of integers", lambda: WHOLE.mean(), TypeError, r"mean: unsupported dtype: .*convert it first, as with .to\(wick.float32\)"),
    ("two dtypes", lambda: WHOLE + wick.ones(3), TypeError, "dtypes aren't promoted: convert one"),
    ("truth of many", lambda: bool(wick.ones(2)), wick.Error, "not one element"),
    ("a chain of comparisons", lambda: 0 < wick.ones(2) < 2, wick.Error, "not one element"),
    ("the length of a number", lambda: len(wick.tensor(1.0)), TypeError, "."),
    ("a power of integers", lambda: WHOLE**2, TypeError, "pow: unsupported dtype"),
    ("a fraction for an integer", lambda: WHOLE.__setitem__(0, 0.5), TypeError, "dtypes aren't promoted"),
]


@pytest.mark.parametrize("call, error, says", [t[1:] for t in TRAPS], ids=[t[0] for t in TRAPS])
def test_errors_that_say_what_to_write(call: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize(
    "a, b, dtype",
    [(1, 0, "int64"), (True, False, "bool"), (1.0, 0.0, "float32"), (1, 0.5, "float32"), (0.5, 1, "float32"), (True, 2, "int64"),
     (True, 0.5, "float32"), (np.int32(3), 4, "int64"), (np.float64(3), 4, "float32"), (np.True_, False, "bool"),
     (2**62 + 1, -(2**63), "int64")],
)  # fmt: skip
def test_where_of_two_numbers(a: Any, b: Any, dtype: str) -> None:
    masks = [X > 2, (X > 2).to("uint8"), X[:0] > 2, wick.tensor(True)]
    for mask in masks:
        for made in [wick.where(mask, a, b), mask.where(a, b)]:
            assert made.dtype == dtype and made.shape == mask.shape and made.device == mask.device
            assert made.tolist() == np.where(mask.numpy() != 0, a, b).astype(dtype).tolist()


def test_where_of_a_number_and_a_tensor() -> None:
    mask, half = X > 2, X.to("float16")
    assert wick.where(mask, half, 0).dtype is wick.float16 and wick.where(mask, 1, half).dtype is wick.float16
    assert wick.where(mask, 7, half).tolist() == np.where(X.numpy() > 2, 7, X.numpy()).tolist()
    with pytest.raises(TypeError, match="^where: a float with int64"):
        wick.where(mask, 0.5, X.to("int64"))
    for large in [2**63, -(2**63) - 1]:
        with pytest.raises(OverflowError):
            wick.where(mask, large, 0)
    assert wick.where(mask, 2**63, 0.0).tolist() == np.where(X.numpy() > 2, np.float32(2**63), 0).tolist()


IMAGE, LINE = wick.arange(32.0).reshape(1, 2, 4, 4), wick.arange(12.0).reshape(1, 2, 6)
# Sizes that PyTorch takes as an int or as one number a dim: what they are in a call that works, and the name of the input.
SIZES: dict[str, tuple[tuple[Any, ...], dict[str, int]]] = {
    "conv1d": ((LINE, wick.ones(2, 2, 3)), {"stride": 2, "padding": 1, "dilation": 2}),
    "conv2d": ((IMAGE, wick.ones(2, 2, 2, 2)), {"stride": 2, "padding": 1, "dilation": 2}),
    "conv_transpose1d": ((LINE, wick.ones(2, 2, 3)), {"stride": 3, "padding": 1, "output_padding": 2, "dilation": 2}),
    "conv_transpose2d": ((IMAGE, wick.ones(2, 2, 2, 2)), {"stride": 3, "padding": 1, "output_padding": 2, "dilation": 2}),
    "conv2d_weight": ((IMAGE, wick.ones(1, 2, 3, 3)), {"kernel_size": 2, "stride": 1, "padding": 0, "dilation": 1}),
    "max_pool1d": ((LINE,), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "avg_pool1d": ((LINE,), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "max_pool2d": ((IMAGE,), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "avg_pool2d": ((IMAGE,), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "max_pool2d_grad": ((IMAGE, wick.ones(1, 2, 2, 2)), {"kernel_size": 2, "stride": 2, "padding": 0}),
    "avg_pool2d_grad": ((IMAGE, wick.ones(1, 2, 2, 2)), {"kernel_size": 2, "stride": 2, "padding": 0}),
    "upsample_nearest1d": ((LINE,), {"size": 8}),
    "upsample_nearest2d": ((IMAGE,), {"size": 8}),
    "upsample_bilinear2d": ((IMAGE,), {"size": 8}),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_an_int_or_one_a_dim(name: str) -> None:
    (tensors, sizes), function = SIZES[name], getattr(wick, name)
    expected = function(*tensors, **sizes).tolist()
    dims = 1 if "1d" in name else 2
    for key, size in sizes.items():
        good = [(size,), [size], np.array([size]), np.int64(size), (size,) * dims]
        for form in good:
            assert function(*tensors, **{**sizes, key: form}).tolist() == expected, (key, form)
        for form in [(size,) * (dims + 1), (), (size, size, size)]:
            with pytest.raises(TypeError, match=f"^{name}: {key}: need one int"):
                function(*tensors, **{**sizes, key: form})
    if dims == 2 and "stride" in sizes and "grad" not in name and name != "conv2d_weight":
        sizes = {**sizes, **({"output_padding": 0} if "output_padding" in sizes else {})}
        uneven = function(*tensors, **{**sizes, "stride": (1, sizes["stride"])})
        assert uneven.shape[-1] == function(*tensors, **sizes).shape[-1]
        assert uneven.shape[-2] == function(*tensors, **{**sizes, "stride": 1}).shape[-2] != uneven.shape[-1]
