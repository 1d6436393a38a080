#!/usr/bin/env python3
"""Puts NVIDIA's kernel compilers into the cache, from PyPI, where the build and wick look for them.

Machines with a CUDA toolkit don't need them. Without either, kernels for NVIDIA are left out of the
binary, and can't be compiled at run time. Prints nvcc's path. ~220 MB; nothing is done where they
are there already.
"""
import os
import pathlib
import subprocess
import sys

# One release: images run on any driver of the same major version.
RELEASE = "13.0.*"
PACKAGES = ["nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime",
            "nvidia-cuda-nvrtc"]


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "wick" / "cuda"


def main():
    folder = cache() / "nvidia" / "cu13"
    nvcc = folder / "bin" / "nvcc"
    wanted = [nvcc, folder / "lib" / "libnvrtc.so.13"]
    if not all(file.exists() for file in wanted):
        # They share a folder, which pip replaces as a whole or leaves as it is: so all at once.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade",
                   "--target", str(cache())] + [f"{name}=={RELEASE}" for name in PACKAGES]
        done = subprocess.run(command, check=False)
        if done.returncode != 0 or not all(file.exists() for file in wanted):
            print("install_cuda: pip couldn't install NVIDIA's compilers", file=sys.stderr)
            return 1
    for tool in nvcc.parent.iterdir():
        tool.chmod(0o755)
    print(nvcc)
    return 0


if __name__ == "__main__":
    sys.exit(main())
