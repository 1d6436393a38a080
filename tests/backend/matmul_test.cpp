#include <gtest/gtest.h>

#include <map>
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

struct Dims {
  int64_t batch, m, n, k;
};

/// Returns the bits of element (batch, row, column) of operand `which`, independent of the layout.
uint64_t element(DType dtype, int which, int64_t batch, int64_t row, int64_t col) {
  const auto seed = static_cast<uint64_t>(which) * 0x51ed2701 + static_cast<uint64_t>(batch) * 977;
  return test::random_bits(
      dtype, (seed << 40) ^ (static_cast<uint64_t>(row) << 20) ^ static_cast<uint64_t>(col));
}

/// The product of one batch's matrices: true values for floats, wrapped bits for integers.
struct Reference {
  std::vector<Truth> truth;
  std::vector<uint64_t> bits;
};

const Reference& reference(DType dtype, int64_t a_batch, int64_t b_batch, const Dims& d) {
  static std::map<std::tuple<DType, int64_t, int64_t, int64_t, int64_t, int64_t>, Reference> cache;
  Reference& r = cache[{dtype, a_batch, b_batch, d.m, d.n, d.k}];
  if (!r.truth.empty() || !r.bits.empty()) return r;
  const auto size = [](int64_t x) { return static_cast<size_t>(x); };
  if (is_integer(dtype)) {
    std::vector<uint64_t> a(size(d.m * d.k)), b(size(d.k * d.n));
    for (int64_t i = 0; i < d.m * d.k; ++i) {
      a[size(i)] = element(dtype, 0, a_batch, i / d.k, i % d.k);
    }
    for (int64_t i = 0; i < d.k * d.n; ++i) {
      b[size(i)] = element(dtype, 1, b_batch, i / d.n, i % d.n);
    }
    r.bits.resize(size(d.m * d.n));
    for (int64_t i = 0; i < d.m; ++i) {
      for (int64_t p = 0; p < d.k; ++p) {
        for (int64_t j = 0; j < d.n; ++j) {
          r.bits[size(i * d.n + j)] += a[size(i * d.k + p)] * b[size(p * d.n + j)];
        }
      }
    }
    return r;
  }
  std::vector<double> a(size(d.m * d.k)), b(size(d.k * d.n));
  for (int64_t i = 0; i < d.m * d.k; ++i) {
    a[size(i)] = test::decode(dtype, element(dtype, 0, a_batch, i / d.k, i % d.k));
  }
  for (int64_t i = 0; i < d.k * d.n; ++i) {
    b[size(i)] = test::decode(dtype, element(dtype, 1, b_batch, i / d.n, i % d.n));
  }
  r.truth.resize(size(d.m * d.n));
  std::vector<double> sum(size(d.n)), magnitude(size(d.n));
  for (int64_t i = 0; i < d.m; ++i) {
    Truth* row = r.truth.data() + i * d.n;
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(magnitude.begin(), magnitude.end(), 0.0);
    for (int64_t p = 0; p < d.k; ++p) {
      const double x = a[size(i * d.k + p)];
      for (int64_t j = 0; j < d.n; ++j) {
        const double y = b[size(p * d.n + j)];
        if (dtype == DType::f64) row[j].value += static_cast<long double>(x) * y;
        sum[size(j)] += x * y;
        magnitude[size(j)] += std::fabs(x * y);
      }
    }
    for (int64_t j = 0; j < d.n; ++j) {
      if (dtype != DType::f64) row[j].value = sum[size(j)];
      row[j].magnitude = magnitude[size(j)];
    }
  }
  return r;
}

enum class Form {
  contiguous,
  transposed_a,
  transposed_b,
  transposed,
  transposed_out,
  sliced,
  stepped,
  reversed,
  empty,
  shared_a,
  shared_b,
  rank4,
  rank5,
  rank8,
};
constexpr std::pair<Form, const char*> kForms[] = {
    {Form::contiguous, "contiguous"},
    {Form::transposed_a, "transposed_a"},
    {Form::transposed_b, "transposed_b"},
    {Form::transposed, "transposed"},
    {Form::transposed_out, "transposed_out"},
    {Form::sliced, "sliced"},
    {Form::stepped, "stepped"},
    {Form::reversed, "reversed"},
    {Form::empty, "empty"},
    {Form::shared_a, "broadcast"},
    {Form::shared_b, "broadcast_b"},
    {Form::rank4, "rank4"},
    {Form::rank5, "rank5"},
    {Form::rank8, "rank8"},
};

Layout dense(std::initializer_list<int64_t> dims) { return Layout::contiguous(Shape(dims)); }

/// Makes a matrix batch [batch, rows, cols] with the requested layout.
Buffer make(DType dtype, Form form, int which, int64_t batch, int64_t rows, int64_t cols) {
  const bool flip =
      (which == 0 && form == Form::transposed_a) || (which == 1 && form == Form::transposed_b) ||
      (which == 2 && form == Form::transposed_out) || (which < 2 && form == Form::transposed);
  if (flip) {
    return Buffer(dtype, dense({batch, cols, rows}).transpose(1, 2), batch * rows * cols);
  }
  const Shape shape{batch, rows, cols};
  switch (form) {
    case Form::sliced: {
      const Layout whole = dense({batch + 1, rows + 3, cols + 5});
      return Buffer(dtype, whole.narrow(0, 1, batch).narrow(1, 2, rows).narrow(2, 3, cols),
                    whole.elems());
    }
    case Form::stepped: {
      const Layout whole = dense({batch, rows * 2, cols * 3});
      return Buffer(dtype, Layout(shape, {whole.stride(0), whole.stride(1) * 2, 3}, 1),
                    whole.elems());
    }
    case Form::reversed:
      return Buffer(dtype, Layout(shape, {-rows * cols, -cols, -1}, batch * rows * cols - 1),
                    batch * rows * cols);
    case Form::shared_a:
    case Form::shared_b:
      if (which == (form == Form::shared_a ? 0 : 1)) {
        return Buffer(dtype, dense({1, rows, cols}).broadcast_to(shape), rows * cols);
      }
      break;
    default:
      break;
  }
  return Buffer(dtype, dense({batch, rows, cols}), batch * rows * cols);
}

/// Splits the batch dimension into as many dims as the form's rank requires.
Layout with_rank(const Layout& layout, Form form, int64_t batch) {
  const Shape& s = layout.shape();
  if (form == Form::contiguous && batch == 1) return layout.squeeze(0);
  if (form == Form::rank4) return *layout.reshape(Shape{batch / 2, 2, s[1], s[2]});
  if (form == Form::rank8) {
    return *layout.reshape(Shape{1, 2, 1, 1, batch / 2, 1, s[1], s[2]});
  }
  if (form == Form::rank5) return *layout.reshape(Shape{2, 1, batch / 2, s[1], s[2]});
  return layout;
}

void run_case(DType dtype, Form form, const Machine& machine, const Dims& d) {
  Buffer a = make(dtype, form, 0, d.batch, d.m, d.k);
  Buffer b = make(dtype, form, 1, d.batch, d.k, d.n);
  const auto fill = [&](Buffer& buffer, int which) {
    const Layout& l = buffer.layout;
    for (int64_t z = 0; z < d.batch; ++z) {
      for (int64_t i = 0; i < l.shape()[1]; ++i) {
        for (int64_t j = 0; j < l.shape()[2]; ++j) {
          const int64_t at = l.offset() + z * l.stride(0) + i * l.stride(1) + j * l.stride(2);
          buffer.set(at, element(dtype, which, l.stride(0) == 0 ? 0 : z, i, j));
        }
      }
    }
  };
  fill(a, 0);
  fill(b, 1);
  Buffer out = make(dtype, form, 2, d.batch, d.m, d.n);
  const std::vector<char> before = out.bytes;
  OnMachine a_there(machine, a.bytes.data(), a.bytes.size());
  OnMachine b_there(machine, b.bytes.data(), b.bytes.size());
  OnMachine out_there(machine, out.bytes.data(), out.bytes.size());
  const auto view = [&](const OnMachine& there, const Buffer& buffer) {
    return View{there.data(), dtype, with_rank(buffer.layout, form, d.batch)};
  };
  machine.backend->matmul(view(out_there, out), view(a_there, a), view(b_there, b));
  out_there.fetch();

  std::vector<bool> written(static_cast<size_t>(out.storage_elems()));
  for (int64_t z = 0; z < d.batch; ++z) {
    const Reference& want = reference(dtype, a.layout.stride(0) == 0 && d.batch > 1 ? 0 : z,
                                      b.layout.stride(0) == 0 && d.batch > 1 ? 0 : z, d);
    for (int64_t i = 0; i < d.m; ++i) {
      for (int64_t j = 0; j < d.n; ++j) {
        const Layout& l = out.layout;
        const int64_t at = l.offset() + z * l.stride(0) + i * l.stride(1) + j * l.stride(2);
        written[static_cast<size_t>(at)] = true;
        const auto index = static_cast<size_t>(i * d.n + j);
        const uint64_t got = out.get(at);
        if (is_integer(dtype)) {
          const int bits = info(dtype).block_bytes * 8;
          const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
          ASSERT_EQ(got, want.bits[index] & mask) << z << ' ' << i << ' ' << j;
        } else {
          const std::string wrong =
              test::outside_bound(dtype, test::decode(dtype, got), want.truth[index], d.k);
          ASSERT_EQ(wrong, "") << "batch " << z << " row " << i << " column " << j << " of " << d.m
                               << 'x' << d.n << 'x' << d.k;
        }
      }
    }
  }
  const auto bytes = static_cast<size_t>(info(dtype).block_bytes);
  for (size_t e = 0; e < written.size(); ++e) {
    if (written[e]) continue;
    ASSERT_EQ(std::memcmp(&out.bytes[e * bytes], &before[e * bytes], bytes), 0)
        << "element " << e << " outside the view was written";
  }
}

std::vector<Dims> shapes(Form form, int threads) {
  std::vector<Dims> all;
  const bool batched = form >= Form::shared_a;
  for (const int64_t batch : {1, 2, 6}) {
    if (batched && batch == 1) continue;
    if (form >= Form::rank4 && batch == 2) continue;
    for (const auto& [m, n, k] : std::initializer_list<std::array<int64_t, 3>>{{1, 1, 1},
                                                                               {1, 1, 70},
                                                                               {1, 17, 33},
                                                                               {2, 300, 13},
                                                                               {3, 5, 7},
                                                                               {4, 65, 100},
                                                                               {8, 37, 90},
                                                                               {33, 1, 19},
                                                                               {40, 3, 129},
                                                                               {15, 33, 31},
                                                                               {14, 32, 64},
                                                                               {29, 67, 66},
                                                                               {5, 0, 3},
                                                                               {0, 4, 3},
                                                                               {5, 4, 0}}) {
      if (form == Form::empty && m * n * k != 0) continue;
      all.push_back({batch, m, n, k});
    }
  }
  if (form == Form::empty) return all;
  if (!batched) {
    all.push_back({1, 65, 300, 270});  // several blocks of B in each direction
    all.push_back({1, 17, 40, 8230});  // several passes over k
    all.push_back({1, 2, 600, 520});   // several strips
    all.push_back({1, 600, 2, 520});
    // Few rows with several passes over k, and columns that don't fill the last strip.
    for (const int64_t m : {1, 3, 7, 16}) all.push_back({1, m, 72, 1100});
    // All rows are aligned to 16 bytes, and the size exceeds a tile of 128 by 256.
    all.push_back({1, 264, 520, 200});
    all.push_back({2, 136, 264, 64});
  }
  if (form == Form::contiguous && threads > 1) {
    all.push_back({1, 233, 33, 8200});  // several row blocks
  }
  return all;
}

class ProductTest : public testing::Test {
 public:
  ProductTest(DType dtype, Form form, const Machine& machine)
      : dtype_(dtype), form_(form), machine_(machine) {}
  void TearDown() override { cpu::ThreadPool::global().set_threads(1); }
  void TestBody() override {
    if (machine_.backend == nullptr) GTEST_SKIP() << "absent: " << machine_.missing;
    const test::ExpectDeviceWork work(machine_, form_ != Form::empty);
    for (const int threads : {1, 2}) {
      if (threads > 1 && !machine_.is_cpu()) continue;
      cpu::ThreadPool::global().set_threads(threads);
      std::vector<Dims> all = shapes(form_, threads);
      // More large tiles than a GPU has multiprocessors.
      const bool dense = form_ == Form::contiguous || form_ == Form::transposed;
      if (!machine_.is_cpu() && dense && is_float(dtype_) && dtype_ != DType::f64) {
        all.push_back({1, 1100, 2302, 72});
      }
      for (const Dims& dims : all) {
        run_case(dtype_, form_, machine_, dims);
        if (HasFatalFailure()) {
          FAIL() << threads << " threads, batch " << dims.batch << ", " << dims.m << 'x' << dims.n
                 << 'x' << dims.k;
        }
      }
    }
  }

 private:
  DType dtype_;
  Form form_;
  const Machine& machine_;
};

[[maybe_unused]] const bool registered = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const auto& [form, form_name] : kForms) {
      for (const Machine& machine : test::all_machines()) {
        const std::string test = std::string(name(dtype)) + '.' + form_name + '.' + machine.name;
        testing::RegisterTest("Parity/matmul", test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [dtype, form = form, &machine]() -> testing::Test* {
                                return new ProductTest(dtype, form, machine);
                              });
      }
    }
  }
  return true;
}();

/// Returns the product of dense matrices [m, k] and [k, n], given as numbers or as bytes of any
/// dtype.
template <class T>
std::vector<T> dense_product(const Machine& machine, DType dtype, int64_t m, int64_t n, int64_t k,
                             std::vector<T> a, std::vector<T> b) {
  const size_t bytes = static_cast<size_t>(m * n * info(dtype).block_bytes);
  std::vector<T> out(bytes / sizeof(T));
  const OnMachine a_there(machine, a.data(), a.size() * sizeof(T));
  const OnMachine b_there(machine, b.data(), b.size() * sizeof(T));
  OnMachine out_there(machine, out.data(), out.size() * sizeof(T));
  machine.backend->matmul({out_there.data(), dtype, dense({m, n})},
                          {a_there.data(), dtype, dense({m, k})},
                          {b_there.data(), dtype, dense({k, n})});
  out_there.fetch();
  return out;
}

std::vector<float> product_f32(const Machine& machine, int threads, int64_t m, int64_t n, int64_t k,
                               const std::vector<float>& a, const std::vector<float>& b) {
  cpu::ThreadPool::global().set_threads(threads);
  std::vector<float> out = dense_product(machine, DType::f32, m, n, k, a, b);
  cpu::ThreadPool::global().set_threads(1);
  return out;
}

std::vector<float> random_floats(int64_t count, int which) {
  std::vector<float> x;
  for (int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<float>(test::decode(DType::f32, element(DType::f32, which, 0, 0, i))));
  }
  return x;
}

// This is stronger than the class: there is one accumulation chain over k, so blocking, threads and
// ISA don't change the bits.
TEST(Matmul, SameBitsOnEveryFmaIsaAndThreadCount) {
  for (const auto& [m, n, k] : std::initializer_list<std::array<int64_t, 3>>{
           {3, 70, 333}, {50, 2, 700}, {37, 300, 1000}, {5, 33, 9000}}) {
    const std::vector<float> a = random_floats(m * k, 0), b = random_floats(k * n, 1);
    std::vector<float> chain(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum = std::fma(a[static_cast<size_t>(i * k + p)], b[static_cast<size_t>(p * n + j)], sum);
        }
        chain[static_cast<size_t>(i * n + j)] = sum;
      }
    }
    for (const Machine& machine : test::machines()) {
      if (!machine.is_cpu() || machine.isa == cpu::Isa::v2) continue;
      for (const int threads : {1, 2}) {
        EXPECT_EQ(product_f32(machine, threads, m, n, k, a, b), chain)
            << machine.name << ' ' << m << 'x' << n << 'x' << k;
      }
    }
  }
}

// 16-bit results whose sums are kept in f32 between passes over k, one block of columns at a time.
TEST(Matmul, NarrowResultsAreTheRoundedSumsInBlocks) {
  constexpr int64_t kRows = 256, kCols = 2120, kDepth = 8200;
  const auto halves = [](int64_t count, int which) {
    std::vector<uint16_t> bits;
    for (int64_t i = 0; i < count; ++i) {
      bits.push_back(static_cast<uint16_t>(element(DType::f16, which, 0, 0, i)));
    }
    return bits;
  };
  const auto as_floats = [](const std::vector<uint16_t>& bits) {
    std::vector<float> values;
    for (const uint16_t x : bits) values.push_back(static_cast<float>(test::decode(DType::f16, x)));
    return values;
  };
  const std::vector<uint16_t> a = halves(kRows * kDepth, 0), b = halves(kDepth * kCols, 1);
  std::vector<float> sums;
  for (const Machine& machine : test::machines()) {
    if (!machine.is_cpu() || machine.isa == cpu::Isa::v2) continue;
    if (sums.empty()) {
      sums = product_f32(machine, 1, kRows, kCols, kDepth, as_floats(a), as_floats(b));
    }
    const std::vector<uint16_t> got =
        dense_product(machine, DType::f16, kRows, kCols, kDepth, a, b);
    for (size_t i = 0; i < got.size(); ++i) {
      const double want = test::round_to(DType::f16, static_cast<double>(sums[i]));
      ASSERT_EQ(test::decode(DType::f16, got[i]), want) << machine.name << ' ' << i;
    }
  }
}

// Scratch memory doesn't grow with the result: it is 8 MiB of packed rows, and for each thread a
// block of columns and 2 MiB of sums.
TEST(Matmul, WorkspaceIsBounded) {
  constexpr int64_t kSizes[] = {1, 7, 250, 384, 385, 1030, 8192, 8193, 70000, 1 << 20, 1 << 24};
  constexpr size_t kRowBytes = 8 << 20, kThreadBytes = 5 << 19;
  size_t largest = 0;
  for (const Machine& machine : test::machines()) {
    if (!machine.is_cpu()) continue;
    const cpu::GemmKernels& kernels = cpu::gemm_kernels(machine.isa);
    const auto check = [&](cpu::Compute compute, DType dtype, int64_t m, int64_t n, int64_t k) {
      for (const int64_t step : {1, 2}) {
        const cpu::GemmResult out{nullptr, dtype, n * step, step, nullptr, nullptr};
        for (const int threads : {1, 2, 64}) {
          const cpu::GemmPlan plan = cpu::plan_gemm(kernels, compute, m, n, k, out, threads);
          largest = std::max(largest, plan.workspace_bytes());
          const size_t limit = kRowBytes + static_cast<size_t>(plan.parts) * kThreadBytes;
          ASSERT_LE(plan.workspace_bytes(), limit)
              << machine.name << ' ' << name(dtype) << ' ' << m << 'x' << n << 'x' << k << ' '
              << threads << " threads, columns " << step << " apart";
        }
      }
    };
    for (const int64_t m : kSizes) {
      for (const int64_t n : kSizes) {
        for (const int64_t k : kSizes) {
          check(cpu::Compute::f32, DType::f16, m, n, k);
          check(cpu::Compute::f32, DType::f32, m, n, k);
          check(cpu::Compute::f64, DType::f64, m, n, k);
          for (const auto compute : {cpu::Compute::bf16_dot, cpu::Compute::bf16_tiles}) {
            if (kernels.type(compute).multiply != nullptr) check(compute, DType::bf16, m, n, k);
          }
        }
      }
    }
  }
  EXPECT_GT(largest, kRowBytes);  // otherwise nothing was planned
}

TEST(Matmul, NanAndInfinityPropagate) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto size = static_cast<size_t>(info(dtype).block_bytes);
    // Infinity is 0x7c00, 0x7f80 or 0x7f800000; NaN has one more bit.
    const uint64_t inf = dtype == DType::f32 ? 0x7f800000 : dtype == DType::f16 ? 0x7c00 : 0x7f80;
    const uint64_t nan = inf | inf >> 1, one = test::encode(dtype, 1.0);
    for (const Machine& machine : test::machines()) {
      for (const auto& [m, n, k] : std::initializer_list<std::array<int64_t, 3>>{
               {1, 20, 9}, {30, 2, 40}, {20, 40, 300}, {136, 136, 64}}) {
        Buffer a(dtype, dense({m, k}), m * k), b(dtype, dense({k, n}), k * n);
        for (int64_t i = 0; i < m * k; ++i) a.set(i, one);
        for (int64_t i = 0; i < k * n; ++i) b.set(i, one);
        a.set(k - 1, nan);            // row 0
        b.set((k - 1) * n + 1, inf);  // column 1
        const std::vector<char> out = dense_product(machine, dtype, m, n, k, a.bytes, b.bytes);
        ASSERT_EQ(out.size(), static_cast<size_t>(m * n) * size);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const double got = test::decode(dtype, test::read_bits(dtype, out.data(), i * n + j));
            if (i == 0) {
              EXPECT_TRUE(std::isnan(got)) << machine.name;
            } else {
              EXPECT_EQ(got, j == 1 ? kInf : static_cast<double>(k)) << machine.name;
            }
          }
        }
        b.set(0, inf);
        a.set((m - 1) * k, 0);  // 0 · ∞ in the last row, column 0
        const std::vector<char> again = dense_product(machine, dtype, m, n, k, a.bytes, b.bytes);
        const uint64_t corner = test::read_bits(dtype, again.data(), (m - 1) * n);
        EXPECT_TRUE(std::isnan(test::decode(dtype, corner))) << machine.name;
      }
    }
  }
}

// The checker must distinguish f32 accumulation from f16 accumulation.
TEST(Matmul, BoundRejectsAnF16Accumulator) {
  constexpr int64_t kLength = 512;
  int rejected = 0, accepted_f32 = 0;
  for (int64_t column = 0; column < 64; ++column) {
    Truth truth;
    double half = 0;
    float single = 0;
    for (int64_t p = 0; p < kLength; ++p) {
      const double x = test::decode(DType::f16, element(DType::f16, 0, 0, 0, p));
      const double y = test::decode(DType::f16, element(DType::f16, 1, 0, p, column));
      truth.value += static_cast<long double>(x) * y;
      truth.magnitude += std::fabs(x * y);
      half = test::round_to(DType::f16, half + x * y);
      single = std::fma(static_cast<float>(x), static_cast<float>(y), single);
    }
    const double rounded = test::round_to(DType::f16, single);
    rejected += test::outside_bound(DType::f16, half, truth, kLength).empty() ? 0 : 1;
    accepted_f32 += test::outside_bound(DType::f16, rounded, truth, kLength).empty() ? 1 : 0;
  }
  EXPECT_GE(rejected, 48);
  EXPECT_EQ(accepted_f32, 64);
}

}  // namespace
}  // namespace wick
