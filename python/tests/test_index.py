import itertools

import numpy as np
import pytest

import wick


N = np.arange(60).reshape(3, 4, 5)
X = wick.tensor(N)

PARTS = [0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(3, 0, -2), slice(5, 1), slice(-2, None),
         slice(None, None, 2), None, Ellipsis]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_like_numpy(count: int) -> None:
    for index in itertools.product(PARTS, repeat=count):
        if sum(part is Ellipsis for part in index) > 1:
            continue
        mine, theirs = X[index], N[index]
        assert mine.shape == np.shape(theirs), index
        assert mine.tolist() == theirs.tolist(), index


def test_single() -> None:
    assert X[1].tolist() == N[1].tolist() and X[np.int64(2)].tolist() == N[2].tolist()
    assert X[...].tolist() == N.tolist() and X[()].tolist() == N.tolist()
    assert X[::-1, ::-1, ::-1].tolist() == N[::-1, ::-1, ::-1].tolist()
    assert X[wick.tensor(1)].tolist() == N[1].tolist()


def test_ids() -> None:
    ids = wick.tensor([2, 0, 2])
    assert X[ids].tolist() == N[[2, 0, 2]].tolist()
    assert X[:, ids].tolist() == N[:, [2, 0, 2]].tolist()
    assert X[0, [1, 3]].tolist() == N[0, [1, 3]].tolist()
    assert X[..., ids].tolist() == N[..., [2, 0, 2]].tolist()
    assert X[wick.tensor([[0, 1], [2, 0]])].shape == (2, 2, 4, 5)
    assert X[np.array([1])].tolist() == N[[1]].tolist()
    assert X[[]].shape == (0, 4, 5)
    assert X[wick.tensor([1, 0], dtype="uint32"), 1:3, None].tolist() == N[[1, 0], 1:3, None].tolist()


@pytest.mark.parametrize("index", [3, -4, (0, 4), (0, 0, 0, 0), (Ellipsis, Ellipsis)])
def test_out_of_range(index: object) -> None:
    with pytest.raises(IndexError):
        X[index]


@pytest.mark.parametrize(
    "index", ["a", 1.5, True, [True, False, True], wick.tensor([1, 0, 1], dtype="uint8"), {}, N > 3]
)
def test_not_an_index(index: object) -> None:
    with pytest.raises(TypeError):
        X[index]


def test_bad_ids() -> None:
    with pytest.raises(wick.Error, match="index_select"):
        X[wick.tensor([3])]
    with pytest.raises(wick.Error, match="more than one dim"):
        X[wick.tensor([0]), wick.tensor([0])]


def test_gradient_goes_through() -> None:
    x = wick.arange(6.0).reshape(2, 3).requires_grad_()
    x[1, ::2].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 0, 0], [1, 0, 1]]
