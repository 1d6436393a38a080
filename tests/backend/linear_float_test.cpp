#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "tests/backend/float_reference.h"
#include "tests/backend/machine.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick {
namespace {

using test::Buffer;
using test::Machine;
using test::OnMachine;
using test::Truth;

uint64_t element(DType dtype, int which, int64_t row, int64_t col) {
  return test::random_bits(dtype, (static_cast<uint64_t>(which + 1) << 48) ^
                                      (static_cast<uint64_t>(row) << 20) ^
                                      static_cast<uint64_t>(col));
}
double value(DType dtype, int which, int64_t row, int64_t col) {
  return test::decode(dtype, element(dtype, which, row, col));
}

Layout dense(std::initializer_list<int64_t> dims) { return Layout::contiguous(Shape(dims)); }

enum class Form { contiguous, transposed, sliced, stepped, shared, rank1, rank4, stacked };
constexpr std::pair<Form, const char*> kForms[] = {
    {Form::contiguous, "contiguous"}, {Form::transposed, "transposed"}, {Form::sliced, "sliced"},
    {Form::stepped, "stepped"},       {Form::shared, "broadcast"},      {Form::rank1, "rank1"},
    {Form::rank4, "rank4"},           {Form::stacked, "stacked"},
};

/// Makes a matrix with the requested layout. Rank 4 splits the rows as [rows/2, 2] with a gap.
Buffer make(DType dtype, Form form, int64_t rows, int64_t cols) {
  switch (form) {
    case Form::transposed:
      return Buffer(dtype, dense({cols, rows}).transpose(0, 1), rows * cols);
    case Form::sliced: {
      const Layout whole = dense({rows + 2, cols + 7});
      return Buffer(dtype, whole.narrow(0, 1, rows).narrow(1, 3, cols), whole.elems());
    }
    case Form::stepped:
      return Buffer(dtype, Layout(Shape{rows, cols}, {-cols * 2, 2}, (rows - 1) * cols * 2),
                    rows * cols * 2);
    case Form::rank4: {
      const Layout whole = dense({1, rows / 2, 3, cols});
      return Buffer(dtype, whole.narrow(2, 0, 2), whole.elems());
    }
    default:
      return Buffer(dtype, dense({rows, cols}), rows * cols);
  }
}

/// Returns the storage index of (row, col) of a layout [.., cols] with flattened leading
/// dimensions.
int64_t index_of(const Layout& layout, int64_t row, int64_t col) {
  const int last = layout.rank() - 1;
  int64_t at = layout.offset() + col * layout.stride(last);
  for (int d = last - 1; d >= 0; --d) {
    at += row % layout.shape()[d] * layout.stride(d);
    row /= layout.shape()[d];
  }
  return at;
}

Buffer make_weight(DType dtype, Form form, int64_t first, int64_t n, int64_t k) {
  Buffer w = make(dtype, form == Form::rank4 ? Form::contiguous : form, n, k);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = 0; p < k; ++p)
      w.set(index_of(w.layout, i, p), element(dtype, 1, first + i, p));
  }
  return w;
}

/// Packs the parts of a weight in the machine's memory.
std::unique_ptr<PreparedWeight> prepare(const Machine& machine, std::vector<Buffer>& parts) {
  std::deque<OnMachine> there;
  std::vector<ConstView> views;
  for (Buffer& part : parts) {
    there.emplace_back(machine, part.bytes.data(), part.bytes.size());
    views.push_back({there.back().data(), part.dtype, part.layout});
  }
  // Preparing an f16 weight, which isn't part of the op, reads whether it has infinities or NaN.
  const test::OwnCopies own(machine.backend->device());
  return machine.backend->prepare(views, false);
}

/// Returns the true outputs [rows, n] of a case, which are the same for every layout and machine.
/// With `shared`, all rows of x are row 0.
const std::vector<Truth>& truths(DType weight_dtype, DType dtype, bool shared, int64_t rows,
                                 int64_t n, int64_t k) {
  static std::map<std::tuple<DType, DType, bool, int64_t, int64_t, int64_t>, std::vector<Truth>>
      all;
  const auto [entry, added] = all.try_emplace({weight_dtype, dtype, shared, rows, n, k});
  std::vector<Truth>& truth = entry->second;
  if (!added) return truth;
  // With bf16 weights, activations are rounded to bf16.
  std::vector<double> xs(static_cast<size_t>(rows * k)), ws(static_cast<size_t>(n * k));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < k; ++p) {
      const double v = value(dtype, 0, shared ? 0 : r, p);
      xs[static_cast<size_t>(r * k + p)] =
          weight_dtype == DType::bf16 ? test::round_to(DType::bf16, v) : v;
    }
  }
  for (int64_t i = 0; i < n * k; ++i) {
    ws[static_cast<size_t>(i)] = value(weight_dtype, 1, i / k, i % k);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0, magnitude = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double product =
            xs[static_cast<size_t>(r * k + p)] * ws[static_cast<size_t>(i * k + p)];
        sum += product;
        magnitude += std::fabs(product);
      }
      truth.push_back({sum, magnitude});
    }
  }
  return truth;
}

void run_case(DType weight_dtype, DType dtype, Form form, const Machine& machine, int64_t rows,
              int64_t n, int64_t k) {
  std::vector<Buffer> parts;
  if (form == Form::stacked) {
    for (int64_t first = 0; first < n;) {
      const int64_t size = std::min<int64_t>(n - first, first % 2 == 0 ? 19 : 5);
      parts.push_back(make_weight(weight_dtype, form, first, size, k));
      first += size;
    }
  } else {
    parts.push_back(make_weight(weight_dtype, form, 0, n, k));
  }
  const std::unique_ptr<PreparedWeight> weight = prepare(machine, parts);
  ASSERT_EQ(weight->n, n);
  ASSERT_EQ(weight->k, k);
  ASSERT_EQ(weight->dtype, weight_dtype);

  Buffer x = make(dtype, form, rows, k);
  const bool shared = form == Form::shared;
  if (shared) x = Buffer(dtype, dense({1, k}).broadcast_to(Shape{rows, k}), k);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < k; ++p) {
      x.set(index_of(x.layout, r, p), element(dtype, 0, shared ? 0 : r, p));
    }
  }
  Buffer out = make(dtype, form, rows, n);
  const std::vector<char> before = out.bytes;
  Layout x_layout = x.layout, out_layout = out.layout;
  if (form == Form::rank1) x_layout = x_layout.squeeze(0), out_layout = out_layout.squeeze(0);
  const OnMachine x_there(machine, x.bytes.data(), x.bytes.size());
  OnMachine out_there(machine, out.bytes.data(), out.bytes.size());
  machine.backend->linear({out_there.data(), dtype, out_layout}, {x_there.data(), dtype, x_layout},
                          *weight, {});
  out_there.fetch();

  const std::vector<Truth>& truth = truths(weight_dtype, dtype, shared, rows, n, k);
  std::vector<bool> written(static_cast<size_t>(out.storage_elems()));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = index_of(out.layout, r, i);
      written[static_cast<size_t>(at)] = true;
      const double got = test::decode(dtype, out.get(at));
      ASSERT_EQ(test::outside_bound(dtype, got, truth[static_cast<size_t>(r * n + i)], k), "")
          << "row " << r << " output " << i;
    }
  }
  const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
  for (size_t e = 0; e < written.size(); ++e) {
    if (written[e]) continue;
    ASSERT_EQ(std::memcmp(&out.bytes[e * bytes], &before[e * bytes], bytes), 0)
        << "element " << e << " outside the view was written";
  }
}

class LinearTest : public testing::Test {
 public:
  LinearTest(DType weight, DType dtype, Form form, const Machine& machine)
      : weight_(weight), dtype_(dtype), form_(form), machine_(machine) {}
  void TearDown() override { cpu::ThreadPool::global().set_threads(1); }
  void TestBody() override {
    if (machine_.backend == nullptr) GTEST_SKIP() << "absent: " << machine_.missing;
    const test::ExpectDeviceWork work(machine_, true);
    for (const int threads : {1, 2}) {
      if (threads > 1 && !machine_.is_cpu()) continue;
      cpu::ThreadPool::global().set_threads(threads);
      for (const int64_t rows : {1, 2, 3, 4, 7, 8, 9, 14, 30}) {
        if (form_ == Form::rank1 && rows > 1) continue;
        if (form_ == Form::rank4 && rows % 2 != 0) continue;
        for (const auto& [n, k] : std::initializer_list<std::array<int64_t, 2>>{
                 {1, 1}, {16, 32}, {33, 7}, {67, 129}, {150, 66}, {40, 530}, {9, 0}}) {
          check(threads, rows, n, k);
          if (HasFatalFailure()) return;
        }
      }
      // GPUs may divide f32 gemms of many rows along k.
      if (form_ != Form::rank1) check(threads, 96, 33, 851);
      if (form_ == Form::contiguous) {  // several blocks in each direction, and several regions
        check(threads, 40, 301, 1031);
        check(threads, 50, 301, 1031);
        check(threads, 1, 2000, 301);
        check(threads, 6, 2000, 301);
        if (!machine_.is_cpu()) check(threads, 3, 9, 60000);  // more than fits in shared memory
      }
    }
  }

 private:
  void check(int threads, int64_t rows, int64_t n, int64_t k) {
    SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(rows) + "x" +
                 std::to_string(n) + "x" + std::to_string(k));
    run_case(weight_, dtype_, form_, machine_, rows, n, k);
  }
  DType weight_, dtype_;
  Form form_;
  const Machine& machine_;
};

[[maybe_unused]] const bool registered = [] {
  for (const DType weight : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const auto& [form, form_name] : kForms) {
        for (const Machine& machine : test::all_machines()) {
          const std::string test = std::string(name(weight)) + '.' + std::string(name(dtype)) +
                                   '.' + form_name + '.' + machine.name;
          testing::RegisterTest("Parity/linear", test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                                [weight, dtype, form = form, &machine]() -> testing::Test* {
                                  return new LinearTest(weight, dtype, form, machine);
                                });
        }
      }
    }
  }
  return true;
}();

std::vector<float> linear_f32(const Machine& machine, const PreparedWeight& weight,
                              std::vector<float> x, int64_t rows, LinearFusion fusion = {}) {
  std::vector<float> out(static_cast<size_t>(rows * weight.n));
  const OnMachine x_there(machine, x.data(), x.size() * sizeof(float));
  OnMachine out_there(machine, out.data(), out.size() * sizeof(float));
  machine.backend->linear({out_there.data(), DType::f32, dense({rows, weight.n})},
                          {x_there.data(), DType::f32, dense({rows, weight.k})}, weight, fusion);
  out_there.fetch();
  return out;
}

// A token has one accumulation chain over k, alone and in a prompt. bf16 prompts use the CPU's dot
// product instruction or tiles instead.
TEST(LinearFloat, SameBitsAloneAndInABatch) {
  constexpr int64_t kN = 83, kK = 700;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<Buffer> w{make_weight(dtype, Form::contiguous, 0, kN, kK)};
    std::vector<float> expected;
    for (const Machine& machine : test::machines()) {
      if (!machine.is_cpu() || machine.isa == cpu::Isa::v2) continue;
      const auto weight = prepare(machine, w);
      std::vector<float> x;
      for (int64_t i = 0; i < 20 * kK; ++i) {
        x.push_back(static_cast<float>(value(DType::f32, 0, i / kK, i % kK)));
      }
      std::vector<float> alone;
      for (int64_t r = 0; r < 20; ++r) {
        const std::vector<float> row(x.begin() + r * kK, x.begin() + (r + 1) * kK);
        const std::vector<float> out = linear_f32(machine, *weight, row, 1);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      if (expected.empty()) expected = alone;
      EXPECT_EQ(alone, expected) << name(dtype) << ' ' << machine.name;
      if (dtype != DType::bf16 ||
          cpu::bf16_compute(cpu::gemm_kernels(machine.isa)) == cpu::Compute::f32) {
        EXPECT_EQ(linear_f32(machine, *weight, x, 20), expected)
            << name(dtype) << ' ' << machine.name;
      }
      const std::vector<float> six(x.begin(), x.begin() + 6 * kK);
      EXPECT_EQ(linear_f32(machine, *weight, six, 6),
                std::vector<float>(expected.begin(), expected.begin() + 6 * kN));
    }
  }
}

/// Stacks matrices of `each` rows, with sizes that choose each order of sums.
TEST(LinearFloat, MatricesHaveTheBitsThatTheyHaveAlone) {
  constexpr int64_t kN = 83, kMatrices = 3;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t k : {700, 576}) {
      std::vector<Buffer> w{make_weight(dtype, Form::contiguous, 0, kN, k)};
      for (const Machine& machine : test::machines()) {
        if (machine.backend == nullptr) continue;
        const auto weight = prepare(machine, w);
        for (const int64_t each : {1, 2, 4, 5, 8, 9, 33, 64, 65, 130}) {
          const int64_t rows = kMatrices * each;
          std::vector<float> x;
          for (int64_t i = 0; i < rows * k; ++i) {
            x.push_back(static_cast<float>(value(DType::f32, 0, i / k, i % k)));
          }
          std::vector<float> expected;
          for (int64_t m = 0; m < kMatrices; ++m) {
            const std::vector<float> one(x.begin() + m * each * k, x.begin() + (m + 1) * each * k);
            LinearFusion fusion;
            fusion.each = each;
            const std::vector<float> out = linear_f32(machine, *weight, one, each, fusion);
            expected.insert(expected.end(), out.begin(), out.end());
          }
          LinearFusion fusion;
          fusion.each = each;
          EXPECT_EQ(linear_f32(machine, *weight, x, rows, fusion), expected)
              << name(dtype) << ' ' << machine.name << " k " << k << " each " << each;
          if (each > weight->rows_alike) continue;
          fusion.each = 1;
          EXPECT_EQ(linear_f32(machine, *weight, x, rows, fusion), expected)
              << name(dtype) << ' ' << machine.name << " k " << k << " rows alone, of " << each;
        }
      }
    }
  }
}

/// Up to rows_alike rows have the bits of each row alone, also if k is too long for several rows of
/// activations in shared memory.
TEST(LinearFloat, FewRowsOfALongSumHaveTheBitsThatTheyHaveAlone) {
  constexpr int64_t kN = 21, kK = 16640, kMostRows = 40;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<Buffer> w{make_weight(dtype, Form::contiguous, 0, kN, kK)};
    for (const Machine& machine : test::machines()) {
      if (machine.backend == nullptr) continue;
      const auto weight = prepare(machine, w);
      const int64_t most = std::min(weight->rows_alike, kMostRows);
      for (const int64_t rows : {std::min<int64_t>(most, 3), std::min<int64_t>(most, 5), most}) {
        std::vector<float> x, expected;
        for (int64_t i = 0; i < rows * kK; ++i) {
          x.push_back(static_cast<float>(value(DType::f32, 0, i / kK, i % kK)));
        }
        for (int64_t row = 0; row < rows; ++row) {
          const std::vector<float> one(x.begin() + row * kK, x.begin() + (row + 1) * kK);
          const std::vector<float> out = linear_f32(machine, *weight, one, 1);
          expected.insert(expected.end(), out.begin(), out.end());
        }
        EXPECT_EQ(linear_f32(machine, *weight, x, rows), expected)
            << name(dtype) << ' ' << machine.name << " rows " << rows;
      }
    }
  }
}

TEST(LinearFloat, NanAndInfinityPropagate) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr int64_t kN = 40, kK = 65;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<Buffer> w{Buffer(dtype, dense({kN, kK}), kN * kK)};
    for (int64_t i = 0; i < kN * kK; ++i) w[0].set(i, test::encode(dtype, 1.0));
    w[0].set(3 * kK + 5, test::encode(dtype, 0.0));
    for (const Machine& machine : test::machines()) {
      const auto weight = prepare(machine, w);
      for (const int64_t rows : {3, 12}) {
        std::vector<float> x(static_cast<size_t>(rows * kK), 1.0f);
        x[kK - 1] = std::nanf("");
        x[static_cast<size_t>(kK + 5)] = kInf;
        const std::vector<float> out = linear_f32(machine, *weight, x, rows);
        for (int64_t i = 0; i < kN; ++i) {
          EXPECT_TRUE(std::isnan(out[static_cast<size_t>(i)]));
          const float second = out[static_cast<size_t>(kN + i)];
          EXPECT_TRUE(i == 3 ? std::isnan(second) : second == kInf) << i << ' ' << second;
          EXPECT_EQ(out[static_cast<size_t>(2 * kN + i)], i == 3 ? kK - 1.0f : kK);
        }
      }
    }
  }
}

// Weights and activations whose range exceeds f16: rows of very different magnitudes, and infinite
// weights.
TEST(LinearFloat, ExtremesOfF16Weights) {
  constexpr int64_t kN = 66, kK = 96, kRows = 40;
  std::vector<Buffer> w{make_weight(DType::f16, Form::contiguous, 0, kN, kK)};
  std::vector<float> x;
  for (int64_t i = 0; i < kRows * kK; ++i) {
    // The magnitude ranges from 2^-120 to 2^114 between rows, and by 2^±6 within a row.
    const int size = static_cast<int>(i / kK * 6 - 120 + i % kK % 13 - 6);
    x.push_back(std::ldexp(static_cast<float>(value(DType::f32, 0, i / kK, i % kK)), size));
  }
  for (const bool infinite : {false, true}) {
    if (infinite) w[0].set(5 * kK + 3, 0xfc00);  // output 5, input 3: -infinity
    for (const Machine& machine : test::machines()) {
      const auto weight = prepare(machine, w);
      const std::vector<float> out = linear_f32(machine, *weight, x, kRows);
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t i = 0; i < kN; ++i) {
          Truth truth;
          for (int64_t p = 0; p < kK; ++p) {
            const double product = static_cast<double>(x[static_cast<size_t>(r * kK + p)]) *
                                   test::decode(DType::f16, w[0].get(i * kK + p));
            truth.value += product;
            truth.magnitude += std::fabs(product);
          }
          const float got = out[static_cast<size_t>(r * kN + i)];
          EXPECT_EQ(test::outside_bound(DType::f32, got, truth, kK), "")
              << machine.name << " row " << r << " output " << i;
        }
      }
    }
  }
}

TEST(LinearFloat, AddsAResidual) {
  constexpr int64_t kN = 37, kK = 70;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<Buffer> w{make_weight(dtype, Form::contiguous, 0, kN, kK)};
    for (const Machine& machine : test::machines()) {
      const auto weight = prepare(machine, w);
      for (const int64_t rows : {1, 3, 20, 70}) {
        std::vector<float> x, residual;
        for (int64_t i = 0; i < rows * kK; ++i) {
          x.push_back(static_cast<float>(value(DType::f32, 0, i / kK, i % kK)));
        }
        // The rows are part of a wider matrix.
        for (int64_t i = 0; i < rows * (kN + 3); ++i) {
          residual.push_back(static_cast<float>(value(DType::f32, 2, i, 0)));
        }
        const OnMachine there(machine, residual.data(), residual.size() * sizeof(float));
        LinearFusion fusion;
        fusion.add = true;
        fusion.residual = {there.data(), DType::f32, dense({rows, kN + 3}).narrow(1, 2, kN)};
        const std::vector<float> without = linear_f32(machine, *weight, x, rows);
        const std::vector<float> with = linear_f32(machine, *weight, x, rows, fusion);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < kN; ++i) {
            const auto at = static_cast<size_t>(r * kN + i);
            const float added = residual[static_cast<size_t>(r * (kN + 3) + 2 + i)];
            EXPECT_EQ(with[at], without[at] + added) << machine.name << ' ' << r << ' ' << i;
          }
        }
      }
    }
  }
}

TEST(LinearFloat, ReleasedSourceStaysReadable) {
  constexpr int64_t kN = 1000, kK = 577;
  Buffer w = make_weight(DType::f16, Form::contiguous, 0, kN, kK);
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(w.bytes.data(), 1, w.bytes.size(), file), w.bytes.size());
  std::fflush(file);
  void* mapped = mmap(nullptr, w.bytes.size(), PROT_READ, MAP_PRIVATE, fileno(file), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  // Two parts, of which the second starts within a page.
  const ConstView views[] = {{mapped, DType::f16, w.layout.narrow(0, 0, 333)},
                             {mapped, DType::f16, w.layout.narrow(0, 333, kN - 333)}};
  const ConstView whole{w.bytes.data(), DType::f16, w.layout};
  std::vector<float> x;
  for (int64_t p = 0; p < kK; ++p) x.push_back(static_cast<float>(value(DType::f32, 0, 0, p)));
  for (const Machine& machine : test::machines()) {
    if (!machine.is_cpu()) continue;
    const auto released = machine.backend->prepare(views, true);
    const auto kept = machine.backend->prepare({&whole, 1}, false);
    EXPECT_EQ(linear_f32(machine, *released, x, 1), linear_f32(machine, *kept, x, 1));
    EXPECT_EQ(std::memcmp(mapped, w.bytes.data(), w.bytes.size()), 0);
  }
  munmap(mapped, w.bytes.size());
  std::fclose(file);
}

}  // namespace
}  // namespace wick
