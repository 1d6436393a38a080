"""Gradients with respect to given tensors, and modes of gradient recording."""

from __future__ import annotations

from . import _core

# Imports for type checkers are skipped at run time: they take longer than the rest of the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar, overload

    from ._core import Tensor

    F = TypeVar("F", bound=Callable[..., Any])
else:

    def overload(function):
        return function



class _GradMode:
    """Sets whether calls on this thread are recorded, within a with block or a decorated function."""

    _enabled = False

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_core.is_grad_enabled())
        _core.set_grad_enabled(self._enabled)

    def __exit__(self, *exception: object) -> None:
        _core.set_grad_enabled(self._before.pop())

    def __call__(self, function: F) -> F:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class no_grad(_GradMode):
    """Disables gradient recording: `with wick.no_grad(): …` or `@wick.no_grad()`."""


class enable_grad(_GradMode):
    """Enables gradient recording, also within no_grad."""

    _enabled = True


@overload
def grad(
    y: Tensor, inputs: Tensor, gradient: Tensor | None = None, create_graph: bool = False
) -> Tensor | None: ...
@overload
def grad(
    y: Tensor, inputs: Sequence[Tensor], gradient: Tensor | None = None, create_graph: bool = False
) -> list[Tensor | None]: ...
def grad(
    y: Tensor,
    inputs: Tensor | Sequence[Tensor],
    gradient: Tensor | None = None,
    create_graph: bool = False,
) -> Any:
    """Returns the gradient of y with respect to one tensor or to each of several; None if y doesn't
    depend on a tensor. grad attributes don't change.

    y must have one element, unless `gradient` is given. create_graph: the results can be
    differentiated again.
    """
    if isinstance(inputs, _core.Tensor):
        return _core._grad(y, [inputs], gradient, create_graph)[0]
    return _core._grad(y, inputs, gradient, create_graph)
