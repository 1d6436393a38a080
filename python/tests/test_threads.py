import subprocess
import sys
import threading
import time

import pytest

import wick

THREADS = wick.num_threads()


SQUARE = wick.uniform((1200, 1200))
IMAGES = wick.uniform((4, 32, 64, 64))
LONG_CALLS = {
    "matmul": lambda: SQUARE @ SQUARE,
    "sort": lambda: SQUARE.sort(),
    "conv2d": lambda: wick.conv2d(IMAGES, IMAGES[:, :, :3, :3]),
    "sum": lambda: wick.sum(SQUARE.expand(64, 1200, 1200)),
    "arithmetic": lambda: SQUARE.expand(64, 1200, 1200) * 2,
    "normal": lambda: wick.normal((4000, 1000)),
    "index": lambda: SQUARE[SQUARE > 0.5],
    "quantize": lambda: wick.quantize(wick.uniform((1200, 1024)), "q4_k"),
    "backward": lambda: (SQUARE.detach().requires_grad_() @ SQUARE).sum().backward(),
    "convert": lambda: SQUARE.expand(32, 1200, 1200).to("float16"),
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_long_calls_let_other_threads_run(name: str) -> None:
    done = threading.Event()
    ticks = 0
    wick.set_num_threads(1)

    def work() -> None:
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            LONG_CALLS[name]()
        done.set()

    thread = threading.Thread(target=work)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(60)  # only who lets go of the interpreter lets others run
    try:
        thread.start()
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)
    finally:
        sys.setswitchinterval(switch)
        thread.join()
        wick.set_num_threads(THREADS)
    assert ticks > 5


def test_many_threads_on_the_same_tensors() -> None:
    x = wick.arange(20000.0).requires_grad_()
    failures = []

    def work() -> None:
        try:
            for _ in range(20):
                y = (x * 2 + 1).sum()
                y.backward()
        except Exception as e:  # pragma: no cover
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and x.grad is not None and x.grad[0].item() == 2 * 20 * 4


def test_importing_needs_no_numpy() -> None:
    code = "import sys, wick; wick.zeros(2); print(any(m in sys.modules for m in ('numpy', 'typing', 're')))"
    out = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                         capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_nothing_is_left_at_the_end() -> None:
    code = (
        "import wick; x = wick.tensor([1.0], requires_grad=True); (x * x).sum().backward();"
        "g = x.grad; d = wick.float32; import numpy as np; n = x.numpy(); t = wick.from_numpy(np.ones(3))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stderr == ""
