// Rows of gpu_bench: reductions, softmax, norms and the prologues of quantised products.

#include <fmt/format.h>

#include "bench/gpu_bench.h"
#include "wick/backend/gpu/linear/quantize_activations.h"

namespace wick::bench {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};

double bytes(DType dtype, int64_t elems) { return static_cast<double>(bytes_of(dtype, elems)); }

/// As many bytes as the shape has in f32, by the size of one dim; or some thousand elements in a
/// small run.
Shape fit(const GpuBench& bench, const Shape& shape, DType dtype, int dim) {
  Shape result = shape.with(dim, shape[dim] * 4 / bytes_of(dtype, 1));
  for (int d = 0; bench.small() && result.elems() > 20'000; d = (d + 1) % shape.rank()) {
    if (result[d] > 40) result = result.with(d, result[d] / 2 + 1);
  }
  return result;
}

/// A row of an op that makes `out` of `in`.
using Call = std::function<void(const View& out, const ConstView& in)>;
void measure(GpuBench& bench, const std::string& row, DType in, const Shape& in_shape, DType out,
             const Shape& out_shape, const Call& call) {
  if (!bench.wants(row)) return;
  const int copies = bytes(in, in_shape.elems()) < (128 << 20) ? 4 : 2;
  const auto x = bench.arrays(in, in_shape.elems(), copies);
  const auto y = bench.arrays(out, out_shape.elems(), copies);
  const Layout from = Layout::contiguous(in_shape), to = Layout::contiguous(out_shape);
  bench.row(row, bytes(in, in_shape.elems()) + bytes(out, out_shape.elems()),
            [&](int i) { call(y->view(i, to), x->view(i, from)); });
}

void reduce(GpuBench& bench, Op op, DType dtype, const Shape& wanted, uint32_t dims) {
  const Shape shape = fit(bench, wanted, dtype, (dims & 1) != 0 ? wanted.rank() - 1 : 0);
  Shape out = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((dims >> d & 1) != 0) out = out.with(d, 1);
  }
  measure(bench, fmt::format("{}.{}{} dims {:#b}", name(op), name(dtype), shape.str(), dims), dtype,
          shape, dtype, out,
          [&](const View& y, const ConstView& x) { bench.backend().reduce(op, y, x, dims); });
}
void arg_reduce(GpuBench& bench, Op op, DType dtype, const Shape& wanted, int dim) {
  const Shape shape = fit(bench, wanted, dtype, dim == 0 ? wanted.rank() - 1 : 0);
  measure(bench, fmt::format("{}.{}{} dim {}", name(op), name(dtype), shape.str(), dim), dtype,
          shape, DType::u32, shape.with(dim, 1),
          [&](const View& y, const ConstView& x) { bench.backend().arg_reduce(op, y, x, dim); });
}

void rows(GpuBench& bench) {
  for (const Shape& shape :
       {Shape{8192, 8192}, Shape{16384, 4096}, Shape{16380, 4097}, Shape{116508, 576},
        Shape{1 << 20, 64}, Shape{13421772, 5}, Shape{3, 22369600}, Shape{1, 1 << 26}}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::u8}) {
      reduce(bench, Op::sum, dtype, shape, 2);
      reduce(bench, Op::max, dtype, shape, 2);
      arg_reduce(bench, Op::argmax, dtype, shape, 1);
    }
  }
  reduce(bench, Op::mean, DType::f16, {8192, 8192}, 3);
  reduce(bench, Op::sum, DType::f64, {4096, 8192}, 2);
  reduce(bench, Op::sum, DType::i64, {4096, 8192}, 2);
  reduce(bench, Op::min, DType::f64, {4096, 8192}, 2);
  reduce(bench, Op::sum, DType::f32, {256, 64, 4096}, 5);
}

void columns(GpuBench& bench) {
  for (const Shape& shape : {Shape{8192, 8192}, Shape{1 << 20, 64}, Shape{100, 655360},
                             Shape{4, 1 << 24}, Shape{70000, 957}}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::u8}) {
      reduce(bench, Op::sum, dtype, shape, 1);
      reduce(bench, Op::max, dtype, shape, 1);
      arg_reduce(bench, Op::argmax, dtype, shape, 0);
    }
  }
  reduce(bench, Op::sum, DType::f32, {64, 1024, 1024}, 2);
  reduce(bench, Op::sum, DType::bf16, {64, 1024, 1024}, 2);
}

void softmaxes(GpuBench& bench) {
  const auto softmax = [&](DType dtype, const Shape& wanted, int dim, bool log) {
    const Shape shape = fit(bench, wanted, dtype, dim == 0 ? wanted.rank() - 1 : 0);
    measure(bench,
            fmt::format("{}softmax.{}{} dim {}", log ? "log_" : "", name(dtype), shape.str(), dim),
            dtype, shape, dtype, shape,
            [&](const View& y, const ConstView& x) { bench.backend().softmax(y, x, dim, log); });
  };
  for (const Shape& shape : {Shape{8192, 8192}, Shape{16384, 4096}, Shape{32768, 2048},
                             Shape{65536, 1024}, Shape{1 << 20, 64}, Shape{512, 128256},
                             Shape{16384, 4097}, Shape{1024, 32000}, Shape{65536, 1001}}) {
    for (const DType dtype : kFloats) softmax(dtype, shape, 1, false);
    softmax(DType::bf16, shape, 1, true);
  }
  for (const DType dtype : kFloats) softmax(dtype, {8192, 8192}, 0, false);
  softmax(DType::f32, {48, 21, 65536}, 1, false);
}

/// 8M elements of 16 bits, which stay in a cache: what the arithmetic takes without memory's limit.
void in_cache(GpuBench& bench) {
  const DType dtype = DType::bf16;
  const auto row = [&](const std::string& name, const Shape& shape, DType out_dtype,
                       const Shape& out_shape, const Call& call) {
    const std::string whole = fmt::format("{}.{}{} in cache", name, wick::name(dtype), shape.str());
    if (bench.small() || !bench.wants(whole)) return;
    const auto x = bench.arrays(dtype, shape.elems(), 1);
    const auto y = bench.arrays(out_dtype, out_shape.elems(), 1);
    const View to = y->view(0, Layout::contiguous(out_shape));
    const ConstView from = x->view(0, Layout::contiguous(shape));
    bench.row(whole, bytes(dtype, shape.elems()) + bytes(out_dtype, out_shape.elems()),
              [&](int) { call(to, from); });
  };
  gpu::GpuBackend& b = bench.backend();
  for (const Shape& shape : {Shape{1024, 8192}, Shape{2048, 4096}, Shape{8192, 1024},
                             Shape{14564, 576}, Shape{131072, 64}}) {
    const Shape one = shape.with(1, 1);
    row("softmax", shape, dtype, shape,
        [&](const View& y, const ConstView& x) { b.softmax(y, x, 1, false); });
    row("sum of rows", shape, dtype, one,
        [&](const View& y, const ConstView& x) { b.reduce(Op::sum, y, x, 2); });
    row("max of rows", shape, dtype, one,
        [&](const View& y, const ConstView& x) { b.reduce(Op::max, y, x, 2); });
    row("argmax of rows", shape, DType::u32, one,
        [&](const View& y, const ConstView& x) { b.arg_reduce(Op::argmax, y, x, 1); });
  }
  const Shape square = {4096, 2048};
  row("max of columns", square, dtype, square.with(0, 1),
      [&](const View& y, const ConstView& x) { b.reduce(Op::max, y, x, 1); });
}

void norms(GpuBench& bench) {
  const auto rms_norm = [&](DType dtype, DType weight_dtype, const Shape& wanted) {
    const Shape shape = fit(bench, wanted, dtype, 0);
    const auto weight = bench.arrays(weight_dtype, shape[1], 1);
    measure(bench, fmt::format("rms_norm.{}.{}{}", name(dtype), name(weight_dtype), shape.str()),
            dtype, shape, dtype, shape, [&](const View& y, const ConstView& x) {
              bench.backend().rms_norm(y, x, weight->view(0, Layout::contiguous({shape[1]})),
                                       1e-5f);
            });
  };
  for (const Shape& shape :
       {Shape{8192, 8192}, Shape{16384, 4096}, Shape{32768, 2048}, Shape{65536, 1024},
        Shape{116508, 576}, Shape{1 << 20, 64}, Shape{4681, 14336}}) {
    for (const DType dtype : kFloats) rms_norm(dtype, dtype, shape);
    rms_norm(DType::bf16, DType::f32, shape);
  }
  rms_norm(DType::f64, DType::f64, {4096, 4096});
}

void quantize_activations(GpuBench& bench, const char* what, LinearFusion::Input input,
                          int64_t rows, int64_t k) {
  const std::string row = fmt::format("{}[{},{}]", what, rows, k);
  if (!bench.wants(row)) return;
  const int64_t columns = input == LinearFusion::Input::silu_mul ? 2 * k : k;
  const auto x = bench.arrays(DType::f32, rows * columns), weight = bench.arrays(DType::f32, k, 1);
  const int64_t padded = gpu::RowBlocks::padded_blocks(k);
  gpu::Gpu& gpu = bench.backend().gpu();
  const gpu::Scratch q(gpu, static_cast<size_t>(rows * padded * 32));
  const gpu::Scratch scales(gpu, static_cast<size_t>(rows * padded * 8));
  LinearFusion fusion;
  fusion.input = input;
  fusion.norm = weight->view(0, Layout::contiguous({k}));
  fusion.eps = 1e-5f;
  bench.row(row, static_cast<double>(rows * (columns * 4 + padded * 40)), [&](int i) {
    gpu::quantize_rows(gpu, fusion, x->view(i, Layout::contiguous({rows, columns})), k,
                       {q.data<int8_t>(), scales.data<math::ActivationScale>(), padded});
  });
}

void quantize_activationss(GpuBench& bench) {
  using Input = LinearFusion::Input;
  const int64_t rows = bench.size(16384, 3);
  for (const int64_t k : {576, 2048, 4096}) {
    quantize_activations(bench, "quantize_rows", Input::plain, rows, k);
    quantize_activations(bench, "rms_norm_quantize", Input::rms_norm, rows, k);
    quantize_activations(bench, "silu_mul_quantize", Input::silu_mul, rows, k);
  }
}

const bool added = add_rows([](GpuBench& bench) {
  rows(bench);
  columns(bench);
  softmaxes(bench);
  in_cache(bench);
  norms(bench);
  quantize_activationss(bench);
});

}  // namespace
}  // namespace wick::bench
