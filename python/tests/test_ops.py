import numpy as np
import pytest

import wick


@pytest.mark.parametrize("op", [op for op in wick.ops() if op.kind == "unary"], ids=lambda op: op.name)
def test_unary_rows_are_functions_and_methods(op: wick.Op) -> None:
    dtype = wick.float32 if wick.float32 in op.dtypes else op.dtypes[0]
    x = wick.tensor([[0.25, 0.5], [0.75, 1.0]], dtype="float32").to(dtype)
    result = getattr(wick, op.name)(x)
    assert result.shape == (2, 2)
    assert str(getattr(x, op.name)()) == str(result)
    with pytest.raises(TypeError):
        getattr(wick, op.name)("text")


@pytest.mark.parametrize("op", [op for op in wick.ops() if op.kind == "reduce"], ids=lambda op: op.name)
def test_reductions(op: wick.Op) -> None:
    x = wick.tensor([[1, 2, 3], [4, 5, 6]], dtype="float32").to(
        wick.float32 if wick.float32 in op.dtypes else op.dtypes[0]
    )
    # max and min along a dim give indices, too: test_traps.py.
    name = {"max": "amax", "min": "amin"}.get(op.name, op.name)
    function = getattr(wick, name)
    assert function(x).shape == () and function(x, dim=1).shape == (2,)
    assert function(x, dim=-1, keepdim=True).shape == (2, 1)
    assert function(x, dim=(0, 1), keepdim=True).shape == (1, 1)
    assert getattr(x, name)(0).shape == (3,)
    with pytest.raises(wick.Error):
        function(x, dim=2)
    with pytest.raises(IndexError, match=f"^{name}: dimension out of range: dim 5"):
        function(x, dim=(0, 5))
    with pytest.raises(ValueError, match=f"^{name}: dimension named twice: dims \\(0,-2\\)"):
        function(x, dim=(0, -2))


def test_some_values() -> None:
    x = wick.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert x.sum().item() == 11 and x.mean(0).tolist() == [2.5, 3.0] and x.amax(1).tolist() == [3, 5]
    assert x.argmax().item() == 3 and x.argmin(dim=1).tolist() == [1, 0]
    assert wick.argmax(x, 0, keepdim=True).tolist() == [[0, 1]]
    assert x.argmin((0, 1)).item() == 1 and x.argmax(dim=[1, 0], keepdim=True).tolist() == [[3]]
    assert wick.maximum(x, wick.full_like(x, 2.0)).tolist() == [[3, 2], [2, 5]]
    assert wick.cat([x, x]).shape == (4, 2) and wick.stack([x, x], dim=1).shape == (2, 2, 2)
    assert wick.affine(x, 2, 1).tolist() == [[7, 3], [5, 11]]
    assert np.allclose(x.softmax().sum(-1).numpy(), 1)
    assert np.allclose(wick.log_softmax(x, dim=0).exp().sum(0).numpy(), 1)
    assert wick.index_select(x, wick.tensor([1]), 0).tolist() == [[2, 5]]
    assert wick.cast(x, "int64").tolist() == [[3, 1], [2, 5]]
    assert wick.rms_norm(x, wick.ones(2)).shape == (2, 2)
    cos, sin = wick.ones(2, 1), wick.zeros(2, 1)
    assert wick.rope(x, cos, sin).tolist() == x.tolist() == wick.rope_interleaved(x, cos, sin).tolist()
    q = wick.ones(1, 2, 3, 4)
    assert np.allclose(wick.attention(q, q, q).numpy(), 1)
    assert wick.attention(q, q[:, :1], q[:, :1], scale=0.5, causal=True, window=2).shape == (1, 2, 3, 4)
    mask = wick.tensor(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
    x = wick.uniform((1, 2, 3, 4))
    narrow = mask.to("bfloat16")
    assert np.array_equal(wick.attention(x, x, x, mask=narrow).numpy(), wick.attention(x, x, x, mask=narrow.to("float32")).numpy())
    sinks = wick.tensor(np.array([2.0, -np.inf], dtype=np.float32))
    value = wick.ones(1, 2, 3, 4)
    scores = (x @ x.transpose(2, 3)).numpy() / 2
    share = np.exp(scores).sum(-1) / (np.exp(scores).sum(-1) + np.exp(sinks.numpy())[:, None])
    assert np.allclose(wick.attention(x, x, value, sinks=sinks).numpy(), share[..., None], atol=1e-6)
    starts, rows = [0, 3], lambda t: t[0].transpose(0, 1)
    of_lengths = wick.attention_of_lengths(rows(x), rows(x), rows(value), starts, starts, sinks=sinks)
    assert np.allclose(of_lengths.numpy(), share[0].T[..., None], atol=1e-6)
    of_pages = wick.attention_of_pages(x, x, value, wick.tensor([[0]], dtype="uint32"), [3], sinks=sinks)
    assert np.allclose(of_pages.numpy(), share[..., None], atol=1e-6)
    assert mask.t().shape == (3, 3) and np.array_equal(mask.t().numpy(), mask.numpy().T)


def test_weights() -> None:
    rng = np.random.default_rng(0)
    w = wick.tensor(rng.standard_normal((8, 64)), dtype="float32")
    x = wick.tensor(rng.standard_normal((3, 64)), dtype="float32")
    assert np.allclose(wick.linear(x, w).numpy(), (x @ w.T).numpy(), atol=1e-4)
    q = wick.quantize(w, "q8_0")
    weight = wick.Weight(q)
    assert (weight.n, weight.k, weight.dtype) == (8, 64, wick.q8_0)
    assert np.allclose(x.linear(weight).numpy(), (x @ w.T).numpy(), atol=0.5)
    assert wick.dequantize(q, wick.float16).dtype is wick.float16
    with pytest.raises(TypeError):
        wick.linear(x, 3)  # type: ignore[arg-type]
    with pytest.raises(wick.Error):
        wick.Weight(x[0])


def test_bad_calls() -> None:
    x = wick.zeros(2, 2)
    for bad in [lambda: wick.cat([x, 1]), lambda: wick.cat(3), lambda: wick.sum(x, dim="a")]:
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(wick.Error, match="cat: no tensors"):
        wick.cat([])
    with pytest.raises(wick.Error, match="exp: unsupported dtype"):
        wick.exp(wick.tensor([1]))
