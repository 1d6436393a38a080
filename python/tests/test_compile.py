"""wick.compile: the results of the function, traced once; and what it refuses."""

import threading

import numpy as np
import pytest

import wick


def block(x: wick.Tensor, w: wick.Tensor) -> wick.Tensor:
    y = wick.softmax(x @ w, -1)
    return wick.gelu(y * 2.0 + x)[:, 1:].contiguous()


def test_results_and_retracing() -> None:
    calls = []

    @wick.compile
    def f(x: wick.Tensor, w: wick.Tensor) -> wick.Tensor:
        calls.append(x.shape)
        return block(x, w)

    for rows in [1, 5, 1, 5, 5, 1]:
        x, w = wick.normal((rows, 8)), wick.normal((8, 8))
        assert f(x, w).tolist() == block(x, w).tolist()
    assert calls == [(1, 8), (5, 8)]
    assert f.executables == 2
    assert f.__name__ == "f"


def test_nested_arguments_and_results() -> None:
    traced = []

    def f(pair: tuple, scale: float, *, extra: dict) -> dict:  # type: ignore[type-arg]
        traced.append(scale)
        a, b = pair
        return {"sum": a + b, "rest": [a * scale, None, (extra["x"],)], "n": 3}

    g = wick.compile(f)
    a, b = wick.tensor([1.0, 2.0]), wick.tensor([3.0, 4.0])
    for scale in [2.0, 3.0, 2.0]:
        r = g((a, b), scale, extra={"x": b})
        assert r["sum"].tolist() == [4, 6]
        assert r["rest"][0].tolist() == [scale, 2 * scale]
        assert r["rest"][1] is None and r["rest"][2][0].tolist() == [3, 4] and r["n"] == 3
    assert traced == [2.0, 3.0]


def test_methods_and_decorator_with_options() -> None:
    class Layer:
        def __init__(self, w: wick.Tensor) -> None:
            self.w = w

        @wick.compile(fuse=False)
        def forward(self, x: wick.Tensor) -> wick.Tensor:
            return x @ self.w

    one, two = Layer(wick.ones(2, 2)), Layer(wick.zeros(2, 2))
    x = wick.tensor([[1.0, 2.0]])
    for _ in range(3):
        assert one.forward(x).tolist() == [[3, 3]]
        assert two.forward(x).tolist() == [[0, 0]]


def test_gradients_flow() -> None:
    w = wick.tensor([2.0, 3.0], requires_grad=True)
    f = wick.compile(lambda x: (x * w).sum())
    for _ in range(2):
        f(wick.tensor([1.0, 10.0])).backward()
    assert w.grad is not None and w.grad.tolist() == [2, 20]
    with wick.no_grad():
        assert not f(wick.tensor([1.0, 10.0])).requires_grad


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x if x.sum().item() > 0 else -x,
        lambda x: x if x.sum() > 0 else -x,
        lambda x: wick.tensor(x.tolist()),
        lambda x: wick.tensor(x.numpy()),
        lambda x: x * float(x.sum()),
        lambda x: x[: int(x.sum())],
        lambda x: wick.tensor(memoryview(x)),
    ],
)
def test_reading_values_is_an_error(read) -> None:  # type: ignore[no-untyped-def]
    f = wick.compile(read)
    with pytest.raises((wick.Error, BufferError), match="while a function is traced"):
        f(wick.tensor([1.0, 2.0]))
    assert (wick.ones(2) + 1).tolist() == [2, 2]  # calls run again


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("item", lambda x: x.sum().item()),
        ("bool", lambda x: 1 if x.sum() > 0 else 0),
        ("bool", lambda x: not (x[0] > 0)),
        ("bool", lambda x: 0 < x[0] < 2),
        ("bool", lambda x: 1 if x else 0),
        ("float", lambda x: float(x.sum())),
        ("int", lambda x: int(x[0])),
        ("index", lambda x: [1, 2, 3][x[0].long()]),
        ("index", lambda x: range(x[0].long())),
        ("format", lambda x: f"{x.sum():.2f}"),
        ("tolist", lambda x: x.tolist()),
        ("numpy", lambda x: x.numpy()),
        ("numpy", lambda x: np.asarray(x)),
        ("__dlpack__", lambda x: x.__dlpack__()),
        ("equal", lambda x: wick.equal(x, x)),
        ("allclose", lambda x: x.allclose(x)),
        ("nonzero", lambda x: x.nonzero()),
        ("masked_select", lambda x: x.masked_select(x > 0)),
        ("unique", lambda x: x.unique()),
        ("unique", lambda x: x.unique(return_counts=True)),
        ("repeat_interleave", lambda x: x.repeat_interleave(x.long())),
    ],
)
def test_errors_name_what_reads(name: str, read) -> None:  # type: ignore[no-untyped-def]
    def f(x: wick.Tensor) -> wick.Tensor:
        read(x)
        return x

    with pytest.raises(wick.Error, match=f"^{name}: values are read while a function is traced: .*where"):
        wick.compile(f)(wick.tensor([1.0, 2.0]))


def test_errors() -> None:
    x = wick.ones(2)
    with pytest.raises(wick.Error, match="random numbers in a traced function"):
        wick.compile(lambda x: x + wick.normal((2,)))(x)
    with pytest.raises(wick.Error, match="no arguments"):
        wick.compile(lambda: x)()
    with pytest.raises(TypeError, match="compile: an argument of type bytearray"):
        wick.compile(lambda x, y: x)(x, bytearray(1))
    with pytest.raises(TypeError, match="compile: a result of type set"):
        wick.compile(lambda x: {1})(x)
    with pytest.raises(TypeError, match="compile: int can't be called"):
        wick.compile(3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="the results have another structure"):
        f = wick.compile(lambda x: x if x.shape[0] == 1 else (x, x))
        f(wick.ones(1))
        f(wick.ones(2))

    class Own(Exception):
        pass

    def fails(x: wick.Tensor) -> wick.Tensor:
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        wick.compile(fails)(x)
    with pytest.raises(wick.Error, match="add: shapes"):
        wick.compile(lambda a, b: a + b)(wick.ones(2), wick.ones(3))


def test_shown_while_traced() -> None:
    shown = []

    @wick.compile
    def f(x: wick.Tensor) -> wick.Tensor:
        shown.append(repr(x))
        return x + 1

    f(wick.ones(2, 3))
    assert shown == ["tensor(<traced>, shape=(2, 3))"]


def test_threads() -> None:
    f = wick.compile(lambda x: x * 2 + 1)
    wrong = []

    def work(n: int) -> None:
        for i in range(50):
            size = 1 + i % 3
            if f(wick.full((size,), float(n + i))).tolist() != [2.0 * (n + i) + 1] * size:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
