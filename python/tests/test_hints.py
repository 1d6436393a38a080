"""An error that names a cast: the call works once the cast is made. Every row that refuses bool, every operator with every kind of number."""

from __future__ import annotations

import operator
import re
from typing import Any

import pytest
from test_bad_input import CALLS, function_of

import wick

CASTS = re.compile(r"\.to\(wick\.(\w+)\)|, as to (\w+)(?: or (\w+))?$|convert the bias to (\w+)|: (f32) to q4_0")
# No tensor of these decides about the dtype, or their error names no cast: what they take is said.
WITHOUT_CAST = {"iota", "uniform", "normal", "dequantize", "store_in_pages", "linear", "index_select", "gather", "one_hot"}


def casts_of(error: BaseException) -> list[str]:
    return [name for groups in CASTS.findall(str(error)) for name in groups if name]


def with_dtype(call: tuple[Any, ...], of: wick.DType, dtype: str) -> tuple[Any, ...]:
    """The call with all tensors of a dtype converted."""
    def converted(argument: Any) -> Any:
        if isinstance(argument, list) and argument and isinstance(argument[0], wick.Tensor):
            return [converted(x) for x in argument]
        return argument.to(dtype) if isinstance(argument, wick.Tensor) and argument.dtype is of else argument

    return tuple(converted(argument) for argument in call)


def refuses_bool(call: tuple[Any, ...], name: str) -> BaseException | None:
    try:
        function_of(name)(*call)
    except (TypeError, ValueError) as error:
        return error
    return None


def rows() -> dict[str, str]:
    """Functions to call, by name, and the rows that they serve."""
    return {name: op.name for op in wick.ops() for name in op.functions if name in CALLS}


def first_dtype(call: tuple[Any, ...]) -> wick.DType | None:
    flat = [x for argument in call for x in (argument if isinstance(argument, list) else [argument])]
    dtypes = [x.dtype for x in flat if isinstance(x, wick.Tensor) and not x.dtype.is_block]
    return wick.float32 if wick.float32 in dtypes else dtypes[0] if dtypes else None


@pytest.mark.parametrize("name", sorted(rows()))
def test_casts_of_bool(name: str) -> None:
    dtype = first_dtype(CALLS[name])
    if dtype is None:
        return
    call = with_dtype(CALLS[name], dtype, "bool")
    error = refuses_bool(call, name)
    if error is None:
        return
    casts = casts_of(error)
    assert casts or rows()[name] in WITHOUT_CAST, (name, str(error))
    for cast in casts:
        function_of(name)(*with_dtype(call, wick.bool, cast))


def test_all_rows_that_refuse_bool_are_there() -> None:
    refused = set()
    for name, row in rows().items():
        dtype = first_dtype(CALLS[name])
        if dtype is not None and refuses_bool(with_dtype(CALLS[name], dtype, "bool"), name) is not None:
            refused.add(row)
    without = {op.name for op in wick.ops() if wick.bool not in op.dtypes}
    assert len(without) > 60 and without - refused <= WITHOUT_CAST


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.eq, operator.lt,
             wick.add, wick.div, wick.maximum, wick.bitwise_or, wick.shift_left, wick.pow]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("number", [True, 1, 2, 2.0, 1.5], ids=repr)
@pytest.mark.parametrize("is_left", [True, False], ids=["left", "right"])
def test_casts_of_operands_of_numbers(op: Any, number: Any, is_left: bool) -> None:
    for dtype in ["bool", "uint8", "int64", "float32"]:
        for size in [3, 20000]:  # the larger one lets other threads run
            x = wick.ones(size, dtype=dtype)
            try:
                op(x, number) if is_left else op(number, x)
            except TypeError as error:
                text = str(error)
                follow(op, x, number, is_left, text, casts_of(error))


def follow(op: Any, x: wick.Tensor, number: Any, is_left: bool, text: str, casts: list[str]) -> None:
    """Does what an error says, in each way that it names."""
    ways = [(x.to(cast), int(number) if "and use an int" in text else number) for cast in casts]
    if "or use an int" in text or text.endswith(": use an int"):
        ways.append((x, int(number)))
    if "use True or False" in text:
        ways.append((x, True))
    if "write // for" in text:
        return follow(operator.floordiv, x, number, is_left, "", []) if isinstance(number, int) else None
    if "unsupported dtype" in text and x.dtype is not wick.bool:
        return None  # says what it takes, and leaves the choice
    assert ways or text == "", text
    for tensor, other in ways or [(x, number)]:
        op(tensor, other) if is_left else op(other, tensor)
    return None


def test_what_they_say() -> None:
    mask, whole = wick.ones(2, dtype="bool"), wick.ones(2, dtype="int64")
    for call, message in [
        (lambda: mask.mean(), "mean: unsupported dtype: bool[2]@cpu: takes bf16 f16 f32 f64 f8e4m3: convert it first, as to f32"),
        (lambda: mask * 2.0, "mul: a float with bool: dtypes aren't promoted: convert with .to(wick.float32)"),
        (lambda: mask * 2, "mul: 2 with bool: dtypes aren't promoted: convert the tensor first, as with .to(wick.int64)"),
        (lambda: mask**2, "pow: 2 with bool: dtypes aren't promoted: convert the tensor first, as with .to(wick.float32)"),
        (lambda: mask << 0.5, "shift_left: a float with bool: dtypes aren't promoted: convert with .to(wick.int64), and use an int"),
        (lambda: mask & 0.5, "bitwise_and: a float with bool: dtypes aren't promoted: use True or False"),
        (lambda: whole & 0.5, "bitwise_and: a float with int64: dtypes aren't promoted: use an int"),
        (lambda: whole + 0.5, "add: a float with int64: dtypes aren't promoted: convert with .to(wick.float32), or use an int"),
        (lambda: whole**0.5, "pow: a float with int64: dtypes aren't promoted: convert with .to(wick.float32)"),
        (lambda: mask / 2, "/: needs floats: bool[2]@cpu: convert first: x.to(wick.float32) / y"),
        (lambda: whole / 0.5, "/: needs floats: i64[2]@cpu: use // for integer quotients, or convert first: x.to(wick.float32) / y"),
        (lambda: whole / whole.to("float32"), "/: needs floats: i64[2]@cpu: use //"),
        (lambda: mask // 0.5, "//: a float with bool: dtypes aren't promoted: convert with .to(wick.float32)"),
    ]:
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value).startswith(message)


def test_numbers_that_do_not_fit_beside_large_tensors() -> None:
    """Operands over 16 thousand elements let the GIL go, without which nothing may be raised."""
    for size in [1, 20000]:
        x = wick.zeros(size, dtype="uint8")
        for call in [lambda: x + 256, lambda: 256 - x, lambda: wick.maximum(x, -1), lambda: wick.mul(2**40, x),
                     lambda: x.masked_fill(x > 0, 256), lambda: x.affine(256), lambda: wick.where(x > 0, x, 256),
                     lambda: wick.pad(x, [(1, 1)], value=256), lambda: x // 2**70, lambda: x == 256,
                     lambda: wick.full_like(x, 256), lambda: wick.const_set(x, 256)]:  # fmt: skip
            with pytest.raises(OverflowError):
                call()
