// Every op with kernels of several forms, on the GPUs that WICK_TEST_DEVICES names, with operands
// laid out in all ways that views make: reversed, stepped, transposed, repeated, overlapping, from
// any element on, with strides of dims of size 1 that mean nothing. Sizes are around those from
// which kernels take other forms. The reference sees dense copies, which this file makes by index
// arithmetic of its own: the CPU's bits, or sums in long double for products.
//
// Operands have memory of their own, of just their size, so that the software GPU's memory check
// sees what is read beside them, and numbers between their elements that would spoil a result.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>

#include "tests/backend/float_reference.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/attention.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::gpu {
namespace {

using Rng = std::mt19937;

std::vector<Device> devices() {
  std::vector<Device> all;
  const char* names = std::getenv("WICK_TEST_DEVICES");
  std::stringstream words(names == nullptr ? "" : names);
  for (std::string word; std::getline(words, word, ',');) all.push_back(Device::parse(word));
  return all;
}

/// Memory of a device, of so many bytes and no more.
class Memory {
 public:
  Memory(GpuBackend& gpu, size_t bytes) : gpu_(gpu.gpu()) {
    gpu_.enter();
    gpu_.check(gpu_.driver.api.mem_alloc(&data_, bytes), "a test's memory");
  }
  ~Memory() {
    gpu_.quiesce();
    gpu_.driver.api.mem_free(data_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return data_; }

 private:
  Gpu& gpu_;
  void* data_ = nullptr;
};

// ---- Layouts ----

/// What happens to the dims of an operand, in words and numbers.
struct Way {
  std::string name;
  std::vector<int64_t> strides;
  int64_t start = 0;  ///< elements in front of the lowest one
};

int64_t up_to(int64_t x, int64_t of) { return (x + of - 1) / of * of; }

/// The ways of a matrix. Outputs' don't repeat and don't overlap.
std::vector<Way> ways_of_matrix(int64_t rows, int64_t cols, bool is_output) {
  const int64_t even = up_to(cols, 8) + 8, tall = up_to(rows, 8);
  std::vector<Way> ways = {
      {"dense", {cols, 1}},
      {"rows reversed", {-cols, 1}},
      {"columns reversed", {cols, -1}},
      {"both reversed", {-cols, -1}},
      {"aligned rows", {even, 1}},
      {"aligned rows reversed", {-even, 1}},
      {"aligned rows from 8", {even, 1}, 8},
      {"from 1", {cols, 1}, 1},
      {"aligned rows from 1", {even, 1}, 1},
      {"odd rows", {cols + 1 + cols % 2, 1}},
      {"transposed", {1, rows}},
      {"transposed, aligned", {1, tall}},
      {"transposed, rows reversed", {-1, tall}},
      {"transposed, columns reversed", {1, -tall}},
      {"transposed from 1", {1, rows}, 1},
      {"every other column", {2 * cols, 2}},
      {"every other row", {2 * cols, 1}},
  };
  if (is_output) return ways;
  for (const Way& more : std::initializer_list<Way>{
           {"rows repeated", {0, 1}},
           {"columns repeated", {1, 0}},
           {"one element", {0, 0}},
           {"overlapping by one", {1, 1}},
           {"overlapping by one, reversed", {-1, 1}},
           {"overlapping by one, columns reversed", {1, -1}},
           {"overlapping by eight", {8, 1}},
           {"overlapping by eight, reversed", {-8, 1}},
           {"columns overlapping by eight", {1, 8}},
           {"columns overlapping by eight, reversed", {1, -8}},
       }) {
    ways.push_back(more);
  }
  return ways;
}

/// Strides that mean nothing, where there is one of something.
void spoil(const Shape& shape, std::vector<int64_t>& strides, Rng& random) {
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] != 1) continue;
    const int64_t some[] = {1, 0, -1, 3, (int64_t{1} << 33) + 1, -(int64_t{1} << 40) - 3};
    strides[static_cast<size_t>(d)] = some[random() % 6];
  }
}

/// The layout whose lowest element is `start` behind the storage's first.
Layout layout_of(const Shape& shape, const Way& way) {
  Layout::Strides strides{};
  int64_t offset = way.start;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t stride = way.strides[static_cast<size_t>(d)];
    strides[static_cast<size_t>(d)] = stride;
    if (stride < 0 && shape[d] > 1) offset -= stride * (shape[d] - 1);
  }
  return Layout(shape, strides, offset);
}

/// Any way at all. Outputs' elements are apart.
Way some_way(const Shape& shape, bool is_output, Rng& random) {
  const int rank = shape.rank();
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  if (random() % 3 == 0) std::shuffle(order.begin(), order.end(), random);
  Way way{"", std::vector<int64_t>(static_cast<size_t>(rank)), 0};
  int64_t step = random() % 8 == 0 ? 2 : 1;
  for (const int d : order) {
    int64_t& stride = way.strides[static_cast<size_t>(d)];
    stride = step;
    step *= std::max<int64_t>(shape[d], 1);
    if (random() % 5 == 0) step = up_to(step, 8);
    if (random() % 8 == 0) step += 1;
    if (random() % 12 == 0) step *= 2;
    if (!is_output && random() % 8 == 0) stride = 0;
    // Along another dim's elements: windows of a row.
    if (!is_output && random() % 8 == 0) stride = way.strides[static_cast<size_t>(order[0])];
    if (random() % 4 == 0) stride = -stride;
  }
  spoil(shape, way.strides, random);
  const int64_t starts[] = {0, 0, 1, 2, 8, 3};
  way.start = starts[random() % 6];
  return way;
}

/// Of a matrix one of the ways above, as often as any.
Way some_way_of_rows(const Shape& shape, bool is_output, Rng& random) {
  if (shape.rank() != 2 || random() % 2 == 0) return some_way(shape, is_output, random);
  const std::vector<Way> ways = ways_of_matrix(shape[0], shape[1], is_output);
  return ways[is_output && random() % 2 == 0 ? 0 : random() % ways.size()];
}

// ---- Operands ----

/// An operand on the host and on a device, and its elements as a dense copy.
class Placed {
 public:
  Placed(GpuBackend& gpu, DType dtype, const Shape& shape, const Way& way, uint64_t seed)
      : dtype_(dtype), layout_(gpu::layout_of(shape, way)), way_(way) {
    int64_t last = way.start;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] > 1) last += std::abs(layout_.stride(d)) * (shape[d] - 1);
    }
    // Kernels may read whole words and vectors of 16 bytes in which an element lies.
    const int64_t bytes = up_to((last + 1) * info(dtype).block_bytes, 16);
    storage_.resize(static_cast<size_t>(bytes), std::byte{0x7f});  // NaN, or large
    each([&](int64_t, int64_t at) {
      test::write_bits(dtype_, storage_.data(), at, bits_of(seed, at));
    });
    memory_ = std::make_unique<Memory>(gpu, storage_.size());
    dense_.resize(static_cast<size_t>(shape.elems() * info(dtype).block_bytes) + 1);
    send(gpu);
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return layout_.shape(); }
  const Layout& layout() const { return layout_; }
  View there() const { return {memory_->data(), dtype_, layout_}; }
  View dense() { return {dense_.data(), dtype_, Layout::contiguous(shape())}; }
  std::string str() const {
    return fmt::format("{} {} / {} from {}", name(dtype_), shape().str(),
                       fmt::join(way_.strides, " "), way_.start);
  }
  uint64_t dense_bits(int64_t i) const { return test::read_bits(dtype_, dense_.data(), i); }
  double value(int64_t i) const { return test::decode(dtype_, dense_bits(i)); }

  /// Sets elements by their row-major index; of several that lie in one place, the last one counts.
  void set(GpuBackend& gpu, const std::function<uint64_t(int64_t)>& bits) {
    each([&](int64_t i, int64_t at) { test::write_bits(dtype_, storage_.data(), at, bits(i)); });
    send(gpu);
  }
  /// What the device has written: elements in their order. Reports what it wrote beside them.
  std::vector<uint64_t> fetch(GpuBackend& gpu) {
    std::vector<std::byte> got(storage_.size());
    gpu.download(got.data(), memory_->data(), got.size());
    std::vector<uint64_t> bits(static_cast<size_t>(shape().elems()));
    std::vector<std::byte> rest = storage_;
    each([&](int64_t i, int64_t at) {
      bits[static_cast<size_t>(i)] = test::read_bits(dtype_, got.data(), at);
      test::write_bits(dtype_, rest.data(), at, bits[static_cast<size_t>(i)]);
    });
    EXPECT_TRUE(rest == got) << "bytes beside the output were written";
    return bits;
  }

 private:
  /// body(row-major index, place in elements)
  void each(const std::function<void(int64_t, int64_t)>& body) const {
    const Shape& s = shape();
    std::vector<int64_t> index(static_cast<size_t>(s.rank()));
    for (int64_t i = 0; i < s.elems(); ++i) {
      int64_t at = layout_.offset(), rest = i;
      for (int d = s.rank() - 1; d >= 0; --d) {
        if (s[d] > 1) at += rest % s[d] * layout_.stride(d);
        rest /= s[d];
      }
      body(i, at);
    }
  }
  uint64_t bits_of(uint64_t seed, int64_t at) const {
    return test::random_bits(dtype_, seed * 7919 + static_cast<uint64_t>(at));
  }
  void send(GpuBackend& gpu) {
    gpu.upload(memory_->data(), storage_.data(), storage_.size());
    each([&](int64_t i, int64_t at) {
      test::write_bits(dtype_, dense_.data(), i, test::read_bits(dtype_, storage_.data(), at));
    });
  }

  DType dtype_;
  Layout layout_;
  Way way_;
  std::vector<std::byte> storage_, dense_;
  std::unique_ptr<Memory> memory_;
};

bool is_nan(DType dtype, uint64_t bits) {
  return is_float(dtype) && std::isnan(test::decode(dtype, bits));
}

class GpuLayouts : public testing::Test {
 protected:
  void SetUp() override {
    if (devices().empty()) GTEST_SKIP() << "WICK_TEST_DEVICES names none";
  }
  template <class Body>
  void on_each(Body body) {
    for (const Device& device : devices()) {
      SCOPED_TRACE(device.str());
      body(backend_of(device));
      if (HasFailure()) return;
    }
  }

  using Inputs = std::vector<ConstView>;
  using Call = std::function<void(Backend&, const View& out, const Inputs& in)>;
  /// The op on the device as operands lie, and on the CPU with dense ones: equal bits.
  static void expect_cpu_bits(GpuBackend& gpu, std::string_view what, Placed& out,
                              std::initializer_list<Placed*> inputs, const Call& call) {
    std::string text = fmt::format("{} to {}", what, out.str());
    Inputs there, dense;
    for (Placed* in : inputs) {
      text += fmt::format(", {}", in->str());
      there.push_back(in->there());
      dense.push_back(in->dense());
    }
    SCOPED_TRACE(text);
    call(gpu, out.there(), there);
    const std::vector<uint64_t> got = out.fetch(gpu);
    call(cpu_, out.dense(), dense);
    for (size_t i = 0; i < got.size(); ++i) {
      const uint64_t want = out.dense_bits(static_cast<int64_t>(i));
      if (got[i] == want || (is_nan(out.dtype(), got[i]) && is_nan(out.dtype(), want))) continue;
      ADD_FAILURE() << "element " << i << ": " << std::hex << got[i] << " for " << want;
      return;
    }
  }
  static inline cpu::CpuBackend cpu_{cpu::available_isas().back()};
};

// ---- Products ----

/// a [.., m, k] times b [.., k, n] against sums in long double.
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

/// Around what few rows, few columns, vectors and tiles take.
constexpr std::array<int64_t, 3> kSizes[] = {
    {8, 8, 3}, {16, 12, 17}, {17, 8, 2},  {1, 16, 33},  {33, 16, 1},  {3, 64, 8},   {9, 24, 4},
    {2, 1, 5}, {1, 7, 1},    {32, 8, 32}, {20, 72, 34}, {65, 16, 66}, {70, 24, 36},
};

/// Each way of a with one of b and of the output, and the other way round.
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

/// Those that were found first, and rows that are as long as shared memory.
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

/// Activations, weights, residuals and results of linear, of floats.
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

/// Block weights whose rows lie backwards or apart, with activations, residuals and results of any
/// layout: the CPU's bits.
TEST_F(GpuLayouts, QuantizedWeights) {
  on_each([&](GpuBackend& gpu) {
    Rng random(4);
    uint64_t seed = 30'000;
    const DType types[] = {DType::q4_0, DType::q4_1, DType::q5_0,
                           DType::q8_0, DType::q4_k, DType::q6_k};
    for (int i = 0; i < 60; ++i) {
      const DType type = types[i % 6];
      const int64_t values = info(type).block_elems, blocks = values == 256 ? 1 : 2;
      const int64_t k = blocks * values, n = 5 + static_cast<int64_t>(random() % 3) * 15;
      const int64_t sizes[] = {1, 2, 5, 9, 17};
      const int64_t m = sizes[random() % 5], gap = random() % 2 == 0 ? k : 2 * k;
      // Storage of floats of the weights' values, then in blocks on the device.
      const int64_t row = random() % 2 == 0 ? gap : -gap;
      Placed values_of(gpu, DType::f32, {n, k}, {"", {k, 1}}, seed++);
      const Layout here({n, k}, {row, 1}, row < 0 ? (n - 1) * gap : 0);
      const auto bytes = static_cast<size_t>(((n - 1) * gap + k) / values * info(type).block_bytes);
      std::vector<std::byte> packed(bytes, std::byte{0x11});
      cpu_.quantize({packed.data(), type, here}, values_of.dense());
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

      // And as floats, all of them or some rows.
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
      // Back to blocks from any layout.
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

// ---- Attention ----

struct Attention {
  int64_t b, h, g, m, n, d, e;
};

TEST_F(GpuLayouts, Attention) {
  const Attention shapes[] = {
      {1, 2, 1, 1, 9, 8, 8},    {1, 2, 2, 5, 6, 3, 4},  {2, 4, 2, 3, 16, 16, 16},
      {1, 2, 2, 9, 20, 8, 16},  {1, 1, 1, 1, 1, 8, 8},  {1, 2, 2, 4, 0, 8, 8},
      {1, 4, 1, 2, 300, 8, 32}, {2, 1, 1, 1, 24, 1, 2}, {1, 2, 1, 17, 40, 24, 8},
  };
  on_each([&](GpuBackend& gpu) {
    for (const AttentionStaging staging :
         {AttentionStaging::where_copies_run_alone, AttentionStaging::always}) {
      attention_staging = staging;
      Rng random(5);
      uint64_t seed = 40'000;
      for (int i = 0; i < 60 * static_cast<int>(std::size(shapes)); ++i) {
        const Attention& s = shapes[static_cast<size_t>(i) % std::size(shapes)];
        const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
        const DType cache = dtypes[random() % 3];
        const DType of_q = random() % 2 == 0 ? DType::f32 : cache;
        const Shape q{s.b, s.h, s.m, s.d}, k{s.b, s.g, s.n, s.d}, v{s.b, s.g, s.n, s.e},
            y{s.b, s.h, s.m, s.e};
        // As caches hold them, some dims reversed or overlapping; or in any other way.
        const auto turn = [&](int64_t stride) { return random() % 3 == 0 ? -stride : stride; };
        const int64_t keys = up_to(s.n, 8) + 8, heads = s.d * keys, wide = up_to(s.e, 8);
        const int64_t starts[] = {0, 0, 8, 1, 2, 4};
        const int64_t step = random() % 6 == 0 ? 8 : keys;
        Way way_k{"",
                  {turn(heads * s.g), turn(heads), random() % 8 == 0 ? -1 : 1, turn(step)},
                  starts[random() % 6]};
        Way way_v{
            "", {turn(wide * s.g * s.n), turn(wide), turn(wide * s.g), 1}, starts[random() % 6]};
        if (random() % 5 == 0) way_k = some_way(k, false, random);
        if (random() % 5 == 0) way_v = some_way(v, false, random);
        spoil(k, way_k.strides, random);
        spoil(v, way_v.strides, random);
        Placed pq(gpu, of_q, q, some_way(q, false, random), seed++);
        Placed pk(gpu, cache, k, way_k, seed++), pv(gpu, cache, v, way_v, seed++);
        Placed out(gpu, of_q, y, some_way(y, true, random), seed++);
        AttentionParams params{.scale = 0.3f};
        params.causal = random() % 2 == 0;
        params.window = random() % 4 == 0 ? 5 : 0;
        expect_cpu_bits(gpu, fmt::format("{}: attention", i), out, {&pq, &pk, &pv},
                        [&](Backend& on, const View& to, const Inputs& in) {
                          on.attention(to, in[0], in[1], in[2], params, {});
                        });
        if (HasFailure()) break;
      }
    }
    attention_staging = AttentionStaging::where_copies_run_alone;
  });
}

/// Rows, caches and tables of cached_attention: what is written to the caches, too.
TEST_F(GpuLayouts, CachedAttention) {
  on_each([&](GpuBackend& gpu) {
    for (const AttentionStaging staging :
         {AttentionStaging::where_copies_run_alone, AttentionStaging::always}) {
      attention_staging = staging;
      Rng random(6);
      uint64_t seed = 50'000;
      for (int i = 0; i < 300; ++i) {
        const int64_t g = 1 + static_cast<int64_t>(random() % 2), h = g * 2, d = 8, e = 16;
        const int64_t ts[] = {1, 2, 5, 12}, t = ts[random() % 4], room = 24;
        const uint32_t first = static_cast<uint32_t>(random() % (static_cast<size_t>(room - t)));
        const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
        const DType cache = dtypes[random() % 3];
        const Shape keys{g, room, d}, values{g, room, e}, rows{t, h * d + g * (d + e)};
        const auto turn = [&](int64_t stride) { return random() % 3 == 0 ? -stride : stride; };
        const int64_t starts[] = {0, 0, 8, 1};
        Way way_k{
            "", {turn(room * d), random() % 8 == 0 ? -1 : 1, turn(room)}, starts[random() % 4]};
        Way way_v{"", {turn(room * e), turn(e), 1}, starts[random() % 4]};
        if (random() % 5 == 0) way_k = some_way(keys, true, random);
        if (random() % 5 == 0) way_v = some_way(values, true, random);
        spoil(keys, way_k.strides, random);
        spoil(values, way_v.strides, random);
        Placed pk(gpu, cache, keys, way_k, seed++), pv(gpu, cache, values, way_v, seed++);
        Placed qkv(gpu, DType::f32, rows, some_way(rows, false, random), seed++);
        const Shape table{room, d / 2};
        Placed cos(gpu, DType::f32, table, some_way(table, false, random), seed++);
        Placed sin(gpu, DType::f32, table, some_way(table, false, random), seed++);
        Placed positions(gpu, DType::u32, {t}, {"", {1}}, seed++);
        positions.set(gpu, [&](int64_t j) { return first + static_cast<uint64_t>(j); });
        const Shape y{t, h * e};
        Placed out(gpu, DType::f32, y, some_way(y, true, random), seed++);
        const std::string what = fmt::format("{}: keys {} values {}", i, pk.str(), pv.str());
        expect_cpu_bits(gpu, what, out, {&qkv, &cos, &sin, &positions},
                        [&](Backend& on, const View& to, const Inputs& in) {
                          const bool device = &on == &gpu;
                          CachedAttention where;
                          where.cos = in[1], where.sin = in[2], where.positions = in[3];
                          where.keys = device ? pk.there() : pk.dense();
                          where.values = device ? pv.there() : pv.dense();
                          where.params = {.scale = 0.3f};
                          where.params.causal = true;
                          on.cached_attention(to, in[0], where);
                        });
        for (Placed* stored : {&pk, &pv}) {
          const std::vector<uint64_t> got = stored->fetch(gpu);
          for (size_t j = 0; j < got.size(); ++j) {
            ASSERT_EQ(got[j], stored->dense_bits(static_cast<int64_t>(j))) << what << " " << j;
          }
        }
        if (HasFailure()) break;
      }
    }
    attention_staging = AttentionStaging::where_copies_run_alone;
  });
}

/// Sequences without keys and without queries among others, heads reversed.
TEST_F(GpuLayouts, AttentionOfLengths) {
  for (const Device& device : devices()) {
    for (const AttentionStaging staging :
         {AttentionStaging::where_copies_run_alone, AttentionStaging::always}) {
      attention_staging = staging;
      const auto numbers = [](const Shape& shape, uint64_t seed) {
        std::vector<float> all(static_cast<size_t>(shape.elems()));
        for (size_t i = 0; i < all.size(); ++i) {
          all[i] =
              static_cast<float>(test::decode(DType::f32, test::random_bits(DType::f32, seed + i)));
        }
        return Tensor::from(all, shape);
      };
      const auto attend = [&](Device on) {
        const Tensor q = numbers({1, 4, 3}, 1).to(on).broadcast_to({16, 4, 3});
        const Tensor k = numbers({3, 2, 20}, 100).to(on).transpose(0, 2);
        const Tensor v = numbers({20, 2, 4}, 300).to(on).slice(1, 1, -3, -1);
        EXPECT_EQ(v.layout().stride(1), -4);
        const int64_t queries[] = {0, 5, 5, 10, 16}, keys[] = {0, 6, 15, 20, 20};
        AttentionParams params{.scale = 0.5f};
        params.causal = true;
        return attention_of_lengths(q, k, v, queries, keys, params).to(Device::cpu());
      };
      const std::vector<float> got = attend(device).to_vector<float>();
      EXPECT_EQ(got, attend(Device::cpu()).to_vector<float>());
    }
    attention_staging = AttentionStaging::where_copies_run_alone;
  }
}

// ---- Elements and rows ----

const Shape kShapes[] = {
    {33},    {7, 5},  {3, 16},  {4, 64},    {2, 3, 24}, {16, 3},
    {1, 40}, {40, 1}, {65, 33}, {2, 70, 8}, {24, 40},   {64, 16},
};
constexpr std::array kElements = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3,
                                  DType::u8,  DType::i16, DType::i64,  DType::f64};

TEST_F(GpuLayouts, Elements) {
  on_each([&](GpuBackend& gpu) {
    Rng random(7);
    uint64_t seed = 60'000;
    for (int i = 0; i < 900; ++i) {
      const Shape& shape = kShapes[static_cast<size_t>(i) % std::size(kShapes)];
      const DType dtype = kElements[random() % kElements.size()];
      const DType other = kElements[random() % kElements.size()];
      const auto input = [&](DType of) {
        return Placed(gpu, of, shape, some_way_of_rows(shape, false, random), seed++);
      };
      const auto output = [&](DType of) {
        return Placed(gpu, of, shape, some_way_of_rows(shape, true, random), seed++);
      };
      Placed a = input(dtype), b = input(dtype), c = input(DType::u8);
      Placed y = output(dtype), truth = output(DType::u8), z = output(other);
      c.set(gpu, [](int64_t j) { return static_cast<uint64_t>(j * 5 / 3 % 2); });
      switch (i % 6) {
        case 0:
          expect_cpu_bits(gpu, "add", y, {&a, &b},
                          [](Backend& on, const View& to, const Inputs& in) {
                            on.binary(Op::add, to, in[0], in[1]);
                          });
          break;
        case 1:
          expect_cpu_bits(gpu, "neg", y, {&a}, [](Backend& on, const View& to, const Inputs& in) {
            on.unary(Op::neg, to, in[0]);
          });
          break;
        case 2:
          expect_cpu_bits(gpu, "copy", y, {&a}, [](Backend& on, const View& to, const Inputs& in) {
            on.copy(to, in[0]);
          });
          break;
        case 3:
          expect_cpu_bits(gpu, "lt", truth, {&a, &b},
                          [](Backend& on, const View& to, const Inputs& in) {
                            on.compare(Op::lt, to, in[0], in[1]);
                          });
          break;
        case 4:
          expect_cpu_bits(gpu, "cast", z, {&a}, [](Backend& on, const View& to, const Inputs& in) {
            on.cast(to, in[0]);
          });
          break;
        default:
          expect_cpu_bits(gpu, "where", y, {&c, &a, &b},
                          [](Backend& on, const View& to, const Inputs& in) {
                            on.where(to, in[0], in[1], in[2]);
                          });
          expect_cpu_bits(gpu, "fill", y, {},
                          [](Backend& on, const View& to, const Inputs&) { on.fill(to, 3); });
          expect_cpu_bits(gpu, "iota", y, {},
                          [](Backend& on, const View& to, const Inputs&) { on.iota(to, 1, 1); });
      }
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, Reductions) {
  const Shape shapes[] = {{9, 130}, {4, 512}, {130, 9}, {5, 6, 32}, {40, 128}, {3, 4, 5}, {2, 600}};
  on_each([&](GpuBackend& gpu) {
    Rng random(8);
    uint64_t seed = 70'000;
    for (int i = 0; i < 630; ++i) {
      const Shape& shape = shapes[static_cast<size_t>(i) % std::size(shapes)];
      const DType dtype = kElements[random() % kElements.size()];
      const int dim = static_cast<int>(random()) & 1;
      uint32_t dims = 1u << dim;
      if (shape.rank() == 3 && random() % 2 == 0) dims |= 4;
      Shape reduced = shape;
      for (int d = 0; d < shape.rank(); ++d) {
        if ((dims >> d & 1) != 0) reduced = reduced.with(d, 1);
      }
      Placed x(gpu, dtype, shape, some_way_of_rows(shape, false, random), seed++);
      Placed y(gpu, dtype, reduced, some_way(reduced, true, random), seed++);
      const Op op = i % 3 == 0 ? Op::sum : i % 3 == 1 ? Op::max : Op::min;
      expect_cpu_bits(gpu, name(op), y, {&x}, [&](Backend& on, const View& to, const Inputs& in) {
        on.reduce(op, to, in[0], dims);
      });
      const Shape one = shape.with(dim, 1);
      Placed places(gpu, DType::u32, one, some_way(one, true, random), seed++);
      expect_cpu_bits(gpu, "argmax", places, {&x},
                      [&](Backend& on, const View& to, const Inputs& in) {
                        on.arg_reduce(Op::argmax, to, in[0], dim);
                      });
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, RowsThatBecomeRows) {
  const Shape shapes[] = {{9, 130}, {3, 512}, {5, 4, 32}, {2, 288}, {24, 136}, {3, 8, 8}};
  on_each([&](GpuBackend& gpu) {
    Rng random(9);
    uint64_t seed = 80'000;
    for (int i = 0; i < 600; ++i) {
      const Shape& shape = shapes[random() % std::size(shapes)];
      const DType dtypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
      const DType dtype = dtypes[random() % 4];
      const int last = shape.rank() - 1;
      const DType of_weight = random() % 2 == 0 && dtype != DType::f64 ? DType::f32 : dtype;
      const Shape row{shape[last]};
      Placed x(gpu, dtype, shape, some_way_of_rows(shape, false, random), seed++);
      Placed y(gpu, dtype, shape, some_way_of_rows(shape, true, random), seed++);
      Placed w(gpu, of_weight, row, some_way(row, false, random), seed++);
      Placed bias(gpu, of_weight, row, some_way(row, false, random), seed++);
      if (i % 4 < 2) {
        const int dim = static_cast<int>(random() % static_cast<size_t>(shape.rank()));
        expect_cpu_bits(gpu, fmt::format("softmax along {}", dim), y, {&x},
                        [&](Backend& on, const View& to, const Inputs& in) {
                          on.softmax(to, in[0], dim, i % 4 == 1);
                        });
      } else if (i % 4 == 2) {
        expect_cpu_bits(gpu, "rms_norm", y, {&x, &w},
                        [](Backend& on, const View& to, const Inputs& in) {
                          on.rms_norm(to, in[0], in[1], 1e-5f);
                        });
      } else {
        expect_cpu_bits(gpu, "layer_norm", y, {&x, &w, &bias},
                        [](Backend& on, const View& to, const Inputs& in) {
                          on.layer_norm(to, in[0], in[1], in[2], 1e-5f);
                        });
      }
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, LogitsAndHistories) {
  on_each([&](GpuBackend& gpu) {
    Rng random(11);
    uint64_t seed = 95'000;
    for (int i = 0; i < 60; ++i) {
      const int64_t counts[] = {5, 128, 131, 2050}, count = counts[i % 4];
      const Way ways[] = {{"", {1}}, {"", {-1}}, {"", {2}}, {"", {1}, 1}, {"", {-3}, 2}};
      const Way of_one[] = {{"", {-7}}, {"", {1}, 1}};
      Placed logits(gpu, DType::f32, {count}, ways[random() % 5], seed++);
      Placed history(gpu, DType::u32, {6}, ways[random() % 5], seed++);
      Placed state(gpu, DType::u32, {2}, ways[random() % 5], seed++);
      Placed token(gpu, DType::u32, {1}, of_one[random() % 2], seed++);
      Placed position(gpu, DType::u32, {1}, of_one[random() % 2], seed++);
      history.set(gpu, [](int64_t j) { return static_cast<uint64_t>(j % 3); });
      state.set(gpu, [](int64_t j) { return j == 0 ? 3u : 1u; });
      position.set(gpu, [](int64_t) { return 9u; });
      SamplerOptions options;
      options.temperature = i % 2 == 0 ? 0.0f : 0.8f;
      options.seed = seed;
      if (i % 3 == 0) options.repetition_penalty = 1.5f;
      const std::string what =
          fmt::format("{}: history {} counts {}", i, history.str(), state.str());
      expect_cpu_bits(
          gpu, what, token, {&logits}, [&](Backend& on, const View& to, const Inputs& in) {
            const auto of = [&](Placed& x) { return &on == &gpu ? x.there() : x.dense(); };
            on.sample({to, of(position), of(history), of(state)}, in[0], options);
          });
      for (Placed* changed : {&history, &state, &position}) {
        const std::vector<uint64_t> got = changed->fetch(gpu);
        for (size_t j = 0; j < got.size(); ++j) {
          ASSERT_EQ(got[j], changed->dense_bits(static_cast<int64_t>(j))) << what << " " << j;
        }
      }
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, RotationsAndSlices) {
  on_each([&](GpuBackend& gpu) {
    Rng random(10);
    uint64_t seed = 90'000;
    for (int i = 0; i < 450; ++i) {
      const DType dtype = std::array{DType::f32, DType::f16, DType::bf16, DType::f64}[random() % 4];
      const int64_t d = std::array<int64_t, 4>{16, 32, 6, 24}[random() % 4];
      const Shape shape{2, 5, d}, table{5, random() % 3 == 0 ? d / 2 - 1 : d / 2};
      Placed x(gpu, dtype, shape, some_way(shape, false, random), seed++);
      Placed y(gpu, dtype, shape, some_way(shape, true, random), seed++);
      Placed cos(gpu, DType::f32, table, some_way(table, false, random), seed++);
      Placed sin(gpu, DType::f32, table, some_way(table, false, random), seed++);
      expect_cpu_bits(gpu, i % 2 == 0 ? "rope" : "rope, interleaved", y, {&x, &cos, &sin},
                      [&](Backend& on, const View& to, const Inputs& in) {
                        on.rope(to, in[0], in[1], in[2], i % 2 == 1);
                      });
      // Slices along either dim.
      const DType element = kElements[random() % kElements.size()];
      const int dim = static_cast<int>(random() % 2);
      const Shape from{9, 16}, to = from.with(dim, 6);
      Placed source(gpu, element, from, some_way(from, false, random), seed++);
      Placed chosen(gpu, element, to, some_way(to, true, random), seed++);
      const Way ways[] = {{"", {1}}, {"", {-1}}, {"", {3}, 1}};
      Placed ids(gpu, DType::i64, {6}, ways[random() % 3], seed++);
      ids.set(gpu, [&](int64_t j) { return static_cast<uint64_t>(j * 5 % 9); });
      expect_cpu_bits(gpu, fmt::format("index_select along {}", dim), chosen, {&source, &ids},
                      [&](Backend& on, const View& out, const Inputs& in) {
                        on.index_select(out, in[0], in[1], dim);
                      });
      if (HasFailure()) return;
    }
  });
}

}  // namespace
}  // namespace wick::gpu
