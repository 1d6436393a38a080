#pragma once

// Operands with all layouts that views produce: reversed, strided, transposed, broadcast and
// overlapping ones, starting at any element, with meaningless strides of size-1 dims. Each operand
// has its own memory of exactly its size, so that the software GPU's memory check detects reads
// beyond it. The gaps between elements hold values that would spoil a result.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "tests/backend/float_reference.h"
#include "tests/test_devices.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {

using Rng = std::mt19937;

/// Device memory of exactly `bytes` bytes.
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

/// The layout of an operand's dims, with a name.
struct Way {
  std::string name;
  std::vector<int64_t> strides;
  int64_t start = 0;  ///< elements before the lowest one
};

inline int64_t up_to(int64_t x, int64_t of) { return (x + of - 1) / of * of; }

/// Returns the layouts of a matrix. Layouts of outputs neither repeat nor overlap elements.
inline std::vector<Way> ways_of_matrix(int64_t rows, int64_t cols, bool is_output) {
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

/// Sets the strides of size-1 dims, which are meaningless, to odd numbers.
inline void spoil(const Shape& shape, std::vector<int64_t>& strides, Rng& random) {
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] != 1) continue;
    const int64_t some[] = {1, 0, -1, 3, (int64_t{1} << 33) + 1, -(int64_t{1} << 40) - 3};
    strides[static_cast<size_t>(d)] = some[random() % 6];
  }
}

/// Returns the layout whose lowest element is `start` elements after the storage's first.
inline Layout layout_of(const Shape& shape, const Way& way) {
  Layout::Strides strides{};
  int64_t offset = way.start;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t stride = way.strides[static_cast<size_t>(d)];
    strides[static_cast<size_t>(d)] = stride;
    if (stride < 0 && shape[d] > 1) offset -= stride * (shape[d] - 1);
  }
  return Layout(shape, strides, offset);
}

/// Returns a random layout. Elements of outputs don't overlap.
inline Way some_way(const Shape& shape, bool is_output, Rng& random) {
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
    // The dim steps along another dim's elements, like sliding windows of a row.
    if (!is_output && random() % 8 == 0) stride = way.strides[static_cast<size_t>(order[0])];
    if (random() % 4 == 0) stride = -stride;
  }
  spoil(shape, way.strides, random);
  const int64_t starts[] = {0, 0, 1, 2, 8, 3};
  way.start = starts[random() % 6];
  return way;
}

/// Returns one of the matrix layouts above for half of all matrices, and a random layout otherwise.
inline Way some_way_of_rows(const Shape& shape, bool is_output, Rng& random) {
  if (shape.rank() != 2 || random() % 2 == 0) return some_way(shape, is_output, random);
  const std::vector<Way> ways = ways_of_matrix(shape[0], shape[1], is_output);
  return ways[is_output && random() % 2 == 0 ? 0 : random() % ways.size()];
}

// ---- Operands ----

/// An operand on the host and on a device, with its elements also as a dense copy.
class Placed {
 public:
  Placed(GpuBackend& gpu, DType dtype, const Shape& shape, const Way& way, uint64_t seed)
      : dtype_(dtype), layout_(gpu::layout_of(shape, way)), way_(way) {
    int64_t last = way.start;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] > 1) last += std::abs(layout_.stride(d)) * (shape[d] - 1);
    }
    // Kernels may read the whole word or 16-byte vector that contains an element.
    const int64_t bytes = up_to((last + 1) * info(dtype).block_bytes, 16);
    storage_.resize(static_cast<size_t>(bytes), std::byte{0x7f});  // NaN, or a large number
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

  /// Sets elements by row-major index. If several elements share memory, the last one counts.
  void set(GpuBackend& gpu, const std::function<uint64_t(int64_t)>& bits) {
    each([&](int64_t i, int64_t at) { test::write_bits(dtype_, storage_.data(), at, bits(i)); });
    send(gpu);
  }
  /// Returns the elements that the device has written, in order. Reports writes outside them.
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
  /// Calls body(row-major index, storage index) for each element.
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

inline bool is_nan(DType dtype, uint64_t bits) {
  return is_float(dtype) && std::isnan(test::decode(dtype, bits));
}

class GpuLayouts : public testing::Test {
 protected:
  void SetUp() override {
    if (test::devices().empty()) GTEST_SKIP() << "WICK_TEST_DEVICES names none";
  }
  template <class Body>
  void on_each(Body body) {
    for (const Device& device : test::devices()) {
      SCOPED_TRACE(device.str());
      body(backend_of(device));
      if (HasFailure()) return;
    }
  }

  using Inputs = std::vector<ConstView>;
  using Call = std::function<void(Backend&, const View& out, const Inputs& in)>;
  /// Runs the op on the device with the given layouts and on the CPU with dense operands, and
  /// expects equal bits. A `tolerance` above 0 means that the op is of the class bound on this
  /// device, and numbers must agree within it.
  static void expect_cpu_bits(GpuBackend& gpu, std::string_view what, Placed& out,
                              std::initializer_list<Placed*> inputs, const Call& call,
                              double tolerance = 0) {
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
      const double a = test::decode(out.dtype(), got[i]), b = test::decode(out.dtype(), want);
      if (tolerance > 0 && std::fabs(a - b) <= tolerance * (1 + std::fabs(b))) continue;
      ADD_FAILURE() << "element " << i << ": " << std::hex << got[i] << " for " << want;
      return;
    }
  }
  /// Attention of many queries by matrix units is of the class bound: they use rounded weights.
  static double tolerance_of(GpuBackend& gpu, int64_t queries, DType cache) {
    const bool bound = gpu.gpu().has(Feature::matrix_unit) && !ordered_attention() &&
                       queries > 8 && cache != DType::f32;
    return bound ? 0x1p-6 : 0;
  }
  static inline cpu::CpuBackend cpu_{cpu::available_isas().back()};
};

}  // namespace wick::gpu
