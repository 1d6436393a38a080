// Quantization of activations to blocks of int8 before GEMMs with quantized weights, fused with
// preceding ops. The result must have the bits of the ops one after another, on each GPU that
// WICK_TEST_DEVICES names.

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/quantize_activations.h"
#include "wick/math/scalar.h"

namespace wick::parity {
namespace {

using Input = LinearFusion::Input;

struct Case {
  Place place;
  Shape shape;  // shape of the quantized activations
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (int64_t k : {32, 64, 256, 288, 544, 576, 1024, 1056, 2048, 4096, 4128}) {
    list.push_back({Place::contiguous, {1, k}});
    list.push_back({Place::contiguous, {3, k}});
  }
  for (int64_t k : {8192, 8224, 12288, 16384, 16416}) list.push_back({Place::contiguous, {1, k}});
  list.push_back({Place::contiguous, {250, 64}});
  list.push_back({Place::contiguous, {211, 4224}});
  list.push_back({Place::transposed, {3, 5, 256}});
  list.push_back({Place::contiguous, {3, 14336}});
  list.push_back({Place::sliced, {2, 3, 96}});
  list.push_back({Place::transposed, {5, 7, 64}});
  list.push_back({Place::stepped, {4, 5, 320}});
  list.push_back({Place::stepped, {4, 5, 384}});
  list.push_back({Place::scattered, {2, 3, 2, 608}});
  list.push_back({Place::broadcast, {2, 3, 64}});
  list.push_back({Place::contiguous, {0, 64}});
  list.push_back({Place::contiguous, {64}});
  return list;
}

bool is_gated(Input input) { return input == Input::silu_mul || input == Input::gelu_mul; }

/// Returns the rows of k values that the unfused ops give.
std::vector<float> expected_rows(Input input, const TestTensor& x, const TestTensor& weight,
                                 float eps, int64_t k) {
  const std::vector<float> in = elements<float>(x), w = elements<float>(weight);
  if (input == Input::plain) return in;
  const auto n = static_cast<size_t>(k);
  std::vector<float> out;
  const size_t a_row = is_gated(input) ? 2 * n : n;
  for (size_t row = 0; row < in.size(); row += a_row) {
    std::vector<float> squares;
    for (size_t i = 0; i < n; ++i) squares.push_back(in[row + i] * in[row + i]);
    const float r = 1.0f / math::sqrt(ordered_sum<float>(squares) / static_cast<float>(k) + eps);
    for (size_t i = 0; i < n; ++i) {
      const float x = in[row + i];
      out.push_back(input == Input::rms_norm   ? (x * r) * w[i]
                    : input == Input::silu_mul ? math::silu(x) * in[row + n + i]
                                               : math::gelu(x) * in[row + n + i]);
    }
  }
  return out;
}

struct Quantized {
  std::vector<int8_t> q;
  std::vector<math::ActivationScale> scales;
};

/// `shared` consecutive blocks share a scale. halves: blocks have the sums of their halves as two
/// int16 instead of their sum.
Quantized expected_blocks(const std::vector<float>& rows, int64_t k, int64_t padded, int shared,
                          bool halves) {
  Quantized result;
  const auto n = static_cast<size_t>(k), several = static_cast<size_t>(shared);
  for (size_t row = 0; row < rows.size(); row += n) {
    for (size_t block = 0; block < static_cast<size_t>(padded); block += several) {
      int8_t q[32 * math::kSharedBlocks] = {};
      int sums[math::kSharedBlocks] = {};
      float d = 0;
      if (block * 32 < n) {
        d = math::quantize_activations(&rows[row + block * 32], shared, q, sums);
      }
      result.q.insert(result.q.end(), q, q + 32 * several);
      for (size_t i = 0; i < several; ++i) {
        int sum = sums[i];
        if (halves) {
          const int8_t* const block_q = q + 32 * i;
          const int first = std::accumulate(block_q, block_q + 16, 0), second = sum - first;
          sum =
              static_cast<int>(static_cast<uint16_t>(first) | static_cast<uint32_t>(second) << 16);
        }
        result.scales.push_back({d, sum});
      }
    }
  }
  return result;
}

/// A buffer in a device's memory with a canary after it.
template <class T>
class Buffer {
 public:
  Buffer(Backend& backend, size_t count) : backend_(backend), bytes_(count * sizeof(T) + kCanary) {
    data = static_cast<T*>(backend.alloc(bytes_));
    const std::vector<uint8_t> pattern(bytes_, 0xa5);
    backend.upload(data, pattern.data(), bytes_);
  }
  ~Buffer() { backend_.free(data, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::vector<T> get() const {
    std::vector<uint8_t> bytes(bytes_);
    const test::OwnCopies own(backend_.device());
    backend_.download(bytes.data(), data, bytes_);
    for (size_t i = bytes_ - kCanary; i < bytes_; ++i) EXPECT_EQ(bytes[i], 0xa5) << "written to";
    std::vector<T> result((bytes_ - kCanary) / sizeof(T));
    std::memcpy(result.data(), bytes.data(), bytes_ - kCanary);
    return result;
  }
  T* data;

 private:
  static constexpr size_t kCanary = 64;
  Backend& backend_;
  size_t bytes_;
};

void check(gpu::GpuBackend& backend, Input input, DType dtype, const Case& c, Values values,
           int shared, bool halves, Random& random) {
  const int last = c.shape.rank() - 1;
  const int64_t k = c.shape[last];
  const Shape in_shape = is_gated(input) ? c.shape.with(last, 2 * k) : c.shape;
  TestTensor x(dtype, c.place, in_shape, 1);
  TestTensor w(DType::f32, c.place, Shape{k}, 2);
  x.fill(values, random);
  w.fill(Values::normal, random);
  const std::string what = fmt::format(
      "prologue {} {}.{}{} {}, {} blocks a scale{}", static_cast<int>(input), name(dtype),
      name(c.place), c.shape.str(), name(values), shared, halves ? ", sums of halves" : "");
  Buffer<std::byte> x_there(backend, x.storage().size()), w_there(backend, w.storage().size());
  backend.upload(x_there.data, x.storage().data(), x.storage().size());
  backend.upload(w_there.data, w.storage().data(), w.storage().size());

  const int64_t rows = k == 0 ? 0 : c.shape.elems() / k;
  const int64_t padded = gpu::RowBlocks::padded_blocks(k);
  const auto blocks = static_cast<size_t>(rows * padded);
  Buffer<int8_t> q(backend, blocks * 32);
  Buffer<math::ActivationScale> scales(backend, blocks);
  LinearFusion fusion;
  fusion.input = input;
  fusion.norm = {w_there.data, DType::f32, w.layout()};
  fusion.eps = 1e-5f;
  gpu::quantize_rows(backend.gpu(), fusion, {x_there.data, dtype, x.layout()}, k,
                     {q.data, scales.data, padded, shared, halves});

  const Quantized expected =
      expected_blocks(expected_rows(input, x, w, fusion.eps, k), k, padded, shared, halves);
  const std::vector<int8_t> got_q = q.get();
  const std::vector<math::ActivationScale> got = scales.get();
  for (size_t i = 0; i < blocks; ++i) {
    const bool same =
        same_bits(DType::f32, math::f32_bits(got[i].d), math::f32_bits(expected.scales[i].d)) &&
        got[i].sum == expected.scales[i].sum &&
        std::equal(got_q.begin() + static_cast<long>(i) * 32,
                   got_q.begin() + static_cast<long>(i) * 32 + 32,
                   expected.q.begin() + static_cast<long>(i) * 32);
    if (same) continue;
    ADD_FAILURE() << what << ": block " << i << " has d " << got[i].d << " and sum " << got[i].sum
                  << ", expected " << expected.scales[i].d << " and " << expected.scales[i].sum;
    return;
  }
}

void check_all(Input input, DType dtype) {
  bool any = false;
  for (const Target& target : targets()) {
    if (target.backend->device().kind == DeviceKind::cpu) continue;
    any = true;
    auto& backend = dynamic_cast<gpu::GpuBackend&>(*target.backend);
    Random random(61);
    for (const Case& c : cases()) {
      for (Values values : {Values::normal, Values::special}) {
        const bool whole = c.shape[c.shape.rank() - 1] % (32 * math::kSharedBlocks) == 0;
        for (const int shared : {1, math::kSharedBlocks}) {
          if (shared == 1 || whole) check(backend, input, dtype, c, values, shared, false, random);
        }
        if (whole) check(backend, input, dtype, c, values, math::kSharedBlocks, true, random);
        if (failed()) return;
      }
    }
  }
  if (!any) GTEST_SKIP() << "WICK_TEST_DEVICES names no GPU";
}

const bool added = [] {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    add(fmt::format("quantize_rows.{}", name(dtype)), [=] { check_all(Input::plain, dtype); });
  }
  add("rms_norm_quantize.f32", [] { check_all(Input::rms_norm, DType::f32); });
  add("silu_mul_quantize.f32", [] { check_all(Input::silu_mul, DType::f32); });
  add("gelu_mul_quantize.f32", [] { check_all(Input::gelu_mul, DType::f32); });
  return true;
}();

}  // namespace
}  // namespace wick::parity
