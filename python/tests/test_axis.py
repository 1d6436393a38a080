"""`axis` in the place of `dim`: the same results, whatever function takes it."""

from __future__ import annotations

import ast
import pathlib
from typing import Any

import numpy as np
import pytest
from test_bad_input import CALLS

import wick

STUB = pathlib.Path(wick.__file__).with_name("_core.pyi")


def signatures() -> dict[str, list[list[str]]]:
    """The names of the arguments of each function and method of Tensor that has a `dim`."""
    found: dict[str, list[list[str]]] = {}
    for node in ast.walk(ast.parse(STUB.read_text())):
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in node.args.args]
            if "dim" in names and node.name not in ("size", "slice_set"):
                found.setdefault(node.name, []).append([n for n in names if n not in ("self", "x")])
    return found


SIGNATURES = signatures()


def parts(result: Any) -> list[Any]:
    if isinstance(result, wick.Tensor):
        return [result.shape, result.dtype, result.tolist()]
    return [parts(one) for one in result]


def test_there_are_many() -> None:
    assert {"sum", "softmax", "cat", "max", "sort", "gather", "unsqueeze", "chunk", "std", "unbind"} <= set(SIGNATURES)
    assert len(SIGNATURES) > 35 and set(SIGNATURES) <= set(CALLS)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_same_result(name: str) -> None:
    right = CALLS[name]
    x, rest = (right[0], right[1:]) if isinstance(right[0], wick.Tensor) else (None, right)
    names = next(n for n in SIGNATURES[name] if len(n) >= len(rest) and n.index("dim") < len(rest))
    by_dim = dict(zip(names, rest))
    if isinstance(by_dim["dim"], wick.Tensor) or name in ("gather", "scatter", "scatter_add", "index_add", "index_select"):
        names = next(n for n in SIGNATURES[name] if n[0] != "dim")
        by_dim = dict(zip(names, rest))
    by_axis = {"axis" if key == "dim" else key: value for key, value in by_dim.items()}
    of = [] if x is None else [x]
    expected = parts(getattr(wick, name)(*of, **by_dim))
    assert parts(getattr(wick, name)(*of, **by_axis)) == expected
    if x is not None:
        assert parts(getattr(x, name)(**by_axis)) == expected
    with pytest.raises(TypeError, match=f"^{name}: dim and axis are two names of one argument"):
        getattr(wick, name)(*of, **by_dim, axis=0)


def test_as_numpy_calls_it() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    x = wick.tensor(a)
    assert x.sum(axis=1).tolist() == a.sum(axis=1).tolist()
    assert x.mean(axis=(0, 2), keepdim=True).tolist() == a.mean(axis=(0, 2), keepdims=True).tolist()
    assert x.argmax(axis=-1).tolist() == a.argmax(axis=-1).tolist()
    assert wick.stack([x, x], axis=1).tolist() == np.stack([a, a], axis=1).tolist()
    assert wick.cat([x, x], axis=-1).tolist() == np.concatenate([a, a], axis=-1).tolist()
    assert x.max(axis=0).values.tolist() == a.max(axis=0).tolist()
    assert x.sum(axis=None).item() == a.sum()
