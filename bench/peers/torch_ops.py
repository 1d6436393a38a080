#!/usr/bin/env python3
"""PyTorch's side of op_bench: for each line "THREADS KEY" on stdin, prints one JSON line with the seconds.

Rows have the keys of bench/op_bench_*.cpp. A row's function makes the operands and returns a call that
runs the op once and writes to the same memory (out=, or in place). It is timed as in op_bench. This
program runs in the environment that op_bench.py makes, and op_bench.py doesn't import it.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F

F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
DTYPES = {"f32": F32, "bf16": BF16, "f16": F16, "f64": F64, "i64": torch.int64, "u8": torch.uint8,
          "i32": torch.int32, "i16": torch.int16}
ROWS = {}


def row(name, dtypes, shape):
    """Registers make(dtype) for the keys `name.dtype[shape]`."""
    def add(make):
        for dtype in dtypes.split():
            ROWS[f"{name}.{dtype}[{shape}]"] = lambda dtype=dtype: make(DTYPES[dtype])
        return make
    return add


def normal(*shape, dtype=F32):
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=F32).to(dtype)
    return (torch.randn(shape) * 20).to(dtype)


def ids(*shape, below, dtype=torch.int64):
    return torch.randint(0, below, shape, dtype=dtype)


# ---- matrix products ----

def product(dtypes, m, k, n, turned="nn"):
    name = "matmul" if turned == "nn" else "matmul_" + turned

    @row(name, dtypes, f"{m}x{k}x{n}")
    def make(dtype):
        a = normal(k, m, dtype=dtype).t() if turned[0] == "t" else normal(m, k, dtype=dtype)
        b = normal(n, k, dtype=dtype).t() if turned[1] == "t" else normal(k, n, dtype=dtype)
        y = torch.empty(m, n, dtype=dtype)
        return lambda: torch.mm(a, b, out=y)


def batch_product(dtypes, count, m, k, n):
    @row("bmm", dtypes, f"{count}x{m}x{k}x{n}")
    def make(dtype):
        a, b = normal(count, m, k, dtype=dtype), normal(count, k, n, dtype=dtype)
        y = torch.empty(count, m, n, dtype=dtype)
        return lambda: torch.bmm(a, b, out=y)


def weights(name, dtypes, m, k, n):
    @row(name, dtypes, f"{m}x{k}x{n}")
    def make(dtype):
        x, w = normal(m, k, dtype=dtype), normal(n, k, dtype=dtype)
        return lambda: F.linear(x, w)


product("f32 bf16 f16 f64", 1024, 1024, 1024)
product("f32 bf16", 2048, 2048, 2048)
product("f32 bf16", 1023, 1025, 1021)
for both in ("nt", "tn", "tt"):
    product("f32 bf16", 1024, 1024, 1024, both)
product("f32 bf16", 128, 384, 1536)
product("f32 bf16", 1, 4096, 4096)
product("f32 bf16", 1, 4096, 4096, "nt")
product("f32", 777, 333, 555)
product("f32", 64, 64, 64)
product("f32", 16, 2048, 2048)
product("i32", 512, 512, 512)
batch_product("f32 bf16", 8, 512, 64, 512)
batch_product("f32 bf16", 8, 512, 512, 64)
batch_product("f32", 256, 32, 32, 32)
weights("linear_f32", "f32", 128, 384, 1536)
weights("linear_bf16", "bf16", 1024, 1024, 1024)


@row("einsum_bij_bkj", "f32", "8x512x64x512")
def einsum(dtype):
    a, b = normal(8, 512, 64, dtype=dtype), normal(8, 512, 64, dtype=dtype)
    return lambda: torch.einsum("bij,bkj->bik", a, b)


@row("linear_q8_0", "f32", "1024x1024x1024")
def linear_int8(_):
    """The closest equivalent: activations converted to int8, an int8 GEMM, and scaled sums."""
    x, w = normal(1024, 1024), torch.randint(-127, 128, (1024, 1024), dtype=torch.int8).t()
    scales = torch.rand(1024)

    def call():
        scale = x.abs().amax(1, keepdim=True) / 127
        sums = torch._int_mm(torch.round(x / scale).to(torch.int8), w)
        return sums.to(F32).mul_(scale).mul_(scales)
    return call


# ---- softmax, norms, attention ----

def softmax(name, function, dtypes, shape_name, shape, dim):
    @row(name, dtypes, shape_name)
    def make(dtype):
        x = normal(*shape, dtype=dtype)
        y = torch.empty_like(x)
        return lambda: function(x, dim, False, out=y)


TALL = ("f32 bf16", "1024x4096", (1024, 4096))
softmax("softmax", torch.ops.aten._softmax.out, *TALL, 1)
softmax("softmax_dim0", torch.ops.aten._softmax.out, *TALL, 0)
softmax("log_softmax", torch.ops.aten._log_softmax.out, *TALL, 1)
softmax("softmax", torch.ops.aten._softmax.out, "f32", "8192x128", (8192, 128), 1)


def norm(name, dtypes, shape_name, shape, channels, function):
    @row(name, dtypes, shape_name)
    def make(dtype):
        x = normal(*shape, dtype=dtype)
        parameters = [torch.rand(channels).to(dtype) + 0.5 for _ in range(4)]
        return lambda: function(x, *parameters)


norm("layer_norm", *TALL, 4096, lambda x, w, b, *_: F.layer_norm(x, (4096,), w, b))
norm("rms_norm", *TALL, 4096, lambda x, w, *_: F.rms_norm(x, (4096,), w, 1e-5))
norm("group_norm", "f32", "8x64x56x56,8", (8, 64, 56, 56), 64,
     lambda x, w, b, *_: F.group_norm(x, 8, w, b))
norm("batch_norm", "f32", "8x64x56x56", (8, 64, 56, 56), 64,
     lambda x, w, b, mean, var: F.batch_norm(x, mean, var, w, b))


def softmax_grad(name, function):
    @row(name, *TALL[:2])
    def make(dtype):
        y, g = torch.rand(TALL[2]).to(dtype), normal(*TALL[2], dtype=dtype)
        return lambda: function(g, y, 1, dtype)


softmax_grad("softmax_grad", torch.ops.aten._softmax_backward_data)
softmax_grad("log_softmax_grad", torch.ops.aten._log_softmax_backward_data)


def norm_grad(name, wanted):
    @row(name, *TALL[:2])
    def make(dtype):
        x, g, w = normal(*TALL[2], dtype=dtype), normal(*TALL[2], dtype=dtype), torch.rand(4096).to(dtype)
        _, mean, scale = torch.ops.aten.native_layer_norm(x, (4096,), w, w, 1e-5)
        return lambda: torch.ops.aten.native_layer_norm_backward(g, x, (4096,), mean, scale, w, w, wanted)


norm_grad("norm_grad", (True, False, False))
norm_grad("norm_sums", (False, True, True))


def rope(name, turned):
    @row(name, "f32 bf16", "1x32x512x128")
    def make(dtype):
        x = normal(1, 32, 512, 128, dtype=dtype)
        cos, sin = normal(512, 128, dtype=dtype), normal(512, 128, dtype=dtype)
        return lambda: x * cos + turned(x) * sin


rope("rope", lambda x: torch.cat((-x[..., 64:], x[..., :64]), -1))
rope("rope_interleaved",
     lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2))


def attention(name, dtypes, heads, key_heads, queries, keys, size, causal):
    @row(name, dtypes, f"h{heads}g{key_heads}m{queries}n{keys}d{size}")
    def make(dtype):
        q = normal(1, heads, queries, size, dtype=dtype)
        k, v = (normal(1, key_heads, keys, size, dtype=dtype) for _ in range(2))
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=0.125,
                                                      enable_gqa=heads != key_heads)


attention("attention", "f32 bf16 f16", 8, 8, 1024, 1024, 64, False)
attention("attention_causal", "f32 bf16", 8, 8, 1024, 1024, 64, True)
attention("attention_grouped", "f32 bf16", 8, 2, 1024, 1024, 64, True)
attention("attention_decode", "f32 bf16", 8, 8, 1, 4096, 64, False)
attention("attention_decode_grouped", "f32 bf16", 32, 8, 1, 4096, 128, False)


# ---- reductions ----

def reduction(name, dtypes, function, dims=(1, 0)):
    for dim in dims:
        @row(f"{name}_{'all' if dim is None else f'dim{dim}'}", dtypes, "4096x4096")
        def make(dtype, dim=dim):
            x = normal(4096, 4096, dtype=dtype)
            return lambda: function(x) if dim is None else function(x, dim)


reduction("sum", "f32 bf16", torch.sum, (None, 1, 0))
reduction("sum", "i64 f64", torch.sum, (1,))
reduction("max", "f32 bf16", lambda x, *dim: torch.amax(x, *dim), (None, 1, 0))
reduction("argmax", "f32 bf16", torch.argmax)
reduction("mean", "f32", torch.mean, (1,))
reduction("prod", "f32", torch.prod, (1,))
reduction("min", "f32", lambda x, *dim: torch.amin(x, *dim), (1,))
reduction("argmin", "f32", torch.argmin, (1,))
reduction("var", "f32", torch.var)
reduction("logsumexp", "f32", torch.logsumexp)
reduction("any", "f32", torch.any)
reduction("all", "f32", torch.all)


# ---- elementwise ----

def unary(name, function, dtypes="f32 bf16", out=None):
    @row(name, dtypes, "16M")
    def make(dtype):
        x = normal(1 << 24, dtype=dtype)
        y = torch.empty_like(x, dtype=out or dtype)
        return lambda: function(x, y)


for name in ("exp log tanh sigmoid erf sin cos log1p expm1 floor ceil round sign sqrt rsqrt abs neg "
             "reciprocal square").split():
    unary({"reciprocal": "recip", "square": "sqr"}.get(name, name),
          lambda x, y, call=getattr(torch, name): call(x, out=y))
unary("normcdf", lambda x, y: torch.special.ndtr(x, out=y))
unary("bitwise_not", lambda x, y: torch.bitwise_not(x, out=y), "i32")
unary("isinf", lambda x, y: torch.isinf(x), out=torch.bool)
unary("isnan", lambda x, y: torch.isnan(x), out=torch.bool)
unary("logical_not", lambda x, y: torch.logical_not(x, out=y), out=torch.bool)
unary("to_bool", lambda x, y: torch.ne(x, 0, out=y), out=torch.bool)
unary("silu", lambda x, y: torch.ops.aten.silu.out(x, out=y))
unary("gelu", lambda x, y: torch.ops.aten.gelu.out(x, approximate="tanh", out=y))
unary("gelu_erf", lambda x, y: torch.ops.aten.gelu.out(x, out=y))
unary("relu", lambda x, y: torch.clamp_min(x, 0, out=y))
unary("affine", lambda x, y: torch.mul(x, 0.5, out=y).add_(2.0))
unary("clamp", lambda x, y: torch.clamp(x, -1.0, 1.0, out=y))
unary("powf", lambda x, y: torch.pow(x, 2.5, out=y))
unary("elu", lambda x, y: torch.ops.aten.elu.out(x, out=y))


def binary(name, dtypes, call, b_shape=(4096, 4096), turned=False, compares=False):
    @row(name, dtypes, "4096x4096")
    def make(dtype):
        a, b = normal(4096, 4096, dtype=dtype), normal(*b_shape, dtype=dtype)
        b = b.t() if turned else b
        y = torch.empty(4096, 4096, dtype=torch.bool if compares else dtype)
        return lambda: call(a, b, out=y)


for name, call in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
                   "pow": torch.pow, "maximum": torch.maximum, "minimum": torch.minimum,
                   "atan2": torch.atan2, "rem": torch.remainder}.items():
    binary(name, "f32 bf16", call)
binary("silu_mul", "f32 bf16", lambda a, b, out: torch.mul(F.silu(a), b, out=out))
for name in "bitwise_and bitwise_or bitwise_xor".split():
    binary(name, "i32", getattr(torch, name))
binary("shift_left", "i32", torch.bitwise_left_shift)
binary("shift_right", "i32", torch.bitwise_right_shift)
binary("add_row", "f32 bf16", torch.add, (4096,))
binary("add_column", "f32 bf16", torch.add, (4096, 1))
binary("add_turned", "f32 bf16", torch.add, turned=True)
for name in "ne lt le gt ge logical_and logical_or logical_xor".split():
    binary(name, "f32 bf16", getattr(torch, name), compares=True)
binary("eq", "f32 bf16 i64", torch.eq, compares=True)
binary("lt_turned", "f32 bf16", torch.lt, turned=True, compares=True)


@row("where", "f32 bf16", "16M")
def where(dtype):
    c = torch.rand(1 << 24) < 0.5
    a, b = normal(1 << 24, dtype=dtype), normal(1 << 24, dtype=dtype)
    y = torch.empty_like(a)
    return lambda: torch.where(c, a, b, out=y)


@row("masked_fill", "f32 bf16", "16M")
def masked_fill(dtype):
    c = torch.rand(1 << 24) < 0.5
    x = normal(1 << 24, dtype=dtype)
    y = torch.empty_like(x)
    return lambda: torch.ops.aten.masked_fill.Scalar_out(x, c, 0.5, out=y)


@row("transpose_copy", "f32 bf16 u8", "4096x4096")
def transpose_copy(dtype):
    x = normal(4096, 4096, dtype=dtype).t()
    y = torch.empty(4096, 4096, dtype=dtype)
    return lambda: y.copy_(x)


def cast(start, end):
    @row(f"to_{end}", start, "16M")
    def make(dtype):
        x = normal(1 << 24, dtype=dtype)
        y = torch.empty(1 << 24, dtype=DTYPES[end])
        return lambda: y.copy_(x)


for pair in (("f16", "f32"), ("f32", "f16"), ("bf16", "f32"), ("f32", "bf16"), ("f32", "i64"),
             ("u8", "f32"), ("f64", "f32")):
    cast(*pair)


@row("fill", "f32", "16M")
def fill(dtype):
    y = torch.empty(1 << 24, dtype=dtype)
    return lambda: y.fill_(1.5)


@row("iota", "f32", "16M")
def iota(dtype):
    y = torch.empty(1 << 24, dtype=dtype)
    return lambda: torch.arange(0, 1 << 23, 0.5, out=y)


@row("add_element", "f32", "1")
def add_element(dtype):
    a, b = normal(1, dtype=dtype), normal(1, dtype=dtype)
    return lambda: a + b


# ---- index ----

@row("index_select", "f32", "32000x512,4096")
def index_select(dtype):
    x, i = normal(32000, 512, dtype=dtype), ids(4096, below=32000)
    y = torch.empty(4096, 512, dtype=dtype)
    return lambda: torch.index_select(x, 0, i, out=y)


# ---- convolutions, pools, resampling: PyTorch has no output argument; its allocator reuses the
# last memory ----

def shape_text(*shapes):
    return ",".join("x".join(map(str, shape)) for shape in shapes)


def conv(name, dtypes, x_shape, w_shape, stride, padding, groups, gradients=False):
    function = F.conv1d if len(x_shape) == 3 else F.conv2d
    shape = shape_text(x_shape, w_shape)

    @row(name, dtypes, shape)
    def forward(dtype):
        x, w = normal(*x_shape, dtype=dtype), normal(*w_shape, dtype=dtype)
        return lambda: function(x, w, None, stride, padding, 1, groups)

    def gradient(which):
        def make(dtype):
            x, w = normal(*x_shape, dtype=dtype), normal(*w_shape, dtype=dtype)
            grad = torch.randn_like(function(x, w, None, stride, padding, 1, groups))
            dims = len(x_shape) - 2
            pair = [dims * [size] for size in (stride, padding, 1)]
            return lambda: torch.ops.aten.convolution_backward(
                grad, x, w, None, *pair, False, dims * [0], groups,
                [which == "input", which == "weight", False])
        return make
    if gradients:
        row(f"input_{name}", dtypes, shape)(gradient("input"))
        row(f"weight_{name}", dtypes, shape)(gradient("weight"))


conv("conv2d", "f32", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, gradients=True)
conv("conv2d_s2", "f32", (1, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1, gradients=True)
conv("conv1d", "f32", (1, 512, 1500), (512, 512, 3), 1, 1, 1, gradients=True)
conv("conv2d", "f32", (1, 128, 28, 28), (128, 128, 3, 3), 1, 1, 1)
conv("conv2d", "f32", (1, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1, gradients=True)
conv("conv2d", "f32", (1, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1)
conv("conv2d", "f32", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1)
conv("conv2d_s2", "f32", (1, 128, 56, 56), (128, 128, 3, 3), 2, 1, 1, gradients=True)
conv("conv2d", "f32", (1, 256, 56, 56), (64, 256, 1, 1), 1, 0, 1)
conv("conv2d", "f32", (1, 64, 128, 128), (3, 64, 3, 3), 1, 1, 1)
conv("conv2d_g32", "f32", (1, 256, 28, 28), (256, 8, 3, 3), 1, 1, 32)
conv("conv2d_depthwise", "f32", (1, 128, 56, 56), (128, 1, 3, 3), 1, 1, 128, gradients=True)
conv("conv2d_depthwise_s2", "f32", (1, 64, 112, 112), (64, 1, 3, 3), 2, 1, 64)
conv("conv2d", "bf16 f16 f64", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1)


def pool(name, function):
    for kernel in (2, 3):
        @row(f"{name}_k{kernel}", "f32 bf16", "1x64x112x112")
        def make(dtype, kernel=kernel):
            x = normal(1, 64, 112, 112, dtype=dtype)
            return lambda: function(x, kernel, 2, kernel // 3)


pool("max_pool2d", F.max_pool2d)
pool("avg_pool2d", F.avg_pool2d)


def upsample(name, mode):
    @row(name, "f32 bf16", "1x64x112x112,x2")
    def make(dtype):
        x = normal(1, 64, 112, 112, dtype=dtype)
        return lambda: F.interpolate(x, scale_factor=2, mode=mode)


upsample("upsample_nearest2d", "nearest")
upsample("upsample_bilinear2d", "bilinear")


def of_lines(name, function):
    @row(name, "f32", "1x64x12544")
    def make(dtype):
        x = normal(1, 64, 12544, dtype=dtype)
        return lambda: function(x)


of_lines("max_pool1d_k2", lambda x: F.max_pool1d(x, 2))
of_lines("avg_pool1d_k2", lambda x: F.avg_pool1d(x, 2))
of_lines("upsample_nearest1d", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"))


for dim in (0, 1):
    @row(f"gather_dim{dim}", "f32 bf16", "4096x4096")
    def gather(dtype, dim=dim):
        x, i = normal(4096, 4096, dtype=dtype), ids(4096, 4096, below=4096)
        y = torch.empty_like(x)
        return lambda: torch.gather(x, dim, i, out=y)

    @row(f"scatter_dim{dim}", "f32 bf16", "4096x4096")
    def scatter(dtype, dim=dim):
        x, i = normal(4096, 4096, dtype=dtype), ids(4096, 4096, below=4096)
        y = torch.zeros_like(x)
        return lambda: y.scatter_(dim, i, x)

    @row(f"scatter_add_dim{dim}", "f32 bf16", "4096x4096")
    def scatter_add(dtype, dim=dim):
        x, i = normal(4096, 4096, dtype=dtype), ids(4096, 4096, below=4096)
        y = torch.zeros_like(x)
        return lambda: y.scatter_add_(dim, i, x)


@row("index_add_dim0", "f32 bf16", "4096x1024,16384")
def index_add_rows(dtype):
    x, i = normal(16384, 1024, dtype=dtype), ids(16384, below=4096)
    y = torch.zeros(4096, 1024, dtype=dtype)
    return lambda: y.index_add_(0, i, x)


@row("index_add_dim1", "f32 bf16", "1024x4096,16384")
def index_add_columns(dtype):
    x, i = normal(1024, 16384, dtype=dtype), ids(16384, below=4096)
    y = torch.zeros(1024, 4096, dtype=dtype)
    return lambda: y.index_add_(1, i, x)


@row("one_hot", "i64", "4096,1000")
def one_hot(_):
    i = ids(4096, below=1000)
    return lambda: torch.nn.functional.one_hot(i, 1000)


# ---- order ----

def add_sort(name, dtypes, shape_name, shape, dim):
    @row(name, dtypes, shape_name)
    def make(dtype):
        x = normal(*shape, dtype=dtype)
        y, i = torch.empty_like(x), torch.empty(shape, dtype=torch.int64)
        return lambda: torch.sort(x, dim=dim, stable=True, out=(y, i))


# PyTorch implements argsort by sort and drops the values.
add_sort("argsort", "f32 bf16 f64 i64", "1024x1024", (1024, 1024), 1)
add_sort("sort", "f32 bf16 f64 i64", "1024x1024", (1024, 1024), 1)
add_sort("sort_dim0", "f32", "1024x1024", (1024, 1024), 0)
add_sort("sort", "f32", "1M", (1 << 20,), 0)
add_sort("sort", "f32", "16384x64", (16384, 64), 1)


def add_topk(name, dtypes, shape_name, shape, k):
    @row(name, dtypes, shape_name)
    def make(dtype):
        x = normal(*shape, dtype=dtype)
        y = torch.empty(shape[0], k, dtype=dtype)
        i = torch.empty(shape[0], k, dtype=torch.int64)
        return lambda: torch.topk(x, k, 1, out=(y, i))


add_topk("topk8", "f32", "1024x1024", (1024, 1024), 8)
add_topk("topk50", "f32 bf16", "64x50257", (64, 50257), 50)


def add_scan(name, function, shape_name, shape, dim):
    @row(name, "f32 bf16 f64 i64", shape_name)
    def make(dtype):
        x = normal(*shape, dtype=dtype)
        y = torch.empty_like(x)
        return lambda: function(x, dim, out=y)


for scan in (torch.cumsum, torch.cumprod):
    add_scan(f"{scan.__name__}_dim1", scan, "4096x4096", (4096, 4096), 1)
    add_scan(f"{scan.__name__}_dim0", scan, "4096x4096", (4096, 4096), 0)
    add_scan(scan.__name__, scan, "16M", (1 << 24,), 0)


# ---- random ----

@row("uniform", "f32 bf16 f64", "16M")
def uniform(dtype):
    y = torch.empty(1 << 24, dtype=dtype)
    return lambda: y.uniform_()


@row("normal", "f32 bf16 f64", "16M")
def normal_numbers(dtype):
    y = torch.empty(1 << 24, dtype=dtype)
    return lambda: y.normal_()


# ---- movement; op_bench.py makes glibc keep freed memory, as wick's allocator does ----

def moved(name, shape_name, shape, function):
    @row(name, "f32", shape_name)
    def make(dtype):
        x = normal(*shape, dtype=dtype)
        return lambda: function(x)


SQUARE = ("4096x4096", (4096, 4096))
moved("tril", *SQUARE, torch.tril)
moved("triu", *SQUARE, torch.triu)
moved("flip_dim1", *SQUARE, lambda x: torch.flip(x, (1,)))
moved("flip_dim0", *SQUARE, lambda x: torch.flip(x, (0,)))
moved("cat_dim1", "4096x2048", (4096, 2048), lambda x: torch.cat((x, x), 1))
moved("roll", *SQUARE, lambda x: torch.roll(x, 5, 1))
moved("repeat_4_4", "1024x1024", (1024, 1024), lambda x: x.repeat(4, 4))
moved("pad_constant", *SQUARE, lambda x: torch.nn.functional.pad(x, (3, 3, 3, 3)))
moved("pad_reflect", "16x1024x1024", (16, 1024, 1024),
      lambda x: torch.nn.functional.pad(x, (3, 3, 3, 3), mode="reflect"))


# ---- timing, as in op_bench.cpp ----

BUDGET_S = 0.05


def calls_for(seconds):
    return 1 if seconds > 1 else max(1, min(1000, int(2e-4 / seconds)))


def measure(call, threads):
    clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
    best, spent, rep = 1e30, 0.0, 0
    while rep < 2 and spent < 1 or (rep < 50 and spent < BUDGET_S):
        calls = calls_for(best)
        start = clock()
        for _ in range(calls):
            call()
        best = min(best, (clock() - start) * 1e-9 / calls)
        spent += best * calls_for(best)
        rep += 1
    return best


def main():
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    if sys.argv[1:] == ["--list"]:
        print("\n".join(ROWS))
        return
    print(json.dumps({"version": torch.__version__}), flush=True)
    made, call = None, None
    for line in sys.stdin:
        threads, key = line.strip().split(" ", 1)
        torch.set_num_threads(int(threads))
        if key != made:
            call = None
            call = ROWS[key]() if key in ROWS else None
            made = key
            if call:
                call()
        seconds = measure(call, int(threads)) if call else None
        print(json.dumps({"key": key, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
