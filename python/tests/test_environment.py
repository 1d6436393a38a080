"""Variables of the environment, each in a process of its own: empty ones, and those that name libraries that aren't there."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ARCHITECTURE = pathlib.Path(__file__).parents[2] / "docs/design/architecture.md"
VARIABLES = sorted(set(re.findall(r"`(WICK_[A-Z_]+)(?:=\w+)?`", ARCHITECTURE.read_text())) - {"WICK_"})
DRIVERS = {"WICK_CUDA_LIBRARY": "cuda:0", "WICK_HIP_LIBRARY": "hip:0"}
SHOWN = "import wick; print([str(d) for d in wick.devices()], wick.best_device(), wick.num_threads(), wick.ones(2) + 1, wick.ones(2, device='auto').device)"


def python(code: str, *options: str, **env: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if not name.startswith("WICK_")}
    return subprocess.run([sys.executable, *options, "-c", code], env={**own, **env}, capture_output=True, text=True, timeout=120)


def test_the_variables_are_found() -> None:
    assert len(VARIABLES) > 15 and {"WICK_CPU_ISA", "WICK_TRACE", *DRIVERS} <= set(VARIABLES)


def test_an_empty_value_is_none() -> None:
    plain = python(SHOWN, "-W", "error")
    assert plain.returncode == 0 and plain.stderr == ""
    for env in [{name: ""} for name in VARIABLES] + [dict.fromkeys(VARIABLES, "")]:
        empty = python(SHOWN, "-W", "error", **env)
        assert (empty.returncode, empty.stdout, empty.stderr) == (0, plain.stdout, ""), env


@pytest.mark.parametrize("variable", DRIVERS)
def test_a_driver_that_is_not_there(variable: str, tmp_path: pathlib.Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("no library")
    for value in ["/none/lib.so", str(text), str(tmp_path), "libc.so.6"]:
        says = f"RuntimeWarning: {variable}: no driver: "
        for call in ["wick.devices()", "wick.best_device()", "wick.ones(2, device='auto')", "wick.ones(2).to('auto')"]:
            made = python(f"import wick; {call}", **{variable: value})
            assert made.returncode == 0 and says in made.stderr and pathlib.Path(value).name in made.stderr, (call, made.stderr)
            refused = python(f"import wick; {call}", "-W", "error", **{variable: value})
            assert refused.returncode == 1 and says in refused.stderr
        named = python(f"import wick; wick.ones(2, device={DRIVERS[variable]!r})", **{variable: value})
        assert named.returncode == 1 and "wick.Error: device: no such device here: " in named.stderr
        assert pathlib.Path(value).name in named.stderr
        assert python("import wick; wick.ones(2) + 1", "-W", "error", **{variable: value}).stderr == ""  # it isn't looked for


def test_what_is_no_instruction_set() -> None:
    made = python("import wick; wick.ones(2) + 1", WICK_CPU_ISA="v9")
    assert made.returncode == 1 and "wick.Error: WICK_CPU_ISA: not available on this machine: 'v9'" in made.stderr
