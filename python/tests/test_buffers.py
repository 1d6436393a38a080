"""The buffer protocol, as C asks for it: every combination of flags on tensors of every rank, layout and dtype."""

import ctypes
import itertools
from collections.abc import Iterator

import pytest

import wick

FLAGS = {
    "WRITABLE": 0x1,
    "FORMAT": 0x4,
    "ND": 0x8,
    "STRIDES": 0x18,
    "C_CONTIGUOUS": 0x38,
    "F_CONTIGUOUS": 0x58,
    "ANY_CONTIGUOUS": 0x98,
    "INDIRECT": 0x118,
}
LETTERS = {"u8": "B", "u32": "I", "i16": "h", "i32": "i", "i64": "q", "f16": "e", "f32": "f", "f64": "d"}
SIZES = {"B": 1, "I": 4, "h": 2, "i": 4, "q": 8, "e": 2, "f": 4, "d": 8}


class Buffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


get_buffer = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
release_buffer = ctypes.pythonapi.PyBuffer_Release
release_buffer.argtypes = [ctypes.POINTER(Buffer)]
release_buffer.restype = None


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Of the elements in row-major order."""
    ranges = [range(n) for n in shape]
    return [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*ranges)]


def dense(shape: tuple[int, ...], order: str) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    dims = range(len(shape))
    for d in reversed(dims) if order == "C" else dims:
        strides[d], step = step, step * shape[d]
    return tuple(strides)


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], order: str) -> bool:
    """Whether walking in that order passes over the elements side by side."""
    walk = dense(shape, order)
    return 0 in shape or all(n == 1 or s == w for n, s, w in zip(shape, strides, walk))


def tensors() -> Iterator[tuple[str, wick.Tensor]]:
    for rank in range(9):
        shape = tuple((2, 3, 1, 2, 1, 2, 1, 2)[:rank])
        count = 1
        for n in shape:
            count *= n
        for dtype in LETTERS if rank in (0, 1, 2, 3, 8) else ["f32"]:
            x = wick.arange(count, dtype="i64").to(dtype).reshape(shape)
            yield f"{dtype} {shape}", x
            if rank == 0:
                continue
            yield f"{dtype} {shape} reversed dims", x.permute(tuple(reversed(range(rank))))
            yield f"{dtype} {shape} downwards", x[::-1]
            yield f"{dtype} {shape} steps", x[::2]
            yield f"{dtype} {shape} none", x[:0]
            yield f"{dtype} {shape} from the second", x[1:]
            yield f"{dtype} {shape} repeated", x[:1].expand(4, *shape[1:])
            if rank > 1:
                yield f"{dtype} {shape} columns", x[:, 1:]
                yield f"{dtype} {shape} no columns", x[:, :0].permute(tuple(reversed(range(rank))))


def wanted(x: wick.Tensor, flags: int) -> bool:
    """Whether Python's documentation lets x be exported: a read-only array with shape and strides."""
    shape, strides = x.shape, x.strides
    c, f = is_dense(shape, strides, "C"), is_dense(shape, strides, "F")
    asks = {name: flags & bits == bits for name, bits in FLAGS.items()}
    if asks["WRITABLE"] or (asks["FORMAT"] and not asks["ND"]):
        return False
    if (not asks["STRIDES"] or asks["C_CONTIGUOUS"]) and not c:
        return False
    if asks["F_CONTIGUOUS"] and not f:
        return False
    return not asks["ANY_CONTIGUOUS"] or c or f


def check(name: str, x: wick.Tensor, flags: int) -> None:
    view = Buffer()
    if not wanted(x, flags):
        with pytest.raises(BufferError):
            get_buffer(x, ctypes.byref(view), flags)
        assert not view.obj, name
        return
    assert get_buffer(x, ctypes.byref(view), flags) == 0, name
    try:
        letter = LETTERS[x.dtype.name if x.dtype.name in LETTERS else SHORT[x.dtype.name]]
        size = SIZES[letter]
        values = x.flatten().tolist() if x.ndim else [x.item()]
        assert (view.itemsize, view.len, view.readonly) == (size, size * len(values), 1), name
        assert view.format == (letter.encode() if flags & FLAGS["FORMAT"] else None), name
        assert not view.suboffsets, name
        nd, strided = flags & 0x8 == 0x8, flags & 0x18 == 0x18
        assert bool(view.shape) == nd and bool(view.strides) == strided, name
        assert view.ndim == (x.ndim if nd else 1), name
        shape = tuple(view.shape[d] for d in range(view.ndim)) if nd else (len(values),)
        if nd:
            assert shape == x.shape, name
        # Who asks for no strides may take the elements to lie in C's order.
        strides = tuple(view.strides[d] for d in range(view.ndim)) if strided else tuple(
            size * s for s in dense(shape, "C"))
        if flags & FLAGS["C_CONTIGUOUS"] == FLAGS["C_CONTIGUOUS"] and values:
            assert is_dense(shape, tuple(s // size for s in strides), "C"), name
        if flags & FLAGS["F_CONTIGUOUS"] == FLAGS["F_CONTIGUOUS"] and values:
            assert is_dense(shape, tuple(s // size for s in strides), "F"), name
        read = [memoryview(ctypes.string_at(view.buf + at, size)).cast(letter)[0]
                if letter != "e" else ctypes.string_at(view.buf + at, size) for at in offsets(shape, strides)]
        if letter == "e":
            import struct
            read = [struct.unpack("e", bytes(raw))[0] for raw in read]
        assert read == values, name
    finally:
        release_buffer(ctypes.byref(view))


SHORT = {wick.zeros(1, dtype=name).dtype.name: name for name in LETTERS}


@pytest.mark.parametrize("bits", list(itertools.product([0, 1], repeat=len(FLAGS))),
                         ids=lambda bits: "".join(map(str, bits)))
def test_every_combination_of_flags(bits: tuple[int, ...]) -> None:
    flags = 0
    for bit, value in zip(bits, FLAGS.values()):
        flags |= value if bit else 0
    for name, x in TENSORS:
        check(name, x, flags)


TENSORS = list(tensors())


@pytest.mark.skipif(not hasattr(wick.Tensor, "__buffer__"), reason="Python 3.12 has it")
def test_memoryviews_of_every_flag() -> None:
    for _, x in TENSORS:
        for flags in range(0x200):
            try:
                view = x.__buffer__(flags)
            except BufferError:
                continue
            assert view.nbytes == len(view.tobytes())
            view.release()


def test_tensors_that_were_never_made() -> None:
    with pytest.raises((BufferError, TypeError)):
        memoryview(wick.Tensor.__new__(wick.Tensor))  # type: ignore[arg-type]


def test_dtypes_without_a_letter() -> None:
    for dtype in ("bf16", "f8e4m3"):
        for flags in (0, 0x118, 0x1C):
            with pytest.raises(BufferError):
                get_buffer(wick.zeros(2, dtype=dtype), ctypes.byref(Buffer()), flags)
    with pytest.raises(BufferError):
        memoryview(wick.quantize(wick.ones(1, 32), "q8_0"))
