import threading

import pytest

import wick


def test_backward_adds_up() -> None:
    x = wick.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert x.requires_grad and x.is_leaf and x.grad is None
    y = (x * x).sum()
    assert y.requires_grad and not y.is_leaf and y.grad is None
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 4, 6]
    (x * 3).backward(wick.ones(3))
    assert x.grad.tolist() == [5, 7, 9]
    x.zero_grad()
    assert x.grad is None


def test_grad_is_set_and_deleted() -> None:
    x = wick.tensor([1.0, 2.0], requires_grad=True)
    for forget in ["del", "None", "zero_grad"]:
        (x * 2).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [2, 2]
        if forget == "del":
            del x.grad
        elif forget == "None":
            x.grad = None
        else:
            x.zero_grad()
        assert x.grad is None
    del x.grad  # there is none, as of a tensor that never had one
    assert x.grad is None
    (x * 2).sum().backward()  # nothing is left of what was forgotten
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    x.grad = wick.tensor([5.0, 6.0])
    assert x.grad.tolist() == [5, 6]
    assert wick.Tensor.grad.__doc__ is not None and "backward()" in wick.Tensor.grad.__doc__
    with pytest.raises(AttributeError):
        del x.requires_grad


def test_grad() -> None:
    x, w = wick.tensor(2.0, requires_grad=True), wick.tensor(3.0, requires_grad=True)
    y = x * x * w
    gx = wick.grad(y, x, create_graph=True)
    assert gx is not None and gx.item() == 12 and x.grad is None
    second = wick.grad(gx, x)
    assert second is not None and second.item() == 6
    other = wick.tensor(1.0, requires_grad=True)
    assert [g if g is None else g.item() for g in wick.grad(y, [x, w, other])] == [12, 4, None]


def test_no_grad_and_detach() -> None:
    x = wick.tensor([1.0], requires_grad=True)
    with wick.no_grad():
        assert not (x * 2).requires_grad and not wick.is_grad_enabled()
        with wick.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad and not x.detach().requires_grad

    @wick.no_grad()
    def double(t: wick.Tensor) -> wick.Tensor:
        "Doc."
        return t * 2

    assert not double(x).requires_grad and double.__name__ == "double" and double.__doc__ == "Doc."
    with pytest.raises(ZeroDivisionError), wick.no_grad():
        1 / 0
    assert wick.is_grad_enabled()


def test_it_is_each_threads_own() -> None:
    seen = []
    with wick.no_grad():
        thread = threading.Thread(target=lambda: seen.append(wick.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_requires_grad_in_place() -> None:
    x = wick.tensor([1.0])
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    x.requires_grad = True
    y = x * 2
    with pytest.raises(wick.Error, match="not a leaf"):
        y.requires_grad = False
    with pytest.raises(wick.Error):
        wick.tensor([1]).requires_grad_()


def test_refused() -> None:
    x = wick.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(wick.Error, match="backward: more than one element"):
        (x * 2).backward()
    with pytest.raises(wick.Error, match="backward: "):
        wick.tensor([1.0]).backward()
    with pytest.raises(wick.Error, match="doesn't fit"):
        (x * 2).backward(wick.ones(3))
    with pytest.raises(wick.Error):
        wick.grad((x * 2).sum(), wick.tensor([1.0]))
    with pytest.raises(TypeError):
        wick.grad((x * 2).sum(), [1])  # type: ignore[list-item]
