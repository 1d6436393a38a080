"""References between custom ops, what is compiled from them and their results: the garbage collector frees cycles, and
nothing is left at exit."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import wick

PREAMBLE = """
import atexit
import wick

class Twice(wick.CustomOp1):
    name = "twice"

    def shape(self, x):
        return x

    def cpu(self, out, x):
        out[...] = 2 * x

    def backward(self, x, y, grad):
        return 2.0 * grad

x = wick.arange(3.0)
leaf = wick.ones(3, requires_grad=True)
op = Twice()
"""

# The globals of a method refer to all of these, and the op refers to its methods.
PROGRAMS = {
    "compiled": "f = wick.compile(lambda t: wick.apply_op1(t, Twice()))\nf(x)",
    "decorated": "@wick.compile\ndef f(t): return wick.apply_op1(t, op)\nf(x)",
    "result": "y = wick.apply_op1(leaf, op)\ny.sum().backward()",
    # Two Python objects share the record of the op.
    "loss": "y = wick.apply_op1(leaf, Twice())\nloss = y.sum()\nloss.backward()",
    "gradient": "g = wick.grad(op(leaf).sum(), [leaf], create_graph=True)",
    "in place": "class Zero(wick.InplaceOp1):\n"
    "    name = 'zero'\n"
    "    def check(self, x): pass\n"
    "    def cpu(self, x): x[...] = 0\n"
    "zero = Zero()\n"
    "@wick.compile\n"
    "def f(t):\n"
    "    y = t + 1.0\n"
    "    zero(y)\n"
    "    return y\n"
    "f(x)",
    # The functions of atexit may still use ops.
    "atexit": "y = op(leaf)\n"
    "f = wick.compile(op)\n"
    "f(x)\n"
    "@atexit.register\n"
    "def last():\n"
    "    assert f(x).tolist() == [0, 2, 4]\n"
    "    y.sum().backward()\n"
    "    print(leaf.grad.tolist())",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_leaks_at_exit(name: str) -> None:
    run = subprocess.run([sys.executable, "-c", PREAMBLE + PROGRAMS[name]], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout == ("[2.0, 2.0, 2.0]\n" if name == "atexit" else "")


def make_op() -> Any:
    class Twice(wick.CustomOp1):
        name = "twice"

        def shape(self, x: wick.Tensor) -> wick.Tensor:
            return x

        def cpu(self, out: Any, x: Any) -> None:
            out[...] = 2 * x

        def backward(self, x: wick.Tensor, y: wick.Tensor, grad: wick.Tensor) -> wick.Tensor:
            return 2.0 * grad

    return Twice()


def keep_compiled(op: Any) -> None:
    op.compiled = wick.compile(lambda x: op(x) + 1.0)
    op.compiled(wick.arange(3.0))
    op.compiled(wick.arange(4.0))


def keep_result(op: Any) -> None:
    op.last = op(wick.ones(3, requires_grad=True))


def keep_loss(op: Any) -> None:
    op.last = (op(wick.ones(3, requires_grad=True)) * 3.0).sum()


def keep_square(op: Any) -> None:
    y = op(wick.ones(3, requires_grad=True))
    op.last = y * y + y  # several calls share the record of y


def keep_composed(op: Any) -> None:
    op.last = op(op(wick.ones(3, requires_grad=True)))


KEEPERS = [keep_compiled, keep_result, keep_loss, keep_square, keep_composed]


@pytest.mark.parametrize("keep", KEEPERS)
def test_cycles_are_freed(keep: Callable[[Any], None]) -> None:
    ops: list[weakref.ref[Any]] = []
    for _ in range(20):
        op = make_op()
        keep(op)
        ops.append(weakref.ref(op))
        del op
    gc.collect()
    assert sum(op() is not None for op in ops) == 0


def test_what_is_in_use_is_kept() -> None:
    """The collector frees no op that a compiled function or a record still needs."""
    leaf = wick.ones(3, requires_grad=True)
    ops = [make_op() for _ in range(3)]
    for op in ops:
        keep_compiled(op)
    compiled = [op.compiled for op in ops]
    y = ops[0](leaf)
    first, second = y * 3.0, y * 5.0
    del ops, op, y
    for _ in range(3):
        gc.collect()
    assert [f(wick.arange(3.0)).tolist() for f in compiled] == [[1, 3, 5]] * 3
    (first + second).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [16] * 3


def test_collections_beside_other_threads() -> None:
    """Threads that run wick's code without the GIL change the numbers of owners during collections."""
    ended = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not ended.is_set():
                op = make_op()
                keep_compiled(op)
                x = wick.ones(1000, requires_grad=True)
                op.last = op(op(x) * 2.0) + x
                op.last.backward(wick.ones(1000))
                assert x.grad is not None and x.grad.tolist() == [9] * 1000
                assert op.compiled(wick.arange(3.0)).tolist() == [1, 3, 5]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        gc.collect()
    ended.set()
    for thread in threads:
        thread.join()
    assert not failed
