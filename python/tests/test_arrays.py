import ctypes
import gc
import sys
import weakref

import numpy as np
import pytest

import wick

DTYPES = ["uint8", "uint32", "int16", "int32", "int64", "float16", "float32", "float64"]


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [wick.from_numpy, wick.from_dlpack], ids=["buffer", "dlpack"])
def test_both_ways_without_a_copy(dtype, way) -> None:  # type: ignore[no-untyped-def]
    base = np.arange(24).astype(dtype).reshape(2, 3, 4)
    for array in [base, base.T, base[::-1, :, ::-2], base[:, 1:2], base[0, 0, 0, ...], base[1:1], base[..., None]]:
        x = way(array)
        assert x.dtype.name == dtype and x.shape == array.shape and x.tolist() == array.tolist()
        back = x.numpy()
        assert np.array_equal(back, array) and not back.flags.writeable
        if array.size:
            assert address(back) == address(array)
            assert address(np.from_dlpack(x)) == address(array)
            assert address(np.asarray(x)) == address(array)
            assert np.asarray(memoryview(x)).tolist() == array.tolist()


def test_memory_stays_as_long_as_it_is_used() -> None:
    array = np.arange(1000.0)
    gone = weakref.ref(array)
    x = wick.from_numpy(array)
    y = x[::2]
    del array, x
    gc.collect()
    assert gone() is not None and y[10].item() == 20
    del y
    gc.collect()
    assert gone() is None

    x = wick.arange(1000.0)
    views = [x.numpy(), np.from_dlpack(x), memoryview(x)]
    del x
    gc.collect()
    wick.trim_memory()
    assert all(np.asarray(v)[999] == 999 for v in views)
    before = wick.memory_stats().in_use
    del views
    gc.collect()
    assert wick.memory_stats().in_use < before


def test_capsules_that_nobody_takes() -> None:
    before = wick.memory_stats().in_use
    x = wick.zeros(1000)
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]
    taken = x.__dlpack__()
    assert wick.from_dlpack(taken).shape == (1000,)
    with pytest.raises(Exception):
        wick.from_dlpack(taken)
    del x, capsules, taken
    gc.collect()
    assert wick.memory_stats().in_use == before


def test_changes_are_seen_and_tensors_are_read_only() -> None:
    array = np.zeros(3)
    x = wick.from_numpy(array)
    array[1] = 5
    assert x.tolist() == [0, 5, 0]
    with pytest.raises(ValueError):
        x.numpy()[0] = 1
    array.flags.writeable = False
    assert wick.from_numpy(array).tolist() == [0, 5, 0] == wick.from_dlpack(array).tolist()
    assert wick.tensor(array).clone().tolist() == [0, 5, 0]
    copied = np.array(x)
    copied[0] = 1
    assert x[0].item() == 0


def test_memory_that_kernels_cannot_take_is_copied() -> None:
    raw = np.zeros(41, dtype=np.uint8)
    odd = raw[1:].view(np.float32)
    odd[:] = np.arange(10)
    assert wick.from_numpy(odd).tolist() == list(range(10))
    records = np.zeros(5, dtype=[("a", "u1"), ("b", "<f4")])
    records["b"] = np.arange(5)
    assert wick.from_numpy(records["b"]).tolist() == list(range(5))


def test_other_buffers() -> None:
    assert wick.from_numpy(b"abc").tolist() == [97, 98, 99]
    assert wick.from_numpy(np.array([True, False])).tolist() == [1, 0]
    import array

    assert wick.from_numpy(array.array("d", [1.5])).tolist() == [1.5]
    assert wick.tensor(memoryview(bytearray(b"\x01"))).tolist() == [1]


@pytest.mark.parametrize("dtype", ["uint16", "int8", "uint64", "complex64", "S3", ">f4", "datetime64[s]"])
def test_dtypes_that_wick_lacks(dtype: str) -> None:
    with pytest.raises((wick.Error, ValueError, TypeError)):
        wick.from_numpy(np.zeros(2, dtype=dtype))


def test_refusals() -> None:
    with pytest.raises(TypeError):
        wick.from_numpy([1.0])
    with pytest.raises(TypeError):
        wick.from_dlpack(3)
    with pytest.raises(wick.Error, match="too many dims"):
        wick.from_numpy(np.zeros((1,) * 9))
    blocks = wick.quantize(wick.zeros(1, 32), "q8_0")
    with pytest.raises(TypeError, match="dequantize"):
        blocks.numpy()
    with pytest.raises(BufferError):
        blocks.__dlpack__()
    with pytest.raises(BufferError):
        memoryview(blocks)
    x = wick.zeros(2)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


def test_array_protocol() -> None:
    x = wick.arange(4.0)
    assert np.array(x, dtype=np.int32).dtype == np.int32 and np.sum(np.asarray(x)) == 6
    assert np.asarray(x, dtype=np.float64).tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError):
        np.add(x, x)
    assert x.__dlpack_device__() == (1, 0)
    copy = np.from_dlpack(x, copy=True) if sys.version_info >= (3, 11) else x.numpy()
    assert copy.tolist() == [0, 1, 2, 3]


def test_types_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.0, 2.5, -3.0], dtype=ml_dtypes.bfloat16)
    x = wick.from_numpy(array)
    assert x.dtype is wick.bfloat16 and x.tolist() == [1, 2.5, -3]
    assert address(x.numpy()) == address(array) and x.numpy().dtype == ml_dtypes.bfloat16
    small = wick.tensor([1.0, 448.0], dtype="float8_e4m3").numpy()
    assert small.dtype == ml_dtypes.float8_e4m3fn and small.astype(np.float32).tolist() == [1, 448]


def test_arrays_of_ctypes() -> None:
    """Their buffers leave strides out: C order."""
    x = wick.from_numpy((ctypes.c_float * 3)(1, 2, 3))
    assert x.dtype == wick.float32 and x.tolist() == [1, 2, 3]
    rows = ((ctypes.c_double * 3) * 2)((1, 2, 3), (4, 5, 6))
    assert wick.tensor(rows).tolist() == [[1, 2, 3], [4, 5, 6]]
    shared = wick.from_numpy(rows)
    rows[1][0] = 7
    assert shared.dtype == wick.float64 and shared.strides == (3, 1) and shared[1].tolist() == [7, 5, 6]
    odd = (ctypes.c_float * 3).from_buffer(bytearray(13), 1)
    odd[2] = 1.5
    assert wick.from_numpy(odd).tolist() == [0, 0, 1.5]
    assert wick.tensor((ctypes.c_int * 0)()).shape == (0,) and wick.from_numpy(ctypes.c_int(7)).item() == 7
    assert wick.arange(3.0)[(ctypes.c_int * 2)(0, -1)].tolist() == [0, 2]
    with pytest.raises(TypeError, match="unsupported dtype: an array of"):
        wick.tensor((ctypes.c_char * 3)())


@pytest.mark.parametrize("scalar", [np.datetime64("2020"), np.timedelta64(3, "s")], ids=str)
def test_dates_are_no_bytes(scalar: object) -> None:
    for make in [wick.tensor, wick.from_numpy]:
        with pytest.raises(TypeError, match="unsupported dtype: a '(date|time)"):
            make(scalar)
