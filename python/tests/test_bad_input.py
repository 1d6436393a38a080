"""Nonsense thrown at every function: an exception that says so, or a result; never an end of the process.

Each function has a call that is right. Then one argument after the other is replaced: tensors of
every other dtype, rank and size, numbers out of range, sizes that overflow, other types of Python.
"""

import math
import os
import pathlib
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wick

REFUSALS = (wick.Error, TypeError, OverflowError, ValueError, BufferError)


def floats(*shape: int) -> wick.Tensor:
    return wick.arange(math.prod(shape)).to(wick.float32).reshape(shape) * 0.125 + 0.5


def ids(*values: Any, dtype: str = "int64") -> wick.Tensor:
    return wick.tensor(list(values), dtype=dtype)


X = floats(2, 3)
LEAF = floats(2, 3).requires_grad_()
IMAGE = floats(1, 2, 4, 4)
LINE = floats(1, 2, 6)
HEADS = floats(1, 2, 3, 4)
Q8 = wick.quantize(floats(4, 64), "q8_0")

# name: arguments of a call that is right.
CALLS: dict[str, tuple[Any, ...]] = {
    "zeros": ((2, 2), ), "ones": ((2, 2),), "full": ((2, 2), 1.5, "float32", "cpu"), "full_like": (X, 2.0),
    "zeros_like": (X, "float32"), "ones_like": (X, "float32"), "eye": (2, 3, "int32", "cpu"),
    "arange": (0, 6, 2, "int64", "cpu"), "tensor": ([1.0, 2.0], "float32", "cpu"),
    "cast": (X, "int32"), "copy": (X,), "cat": ([X, X], 0), "stack": ([X, X], 0), "flip": (X, 0),
    "roll": (X, 1, 0), "repeat": (X, (2, 1)), "pad": (X, [(1, 1)], "constant", 0), "tril": (X, 0), "triu": (X, 0),
    "affine": (X, 2, 1), "clamp": (X, 0, 1), "powf": (X, 2), "elu": (X, 1),
    "where": (ids(1, 0, 1, dtype="uint8"), X, X), "masked_fill": (X, ids(1, 0, 1, dtype="uint8"), 2),
    "var": (X, 0), "index_select": (X, ids(0, 1), 0),
    "gather": (X, ids([0, 1, 0]), 0), "scatter": (X, ids([0, 1, 0]), floats(1, 3), 0),
    "scatter_add": (X, ids([0, 1, 0]), floats(1, 3), 0), "index_add": (X, ids(0, 1), X, 0),
    "one_hot": (ids(0, 1), 3, "float32"), "sort": (X, -1, False), "argsort": (X, -1, True), "topk": (X, 2, -1, True),
    "cumsum": (X, 1), "uniform": ((2, 2), 0.0, 1.0, "float32", "cpu"), "normal": ((2, 2), 0.0, 1.0, "float32", "cpu"),
    "matmul": (X, X.T), "einsum": ("ij,kj->ik", X, X), "quantize": (floats(2, 64), "q8_0"),
    "dequantize": (Q8, "float32"), "linear": (floats(3, 64), floats(2, 64), floats(2)), "amax": (X, 0, True), "amin": (X, (0, 1), True),
    "grouped_linear": (floats(3, 64), [wick.Weight(Q8)], ids([0], [0], [0], dtype="uint32")),
    "conv1d": (LINE, floats(2, 2, 3), floats(2), 1, 1, 1, 1), "conv2d": (IMAGE, floats(2, 2, 3, 3), floats(2), 1, 1, 1, 1),
    "conv_transpose1d": (LINE, floats(2, 2, 3), floats(2), 2, 1, 1, 1, 1),
    "conv_transpose2d": (IMAGE, floats(2, 2, 3, 3), floats(2), 2, 1, 1, 1, 1),
    "conv2d_weight": (IMAGE, IMAGE, 3, 1, 1, 1, 1),
    "max_pool1d": (LINE, 2, 1, 1), "avg_pool1d": (LINE, 2, 1, 1, True), "max_pool2d": (IMAGE, 2, 1, 1),
    "avg_pool2d": (IMAGE, 2, 1, 1, False), "max_pool2d_grad": (IMAGE, floats(1, 2, 2, 2), 2, 2, 0),
    "avg_pool2d_grad": (IMAGE, floats(1, 2, 2, 2), 2, 2, 0, True),
    "upsample_nearest1d": (LINE, 8, 0.0), "upsample_nearest2d": (IMAGE, 8, None), "upsample_bilinear2d": (IMAGE, None, 2.0, True),
    "upsample_nearest2d_grad": (IMAGE, floats(1, 2, 8, 8), 8, None),
    "upsample_bilinear2d_grad": (IMAGE, floats(1, 2, 8, 8), 8, None, False),
    "rms_norm": (X, floats(3), 1e-5), "layer_norm": (X, floats(3), floats(3), 1e-5),
    "group_norm": (floats(2, 4, 3), 2, floats(4), floats(4), 1e-5),
    "batch_norm": (X, floats(3), floats(3), floats(3), floats(3), 1e-5),
    "batch_norm_of_batch": (X, floats(3), floats(3), 1e-5),
    "rope": (HEADS, floats(3, 2), floats(3, 2)), "rope_interleaved": (HEADS, floats(3, 2), floats(3, 2)),
    "rope_of_tokens": (floats(3, 2, 4), floats(3, 2), floats(3, 2), True),
    "softmax": (X, -1), "log_softmax": (X, 0), "softmax_grad": (X, X, -1), "log_softmax_grad": (X, X, 0),
    "norm_grad": (X, X, floats(3), 0, True, 1e-5), "norm_sums": (X, X, floats(2, 1), (0,), floats(1, 3)),
    "attention": (HEADS, HEADS, HEADS, 0.5, True, 2, 1.0, floats(3, 3), floats(2), floats(2)),
    "attention_of_lengths": (floats(3, 2, 4), floats(3, 2, 4), floats(3, 2, 4), [0, 1, 3], [0, 1, 3], 0.5, True, 0, 0.0, floats(2), floats(2)),
    "attention_of_pages": (HEADS, floats(2, 2, 4, 4), floats(2, 2, 4, 4), ids([0], dtype="uint32"), [3], 0.5, False, 0, 0.0, floats(2), floats(2)),
    "store_in_pages": (wick.zeros(2, 2, 4, 4), floats(1, 2, 4), ids([1], dtype="uint32"), ids(2, dtype="uint32")),
    "causal_conv": (floats(2, 4), floats(4, 3), wick.zeros(2, 2, 4), ids(1, dtype="uint32"), floats(4)),
    "ssm_scan": (floats(2, 2, 3), floats(2, 2), floats(2), floats(2, 1, 4), floats(2, 1, 4), wick.zeros(2, 2, 4, 3), ids(1, dtype="uint32"), floats(2)),
    "gated_delta_scan": (floats(2, 1, 4), floats(2, 1, 4), floats(2, 2, 3), floats(2, 2), floats(2, 2), wick.zeros(2, 2, 4, 3), ids(1, dtype="uint32")),
    "const_set": (wick.zeros(2, 2), 1, (slice(None), 0)), "slice_set": (wick.zeros(2, 2), wick.ones(1, 2), 0, 1),
    "leaky_relu": (X, 0.01), "softplus": (X, 1.0, 20.0), "std": (X, 0), "norm": (X, 2.0, 0, True), "median": (X, 0),
    "mm": (X, X.T), "bmm": (floats(2, 2, 3), floats(2, 3, 2)), "mv": (X, floats(3)), "dot": (floats(3), floats(3)),
    "outer": (floats(3), floats(2)), "unbind": (X, 0), "repeat_interleave": (X, 2, 0), "meshgrid": (floats(2), floats(3)),
    "equal": (X, X), "allclose": (X, X, 1e-5, 1e-8, False), "nonzero": (X,), "masked_select": (X, ids(1, 0, 1, dtype="uint8")),
    "unique": (X,), "rand": (2, 2), "randn": (2, 2), "rand_like": (X, "float32"), "randn_like": (X, "float32"),
    "randint": (0, 5, (2, 2), "int64", "cpu"), "randperm": (5, "cpu"), "manual_seed": (1,), "linspace": (0.0, 1.0, 5, "float32", "cpu"),
    "cumprod": (X, 1), "round_to": (X, 2), "broadcast_left": (X, (2, 2)), "embedding": (ids(0, 1), X),
    "slice_scatter": (X, floats(1, 3), 0, 1, 2, 1), "slice_assign": (X, slice(0, 1), floats(3)),
    "pixel_shuffle": (floats(1, 4, 2, 2), 2), "pixel_unshuffle": (floats(1, 1, 4, 4), 2), "empty": (2, 2), "empty_like": (X, "float32"),
    "conv3d": (floats(1, 2, 3, 4, 4), floats(2, 2, 3, 3, 3), floats(2), 1, 1, 1, 1),
    "adaptive_avg_pool1d": (LINE, 4), "adaptive_avg_pool2d": (IMAGE, (3, 2)), "adaptive_max_pool1d": (LINE, 4),
    "adaptive_max_pool2d": (IMAGE, (3, 2)), "interpolate": (IMAGE, 8, None, "bilinear", True),
    "reshape": (X, (3, 2)), "flatten": (X, 0, -1), "transpose": (X, 0, 1), "permute": (X, (1, 0)), "squeeze": (floats(1, 2), 0),
    "unsqueeze": (X, 0), "broadcast_to": (X, (2, 2, 3)), "narrow": (X, 0, 0, 1), "chunk": (X, 2, 0), "split": (X, 1, 0),
    "grad": (LEAF.sum(), LEAF, None, False), "from_numpy": (b"abc",), "from_dlpack": (X,),
    "set_seed": (1, "cpu"), "get_seed": ("cpu",), "synchronize": ("cpu",), "memory_stats": ("cpu",),
    "trim_memory": ("cpu",), "reset_peak_memory": ("cpu",), "set_num_threads": (wick.num_threads(),), "set_precision": ("full",),
    "load_gguf": ("/nowhere/model.gguf",), "Gguf": ("/nowhere/model.gguf",), "Weight": (X,), "Device": ("cpu",),
}  # fmt: skip


def custom(base: type, rule: str, name: str) -> Any:
    """A custom op that adds its operands."""

    def cpu(self: Any, out: Any, *operands: Any) -> None:
        out[...] = sum(operands, start=np.zeros_like(out))

    return type("Op", (base,), {"name": name, rule: lambda self, x, *others: x, "cpu": cpu})()


for _count in (1, 2, 3):
    _base = getattr(wick, f"CustomOp{_count}")
    for _suffix in ("", "_no_grad"):
        CALLS[f"apply_op{_count}{_suffix}"] = (X,) * _count + (custom(_base, "shape", "sum_op"),)
    _base = getattr(wick, f"InplaceOp{_count}")
    CALLS[f"inplace_op{_count}"] = (wick.zeros(2, 3), *(X,) * (_count - 1), custom(_base, "check", "sum_op"))
for _op in wick.ops():
    _regular = {"unary": (X,), "test": (X,), "binary": (X, X), "compare": (X, X), "reduce": (X, 0, True), "arg": (X, 0, True)}
    if _op.kind in _regular:
        _x = X if wick.float32 in _op.dtypes else ids(1, 2, 3)
        CALLS[_op.name] = tuple(_x if a is X else a for a in _regular[_op.kind])
for _name in ("log2", "log10", "exp2", "tan", "sinh", "cosh", "square", "trunc", "isfinite", "mish", "selu", "hardsigmoid", "hardswish"):
    CALLS[_name] = (X,)
for _name in ("logsumexp", "any", "all"):
    CALLS[_name] = (X, 0, True)

# Not about tensors, or with nothing that could be wrong.
NOT_HERE = {"ops", "compile", "devices", "best_device", "num_threads", "precision", "is_grad_enabled", "set_grad_enabled", "no_grad",
            "enable_grad", "set_memory_limit", "Model"}  # compile: tests/test_compile.py

OTHER_OBJECTS = [None, "text", b"bytes", 1.5, math.nan, math.inf, -1, 0, 7, 2**31, 2**40, -(2**63), 2**63, 2**100, True,
                 [], (), {}, object(), len, [1, 2, 3, 4, 5, 6, 7, 8, 9], [-1, -1], [2**40, 2**40], [2**63], [None], ["a"],
                 [[1]], float("-inf"), "cuda:99", "float23", 1j, slice(None), iter([])]  # fmt: skip


def other_tensors(x: wick.Tensor) -> Iterator[wick.Tensor]:
    for dtype in ["uint8", "uint32", "int16", "int32", "int64", "bfloat16", "float16", "float64", "float8_e4m3"]:
        yield x.to(dtype) if not x.dtype.is_block else wick.ones(x.shape, dtype=dtype)
    yield Q8
    yield wick.tensor(1.0)
    yield wick.zeros(0)
    yield wick.zeros(0, 3)
    yield wick.ones(5)
    yield floats(7, 5)
    yield wick.ones((1,) * 8)
    yield wick.tensor([math.nan, math.inf, -math.inf])
    yield ids(-1, 10**12, 3)
    yield ids(2**32 - 1, 255, dtype="uint32")
    yield ids(-(2**31), 2**31 - 1, dtype="int32")
    if not x.dtype.is_block:
        if x.ndim:
            yield x[..., None]
            yield x[:0]
            yield x[0]
            yield x.expand(2, *x.shape)
            yield x[::-1]
        yield x.T


def wrong_calls(name: str, right: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for at, argument in enumerate(right):
        others: list[Any] = list(OTHER_OBJECTS)
        others += other_tensors(argument if isinstance(argument, wick.Tensor) else X)
        if isinstance(argument, list) and argument and not isinstance(argument[0], (int, float, tuple)):
            others += [argument + [other] for other in [None, wick.zeros(0), floats(2, 5), wick.ones(2, 3, dtype="int32")]]
        for other in others:
            yield right[:at] + (other,) + right[at + 1 :]
    yield right + (object(),) * 12
    yield ()


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """What is too large is refused rather than filled for minutes."""
    threads = wick.num_threads()
    wick.set_memory_limit("cpu", 64 << 20)
    yield
    wick.set_memory_limit("cpu", 0)
    wick.set_num_threads(threads)


def function_of(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(wick, name)
    return function


# What errors are named after, where it isn't the function: what an argument is, or going through it.
OF_ARGUMENTS = {"shape", "alloc", "dtype", "device", "index"}
OF_PARTS = {
    "linear": {"weight"}, "grouped_linear": {"weight"}, "Weight": {"weight"}, "set_num_threads": {"threads"}, "Gguf": {"gguf"},
    **{name: {"sum_op"} for name in CALLS if "_op" in name},
    "load_gguf": {"gguf"}, "attention": {"broadcast_to"}, "attention_of_pages": {"index_select"},
}  # fmt: skip


def test_no_function_is_left_out() -> None:
    functions = {name for name in dir(wick) if not name.startswith("_") and callable(getattr(wick, name))
                 and not isinstance(getattr(wick, name), type)}  # fmt: skip
    assert functions - set(CALLS) - NOT_HERE == set()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_thrown_at(name: str) -> None:
    function, right = function_of(name), CALLS[name]
    if "/nowhere" not in str(right):
        function(*right)
    refused = 0
    for wrong in wrong_calls(name, right):
        try:
            result = function(*wrong)
        except REFUSALS as error:
            text = str(error)
            assert text, (name, wrong)
            if isinstance(error, wick.Error):
                assert re.match(r"[\w.]+: .", text), text
                assert text.startswith(error.op) and error.op
                assert error.op in {name, *OF_ARGUMENTS} or error.op in OF_PARTS.get(name, ()), (name, text)
                assert not re.search(r"::|NoGrad|to_vector|requires_grad\(", text), text  # C++'s names
            refused += 1
            continue
        # What is given can be looked at.
        for part in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(part, wick.Tensor) and part.numel() < 10**5:
                repr(part)
    assert refused >= len(right) * 5, (name, refused)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_several_wrong_at_once(name: str) -> None:
    function, right = function_of(name), CALLS[name]
    rng = random.Random(name)
    calls = list(wrong_calls(name, right))
    for _ in range(int(os.environ.get("WICK_BAD_CALLS", "100"))):
        wrong = [list(call) for call in rng.sample(calls, 2)]
        mixed = [rng.choice([side[at] for side in wrong if at < len(side)] or [None]) for at in range(len(right))]
        try:
            function(*mixed)
        except REFUSALS as error:
            assert str(error), mixed


METHODS: dict[str, tuple[Any, ...]] = {
    "reshape": (3, 2), "view": (6,), "expand": (2, 2, 3), "size": (0,), "to": ("float64",), "__getitem__": (0,),
    "backward": (), "requires_grad_": (True,), "item": (), "__dlpack__": (), "__array__": (), "__format__": ("",),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(METHODS))
def test_thrown_at_methods(name: str) -> None:
    for wrong in wrong_calls(name, METHODS[name] or (None,)):
        x = floats(2, 3).requires_grad_() if name == "backward" else floats(2, 3)
        try:
            getattr(x, name)(*wrong)
        except (*REFUSALS, IndexError) as error:
            assert str(error)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: X + floats(2), ValueError, "add: shapes don't broadcast: lhs [2,3], rhs [2]"),
        (lambda: X + X.to("float64"), TypeError, "add: dtypes differ: lhs f32[2,3]@cpu, rhs f64[2,3]@cpu: "
         "dtypes aren't promoted: convert one, e.g. rhs to f32"),
        (lambda: X @ X, ValueError, "matmul: inner dimensions differ"),
        (lambda: wick.exp(ids(1)), TypeError, "exp: unsupported dtype: i64[1]@cpu"),
        (lambda: X.sum(2), IndexError, "sum: dimension out of range: dim 2 of rank 2"),
        (lambda: X.softmax(-3), IndexError, "softmax: dimension out of range"),
        (lambda: wick.index_select(X, ids(2), 0), IndexError, "index_select: id out of range"),
        (lambda: wick.gather(X, ids([5]), 0), IndexError, "gather: id out of range"),
        (lambda: X[0, 3], IndexError, "index: id out of range: id 3, dim 0 of f32[3]@cpu: need -3 <= id < 3"),
        (lambda: X.reshape(4, 2), ValueError, "reshape: "),
        (lambda: X.narrow(0, 1, 5), IndexError, "narrow: range outside the dimension"),
        (lambda: wick.zeros(2**40), MemoryError, "alloc: out of memory: requested 4398046511104 bytes on cpu"),
        (lambda: wick.zeros(2**40, 2**40), ValueError, "shape: too many elements"),
        (lambda: wick.zeros(-1), ValueError, "shape: negative size"),
        (lambda: wick.zeros(1, 1, 1, 1, 1, 1, 1, 1, 1), ValueError, "shape: too many dimensions"),
        (lambda: wick.zeros(1, device="cuda:99"), RuntimeError, "cuda:99"),
        (lambda: wick.zeros(1, device="gpu"), ValueError, "device: not a device: 'gpu'"),
        (lambda: wick.zeros(1, dtype="float23"), TypeError, "dtype: no such dtype: 'float23'"),
        (lambda: wick.Model.load("/nowhere.gguf"), OSError, "No such file"),
        (lambda: wick.quantize(floats(2, 3), "q8_0"), ValueError, "quantize: "),
        (lambda: ids(1, 2) // 0, wick.Error, "//: integer division by zero"),
        (lambda: ids(1, 2) / 2, TypeError, "/: needs floats: i64[2]@cpu: use // for integer quotients"),
        (lambda: ids(1, 2) + 0.5, TypeError, "add: a float with int64"),
        (lambda: ids(1, dtype="uint8") + 256, OverflowError, "256 is out of bounds for uint8"),
        (lambda: wick.max(wick.zeros(0)), wick.Error, "max: "),
        (lambda: (X * X).backward(), RuntimeError, "backward: depends on nothing that needs a gradient"),
        (lambda: floats(2, 32).requires_grad_().quantize("q8_0"), NotImplementedError, "not differentiable"),
        (lambda: ids(1).requires_grad_(), TypeError, "requires_grad: not a float"),
        (lambda: X.sum((0, 0)), ValueError, "sum: dimension named twice: dims (0,0) of rank 2"),
        (lambda: wick.where(X, X, X), TypeError, "where: condition of this dtype"),
        (lambda: wick.pad(X, [(1, 1)], mode="odd"), ValueError, "pad: no such mode"),
        (lambda: X[0, 0, 0], IndexError, "index: too many indices"),
        (lambda: wick.tensor([1, 1.5], dtype="i32"), TypeError, "tensor: a float with int32: rounding must be explicit: "),
        (lambda: wick.tensor(math.nan, dtype="u8"), TypeError, "tensor: a float with uint8: "),
        (lambda: wick.arange(257, dtype="u8"), OverflowError, "256 is out of bounds for uint8"),
        (lambda: wick.arange(5, -1, -1, dtype="u32") - wick.arange(5, -2, -1, dtype="u32"), OverflowError, "-1 is out of bounds for uint32"),
        (lambda: wick.arange(2**31, 2**31 + 2, dtype="i32"), OverflowError, "2147483648 is out of bounds for int32"),
        (lambda: wick.arange(0.0, 301.5, dtype="u8"), OverflowError, "301 is out of bounds for uint8"),
        (lambda: wick.arange(0.0, 1e30, 1e29, dtype="i64"), OverflowError, "arange: a number beyond 64 bits"),
        (lambda: wick.tensor([np.complex64(1)]), TypeError, "tensor: not a number: 'complex64'"),
        (lambda: X + np.complex64(1), TypeError, "add: neither a wick.Tensor nor a number: 'complex64'"),
        (lambda: np.complex128(1) * X, TypeError, "mul: neither a wick.Tensor nor a number: 'complex128'"),
        (lambda: X + 1j, TypeError, "unsupported operand"),
        (lambda: wick.full(2, np.complex64(1)), TypeError, "full: value: need a number: not 'complex64'"),
        (lambda: wick.zeros(2**63), OverflowError, "zeros: an integer beyond 64 bits"),
        (lambda: wick.full((2, 2**70), 1), OverflowError, "full: an integer beyond 64 bits"),
        (lambda: X.reshape(2**70), OverflowError, "reshape: an integer beyond 64 bits"),
        (lambda: wick.zeros("3"), TypeError, "zeros: need an int or a sequence of ints: not 'str'"),
        (lambda: wick.ones(2, 1.5), TypeError, "ones: need ints: not 'float'"),
        (lambda: wick.uniform("3"), TypeError, "uniform: need an int or a sequence of ints: not 'str'"),
        (lambda: X.repeat("3"), TypeError, "repeat: need an int or a sequence of ints: not 'str'"),
        (lambda: wick.cat(3), TypeError, "cat: need a sequence of tensors: not 'int'"),
        (lambda: wick.conv2d(IMAGE, IMAGE, padding="all"), ValueError,
         'conv2d: no such padding: all: ints, "same" or "valid"'),
        (lambda: wick.conv2d(IMAGE, IMAGE, padding=1.5), TypeError,
         "conv2d: padding: need an int or a sequence of ints: not 'float'"),
        (lambda: wick.max_pool2d(IMAGE, (2, 2, 2)), TypeError, "max_pool2d: kernel_size: need one int or two"),
        (lambda: wick.upsample_bilinear2d(IMAGE, scale_factor="2"), TypeError,
         "upsample_bilinear2d: scale_factor: need a number: not 'str'"),
        (lambda: X[2**70], IndexError, "index: id out of range: id 1180591620717411303424, dim 0 of f32[2,3]@cpu: need -2 <= id < 2"),
        (lambda: X[0, -(10**5000)], IndexError, "index: id out of range: id of thousands of digits, dim 0 of f32[3]@cpu"),
        (lambda: X.sum(dim=[2**40]), IndexError, "sum: dimension out of range: dim 1099511627776: "),
        (lambda: X.permute(0, -(2**40)), IndexError, "permute: dimension out of range: dim -1099511627776: "),
        (lambda: X.size(2**40), IndexError, "size: dimension out of range: dim 1099511627776: "),
        (lambda: X.sum(dim=np.ones((2, 1), dtype=int)), TypeError, "sum: need ints: not 'ndarray'"),
        (lambda: X.sum(dim=np.ones(2)), TypeError, "sum: need ints: not 'float64'"),
        (lambda: X + np.ones(3), TypeError, "add: neither a wick.Tensor nor a number: 'ndarray': share an array by wick.from_numpy"),
        (lambda: np.ones(3) - X, TypeError, "sub: neither a wick.Tensor nor a number: 'ndarray': share an array by wick.from_numpy"),
        (lambda: np.ones(3) < X, TypeError, "gt: neither a wick.Tensor nor a number: 'ndarray'"),
        (lambda: X == np.ones(3), TypeError, "eq: neither a wick.Tensor nor a number: 'ndarray'"),
        (lambda: wick.tensor(None), TypeError, "tensor: not a number: 'NoneType': need numbers, tensors or arrays"),
        (lambda: wick.tensor([1, "a"]), TypeError, "tensor: not a number: 'str': "),
        (lambda: wick.tensor([X, X[0]]), ValueError, "tensor: ragged lists: f32[2,3]@cpu and f32[3]@cpu: need one shape everywhere"),
        (lambda: wick.tensor([X, X.to("float64")]), TypeError,
         "tensor: dtypes differ: f32[2,3]@cpu and f64[2,3]@cpu: dtypes aren't promoted: give a dtype"),
        (lambda: wick.tensor([X, 1]), ValueError, "tensor: ragged lists: f32[2,3]@cpu: need numbers everywhere"),
        (lambda: wick.from_numpy(None), TypeError, "from_numpy: not an array: 'NoneType': "),
        (lambda: wick.from_dlpack(None), TypeError, "from_dlpack: not an array: 'NoneType': "),
    ],
)  # fmt: skip
def test_what_is_said(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)
    if not isinstance(raised.value, (OverflowError,)) and type(raised.value) is not TypeError:
        assert isinstance(raised.value, wick.Error)


def test_each_type_is_python_s_as_well() -> None:
    types = {
        wick.ArgumentError: ValueError, wick.DTypeError: TypeError, wick.OutOfRangeError: IndexError,
        wick.OutOfMemoryError: MemoryError, wick.FileError: OSError, wick.NotSupportedError: NotImplementedError,
    }  # fmt: skip
    found = {kind for kind in vars(wick).values() if isinstance(kind, type) and issubclass(kind, wick.Error)}
    assert found == {wick.Error, *types} and issubclass(wick.Error, RuntimeError)
    assert all(issubclass(kind, builtin) for kind, builtin in types.items())


def test_a_file_s_errors(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "no.gguf"
    file.write_bytes(b"GGUX" + bytes(60))
    with pytest.raises(ValueError, match="not a GGUF file"):  # what it says, not whether it can be read
        wick.Gguf(str(file))
    with pytest.raises(OSError, match="cannot open"):
        wick.Gguf(str(tmp_path))


F = floats(2)
HUGE = 10**400


@pytest.mark.parametrize(
    "call",
    [
        lambda: F + HUGE, lambda: HUGE - F, lambda: F * -HUGE, lambda: F < HUGE, lambda: F // HUGE,
        lambda: wick.maximum(F, HUGE), lambda: wick.minimum(HUGE, F), lambda: wick.tensor([HUGE], dtype="f32"),
        lambda: wick.tensor(HUGE), lambda: wick.tensor([1.0, HUGE]), lambda: wick.full(2, HUGE, dtype="f32"),
        lambda: wick.full_like(F, HUGE), lambda: wick.arange(0.0, HUGE), lambda: wick.arange(HUGE, 1.0),
        lambda: wick.arange(0.0, 1.0, HUGE), lambda: wick.where(F > 0, F, HUGE), lambda: F.masked_fill(F > 0, HUGE),
        lambda: F.affine(HUGE), lambda: F.affine(1, HUGE), lambda: wick.pad(F, [(1, 1)], value=HUGE),
        lambda: wick.const_set(wick.zeros(2), HUGE), lambda: F.clamp(0, HUGE), lambda: F.powf(HUGE),
        lambda: wick.upsample_nearest2d(IMAGE, scale_factor=HUGE),
    ],
)  # fmt: skip
def test_integers_beyond_floats(call: Callable[[], object]) -> None:
    with pytest.raises(OverflowError, match="^an integer beyond"):
        call()


def test_large_integers_are_floats() -> None:
    assert (F.to("f64") * 0 + 2**100).tolist() == [2.0**100] * 2
    assert wick.arange(2.0**99, 2**100, 2.0**98).numel() == 2


class Refusing:
    def __float__(self) -> float:
        raise LookupError("no value yet")


@pytest.mark.parametrize(
    "call",
    [
        lambda f: F + f, lambda f: f * F, lambda f: F == f, lambda f: wick.maximum(f, F), lambda f: F.clamp(f),
        lambda f: ids(1) + f, lambda f: wick.tensor([1, f]), lambda f: wick.full(2, f), lambda f: wick.arange(1.0, f),
        lambda f: wick.where(F > 0, F, f), lambda f: F.affine(f),
    ],
)  # fmt: skip
def test_what_a_number_raises_comes_through(call: Callable[[Any], object]) -> None:
    with pytest.raises(LookupError, match="no value yet"):
        call(Refusing())


def test_arrays_of_ints_are_sequences() -> None:
    assert X.sum(dim=np.array([0, 1])).item() == X.sum().item()  # type: ignore[arg-type]
    assert wick.zeros(np.array([2, 3])).shape == (2, 3) == wick.zeros(np.array(2), np.int64(3)).shape  # type: ignore[arg-type]
    assert X.reshape(wick.tensor([3, 2])).shape == (3, 2)  # type: ignore[arg-type]
    assert X.split(np.array([1, 1]))[1].tolist() == [X[1].tolist()]  # type: ignore[arg-type]


def test_ranges_that_just_fit() -> None:
    assert wick.arange(256, dtype="u8").tolist() == list(range(256))
    assert wick.arange(2**31 - 2, 2**31, dtype="i32").tolist() == [2**31 - 2, 2**31 - 1]
    assert wick.arange(1000, 0, dtype="u8").shape == (0,)  # nothing in it that could be too large
    assert wick.arange(2, -1, -1, dtype="u8").tolist() == [2, 1, 0] == wick.arange(2.0, -1, -1, dtype="u8").tolist()
    assert wick.tensor([True, 2], dtype="i16").tolist() == [1, 2] and wick.tensor([], dtype="i32").shape == (0,)
