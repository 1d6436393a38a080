"""How tensors are shown, after NumPy's manner."""

from __future__ import annotations

import math

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LINE = 88
MOST_ELEMENTS = 1000  # of more, each dim shows its ends
EDGE = 3
DIGITS = 8

# Bits after the leading one, and the exponent of the smallest normal number.
_FORMATS = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
    "float8_e4m3": (3, -6),
}


def _shortest(value: float, dtype: str) -> str:
    """The fewest digits that no other number of the dtype is nearer to, as d.ddde±xx."""
    bits, lowest = _FORMATS[dtype]
    exponent = max(math.frexp(value)[1] - 1, lowest)
    half = math.ldexp(1.0, exponent - bits - 1)
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if abs(float(text) - value) < half:
            return text
    return f"{value:.16e}"


def _point_digits(text: str) -> tuple[int, int]:
    """Digits in front of the point and behind it that a number of d.ddde±xx needs without exponent."""
    mantissa, exponent = text.lstrip("-").split("e")
    digits = len(mantissa.replace(".", "").rstrip("0")) or 1
    return max(int(exponent) + 1, 1), max(digits - 1 - int(exponent), 0)


def _float_formatter(values: list[float], dtype: str) -> Callable[[float], str]:
    finite = [v for v in values if math.isfinite(v)]
    sizes = [abs(v) for v in finite if v != 0]
    shortest = [_shortest(v, dtype) for v in finite]
    special = max((len(str(v)) for v in values if not math.isfinite(v)), default=0)
    wide = bool(sizes) and (
        max(sizes) >= 1e8 or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1000
    )
    if wide:
        digits = max(
            (len(s.lstrip("-").split("e")[0].rstrip("0").replace(".", "")) - 1 for s in shortest),
            default=0,
        )
        digits = min(digits, DIGITS)

        def in_exponent(v: float) -> str:
            mantissa, exponent = f"{v:.{digits}e}".split("e")
            point = "" if digits else "."
            return f"{mantissa}{point}e{exponent}"

        shown = in_exponent
    else:
        digits = min(max((_point_digits(s)[1] for s in shortest), default=0), DIGITS)

        def in_places(v: float) -> str:
            text = f"{v:.{digits}f}" if digits else f"{v:.0f}."
            cut = text.rstrip("0")
            return cut.ljust(len(text)) if digits else text

        shown = in_places
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


def _ends(x: _core.Tensor) -> _core.Tensor:
    """What is shown of a large tensor: of each long dim its ends."""
    for dim, size in enumerate(x.shape):
        if size > 2 * EDGE:
            x = _core.cat([x.narrow(dim, 0, EDGE), x.narrow(dim, size - EDGE, EDGE)], dim)
    return x


def _flat(nested: Any) -> list[Any]:
    if not isinstance(nested, list):
        return [nested]
    return [v for part in nested for v in _flat(part)]


def _lines(
    nested: Any, shape: tuple[int, ...], cuts: bool, element: Callable[[Any], str], indent: int
) -> str:
    """The part of nested lists at some depth; `shape`: the whole tensor's from that depth on."""
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
