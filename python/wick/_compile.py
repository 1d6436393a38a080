"""Functions that are traced once and replayed."""

from __future__ import annotations

from . import _core

# What only type checkers need isn't imported: it takes longer than the rest of the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, Generic, ParamSpec, TypeVar, overload

    from ._core import Tensor

    P = ParamSpec("P")
    R = TypeVar("R")
else:

    class _Subscriptable:
        def __getitem__(self, _):
            return object

    Generic, P, R = _Subscriptable(), None, None

    def overload(function):
        return function


# A structure is what is left of nested lists, tuples and dicts when their tensors are taken out:
# ("tensor",), ("list" | "tuple", parts…), ("dict", keys, parts…) or ("value", type, value).
_TENSOR = ("tensor",)


def _take_apart(value: Any, tensors: list[Tensor], what: str) -> Hashable:
    """The structure of a value; appends its tensors."""
    if isinstance(value, _core.Tensor):
        tensors.append(value)
        return _TENSOR
    if type(value) in (list, tuple):
        parts = [_take_apart(v, tensors, what) for v in value]
        return (type(value).__name__, *parts)
    if type(value) is dict:
        parts = [_take_apart(v, tensors, what) for v in value.values()]
        return ("dict", tuple(value), *parts)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"compile: {what} of type {type(value).__name__}: need tensors, hashable values, and "
            "lists, tuples and dicts of them"
        ) from None
    return ("value", type(value), value)


def _put_together(structure: Any, tensors: Any) -> Any:
    """The value of a structure, with tensors from an iterator."""
    kind = structure[0]
    if kind == "tensor":
        return next(tensors)
    if kind == "value":
        return structure[2]
    if kind == "dict":
        return {k: _put_together(s, tensors) for k, s in zip(structure[1], structure[2:])}
    parts = [_put_together(s, tensors) for s in structure[1:]]
    return tuple(parts) if kind == "tuple" else parts


class _Traced:
    """A function for arguments of one structure."""

    def __init__(self, function: Callable[..., Any], structure: Hashable, fuse: bool, most: int) -> None:
        self.function = function
        self.structure = structure
        self.result: Hashable | None = None
        self.compiled = _core._Compiled(self.call, fuse, most)

    def call(self, arguments: list[Tensor]) -> list[Tensor]:
        args, kwargs = _put_together(self.structure, iter(arguments))
        results: list[Tensor] = []
        structure = _take_apart(self.function(*args, **kwargs), results, "a result")
        if self.result is None:
            self.result = structure
        elif self.result != structure:
            raise ValueError(
                "compile: results of another structure than before: it must not depend on the "
                "arguments' shapes, and values in it must not change"
            )
        return results

    def __call__(self, arguments: list[Tensor]) -> Any:
        results = self.compiled(arguments)
        return _put_together(self.result, iter(results))


class CompiledFunction(Generic[P, R]):  # type: ignore[misc]
    """What wick.compile gives: the function, replayed."""

    def __init__(self, function: Callable[P, R], fuse: bool, most_executables: int) -> None:
        import functools

        functools.update_wrapper(self, function)
        self._function = function
        self._fuse = fuse
        self._most = most_executables
        self._traced: dict[Hashable, _Traced] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        tensors: list[Tensor] = []
        structure = _take_apart((args, kwargs), tensors, "an argument")
        traced = self._traced.get(structure)
        if traced is None:
            traced = _Traced(self._function, structure, self._fuse, self._most)
            self._traced[structure] = traced
        return traced(tensors)  # type: ignore[no-any-return]

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """As a method: the object is an argument, which must be hashable."""
        import functools

        return self if owner is None else functools.partial(self, owner)

    @property
    def executables(self) -> int:
        """How many combinations of shapes, dtypes and other arguments it is kept for."""
        return sum(t.compiled.executables for t in self._traced.values())


@overload
def compile(function: Callable[P, R], /, *, fuse: bool = True, most_executables: int = 32) -> CompiledFunction[P, R]: ...


@overload
def compile(
    *, fuse: bool = True, most_executables: int = 32
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def compile(function: Any = None, /, *, fuse: bool = True, most_executables: int = 32) -> Any:
    """A function over tensors, traced once for each combination of shapes and dtypes and replayed
    from then on: without checks and allocations of what lies in between, on GPUs as one launch. The
    results have the bits of the function itself. Also a decorator: @wick.compile.

    Arguments and results are tensors, other hashable values, and lists, tuples and dicts of them.
    The function runs only while it is traced: for each combination of the tensors' shapes, dtypes
    and device and of the other values. Tensors that it refers to are kept. Where a gradient is
    wanted, the function itself is called.
    fuse: whether compositions of ops become fused ops, of equal bits. most_executables: kept for
    each combination of other values, the last used.
    Errors: the function reads values (item, tolist, an if over a tensor), draws random numbers or
    moves tensors to another device; no tensor among the arguments, or tensors of several devices.
    """
    if function is None:
        return lambda f: CompiledFunction(f, fuse, most_executables)
    if not callable(function):
        raise TypeError(f"compile: {type(function).__name__} can't be called: need a function")
    return CompiledFunction(function, fuse, most_executables)
