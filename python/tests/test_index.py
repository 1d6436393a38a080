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
    row = X[None]
    assert row.shape == (1, 3, 4, 5) and row.tolist() == N[None].tolist()
    assert np.shares_memory(row.numpy(), X.numpy())


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


def test_ids_from_the_end() -> None:
    for ids in [[-1, 0], [[2, -3], [1, -2]], [-1]]:
        array = np.array(ids)
        assert X[wick.tensor(ids)].tolist() == N[array].tolist() == X[ids].tolist() == X[array].tolist()
        assert X[wick.tensor(ids, dtype="int32")].tolist() == N[array].tolist()
        assert X[:, wick.tensor(ids, dtype="int16"), 1:].tolist() == N[:, array, 1:].tolist()
    # Arrays of uint8 are ids, as NumPy has it; tensors of it are masks, as PyTorch has it.
    assert X[np.array([2, 0, 2], dtype=np.uint8)].tolist() == N[[2, 0, 2]].tolist()


MASKS = [N % 3 == 0, N > 100, N >= 0]


@pytest.mark.parametrize("mask", MASKS, ids=["some", "none", "all"])
def test_masks(mask: np.ndarray) -> None:
    own = wick.tensor(mask)
    assert own.dtype is wick.bool and X[own.to("uint8")].tolist() == X[own].tolist()
    assert X[~own].tolist() == N[~mask].tolist()
    for index, theirs in [
        ((own,), (mask,)),
        ((mask,), (mask,)),
        ((own[:, :, 0],), (mask[:, :, 0],)),
        ((own[:, 0, 0],), (mask[:, 0, 0],)),
        ((slice(None), own[0]), (slice(None), mask[0])),
        ((slice(None), own[0, :, 0], slice(None, None, 2)), (slice(None), mask[0, :, 0], slice(None, None, 2))),
        ((Ellipsis, own[0, 0]), (Ellipsis, mask[0, 0])),
        ((None, own[:, 0, 0].tolist() and mask[:, 0, 0].tolist()), (None, mask[:, 0, 0])),
        ((1, own[1]), (1, mask[1])),
    ]:
        assert X[index].shape == N[theirs].shape, index
        assert X[index].tolist() == N[theirs].tolist(), index
    assert X.T[own.T].tolist() == N.T[mask.T].tolist()


def test_masks_of_comparisons() -> None:
    x = wick.tensor([[1.0, -2.0], [3.0, float("nan")]])
    assert x[x > 0].tolist() == [1, 3] and x[wick.isnan(x)].shape == (1,)


PLACES = [0, -2, slice(None), slice(2, 0, -1), None, Ellipsis, [1, 0], np.array([[0, -1], [1, 1]]), [True, False, True]]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_many_parts_like_numpy(count: int) -> None:
    square = np.arange(81).reshape(3, 3, 3, 3)
    x = wick.from_numpy(square)
    checked = 0
    for index in itertools.product(PLACES, repeat=count):
        if sum(part is Ellipsis for part in index) > 1:
            continue
        try:
            theirs = square[index]
        except IndexError:  # shapes of ids that don't broadcast
            continue
        assert x[index].shape == np.shape(theirs), index
        assert x[index].tolist() == theirs.tolist(), index
        checked += 1
    assert checked > 50


@pytest.mark.parametrize(
    "index",
    [3, -4, (0, 4), (0, 0, 0, 0), (Ellipsis, Ellipsis), [3], [-4], np.array([0, 7]), [True, False], N[0] > 3,
     ([0, 4], [0, 0]), (0, wick.tensor([5])), wick.tensor([1, 2**32 - 1], dtype="uint32"),
     (0, wick.tensor([2**32 - 1], dtype="uint32")), np.array([255], dtype=np.uint8), np.array([2**32 - 1], dtype=np.uint32), wick.tensor([2**31 - 1], dtype="int32"), (N > 3, 0)],
    ids=str,
)
def test_out_of_range(index: object) -> None:
    with pytest.raises(IndexError, match="^index: ") as raised:
        X[index]
    assert isinstance(raised.value, wick.Error) and raised.value.op == "index"


@pytest.mark.parametrize(
    "index", ["a", b"a", 1.5, True, {}, object(), wick.tensor(1, dtype="uint8"), [0.5], wick.tensor([1.0]), [[1], [0, 2]]],
    ids=str,
)
def test_not_an_index(index: object) -> None:
    with pytest.raises((TypeError, wick.Error)):
        X[index]


def test_no_id_is_padding() -> None:
    """The largest of an unsigned dtype is an id as any other, where there is such an element."""
    assert wick.arange(256)[np.array([255], dtype=np.uint8)].tolist() == [255]
    zeros = wick.tensor(0).expand(2**32, 2)
    assert zeros[wick.tensor([2**32 - 1], dtype="uint32")].tolist() == [[0, 0]]


def test_deletion_is_refused() -> None:
    x = wick.zeros(3)
    with pytest.raises((TypeError, AttributeError)):
        del x[0]  # type: ignore[attr-defined]


def test_gradient_goes_through() -> None:
    x = wick.arange(6.0).reshape(2, 3).requires_grad_()
    x[1, ::2].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 0, 0], [1, 0, 1]]


def test_gradient_goes_through_ids_and_masks() -> None:
    x = wick.arange(6.0).reshape(2, 3).requires_grad_()
    (x[[0, 0, -1], [1, 1, 2]].sum() + x[x > 3].sum()).backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 2, 0], [0, 1, 2]]


def test_blocks() -> None:
    blocks = wick.quantize(wick.ones(4, 32), "q8_0")
    assert blocks[[1, -1]].tolist() == wick.dequantize(blocks)[[1, -1]].tolist()
    assert blocks[1:3].shape == (2, 32)
