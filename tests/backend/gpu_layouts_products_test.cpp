// Matrix products and block weights on the GPUs that WICK_TEST_DEVICES names, with operands of
// every layout. The sizes are near the thresholds between kernels. References are sums in long
// double, or the bits of the CPU with dense operands.

#include "tests/backend/block_reference.h"
#include "tests/backend/gpu_layouts.h"

namespace wick::gpu {
namespace {

// ---- Products ----

/// Compares the product of a [.., m, k] and b [.., k, n] with sums in long double.
void expect_product(GpuBackend& gpu, std::string_view what, Placed& out, Placed& a, Placed& b,
                    const std::function<void()>& call, bool b_by_rows = false,
                    Placed* residual = nullptr) {
  SCOPED_TRACE(fmt::format("{}: {} by {} to {}", what, a.str(), b.str(), out.str()));
  call();
  const std::vector<uint64_t> got = out.fetch(gpu);
  const Shape &y = out.shape(), &x = a.shape();
  const int last = y.rank() - 1;
  const int64_t m = y[last - 1], n = y[last], k = x[last], b_elems = k * n;
  const bool shared = b.shape().rank() == 2;
  for (int64_t i = 0; i < y.elems(); ++i) {
    const int64_t z = i / (m * n), r = i / n % m, c = i % n, from = shared ? 0 : z * b_elems;
    test::Truth truth;
    uint64_t whole = 0;
    for (int64_t p = 0; p < k; ++p) {
      const int64_t at_a = (z * m + r) * k + p, at_b = from + (b_by_rows ? c * k + p : p * n + c);
      if (is_integer(out.dtype())) {
        whole += a.dense_bits(at_a) * b.dense_bits(at_b);
        continue;
      }
      const long double v = static_cast<long double>(a.value(at_a)) * b.value(at_b);
      truth.value += v, truth.magnitude += std::fabs(v);
    }
    const uint64_t bits = got[static_cast<size_t>(i)];
    if (is_integer(out.dtype())) {
      const int size = info(out.dtype()).block_bytes * 8;
      const uint64_t mask = size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1;
      if ((whole & mask) == bits) continue;
      ADD_FAILURE() << "element " << i << ": " << bits << " for " << (whole & mask);
      return;
    }
    if (residual != nullptr) {
      truth.value += residual->value(i), truth.magnitude += std::fabs(residual->value(i));
    }
    const std::string wrong =
        test::outside_bound(out.dtype(), test::decode(out.dtype(), bits), truth, k);
    if (wrong.empty()) continue;
    ADD_FAILURE() << "element " << i << ": " << wrong;
    return;
  }
}

void multiply(GpuBackend& gpu, DType dtype, const Shape& out_shape, const Shape& a_shape,
              const Shape& b_shape, const Way& to, const Way& way_a, const Way& way_b,
              uint64_t seed) {
  Placed a(gpu, dtype, a_shape, way_a, seed), b(gpu, dtype, b_shape, way_b, seed + 1);
  Placed out(gpu, dtype, out_shape, to, seed + 2);
  expect_product(gpu, fmt::format("{}: {} by {} to {}", seed, way_a.name, way_b.name, to.name), out,
                 a, b, [&] { gpu.matmul(out.there(), a.there(), b.there()); });
}

/// Sizes near the limits for few rows, few columns, vectors and tiles.
constexpr std::array<int64_t, 3> kSizes[] = {
    {8, 8, 3}, {16, 12, 17}, {17, 8, 2},  {1, 16, 33},  {33, 16, 1},  {3, 64, 8},   {9, 24, 4},
    {2, 1, 5}, {1, 7, 1},    {32, 8, 32}, {20, 72, 34}, {65, 16, 66}, {70, 24, 36},
};

/// Combines each layout of a with one of b and of the output, and vice versa.
TEST_F(GpuLayouts, MatrixProducts) {
  on_each([&](GpuBackend& gpu) {
    Rng random(1);
    uint64_t seed = 1;
    for (const auto& [m, k, n] : kSizes) {
      const std::vector<Way> ways_a = ways_of_matrix(m, k, false),
                             ways_b = ways_of_matrix(k, n, false),
                             ways_out = ways_of_matrix(m, n, true);
      const bool large = m * k * n > 8000;
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const size_t turn = random();
        for (size_t i = 0; i < ways_a.size(); i += large ? 3 : 1) {
          const size_t j = (i * 5 + turn) % ways_b.size();
          Way a = ways_a[i], b = ways_b[j], to = ways_out[(i + turn) % ways_out.size()];
          if (random() % 2 == 0) to = ways_out[0];
          const Shape shape_a{m, k}, shape_b{k, n}, shape_out{m, n};
          spoil(shape_a, a.strides, random);
          spoil(shape_b, b.strides, random);
          spoil(shape_out, to.strides, random);
          multiply(gpu, dtype, shape_out, shape_a, shape_b, to, a, b, seed++);
          multiply(gpu, dtype, {n, m}, {n, k}, {k, m}, {"dense", {m, 1}},
                   {"", {b.strides[1], b.strides[0]}, b.start},
                   {"", {a.strides[1], a.strides[0]}, a.start}, seed++);
          if (HasFailure()) return;
        }
      }
    }
  });
}

/// Layouts that once failed, and rows as long as shared memory.
TEST_F(GpuLayouts, MatrixProductsWithReversedOperands) {
  on_each([&](GpuBackend& gpu) {
    uint64_t seed = 5000;
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{8, 300, 7}, {8, 8, 3}, {5, 8192, 1}}) {
      const std::vector<Way> ways_a = ways_of_matrix(m, k, false);
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (size_t i = 0; i < 6; ++i) {
          const Way dense{"dense", {n, 1}}, reversed{"columns reversed", {n, -1}};
          multiply(gpu, dtype, {m, n}, {m, k}, {k, n}, dense, ways_a[i], reversed, seed++);
          multiply(gpu, dtype, {m, n}, {m, k}, {k, n}, dense, ways_a[i], dense, seed++);
          if (HasFailure()) return;
        }
      }
    }
    for (const DType dtype : {DType::u8, DType::i16, DType::i32, DType::i64, DType::f64}) {
      for (const Way& way : ways_of_matrix(9, 24, false)) {
        const Way of_b{"", {way.strides[1], way.strides[0]}, way.start};
        multiply(gpu, dtype, {9, 9}, {9, 24}, {24, 9}, {"dense", {9, 1}}, way, of_b, seed++);
        if (HasFailure()) return;
      }
    }
  });
}

TEST_F(GpuLayouts, BatchesOfMatrixProducts) {
  on_each([&](GpuBackend& gpu) {
    Rng random(2);
    uint64_t seed = 10'000;
    for (int i = 0; i < 500; ++i) {
      const auto& [m, k, n] = kSizes[random() % 8];
      const int64_t z = 1 + static_cast<int64_t>(random() % 3);
      const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
      const Shape a{z, m, k}, b{z, k, n}, out{z, m, n};
      multiply(gpu, dtypes[random() % 3], out, a, b, some_way(out, true, random),
               some_way(a, false, random), some_way(b, false, random), seed++);
      if (HasFailure()) return;
    }
  });
}

/// Activations, weights, residuals and results of linear with float weights.
TEST_F(GpuLayouts, LinearWithFloatWeights) {
  on_each([&](GpuBackend& gpu) {
    Rng random(3);
    uint64_t seed = 20'000;
    const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
    for (int i = 0; i < 480; ++i) {
      const auto& [m, k, n] = kSizes[random() % std::size(kSizes)];
      const DType dtype = i % 4 == 0 ? DType::f32 : dtypes[random() % 3];
      const bool adds = dtype == DType::f32 && random() % 2 == 0;
      const std::vector<Way> ways_x = ways_of_matrix(m, k, false),
                             ways_w = ways_of_matrix(n, k, false),
                             ways_y = ways_of_matrix(m, n, true),
                             ways_r = ways_of_matrix(m, n, false);
      Placed x(gpu, dtype, {m, k}, ways_x[random() % ways_x.size()], seed++);
      Placed w(gpu, dtype, {n, k}, ways_w[random() % ways_w.size()], seed++);
      Placed y(gpu, dtype, {m, n}, ways_y[random() % ways_y.size()], seed++);
      Placed r(gpu, DType::f32, {m, n}, ways_r[random() % ways_r.size()], seed++);
      const ConstView parts[] = {w.there()};
      const auto weight = gpu.prepare(parts, false);
      LinearFusion fusion;
      fusion.add = adds;
      if (adds) fusion.residual = r.there();
      expect_product(
          gpu, fmt::format("{}: linear, residual {} {}", seed, adds, r.str()), y, x, w,
          [&] { gpu.linear(y.there(), x.there(), *weight, fusion); }, true, adds ? &r : nullptr);
      if (HasFailure()) return;
    }
  });
}

/// Block weights whose rows are reversed or apart, with activations, residuals and results of any
/// layout. The result must have the CPU's bits.
TEST_F(GpuLayouts, QuantizedWeights) {
  on_each([&](GpuBackend& gpu) {
    Rng random(4);
    uint64_t seed = 30'000;
    for (size_t i = 0; i < 10 * kQuants.size(); ++i) {
      const QuantInfo& quant = kQuants[i % kQuants.size()];
      const DType type = quant.dtype;
      const int64_t values = info(type).block_elems, blocks = values == 256 ? 1 : 2;
      const int64_t k = blocks * values, n = 5 + static_cast<int64_t>(random() % 3) * 15;
      const int64_t sizes[] = {1, 2, 5, 9, 17};
      const int64_t m = sizes[random() % 5], gap = random() % 2 == 0 ? k : 2 * k;
      // The weights as floats first, then as blocks on the device.
      const int64_t row = random() % 2 == 0 ? gap : -gap;
      Placed values_of(gpu, DType::f32, {n, k}, {"", {k, 1}}, seed++);
      const Layout here({n, k}, {row, 1}, row < 0 ? (n - 1) * gap : 0);
      const auto bytes = static_cast<size_t>(((n - 1) * gap + k) / values * info(type).block_bytes);
      std::vector<std::byte> packed(bytes, std::byte{0x11});
      if (dtypes::kWrittenBlocks.contains(type)) {
        cpu_.quantize({packed.data(), type, here}, values_of.dense());
      } else {  // random bits with finite scales
        for (std::byte& b : packed) b = static_cast<std::byte>(random() % 256);
        for (size_t at = 0; at < bytes; at += static_cast<size_t>(info(type).block_bytes)) {
          reference::write_scales(type, reinterpret_cast<uint8_t*>(&packed[at]), 0x2801, 0x2403);
        }
      }
      const Memory memory(gpu, bytes + (16 - bytes % 16) % 16);
      gpu.upload(memory.data(), packed.data(), bytes);
      const ConstView on_device[] = {{memory.data(), type, here}};
      const ConstView on_host[] = {{packed.data(), type, here}};
      const auto weight = gpu.prepare(on_device, false);
      const auto cpu_weight = cpu_.prepare(on_host, false);
      const std::vector<Way> ways_x = ways_of_matrix(m, k, false),
                             ways_y = ways_of_matrix(m, n, true),
                             ways_r = ways_of_matrix(m, n, false);
      const bool adds = random() % 2 == 0;
      Placed x(gpu, DType::f32, {m, k}, ways_x[random() % ways_x.size()], seed++);
      Placed y(gpu, DType::f32, {m, n}, ways_y[random() % ways_y.size()], seed++);
      Placed r(gpu, DType::f32, {m, n}, ways_r[random() % ways_r.size()], seed++);
      expect_cpu_bits(gpu, fmt::format("linear by {} rows {}", name(type), row), y, {&x, &r},
                      [&](Backend& on, const View& to, const Inputs& in) {
                        LinearFusion fusion;
                        fusion.add = adds;
                        if (adds) fusion.residual = in[1];
                        on.linear(to, in[0], &on == &gpu ? *weight : *cpu_weight, fusion);
                      });

      // Also decodes to floats: all rows, or some of them.
      const DType to = random() % 2 == 0 ? DType::f32 : DType::f16;
      const std::vector<Way> ways_f = ways_of_matrix(n, k, true);
      Placed floats(gpu, to, {n, k}, ways_f[random() % ways_f.size()], seed++);
      expect_cpu_bits(gpu, fmt::format("dequantize {} rows {}", name(type), row), floats, {},
                      [&](Backend& on, const View& out, const Inputs&) {
                        on.dequantize(out, &on == &gpu ? on_device[0] : on_host[0]);
                      });
      const Way ids_ways[] = {{"", {1}}, {"", {-1}}, {"", {2}, 1}, {"", {0}}};
      Placed ids(gpu, DType::u32, {n}, ids_ways[random() % 4], seed++);
      ids.set(gpu, [&](int64_t j) { return static_cast<uint64_t>((j * 7 + 3) % n); });
      expect_cpu_bits(gpu, fmt::format("index_select {} rows {}", name(type), row), floats, {&ids},
                      [&](Backend& on, const View& out, const Inputs& in) {
                        on.index_select(out, &on == &gpu ? on_device[0] : on_host[0], in[0], 0);
                      });
      // Quantizes back to blocks from any layout.
      if (!dtypes::kWrittenBlocks.contains(type)) continue;
      Placed source(gpu, to, {n, k}, ways_of_matrix(n, k, false)[random() % 27], seed++);
      std::vector<std::byte> want(bytes, std::byte{0x22}), got(bytes);
      gpu.upload(memory.data(), want.data(), bytes);
      gpu.quantize({memory.data(), type, here}, source.there());
      gpu.download(got.data(), memory.data(), bytes);
      cpu_.quantize({want.data(), type, here}, source.dense());
      EXPECT_TRUE(got == want) << "quantize " << name(type) << " " << source.str();
      if (HasFailure()) return;
    }
  });
}

}  // namespace
}  // namespace wick::gpu
