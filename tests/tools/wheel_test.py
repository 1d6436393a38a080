#!/usr/bin/env python3
"""wheel_test.py SOURCE VENV: tests what pip builds the Python package with. It asks scikit-build-core in
VENV, which tests/python/run.sh creates, for the packages that a build needs with different CMake
versions in PATH, and for the wheel's tag on several Python versions. Exits with 77 (skip) without VENV."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Simulates another Python version by setting sys.version_info, which determines the settings and
# the tag.
ASK = """
import json, sys
import scikit_build_core.builder.wheel_tag
from scikit_build_core.build import get_requires_for_build_wheel
from scikit_build_core.builder.wheel_tag import WheelTag
from scikit_build_core.settings.skbuild_read_settings import SettingsReader
class Version(tuple):
    major, minor = map(int, sys.argv[1].split("."))
real, sys.version_info = sys.version_info, Version((Version.major, Version.minor, 0, "final", 0))
settings = SettingsReader.from_file("pyproject.toml", state="wheel").settings
tag = str(WheelTag.compute_best(["x86_64"], settings.wheel.py_api))
requires = get_requires_for_build_wheel({})
sys.version_info = real
print(json.dumps({"requires": requires, "tag": tag}))
"""
CMAKE = """#!/bin/sh
echo '{{"version": {{"string": "{0}", "major": 3, "minor": {1}, "patch": 0}}}}'
"""


def check(source, python, folder):
    for minor in [25, 26, 31]:
        cmake = folder / "cmake"
        cmake.write_text(CMAKE.format(f"3.{minor}.0", minor))
        cmake.chmod(0o755)
        for version, tag in [("3.11", "cp311-cp311-"), ("3.12", "cp312-abi3-"),
                             ("3.13", "cp312-abi3-"), ("3.14", "cp312-abi3-")]:
            done = subprocess.run([python, "-c", ASK, version], cwd=source, check=True,
                                  capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            said = json.loads(done.stdout)
            assert said["tag"].startswith(tag), (version, said)
            # The stable ABI, from 3.12 on, requires a CMake that supports it.
            asks = any(r.replace(" ", "").startswith("cmake>=3.26") for r in said["requires"])
            assert asks == (version != "3.11" and minor < 26), (version, minor, said)


def main():
    source, venv = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    python = venv / "bin/python"
    if not python.exists():
        print(f"SKIP: no {python}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check(source, str(python), pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
