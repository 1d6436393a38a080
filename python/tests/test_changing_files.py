"""Model files that change while Python uses them: an error of the call, not of the process."""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

import pytest

import wick

PROMPT = [1, 2, 3]
OPTIONS = {"max_tokens": 60, "temperature": 0.0, "ignore_end": True}


@pytest.fixture
def copy(tiny_models: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copyfile(tiny_models / "tiny-f32.gguf", tmp_path / "m.gguf")
    time.sleep(0.02)  # a change within a tick of the file's clock isn't told
    return tmp_path / "m.gguf"


def change(path: pathlib.Path, rng: random.Random) -> None:
    kind = rng.randrange(3)
    if kind == 0:
        os.truncate(path, rng.randrange(path.stat().st_size))
    else:
        with open(path, "r+b" if kind == 1 else "ab") as file:
            file.seek(rng.randrange(path.stat().st_size) if kind == 1 else 0, 0 if kind == 1 else 2)
            file.write(rng.randbytes(3000))


def test_every_call_says_so(copy: pathlib.Path) -> None:
    model = wick.Model.load(copy)
    session = model.session()
    session.feed(PROMPT)
    os.truncate(copy, 1000)
    for call in (lambda: model.generate(PROMPT, **OPTIONS), lambda: list(model.stream(PROMPT, **OPTIONS)),
                 lambda: model.logits(PROMPT), lambda: session.feed(PROMPT), lambda: model.session().feed(PROMPT)):
        with pytest.raises(wick.FileError, match="changed while it was in use"):
            call()
    with pytest.raises(OSError):
        model.generate(PROMPT)


def test_a_file_that_is_short_before_it_is_opened(copy: pathlib.Path) -> None:
    whole = copy.read_bytes()
    lengths = [0, 1, 3, 4, 7, 8, 23, 24, 100, 1000, len(whole) // 2, len(whole) - 4000, len(whole) - 1]
    for length in lengths + random.Random(1).sample(range(len(whole)), 20):
        copy.write_bytes(whole[:length])
        for load in (wick.Gguf, wick.load_gguf, wick.Model.load):
            with pytest.raises(wick.FileError) as raised:
                load(copy)
            assert isinstance(raised.value, OSError) and not isinstance(raised.value, ValueError)
    for wrong in [b"GGUX" + whole[4:], b"GGUF" + bytes([9]) + whole[5:], b"text" * 100]:  # whole, but something else
        copy.write_bytes(wrong)
        with pytest.raises(wick.ArgumentError):
            wick.Gguf(copy)


def test_at_random_moments(tiny_models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    whole = (tiny_models / "tiny-f32.gguf").read_bytes()
    right = wick.Model.load(tiny_models / "tiny-f32.gguf").generate(PROMPT, **OPTIONS)
    rng = random.Random(1)
    results = errors = 0
    until = time.monotonic() + 120
    while (results < 25 or errors < 8 or results + errors < 60) and time.monotonic() < until:
        path = tmp_path / f"m{(results + errors) % 3}.gguf"
        path.unlink(missing_ok=True)
        path.write_bytes(whole)
        time.sleep(0.012)
        pause = rng.random() * 0.02
        writer = threading.Thread(target=lambda: (time.sleep(pause), change(path, rng)))
        writer.start()
        try:
            assert wick.Model.load(path).generate(PROMPT, **OPTIONS) == right
            results += 1
        except wick.Error:
            errors += 1
        writer.join()
    assert results >= 25 and errors >= 8


def test_tensors_of_a_file(copy: pathlib.Path) -> None:
    file = wick.Gguf(copy)
    name = file.keys()[0]
    x = file[name]
    os.truncate(copy, 0)
    assert len(x.flatten().tolist()) == x.numel()  # zeros, and no signal
    for call in (lambda: file[name], file.tensors):
        with pytest.raises(wick.FileError):
            call()
    assert file.metadata["general.architecture"] == "llama"


FOREIGN = """
import ctypes, faulthandler, mmap, os, sys, tempfile, wick
BEFORE
model = wick.Model.load(sys.argv[1])
AFTER
os.truncate(sys.argv[1], 0)
try: model.generate([1, 2, 3], max_tokens=3)
except wick.FileError: print("told", flush=True)
with tempfile.TemporaryFile() as file:
    file.truncate(8192)
    mapped = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    mapped[5000]
"""


@pytest.mark.parametrize("where", ["BEFORE", "AFTER", "nowhere"])
def test_faulthandler_goes_on(where: str, copy: pathlib.Path) -> None:
    code = FOREIGN.replace(where, "faulthandler.enable()").replace("BEFORE", "").replace("AFTER", "")
    out = subprocess.run([sys.executable, "-c", code, str(copy)], capture_output=True, text=True, timeout=60,
                         check=False)
    assert out.stdout == "told\n" and out.returncode == -7, out
    assert out.stderr.count("Fatal Python error: Bus error") == (where != "nowhere"), out
    assert out.stderr.count("mapped[5000]") <= 1
