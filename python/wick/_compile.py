"""Functions that are traced once and replayed."""

from __future__ import annotations

from . import _core

# Imports for type checkers are skipped at run time: they take longer than the rest of the package.
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


# A structure describes nested lists, tuples and dicts without their tensors: ("tensor",),
# ("list" | "tuple", parts…), ("dict", keys, parts…) or ("value", type, value).
_TENSOR = ("tensor",)


def _take_apart(value: Any, tensors: list[Tensor], what: str) -> Hashable:
    """Returns the structure of a value and appends its tensors to a list."""
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
    """Returns the value with a structure and with tensors from an iterator."""
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
    """A function compiled for arguments of one structure."""

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
                "compile: the results have another structure than before: the structure and its values "
                "must not depend on the arguments' shapes"
            )
        return results

    def __call__(self, arguments: list[Tensor]) -> Any:
        results = self.compiled(arguments)
        return _put_together(self.result, iter(results))


class CompiledFunction(Generic[P, R]):
    """A compiled function, made by wick.compile."""

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
        """Binds a method: the object becomes the first argument and must be hashable."""
        import functools

        return self if owner is None else functools.partial(self, owner)

    @property
    def executables(self) -> int:
        """The number of cached combinations of shapes, dtypes and other arguments."""
        return sum(t.compiled.executables for t in self._traced.values())


@overload
def compile(function: Callable[P, R], /, *, fuse: bool = True, most_executables: int = 32) -> CompiledFunction[P, R]: ...


@overload
def compile(
    *, fuse: bool = True, most_executables: int = 32
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def compile(function: Any = None, /, *, fuse: bool = True, most_executables: int = 32) -> Any:
    """Compiles a function over tensors. It is traced once for each combination of shapes and dtypes;
    later calls replay the trace without checks and without allocating temporaries, on GPUs as one
    launch. The results have the bits of the function itself. Also a decorator: @wick.compile.

    Arguments and results are tensors, other hashable values, and lists, tuples and dicts of them.
    The function runs only during tracing: once for each combination of the tensors' shapes, dtypes
    and device and of the other values. Tensors that it refers to are kept alive. If a gradient is
    needed, the function itself is called.
    fuse: replace compositions of ops by fused ops with the same bits. most_executables: limit of
    cached traces for each combination of other values; the least recently used is dropped.
    Errors: the function reads values (item, tolist, an if over a tensor), draws random numbers or
    moves tensors to another device; no argument is a tensor; tensors are on several devices.
    """
    if function is None:
        return lambda f: CompiledFunction(f, fuse, most_executables)
    if not callable(function):
        raise TypeError(f"compile: {type(function).__name__} can't be called: need a function")
    return CompiledFunction(function, fuse, most_executables)
