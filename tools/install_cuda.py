#!/usr/bin/env python3
"""Installs NVIDIA's kernel compilers from PyPI into the cache, where the build and wick look for them.

Machines with a CUDA toolkit don't need them. Without either, the binary contains no kernels for NVIDIA,
and they can't be compiled at run time. Downloads about 220 MB, or nothing if the compilers are installed.
Prints nvcc's path.

--for-build BUILD: used by `make`. Does nothing unless NVIDIA's driver is installed and nvcc isn't;
otherwise it reports what it fetches. WICK_CUDA_FETCH=off fetches nothing. The build always continues; a
line reports if it continues without kernels for NVIDIA. BUILD is configured again if nvcc is new to it.
"""
import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

# Only one release: images run with any driver of the same major version.
RELEASE = "13.0.*"
PACKAGES = ["nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime",
            "nvidia-cuda-nvrtc"]
# Where a CUDA toolkit installs nvcc, besides PATH.
TOOLKIT = pathlib.Path("/usr/local/cuda/bin/nvcc")
DRIVERS = ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"]


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "wick" / "cuda"


def cached_nvcc():
    return cache() / "nvidia" / "cu13" / "bin" / "nvcc"


def install():
    """Installs the compilers if necessary. Returns whether they are in the cache now."""
    nvcc = cached_nvcc()
    wanted = [nvcc, nvcc.parent.parent / "lib" / "libnvrtc.so.13"]
    if not all(file.exists() for file in wanted):
        # The packages share a folder, which pip only replaces as a whole, so they are installed
        # together.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade",
                   "--target", str(cache())] + [f"{name}=={RELEASE}" for name in PACKAGES]
        done = subprocess.run(command, check=False)
        if done.returncode != 0 or not all(file.exists() for file in wanted):
            print("install_cuda: pip couldn't install NVIDIA's compilers", file=sys.stderr)
            return False
    for tool in nvcc.parent.iterdir():
        tool.chmod(0o755)
    return True


def driver():
    for name in DRIVERS:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def cards():
    """The compute capabilities of NVIDIA's cards here, in rising order: "80 90"."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # a build is for all cards, also hidden ones
    cuda = driver()
    try:
        count = ctypes.c_int()
        if cuda is None or cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return ""
        found = set()
        for card in range(count.value):
            number = []
            for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
                value = ctypes.c_int()
                if cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, card) != 0:
                    break
                number.append(value.value)
            if len(number) == 2:
                found.add(10 * number[0] + number[1])
    except AttributeError:  # the library lacks these functions, so it isn't a driver
        return ""
    return " ".join(map(str, sorted(found)))


def has_nvcc():
    return bool(shutil.which("nvcc")) or TOOLKIT.exists() or cached_nvcc().exists()


def for_build(build):
    if not has_nvcc() and driver() is not None:
        later = "python3 tools/install_cuda.py, then make, adds them"
        if os.environ.get("WICK_CUDA_FETCH") == "off":
            print(f"wick: no nvcc, WICK_CUDA_FETCH=off: building without kernels for NVIDIA ({later})", file=sys.stderr)
            return
        print(f"wick: NVIDIA's driver is here, nvcc is not: fetching NVIDIA's kernel compilers from PyPI to {cache()} "
              "(220 MB, once; WICK_CUDA_FETCH=off builds without)", file=sys.stderr, flush=True)
        if not install():
            print(f"wick: building without kernels for NVIDIA ({later})", file=sys.stderr)
            return
    configured = build / "CMakeCache.txt"
    if has_nvcc() and configured.exists():
        settings = configured.read_text(encoding="utf-8")
        known = re.search(r"^WICK_NVIDIA_CARDS:INTERNAL=(.*)$", settings, re.MULTILINE)
        if "WICK_NVCC-NOTFOUND" in settings or (known and known[1] != cards()):
            subprocess.run(["cmake", str(build)], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for-build", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--cards", action="store_true")
    options = parser.parse_args()
    if options.cards:
        print(cards())
        return 0
    if options.for_build is not None:
        for_build(options.for_build)
        return 0
    if not install():
        return 1
    print(cached_nvcc())
    return 0


if __name__ == "__main__":
    sys.exit(main())
