"""The same calls on every device there is, against the CPU's numbers."""

import numpy as np
import pytest

import wick

DEVICES = [str(device) for device in wick.devices()]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_there_and_back(device: str) -> None:
    for dtype in ["uint8", "int32", "int64", "float16", "bfloat16", "float32"]:
        x = wick.arange(12).reshape(3, 4).to(dtype)
        there = x.to(device)
        assert there.device == device and there.dtype.name == dtype and there.T.cpu().tolist() == x.T.tolist()
    assert wick.tensor([1.0, 2.0], device=device).to(dtype="float64", device="cpu").tolist() == [1, 2]
    assert wick.zeros(2, device=device).device == device == wick.ones((2, 2), device=device).device
    assert "tensor([0, 1, 2]" in repr(wick.arange(3, device=device))
    assert wick.memory_stats(device).limit > 0
    wick.synchronize(device)


def test_indexing(device: str) -> None:
    n = np.arange(24).reshape(2, 3, 4)
    x = wick.from_numpy(n).to(device)
    for index in [0, (0, slice(None, None, -2)), [1, -1], (slice(None), [0, 2, -1]), ([0, -1], [1, 2]), n % 5 == 0,
                  (slice(None), [True, False, True]), (..., None, -1)]:  # fmt: skip
        assert x[index].device == device and x[index].cpu().tolist() == n[index].tolist(), index
    assert x[x > 20].cpu().tolist() == [21, 22, 23]
    with pytest.raises(IndexError):
        x[2]
    with pytest.raises(IndexError):
        x[[0, 2], [0, 0]]
    with pytest.raises(IndexError, match="id out of range"):
        x[[2]]
        wick.synchronize(device)


def test_writing_in_place(device: str) -> None:
    n = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = wick.tensor(n, device=device)
    writes = [(0, 5), ((slice(None), slice(None, None, -2)), n[:, :2] * 2), ([1, -1], 7), ((..., 0), n[..., 1] + 100),
              ((slice(None), [0, 2]), n[:, 1:] * 3), (n % 5 == 0, -1), ((0, 1), [1.0, 2.0, 3.0, 4.0])]  # fmt: skip
    for index, value in writes:
        x[index] = wick.tensor(value, device=device) if isinstance(value, np.ndarray) else value
        n[index] = value
        assert x.cpu().tolist() == n.tolist(), index
    x[0] = x[1]
    x.add_(1).mul_(2).sub_(x, alpha=0.25).clamp_(max=100)
    n[0] = n[1]
    n = np.minimum((n + 1) * 2 * 0.75, 100)
    assert x.cpu().tolist() == n.tolist() and x.device == device
    assert x.copy_(wick.ones(4)).sum().item() == 24 and x.fill_(2).zero_().sum().item() == 0
    w = wick.ones(3, device=device, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    with wick.no_grad():
        w.sub_(w.grad, alpha=0.25)
    assert w.tolist() == [0.5] * 3


def test_functions_made_of_others(device: str) -> None:
    def work(at: str) -> list[wick.Tensor]:
        x = wick.linspace(-2, 3, 12).reshape(3, 4).to(at)
        results = [x.trunc(), x.leaky_relu(), x.hardswish(), x.square(), x.median(1).values, x @ x[0], x.nonzero(),
                   x.masked_select(x > 0), x.repeat_interleave(2, 0), x.isfinite(), x.unbind(1)[2]]  # fmt: skip
        return [result.cpu() for result in results]

    for mine, theirs in zip(work(device), work("cpu"), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_functions_and_gradients(device: str) -> None:
    def work(at: str) -> list[wick.Tensor]:
        x = (wick.arange(12.0).reshape(3, 4) / 8).to(at).requires_grad_()
        y = (x.softmax() * x + 1).sum(0) // 1
        z = (x.tanh() * x).sum()
        z.backward()
        assert x.grad is not None
        return [y.cpu(), z.cpu(), x.grad.cpu(), wick.cat([x, x]).sort()[0].cpu()]

    for mine, theirs in zip(work(device), work("cpu")):
        assert mine.tolist() == theirs.tolist()


def test_arrays(device: str) -> None:
    x = wick.arange(3.0).to(device)
    if device == "cpu":
        assert x.numpy().tolist() == [0, 1, 2]
        return
    for call in [x.numpy, lambda: np.asarray(x), lambda: memoryview(x)]:
        with pytest.raises((TypeError, BufferError), match="use .cpu()"):
            call()
    assert x.__dlpack_device__()[0] in (2, 10)
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    with pytest.raises(wick.Error, match="add: devices differ"):
        x + wick.ones(3)


class Producer:
    """Another library's array on a device, and what it was asked for."""

    def __init__(self, x: wick.Tensor) -> None:
        self.x, self.asked = x, {}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **asked: object) -> object:
        self.asked = asked
        return self.x.__dlpack__(**asked)


def test_shared_by_dlpack(device: str) -> None:
    x = wick.arange(24.0).reshape(4, 6).to(device)
    for view in [x, x[1:, 1:], x.T[::2], x[2, 3], x[:0]]:
        producer = Producer(view)
        y = wick.from_dlpack(producer)
        assert ("stream" in producer.asked) == (device != "cpu")
        assert y.device == device and y.shape == view.shape
        assert y.cpu().tolist() == view.cpu().tolist()
        assert (y + 1).cpu().tolist() == (view + 1).cpu().tolist()
    # Memory outlives who made it.
    z = wick.from_dlpack(Producer(x * 2))
    others = [wick.zeros((4, 6), device=device) for _ in range(4)]
    assert (z * 1).cpu().tolist() == (x * 2).cpu().tolist() and len(others) == 4
    capsule = x.__dlpack__()
    assert wick.from_dlpack(capsule).cpu().tolist() == x.cpu().tolist()


def test_lost_arrays_keep_a_devices_errors(device: str) -> None:
    if device == "cpu":
        return
    x = wick.arange(12.0).reshape(4, 3).to(device)
    shared = wick.from_dlpack(Producer(x * 1))
    unused = x.__dlpack__()
    y = x.index_select(wick.tensor([0, 9], dtype="uint32").to(device), 0)
    del shared, unused
    with pytest.raises(IndexError, match="id out of range"):
        y.cpu()


def test_ids_out_of_range_name_the_function(device: str) -> None:
    table = wick.arange(12.0).reshape(4, 3).to(device)
    ids = wick.tensor([0, 4], dtype="uint32").to(device)
    for call in (lambda: wick.embedding(ids, table), lambda: table.embedding(ids)):
        with pytest.raises(IndexError, match="^embedding: id out of range: id 4"):
            call().cpu()


@pytest.mark.parametrize("bad", [5, (), "1.0", [1, 0], (1,), ("a", "b")])
def test_dlpack_of_bad_arguments(bad: object) -> None:
    x = wick.ones(3)
    with pytest.raises(TypeError):
        x.__dlpack__(max_version=bad)
    with pytest.raises(TypeError):
        x.__dlpack__(dl_device=bad)

    class Bad(Producer):
        def __dlpack_device__(self) -> object:  # type: ignore[override]
            return bad

    with pytest.raises(TypeError):
        wick.from_dlpack(Bad(x))
    capsule = x.__dlpack__()
    wick.from_dlpack(capsule)
    with pytest.raises(TypeError, match="from_dlpack: need a capsule"):
        wick.from_dlpack(capsule)


def test_dlpack_of_unknown_devices() -> None:
    class Elsewhere(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (7, 0)

    with pytest.raises(wick.Error, match="from_dlpack: unsupported kind of device: device 7:0"):
        wick.from_dlpack(Elsewhere(wick.zeros(2)))
