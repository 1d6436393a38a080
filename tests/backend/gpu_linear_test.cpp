// GEMMs with weights of every block type on the GPUs that WICK_TEST_DEVICES names. Every kernel
// that supports a case must give the bits of the scalar contract, for every number of columns and
// every layout.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <set>

#include "tests/backend/linear_quantized_reference.h"
#include "tests/device_work.h"
#include "tests/test_devices.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/math/half.h"

namespace wick {
namespace {

const std::vector<DType> kTypes = [] {
  std::vector<DType> types;
  for (const QuantInfo& quant : kQuants) types.push_back(quant.dtype);
  return types;
}();
constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

bool is_k(DType type) { return info(type).block_elems == 256; }

// ---- Values ----

int mantissa_bits(DType dtype) { return dtype == DType::f16 ? 10 : 7; }

uint32_t stored_bits(float x, DType dtype) {
  if (dtype == DType::f32) return std::bit_cast<uint32_t>(x);
  return dtype == DType::f16 ? math::from_f32<math::f16>(x).bits
                             : math::from_f32<math::bf16>(x).bits;
}
float stored_value(uint32_t bits, DType dtype) {
  if (dtype == DType::f32) return std::bit_cast<float>(bits);
  return static_cast<float>(
      reference::decode_half(static_cast<uint16_t>(bits), mantissa_bits(dtype)));
}
float stored(float x, DType dtype) {
  return dtype == DType::f32 ? x : reference::round_to_half(x, mantissa_bits(dtype));
}
bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

/// Returns random blocks with scales of either sign and various magnitudes.
std::vector<uint8_t> random_blocks(DType type, int64_t n, int64_t k, std::mt19937& rng) {
  std::vector<uint8_t> bytes(static_cast<size_t>(bytes_of(type, n * k)));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng());
  std::uniform_real_distribution<float> scale(-0.02f, 0.02f);
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(info(type).block_bytes)) {
    const uint16_t d = math::from_f32<math::f16>(scale(rng)).bits;
    const uint16_t m = math::from_f32<math::f16>(scale(rng)).bits;
    reference::write_scales(type, &bytes[at], d, m);
  }
  return bytes;
}

// ---- Devices ----

std::vector<Backend*> devices() {
  gpu::count_work();  // before the first use of a device
  std::vector<Backend*> all;
  for (const Device& device : test::devices()) all.push_back(&backend(device));
  return all;
}

class OnDevice {
 public:
  OnDevice(Backend& where, const std::vector<uint8_t>& bytes)
      : backend_(where), bytes_(bytes.size()), data_(where.alloc(bytes.size())) {
    backend_.upload(data_, bytes.data(), bytes_);
  }
  ~OnDevice() { backend_.free(data_, bytes_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  void* data() const { return data_; }
  std::vector<uint8_t> get() const {
    const test::OwnCopies own(backend_.device());
    std::vector<uint8_t> bytes(bytes_);
    backend_.download(bytes.data(), data_, bytes_);
    return bytes;
  }

 private:
  Backend& backend_;
  size_t bytes_;
  void* data_;
};

/// A float tensor with its own layout, with copies to and from a device.
struct Floats {
  DType dtype;
  Layout layout;
  std::vector<uint8_t> bytes;

  Floats(DType type, const Layout& where, int64_t elems)
      : dtype(type), layout(where), bytes(static_cast<size_t>(bytes_of(type, elems)), 0xAB) {}
  size_t size() const { return static_cast<size_t>(info(dtype).block_bytes); }
  void set(int64_t at, float x) {
    const uint32_t bits = stored_bits(x, dtype);
    std::memcpy(&bytes[static_cast<size_t>(at) * size()], &bits, size());
  }
  static float get(const std::vector<uint8_t>& from, DType dtype, int64_t at) {
    uint32_t bits = 0;
    const auto size = static_cast<size_t>(info(dtype).block_bytes);
    std::memcpy(&bits, &from[static_cast<size_t>(at) * size], size);
    return stored_value(bits, dtype);
  }
};

int64_t row_at(const Layout& layout, int64_t row) {
  int64_t at = layout.offset();
  for (int d = layout.rank() - 2; d >= 0; --d) {
    at += layout.stride(d) * (row % layout.shape()[d]);
    row /= layout.shape()[d];
  }
  return at;
}

/// The operands of a case and its result before rounding to the dtype.
struct Problem {
  using Change = std::function<float(int64_t column, int64_t i, float x)>;
  DType type, dtype;
  int64_t n, k, columns;
  std::vector<uint8_t> weight;
  std::vector<float> x, y;

  Problem(DType weight_type, DType x_type, int64_t rows, int64_t depth, int64_t batch,
          const Change& change = {})
      : type(weight_type), dtype(x_type), n(rows), k(depth), columns(batch) {
    std::mt19937 rng(static_cast<uint32_t>(n * 131 + k));
    weight = random_blocks(type, n, k, rng);
    std::normal_distribution<float> normal;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < k; ++i) {
        const float value = normal(rng);
        x.push_back(stored(change ? change(c, i, value) : value, dtype));
      }
    }
    solve();
  }
  void solve() { y = reference::product(type, weight, n, k, x.data(), columns); }
};

/// Forces one kernel through WICK_GPU_LINEAR, if it supports the type.
class Forced {
 public:
  explicit Forced(std::string_view path) {
    setenv("WICK_GPU_LINEAR", std::string(path).c_str(), 1);
  }
  ~Forced() { unsetenv("WICK_GPU_LINEAR"); }
};

/// Runs linear over the first `batch` columns on tensors of these layouts, with every kernel.
void check(Backend& device, const Problem& p, const PreparedWeight& weight, const Layout& from,
           const Layout& to, int64_t from_elems, int64_t to_elems, bool residual = false) {
  auto& gpu = static_cast<gpu::GpuBackend&>(device).gpu();
  const int64_t batch = to.elems() / std::max<int64_t>(p.n, 1);
  Floats x(p.dtype, from, from_elems);
  const Floats out(p.dtype, to, to_elems);
  for (int64_t c = 0; c < batch; ++c) {
    for (int64_t i = 0; i < p.k; ++i) {
      x.set(row_at(from, c) + i * from.stride(from.rank() - 1),
            p.x[static_cast<size_t>(c * p.k + i)]);
    }
  }
  Floats added(p.dtype, Layout::contiguous(to.shape()), to.elems());
  for (int64_t i = 0; i < to.elems(); ++i) added.set(i, static_cast<float>(i % 89) * 0.37f - 5);
  const OnDevice on_x(device, x.bytes), on_added(device, added.bytes);
  LinearFusion fusion;
  fusion.add = residual;
  fusion.residual = {on_added.data(), p.dtype, added.layout};

  for (const std::string_view path : gpu::gemm_paths(gpu, p.type)) {
    const Forced forced(path);
    const OnDevice on_out(device, out.bytes);
    device.linear({on_out.data(), p.dtype, to}, {on_x.data(), p.dtype, from}, weight, fusion);
    device.synchronize();
    const std::vector<uint8_t> got = on_out.get();
    std::vector<uint8_t> expected = out.bytes;
    int wrong = 0;
    for (int64_t c = 0; c < batch; ++c) {
      for (int64_t r = 0; r < p.n; ++r) {
        const int64_t at = row_at(to, c) + r * to.stride(to.rank() - 1);
        float want = p.y[static_cast<size_t>(c * p.n + r)];
        if (residual) want = Floats::get(added.bytes, p.dtype, c * p.n + r) + want;
        want = stored(want, p.dtype);
        const float value = Floats::get(got, p.dtype, at);
        std::memcpy(&expected[static_cast<size_t>(at) * out.size()],
                    &got[static_cast<size_t>(at) * out.size()], out.size());
        if (same(want, value) || ++wrong > 4) continue;
        ADD_FAILURE() << fmt::format(
            "{}: {} of {}x{}, {} columns: column {} row {}: want {:a}, "
            "got {:a}",
            path, name(p.type), p.n, p.k, batch, c, r, want, value);
      }
    }
    EXPECT_LE(wrong, 4) << wrong << " differ";
    EXPECT_TRUE(got == expected) << path << ": wrote beside the result";
  }
}

void check(Backend& device, const Problem& p, const PreparedWeight& weight, int64_t batch,
           bool residual = false) {
  check(device, p, weight, Layout::contiguous({batch, p.k}), Layout::contiguous({batch, p.n}),
        batch * p.k, batch * p.n, residual);
}

struct Prepared {
  OnDevice file;
  std::unique_ptr<PreparedWeight> weight;
  Prepared(Backend& device, const Problem& p) : file(device, p.weight) {
    const ConstView part{file.data(), p.type, Layout::contiguous({p.n, p.k})};
    weight = device.prepare(std::span(&part, 1), false);
  }
};

// ---- Cases ----

class GpuLinear : public testing::TestWithParam<std::tuple<DType, DType>> {
 protected:
  void SetUp() override {
    if (devices().empty()) GTEST_SKIP() << "WICK_TEST_DEVICES names no device";
    for (const Backend* backend : devices()) work_.emplace_back(backend->device());
  }
  /// Expects kernels of each GPU to have run, and no op to have copied anything to the host.
  void TearDown() override {
    uint64_t count = 0;
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    for (size_t i = 0; i < work_.size(); ++i) {
      const bool idle =
          IsSkipped() || idle_.contains(devices()[i]) || name.starts_with("NothingAtAll");
      EXPECT_EQ(work_[i].fault(!idle), "");
      count += work_[i].count();
    }
    RecordProperty("device_work", std::to_string(count));
  }
  /// Says that a device lacks the kernels of the test, which then checks the others.
  void has_no_kernels(const Backend& device) { idle_.insert(&device); }

  DType type() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  int64_t block() const { return info(type()).block_elems; }
  /// The number of activations that share a scale.
  int64_t shared() const { return 32 * reference::sharing_blocks(type()); }

 private:
  std::vector<test::DeviceWork> work_;
  std::set<const Backend*> idle_;
};

constexpr int64_t kColumns[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 40, 64, 65, 130, 200};

/// Whole chunks of eight blocks, and last chunks of each number of blocks. Every bit of the random
/// weights takes part in the results.
TEST_P(GpuLinear, ColumnsAndDepths) {
  for (Backend* device : devices()) {
    for (const int64_t blocks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 24, 25, 33, 40}) {
      if (is_k(type()) && blocks > 9) continue;
      const Problem p(type(), dtype(), blocks % 2 != 0 ? 37 : 16, blocks * block(),
                      blocks == 9   ? 130
                      : blocks == 3 ? 200
                                    : 9);
      const Prepared prepared(*device, p);
      EXPECT_EQ(prepared.weight->n, p.n);
      EXPECT_EQ(prepared.weight->k, p.k);
      for (const int64_t batch : kColumns) {
        if (batch <= p.columns) check(*device, p, *prepared.weight, batch);
      }
    }
  }
}

TEST_P(GpuLinear, RowsOfAllCounts) {
  for (Backend* device : devices()) {
    for (const int64_t n : {1, 15, 16, 17, 32, 47, 64, 65, 127, 128, 130, 257}) {
      const Problem p(type(), dtype(), n, 2 * 256, 33);
      const Prepared prepared(*device, p);
      for (const int64_t batch : {1, 2, 8, 16, 33}) check(*device, p, *prepared.weight, batch);
    }
  }
}

TEST_P(GpuLinear, NothingAtAll) {
  for (Backend* device : devices()) {
    const Problem none(type(), dtype(), 7, 0, 3);
    const Prepared prepared(*device, none);
    for (const int64_t batch : {0, 1, 3}) check(*device, none, *prepared.weight, batch);
    const Problem empty(type(), dtype(), 0, block(), 3);
    const Prepared no_rows(*device, empty);
    check(*device, empty, *no_rows.weight, 3);
  }
}

/// The row has more chunks than shared memory can hold.
TEST_P(GpuLinear, LongRows) {
  for (Backend* device : devices()) {
    const Problem p(type(), dtype(), 17, 256 * 131, 20);
    const Prepared prepared(*device, p);
    for (const int64_t batch : {1, 3, 9, 20}) check(*device, p, *prepared.weight, batch);
  }
}

/// Parts of a weight: rows that don't start at a unit boundary, no rows, rows with gaps between
/// them, and rows in reverse order.
TEST_P(GpuLinear, Parts) {
  const int64_t k = 5 * 256, wide = k + 2 * 256;
  const Problem p(type(), dtype(), 75, k, 30);
  std::vector<uint8_t> padded(static_cast<size_t>(bytes_of(type(), 36 * wide)), 0xFF);
  const auto row_bytes = static_cast<size_t>(bytes_of(type(), k));
  const auto row = [&](int64_t r) { return p.weight.data() + static_cast<size_t>(r) * row_bytes; };
  for (int64_t r = 0; r < 36; ++r) {
    std::memcpy(&padded[static_cast<size_t>(bytes_of(type(), r * wide + 256))], row(5 + r),
                row_bytes);
  }
  std::vector<uint8_t> reversed;
  for (int64_t r = 33; r >= 0; --r) {
    reversed.insert(reversed.end(), row(41 + r), row(41 + r) + row_bytes);
  }
  for (Backend* device : devices()) {
    const OnDevice whole(*device, p.weight), gaps(*device, padded), upward(*device, reversed);
    const std::vector<ConstView> parts = {
        {whole.data(), type(), Layout::contiguous({5, k})},
        {whole.data(), type(), Layout::contiguous({0, k})},
        {gaps.data(), type(), Layout({36, k}, {wide, 1}, 256)},
        {upward.data(), type(), Layout({34, k}, {-k, 1}, 33 * k)},
    };
    const auto weight = device->prepare(parts, false);
    for (const int64_t batch : {1, 3, 30}) check(*device, p, *weight, batch);
  }
}

/// Activations and results with non-dense rows, three dims and permuted dims.
TEST_P(GpuLinear, Layouts) {
  const int64_t n = 37, k = 512;
  for (Backend* device : devices()) {
    for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {5, 8}, {3, 40}}) {
      const Problem p(type(), dtype(), n, k, a * b);
      const Prepared prepared(*device, p);
      const Layout steps({a, b, k}, {3 * k + 2, a * (3 * k + 2), -3}, 3 * k);
      const Layout pitched({a, b, k}, {b * (k + 8), k + 8, 1}, 5);
      const Layout shifted({a, b, k}, {b * k, k, 1}, 3);  // dense, but not aligned to vectors
      const Layout dense({a, b, n}, {b * (n + 3), n + 3, 1}, 7);
      const Layout turned({a, b, n}, {2, 2 * a, 2 * a * b}, 1);
      const int64_t x_elems = 4 + 3 * (k + 8) * (a * b + 1), elems = 16 + 2 * a * b * (n + 3);
      for (const bool residual : {false, true}) {
        if (residual && dtype() != DType::f32) continue;
        check(*device, p, *prepared.weight, steps, dense, x_elems, elems, residual);
        check(*device, p, *prepared.weight, pitched, turned, x_elems, elems, residual);
        check(*device, p, *prepared.weight, shifted, dense, x_elems, elems, residual);
      }
    }
  }
}

/// Zero, tiny, huge and non-finite activations.
TEST_P(GpuLinear, SpecialActivations) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto change = [&](int64_t c, int64_t i, float x) {
    const int64_t at = i / 32, group = i / shared();
    switch (c % 13) {
      case 0:
        return at % 3 == 1 ? (i % 2 != 0 ? -0.0f : 0.0f) : x;
      case 1:
        return x * 1e-30f;
      case 2:
        return x * 1e-40f;
      case 3:
        return i == 100 ? inf : x;
      case 4:
        return i == 32 * 13 + 31 ? nan : x;
      case 5:
        return i == 0 ? -inf : x;
      case 6:
        return x * 2e37f;
      case 7:
        return at == 3 ? 1e-30f : at == 4 ? 1.0001e-30f : x * 1e-3f;
      case 8:
        return at % 2 == 0 ? 127.0f * (i % 2 != 0 ? 1.0f : -1.0f) : x;
      case 10:
        return group % 2 != 0 ? (i % 2 != 0 ? -0.0f : 0.0f) : x;
      case 11:
        return group == 1 ? -1e-30f : group == 2 ? 1.0001e-30f : x * 1e-3f;
      case 12:  // one block that determines the scale of the others
        return at % 4 == 2 && i % 32 == 17 ? -3e5f : x;
      default:
        return std::round(x * 2.0f) * 0.5f + 0.5f;  // multiples of one half, to test ties
    }
  };
  // Columns that can't be multiplied together with others, because of their range, are also tested
  // alone.
  for (Backend* device : devices()) {
    for (const int64_t only : {-1, 0, 1, 3, 6, 7, 8, 9, 10, 11, 12}) {
      const Problem p(type(), dtype(), 33, 32 * 16, 30, [&](int64_t c, int64_t i, float x) {
        return change(only < 0 ? c : only, i, x);
      });
      const Prepared prepared(*device, p);
      for (const int64_t batch : {1, 8, 10, 30}) check(*device, p, *prepared.weight, batch);
    }
  }
}

/// Scales within a row that differ by a factor of 2^bits: within the range of f16, and beyond it.
TEST_P(GpuLinear, RangeOfScales) {
  for (Backend* device : devices()) {
    for (const int bits : {4, 20, 26, 27, 28, 29, 30, 31, 60}) {
      if (dtype() == DType::f16 && bits > 20) continue;
      const Problem p(type(), dtype(), 20, 32 * 16, 12, [&](int64_t c, int64_t i, float x) {
        const float scale = std::ldexp(1.0f, static_cast<int>(c) - 6);
        return (i / shared() + c) % 4 == 0 ? std::ldexp(x, -bits) * scale : x * scale;
      });
      const Prepared prepared(*device, p);
      for (const int64_t batch : {1, 12}) check(*device, p, *prepared.weight, batch);
    }
  }
}

/// The largest possible integer sums, and scales that overflow, underflow or are NaN.
TEST_P(GpuLinear, ExtremeWeights) {
  for (Backend* device : devices()) {
    for (const float magnitude : {1.0f, 1e-20f, 3e4f, 1e24f, 1e36f}) {
      if (magnitude != stored(magnitude, dtype()) && dtype() == DType::f16) continue;
      Problem p(type(), dtype(), 48, 32 * 16, 30, [&](int64_t c, int64_t i, float) {
        const bool negative = c % 3 == 1 || (c % 3 == 2 && i % 2 == 0);
        return negative ? -magnitude : magnitude;
      });
      const auto bytes = static_cast<size_t>(info(type()).block_bytes);
      const auto blocks_each = static_cast<size_t>(p.k / block());
      constexpr uint8_t kFills[] = {0xFF, 0x00, 0x80, 0x7F};
      constexpr uint16_t kScales[] = {0x7C00, 0x7E00, 0x0001, 0x8000, 0x7BFF, 0xFBFF};
      for (size_t at = 0; at < p.weight.size(); at += bytes) {
        const size_t row = at / bytes / blocks_each;
        std::fill_n(p.weight.begin() + static_cast<ptrdiff_t>(at), bytes, kFills[row % 4]);
        const uint16_t d = row < 24 && row % 4 != 3 ? kScales[row / 4] : uint16_t{0x3C00};
        const uint16_t m = row % 5 == 0 ? uint16_t{0xBC00} : uint16_t{0x0400};
        reference::write_scales(type(), &p.weight[at], d, m);
      }
      p.solve();
      const Prepared prepared(*device, p);
      for (const int64_t batch : {1, 3, 9, 30}) check(*device, p, *prepared.weight, batch);
    }
  }
}

/// Returns the integer sum of a row's first superblock that has the largest magnitude. A sum has
/// `blocks` blocks.
int largest_sum(const Problem& p, size_t blocks, int64_t column, int64_t row) {
  const reference::Activations x(p.type, p.x.data() + column * p.k, p.k);
  int largest = 0;
  for (size_t first = 0; first < 8; first += blocks) {
    int sum = 0;
    for (size_t b = first; b < first + blocks; ++b) {
      const reference::Block w(p.type, p.weight.data() + bytes_of(p.type, row * p.k), b);
      sum += reference::block_dot(w, x, b);
    }
    if (std::abs(sum) > std::abs(largest)) largest = sum;
  }
  return largest;
}

/// Sums near 2^24 whose last bits matter, which reveals a unit that drops bits.
TEST_P(GpuLinear, LargeOddSums) {
  for (Backend* device : devices()) {
    Problem p(type(), dtype(), 20, 512, 20, [](int64_t c, int64_t i, float) {
      const float x = (i * 7 + c) % 11 == 0 ? 126.0f : 127.0f;
      return c % 2 == 0 ? x : -x;
    });
    const auto bytes = static_cast<size_t>(info(type()).block_bytes);
    for (size_t i = 0; i < p.weight.size(); ++i) {
      p.weight[i] = i % bytes >= 16 && (i / 3 + i / bytes) % 7 == 0 ? 0xFE : 0xFF;
    }
    for (size_t at = 0; at < p.weight.size(); at += bytes) {
      const uint16_t one = 0x3C00;
      reference::write_scales(type(), &p.weight[at], one, one);
    }
    p.solve();
    if (type() == DType::q4_k || type() == DType::q5_k) {
      const size_t blocks = type() == DType::q4_k ? 4 : 2;
      bool positive = false, negative = false;
      for (int64_t c = 0; c < 20; ++c) {
        for (int64_t r = 0; r < p.n; ++r) {
          const int sum = largest_sum(p, blocks, c, r);
          if (sum % 2 == 0 || std::abs(sum) <= 1 << 23) continue;
          (sum > 0 ? positive : negative) = true;
        }
      }
      EXPECT_TRUE(positive && negative) << "no sum that is odd and large";
    }
    const Prepared prepared(*device, p);
    for (const int64_t batch : {1, 20}) check(*device, p, *prepared.weight, batch);
  }
}

/// More tiles than the device has multiprocessors, so that blocks process several tiles.
TEST_P(GpuLinear, SeveralTilesAGroup) {
  for (Backend* device : devices()) {
    auto& gpu = static_cast<gpu::GpuBackend*>(device)->gpu();
    const auto paths = gpu::gemm_paths(gpu, type());
    if (std::find(paths.begin(), paths.end(), "f16") == paths.end()) {
      has_no_kernels(*device);
      continue;
    }
    for (const int64_t chunks : {1, 3}) {
      const Problem p(type(), dtype(), int64_t{128} * (gpu.info.multiprocessors + 1) + 5,
                      chunks * 256, 1);
      const Prepared prepared(*device, p);
      check(*device, p, *prepared.weight, 1);
    }
  }
}

/// Row tiles that the warps of a block share, some with two rounds of tasks, and so many tiles that
/// each warp has its own. Chunks are in one segment, and for 32 columns in several.
TEST_P(GpuLinear, RowTilesOfWarps) {
  if (dtype() != DType::f32) GTEST_SKIP() << "results are stored as of fewer rows";
  for (Backend* device : devices()) {
    const auto& gpu = static_cast<gpu::GpuBackend*>(device)->gpu();
    if (gpu.device.kind != DeviceKind::cuda) {
      has_no_kernels(*device);
      continue;
    }
    for (const auto& [tiles, chunks] : {std::pair<int64_t, int64_t>{5, 5}, {2, 37}, {17, 2}}) {
      const int64_t n = 16 * tiles * gpu.info.multiprocessors - 21;
      const Problem p(type(), dtype(), n, chunks * 256, 18);
      const Prepared prepared(*device, p);
      for (const int64_t batch : {5, 12, 18}) check(*device, p, *prepared.weight, batch);
    }
  }
}

/// The operations that are fused before and after a GEMM compute in f32.
class GpuFusedLinear : public GpuLinear {};

TEST_P(GpuFusedLinear, Residual) {
  for (Backend* device : devices()) {
    const Problem p(type(), dtype(), 50, 512, 200);
    const Prepared prepared(*device, p);
    for (const int64_t batch : kColumns) check(*device, p, *prepared.weight, batch, true);
  }
}

/// So many rows that blocks process two units' rows, with an even and an odd number of chunks, with
/// a last chunk of five blocks, and with three columns.
TEST_P(GpuFusedLinear, ManyRows) {
  for (Backend* device : devices()) {
    const int multiprocessors = static_cast<gpu::GpuBackend*>(device)->gpu().info.multiprocessors;
    for (const int64_t k : {int64_t{16 * 256}, int64_t{17 * 256}, 16 * 256 + 5 * block()}) {
      const Problem p(type(), dtype(), int64_t{32} * multiprocessors, k, 1);
      const Prepared prepared(*device, p);
      check(*device, p, *prepared.weight, 1, true);
    }
    // The last thread block lacks one unit's rows.
    const Problem p(type(), dtype(), int64_t{32} * multiprocessors - 21, 2 * 256, 3);
    const Prepared prepared(*device, p);
    check(*device, p, *prepared.weight, 3, true);
  }
}

/// Each row of x is multiplied by the experts that its ids choose.
TEST_P(GpuFusedLinear, Experts) {
  const int64_t rows = 5, chosen = 2;
  const std::vector<uint32_t> ids = {2, 0, 1, 1, 0, 2, 2, 2, 1, 0};
  for (Backend* device : devices()) {
    // The longer row has more chunks than shared memory can hold.
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{37, 512}, {3, 256 * 131}}) {
      const Problem p(type(), dtype(), 3 * n, k, rows);
      const OnDevice file(*device, p.weight);
      std::vector<std::unique_ptr<PreparedWeight>> experts;
      std::vector<const PreparedWeight*> pointers;
      for (int64_t e = 0; e < 3; ++e) {
        const ConstView part{file.data(), type(), Layout({n, k}, {k, 1}, e * n * k)};
        experts.push_back(device->prepare(std::span(&part, 1), false));
        pointers.push_back(experts.back().get());
      }
      const auto bytes = [](const void* from, size_t size) {
        const auto* first = static_cast<const uint8_t*>(from);
        return std::vector<uint8_t>(first, first + size);
      };
      const OnDevice on_x(*device, bytes(p.x.data(), p.x.size() * 4));
      const OnDevice on_ids(*device, bytes(ids.data(), ids.size() * 4));
      const OnDevice on_y(*device,
                          std::vector<uint8_t>(ids.size() * static_cast<size_t>(n) * 4, 0xAB));
      device->grouped_linear({on_y.data(), DType::f32, Layout::contiguous({rows, chosen, n})},
                             {on_x.data(), DType::f32, Layout::contiguous({rows, k})}, pointers,
                             {on_ids.data(), DType::u32, Layout::contiguous({rows, chosen})}, {});
      device->synchronize();
      const std::vector<uint8_t> got = on_y.get();
      int wrong = 0;
      for (int64_t i = 0; i < rows * chosen * n; ++i) {
        const int64_t pair = i / n, row = ids[static_cast<size_t>(pair)] * n + i % n;
        const float want = p.y[static_cast<size_t>(pair / chosen * p.n + row)];
        wrong += !same(want, Floats::get(got, DType::f32, i));
      }
      EXPECT_EQ(wrong, 0) << "k " << k;
    }
  }
}

/// Several rows for each expert, which every kernel takes in tiles: more than a tile for the first
/// one, a few for others, none for the last one. Rows of x are apart.
TEST_P(GpuFusedLinear, ExpertTiles) {
  const int64_t rows = 85, chosen = 2, count = 5, pairs = rows * chosen;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < pairs; ++i) ids.push_back(i % 16 == 5 ? 3 : i % 4 == 1 ? i % 3 : 0);
  for (Backend* device : devices()) {
    auto& gpu = static_cast<gpu::GpuBackend*>(device)->gpu();
    // Two tiles of rows of the weight, and three chunks, of which the last one is short.
    const int64_t n = 131, k = 512 + block(), apart = k + 3;
    const Problem p(type(), dtype(), count * n, k, rows);
    const OnDevice file(*device, p.weight);
    std::vector<std::unique_ptr<PreparedWeight>> experts;
    std::vector<const PreparedWeight*> pointers;
    for (int64_t e = 0; e < count; ++e) {
      const ConstView part{file.data(), type(), Layout({n, k}, {k, 1}, e * n * k)};
      experts.push_back(device->prepare(std::span(&part, 1), false));
      pointers.push_back(experts.back().get());
    }
    Floats x(dtype(), Layout({rows, k}, {apart, 1}, 1), rows * apart + 1);
    for (int64_t i = 0; i < rows * k; ++i) {
      x.set(1 + i / k * apart + i % k, p.x[static_cast<size_t>(i)]);
    }
    const OnDevice on_x(*device, x.bytes);
    const auto* words = reinterpret_cast<const uint8_t*>(ids.data());
    const OnDevice on_ids(*device, std::vector<uint8_t>(words, words + ids.size() * 4));
    // The result begins at element 1.
    const Floats out(dtype(), Layout({rows, chosen, n}, {chosen * n, n, 1}, 1), pairs * n + 2);
    for (const std::string_view path : gpu::gemm_paths(gpu, type())) {
      const Forced forced(path);
      const OnDevice on_y(*device, out.bytes);
      device->grouped_linear({on_y.data(), dtype(), out.layout}, {on_x.data(), dtype(), x.layout},
                             pointers,
                             {on_ids.data(), DType::u32, Layout::contiguous({rows, chosen})}, {});
      device->synchronize();
      const std::vector<uint8_t> got = on_y.get();
      std::vector<uint8_t> expected = out.bytes;
      std::memcpy(&expected[out.size()], &got[out.size()], got.size() - 2 * out.size());
      EXPECT_TRUE(got == expected) << path << ": wrote beside the result";
      int wrong = 0;
      for (int64_t i = 0; i < pairs * n; ++i) {
        const int64_t pair = i / n, row = ids[static_cast<size_t>(pair)] * n + i % n;
        const float want = stored(p.y[static_cast<size_t>(pair / chosen * p.n + row)], dtype());
        wrong += !same(want, Floats::get(got, dtype(), 1 + i));
      }
      EXPECT_EQ(wrong, 0) << path;
    }
  }
}

/// Fused operations on the input and on the result must give the CPU's bits.
TEST_P(GpuFusedLinear, Fusions) {
  using Input = LinearFusion::Input;
  const int64_t n = 37, k = 768;
  cpu::CpuBackend cpu(cpu::available_isas().back());
  for (Backend* device : devices()) {
    const Problem p(type(), dtype(), n, k,
                    130);  // its columns are also used as halves of longer ones
    const Prepared prepared(*device, p);
    const ConstView part{p.weight.data(), type(), Layout::contiguous({n, k})};
    const auto cpu_weight = cpu.prepare(std::span(&part, 1), false);
    const auto bytes = [](const std::vector<float>& v) {
      const auto* from = reinterpret_cast<const uint8_t*>(v.data());
      return std::vector<uint8_t>(from, from + v.size() * 4);
    };
    std::vector<float> norm(p.x.end() - k, p.x.end()), added(p.x.begin(), p.x.begin() + 65 * n);
    const OnDevice on_x(*device, bytes(p.x)), on_norm(*device, bytes(norm));
    const OnDevice on_added(*device, bytes(added));
    for (const Input input : {Input::plain, Input::rms_norm, Input::silu_mul, Input::gelu_mul}) {
      const bool gated = input == Input::silu_mul || input == Input::gelu_mul;
      for (const bool add : {false, true}) {
        for (const int64_t batch : {1, 3, 8, 17, 33, 65}) {
          const Layout x_layout = Layout::contiguous({batch, gated ? 2 * k : k});
          const Layout y_layout = Layout::contiguous({batch, n});
          LinearFusion fusion;
          fusion.input = input;
          fusion.eps = 1e-5f;
          fusion.add = add;
          fusion.norm = {norm.data(), DType::f32, Layout::contiguous({k})};
          fusion.residual = {added.data(), DType::f32, y_layout};
          std::vector<float> want(static_cast<size_t>(batch * n));
          cpu.linear({want.data(), DType::f32, y_layout}, {p.x.data(), DType::f32, x_layout},
                     *cpu_weight, fusion);
          fusion.norm.data = on_norm.data();
          fusion.residual.data = on_added.data();
          const OnDevice on_y(*device, std::vector<uint8_t>(want.size() * 4, 0xAB));
          device->linear({on_y.data(), DType::f32, y_layout}, {on_x.data(), DType::f32, x_layout},
                         *prepared.weight, fusion);
          const std::vector<uint8_t> got = on_y.get();
          int wrong = 0;
          for (size_t i = 0; i < want.size(); ++i) {
            wrong += !same(want[i], Floats::get(got, DType::f32, static_cast<int64_t>(i)));
          }
          EXPECT_EQ(wrong, 0) << "input " << static_cast<int>(input) << ", add " << add << ", "
                              << batch << " columns";
        }
      }
    }
  }
}

std::string case_name(const testing::TestParamInfo<std::tuple<DType, DType>>& param) {
  return fmt::format("{}_{}", name(std::get<0>(param.param)), name(std::get<1>(param.param)));
}
INSTANTIATE_TEST_SUITE_P(Types, GpuLinear,
                         testing::Combine(testing::ValuesIn(kTypes), testing::ValuesIn(kFloats)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Types, GpuFusedLinear,
                         testing::Combine(testing::ValuesIn(kTypes), testing::Values(DType::f32)),
                         case_name);

}  // namespace
}  // namespace wick
