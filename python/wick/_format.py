"""Formats tensors in NumPy's style."""

from __future__ import annotations

import math

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LINE = 88
MOST_ELEMENTS = 1000  # larger tensors show only the ends of each dim
EDGE = 3
DIGITS = 8

# Stored bits of the mantissa, and the exponent of the smallest normal number.
_FORMATS = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
    "float8_e4m3": (3, -6),
}


def _shortest(value: float, dtype: str) -> str:
    """The shortest text d.ddde±xx that identifies the value among the numbers of its dtype."""
    bits, lowest = _FORMATS[dtype]
    exponent = max(math.frexp(value)[1] - 1, lowest)
    half = math.ldexp(1.0, exponent - bits - 1)
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if abs(float(text) - value) < half:
            return text
    return f"{value:.16e}"


def _places_of_mantissa(text: str) -> int:
    """Digits after the point that d.ddde±xx needs in scientific notation."""
    mantissa = text.lstrip("-").split("e")[0]
    return len(mantissa.rstrip("0").rstrip(".")[2:])


def _places_behind_point(text: str) -> int:
    """Digits after the point that d.ddde±xx needs in positional notation."""
    return max(_places_of_mantissa(text) - int(text.split("e")[1]), 0)


def _float_formatter(values: list[float], dtype: str) -> Callable[[float], str]:
    finite = [v for v in values if math.isfinite(v)]
    sizes = [abs(v) for v in finite if v != 0]
    special = max((len(str(v)) for v in values if not math.isfinite(v)), default=0)
    wide = bool(sizes) and (
        max(sizes) >= 1e8 or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1000
    )
    places = _places_of_mantissa if wide else _places_behind_point
    texts = {}
    for v in finite:
        text = _shortest(v, dtype)
        most = places(text)
        # If not all digits are shown, the value is rounded, not its shortest text.
        texts[v, math.copysign(1, v)] = (float(text) if most <= DIGITS else v, min(most, DIGITS))
    digits = max((own for _, own in texts.values()), default=0)

    def shown(v: float) -> str:
        value, own = texts[v, math.copysign(1, v)]
        if not wide:
            return f"{value:.{own}f}" + ("" if own else ".") + " " * (digits - own)
        mantissa, exponent = f"{value:.{own}e}".split("e")
        return mantissa + ("" if own else ".") + "0" * (digits - own) + "e" + exponent

    width = max([len(shown(v)) for v in finite] + [special], default=0)

    def element(v: float) -> str:
        text = shown(v) if math.isfinite(v) else str(v)
        return text.rjust(width)

    return element


def _formatter(values: list[Any], dtype: str) -> Callable[[Any], str]:
    if dtype in _FORMATS:
        return _float_formatter(values, dtype)
    width = max((len(str(v)) for v in values), default=0)
    return lambda v: str(v).rjust(width)


def _ends(x: _core.Tensor, dim: int = 0) -> _core.Tensor:
    """Concatenates the shown parts of a large tensor, the ends of each long dim. The corners are cut
    along all dims before they are concatenated, because concatenating halves would materialise
    most of a broadcast view."""
    if dim == x.ndim:
        return x
    size = x.shape[dim]
    if size <= 2 * EDGE:
        return _ends(x, dim + 1)
    ends = [x.narrow(dim, 0, EDGE), x.narrow(dim, size - EDGE, EDGE)]
    return _core.cat([_ends(end, dim + 1) for end in ends], dim)


def _flat(nested: Any) -> list[Any]:
    if not isinstance(nested, list):
        return [nested]
    return [v for part in nested for v in _flat(part)]


def _lines(
    nested: Any, shape: tuple[int, ...], cuts: bool, element: Callable[[Any], str], indent: int
) -> str:
    """Formats nested lists at some depth; `shape`: sizes of the tensor's dims from that depth on."""
    if not shape:
        return element(nested)
    is_cut = cuts and shape[0] > 2 * EDGE
    parts = [_lines(part, shape[1:], cuts, element, indent + 1) for part in nested]
    if is_cut:
        parts.insert(EDGE, "...")
    if len(shape) > 1:
        gap = ",\n" + "\n" * (len(shape) - 2) + " " * (indent + 1)
        return "[" + gap.join(parts) + "]"
    lines: list[str] = []
    line = "["
    for i, part in enumerate(parts):
        text = part + ("," if i + 1 < len(parts) else "]")
        if len(line.strip("[ ")) and indent + len(line) + len(text) + 1 > LINE:
            lines.append(line.rstrip())
            line = " " * (indent + 1)
        elif i > 0:
            line += " "
        line += text
    return "\n".join([*lines, line])


def tensor_repr(x: _core.Tensor) -> str:
    name = x.dtype.name
    suffix = "" if name in ("float32", "int64") else f", dtype={name}"
    if x.device.kind != "cpu":
        suffix += f", device='{x.device}'"
    if x.requires_grad:
        suffix += ", requires_grad=True"
    if x.dtype.is_block:
        return f"tensor(<blocks>, shape={x.shape}{suffix})"
    if _core._is_traced(x):
        return f"tensor(<traced>, shape={x.shape}{suffix})"
    if x.numel() == 0:
        shape = "" if x.shape == (0,) else f", shape={x.shape}"
        return f"tensor([]{shape}{suffix})"
    cuts = x.numel() > MOST_ELEMENTS
    with_shape = f", shape={x.shape}" if cuts else ""
    plain = x.detach()
    nested = (_ends(plain) if cuts else plain).tolist()
    element = _formatter(_flat(nested), name)
    if x.ndim == 0:
        return f"tensor({element(nested).strip()}{suffix})"
    body = _lines(nested, x.shape, cuts, element, len("tensor("))
    return f"tensor({body}{with_shape}{suffix})"
