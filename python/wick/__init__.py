"""Tensors on CPUs and GPUs, gradients, and language models from GGUF files.

The functions are compiled (wick._core); `wick.ops()` lists the operations.
"""

import builtins as _builtins

from . import _core
from ._compile import CompiledFunction as CompiledFunction
from ._compile import compile as compile
from ._core import *  # noqa: F403
from ._custom import CustomOp as CustomOp
from ._custom import CustomOp1 as CustomOp1
from ._custom import CustomOp2 as CustomOp2
from ._custom import CustomOp3 as CustomOp3
from ._custom import InplaceOp as InplaceOp
from ._custom import InplaceOp1 as InplaceOp1
from ._custom import InplaceOp2 as InplaceOp2
from ._custom import InplaceOp3 as InplaceOp3
from ._custom import apply_op1 as apply_op1
from ._custom import apply_op1_no_grad as apply_op1_no_grad
from ._custom import apply_op2 as apply_op2
from ._custom import apply_op2_no_grad as apply_op2_no_grad
from ._custom import apply_op3 as apply_op3
from ._custom import apply_op3_no_grad as apply_op3_no_grad
from ._custom import inplace_op1 as inplace_op1
from ._custom import inplace_op2 as inplace_op2
from ._custom import inplace_op3 as inplace_op3
from ._grad import enable_grad as enable_grad
from ._grad import grad as grad
from ._grad import no_grad as no_grad

__version__ = _core._version

# The dtype bool. In this module, Python's own type is _builtins.bool.
bool = bool_  # noqa: A001, F405

# Methods that are also functions: wick.reshape(x, 2, 3).
reshape = Tensor.reshape  # noqa: F405
flatten = Tensor.flatten  # noqa: F405
transpose = Tensor.transpose  # noqa: F405
permute = Tensor.permute  # noqa: F405
squeeze = Tensor.squeeze  # noqa: F405
unsqueeze = Tensor.unsqueeze  # noqa: F405
broadcast_to = Tensor.broadcast_to  # noqa: F405
narrow = Tensor.narrow  # noqa: F405
chunk = Tensor.chunk  # noqa: F405
split = Tensor.split  # noqa: F405


def _restore(
    data: bytes,
    dtype: _core.DType,
    shape: tuple[int, ...],
    device: str,
    is_leaf: _builtins.bool,
) -> _core.Tensor:
    """Restores a pickled tensor."""
    return _core._restore(data, dtype, shape, device, is_leaf)
