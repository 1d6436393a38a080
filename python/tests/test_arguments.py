"""Calls whose arguments fit no signature: one plain line that names the function, the argument and what is taken."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wick

X = wick.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
# Words of nanobind's lists of signatures, and of annotations.
NOT_PLAIN = ["incompatible function arguments", "Invoked with", "arg0", "typing.", "collections.abc", "SupportsIndex",
             "nanobind", "wick.Tensor |", "\n"]  # fmt: skip
# What speaks of an argument that many functions have, by the argument's name, or of what is in it.
BY_ARGUMENT = ("device: ", "dtype: ", "prompt: ", "chat: message ")


def instances(models: pathlib.Path | None) -> dict[str, Any]:
    """An object of each class whose methods are to be called."""
    found = {"Tensor": X, "Weight": wick.Weight(X), "Device": X.device, "DType": X.dtype, "Op": wick.ops()[0],
             "MemoryStats": wick.memory_stats(), "ValuesIndices": X.max(0), "KernelGrid": wick.KernelGrid(1),
             "KernelCode": wick.KernelCode(b"")}  # fmt: skip
    if models is not None:
        model = wick.Model.load(models / "tiny-q8_0.gguf")
        found |= {"Model": model, "Tokenizer": model.tokenizer, "Gguf": wick.Gguf(models / "tiny-q8_0.gguf")}
        found["Session"] = model.session()
        found["TextStream"] = model.stream("the", max_tokens=1)
    return found


def classes() -> dict[str, type]:
    """Those of the extension."""
    public = {name: value for name, value in vars(wick).items() if not name.startswith("_")}
    types = {name: value for name, value in public.items() if isinstance(value, type) and value.__module__ == "wick"}
    return {name: value for name, value in types.items() if not issubclass(value, BaseException)}


def functions() -> dict[str, Callable[..., Any]]:
    public = {name: getattr(wick, name) for name in dir(wick) if not name.startswith("_")}
    return {n: f for n, f in public.items() if callable(f) and not isinstance(f, type)}


def methods(of: Any) -> dict[str, Callable[..., Any]]:
    own = {name: getattr(type(of), name) for name in dir(type(of)) if not name.startswith("_")}
    return {name: getattr(of, name) for name, value in own.items() if callable(value) and not isinstance(value, property)}


def wrong_calls() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (), {}
    for n in range(1, 14):
        for wrong in [object(), None, "text", 1.5, len, 1j, 2**70, -(2**70), [None]]:
            yield (wrong,) * n, {}
    yield (), {"nonsense": 1}
    yield (X, X), {"nonsense": 1}
    yield (X, object()), {"nonsense": object(), "other": None}


def check(name: str, function: Callable[..., Any]) -> int:
    """How many calls were refused because of the arguments' types, number or names."""
    refused = 0
    for arguments, named in wrong_calls():
        try:
            function(*arguments, **named)
        except (TypeError, OverflowError) as error:
            text = str(error)
            for word in NOT_PLAIN:
                assert word not in text, (name, arguments, named, text)
            if isinstance(error, (wick.Error, OverflowError)):
                continue
            assert text.startswith((f"{name}: ", f"{name}() ", f"wick.{name}: ", *BY_ARGUMENT)), (name, arguments, named, text)
            refused += 1
        except (wick.Error, ValueError, RuntimeError, StopIteration, LookupError):
            pass
    return refused


def test_functions() -> None:
    wick.set_memory_limit("cpu", 64 << 20)
    threads = wick.num_threads()
    assert len(functions()) > 130
    for name, function in functions().items():
        assert check(name, function) >= 3, name
    wick.set_num_threads(threads)
    wick.set_grad_enabled(True)
    wick.set_memory_limit("cpu", 0)


def test_constructors() -> None:
    made = 0
    for name, kind in classes().items():
        if "__init__" in vars(kind):
            assert check(name, kind) >= 3, name
            made += 1
    assert made >= 3


def check_methods(objects: dict[str, Any], names: set[str]) -> None:
    for owner in names:
        found = methods(objects[owner])
        assert found or owner in {"DType", "Op", "MemoryStats", "ValuesIndices", "Weight", "Device", "KernelCode"}, owner
        for name, method in found.items():
            assert check(name, method) >= 3, f"{owner}.{name}"


def test_methods() -> None:
    objects = instances(None)
    check_methods(objects, set(objects))


def test_methods_of_models(tiny_models: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # Session.save("text") writes a file
    objects = instances(tiny_models)
    # These exist only in the GPU body of a custom op; test_custom.py calls their methods.
    only_in_bodies = {"GpuArray", "GpuContext"}
    assert set(objects) == set(classes()) - only_in_bodies, "a class without an object to test"
    check_methods(objects, set(objects) - set(instances(None)))


def test_setters() -> None:
    settable = [name for name, value in vars(wick.Tensor).items() if isinstance(value, property) and value.fset]
    assert sorted(settable) == ["grad", "requires_grad"]
    for name in settable:
        for wrong in [object(), 1.5, "text", [X], np.ones(3)]:
            with pytest.raises(TypeError, match=f"^{name}: need (a tensor or None|a bool): not '"):
                setattr(wick.ones(2, requires_grad=True), name, wrong)


def test_special_methods_name_themselves() -> None:
    for call in [lambda: X.__getitem__(), lambda: X.__format__(3), lambda: X.max(0).__getitem__("a")]:  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="^__(getitem|format)__: "):
            call()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: X.softmax("1"), "softmax: dim: need an int: not 'str'"),
        (lambda: X.softmax(None), "softmax: dim: need an int: not 'NoneType'"),
        (lambda: X.softmax(1.0), "softmax: dim: need an int: not 'float'"),
        (lambda: X.softmax(axis="1"), "softmax: axis: need an int: not 'str'"),
        (lambda: X.softmax(axis=1, dim=1), "softmax: dim and axis are two names of one argument: give one of them"),
        (lambda: X.sum(dim=1, keepdim=True, axis=1), "sum: dim and axis are two names of one argument: give one of them"),
        (lambda: X.softmax(1, axis=1), "softmax: argument 'axis' is given twice: takes (axis=-1)"),
        (lambda: X.softmax(axis=1, order=2), "softmax: no argument is named 'order': takes (axis=-1)"),
        (lambda: X.relu(axis=1), "relu: no argument is named 'axis': takes no arguments"),
        (lambda: X.softmax(1, dim=1), "softmax: argument 'dim' is given twice: takes (dim=-1)"),
        (lambda: X.softmax(1, 2), "softmax: too many arguments: takes (dim=-1)"),
        (lambda: wick.softmax(), "softmax: argument 'x' is missing: takes (x, dim=-1)"),
        (lambda: wick.softmax(np.ones(3)), "softmax: x: need a tensor: not 'ndarray'"),
        (lambda: wick.softmax(None), "softmax: x: need a tensor: not 'NoneType'"),
        (lambda: X.sum(0, keepdim=1), "sum: keepdim: need a bool: not 'int'"),
        (lambda: X.max(None), "max: other or dim: need a tensor, an int or a sequence of ints: not 'NoneType'"),
        (lambda: X.max(0, "a"), "max: keepdim: need a bool: not 'str'"),
        (lambda: X.max(keepdim=True), "max: argument 'dim' is missing: takes () or (other) or (dim, keepdim=False)"),
        (lambda: wick.add(X, "a"), "add: b: need a tensor or a number: not 'str'"),
        (lambda: wick.add("a", X), "add: a: need a tensor or a number: not 'str'"),
        (lambda: wick.add(1, 2), "add: b: need a tensor: not 'int'"),
        (lambda: X.clamp(None, X), "clamp: max: need a number or None: not 'Tensor'"),
        (lambda: wick.full(2, 1j), "full: value: need a number: not 'complex'"),
        (lambda: wick.full(2, np.complex64(1)), "full: value: need a number: not 'complex64'"),
        (lambda: wick.pad(X, [(1, "a")]), "pad: padding: need a sequence of pairs of ints or a sequence of ints: not 'list'"),
        (lambda: wick.pad(X, 3), "pad: padding: need a sequence of pairs of ints or a sequence of ints: not 'int'"),
        (lambda: X.adaptive_avg_pool1d("a"), "adaptive_avg_pool1d: output_size: need an int, None or a sequence of them: not 'str'"),
        (lambda: X.slice_assign(1, X), "slice_assign: where: need a slice or a sequence of slices: not 'int'"),
        (lambda: X.layer_norm(bias=3), "layer_norm: bias: need a tensor or None: not 'int'"),
        (lambda: X.linear(X, X, X), "linear: too many arguments: takes (weight, bias=None, *, norm=None, "),
        (lambda: wick.Weight(3), "Weight: matrix: need a tensor: not 'int'"),
        (lambda: wick.Device(3), "Device: name: need text: not 'int'"),
        (lambda: wick.Model.load(), "load: argument 'path' is missing: takes (path, device='cpu', progress=None, adapters=(), gpu_layers='all', cpu_experts=0, more_devices=(), context=0, cache_type='f16')"),
        (lambda: wick.Model.load(3), "load: path: need text or a path: not 'int'"),
        (lambda: wick.Model.load("m.gguf", adapters=3), "load: adapters: need a sequence of paths: not 'int'"),
        (lambda: wick.Model.load("m.gguf", gpu_layers=None), "load: gpu_layers: need an int or text: not 'NoneType'"),
        (lambda: wick.Model.load("m.gguf", cpu_experts=1.5), "load: cpu_experts: need an int, 'auto' or 'all'"),
        (lambda: wick.Model.load("m.gguf", more_devices=3), "load: more_devices: need a sequence of devices: not 'int'"),
        (lambda: wick.Model.load("m.gguf", adapters="a"), "load: adapters: need a sequence of paths: not 'str'"),
        (lambda: wick.Gguf(3), "Gguf: path: need text or a path: not 'int'"),
        (lambda: wick.load_gguf(None), "load_gguf: path: need text or a path: not 'NoneType'"),
        (lambda: wick.best_device(3), "best_device: too many arguments: takes no arguments"),
        (lambda: wick.zeros(2, 3, order="C"), "zeros: no argument is named 'order': takes (*shape, dtype=None, "),
        (lambda: wick.reshape(3, (1,)), "reshape: need a tensor first: not 'int'"),
        (lambda: wick.set_grad_enabled(1), "set_grad_enabled: enabled: need a bool: not 'int'"),
        (lambda: wick.where("a", 1, 0), "where: condition: need a tensor: not 'str'"),
        (lambda: wick.where(X > 0, "a", 0), "where: a: need a tensor or a number: not 'str'"),
    ],
)  # fmt: skip
def test_what_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    text = str(raised.value)
    assert text == message or (message.endswith((" ", ",")) and text.startswith(message)), text


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: X.softmax(2**40), "softmax: dim: an int out of range"),
        (lambda: X.transpose(0, 2**40), "transpose: dim0 or dim1: an int out of range"),
        (lambda: wick.set_seed(-1), "set_seed: seed: an int out of range"),
        (lambda: X.narrow(0, 0, 2**70), "narrow: dim or start or length: an int out of range"),
    ],
)
def test_ints_out_of_range(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OverflowError) as raised:
        call()
    assert str(raised.value) == message


def test_operators_leave_other_types_their_turn() -> None:
    class Other:
        def __radd__(self, other: object) -> str:
            return "its own"

    assert X + Other() == "its own"
    with pytest.raises(TypeError, match="^unsupported operand type"):
        X + "a"  # type: ignore[operator]


def test_what_is_raised_inside_a_call_stays_as_it_is() -> None:
    class Raising:
        def __index__(self) -> int:
            raise TypeError("zeros(): incompatible function arguments, says the user")

    with pytest.raises(TypeError, match="^zeros.*says the user$"):
        wick.zeros(Raising())
