"""Functions made of rows, beside NumPy."""

import math

import numpy as np
import pytest

import wick

A = np.array([[0.25, -1.5, 2.0], [3.0, 0.5, -0.75]])
X = wick.tensor(A, dtype="float64")


@pytest.mark.parametrize(
    "name, reference",
    [
        ("exp2", np.exp2), ("tan", np.tan), ("sinh", np.sinh), ("cosh", np.cosh), ("square", np.square),
        ("trunc", np.trunc), ("leaky_relu", lambda a: np.where(a > 0, a, 0.01 * a)),
        ("softplus", lambda a: np.log1p(np.exp(a))), ("mish", lambda a: a * np.tanh(np.log1p(np.exp(a)))),
        ("hardsigmoid", lambda a: np.clip(a / 6 + 0.5, 0, 1)),
        ("hardswish", lambda a: a * np.clip(a / 6 + 0.5, 0, 1)),
        ("selu", lambda a: 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(a))),
    ],
)
def test_elements(name: str, reference) -> None:
    assert np.allclose(getattr(wick, name)(X).numpy(), reference(A), rtol=1e-12)
    assert np.allclose(getattr(X, name)().numpy(), reference(A), rtol=1e-12)
    assert getattr(wick, name)(X.to("float16")).dtype == wick.float16
    with pytest.raises(TypeError, match=f"^{name}: "):
        getattr(wick, name)("text")


def test_logarithms() -> None:
    positive = wick.tensor([1.0, 8.0, 1000.0])
    assert np.allclose(positive.log2().numpy(), [0, 3, math.log2(1000)])
    assert np.allclose(wick.log10(positive).numpy(), [0, math.log10(8), 3])
    with pytest.raises(wick.DTypeError, match="^log2: "):
        wick.tensor([1]).log2()


def test_reductions() -> None:
    assert X.std().item() == pytest.approx(A.std(ddof=1))
    assert np.allclose(wick.std(X, 1, keepdim=True, correction=0).numpy(), A.std(1, keepdims=True))
    assert X.norm().item() == pytest.approx(np.linalg.norm(A))
    assert np.allclose(X.norm(1, dim=0).numpy(), np.abs(A).sum(0))
    assert X.norm(math.inf).item() == 3 and X.norm(0).item() == 6
    values, indices = X.median(1)
    assert values.tolist() == [0.25, 0.5] and indices.tolist() == [0, 1]
    with pytest.raises(ValueError, match="^norm: a negative p"):
        X.norm(-1)
    with pytest.raises(IndexError, match="^std: "):
        X.std(5)


def test_products() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    m, n, v = wick.tensor(a), wick.tensor(b), wick.arange(3.0, dtype="float64")
    assert (m.mm(n).numpy() == a @ b).all() and (m @ v).tolist() == [5, 14]
    assert (v @ n).tolist() == (np.arange(3.0) @ b).tolist() and (v @ v).item() == 5
    assert wick.matmul(m.reshape(1, 2, 3), v).shape == (1, 2) and (v @ n.reshape(1, 3, 4)).shape == (1, 4)
    assert m.mv(v).tolist() == [5, 14] and wick.dot(v, v).item() == 5
    assert wick.outer(v, v).tolist() == [[0, 0, 0], [0, 1, 2], [0, 2, 4]]
    assert wick.bmm(m.unsqueeze(0), n.unsqueeze(0)).tolist() == [(a @ b).tolist()]
    assert wick.einsum("ij,jk", m, n).tolist() == (a @ b).tolist()
    assert wick.einsum("ba", m).tolist() == a.T.tolist() and wick.einsum("ij,ij", m, m).item() == 55
    for call, name in [(lambda: wick.mm(v, v), "mm"), (lambda: wick.bmm(m, m), "bmm"),
                       (lambda: wick.mv(m, m), "mv"), (lambda: wick.dot(m, m), "dot"),
                       (lambda: wick.outer(m, v), "outer")]:
        with pytest.raises(ValueError, match=f"^{name}: wrong rank"):
            call()
    with pytest.raises(ValueError, match="^matmul: "):
        v @ wick.ones(4, dtype="float64")
    with pytest.raises(ValueError, match="^matmul: "):
        m @ wick.tensor(1.0, dtype="float64")


def test_shapes() -> None:
    rows = X.unbind()
    assert len(rows) == 2 and rows[1].tolist() == A[1].tolist() and X.unbind(-1)[0].tolist() == [0.25, 3]
    assert X.repeat_interleave(2, 0).tolist() == A.repeat(2, 0).tolist()
    first, second = wick.meshgrid(wick.arange(2), wick.arange(3))
    assert first.shape == (2, 3) and second.tolist() == [[0, 1, 2]] * 2
    assert wick.meshgrid([wick.arange(2), wick.arange(3)], indexing="xy")[0].shape == (3, 2)
    with pytest.raises(ValueError, match="^meshgrid: "):
        wick.meshgrid(wick.arange(2), indexing="ji")
    with pytest.raises(ValueError, match="^repeat_interleave: a negative count"):
        X.repeat_interleave(-1, 0)
    with pytest.raises(IndexError, match="^unbind: "):
        X.unbind(2)


def test_questions() -> None:
    assert X.equal(X.clone()) is True and wick.equal(X, X + 1) is False and not X.equal(X.to("float32"))
    nan = wick.tensor([math.nan, math.inf])
    assert not nan.allclose(nan) and nan.allclose(nan, equal_nan=True)
    assert wick.allclose(X, X + 1e-9) and not wick.allclose(X, X + 1e-3) and X.allclose(X + 1e-3, atol=0.01)
    assert nan.isfinite().tolist() == [False, False] and X.isfinite().dtype == wick.bool
    assert (X > 1).nonzero().tolist() == [[0, 2], [1, 0]]
    assert X.masked_select(X > 1).tolist() == [2, 3]
    assert wick.tensor([3, 1, 3, 2]).unique().tolist() == [1, 2, 3]


def test_making() -> None:
    wick.manual_seed(7)
    first = wick.rand(2, 3)
    wick.manual_seed(7)
    assert first.equal(wick.rand((2, 3))) and first.shape == (2, 3) and 0 <= first.amin().item() < 1
    assert wick.randn(4, dtype="float64", requires_grad=True).requires_grad
    assert wick.rand_like(X).dtype == wick.float64 and wick.randn_like(X, "float32").shape == X.shape
    numbers = wick.randint(-2, 3, (1000,))
    assert numbers.dtype == wick.int64 and numbers.unique().tolist() == [-2, -1, 0, 1, 2]
    assert wick.randperm(50).sort().values.tolist() == list(range(50))
    assert wick.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert wick.linspace(0, 1, 1, dtype="float64").tolist() == [0] and wick.linspace(0, 1, 0).shape == (0,)
    with pytest.raises(TypeError, match="randint: size is an integer"):
        wick.randint(1, 7)  # NumPy's low and high
    for call in [lambda: wick.randint(3, 3, 2), lambda: wick.randperm(-1), lambda: wick.linspace(0, 1, -1),
                 lambda: wick.rand(-1)]:
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="^linspace: "):
        wick.linspace(0, 1, 3, dtype="int64")
    with pytest.raises(TypeError, match="^rand: "):
        wick.rand(2, dtype="int64")


def test_conversions() -> None:
    for name, dtype in [("float", "float32"), ("double", "float64"), ("half", "float16"),
                        ("bfloat16", "bfloat16"), ("long", "int64"), ("int", "int32"), ("short", "int16"),
                        ("byte", "uint8"), ("bool", "bool")]:
        assert getattr(wick.tensor([1.0, 0.0]), name)().dtype == dtype
    assert wick.ones(2).to(X).dtype == wick.float64
    with pytest.raises(wick.Error):
        wick.ones(1).cuda(99)
    assert X.clamp(min=0).amin().item() == 0 and X.clamp(max=1).amax().item() == 1


def test_gradients() -> None:
    x = wick.tensor([0.5, 2.0], dtype="float64", requires_grad=True)
    (x.log2().sum() + x.norm() + x.std()).backward()
    a = np.array([0.5, 2.0])
    expected = 1 / (a * math.log(2)) + a / np.linalg.norm(a) + (a - a.mean()) / a.std(ddof=1)
    assert np.allclose(x.grad.numpy(), expected)


def test_unbiased() -> None:
    assert X.var(unbiased=False).item() == pytest.approx(A.var())
    assert X.std(0, unbiased=True).numpy() == pytest.approx(A.std(0, ddof=1))
    assert X.var(1, unbiased=False).numpy() == pytest.approx(A.var(1))


def test_images_without_a_batch() -> None:
    image, line = wick.randn(3, 7, 6), wick.randn(3, 9)
    w2, w1 = wick.randn(4, 3, 3, 2), wick.randn(4, 3, 2)
    t2, t1 = wick.randn(3, 4, 2, 3), wick.randn(3, 4, 2)
    for x, call in [
        (image, lambda i: wick.conv2d(i, w2, stride=2)), (line, lambda i: wick.conv1d(i, w1)),
        (image, lambda i: wick.conv_transpose2d(i, t2)), (line, lambda i: wick.conv_transpose1d(i, t1)),
        (image, lambda i: wick.max_pool2d(i, 2)), (image, lambda i: i.avg_pool2d(3, padding=1)),
        (line, lambda i: i.max_pool1d(2)), (line, lambda i: wick.avg_pool1d(i, 2)),
    ]:
        assert call(x).equal(call(x.unsqueeze(0)).squeeze(0))
        with pytest.raises(wick.Error):
            call(x.reshape(1, 1, *x.shape))


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding(kernel: int, dilation: int) -> None:
    x, w = wick.randn(2, 3, 9), wick.randn(4, 3, kernel)
    y = wick.conv1d(x, w, padding="same", dilation=dilation)
    # The definition: kernel - 1 steps around, the larger half behind.
    a, b, reach = x.numpy(), w.numpy(), dilation * (kernel - 1)
    wide = np.pad(a, ((0, 0), (0, 0), (reach // 2, reach - reach // 2)))
    expected = sum(np.einsum("bcl,oc->bol", wide[:, :, i * dilation : i * dilation + 9], b[:, :, i]) for i in range(kernel))
    assert y.shape == (2, 4, 9) and np.allclose(y.numpy(), expected, atol=1e-5)
    image, w2 = wick.randn(2, 3, 8, 7), wick.randn(4, 3, kernel, 3)
    assert wick.conv2d(image, w2, padding="same", dilation=dilation).shape == (2, 4, 8, 7)
    assert wick.conv1d(x, w, padding="valid").equal(wick.conv1d(x, w))
    with pytest.raises(ValueError, match="^conv1d: padding \"same\" with a stride"):
        wick.conv1d(x, w, padding="same", stride=2)
    with pytest.raises(ValueError, match="^conv2d: no such padding: full"):
        wick.conv2d(image, w2, padding="full")


def test_grouped_linear_of_sequences() -> None:
    """Each sequence of a call has the bits that it has alone."""
    weights = [wick.Weight(wick.randn(8, 16).to("f16")) for _ in range(3)]
    x, chosen = wick.randn(6, 16), wick.tensor([[i % 3, i % 2] for i in range(6)], dtype="u32")
    y = wick.grouped_linear(x, weights, chosen, each=3)
    for first in (0, 3):
        rows = slice(first, first + 3)
        assert y[rows].tolist() == wick.grouped_linear(x[rows], weights, chosen[rows]).tolist()
    for wrong in ({"each": 4}, {"each": -1}, {"of_token": 0}, {"each": 3, "of_token": 2}):
        with pytest.raises(wick.ArgumentError, match="whole sequences"):
            wick.grouped_linear(x, weights, chosen, **wrong)
