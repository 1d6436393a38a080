#!/usr/bin/env python3
"""Runs llama.cpp's ROCm build on a model: llama_rocm.py MODEL IDS TOKENS, with IDS such as 1,15,7.

Computes the prompt IDS and TOKENS - 1 greedy tokens after it, and prints their ids as JSON. The build is that of PyPI's wheel
`inferna-rocm`, made for AMD's ROCm 6; nothing of it enters this repository. Its HIP runtime is whatever libamdhip64.so.6 the
loader finds; with --library FILE that is FILE. hipBLAS, which it doesn't call for quantised weights, is hipblas.c, which
computes on the host. --cpu computes on the CPU. Exits with 77 if PyPI can't be reached.
"""

import argparse
import contextlib
import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))

from rocm import options, wheels  # noqa: E402
from rocm.errors import RocmError  # noqa: E402
from rocm.processes import call, compile_c, guarded  # noqa: E402

LIBRARIES = "inferna_rocm.libs"  # a folder of the wheel
ARCHITECTURES = ("gfx1100", "gfx90a", "gfx942")  # what the wheel has code for


def add_library_option(parser):
    """For benchmarks, which need the emulator."""
    parser.add_argument("--library", type=options.existing, help="the emulator, which make emu builds (default: %(default)s)",
                        default=str(HERE.parent.parent / "build/emu/lib/libamdhip64.so.6"))


@contextlib.contextmanager
def environment(library=None, cache=None, more=None):
    """The wheel's folder, and an environment whose loader finds its libraries, hipBLAS, what ggml calls of rocBLAS, and the HIP
    runtime."""
    wheel = wheels.unpacked(wheels.INFERNA, cache)
    with tempfile.TemporaryDirectory(prefix="llama-rocm-") as folder:
        (Path(folder) / "rocblas.c").write_text("void rocblas_initialize(void) {}\n")
        for name, source in (("libhipblas.so.2", HERE / "hipblas.c"), ("librocblas.so.4", Path(folder) / "rocblas.c")):
            compile_c("cc", source, Path(folder) / name, "-O2", "-shared", "-fPIC", f"-Wl,-soname,{name}")
        folders = [wheel / LIBRARIES, folder, *([library.parent] if library else [])]
        yield wheel, dict(os.environ, LD_LIBRARY_PATH=":".join(map(str, folders)), TMPDIR=folder, **(more or {}))


def generate(model, ids, tokens, library=None, cpu=False, more=None, cache=None):
    """Returns the greedy ids, computed by a process of its own."""
    with environment(library, cache, more) as (wheel, env):
        command = [sys.executable, __file__, model, ",".join(map(str, ids)), tokens, "--inside", wheel / LIBRARIES]
        result = call([str(word) for word in (*command, *(["--cpu"] if cpu else []))], env)
    if result.returncode != 0:
        raise RocmError(f"llama.cpp's ROCm build ended with {result.returncode}: {result.stderr.strip()[-400:]}")
    # The emulator reports faults of kernels on stderr; llama.cpp doesn't always notice them.
    faults = [line for line in result.stderr.splitlines() if line.startswith("wick-emu:")]
    if faults:
        raise RocmError(f"llama.cpp's ROCm build: {faults[0]}")
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
            raise RocmError(f"llama.cpp can't load its backend {name}")
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


def generate_inside(libraries, model, ids, tokens, cpu):
    llama = load(libraries, cpu)
    llama.llama_backend_init()
    loaded = llama.llama_model_load_from_file(str(model).encode(), llama.llama_model_default_params())
    context = loaded and llama.llama_init_from_model(loaded, llama.llama_context_default_params())
    if not context:
        raise RocmError(f"llama.cpp can't load {model}")
    count = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(loaded))
    made = []
    for _ in range(tokens):
        array = (ctypes.c_int32 * len(ids))(*ids)
        if llama.llama_decode(context, llama.llama_batch_get_one(array, len(ids))) != 0:
            raise RocmError("llama_decode failed")
        logits = llama.llama_get_logits_ith(context, -1)[:count]
        ids = [max(range(count), key=logits.__getitem__)]
        made += ids
    llama.llama_free(context)
    llama.llama_model_free(loaded)
    return made


def ids(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = options.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=options.existing)
    parser.add_argument("ids", type=ids)
    parser.add_argument("tokens", type=int)
    parser.add_argument("--library", type=options.existing, help="the HIP runtime, such as build/emu/lib/libamdhip64.so.6")
    parser.add_argument("--cache", type=Path, help="the folder of the wheel")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # in the process of its own: the folder of libraries
    args = parser.parse_args()
    made = (generate_inside(args.inside, args.model, args.ids, args.tokens, args.cpu) if args.inside else
            generate(args.model, args.ids, args.tokens, args.library, args.cpu, cache=args.cache))
    print(json.dumps(made), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(guarded("llama_rocm", main))
