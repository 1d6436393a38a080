#!/usr/bin/env python3
"""Compiles ten Triton kernels for an architecture, runs them on the emulator and checks the results.

  PYTHONPATH=FOLDER triton_kernels.py --library build/emu/lib/libwick_emu.so [--arch gfx1100 ...]

FOLDER holds an unpacked wheel of Triton, as `pip download triton` fetches it: Triton's own compiler
needs neither a GPU nor ROCm, and its LLVM is newer than the emulator's. Needs NumPy. Exits with 1 if
a kernel fails.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ARCHITECTURES = ["gfx1100", "gfx90a", "gfx942", "gfx1200"]
SIZES = {"add": 512, "add_half": 512, "softmax": 512, "layernorm": 512, "argmax": 512, "cumsum": 512,
         "histogram": 512, "transpose": 32, "sort": 128}


def kernels():
    """Returns the kernels with their arguments' types, or their values if they are constants."""
    import triton
    import triton.language as tl
    globals().update(triton=triton, tl=tl)

    @triton.jit
    def add(x, y, o, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

    @triton.jit
    def add_half(x, y, o, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        a = tl.load(x + i, mask=i < n)
        tl.store(o + i, a * tl.load(y + i, mask=i < n) + a, mask=i < n)

    @triton.jit
    def softmax(x, o, n, B: tl.constexpr):
        r = tl.program_id(0)
        i = tl.arange(0, B)
        v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
        v = tl.exp(v - tl.max(v, 0))
        tl.store(o + r * n + i, v / tl.sum(v, 0), mask=i < n)

    @triton.jit
    def layernorm(x, g, b, o, n, B: tl.constexpr):
        r = tl.program_id(0)
        i = tl.arange(0, B)
        v = tl.load(x + r * n + i, mask=i < n, other=0.0).to(tl.float32)
        d = tl.where(i < n, v - tl.sum(v, 0) / n, 0.0)
        s = 1 / tl.sqrt(tl.sum(d * d, 0) / n + 1e-5)
        y = d * s * tl.load(g + i, mask=i < n) + tl.load(b + i, mask=i < n)
        tl.store(o + r * n + i, y.to(tl.float16), mask=i < n)

    @triton.jit
    def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        i = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
        j = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
        total = tl.zeros((BM, BN), tl.float32)
        for first in range(0, K, BK):
            k = first + tl.arange(0, BK)
            x = tl.load(a + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
            y = tl.load(b + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
            total += tl.dot(x, y)
        tl.store(c + i * N + j, total, mask=(i < M) & (j < N))

    @triton.jit
    def argmax(x, o, n, B: tl.constexpr):
        r = tl.program_id(0)
        i = tl.arange(0, B)
        tl.store(o + r, tl.argmax(tl.load(x + r * n + i, mask=i < n, other=-float("inf")), 0))

    @triton.jit
    def cumsum(x, o, n, B: tl.constexpr):
        r = tl.program_id(0)
        i = tl.arange(0, B)
        tl.store(o + r * n + i, tl.cumsum(tl.load(x + r * n + i, mask=i < n, other=0), 0), mask=i < n)

    @triton.jit
    def histogram(x, o, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.atomic_add(o + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)

    @triton.jit
    def transpose(x, o, M, N, B: tl.constexpr):
        i = (tl.program_id(0) * B + tl.arange(0, B))
        j = (tl.program_id(1) * B + tl.arange(0, B))
        v = tl.load(x + i[:, None] * N + j[None, :], mask=(i[:, None] < M) & (j[None, :] < N))
        tl.store(o + j[:, None] * M + i[None, :], tl.trans(v), mask=(j[:, None] < N) & (i[None, :] < M))

    @triton.jit
    def sort(x, o, n, B: tl.constexpr):
        r = tl.program_id(0)
        i = tl.arange(0, B)
        tl.store(o + r * n + i, tl.sort(tl.load(x + r * n + i, mask=i < n, other=32767)), mask=i < n)

    f32, f16, i32, i16, n = "*fp32", "*fp16", "*i32", "*i16", "i32"
    signatures = {add: [f32, f32, f32, n], add_half: [f16, f16, f16, n], softmax: [f32, f32, n],
                  layernorm: [f16, f32, f32, f16, n], matmul: [f16, f16, f32, n, n, n, 32, 32, 32],
                  argmax: [f32, i32, n], cumsum: [i32, i32, n], histogram: [i32, i32, n],
                  transpose: [f16, f16, n, n], sort: [i16, i16, n]}
    for kernel, types in signatures.items():
        name = kernel.fn.__name__
        yield name, kernel, types + ([SIZES[name]] if name in SIZES else [])


def compile_all(folder, arch):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    failed = 0
    for name, kernel, types in kernels():
        constants = {a: t for a, t in zip(kernel.arg_names, types) if not isinstance(t, str)}
        signature = {a: "constexpr" if a in constants else t
                     for a, t in zip(kernel.arg_names, types)}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        try:
            built = triton.compile(source, target=GPUTarget("hip", arch,
                                                            64 if arch.startswith("gfx9") else 32))
        except Exception as error:  # a compiler that fails is reported with the kernel
            print(f"{arch} {name}: not compiled: {error}")
            failed += 1
            continue
        (folder / f"{name}.hsaco").write_bytes(built.asm["hsaco"])
        data = built.metadata
        (folder / f"{name}.json").write_text(json.dumps(
            {"name": data.name, "lds": data.shared, "block": data.num_warps * data.warp_size}))
    return failed


class Device:
    """The HIP functions that launching needs."""

    def __init__(self, library):
        self.hip = ctypes.CDLL(str(library))

    def check(self, code, what):
        if code != 0:
            raise RuntimeError(f"{what} gives {code}")

    def upload(self, array):
        pointer = ctypes.c_void_p()
        size = ctypes.c_size_t(array.nbytes)
        self.check(self.hip.hipMalloc(ctypes.byref(pointer), size), "hipMalloc")
        self.check(self.hip.hipMemcpy(pointer, array.ctypes.data_as(ctypes.c_void_p), size, 1),
                   "hipMemcpy")
        return pointer

    def download(self, pointer, array):
        self.check(self.hip.hipMemcpy(array.ctypes.data_as(ctypes.c_void_p), pointer,
                                      ctypes.c_size_t(array.nbytes), 2), "hipMemcpy")

    def launch(self, folder, name, grid, arguments):
        data = json.loads((folder / f"{name}.json").read_text())
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        image = (folder / f"{name}.hsaco").read_bytes()
        self.check(self.hip.hipModuleLoadData(ctypes.byref(module), image), "hipModuleLoadData")
        self.check(self.hip.hipModuleGetFunction(ctypes.byref(function), module,
                                                 data["name"].encode()), "hipModuleGetFunction")
        pointers = [self.upload(a) if isinstance(a, np.ndarray) else ctypes.c_int32(a)
                    for a in arguments]
        # Triton appends pointers to scratch and profile memory, which these kernels don't use.
        values = pointers + [ctypes.c_void_p(0), ctypes.c_void_p(0)]
        array = (ctypes.c_void_p * len(values))(
            *[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
        self.check(self.hip.hipModuleLaunchKernel(function, *grid, 1, data["block"], 1, 1,
                                                  data["lds"], None, array, None), "the launch")
        self.check(self.hip.hipDeviceSynchronize(), "hipDeviceSynchronize")
        for pointer, argument in zip(pointers, arguments):
            if isinstance(argument, np.ndarray):
                self.download(pointer, argument)


def cases():
    """Yields (name, grid, arguments, index of the output, expected output, relative error)."""
    random = np.random.default_rng(1)

    def real(*shape, kind=np.float32):
        return random.standard_normal(shape).astype(kind)

    def whole(limit, *shape, kind=np.int32):
        return random.integers(0, limit, shape).astype(kind)

    x, y = real(1000), real(1000)
    yield "add", (2, 1), [x, y, np.zeros_like(x), 1000], 2, x + y, 0
    x, y = real(1000, kind=np.float16), real(1000, kind=np.float16)
    exact = x.astype(np.float64) * y + x
    yield "add_half", (2, 1), [x, y, np.zeros_like(x), 1000], 2, exact, 2e-3
    x = real(7, 500)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    yield "softmax", (7, 1), [x, np.zeros_like(x), 500], 1, e / e.sum(1, keepdims=True), 1e-5
    x, g, b = real(7, 500, kind=np.float16), real(500), real(500)
    wide = x.astype(np.float64)
    norm = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * g + b
    yield "layernorm", (7, 1), [x, g, b, np.zeros_like(x), 500], 3, norm, 3e-3
    a, b = real(70, 90, kind=np.float16), real(90, 50, kind=np.float16)
    product = a.astype(np.float64) @ b.astype(np.float64)
    yield "matmul", (3, 2), [a, b, np.zeros((70, 50), np.float32), 70, 50, 90], 2, product, 1e-4
    x = real(7, 500)
    yield "argmax", (7, 1), [x, np.zeros(7, np.int32), 500], 1, x.argmax(1), 0
    x = whole(1000, 7, 500)
    yield "cumsum", (7, 1), [x, np.zeros_like(x), 500], 1, x.cumsum(1), 0
    x = whole(32, 1000)
    yield "histogram", (2, 1), [x, np.zeros(32, np.int32), 1000], 1, np.bincount(x, minlength=32), 0
    x = real(70, 50, kind=np.float16)
    yield "transpose", (3, 2), [x, np.zeros((50, 70), np.float16), 70, 50], 1, x.T, 0
    x = whole(30000, 7, 100, kind=np.int16)
    yield "sort", (7, 1), [x, np.zeros_like(x), 100], 1, np.sort(x, 1), 0


def run_all(folder, arch, library):
    device, failed = Device(library), 0
    for name, grid, arguments, output, want, error in cases():
        try:
            device.launch(folder, name, grid, arguments)
            got = arguments[output].astype(np.float64)
            worst = float(np.max(np.abs(got - want) / (1 + np.abs(want))))
            good = worst <= error
            said = "right" if good else f"WRONG, off by {worst:g}"
        except (RuntimeError, OSError) as problem:
            good, said = False, f"FAILED: {problem}"
        failed += not good
        print(f"{arch} {name}: {said}", flush=True)
    return failed


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--library", required=True, type=pathlib.Path)
    options.add_argument("--arch", action="append")
    options.add_argument("--run", type=pathlib.Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.run:  # the emulator's devices are chosen by the environment, once per process
        return 1 if run_all(given.run, given.arch[0], given.library.resolve()) else 0
    failed = 0
    for arch in given.arch or ARCHITECTURES:
        with tempfile.TemporaryDirectory() as name:
            failed += compile_all(pathlib.Path(name), arch)
            command = [sys.executable, __file__, "--library", given.library, "--arch", arch,
                       "--run", name]
            failed += subprocess.run(command, check=False,
                                     env={**os.environ, "WICK_EMU_DEVICES": arch}).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
