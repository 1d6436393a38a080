"""Custom ops: classes whose methods are the rule and the bodies of an op."""

from __future__ import annotations

import sys
import warnings

from . import _core

# Imports for type checkers are skipped at run time: they take longer than the rest of the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from ._core import GpuArray, GpuContext, KernelGrid, Tensor


class _CustomBody:
    name: str
    gpu_source: ClassVar[str | None] = None
    gpu_header: str = ""
    takes_strides: bool = False
    cpu_fallback: bool = False

    # The method whose parameters name the operands in gpu_source.
    _rule: ClassVar[str] = "shape"
    _names: ClassVar[list[str] | None] = None
    _warned: ClassVar[set[str]]

    def grid(self, out: GpuArray, *inputs: GpuArray) -> KernelGrid | int:
        """The launch geometry of gpu_source: a KernelGrid, or a number of threads along one axis, 1 or more. By
        default one thread for each element of the result."""
        return out.size

    def constants(self, out: GpuArray, *inputs: GpuArray) -> dict[str, Any]:
        """Names that are constexpr in gpu_source: numbers and dtypes. Other values compile another kernel."""
        return {}

    def numbers(self, out: GpuArray, *inputs: GpuArray) -> dict[str, Any]:
        """Numbers that gpu_source takes as arguments: a float is a float32, an int an int64."""
        return {}

    def _is_first_fallback(self) -> bool:
        """Notes a call that falls back to the CPU. Returns whether it is the first one of this class and name."""
        cls = type(self)
        if "_warned" not in cls.__dict__:
            cls._warned = set()
        if self.name in cls._warned:
            return False
        if len(cls._warned) >= 1024:  # names may be made at run time
            cls._warned.clear()
        cls._warned.add(self.name)
        return True

    @staticmethod
    def _warn(message: str) -> None:
        """Warns at the line that called wick. Unlike warnings.warn, it shows equal messages of one line: they
        are of ops with equal names."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "wick":
            frame = frame.f_back
        module = frame.f_globals.get("__name__", "wick")
        warnings.warn_explicit(message, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno, module)

    @classmethod
    def _array_names(cls) -> list[str]:
        """The names of a call's arrays in gpu_source. The target of an in-place op is its first operand."""
        names: list[str] | None = cls.__dict__.get("_names")
        if names is None:
            import inspect

            names = list(inspect.signature(getattr(cls, cls._rule)).parameters)[1:]
            if cls._rule == "shape":
                names.insert(0, "out")
            cls._names = names
        return names

    def _checked_grid(self, grid: Any) -> KernelGrid:
        if isinstance(grid, _core.KernelGrid):
            return grid  # its sizes are checked by the launch
        if not isinstance(grid, int) or isinstance(grid, bool):
            raise TypeError(
                f"{self.name}: grid must return a KernelGrid or a number of threads: not '{type(grid).__name__}'"
            )
        if not 0 < grid < 1 << 63:
            raise _core.ArgumentError(f"{self.name}: grid returned {grid} threads: need 1 or more, in 64 bits")
        return _core.KernelGrid.over(grid)

    def _launch_source(self, gpu: GpuContext, out: GpuArray, *inputs: GpuArray) -> None:
        gpu.launch(
            self.gpu_source or "",
            self._checked_grid(self.grid(out, *inputs)),
            header=self.gpu_header,
            constants=self.constants(out, *inputs),
            **dict(zip(self._array_names(), (out, *inputs))),
            **self.numbers(out, *inputs),
        )


class CustomOp(_CustomBody):
    """An op with any number of operands and one result. A subclass has

    - name: the op's name in errors and traces;
    - shape(self, *operands): returns a tensor like the result, or (shape, dtype). Mandatory.
    - cpu(self, out, *operands): the CPU's body. Operands are NumPy arrays that share the tensors'
      memory; it writes to out, or returns the result. Arrays must not be kept.
    - gpu_source: the body of a kernel, in which operands have the names of shape's parameters (any
      but body, grid, header and constants), and the result is `out`; grid, constants and numbers
      describe its launch. Or
      gpu(self, gpu, out, *operands), for both vendors, or cuda and rocm, which launch kernels by the
      GpuContext `gpu`; operands are GpuArrays.
    - backward(self, *operands, y, grad): returns the gradient of each operand, or None.
    - takes_strides = True: bodies take operands of any strides. Otherwise they are made dense first.
    - cpu_fallback = True: GPUs without a body use the CPU's. The first such call of a class and name warns.

    Calling an object applies it to tensors. docs/custom-ops.md is the guide.
    """

    def __call__(self, *operands: Tensor) -> Tensor:
        return _core._apply_op(self, operands, True)


class CustomOp1(CustomOp):
    """A CustomOp with one operand."""


class CustomOp2(CustomOp):
    """A CustomOp with two operands."""


class CustomOp3(CustomOp):
    """A CustomOp with three operands."""


class InplaceOp(_CustomBody):
    """An op that writes to its first operand and has no gradient. A subclass has

    - name: the op's name in errors and traces;
    - check(self, x, *operands): raises an error if the operands aren't supported. Mandatory.
    - cpu, gpu_source, gpu, cuda, rocm as in CustomOp, with the target in the place of out. In
      gpu_source the operands have the names of check's parameters. The target keeps its strides.
    """

    _rule = "check"

    def __call__(self, *operands: Tensor) -> None:
        _core._inplace_op(self, operands)


class InplaceOp1(InplaceOp):
    """An InplaceOp without further operands."""


class InplaceOp2(InplaceOp):
    """An InplaceOp that reads one further operand."""


class InplaceOp3(InplaceOp):
    """An InplaceOp that reads two further operands."""


def _require(op: Any, kind: type, name: str) -> None:
    if not isinstance(op, kind):
        raise TypeError(f"{name}: op: need a {kind.__name__}: not '{type(op).__name__}'")


def apply_op1(x: Tensor, op: CustomOp1) -> Tensor:
    """Applies a custom op to x.
    Errors: those of the op's rule and body; there is no body for the device; tensors are on several devices."""
    _require(op, CustomOp1, "apply_op1")
    return _core._apply_op(op, (x,), True)


def apply_op2(a: Tensor, b: Tensor, op: CustomOp2) -> Tensor:
    """Applies a custom op to a and b. Errors: see apply_op1."""
    _require(op, CustomOp2, "apply_op2")
    return _core._apply_op(op, (a, b), True)


def apply_op3(a: Tensor, b: Tensor, c: Tensor, op: CustomOp3) -> Tensor:
    """Applies a custom op to a, b and c. Errors: see apply_op1."""
    _require(op, CustomOp3, "apply_op3")
    return _core._apply_op(op, (a, b, c), True)


def apply_op1_no_grad(x: Tensor, op: CustomOp1) -> Tensor:
    """Applies a custom op without recording the call for gradients. Errors: see apply_op1."""
    _require(op, CustomOp1, "apply_op1_no_grad")
    return _core._apply_op(op, (x,), False)


def apply_op2_no_grad(a: Tensor, b: Tensor, op: CustomOp2) -> Tensor:
    """Applies a custom op without recording the call for gradients. Errors: see apply_op1."""
    _require(op, CustomOp2, "apply_op2_no_grad")
    return _core._apply_op(op, (a, b), False)


def apply_op3_no_grad(a: Tensor, b: Tensor, c: Tensor, op: CustomOp3) -> Tensor:
    """Applies a custom op without recording the call for gradients. Errors: see apply_op1."""
    _require(op, CustomOp3, "apply_op3_no_grad")
    return _core._apply_op(op, (a, b, c), False)


def inplace_op1(x: Tensor, op: InplaceOp1) -> None:
    """Applies an in-place op to x.
    Errors: those of apply_op1; another tensor or array shares x's elements; a gradient would be needed."""
    _require(op, InplaceOp1, "inplace_op1")
    _core._inplace_op(op, (x,))


def inplace_op2(x: Tensor, a: Tensor, op: InplaceOp2) -> None:
    """Applies an in-place op that writes to x and reads a. Errors: see inplace_op1."""
    _require(op, InplaceOp2, "inplace_op2")
    _core._inplace_op(op, (x, a))


def inplace_op3(x: Tensor, a: Tensor, b: Tensor, op: InplaceOp3) -> None:
    """Applies an in-place op that writes to x and reads a and b. Errors: see inplace_op1."""
    _require(op, InplaceOp3, "inplace_op3")
    _core._inplace_op(op, (x, a, b))
