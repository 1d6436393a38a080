#!/usr/bin/env python3
"""Puts NVIDIA's kernel compiler into the cache, from PyPI, where the build looks for it.

Machines with a CUDA toolkit don't need it; without either, kernels for NVIDIA are left out of the
binary. Prints the compiler's path. ~130 MB; nothing is done where it is there already.
"""
import os
import pathlib
import subprocess
import sys

# One release: images run on any driver of the same major version.
RELEASE = "13.0.*"
PACKAGES = ["nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime"]


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "wick" / "cuda"


def main():
    nvcc = cache() / "nvidia" / "cu13" / "bin" / "nvcc"
    if not nvcc.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target",
                   str(cache())] + [f"{name}=={RELEASE}" for name in PACKAGES]
        done = subprocess.run(command, check=False)
        if done.returncode != 0 or not nvcc.exists():
            print("install_cuda: pip couldn't install NVIDIA's compiler", file=sys.stderr)
            return 1
    for tool in nvcc.parent.iterdir():
        tool.chmod(0o755)
    print(nvcc)
    return 0


if __name__ == "__main__":
    sys.exit(main())
