#!/usr/bin/env python3
"""Compares wick with PyTorch on one NVIDIA GPU, in one process and on the same operands.

    python bench/torch_gpu.py [--device cuda:0] [--filter TEXT] [--rounds 5] [--out FILE]
    python bench/torch_gpu.py --table FILE         prints the rows of --out as a Markdown table

Measuring needs a Python that has torch with CUDA and wick. Both libraries get the same memory through DLPack. Rows are measured in
f32 and in 16 bits: bf16, but f16 for convolutions. A row's time is the wall time of a run of calls that ends with a synchronisation,
divided by the number of calls: the device time of a large op, and the launch overhead of a small one. The two libraries are measured in turn; the minimum of the rounds counts. ratio = PyTorch's time / wick's
time; above 1 wick is faster. Before a row is measured, the results are compared; `error` is the largest difference relative to the
largest magnitude (null where results are random). A row that fails prints its error.
"""
import argparse
import json
import math
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F

    import wick
except ImportError as error:  # --table needs neither library
    MISSING = error
else:
    MISSING = None
M = 1 << 20


def randn(*shape, dtype=None):
    x = torch.randn(*shape, device="cuda", dtype=torch.float32)
    return x if dtype is None else x.to(dtype)


def ids(high, *shape):
    return torch.randint(0, high, shape, device="cuda")


def device():
    """The name of torch's current device, which is that of all operands, for wick."""
    return f"cuda:{torch.cuda.current_device()}"


class Row:
    """A call in both libraries. `operands` are torch tensors; torch_call and wick_call take one argument for each."""

    def __init__(self, name, operands, torch_call, wick_call=None, compare=True):
        self.name, self.operands, self.torch_call = name, operands, torch_call
        self.wick_call, self.compare = wick_call or torch_call, compare


def elementwise(dtype):
    x, y = randn(64 * M, dtype=dtype), randn(64 * M, dtype=dtype)
    m = randn(8192, 8192, dtype=dtype)
    yield Row("exp 64M", (x,), torch.exp, wick.exp)
    yield Row("gelu_erf 64M", (x,), F.gelu, wick.gelu_erf)
    yield Row("silu 64M", (x,), F.silu, wick.silu)
    yield Row("add 64M", (x, y), torch.add, wick.add)
    yield Row("where 64M", (x > 0, x, y), torch.where, wick.where)
    yield Row("cast to f16 64M", (x,), lambda a: a.to(torch.float16), lambda a: a.to("float16"))
    yield Row("transposed copy 8192²", (m,), lambda a: a.t().contiguous())
    yield Row("add row 8192²", (m, m[0].clone()), torch.add, wick.add)
    yield Row("add column 8192²", (m, m[:, :1].clone()), torch.add, wick.add)
    small = randn(1024, dtype=dtype)
    yield Row("add 1024", (small, small), torch.add, wick.add)


def reductions(dtype):
    m, n = randn(8192, 8192, dtype=dtype), randn(2048, 2048, dtype=dtype)
    weight = randn(8192, dtype=dtype)
    images, channels = randn(8, 64, 56, 56, dtype=dtype), randn(64, dtype=dtype)
    yield Row("sum dim 1 8192²", (m,), lambda a: a.sum(1))
    yield Row("sum dim 0 8192²", (m,), lambda a: a.sum(0))
    yield Row("sum all 8192²", (m,), lambda a: a.sum())
    yield Row("prod rows 2048²", (n,), lambda a: a.prod(1))
    yield Row("argmax dim 1 8192²", (m,), lambda a: a.argmax(1))
    yield Row("softmax 8192²", (m,), lambda a: a.softmax(-1))
    yield Row("rms_norm 8192²", (m, weight), lambda a, w: F.rms_norm(a, (8192,), w, 1e-5), lambda a, w: wick.rms_norm(a, w, 1e-5))
    yield Row("layer_norm 8192²", (m, weight, weight), lambda a, w, b: F.layer_norm(a, (8192,), w, b), wick.layer_norm)
    yield Row("group_norm 8x64x56²", (images, channels, channels), lambda a, w, b: F.group_norm(a, 32, w, b),
              lambda a, w, b: wick.group_norm(a, 32, w, b))
    yield Row("cumsum 2048²", (n,), lambda a: a.cumsum(1), lambda a: wick.cumsum(a, 1))


def gradients(dtype):
    """Backward passes. PyTorch's functions get what its forward pass has saved."""
    m, g = randn(8192, 8192, dtype=dtype), randn(8192, 8192, dtype=dtype)
    weight = randn(8192, dtype=dtype)
    images, of_images, channels = randn(8, 64, 56, 56, dtype=dtype), randn(8, 64, 56, 56, dtype=dtype), randn(64, dtype=dtype)
    aten, all3 = torch.ops.aten, (True, True, True)

    def by_tape(call):
        """The gradients of wick's or PyTorch's call, for libraries that have no function for them."""
        def torch_call(*operands):
            leaves = [t.detach().requires_grad_() for t in operands[1:]]
            return torch.autograd.grad(call(F)(*leaves), leaves, operands[0])

        def wick_call(*operands):
            leaves = [t.detach().requires_grad_() for t in operands[1:]]
            return wick.grad(call(wick)(*leaves), leaves, operands[0])
        return torch_call, wick_call

    def pair(sums, w):
        return sums[0].to(w.dtype), sums[1].to(w.dtype)

    def layer(a, g, w, mean, scale):
        dx, statistics = wick.norm_grad(a, g, w)
        return dx, *pair(wick.norm_sums(a, g, statistics[1].unsqueeze(-1), [0], statistics[0].unsqueeze(-1)), w)

    def rms(a, g, w):
        dx, statistics = wick.norm_grad(a, g, w, 0, False, 1e-5)
        return dx, wick.norm_sums(a, g, statistics[1].unsqueeze(-1), [0])[0].to(w.dtype)

    def group(a, g, w, mean, scale):
        dx, statistics = wick.norm_grad(a, g, w, 32)
        views = [statistics[i].reshape(8, 64, 1, 1) for i in (1, 0)]
        return dx, *pair(wick.norm_sums(a, g, views[0], [0, 2, 3], views[1]), w)

    y = m.softmax(-1)
    yield Row("softmax backward 8192²", (y, g), lambda a, b: aten._softmax_backward_data(b, a, -1, dtype), wick.softmax_grad)
    y = m.log_softmax(-1)
    yield Row("log_softmax backward 8192²", (y, g), lambda a, b: aten._log_softmax_backward_data(b, a, -1, dtype),
              wick.log_softmax_grad)
    _, mean, scale = aten.native_layer_norm(m, (8192,), weight, weight, 1e-5)
    yield Row("layer_norm backward 8192²", (m, g, weight, mean, scale),
              lambda a, b, w, mu, r: aten.native_layer_norm_backward(b, a, (8192,), mu, r, w, w, all3), layer)
    yield Row("layer_norm backward of x 8192²", (m, g, weight, mean, scale),
              lambda a, b, w, mu, r: aten.native_layer_norm_backward(b, a, (8192,), mu, r, w, w, (True, False, False))[0],
              lambda a, b, w, mu, r: wick.norm_grad(a, b, w)[0])
    if hasattr(aten, "_fused_rms_norm_backward"):
        _, scale = aten._fused_rms_norm(m, (8192,), weight, 1e-5)
        yield Row("rms_norm backward 8192²", (m, g, weight, scale),
                  lambda a, b, w, r: aten._fused_rms_norm_backward(b, a, (8192,), r, w, (True, True)),
                  lambda a, b, w, r: rms(a, b, w))
    # The rows below include the forward pass.
    torch_call, wick_call = by_tape(lambda lib: lambda a, w: lib.rms_norm(a, (8192,), w, 1e-5) if lib is F else lib.rms_norm(a, w, 1e-5))
    yield Row("rms_norm with backward 8192²", (g, m, weight), torch_call, wick_call)
    _, mean, scale = aten.native_group_norm(images, channels, channels, 8, 64, 56 * 56, 32, 1e-5)
    yield Row("group_norm backward 8x64x56²", (images, of_images, channels, mean, scale),
              lambda a, b, w, mu, r: aten.native_group_norm_backward(b, a, mu, r, w, 8, 64, 56 * 56, 32, all3), group)
    torch_call, wick_call = by_tape(lambda lib: lambda a, w, b: F.batch_norm(a, None, None, w, b, True) if lib is F
                                    else lib.batch_norm_of_batch(a, w, b)[0])
    yield Row("batch_norm with backward 8x64x56²", (of_images, images, channels, channels), torch_call, wick_call)


def indexing(dtype):
    m, n = randn(8192, 8192, dtype=dtype), randn(2048, 2048, dtype=dtype)
    wide, few = ids(2048, 2048, 2048), ids(2048, 2048)
    large, rows = ids(8192, 8192, 8192), ids(8192, 8192)
    yield Row("index_select rows 8192²", (m, rows), lambda a, i: a.index_select(0, i), lambda a, i: wick.index_select(a, i, 0))
    yield Row("gather dim 1 2048²", (n, wide), lambda a, i: a.gather(1, i), lambda a, i: wick.gather(a, i, 1))
    yield Row("gather dim 1 8192²", (m, large), lambda a, i: a.gather(1, i), lambda a, i: wick.gather(a, i, 1))
    yield Row("scatter_add dim 1 2048²", (n, wide, n), lambda a, i, s: a.scatter_add(1, i, s), lambda a, i, s: wick.scatter_add(a, i, s, 1))
    yield Row("scatter_add dim 0 2048²", (n, wide, n), lambda a, i, s: a.scatter_add(0, i, s), lambda a, i, s: wick.scatter_add(a, i, s, 0))
    yield Row("scatter_add dim 0 8192²", (m, large, m), lambda a, i, s: a.scatter_add(0, i, s), lambda a, i, s: wick.scatter_add(a, i, s, 0))
    yield Row("index_add 2048²", (n, few, n), lambda a, i, s: a.index_add(0, i, s), lambda a, i, s: wick.index_add(a, i, s, 0))
    yield Row("index_add 8192²", (m, rows, m), lambda a, i, s: a.index_add(0, i, s), lambda a, i, s: wick.index_add(a, i, s, 0))


def sorting(dtype):
    n, many, long = randn(2048, 2048, dtype=dtype), randn(16384, 1024, dtype=dtype), randn(64, 131072, dtype=dtype)
    vocabulary = randn(32, 128256, dtype=dtype)
    yield Row("sort 2048²", (n,), lambda a: a.sort(1)[0], lambda a: wick.sort(a, 1).values)
    yield Row("argsort 16384x1024", (many,), lambda a: a.argsort(1), lambda a: wick.argsort(a, 1), compare=False)
    yield Row("sort 64x131072", (long,), lambda a: a.sort(1)[0], lambda a: wick.sort(a, 1).values)
    yield Row("topk 40 of 32x128256", (vocabulary,), lambda a: a.topk(40)[0], lambda a: wick.topk(a, 40).values)


def random_numbers(dtype):
    name = str(dtype)[6:]
    yield Row("normal 4M", (), lambda: torch.randn(4 * M, device="cuda", dtype=dtype),
              lambda: wick.normal(4 * M, dtype=name, device=device()), compare=False)
    yield Row("normal 64M", (), lambda: torch.randn(64 * M, device="cuda", dtype=dtype),
              lambda: wick.normal(64 * M, dtype=name, device=device()), compare=False)
    yield Row("uniform 64M", (), lambda: torch.rand(64 * M, device="cuda", dtype=dtype),
              lambda: wick.uniform(64 * M, dtype=name, device=device()), compare=False)


def convolutions(dtype):
    dtype = torch.float16 if dtype == torch.bfloat16 else dtype

    def conv(name, x, w, **params):
        return Row(name, (randn(*x, dtype=dtype), randn(*w, dtype=dtype)), lambda a, b: F.conv2d(a, b, **params),
                   lambda a, b: wick.conv2d(a, b, **params))
    yield conv("conv2d 3x3 64 N32 56²", (32, 64, 56, 56), (64, 64, 3, 3), padding=1)
    yield conv("conv2d 3x3 64 N8 56²", (8, 64, 56, 56), (64, 64, 3, 3), padding=1)
    yield conv("conv2d 7x7 s2 N32 224²", (32, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3)
    yield conv("conv2d 1x1 256→64 N32 56²", (32, 256, 56, 56), (64, 256, 1, 1))
    yield conv("conv2d 3x3 320 N2 64²", (2, 320, 64, 64), (320, 320, 3, 3), padding=1)
    yield conv("conv2d depthwise 3x3 256 N32 56²", (32, 256, 56, 56), (256, 1, 3, 3), padding=1, groups=256)
    yield Row("conv1d 512 k3 L1500 N8", (randn(8, 512, 1500, dtype=dtype), randn(512, 512, 3, dtype=dtype)),
              lambda a, b: F.conv1d(a, b, padding=1), lambda a, b: wick.conv1d(a, b, padding=1))
    yield Row("conv_transpose2d 256→128 k4 s2 N8 28²", (randn(8, 256, 28, 28, dtype=dtype), randn(256, 128, 4, 4, dtype=dtype)),
              lambda a, b: F.conv_transpose2d(a, b, stride=2, padding=1), lambda a, b: wick.conv_transpose2d(a, b, stride=2, padding=1))


def spatial(dtype):
    images = randn(32, 64, 112, 112, dtype=dtype)
    yield Row("max_pool 3x3 s2 32x64x112²", (images,), lambda a: F.max_pool2d(a, 3, 2, 1), lambda a: wick.max_pool2d(a, 3, 2, 1))
    yield Row("avg_pool 2x2 32x64x112²", (images,), lambda a: F.avg_pool2d(a, 2), lambda a: wick.avg_pool2d(a, 2, 2))
    yield Row("nearest x2 32x64x112²", (images,), lambda a: F.interpolate(a, scale_factor=2), lambda a: wick.interpolate(a, scale_factor=2))
    yield Row("bilinear x2 32x64x112²", (images,), lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"),
              lambda a: wick.interpolate(a, scale_factor=2, mode="bilinear"))


def gemms(dtype):
    def product(name, a, b):
        return Row(name, (randn(*a, dtype=dtype), randn(*b, dtype=dtype)), torch.matmul, wick.matmul)
    yield product("matmul 4096³", (4096, 4096), (4096, 4096))
    yield product("matmul 16x4096x4096", (16, 4096), (4096, 4096))
    yield product("matmul 1x4096x4096", (1, 4096), (4096, 4096))
    yield product("matmul 512x4096x11008", (512, 4096), (4096, 11008))
    yield product("matmul 1000³", (1000, 1000), (1000, 1000))
    yield product("matmul 64³", (64, 64), (64, 64))


def experts(dtype):
    """Mixtures of experts: grouped_linear beside a loop of linear over the experts, which orders the rows first."""
    def mixture(name, count, top, k, n, tokens, block=None):
        matrices = randn(count, n, k, dtype=dtype) * 0.1
        own = wick.from_dlpack(matrices)
        weights = [wick.Weight(own[e].to("float32").quantize(block) if block else own[e]) for e in range(count)]
        chosen = torch.rand(tokens, count, device="cuda").topk(top).indices
        own_chosen = wick.from_dlpack(chosen.to(torch.int32)).to("uint32")

        def loop(x, chosen):
            flat = chosen.flatten()
            order = flat.argsort(stable=True)
            rows, y, at = x[order // top], x.new_empty(tokens * top, n), 0
            for e, rows_of in enumerate(flat.bincount(minlength=count).tolist()):
                if rows_of:
                    y[order[at:at + rows_of]] = F.linear(rows[at:at + rows_of], matrices[e])
                at += rows_of
            return y.view(tokens, top, n)
        return Row(name, (randn(tokens, k, dtype=dtype), chosen), loop,
                   lambda x, chosen: wick.grouped_linear(x, weights, own_chosen), compare=block is None)
    if dtype != torch.float32:
        yield mixture("experts 128 top 8 2048→768 q4_k, 512 tokens", 128, 8, 2048, 768, 512, "q4_k")
    yield mixture("experts 128 top 8 2048→768, 512 tokens", 128, 8, 2048, 768, 512)
    yield mixture("experts 8 top 2 4096→14336, 512 tokens", 8, 2, 4096, 14336, 512)


def attentions(dtype):
    if dtype != torch.bfloat16:
        return

    def attend(name, b, h, m, n, d, g=None, causal=False, mask=None):
        g = g or h
        operands = [randn(b, h, m, d, dtype=dtype), randn(b, g, n, d, dtype=dtype), randn(b, g, n, d, dtype=dtype)]
        if mask is not None:
            operands.append(mask)
            return Row(name, operands, lambda q, k, v, a: F.scaled_dot_product_attention(q, k, v, a),
                       lambda q, k, v, a: wick.attention(q, k, v, mask=a))
        return Row(name, operands, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=g != h),
                   lambda q, k, v: wick.attention(q, k, v, causal=causal))

    def attend_backward(name, b, h, m, d, causal):
        """The gradients of q, k and v alone: the forward pass runs once, before the measurement."""
        q, k, v, g = (randn(b, h, m, d, dtype=dtype) for _ in range(4))
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        y = F.scaled_dot_product_attention(*leaves, is_causal=causal)
        own = [wick.from_dlpack(x.clone()).requires_grad_() for x in (q, k, v)]
        z = wick.attention(*own, causal=causal)
        return Row(name, (g,), lambda a: torch.autograd.grad(y, leaves, a, retain_graph=True),
                   lambda a: wick.grad(z, own, a))

    def fast(row):
        """The row with exponentials of one term, as PyTorch has them."""
        def call(*operands):
            wick.set_precision("fast")
            y = row.wick_call(*operands)
            wick.set_precision("full")
            return y
        return Row(row.name + ", fast", row.operands, row.torch_call, call)

    prompts = [attend("attention B4 H32 S4096 D128 causal", 4, 32, 4096, 4096, 128, causal=True),
               attend("attention B4 H32 S4096 D128 full", 4, 32, 4096, 4096, 128),
               attend("attention B8 H16 S2048 D64 causal", 8, 16, 2048, 2048, 64, causal=True),
               attend("attention B8 H16 S2048 D64 full", 8, 16, 2048, 2048, 64),
               attend("attention B4 H16/8 S4096 D256 causal", 4, 16, 4096, 4096, 256, g=8, causal=True),
               attend("attention B4 H16 S4096 D256 full", 4, 16, 4096, 4096, 256),
               attend("attention mask H16 1024² D64", 1, 16, 1024, 1024, 64, mask=randn(1024, 1024, dtype=dtype))]
    yield from prompts
    yield from map(fast, prompts)
    del prompts  # and the memory of their operands
    for shape in (("B4 H32 S4096 D128 causal", 4, 32, 4096, 128, True), ("B8 H16 S2048 D64 full", 8, 16, 2048, 64, False),
                  ("B2 H16 S4096 D256 causal", 2, 16, 4096, 256, True)):
        row = attend_backward("attention gradients " + shape[0], *shape[1:])
        yield row
        yield fast(row)
    yield attend("attention one query B1 H32 L4096 D128", 1, 32, 1, 4096, 128)
    yield attend("attention one query B32 H32 L4096 D128", 32, 32, 1, 4096, 128)
    yield attend("attention one query B32 H32/8 L4096 D128", 32, 32, 1, 4096, 128, g=8)
    yield attend("attention one query B1 H16/8 L4096 D256", 1, 16, 1, 4096, 256, g=8)
    yield attend("attention one query B32 H16/8 L4096 D256", 32, 16, 1, 4096, 256, g=8)


GROUPS = (elementwise, reductions, gradients, indexing, sorting, random_numbers, convolutions, spatial, gemms, experts, attentions)


def difference(a, b):
    """The largest difference of two results, relative to the largest magnitude; of tuples, of any of their tensors."""
    if isinstance(a, (tuple, list)):
        return max(difference(one, other) for one, other in zip(a, b, strict=True))
    a, b = a.double(), torch.from_dlpack(b).double()
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {tuple(a.shape)}, {tuple(b.shape)}")
    scale = max(a.abs().max().item(), 1e-30)
    return (a - b).abs().max().item() / scale


def seconds(call, wait, count):
    """The time of one of `count` calls."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return (time.perf_counter() - start) / count


def measure(row, rounds):
    where = device()
    given = [wick.from_dlpack(x) for x in row.operands]

    def in_torch():
        return row.torch_call(*row.operands)

    def in_wick():
        return row.wick_call(*given)

    def wait():
        wick.synchronize(where)
    expected, result = in_torch(), in_wick()
    wait()
    torch.cuda.synchronize()
    error = difference(expected, result) if row.compare else None
    del expected, result
    count = [min(max(int(8e-3 / seconds(call, waiting, 3)), 3), 2000) for call, waiting in ((in_torch, torch.cuda.synchronize), (in_wick, wait))]
    times = [math.inf, math.inf]
    for _ in range(rounds):
        times[0] = min(times[0], seconds(in_torch, torch.cuda.synchronize, count[0]))
        times[1] = min(times[1], seconds(in_wick, wait, count[1]))
    return {"torch_us": round(times[0] * 1e6, 2), "wick_us": round(times[1] * 1e6, 2), "ratio": round(times[0] / times[1], 3), "error": error}


def print_table(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    print(f"{report['device']}, PyTorch {report['torch']}. Microseconds; ratio = PyTorch / wick.")
    print("".join(f"{name}={value}\n" for name, value in report.get("environment", {}).items()))
    print("| op | f32: PyTorch | wick | ratio | 16 bits: PyTorch | wick | ratio |\n|---|---|---|---|---|---|---|")
    ops = {}
    for name, row in report["rows"].items():
        kind = "f32" if name.endswith(" f32") else "16 bits"
        ops.setdefault(name.removesuffix(f" {kind}"), {})[kind] = row
    for op, rows in ops.items():
        cells = []
        for kind in ("f32", "16 bits"):
            row = rows.get(kind, {})
            cells += [f"{row['torch_us']:,.1f}", f"{row['wick_us']:,.1f}", f"{row['ratio']:.2f}"] if "ratio" in row else ["", "", ""]
        print(f"| {op} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--filter", default="", help="only rows whose name contains this text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="writes the rows as JSON")
    parser.add_argument("--table", help="prints the rows of a JSON file as a Markdown table")
    args = parser.parse_args()
    if args.table:
        return print_table(args.table)
    if MISSING is not None:
        parser.error(f"measuring needs torch and wick: {MISSING}")
    torch.cuda.set_device(args.device)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    rows = {}
    for group in GROUPS:
        for dtype in (torch.float32, torch.bfloat16):
            for row in group(dtype):
                name = f"{row.name} {'f32' if dtype == torch.float32 else '16 bits'}"
                if args.filter not in name:
                    continue
                try:
                    rows[name] = measure(row, args.rounds)
                except Exception as error:  # a row that fails doesn't end the run
                    rows[name] = {"failed": str(error)[:200]}
                print(name, json.dumps(rows[name]), flush=True)
            torch.cuda.empty_cache()
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            chosen = {name: value for name, value in os.environ.items() if name.startswith("WICK_")}
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "environment": chosen, "rows": rows}, file, indent=1)
    ratios = sorted(r["ratio"] for r in rows.values() if "ratio" in r)
    print(f"{len(ratios)} rows, {sum(r >= 1 for r in ratios)} at 1 or above, {sum(r < 0.9 for r in ratios)} below 0.9, "
          f"{sum('failed' in r for r in rows.values())} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
