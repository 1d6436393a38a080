"""Writing in place, beside NumPy; what shares elements, and gradients."""

import random

import numpy as np
import pytest

import wick

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint8", "uint32", "bool"]


def pair(shape: tuple[int, ...]) -> tuple[wick.Tensor, np.ndarray]:
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return wick.tensor(a), a


INDICES = [0, -1, slice(1, 3), slice(None, None, -1), slice(None, None, 2), ..., None, (0, 1), (..., 0),
           (slice(None), [2, 0]), [1, 0], ([0, 1], [2, 3]), (slice(1, 2), None, 2), (slice(0, 0),),
           np.array([[True, False, True, True]] * 3), (0, np.array([False, True, True, False]))]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("value", ["number", "spread", "full", "list", "array"])
def test_assignment_is_numpys(index, value: str) -> None:
    x, a = pair((3, 4))
    shape = a[index].shape
    given = np.linspace(-5, -1, max(int(np.prod(shape)), 1), dtype=np.float32)[: int(np.prod(shape))].reshape(shape)
    if value == "number":
        x[index], a[index] = 7.5, 7.5
    elif value == "spread":
        x[index], a[index] = wick.tensor([2.5]).reshape(1)[0], np.float32(2.5)
    elif value == "full":
        x[index] = wick.tensor(given)
        a[index] = given
    elif value == "list":
        if given.size == 0:
            return
        x[index] = given.tolist()
        a[index] = given
    else:
        x[index] = given
        a[index] = given
    assert x.tolist() == a.tolist()


def test_random_slices() -> None:
    rng = random.Random(3)
    for _ in range(300):
        rank = rng.randint(1, 4)
        shape = tuple(rng.randint(1, 5) for _ in range(rank))
        x, a = pair(shape)
        index = tuple(
            rng.choice([slice(rng.randint(-6, 6), rng.randint(-6, 6), rng.choice([-2, -1, 1, 2, 3])),
                        rng.randrange(size), slice(None)])
            for size in shape[: rng.randint(1, rank)])
        part = a[index]
        value = np.array(rng.sample(range(1000), part.size), dtype=np.float32).reshape(part.shape)
        if part.ndim > 0 and part.shape[0] > 0 and rng.random() < 0.3:
            value = value[:1]
        x[index] = wick.tensor(value)
        a[index] = value
        assert x.tolist() == a.tolist(), (shape, index)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = wick.zeros(2, 3, dtype=dtype)
    x[1] = True if dtype == "bool" else 1
    x[:, 0] = wick.tensor([0.0, 1.0])
    x[wick.tensor([True, False])] = wick.ones(3, dtype=dtype)
    assert x.to("int64").tolist() == [[1, 1, 1], [1, 1, 1]]
    x.zero_()
    assert not x.to("int64").sum().item()
    x.fill_(True if dtype == "bool" else 3)
    x.copy_(wick.zeros(3))
    assert x.to("int64").tolist() == [[0] * 3] * 2


def test_arithmetic() -> None:
    x, a = pair((2, 3))
    assert x.add_(1) is x and x.tolist() == (a + 1).tolist()
    x.sub_(wick.tensor([1.0, 2.0, 3.0]), alpha=2)
    a = a + 1 - 2 * np.array([1, 2, 3])
    assert x.tolist() == a.tolist()
    assert x.mul_(3).div_(2).tolist() == (a * 3 / 2).tolist()
    assert x.clamp_(min=0, max=2).tolist() == np.clip(a * 1.5, 0, 2).tolist()
    assert x.add_(x).tolist() == (np.clip(a * 1.5, 0, 2) * 2).tolist()
    y = wick.zeros(3, 2).mT
    y.add_(wick.tensor([1.0, 2.0, 3.0]))
    assert y.tolist() == [[1, 2, 3]] * 2


def test_elements_of_itself() -> None:
    x, a = pair((4, 3))
    x[0] = x[1]
    a[0] = a[1]
    x[1:] = x[:-1]
    a[1:] = a[:-1].copy()
    x[::-1] = x
    a[::-1] = a.copy()
    x.copy_(x)
    assert x.tolist() == a.tolist()


def test_shared_elements_are_refused() -> None:
    x, _ = pair((2, 3))
    view = x[0]
    for call, name in [(lambda: x.add_(1), "add_"), (lambda: x.copy_(wick.zeros(3)), "copy_"),
                       (lambda: x.fill_(1), "fill_"), (lambda: x.zero_(), "zero_"),
                       (lambda: x.clamp_(0), "clamp_"), (lambda: x.__setitem__(0, 1), "index"),
                       (lambda: x.__setitem__([0], 1), "index"), (lambda: view.mul_(2), "mul_")]:
        with pytest.raises(wick.Error, match=f"^{name}: target's storage is shared: .* clone it first"):
            call()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and view.tolist() == [0, 1, 2]
    del view
    x.add_(1)
    assert x[0, 0].item() == 1
    with pytest.raises(wick.Error, match="^add_: target is read-only"):
        wick.from_numpy(np.zeros(3, dtype=np.float32)).add_(1)
    with pytest.raises(wick.Error, match="^fill_: .*overlap"):
        wick.zeros(1).expand(3).fill_(1)


def test_bad_values() -> None:
    x = wick.zeros(2, 3)
    whole = wick.zeros(2, dtype="int64")
    for call, kind in [
        (lambda: x.__setitem__(0, wick.zeros(4)), ValueError), (lambda: x.__setitem__(5, 1), IndexError),
        (lambda: x.__setitem__(0, "a"), TypeError), (lambda: x.__setitem__(0, None), TypeError),
        (lambda: x.__setitem__("a", 1), TypeError), (lambda: x.__setitem__([7], 1), IndexError),
        (lambda: x.__setitem__((0, 0, 0), 1), IndexError), (lambda: x.__setitem__([0], wick.zeros(4)), ValueError),
        (lambda: x.__setitem__(0, [[1.0] * 3] * 2), ValueError), (lambda: x.__setitem__(0, [1.0, [2.0]]), ValueError),
        (lambda: x.add_(wick.zeros(4)), ValueError), (lambda: x.add_(wick.zeros(2, 2, 3)), ValueError),
        (lambda: x.add_("a"), TypeError), (lambda: x.add_(wick.zeros(3, dtype="float64")), TypeError),
        (lambda: x.copy_(wick.zeros(2)), ValueError), (lambda: x.copy_(1), TypeError),
        (lambda: whole.__setitem__(0, 1.5), TypeError), (lambda: whole.fill_(0.5), TypeError),
        (lambda: whole.__setitem__(0, 1 << 70), OverflowError), (lambda: whole.add_(1.5), TypeError),
        (lambda: whole.__setitem__(0, [1.5]), TypeError),
    ]:
        with pytest.raises(kind):
            call()
    assert x.tolist() == [[0] * 3] * 2 and whole.tolist() == [0, 0]


def test_leaves_are_written_without_recording() -> None:
    w = wick.ones(3, requires_grad=True)
    for call in [lambda: w.add_(1), lambda: w.__setitem__(0, 1), lambda: w.__setitem__([0], 1), lambda: w.zero_(),
                 lambda: w.copy_(wick.zeros(3)), lambda: w.fill_(1), lambda: w.clamp_(0)]:
        with pytest.raises(wick.Error, match="target needs a gradient: .* no_grad"):
            call()
    loss = (w * w).sum()
    loss.backward()
    with wick.no_grad():
        w.sub_(w.grad, alpha=0.25)  # the loss still refers to w
        w[0] = 4
    assert w.tolist() == [4, 0.5, 0.5] and w.requires_grad and w.is_leaf and w.grad is not None
    with pytest.raises(wick.Error, match="^backward: an operand was written to since the call: mul"):
        loss.backward()
    w.grad = None
    (w * w).sum().backward()
    assert w.grad.tolist() == [8, 1, 1]
    with pytest.raises(wick.Error, match="^index: .*differentiable"):
        wick.zeros(3)[0] = w[0]
    with pytest.raises(wick.Error, match="^index: .*differentiable"):
        wick.zeros(3)[[0]] = w[:1]
    with pytest.raises(wick.Error, match="^add_: .*differentiable"):
        wick.zeros(3).add_(w)


def test_gradient_descent_in_place() -> None:
    wick.manual_seed(0)
    x, goal = wick.randn(64, 3), wick.tensor([1.0, -2.0, 0.5])
    y = x @ goal
    w = wick.zeros(3, requires_grad=True)
    for _ in range(200):
        loss = (x @ w - y).sqr().mean()
        loss.backward()
        with wick.no_grad():
            w.sub_(w.grad, alpha=0.1)
        w.grad = None
    assert wick.allclose(w.detach(), goal, atol=1e-3)
