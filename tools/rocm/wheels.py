"""Fetches Triton's wheels from PyPI and unpacks them into a folder of the cache. Nothing is installed."""

import os
import pathlib
import sys
import tempfile
import zipfile

import fetch_model
from rocm.packages import RocmError, Unreachable, cache_folder, call

# Version and SHA-256 of the wheel for Python 3.11, which Debian bookworm has: the newest, one
# between, and the oldest that runs.
TRITON = {
    "3.9.0": "1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e",
    "3.6.0": "e8e323d608e3a9bfcc2d9efcc90ceefb764a82b99dea12a86d643c72539ad5d3",
    "3.2.0": "8009a1fb093ee8546495e96731336a33fb8856a38e45bb4ab6affd6dbc3ba220",
}
PYTHON = (3, 11)


def download(version, digest, folder):
    """Returns the file of the wheel. pip compares its digest. It tells of a server that doesn't answer only if it retries."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"triton=={version} --hash=sha256:{digest}\n")
    done = call([sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
                 "--require-hashes", "--disable-pip-version-check", "--retries", "1", "-q", "-d", str(folder), "-r", str(wanted)])
    files = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(files) != 1:
        if "from versions: none" in done.stderr and ("Retrying" in done.stderr or "Could not fetch URL" in done.stderr):
            raise Unreachable(f"triton {version} can't be had: PyPI can't be reached")
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing came"]
        mismatch = [line for line in said if "DO NOT MATCH" in line]
        why = "its SHA-256 differs from the one in wheels.py" if mismatch else said[-1].strip()
        raise RocmError(f"triton {version} can't be had: {why}")
    return files[0]


def triton(version, cache=None):
    """Returns the folder of the unpacked wheel."""
    root = cache or cache_folder()
    tree = root / f"triton-{version}"
    mark = tree / "complete"
    if mark.is_file() and mark.read_text() == TRITON[version]:
        return tree
    if sys.version_info[:2] != PYTHON:
        raise RocmError(f"triton {version} is pinned for Python {'.'.join(map(str, PYTHON))}")
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".triton-", dir=root) as temporary:
        fetch_model.say(f"fetching triton {version} with pip (280 MB)")
        folder = pathlib.Path(temporary)
        wheel = download(version, TRITON[version], folder)
        fresh = folder / "tree"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(fresh)
        (fresh / "complete").write_text(TRITON[version])
        if tree.exists():
            os.replace(tree, folder / "old")
        os.replace(fresh, tree)
    return tree
