"""Gradients with respect to given tensors, and whether calls are remembered at all."""

from __future__ import annotations

from . import _core

# What only type checkers need isn't imported: it takes longer than the rest of the package.
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
    """Sets for a with block, or for calls of a function, whether this thread's calls are remembered."""

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
    """Calls inside aren't remembered: `with wick.no_grad(): …` or `@wick.no_grad()`."""


class enable_grad(_GradMode):
    """Calls inside are remembered, also within no_grad."""

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
    """The gradient of y with respect to a tensor, or to each of several; None where y doesn't depend
    on it. grad attributes stay as they are.

    y: of one element, or with its gradient. create_graph: what comes out has gradients itself.
    """
    if isinstance(inputs, _core.Tensor):
        return _core._grad(y, [inputs], gradient, create_graph)[0]
    return _core._grad(y, inputs, gradient, create_graph)
