"""Custom ops whose bodies are Python. On a GPU, WICK_TEST_DEVICES names the devices; the tests of the CPU need
none."""

import gc
import importlib.util
import os
import pathlib
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import wick

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/python/custom_ops.py"
DEVICES = [name for name in os.environ.get("WICK_TEST_DEVICES", "cpu").split(",") if name]
GPUS = [name for name in DEVICES if name != "cpu"]
on_devices = pytest.mark.parametrize("device", DEVICES)
on_gpus = pytest.mark.parametrize("device", GPUS)


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("custom_ops_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


class Double(wick.CustomOp1):
    name = "double"

    def shape(self, x: wick.Tensor) -> Any:
        return x.shape, x.dtype

    def cpu(self, out: Any, x: Any) -> None:
        out[...] = x + x

    gpu_source = "if (global_index() < x_elems) out[global_index()] = narrow<out_type>(2 * widen(x[global_index()]));"

    def backward(self, x: wick.Tensor, y: wick.Tensor, grad: wick.Tensor) -> wick.Tensor:
        return grad + grad


def op_with(base: type = wick.CustomOp1, **members: Any) -> Any:
    """An object of a class with these members."""
    members.setdefault("name", "op")
    if issubclass(base, wick.CustomOp):
        members.setdefault("shape", lambda self, x: x)
    return type("Op", (base,), members)()


class Increment(wick.InplaceOp1):
    name = "increment"

    def check(self, x: wick.Tensor) -> None:
        if x.dtype != wick.float32:
            raise TypeError("increment: need float32")

    def cpu(self, x: Any) -> None:
        x += 1

    gpu_source = "if (global_index() < x_elems) x[offset_of(global_index(), x_shape, x_strides)] += 1;"


@on_devices
def test_the_examples(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["custom_ops.py", device])
    example.main()


@on_devices
@pytest.mark.parametrize("dtype", [wick.float32, wick.float64, wick.float16, wick.int32, wick.uint8])
def test_dtypes_and_layouts(device: str, dtype: wick.DType) -> None:
    x = wick.arange(24).reshape(4, 6).to(dtype).to(device)
    for v in [x, x.mT, x[::2, ::-1], x[1:1], x[0, 0]]:
        y = wick.apply_op1(v, Double())
        assert y.shape == v.shape and y.dtype == dtype and y.is_contiguous()
        assert y.tolist() == (v + v).tolist()


@on_devices
def test_gradients(device: str) -> None:
    x = wick.tensor([1.0, 2.0]).to(device).requires_grad_()
    y = Double()(x)
    y.backward(wick.ones(2, device=device))
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    assert not wick.apply_op1_no_grad(x, Double()).requires_grad
    ones = op_with(cpu=lambda self, out, x: x, gpu_source="if (global_index() < x_elems) out[global_index()] = 1;")
    with pytest.raises(wick.NotSupportedError, match="op: not differentiable.*implement backward"):
        ones(x).sum().backward()


@on_devices
def test_compiled_functions(device: str) -> None:
    calls: list[int] = []

    class Counted(Double):
        def shape(self, x: wick.Tensor) -> Any:
            calls.append(1)
            return super().shape(x)

    op = Counted()
    f = wick.compile(lambda x: op(op(x) + 1))
    for i in range(4):
        x = wick.arange(4.0).to(device) + float(i)
        assert f(x).tolist() == (x * 4.0 + 2.0).tolist()
    assert len(calls) == 2 and f.executables == 1


@on_devices
def test_in_place(device: str) -> None:
    x = wick.zeros(2, 3, device=device)
    wick.inplace_op1(x, Increment())
    Increment()(x)
    assert x.tolist() == [[2, 2, 2]] * 2
    view = x[0]
    with pytest.raises(wick.Error, match="increment: target's storage is shared"):
        wick.inplace_op1(x, Increment())
    del view
    y = wick.zeros(3, 2, device=device).mT
    wick.inplace_op1(y, Increment())
    assert y.tolist() == [[1, 1, 1]] * 2
    with pytest.raises(TypeError, match="increment: need float32"):
        wick.inplace_op1(wick.zeros(2, dtype=wick.int32, device=device), Increment())
    leaf = wick.zeros(2, device=device, requires_grad=True)
    with pytest.raises(wick.Error, match="target needs a gradient"):
        wick.inplace_op1(leaf, Increment())
    with wick.no_grad():
        wick.inplace_op1(leaf, Increment())
    assert leaf.tolist() == [1, 1]


@on_devices
def test_threads(device: str) -> None:
    x = wick.arange(1000.0).to(device)
    expected = (x + x).tolist()
    wrong = []

    def work() -> None:
        for _ in range(10):
            if Double()(x).tolist() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_cpu_body_shares_memory() -> None:
    x = wick.arange(4.0)
    seen = {}

    def cpu(self: Any, out: Any, given: Any) -> None:
        seen["shares"] = np.shares_memory(given, x.numpy())
        seen["writable"] = given.flags.writeable
        seen["out"] = out
        out[:] = 7

    y = op_with(cpu=cpu)(x)
    assert seen["shares"] and not seen["writable"] and y.tolist() == [7] * 4
    # An array that the body keeps stays valid and can't be written to.
    assert np.shares_memory(seen["out"], y.numpy())
    with pytest.raises(ValueError):
        seen["out"][0] = 1


def test_the_cpu_body_may_return_the_result() -> None:
    x = wick.arange(4.0)
    assert op_with(cpu=lambda self, out, x: x * 3)(x).tolist() == [0, 3, 6, 9]
    with pytest.raises(wick.ArgumentError, match="op: cpu returned an array of another shape"):
        op_with(cpu=lambda self, out, x: x[:2])(x)
    with pytest.raises(TypeError):
        op_with(cpu=lambda self, out, x: x.astype(complex))(x)


def test_takes_strides() -> None:
    x = wick.arange(6.0).reshape(2, 3).mT
    seen = []
    for strides in [False, True]:
        op = op_with(takes_strides=strides, cpu=lambda self, out, x: seen.append(x.flags.c_contiguous) or x)
        assert op(x).tolist() == x.tolist()
    assert seen == [True, False]


def test_bodies_that_raise() -> None:
    class Own(Exception):
        pass

    def cpu(self: Any, out: Any, x: Any) -> None:
        raise Own("from the body")

    x = wick.ones(3, requires_grad=True)
    with pytest.raises(Own, match="from the body"):
        op_with(cpu=cpu)(x)
    with pytest.raises(Own):
        wick.compile(lambda a: op_with(cpu=cpu)(a))(x.detach())

    def backward(self: Any, x: Any, y: Any, grad: Any) -> Any:
        raise Own("from backward")

    with pytest.raises(Own, match="from backward"):
        op_with(cpu=lambda self, out, x: x, backward=backward)(x).sum().backward()


@pytest.mark.parametrize(
    "given, error",
    [
        (lambda x: None, TypeError),
        (lambda x: (x.shape,), TypeError),
        (lambda x: ("no shape", x.dtype), TypeError),
        (lambda x: (x.shape, "no dtype"), Exception),
        (lambda x: ((-1,), x.dtype), Exception),
        (lambda x: ((1 << 62, 1 << 62), x.dtype), wick.Error),
        (lambda x: ((32,), wick.q8_0), wick.DTypeError),
    ],
)
def test_bad_rules(given: Any, error: type) -> None:
    with pytest.raises(error):
        op_with(shape=lambda self, x: given(x), cpu=lambda self, out, x: None)(wick.ones(2))


def test_bad_calls() -> None:
    x = wick.ones(2)
    with pytest.raises(wick.NotSupportedError, match="op: no body for the CPU.*implement cpu"):
        op_with()(x)
    with pytest.raises(TypeError, match="apply_op1: op: need a CustomOp1: not 'int'"):
        wick.apply_op1(x, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="need a InplaceOp1"):
        wick.inplace_op1(x, Double())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="double: need a tensor: not 'list'"):
        wick.apply_op1([1.0], Double())  # type: ignore[arg-type]
    with pytest.raises(wick.Error, match="double: no operands"):
        Double()()
    with pytest.raises(TypeError, match="need the attribute `name`"):
        op_with(name=None)(x)
    for name in ["", "two words", "a:b", "x" * 65]:
        with pytest.raises(wick.ArgumentError, match="custom op: not a name"):
            op_with(name=name)(x)
    with pytest.raises(TypeError):
        Double()(x, x)
    with pytest.raises(TypeError, match="backward must return"):
        leaf = wick.ones(2, requires_grad=True)
        op_with(cpu=lambda self, out, x: x, backward=lambda self, x, y, g: 5)(leaf).sum().backward()


def test_ops_are_freed() -> None:
    op: Any = Double()
    watch = weakref.ref(op)
    leaf = wick.ones(2, requires_grad=True)
    y = op(leaf)
    del op
    gc.collect()
    assert watch() is not None  # the record of the call keeps it
    y.sum().backward()
    del y
    gc.collect()
    assert watch() is None


def test_grids() -> None:
    grid = wick.KernelGrid(4)
    assert grid.blocks == (4, 1, 1) and grid.threads == (256, 1, 1) and grid.shared_bytes == 0
    assert wick.KernelGrid((1, 2, 3), (8, 8), 64).threads == (8, 8, 1)
    assert wick.KernelGrid.over(1000, 128).blocks == (8, 1, 1)
    for bad in [(), (1, 2, 3, 4)]:
        with pytest.raises(ValueError):
            wick.KernelGrid(bad)


# ---- GPUs ----


@on_gpus
def test_gpu_bodies(device: str) -> None:
    kept = []

    def gpu(self: Any, gpu: wick.GpuContext, out: wick.GpuArray, x: wick.GpuArray) -> None:
        assert gpu.device == device and gpu.stream != 0 and gpu.multiprocessors > 0
        assert x.shape == (2, 3) and x.strides == (3, 1) and x.dtype == wick.float32 and x.size == 6
        assert x.data_ptr != out.data_ptr
        half = gpu.scratch(6, wick.float32)
        grid = wick.KernelGrid.over(6)
        gpu.launch("if (global_index() < 6) h[global_index()] = x[global_index()] * by;", grid, x=x, h=half, by=0.5)
        gpu.launch(
            "if (global_index() < 6) y[global_index()] = plus(h[global_index()]) + k;",
            grid,
            header="float plus(float v) { return v + one; }",
            constants={"one": 1.0, "k": 2, "unused": wick.float16, "yes": True},
            h=half,
            y=out,
        )
        kept.append(gpu)

    x = wick.arange(6.0).reshape(2, 3).to(device)
    assert op_with(gpu=gpu)(x).tolist() == (x * 0.5 + 3.0).tolist()
    with pytest.raises(wick.Error, match="used after the body"):
        kept[0].stream


@on_gpus
def test_errors_of_launches(device: str) -> None:
    x = wick.ones(4, device=device)

    def launching(*args: Any, **kwargs: Any) -> Any:
        return op_with(gpu=lambda self, gpu, out, x: gpu.launch(*args, out=out, **kwargs))

    with pytest.raises(wick.Error, match="too many threads in a block.*limit"):
        launching("", wick.KernelGrid(1, 4096))(x)
    with pytest.raises(wick.Error, match="too many blocks"):
        launching("", wick.KernelGrid(1 << 40))(x)
    with pytest.raises(wick.Error, match="no_such_name"):
        launching("out[0] = no_such_name;", wick.KernelGrid(1))(x)
    with pytest.raises(TypeError, match="need an array of the body, a number"):
        launching("", wick.KernelGrid(1), n="text")(x)
    with pytest.raises(OverflowError):
        launching("", wick.KernelGrid(1), n=(1 << 40, wick.int32))(x)
    with pytest.raises(TypeError):
        launching("", 5)(x)
    with pytest.raises(TypeError, match="launch: constants: need a dict: not 'list'"):
        launching("", wick.KernelGrid(1), constants=["n"])(x)

    def code(self: Any, gpu: Any, out: Any, x: Any) -> None:
        gpu.launch_code(wick.KernelCode(b"nonsense"), "f", wick.KernelGrid(1), out, 5)

    with pytest.raises(wick.Error, match="not a code object"):
        op_with(gpu=code)(x)
    assert Double()(x).tolist() == [2, 2, 2, 2]


@on_gpus
@pytest.mark.parametrize(
    "grid, error, message",
    [
        (0, wick.ArgumentError, "op: grid returned 0 threads"),
        (-3, wick.ArgumentError, "op: grid returned -3 threads"),
        (1 << 70, wick.ArgumentError, "op: grid returned 1180591620717411303424 threads"),
        (1 << 62, wick.ArgumentError, "op: too many blocks"),
        (True, TypeError, "op: grid must return .*not 'bool'"),
        (1.5, TypeError, "op: grid must return .*not 'float'"),
        (None, TypeError, "op: grid must return .*not 'NoneType'"),
        (wick.KernelGrid.over(0), wick.ArgumentError, "op: a grid without threads: 0x1x1 blocks"),
        (wick.KernelGrid.over(-5), wick.ArgumentError, "op: a grid without threads: -5x1x1 blocks"),
        (wick.KernelGrid.over(5, 0), wick.ArgumentError, "op: a grid without threads: 1x1x1 blocks of 0x1x1"),
        (wick.KernelGrid.over(5, -1), wick.ArgumentError, "op: a grid without threads: 1x1x1 blocks of -1x1x1"),
        (wick.KernelGrid((1, 0)), wick.ArgumentError, "op: a grid without threads: 1x0x1 blocks"),
        (wick.KernelGrid(1, (8, -8)), wick.ArgumentError, "op: a grid without threads: 1x1x1 blocks of 8x-8x1"),
        (wick.KernelGrid(1, 256, -1), wick.ArgumentError, "op: a negative size of shared memory: .*, -1 bytes"),
        (wick.KernelGrid(1, 256, 1 << 40), wick.ArgumentError, "op: too much shared memory: .*, 1099511627776 bytes"),
    ],
)
def test_grids_without_threads(device: str, grid: Any, error: type, message: str) -> None:
    op = op_with(gpu_source="out[0] = 5;", grid=lambda self, out, x: grid)
    with pytest.raises(error, match=message):
        op(wick.ones(1, device=device))


@on_gpus
def test_arrays_of_other_bodies(device: str) -> None:
    x = wick.ones(4, device=device)
    kept: list[wick.GpuArray] = []

    def keep(self: Any, gpu: Any, out: Any, x: Any) -> None:
        kept.extend([out, x, gpu.scratch(4, wick.float32)])
        gpu.launch("y[global_index()] = 2 * x[global_index()];", wick.KernelGrid(1, 4), y=kept[0], x=kept[1])

    op_with(gpu=keep, name="keeps")(x)
    message = "op: argument y: an array of another call of a body"
    for array in list(kept):
        stale = op_with(gpu=lambda self, gpu, out, x: gpu.launch("y[0];", wick.KernelGrid(1), y=array))
        for call in [stale, wick.compile(lambda x: stale(x))]:
            with pytest.raises(wick.Error, match=message):
                call(x)

    def code(self: Any, gpu: Any, out: Any, x: Any) -> None:
        gpu.launch_code(wick.KernelCode(b"\x7fELF"), "f", wick.KernelGrid(1), x, kept[0])

    with pytest.raises(wick.Error, match="op: argument 1: an array of another call of a body"):
        op_with(gpu=code)(x)


@on_gpus
def test_fallback_to_the_cpu(device: str) -> None:
    x = wick.ones(4, device=device)
    with pytest.raises(wick.NotSupportedError, match="no body for (ROCm|CUDA)"):
        op_with(cpu=lambda self, out, x: x + 1)(x)
    op = op_with(cpu=lambda self, out, x: x + 1, cpu_fallback=True, name="falls_back")
    with pytest.warns(RuntimeWarning, match="falls_back: no body for"):
        assert op(x).tolist() == [2] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert op(x).tolist() == [2] * 4


@on_gpus
def test_each_op_warns_of_its_fallback(device: str) -> None:
    """Ops of several classes with one name, and of one class with several names, in one line of a program."""

    class First(wick.CustomOp1):
        name = "falls_back"
        cpu_fallback = True

        def shape(self, x: wick.Tensor) -> wick.Tensor:
            return x

        def cpu(self, out: Any, x: Any) -> None:
            out[...] = x + 1

    class Second(First):
        def cpu(self, out: Any, x: Any) -> None:
            out[...] = x + 2

    renamed = First()
    renamed.name = "renamed"
    x = wick.ones(2, device=device)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        results = [op(x).tolist()[0] for op in [First(), Second(), renamed, First(), Second(), renamed]]
    assert results == [2, 3, 2, 2, 3, 2]
    assert [str(w.message).split(":")[0] for w in seen] == ["falls_back", "falls_back", "renamed"]
    assert {w.filename for w in seen} == {__file__}
