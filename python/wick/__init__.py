"""Tensors on CPUs and GPUs, gradients, and language models from GGUF files.

The functions are compiled (wick._core); `wick.ops()` lists the operations.
"""

from . import _core
from ._core import *  # noqa: F403
from ._grad import enable_grad as enable_grad
from ._grad import grad as grad
from ._grad import no_grad as no_grad

__version__ = _core._version


def _restore(
    data: bytes, dtype: _core.DType, shape: tuple[int, ...], device: str, is_leaf: bool
) -> _core.Tensor:
    """What pickled tensors ask for."""
    return _core._restore(data, dtype, shape, device, is_leaf)
