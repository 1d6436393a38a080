"""Compiles kernels with Triton's own compiler and launches them with its own AMD driver: triton_kernels.py WHEEL LIBRARY

WHEEL is the folder of Triton's unpacked wheel, LIBRARY the HIP runtime. A line is printed for each kernel: "ok NAME", or
"bad NAME: why". Sums and products are of small whole numbers, whose results are exact; those of softmax and layernorm are
compared with Python's. Triton asks PyTorch for the current device and stream; a module of this file answers, since PyTorch
isn't needed for anything else.
"""

import ctypes
import math
import os
import struct
import sys
import types

if len(sys.argv) != 3:
    sys.exit("usage: triton_kernels.py WHEEL LIBRARY")
WHEEL, LIBRARY = sys.argv[1:]
sys.path.insert(0, WHEEL)
os.environ["TRITON_LIBHIP_PATH"] = LIBRARY


def stand_in_for_torch():
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(
        current_device=lambda: 0, set_device=lambda device: None, get_device_capability=lambda device=0: (0, 0),
        current_stream=lambda device=0: types.SimpleNamespace(cuda_stream=0), is_available=lambda: True)
    torch.version = types.SimpleNamespace(hip="6")
    torch.Tensor = type("Tensor", (), {})
    return torch


sys.modules["torch"] = stand_in_for_torch()

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.amd.driver import HIPDriver  # noqa: E402

HIP = ctypes.CDLL(LIBRARY)
TO_DEVICE, TO_HOST = 1, 2


def check(error, call):
    if error != 0:
        raise RuntimeError(f"{call} gave {error}")


class Buffer(sys.modules["torch"].Tensor):
    """Memory of the device, as Triton expects of a tensor. code: of the module struct."""

    NAMES = {"f": "float32", "e": "float16", "i": "int32", "h": "int16", "b": "int8"}

    def __init__(self, code, values):
        self.code, self.count = code, len(values)
        self.dtype = self.NAMES[code]
        data = struct.pack(f"{self.count}{code}", *values)
        pointer = ctypes.c_void_p()
        check(HIP.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(len(data))), "hipMalloc")
        self.pointer = pointer.value
        check(HIP.hipMemcpy(pointer, data, ctypes.c_size_t(len(data)), TO_DEVICE), "hipMemcpy")

    def data_ptr(self):
        return self.pointer

    def values(self):
        data = ctypes.create_string_buffer(self.count * struct.calcsize(self.code))
        check(HIP.hipMemcpy(data, ctypes.c_void_p(self.pointer), ctypes.c_size_t(len(data)), TO_HOST), "hipMemcpy")
        return struct.unpack(f"{self.count}{self.code}", data.raw)


def whole(count, most, step):
    """Whole numbers from -most to most."""
    return [(i * step) % (2 * most + 1) - most for i in range(count)]


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def sums_kernel(x, out, total, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0)
    tl.store(out + row * columns + at, tl.cumsum(values, 0), mask=at < columns)
    tl.atomic_add(total, tl.sum(values, 0))


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=at < columns)


@triton.jit
def matmul_kernel(a, b, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TYPE: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=TYPE)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        sums = tl.dot(left, tl.load(b + inner[:, None] * N + columns[None, :]), sums, out_dtype=TYPE)
    tl.store(out + rows[:, None] * N + columns[None, :], sums)


@triton.jit
def half_kernel(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(x + at, mask=inside)
    tl.store(out + at, value * tl.load(y + at, mask=inside) + value, mask=inside)


@triton.jit
def layernorm_kernel(x, gain, bias, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, values - tl.sum(values, 0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    result = centred * scale * tl.load(gain + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, result.to(tl.float16), mask=inside)


@triton.jit
def argmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + row, tl.argmax(tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")), 0))


@triton.jit
def histogram_kernel(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + at, mask=at < count, other=0), 1, mask=at < count)


@triton.jit
def transpose_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=(i[:, None] < rows) & (j[None, :] < columns))
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=(j[:, None] < columns) & (i[None, :] < rows))


@triton.jit
def sort_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=32767)
    tl.store(out + row * columns + at, tl.sort(values), mask=at < columns)


def same(found, wanted):
    wrong = [i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]]
    if wrong or len(found) != len(wanted):
        at = wrong[0] if wrong else -1
        return f"{len(wrong)} of {len(wanted)} elements differ; element {at} is {found[at]}, not {wanted[at]}"
    return None


def add():
    count = 1000
    x, y = whole(count, 100, 7), whole(count, 100, 11)
    out = Buffer("f", [0] * count)
    add_kernel[(triton.cdiv(count, 256),)](Buffer("f", x), Buffer("f", y), out, count, BLOCK=256)
    return same(out.values(), [p + q for p, q in zip(x, y)])


def sums():
    rows, columns = 5, 300
    x = whole(rows * columns, 100, 7)
    out, total = Buffer("i", [0] * len(x)), Buffer("i", [0])
    sums_kernel[(rows,)](Buffer("i", x), out, total, columns, BLOCK=512)
    wanted = [sum(x[i - i % columns:i + 1]) for i in range(len(x))]
    return same(out.values(), wanted) or same(total.values(), [sum(x)])


def near(found, wanted, error):
    """Compares with a relative error, or an absolute one below 1."""
    for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if not abs(one - other) <= error * max(1, abs(other)):
            return f"element {i} is {one}, not {other}"
    return None


def softmax():
    rows, columns = 5, 300
    x = [value / 16 for value in whole(rows * columns, 100, 7)]
    out = Buffer("f", [0] * len(x))
    softmax_kernel[(rows,)](Buffer("f", x), out, columns, BLOCK=512)
    for i, found in enumerate(out.values()):
        row = x[i - i % columns:i - i % columns + columns]
        wanted = math.exp(x[i]) / sum(map(math.exp, row))
        if not abs(found - wanted) <= 1e-5 * wanted:
            return f"element {i} is {found}, not {wanted}"
    return None


def half():
    count = 1000
    x, y = whole(count, 20, 7), whole(count, 20, 11)
    out = Buffer("e", [0] * count)
    half_kernel[(triton.cdiv(count, 512),)](Buffer("e", x), Buffer("e", y), out, count, BLOCK=512)
    return same(out.values(), [p * q + p for p, q in zip(x, y)])


def layernorm():
    rows, columns = 5, 300
    x = [value / 8 for value in whole(rows * columns, 50, 7)]
    gain, bias = [value / 8 for value in whole(columns, 16, 5)], [value / 4 for value in whole(columns, 9, 4)]
    out = Buffer("e", [0] * len(x))
    layernorm_kernel[(rows,)](Buffer("e", x), Buffer("f", gain), Buffer("f", bias), out, columns, BLOCK=512)
    wanted = []
    for first in range(0, len(x), columns):
        row = x[first:first + columns]
        mean = sum(row) / columns
        deviation = math.sqrt(sum((value - mean) ** 2 for value in row) / columns + 1e-5)
        wanted += [(value - mean) / deviation * g + b for value, g, b in zip(row, gain, bias)]
    return near(out.values(), wanted, 2e-3)


def matmul_of(code, out_code, type_):
    m, n, k = 64, 96, 128
    a, b = whole(m * k, 4, 7), whole(k * n, 4, 11)
    out = Buffer(out_code, [0] * (m * n))
    matmul_kernel[(m // 32, n // 32)](Buffer(code, a), Buffer(code, b), out, n, k, BM=32, BN=32, BK=32, TYPE=type_)
    return same(out.values(), [sum(a[i * k + l] * b[l * n + j] for l in range(k)) for i in range(m) for j in range(n)])


def matmul():
    for code, out_code, type_ in (("f", "f", tl.float32), ("e", "f", tl.float32), ("b", "i", tl.int32)):
        why = matmul_of(code, out_code, type_)
        if why:
            return f"of {Buffer.NAMES[code]}: {why}"
    return None


def argmax():
    rows, columns = 7, 500
    x = [value * 7919 % 5003 for value in range(rows * columns)]  # no value occurs twice
    out = Buffer("i", [0] * rows)
    argmax_kernel[(rows,)](Buffer("f", x), out, columns, BLOCK=512)
    lines = [x[first:first + columns] for first in range(0, len(x), columns)]
    return same(out.values(), [line.index(max(line)) for line in lines])


def histogram():
    count, bins = 1000, 32
    x = [value * value % bins for value in range(count)]
    out = Buffer("i", [0] * bins)
    histogram_kernel[(triton.cdiv(count, 512),)](Buffer("i", x), out, count, BLOCK=512)
    return same(out.values(), [x.count(value) for value in range(bins)])


def transpose():
    rows, columns = 70, 50
    x = whole(rows * columns, 1000, 7)
    out = Buffer("e", [0] * len(x))
    transpose_kernel[(triton.cdiv(rows, 32), triton.cdiv(columns, 32))](Buffer("e", x), out, rows, columns, BLOCK=32)
    return same(out.values(), [x[i * columns + j] for j in range(columns) for i in range(rows)])


def sort():
    rows, columns = 7, 100
    x = whole(rows * columns, 30000, 7919)
    out = Buffer("h", [0] * len(x))
    sort_kernel[(rows,)](Buffer("h", x), out, columns, BLOCK=128)
    return same(out.values(), sum((sorted(x[first:first + columns]) for first in range(0, len(x), columns)), []))


KERNELS = {"add": add, "half": half, "sums": sums, "softmax": softmax, "layernorm": layernorm, "matmul": matmul,
           "argmax": argmax, "histogram": histogram, "transpose": transpose, "sort": sort}


def main():
    triton.runtime.driver.set_active(HIPDriver())
    for name, run in KERNELS.items():
        try:
            why = run()
        except Exception as error:  # whatever Triton raises belongs to this kernel alone
            why = f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
        print(f"bad {name}: {why}" if why else f"ok {name}", flush=True)


main()
