// Rows of gpu_bench: movement and elementwise ops.

#include <fmt/format.h>

#include "bench/gpu_bench.h"

namespace wick::bench {
namespace {

double bytes(DType dtype, int64_t elems) { return static_cast<double>(bytes_of(dtype, elems)); }

/// Measures functions of 8M 16-bit elements, which stay in a cache: their speed without the memory
/// limit, but including the start and end of kernels.
void functions_in_cache(GpuBench& bench, DType dtype) {
  const int64_t n = bench.size(int64_t{8} << 20, 10'007);
  const auto a = bench.arrays(dtype, n, 1), out = bench.arrays(dtype, n, 1);
  const Layout flat = Layout::contiguous({n});
  for (const Op op : {Op::neg, Op::exp, Op::log, Op::tanh, Op::sigmoid, Op::silu}) {
    bench.row(fmt::format("{}.{}[{}] in cache", name(op), name(dtype), n), 2 * bytes(dtype, n),
              [&](int) { bench.backend().unary(op, out->view(0, flat), a->view(0, flat)); });
  }
}

/// Returns the number of elements in 256 MB.
int64_t many(DType dtype) { return (int64_t{1} << 28) / bytes_of(dtype, 1); }

void functions(GpuBench& bench, DType dtype) {
  const int64_t n = bench.size(many(dtype), 10'007);
  const auto a = bench.arrays(dtype, n), b = bench.arrays(dtype, n), out = bench.arrays(dtype, n);
  const Layout flat = Layout::contiguous({n});
  const auto row = [&](Op op) { return fmt::format("{}.{}[{}]", name(op), name(dtype), n); };
  for (const Op op : {Op::neg, Op::sqrt, Op::recip, Op::rsqrt, Op::exp, Op::log, Op::tanh,
                      Op::sigmoid, Op::silu}) {
    bench.row(row(op), 2 * bytes(dtype, n),
              [&](int i) { bench.backend().unary(op, out->view(i, flat), a->view(i, flat)); });
  }
  bench.row(row(Op::affine), 2 * bytes(dtype, n), [&](int i) {
    bench.backend().unary_with(Op::affine, out->view(i, flat), a->view(i, flat), 0.5, 2.0);
  });
  for (const Op op : {Op::add, Op::mul, Op::div, Op::maximum, Op::silu_mul}) {
    bench.row(row(op), 3 * bytes(dtype, n), [&](int i) {
      bench.backend().binary(op, out->view(i, flat), a->view(i, flat), b->view(i, flat));
    });
  }
  bench.row(row(Op::fill), bytes(dtype, n),
            [&](int i) { bench.backend().fill(out->view(i, flat), 1.5); });
  bench.row(row(Op::iota), bytes(dtype, n),
            [&](int i) { bench.backend().iota(out->view(i, flat), 0, 1); });
}

void broadcasts(GpuBench& bench, DType dtype) {
  const int64_t n = bench.size(4096, 96), m = bench.size(many(dtype) / n, 24);
  const Shape shape{m, n};
  const auto a = bench.arrays(dtype, m * n), b = bench.arrays(dtype, m * n);
  const auto out = bench.arrays(dtype, m * n);
  struct Case {
    const char* what;
    Layout b;
    double operands;
  };
  const Case cases[] = {{"row", Layout(shape, {0, 1}, 0), 2},
                        {"column", Layout(shape, {1, 0}, 0), 2},
                        {"number", Layout(shape, {0, 0}, 0), 2},
                        {"transposed", Layout(shape, {1, m}, 0), 3}};
  const Layout dense = Layout::contiguous(shape);
  for (const Case& c : cases) {
    bench.row(fmt::format("add {}.{}{}", c.what, name(dtype), shape.str()),
              c.operands * bytes(dtype, m * n), [&](int i) {
                bench.backend().binary(Op::add, out->view(i, dense), a->view(i, dense),
                                       b->view(i, c.b));
              });
  }
}

void copies(GpuBench& bench, DType dtype) {
  const int64_t n = bench.size(8192, 72), m = bench.size(many(dtype) / n, 40);
  const auto in = bench.arrays(dtype, (m + 1) * (n + 64)), out = bench.arrays(dtype, m * n);
  struct Case {
    const char* what;
    Layout in;
  };
  const Shape shape{m, n}, heads{m / 8, 8, n / 8, 8}, channels{8, 8, m * n / 64};
  const int64_t pitch = n + 64, h = n / 8 * 8;
  const Case cases[] = {
      {"all", Layout::contiguous(shape)},
      {"rows of a slice", Layout(shape, {pitch, 1}, 16)},
      {"rows of a slice from an odd element", Layout(shape, {pitch, 1}, 1)},
      {"every other column", Layout({m, n / 2}, {n, 2}, 0)},
      {"transposed", Layout(shape, {1, m}, 0)},
      {"transposed from an odd element", Layout(shape, {1, m + 1}, 1)},
      {"heads swapped", Layout(heads, {8 * h, n / 8 * 8, 8, 1}, 0).transpose(1, 2)},
      {"channels first", Layout(channels, {m * n / 8, 1, 8}, 0)},
      {"three channels first", Layout({3, m * n / 3}, {1, 3}, 0)},
      {"backwards", Layout(shape, {-n, -1}, m * n - 1)},
  };
  for (const Case& c : cases) {
    const Layout to = Layout::contiguous(c.in.shape());
    bench.row(fmt::format("copy {}.{}{}", c.what, name(dtype), c.in.shape().str()),
              2 * bytes(dtype, c.in.elems()),
              [&](int i) { bench.backend().copy(out->view(i, to), in->view(i, c.in)); });
  }
}

void casts(GpuBench& bench) {
  const int64_t n = bench.size(int64_t{64} << 20, 10'007);
  const std::pair<DType, DType> pairs[] = {
      {DType::f32, DType::bf16},    {DType::bf16, DType::f32},   {DType::f32, DType::f16},
      {DType::f16, DType::f32},     {DType::f16, DType::bf16},   {DType::bf16, DType::f16},
      {DType::f32, DType::f8e4m3},  {DType::f8e4m3, DType::f32}, {DType::bf16, DType::f8e4m3},
      {DType::f8e4m3, DType::bf16}, {DType::f64, DType::f32},    {DType::f32, DType::f64},
      {DType::i64, DType::f32},     {DType::f32, DType::i32},    {DType::u8, DType::f32},
      {DType::i64, DType::i32},     {DType::u32, DType::bf16}};
  const Layout flat = Layout::contiguous({n});
  for (const auto& [from, to] : pairs) {
    const std::string row = fmt::format("cast.{}.{}[{}]", name(from), name(to), n);
    if (!bench.wants(row)) continue;
    const auto in = bench.arrays(from, n), out = bench.arrays(to, n);
    bench.row(row, bytes(from, n) + bytes(to, n),
              [&](int i) { bench.backend().cast(out->view(i, flat), in->view(i, flat)); });
  }
}

void selects(GpuBench& bench, DType dtype) {
  const int64_t rows = bench.size(32768, 50), n = bench.size(2048, 96);
  const auto table = bench.arrays(dtype, rows * n), out = bench.arrays(dtype, rows * n);
  const auto order = bench.arrays(DType::u32, rows, 1);
  bench.backend().iota(order->view(0, Layout::contiguous({rows})), 0, 1);
  // Rows that aren't adjacent: every eighth row, and so on.
  const Layout ids = Layout({rows / 8, 8}, {1, rows / 8}, 0).transpose(0, 1);
  const auto mixed = bench.arrays(DType::u32, rows, 1);
  const int64_t count = rows / 8 * 8;
  bench.backend().copy(mixed->view(0, Layout::contiguous(ids.shape())), order->view(0, ids));
  bench.row(fmt::format("index_select.{}[{},{}]", name(dtype), count, n),
            2 * bytes(dtype, count * n), [&](int i) {
              bench.backend().index_select(out->view(i, Layout::contiguous({count, n})),
                                           table->view(i, Layout::contiguous({rows, n})),
                                           mixed->view(0, Layout::contiguous({count})), 0);
            });
}

void ropes(GpuBench& bench, DType dtype) {
  const int64_t h = bench.size(32, 2), t = bench.size(16384, 6), d = 128;
  const Shape shape{h, t, d};
  const auto in = bench.arrays(dtype, h * t * d), out = bench.arrays(dtype, h * t * d);
  const auto cos = bench.arrays(DType::f32, t * d / 2), sin = bench.arrays(DType::f32, t * d / 2);
  const Layout table = Layout::contiguous({t, d / 2});
  const Layout by_head = Layout::contiguous(shape), by_token(shape, {d, h * d, 1}, 0);
  for (const bool interleaved : {false, true}) {
    const char* const what = interleaved ? "rope_interleaved" : "rope";
    const auto row = [&](const char* how, const Layout& x, const Layout& y) {
      bench.row(fmt::format("{}{}.{}{}", what, how, name(dtype), shape.str()),
                2 * bytes(dtype, h * t * d), [&](int i) {
                  bench.backend().rope(out->view(i, y), in->view(i, x), cos->view(i, table),
                                       sin->view(i, table), interleaved);
                });
    };
    row("", by_head, by_head);
    row(" of tokens", by_token, by_head);
  }
}

void blocks(GpuBench& bench) {
  const int64_t rows = bench.size(16384, 8), k = bench.size(4096, 512);
  const Layout layout = Layout::contiguous({rows, k});
  for (const DType type : {DType::q4_0, DType::q8_0, DType::q4_k, DType::q6_k}) {
    const auto packed = bench.arrays(type, rows * k);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const auto floats = bench.arrays(dtype, rows * k);
      const double moved = bytes(type, rows * k) + bytes(dtype, rows * k);
      bench.row(fmt::format("dequantize.{}.{}{}", name(type), name(dtype), layout.shape().str()),
                moved, [&](int i) {
                  bench.backend().dequantize(floats->view(i, layout), packed->view(i, layout));
                });
      if (dtype != DType::f32) continue;
      bench.row(fmt::format("quantize.{}.{}{}", name(type), name(dtype), layout.shape().str()),
                moved, [&](int i) {
                  bench.backend().quantize(packed->view(i, layout), floats->view(i, layout));
                });
    }
  }
}

const bool added = add_rows([](GpuBench& bench) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) functions(bench, dtype);
  for (const DType dtype : {DType::bf16, DType::f16}) functions_in_cache(bench, dtype);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    broadcasts(bench, dtype);
    selects(bench, dtype);
    ropes(bench, dtype);
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::f64}) copies(bench, dtype);
  casts(bench);
  blocks(bench);
});

}  // namespace
}  // namespace wick::bench
