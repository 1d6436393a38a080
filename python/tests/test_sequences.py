"""Sequences that lie about their length, change while they are read, or raise: every function that takes one."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

import wick


@pytest.fixture(scope="module")
def model(tiny_model: pathlib.Path) -> wick.Model:
    return wick.Model.load(tiny_model)


class Lying:
    """A sequence of the old kind, without __iter__, of another length than it says."""

    def __init__(self, items: list[Any], length: object) -> None:
        self.items, self.length = items, length

    def __len__(self) -> Any:
        if isinstance(self.length, Exception):
            raise self.length
        return self.length

    def __getitem__(self, i: Any) -> Any:
        return self.items[i]


class LyingIterable(Lying):
    def __iter__(self) -> Any:
        return iter(self.items)


class LyingList(list):  # type: ignore[type-arg]
    length: Any = 2**62

    def __len__(self) -> Any:
        return self.length


class Raising(Lying):
    def __getitem__(self, i: Any) -> Any:
        if i == len(self.items):
            raise ZeroDivisionError("item")
        return self.items[i]


class NoIterator(Lying):
    def __iter__(self) -> Any:
        return 3


class Shrinking:
    """An item that empties the list it stands in when it is looked at."""

    def __init__(self, value: int) -> None:
        self.value, self.owner = value, []  # type: ignore[var-annotated]

    def __index__(self) -> int:
        self.owner.clear()
        self.owner.extend([object()] * 3)
        self.owner.clear()
        return self.value


def shrinking(items: list[Any]) -> list[Any]:
    made: list[Any] = [Shrinking(i) if isinstance(i, int) else i for i in items]
    for item in made:
        if isinstance(item, Shrinking):
            item.owner = made
    return made


class Growing(Shrinking):
    def __index__(self) -> int:
        if len(self.owner) < 10**6:
            self.owner.append(self)
        return self.value


LENGTHS = [0, 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 10**30, -1, "a", None, ValueError("length")]

x = wick.arange(6.0).reshape(1, 1, 2, 3)
w = wick.Weight(wick.ones(2, 32))

# What takes a sequence, and one that it takes.
CALLS: dict[str, tuple[Callable[[Any, Any], object], list[Any]]] = {
    "generate": (lambda m, s: m.generate(s, max_tokens=1), [1, 2, 3]),
    "stream": (lambda m, s: list(m.stream(s, max_tokens=1)), [1, 2, 3]),
    "logits": (lambda m, s: m.logits(s).shape, [1, 2, 3]),
    "encode": (lambda m, s: m.encode(s), [1, 2, 3]),
    "decode": (lambda m, s: m.decode(s), [1, 2, 3]),
    "feed": (lambda m, s: m.session().feed(s), [1, 2, 3]),
    "Tokenizer.decode": (lambda m, s: m.tokenizer.decode(s), [1, 2, 3]),
    "Tokenizer.decode_bytes": (lambda m, s: m.tokenizer.decode_bytes(s), [1, 2, 3]),
    "reshape": (lambda m, s: x.reshape(s).shape, [3, 2]),
    "zeros": (lambda m, s: wick.zeros(s).shape, [3, 2]),
    "full": (lambda m, s: wick.full(s, 1).shape, [3, 2]),
    "permute": (lambda m, s: x.permute(s).shape, [3, 2, 1, 0]),
    "expand": (lambda m, s: x.expand(s).shape, [2, 1, 2, 3]),
    "sum": (lambda m, s: wick.sum(x, s).tolist(), [2, 3]),
    "cat": (lambda m, s: wick.cat(s).shape, [x, x]),
    "stack": (lambda m, s: wick.stack(s).shape, [x, x]),
    "einsum": (lambda m, s: wick.einsum("abcd,abcd->a", s).shape, [x, x]),
    "grouped_linear": (lambda m, s: wick.grouped_linear(wick.ones(1, 32), s, wick.zeros(1, 1, dtype="u32")).shape,
                       [w, w]),
    "conv2d": (lambda m, s: wick.conv2d(x, x[:, :, :1, :1], stride=s).shape, [1, 1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_lengths_that_lie(name: str, model: wick.Model) -> None:
    call, items = CALLS[name]
    right = call(model, items)
    for length in LENGTHS:
        for kind in (Lying, LyingIterable):
            assert call(model, kind(items, length)) == right, (kind, length)
        made = LyingList(items)
        made.length = length
        assert call(model, made) == right, length


@pytest.mark.parametrize("name", CALLS)
def test_what_iterating_raises(name: str, model: wick.Model) -> None:
    call, items = CALLS[name]
    with pytest.raises(ZeroDivisionError):
        call(model, Raising(items, len(items)))
    with pytest.raises(TypeError):
        call(model, NoIterator(items, len(items)))
    for bad in (None, object(), "ab", b"ab", 1.5, {1: 2}, {1, 2}):
        if name in ("generate", "stream", "encode", "feed") and bad == "ab":
            continue  # text is a prompt
        with pytest.raises((TypeError, wick.Error)):
            call(model, [*items, bad])
        if bad is None and name == "sum":
            continue
        if name == "conv2d" and bad == 1.5:
            continue
        with pytest.raises((TypeError, wick.Error)):
            call(model, bad)


@pytest.mark.parametrize("name", [n for n, (_, items) in CALLS.items() if isinstance(items[0], int)])
def test_items_that_change_the_list(name: str, model: wick.Model) -> None:
    call, items = CALLS[name]
    right = call(model, items)
    assert call(model, shrinking(items)) == right
    grown = [Growing(i) for i in items]
    made: list[Any] = list(grown)
    for item in grown:
        item.owner = made
    assert call(model, made) == right


@pytest.mark.parametrize("name", [n for n, (_, items) in CALLS.items() if isinstance(items[0], int)])
def test_numbers_beyond_any(name: str, model: wick.Model) -> None:
    call, items = CALLS[name]
    # A shape of 2**31 and more is no error where there is memory for it.
    fit = () if name in ("zeros", "full", "expand") else (2**31, -(2**31) - 1)
    for number in (*fit, 2**62, 2**63, -(2**63) - 1, 10**40):
        with pytest.raises((wick.Error, OverflowError, MemoryError)):
            call(model, [number, *items[1:]])


def test_nested_lists_that_change() -> None:
    class Evil:
        def __init__(self, owner: list[Any]) -> None:
            self.owner = owner

        def __float__(self) -> float:
            self.owner.clear()
            return 1.0

    inner: list[Any] = []
    outer: list[Any] = [inner, [1.0, 2.0]]
    inner.extend([Evil(outer), 3.0])
    with pytest.raises((IndexError, wick.Error)):
        wick.tensor(outer)
    inner, outer = [], []
    inner.extend([Evil(inner), 3.0])
    with pytest.raises((IndexError, wick.Error)):
        wick.tensor([inner, [1.0, 2.0]])
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(wick.Error):
        wick.tensor(loop)


def test_conversations(model: wick.Model) -> None:
    message = {"role": "user", "content": "a"}

    # As in jinja2, what a template reads of a message that lacks it is empty.
    assert model.encode([{"role": "user"}]) == model.encode([{"role": "user", "content": ""}])

    class Mapping(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            raise ZeroDivisionError(key)

    for call in (model.encode, lambda p: model.generate(p, max_tokens=1), model.session().feed):
        for bad in ([message, 3], [message, None], [message, "a"], [message, {}],
                    [{"role": 3, "content": "a"}], [{"role": "user", "content": b"a"}]):
            with pytest.raises((TypeError, wick.Error)):
                call(bad)
        with pytest.raises((ZeroDivisionError, wick.Error)):
            call([Mapping(message)])
