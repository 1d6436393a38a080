import copy
import gc
import math
import pickle

import numpy as np
import pytest

import wick


def test_making() -> None:
    assert wick.tensor([1.0, 2.5]).dtype is wick.float32
    assert wick.tensor([[1, 2], [3, 4]]).dtype is wick.int64
    assert wick.tensor([True, False]).dtype is wick.bool
    assert wick.tensor(3).shape == () and wick.tensor(3).item() == 3
    assert wick.tensor([1, 2.5]).tolist() == [1.0, 2.5]
    assert wick.tensor([]).shape == (0,) and wick.tensor([[], []]).shape == (2, 0)
    assert wick.tensor((1, (2).__index__())).tolist() == [1, 2]
    assert wick.tensor([2**62 + 1]).item() == 2**62 + 1
    assert wick.tensor([1, 2], dtype="float16").dtype is wick.float16
    assert wick.tensor([1.9, -1.9]).to(wick.int32).tolist() == [1, -1]
    assert wick.tensor(np.arange(6, dtype=np.int16).reshape(2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    x = wick.tensor([1.0])
    assert wick.tensor(x) is not x and wick.tensor(x, dtype=np.float64).dtype is wick.float64
    assert wick.zeros(2, 3).tolist() == [[0.0] * 3] * 2
    assert wick.ones((2,), dtype=wick.uint8).tolist() == [1, 1]
    assert wick.full((2, 2), 7).dtype is wick.int64 and wick.full(3, 0.5).tolist() == [0.5] * 3
    assert wick.zeros_like(x, dtype="int32").dtype is wick.int32


@pytest.mark.parametrize(
    "args", [(5,), (2, 7), (7, 2, -2), (0, 5, 2), (0, 6, 2), (5, 2), (-3, 3, 3), (0,), (1, 2, 5)]
)
def test_arange_is_range(args: tuple[int, ...]) -> None:
    assert wick.arange(*args).tolist() == list(range(*args))


def test_arange_of_floats() -> None:
    assert wick.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    with pytest.raises(wick.Error, match="^arange: "):
        wick.arange(0, 1, 0)
    with pytest.raises(wick.Error):
        wick.arange(0.0, math.inf)
    with pytest.raises(wick.Error):
        wick.arange(2**62)


@pytest.mark.parametrize(
    "data, error",
    [
        ([[1, 2], [3]], wick.Error),
        ([1, [2]], wick.Error),
        ([[1], 2], wick.Error),
        ("text", TypeError),
        ([None], TypeError),
        ([wick.ones(2), wick.ones(3)], wick.Error),
        ([wick.ones(2), 1], wick.Error),
        ([1, wick.ones(2)], wick.Error),
        ([wick.ones(2), [1, 2]], wick.Error),
        ([wick.ones(2), wick.ones(2, dtype="float64")], wick.DTypeError),
        ([[wick.ones(1, 1, 1, 1, 1, 1, 1)]], wick.Error),
        ([wick.ones(1), "text"], TypeError),
        ([wick.quantize(wick.ones(1, 32), "q8_0")], wick.DTypeError),
        ([2**64], OverflowError),
        (object(), TypeError),
    ],
)
def test_bad_data(data: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        wick.tensor(data)


def test_lists_of_tensors_and_arrays() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12).reshape(2, 3)
    x, y = wick.tensor(a), wick.tensor(b)
    for items in ([x, y], (x, y), [a, b], [x, b], [x.T.T, a + 6]):
        made = wick.tensor(items)
        assert made.dtype == wick.float64 and made.tolist() == [a.tolist(), b.tolist()]
    assert wick.tensor([[x, y], [y, x]]).tolist() == np.array([[a, b], [b, a]]).tolist()
    assert wick.tensor([x, y.to("float32")], dtype="int32").tolist() == [a.tolist(), b.tolist()]
    assert wick.tensor([a.astype("uint8")]).dtype == wick.uint8
    # Of tensors alone the dtype stays; beside numbers they are numbers.
    zero, one = wick.tensor(0, dtype="int32"), wick.tensor(1, dtype="int32")
    assert wick.tensor([zero, one]).dtype == wick.int32
    assert wick.tensor([zero, 1]).dtype == wick.int64 and wick.tensor([1, zero, 2]).tolist() == [1, 0, 2]
    assert wick.tensor([one, 0.5]).tolist() == [1, 0.5] and wick.tensor([np.array(2.0), 1]).dtype == wick.float32
    assert wick.tensor([wick.tensor(True), wick.tensor(False)]).dtype == wick.bool
    # Copies, without a memory of how they were made.
    leaf = wick.ones(2, requires_grad=True)
    assert not wick.tensor([leaf, leaf]).requires_grad and wick.tensor([leaf], requires_grad=True).requires_grad
    made = wick.tensor([a])
    a[0, 0] = 100
    assert made[0, 0, 0].item() == 0
    assert wick.tensor([wick.ones(0, 2)]).shape == (1, 0, 2)


def test_bad_making() -> None:
    with pytest.raises(OverflowError, match="300 is out of bounds for uint8"):
        wick.tensor([300], dtype=wick.uint8)
    with pytest.raises(wick.Error, match="dtype: no such dtype: 'float23'"):
        wick.zeros(2, dtype="float23")
    with pytest.raises(TypeError):
        wick.zeros(2, dtype=float)
    with pytest.raises(wick.Error, match="device: not a device"):
        wick.zeros(2, device="gpu")
    with pytest.raises(wick.Error):
        wick.zeros(2, device="cuda:99")
    with pytest.raises(wick.Error):
        wick.zeros(-1)
    with pytest.raises(wick.Error):
        wick.zeros(2**40, 2**40)
    with pytest.raises(OverflowError):
        wick.zeros(2**70)
    with pytest.raises(TypeError):
        wick.zeros(1.5)  # type: ignore[arg-type]
    nested: list[object] = []
    nested.append(nested)
    with pytest.raises(wick.Error, match="nested too deep"):
        wick.tensor(nested)
    with pytest.raises(wick.Error, match="requires_grad: not a float"):
        wick.tensor([1], requires_grad=True)


def test_dtypes() -> None:
    names = "bool uint8 uint32 int16 int32 int64 bfloat16 float16 float32 float64 float8_e4m3 q4_k q8_0"
    for name in names.split():
        dtype = getattr(wick, name)
        assert dtype.name == name and repr(dtype) == f"wick.{name}"
        assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert wick.float16.itemsize == 2 and wick.float16.is_float and not wick.int16.is_float
    assert wick.q4_k.is_block and wick.q4_k.block_size == 256 and wick.q4_k.short_name == "q4_k"
    assert wick.tensor([1.0]).to("f16").dtype is wick.float16


def test_devices() -> None:
    cpu = wick.Device("cpu")
    assert cpu == "cpu" and str(cpu) == "cpu" and cpu in wick.devices() and cpu.kind == "cpu"
    assert wick.Device("cuda:1") == wick.Device("cuda:1") != cpu and hash(cpu) == hash(wick.Device("cpu"))
    assert pickle.loads(pickle.dumps(wick.Device("hip:0"))) == wick.Device("hip:0")
    assert wick.best_device() in wick.devices()
    before = wick.memory_stats().in_use
    x = wick.zeros(1000)
    assert wick.memory_stats().in_use >= before + 4000
    assert x.nbytes == 4000
    threads = wick.num_threads()
    with pytest.raises(wick.Error):
        wick.set_num_threads(0)
    wick.set_num_threads(threads)
    wick.synchronize("cpu")


def test_views() -> None:
    x = wick.arange(24).reshape(2, 3, 4)
    n = np.arange(24).reshape(2, 3, 4)
    assert x.shape == (2, 3, 4) and x.ndim == 3 and x.numel() == 24 and x.size(-1) == 4
    assert x.size() == (2, 3, 4) and x.strides == (12, 4, 1) and x.is_contiguous()
    for mine, theirs in [
        (x.T, n.T),
        (x.mT, n.swapaxes(-1, -2)),
        (x.reshape(-1, 8), n.reshape(-1, 8)),
        (x.reshape((4, 6)), n.reshape(4, 6)),
        (x.T.reshape(6, 4), n.T.reshape(6, 4)),
        (x.view(6, 4), n.reshape(6, 4)),
        (x.transpose(0, 2), n.swapaxes(0, 2)),
        (x.permute(2, 0, 1), n.transpose(2, 0, 1)),
        (x.permute((1, 0, 2)), n.transpose(1, 0, 2)),
        (x.unsqueeze(1), n[:, None]),
        (x.narrow(2, 1, 2), n[:, :, 1:3]),
        (x.narrow(2, 0, 1).squeeze(-1), n[:, :, 0]),
        (x.narrow(2, 0, 1).squeeze(), n[:, :, :1].squeeze()),
        (x.flatten(), n.ravel()),
        (x.flatten(1), n.reshape(2, 12)),
        (x.unsqueeze(0).expand(2, -1, -1, -1), np.broadcast_to(n, (2, 2, 3, 4))),
        (x.broadcast_to((5, 2, 3, 4)), np.broadcast_to(n, (5, 2, 3, 4))),
        (x.T.contiguous(), n.T),
        (x.T.clone(), n.T),
    ]:
        assert mine.shape == theirs.shape and mine.tolist() == theirs.tolist()
    assert [p.shape for p in x.chunk(2, 2)] == [(2, 3, 2)] * 2
    assert [p.shape[2] for p in x.split(3, dim=2)] == [3, 1]
    assert [p.shape[1] for p in x.split([1, 2], dim=1)] == [1, 2]
    for bad in [
        lambda: x.reshape(5, 5),
        lambda: x.reshape(-1, 5),
        lambda: x.reshape(-1, -1),
        lambda: x.T.view(24),
        lambda: x.transpose(0, 3),
        lambda: x.squeeze(0),
        lambda: x.narrow(0, 1, 2),
        lambda: x.split(0),
        lambda: x.expand(3, 3, 4),
        lambda: x.size(3),
    ]:
        with pytest.raises(wick.Error):
            bad()


def test_numbers() -> None:
    x = wick.tensor(2.5)
    assert float(x) == 2.5 and int(x) == 2 and bool(x) and x.item() == 2.5 and f"{x:.2f}" == "2.50"
    assert not wick.tensor(0.0) and [10, 20, 30][wick.tensor(1)] == 20
    for dtype in [wick.float16, wick.bfloat16, wick.float8_e4m3, wick.float64]:
        assert wick.tensor([1.5, -2.0], dtype=dtype).tolist() == [1.5, -2.0]
    assert wick.tensor([2**32 - 1], dtype=wick.uint32).item() == 2**32 - 1
    with pytest.raises(wick.Error, match="item: not one element"):
        bool(wick.tensor([1, 2]))
    with pytest.raises(TypeError):
        [1][wick.tensor(0.0)]  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(TypeError):
        wick.zeros(1)["a"]
    assert [int(row[0]) for row in wick.tensor([[1], [2]])] == [1, 2]


def test_to() -> None:
    x = wick.tensor([1.0, 2.0])
    assert x.to(wick.float32).tolist() == [1, 2] and x.to("cpu").device == "cpu"
    assert x.to("float64").dtype is wick.float64
    assert x.to("cpu", wick.int32).dtype is wick.int32 and x.to(dtype="int16", device="cpu").dtype is wick.int16
    assert x.cpu().tolist() == [1, 2]
    with pytest.raises(wick.Error):
        x.to("nonsense")
    with pytest.raises(TypeError):
        x.to(3)  # type: ignore[arg-type]


def test_identity_and_copies() -> None:
    x, y = wick.tensor([1.0]), wick.tensor([1.0])
    assert hash(x) != hash(y) and len({x, y}) == 2 and {x: 1}[x] == 1
    assert copy.copy(x).tolist() == copy.deepcopy(x).tolist() == [1.0]
    w = wick.tensor([1.0, 2.0], requires_grad=True)
    for source in [x, w, wick.arange(6).reshape(2, 3).T, wick.zeros(0, 3), wick.tensor(1.5, dtype="bf16")]:
        back = pickle.loads(pickle.dumps(source))
        assert back.tolist() == source.tolist() and back.dtype is source.dtype
        assert back.shape == source.shape and back.requires_grad == source.requires_grad
    blocks = wick.quantize(wick.ones(2, 32), wick.q8_0)
    assert wick.dequantize(pickle.loads(pickle.dumps(blocks))).tolist() == wick.dequantize(blocks).tolist()
    with pytest.raises(wick.Error):
        wick._restore(b"123", wick.float32, (1,), "cpu", False)


def test_memory_is_given_back() -> None:
    gc.collect()
    before = wick.memory_stats().in_use
    for _ in range(10):
        x = wick.tensor([1.0] * 1000, requires_grad=True)
        (x * x).sum().backward()
    del x
    gc.collect()
    assert wick.memory_stats().in_use == before
