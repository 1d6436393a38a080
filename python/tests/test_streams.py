"""Streams and sessions under threads, signals, fork and the interpreter's end."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

import wick


@pytest.fixture(scope="module")
def model(tiny_model: pathlib.Path) -> wick.Model:
    return wick.Model.load(tiny_model)


def in_threads(count: int, work: Any, seconds: float = 20) -> list[BaseException]:
    """Runs work(number) in threads. Fails where one doesn't come back; returns what they raised."""
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    until = time.monotonic() + seconds
    for t in threads:
        t.start()
    for t in threads:
        t.join(max(0.0, until - time.monotonic()))
        assert not t.is_alive(), "a thread hangs"
    return raised


LONG = {"max_tokens": 200, "temperature": 0.0, "ignore_end": True}


def test_closing_from_another_thread(model: wick.Model) -> None:
    for pause in (0, 0.001, 0.01):
        stream = model.stream([1, 2, 3], **LONG)
        closer = threading.Thread(target=lambda: (time.sleep(pause), stream.close()), daemon=True)
        closer.start()
        for _ in stream:
            pass
        closer.join(10)
        assert not closer.is_alive()
        with pytest.raises(StopIteration):
            next(stream)


def test_closing_from_many_threads(model: wick.Model) -> None:
    for _ in range(20):
        stream = model.stream([1, 2, 3], **LONG)
        assert not in_threads(6, lambda i: stream.close())


def test_threads_share_a_stream(model: wick.Model) -> None:
    whole = "".join(model.stream([1, 2, 3], **LONG))
    for _ in range(5):
        stream = model.stream([1, 2, 3], **LONG)
        pieces: list[str] = []
        assert not in_threads(4, lambda i: pieces.extend(stream))
        # Each piece went to one of them.
        assert sorted("".join(pieces)) == sorted(whole)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(model: wick.Model, seed: int) -> None:
    """next, close, del and iteration on streams that threads share and on new ones of shared sessions."""
    sessions = [model.session(220) for _ in range(2)]
    shared: list[Any] = [model.stream([1, 2, 3], **LONG) for _ in range(3)]
    lock = threading.Lock()

    def work(number: int) -> None:
        rng = random.Random(seed * 100 + number)
        for _ in range(60):
            at = rng.randrange(len(shared))
            what = rng.randrange(7)
            with lock:
                stream = shared[at]
            try:
                if what == 0:
                    next(stream)
                elif what == 1:
                    stream.close()
                elif what == 2:
                    for _, _ in zip(range(rng.randrange(20)), stream):
                        pass
                elif what == 3:
                    with lock:
                        shared[at] = None
                    fresh = model.stream([1, 2, 3], seed=number, **LONG)
                    with lock:
                        shared[at] = fresh
                elif what == 4:
                    session = rng.choice(sessions)
                    session.truncate(0)
                    session.feed([1, 2, 3])
                    fresh = session.stream(max_tokens=20, ignore_end=True)
                    with lock:
                        shared[at] = fresh
                elif what == 5:
                    session = rng.choice(sessions)
                    _ = (session.tokens, len(session), session.context)
                else:
                    rng.choice(sessions).generate(max_tokens=2)
                del stream
            except (StopIteration, TypeError, AttributeError):
                pass  # ended, or None meanwhile
            except wick.Error as e:
                assert "busy" in str(e) or "nothing was fed" in str(e), e

    raised = in_threads(5, work, 60)
    assert not raised, raised
    shared.clear()
    for session in sessions:  # nothing holds them any more
        session.truncate(0)
        session.feed([1, 2])
        session.generate(max_tokens=2)


def test_a_session_in_many_threads(model: wick.Model) -> None:
    session = model.session(200)
    session.feed([1, 2, 3])
    right = model.generate([1, 2, 3], max_tokens=20, temperature=0.0, ignore_end=True)
    busy = []

    def work(number: int) -> None:
        own = model.session(64)  # one model, many sessions
        own.feed([1, 2, 3])
        assert own.generate(max_tokens=20, temperature=0.0, ignore_end=True) == right
        for _ in range(20):
            try:
                session.truncate(3)
                session.generate(max_tokens=5, ignore_end=True)
            except wick.Error as e:
                assert "busy" in str(e)
                busy.append(e)

    assert not in_threads(6, work)
    session.truncate(3)
    assert session.generate(max_tokens=20, temperature=0.0, ignore_end=True) == right


def test_what_a_generation_throws_reaches_one_thread(model: wick.Model) -> None:
    stream = model.stream([1, 10**6], max_tokens=5)  # an id outside the vocabulary
    raised = in_threads(4, lambda i: list(stream))
    assert len(raised) == 1 and isinstance(raised[0], wick.Error)
    stream.close()


def test_callbacks_that_raise(tiny_model: pathlib.Path) -> None:
    class Odd(BaseException):
        pass

    def callback(done: int, of: int) -> None:
        raise Odd(done)

    def work(number: int) -> None:
        for _ in range(5):
            with pytest.raises(Odd):
                wick.Model.load(tiny_model, progress=callback)

    assert not in_threads(3, work)
    with pytest.raises(TypeError):
        wick.Model.load(tiny_model, progress=3)  # type: ignore[arg-type]


# A model that never ends its answer keeps its thread at work all the while.
START = """
    import os, signal, sys, threading, time, wick
    model = wick.Model.load(sys.argv[1])
    def start():
        return model.stream([1, 2, 3], max_tokens=-1, ignore_end=True)
"""


def run(code: str, model: pathlib.Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    text = textwrap.dedent(START) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", text, str(model)], capture_output=True, text=True, timeout=60,
                          check=False, **options)


ENDS = {
    "kept": "s = start(); next(s)",
    "in a cycle": "s = [start()]; s.append(s); next(s[0]); del s",
    "in a module": "sys.kept = start(); next(sys.kept)",
    "daemons iterate": """
        for _ in range(4):
            s = start()
            for _ in range(2):
                threading.Thread(target=lambda s=s: [None for _ in s], daemon=True).start()
        time.sleep(0.05)
        """,
    "daemons generate": """
        def work():
            while True:
                model.generate([1, 2, 3], max_tokens=50, ignore_end=True)
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        """,
    "daemons compute": """
        x = wick.ones(300, 300)
        def work():
            while True: x @ x
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        """,
    "a daemon closes": """
        s = start(); next(s)
        threading.Thread(target=s.close, daemon=True).start()
        """,
    "at exit": "import atexit; s = start(); atexit.register(lambda: list(zip(range(3), s)))",
    "started at exit": "import atexit; atexit.register(lambda: next(start()))",
    "sys.exit": "s = start(); next(s); sys.exit(0)",
    "forgotten": "start()",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_interpreter_ends_while_a_stream_runs(name: str, tiny_model: pathlib.Path) -> None:
    for _ in range(3):
        out = run(ENDS[name], tiny_model)
        assert out.returncode == 0 and out.stderr == "", out


def test_fork(tiny_model: pathlib.Path) -> None:
    code = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    s = start()
    session = model.session()
    session.feed([1, 2, 3])
    running = session.stream(max_tokens=200, ignore_end=True)  # room is left of 256
    next(s), next(running)
    child = os.fork()
    if child == 0:
        try: next(s)
        except wick.Error as e: assert "another process" in str(e)
        else: os._exit(3)
        s.close()
        try: session.feed([1])
        except wick.Error as e: assert "busy" in str(e)
        else: os._exit(4)
        del s, running
        assert len(list(model.stream([1, 2, 3], max_tokens=3, ignore_end=True, temperature=0.0))) <= 4
        other = start(); next(other)
        sys.exit(7)
    s.close(); running.close()
    session.feed([1])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """
    out = run(code, tiny_model)
    assert out.returncode == 0 and out.stderr == "", out


@pytest.mark.parametrize("call", ["[None for _ in start()]", "model.generate([1] * 3, max_tokens=-1, ignore_end=True)",
                                  "s = start()\nwhile True: s.close(); s = start(); next(s)"])
def test_interrupts(call: str, tiny_model: pathlib.Path) -> None:
    code = textwrap.dedent(START) + textwrap.dedent("""
    print("ready", flush=True)
    while True:
    """) + textwrap.indent(call, "    ")
    for pause in (0.0, 0.02, 0.1):
        process = subprocess.Popen([sys.executable, "-c", code, str(tiny_model)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
        assert error.rstrip().endswith("KeyboardInterrupt") and process.returncode == -signal.SIGINT, error
