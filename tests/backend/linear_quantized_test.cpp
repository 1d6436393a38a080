// GEMMs with weights of every block type must have the bits of the scalar contract on every
// instruction set, for every number of columns and threads.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <random>

#include "tests/backend/linear_quantized_reference.h"
#include "tests/backend/parity_case.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick {
namespace {

using cpu::Isa;

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

int mantissa_bits(DType dtype) { return dtype == DType::f16 ? 10 : 7; }

uint16_t half_bits(float x, int mantissa) {
  // The halves that tests write are exact or special values, so truncation suffices.
  const float y = reference::round_to_half(x, mantissa);
  const auto sign = static_cast<uint16_t>(std::signbit(y) ? 0x8000 : 0);
  const int bias = (1 << (14 - mantissa)) - 1;
  const int special = (2 * bias + 1) << mantissa;
  if (std::isnan(y)) return static_cast<uint16_t>(special | 1);
  if (std::isinf(y)) return static_cast<uint16_t>(sign | special);
  if (y == 0.0f) return sign;
  const int exponent = std::max(std::ilogb(y), 1 - bias);
  const auto units = static_cast<int>(std::ldexp(std::fabs(y), mantissa - exponent));
  const int normal = units >> mantissa;  // 0 for a denormal
  return static_cast<uint16_t>(sign | ((exponent + bias - 1 + normal) << mantissa) |
                               (units - (normal << mantissa)));
}

/// A float tensor with its own memory, whose rows a test reads and writes element by element.
struct Floats {
  DType dtype;
  std::vector<uint8_t> bytes;

  Floats(DType type, int64_t elems)
      : dtype(type), bytes(static_cast<size_t>(bytes_of(type, elems)), 0xAB) {}

  float get(int64_t i) const {
    if (dtype == DType::f32) {
      float x;
      std::memcpy(&x, bytes.data() + 4 * i, 4);
      return x;
    }
    return static_cast<float>(
        reference::decode_half(reference::read_u16(bytes.data() + 2 * i), mantissa_bits(dtype)));
  }
  void set(int64_t i, float x) {
    if (dtype == DType::f32) {
      std::memcpy(bytes.data() + 4 * i, &x, 4);
    } else {
      const uint16_t h = half_bits(x, mantissa_bits(dtype));
      std::memcpy(bytes.data() + 2 * i, &h, 2);
    }
  }
};

/// Returns random blocks with scales of either sign.
std::vector<uint8_t> random_blocks(DType type, int64_t n, int64_t k, std::mt19937& rng) {
  std::vector<uint8_t> bytes(static_cast<size_t>(bytes_of(type, n * k)));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng());
  std::uniform_real_distribution<float> scale(-0.02f, 0.02f);
  const auto block = static_cast<size_t>(info(type).block_bytes);
  for (size_t at = 0; at < bytes.size(); at += block) {
    const uint16_t d = half_bits(scale(rng), 10), m = half_bits(scale(rng) * 4, 10);
    reference::write_scales(type, &bytes[at], d, m);
  }
  return bytes;
}

/// Returns k for a case with a given number of blocks, rounded up to whole superblocks if the type
/// has them.
int64_t depth(DType type, int64_t blocks) {
  const int64_t each = info(type).block_elems;
  return each == 32 ? 32 * blocks : each * ((blocks + 7) / 8);
}

ConstView block_view(DType type, const void* data, int64_t n, int64_t k) {
  return {data, type, Layout::contiguous({n, k})};
}

float expected_store(float y, DType dtype) {
  return dtype == DType::f32 ? y : reference::round_to_half(y, mantissa_bits(dtype));
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

/// The operands of a case and its result.
struct Problem {
  DType type, dtype;
  int64_t n, k, columns;
  std::vector<uint8_t> weight;
  Floats x;                // [columns, k]
  std::vector<float> out;  // [columns, n]

  Problem(DType weight_type, DType x_type, int64_t rows, int64_t depth, int64_t batch,
          const std::function<float(int64_t, int64_t, float)>& change = {})
      : type(weight_type),
        dtype(x_type),
        n(rows),
        k(depth),
        columns(batch),
        x(x_type, batch * depth) {
    std::mt19937 rng(static_cast<uint32_t>(n * 7919 + k * 31 + batch));
    weight = random_blocks(type, n, k, rng);
    std::normal_distribution<float> normal;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < k; ++i) {
        const float value = normal(rng) * static_cast<float>(1 + c % 3);
        x.set(c * k + i, change ? change(c, i, value) : value);
      }
    }
    solve();
  }

  void solve() {
    std::vector<float> values;
    for (int64_t i = 0; i < columns * k; ++i) values.push_back(x.get(i));
    out = reference::product(type, weight, n, k, values.data(), columns);
    for (float& y : out) y = expected_store(y, dtype);
  }
};

/// The problems of a case, whose tests differ in the instruction set and run one after another.
/// Computing a problem's result takes longer than the product.
const Problem& shared_problem(const std::string& name, const std::function<Problem()>& make) {
  static std::string current;
  static std::map<std::string, Problem> problems;
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string of = test.substr(0, test.rfind(".cpu-"));
  if (of != current) problems.clear();
  current = of;
  auto found = problems.find(name);
  if (found == problems.end()) found = problems.emplace(name, make()).first;
  return found->second;
}
const Problem& shared_problem(DType type, DType dtype, int64_t n, int64_t k, int64_t batch) {
  return shared_problem(fmt::format("{}x{}x{}", n, k, batch),
                        [&] { return Problem(type, dtype, n, k, batch); });
}

/// Runs linear over the first `batch` columns and compares.
void check(cpu::CpuBackend& backend, const Problem& p, const PreparedWeight& weight,
           int64_t batch) {
  Floats out(p.dtype, batch * p.n);
  backend.linear({out.bytes.data(), p.dtype, Layout::contiguous({batch, p.n})},
                 {p.x.bytes.data(), p.dtype, Layout::contiguous({batch, p.k})}, weight, {});
  int wrong = 0;
  for (int64_t i = 0; i < batch * p.n && wrong < 5; ++i) {
    const float want = p.out[static_cast<size_t>(i)], got = out.get(i);
    if (same(want, got)) continue;
    ++wrong;
    ADD_FAILURE() << fmt::format("batch {} column {} row {}: want {:a}, got {:a}", batch, i / p.n,
                                 i % p.n, want, got);
  }
}

/// Sets the pool's number of threads during a test.
struct Threads {
  int before = cpu::ThreadPool::global().threads();
  explicit Threads(int count) { cpu::ThreadPool::global().set_threads(count); }
  ~Threads() { cpu::ThreadPool::global().set_threads(before); }
};

void shape_case(Isa isa, DType type, DType dtype, int64_t n, int64_t k, int64_t batch) {
  cpu::CpuBackend backend(isa);
  const Problem& p = shared_problem(type, dtype, n, k, batch);
  const ConstView part = block_view(type, p.weight.data(), n, k);
  // Decoded weights are multiplied with at most eight columns at a time, so fewer numbers of
  // columns meet all their kernels.
  const bool own = dtypes::kOwnProducts.contains(type);
  for (int threads : {1, 2}) {
    const Threads set(threads);
    const auto weight = backend.prepare(std::span(&part, 1), false);
    EXPECT_EQ(weight->n, n);
    EXPECT_EQ(weight->k, k);
    for (int64_t b = 0; b <= std::min<int64_t>(batch, own ? 40 : 17); ++b)
      check(backend, p, *weight, b);
    for (int64_t b = 64; b <= batch; b += own ? 61 : 500) check(backend, p, *weight, b);
  }
}

void parts_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const int64_t k = depth(type, 5), block = info(type).block_elems;
  const Problem& p = shared_problem(type, dtype, 75, k, 30);
  // The parts are rows 0..4, no rows, rows 5..40 of a wider matrix, and rows 41..74 in reverse
  // order.
  const int64_t wide = k + 2 * block;
  std::vector<uint8_t> padded(static_cast<size_t>(bytes_of(type, 36 * wide)), 0xFF);
  for (int64_t r = 0; r < 36; ++r) {
    std::memcpy(padded.data() + bytes_of(type, r * wide + block),
                p.weight.data() + bytes_of(type, (5 + r) * k),
                static_cast<size_t>(bytes_of(type, k)));
  }
  std::vector<uint8_t> reversed;
  for (int64_t r = 33; r >= 0; --r) {
    const uint8_t* row = p.weight.data() + bytes_of(type, (41 + r) * k);
    reversed.insert(reversed.end(), row, row + bytes_of(type, k));
  }
  const std::vector<ConstView> parts = {
      block_view(type, p.weight.data(), 5, k),
      block_view(type, p.weight.data(), 0, k),
      {padded.data(), type, Layout({36, k}, {wide, 1}, block)},
      {reversed.data(), type, Layout({34, k}, {-k, 1}, 33 * k)},
  };
  for (int threads : {1, 2}) {
    const Threads set(threads);
    const auto weight = backend.prepare(parts, false);
    for (int64_t b : {1, 3, 30}) check(backend, p, *weight, b);
  }
}

/// Activations and results with non-contiguous layouts.
void layout_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const int64_t n = 37, k = depth(type, 3);
  for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {5, 8}, {3, 40}}) {
    const Problem& p = shared_problem(type, dtype, n, k, a * b);
    const ConstView part = block_view(type, p.weight.data(), n, k);
    const auto weight = backend.prepare(std::span(&part, 1), false);
    // x [a, b, k]: every third column in reverse order, with swapped outer dims.
    const Layout x_layout({a, b, k}, {3 * k + 2, a * (3 * k + 2), -3}, 3 * k);
    // x with a dense last dim and a row pitch.
    const Layout pitched({a, b, k}, {b * (k + 8), k + 8, 1}, 5);
    const Layout out_dense({a, b, n}, {b * (n + 3), n + 3, 1}, 7);
    const Layout out_layout({a, b, n}, {2, 2 * a, 2 * a * b}, 1);
    for (const Layout& from : {x_layout, pitched}) {
      for (const Layout& to : {out_dense, out_layout}) {
        Floats x(dtype, 4 + 3 * (k + 8) * (a * b + 1)), out(dtype, 16 + 2 * a * b * (n + 3));
        for (int64_t c = 0; c < a * b; ++c) {
          for (int64_t i = 0; i < k; ++i) {
            x.set(from.offset() + c / b * from.stride(0) + c % b * from.stride(1) +
                      i * from.stride(2),
                  p.x.get(c * k + i));
          }
        }
        const Floats untouched = out;
        std::vector<bool> written(out.bytes.size());
        backend.linear({out.bytes.data(), dtype, to}, {x.bytes.data(), dtype, from}, *weight, {});
        for (int64_t c = 0; c < a * b; ++c) {
          for (int64_t r = 0; r < n; ++r) {
            const int64_t at =
                to.offset() + c / b * to.stride(0) + c % b * to.stride(1) + r * to.stride(2);
            written[static_cast<size_t>(at)] = true;
            ASSERT_TRUE(same(out.get(at), p.out[static_cast<size_t>(c * n + r)]))
                << "column " << c << " row " << r;
          }
        }
        for (int64_t i = 0; i < static_cast<int64_t>(out.bytes.size()) / info(dtype).block_bytes;
             ++i) {
          if (!written[static_cast<size_t>(i)]) {
            ASSERT_TRUE(same(out.get(i), untouched.get(i))) << "element " << i;
          }
        }
      }
    }
    // One row is broadcast with a stride of 0.
    Floats out(dtype, a * b * n);
    backend.linear({out.bytes.data(), dtype, Layout::contiguous({a, b, n})},
                   {p.x.bytes.data(), dtype, Layout({a, b, k}, {0, 0, 1}, 0)}, *weight, {});
    for (int64_t i = 0; i < a * b * n; ++i) {
      ASSERT_TRUE(same(out.get(i), p.out[static_cast<size_t>(i % n)]));
    }
  }
}

/// Zero, tiny, huge and non-finite activations.
Problem special_problem(DType type, DType dtype) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return Problem(type, dtype, 33, depth(type, 19), 30, [&](int64_t c, int64_t i, float x) {
    const int64_t block = i / 32;
    switch (c % 14) {
      case 0:
        return block % 3 == 1 ? (i % 2 != 0 ? -0.0f : 0.0f) : x;
      case 1:
        return x * 1e-30f;
      case 2:
        return x * 1e-40f;
      case 3:
        return i == 100 ? inf : x;
      case 4:
        return i == 32 * 18 + 31 ? nan : x;
      case 5:
        return i == 0 ? -inf : x;
      case 6:
        return x * 2e37f;
      case 7:
        return block == 3 ? 1e-30f : block == 4 ? 1.0001e-30f : x * 1e-3f;
      case 8:
        return block % 2 == 0 ? 127.0f * (i % 2 != 0 ? 1.0f : -1.0f) : x;
      case 9:  // one block of four determines their shared scale
        return x * (block % 4 == (block / 4) % 4 ? 300.0f : 0.25f);
      case 10:  // one of four blocks is zero, or all of them
        return block == 2 || block / 4 == 2 ? 0.0f : block == 5 ? 1e-41f : x;
      case 11:  // one block isn't finite
        return i == 32 * 15 ? nan : x;
      default:
        return std::round(x * 2.0f) * 0.5f + 0.5f;  // multiples of one half, to test ties
    }
  });
}

void special_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const Problem& p = shared_problem("", [&] { return special_problem(type, dtype); });
  const ConstView part = block_view(type, p.weight.data(), p.n, p.k);
  const auto weight = backend.prepare(std::span(&part, 1), false);
  for (int64_t b : {1, 2, 8, 9, 12, 30}) check(backend, p, *weight, b);
}

/// The largest possible integer sums, and scales that overflow, underflow or are NaN.
Problem extreme_problem(DType type, DType dtype) {
  Problem p(type, dtype, 48, depth(type, 11), 30, [](int64_t c, int64_t i, float) {
    return c % 3 == 0 ? 127.0f : c % 3 == 1 ? -127.0f : (i % 2 != 0 ? 127.0f : -127.0f);
  });
  const auto block = static_cast<size_t>(info(type).block_bytes);
  for (size_t at = 0; at < p.weight.size(); at += block) {
    const size_t row = at / static_cast<size_t>(bytes_of(type, p.k));
    const auto fill = static_cast<uint8_t>(row % 4 == 0   ? 0xFF
                                           : row % 4 == 1 ? 0x00
                                           : row % 4 == 2 ? 0x80
                                                          : 0x7F);
    const uint16_t d = row == 5   ? 0x7C00
                       : row == 6 ? 0x7E00
                       : row == 7 ? 0x0001
                       : row == 8 ? 0x8000
                       : row == 9 ? 0x7BFF
                                  : 0x3C00;
    const uint16_t m = row == 10 ? 0x7C00 : row == 11 ? 0xFBFF : 0x8400;
    std::fill_n(p.weight.begin() + static_cast<ptrdiff_t>(at), block, fill);
    // Combines the extreme factors with the extreme quants.
    if (type == DType::q6_k && row >= 12) {
      std::fill_n(&p.weight[at + 192], 16, static_cast<uint8_t>(row % 8 < 4 ? 0x80 : 0x7F));
    }
    reference::write_scales(type, &p.weight[at], d, m);
  }
  p.solve();
  return p;
}

void extreme_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const Problem& p = shared_problem("", [&] { return extreme_problem(type, dtype); });
  const ConstView part = block_view(type, p.weight.data(), p.n, p.k);
  const auto weight = backend.prepare(std::span(&part, 1), false);
  for (int64_t b : {1, 2, 8, 9, 10, 30}) check(backend, p, *weight, b);
}

/// Scales of every bit pattern, and activations of all magnitudes: their products overflow, are
/// denormal, or aren't numbers.
Problem range_problem(DType type, DType dtype) {
  Problem p(type, dtype, 64, depth(type, 24), 30, [](int64_t c, int64_t i, float x) {
    const int64_t group = c % 2 == 0 ? i / 32 : i / 128;
    return std::ldexp(x, static_cast<int>((group * 37 + c * 29) % 226) - 101);
  });
  std::mt19937 rng(5);
  const QuantInfo& row = quant(type);
  size_t block = 0;
  for (size_t at = 0; at < p.weight.size(); at += static_cast<size_t>(info(type).block_bytes)) {
    // Infinities and NaNs, which make a row's results NaN, are in the last rows only.
    const bool all = static_cast<int64_t>(block++) >= 48 * (p.k / info(type).block_elems);
    const auto half = [&] {
      const auto bits = static_cast<uint16_t>(rng());
      return static_cast<uint16_t>(!all && (bits & 0x7C00) == 0x7C00 ? bits ^ 0x4000 : bits);
    };
    if (row.scale == QuantScale::e8m0) {
      p.weight[at + static_cast<size_t>(row.at)] = static_cast<uint8_t>(rng());
    } else {
      const uint16_t d = half(), m = half();
      reference::write_scales(type, &p.weight[at], d, m);
    }
  }
  p.solve();
  return p;
}

void range_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const Problem& p = shared_problem("", [&] { return range_problem(type, dtype); });
  const ConstView part = block_view(type, p.weight.data(), p.n, p.k);
  const auto weight = backend.prepare(std::span(&part, 1), false);
  for (int64_t b : {1, 2, 8, 9, 30}) check(backend, p, *weight, b);
}

/// A mapped file: its pages are released as they are packed, and its contents stay.
void release_case(Isa isa, DType type, DType dtype) {
  cpu::CpuBackend backend(isa);
  const Problem& p = shared_problem(type, dtype, 1000, 1024, 2);
  std::string path = testing::TempDir() + "wick-linear-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  unlink(path.c_str());
  const size_t head = 4096 * 3 + 64;
  std::vector<uint8_t> bytes(head, 1);
  bytes.insert(bytes.end(), p.weight.begin(), p.weight.end());
  bytes.resize(bytes.size() + 5000, 2);
  ASSERT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  void* map = mmap(nullptr, bytes.size(), PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(map, MAP_FAILED);
  close(file);
  const auto* source = static_cast<const uint8_t*>(map);
  const ConstView part = block_view(type, source + head, p.n, p.k);
  const auto weight = backend.prepare(std::span(&part, 1), true);
  // Counts the pages that are still mapped into this process, from the kernel's page map.
  const int pagemap = open("/proc/self/pagemap", O_RDONLY);
  if (pagemap >= 0) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t present = 0, pages = 0;
    for (size_t at = head / page + 1; at < (head + p.weight.size()) / page; ++at, ++pages) {
      uint64_t entry = 0;
      const auto where = static_cast<off_t>((reinterpret_cast<uintptr_t>(map) / page + at) * 8);
      if (pread(pagemap, &entry, 8, where) == 8) present += entry >> 63;
    }
    close(pagemap);
    EXPECT_EQ(present, 0u) << "of " << pages;
  }
  EXPECT_EQ(std::memcmp(map, bytes.data(), bytes.size()), 0);
  for (int64_t b : {1, 2}) check(backend, p, *weight, b);
  munmap(map, bytes.size());
}

/// The integers, scales and minima of the contract are those of the formats' values.
TEST(QuantizedReference, WeightsAreTheValuesOfTheFormat) {
  std::mt19937 rng(3);
  for (const QuantInfo& quant : kQuants) {
    const DType type = quant.dtype;
    if (!dtypes::kOwnProducts.contains(type)) continue;
    const int64_t k = 64 * 256;
    const std::vector<uint8_t> row = random_blocks(type, 1, k, rng);
    const std::vector<float> values = reference::row_values(type, row.data(), k);
    for (size_t b = 0; b < static_cast<size_t>(k) / 32; ++b) {
      const reference::Block block(type, row.data(), b);
      for (size_t i = 0; i < 32; ++i) {
        const double scale = static_cast<double>(block.d) * block.factor[i / 16];
        const double minimum = static_cast<double>(block.dmin) * block.minimum[i / 16];
        const double value = scale * block.quant[i] - minimum + static_cast<double>(block.m);
        ASSERT_EQ(static_cast<float>(value), values[32 * b + i]) << name(type) << " block " << b;
      }
    }
  }
}

const bool kRegistered = [] {
  // n, k and columns that give whole and partial panels, units, chunks and passes.
  const int64_t shapes[][3] = {{1, 32, 40},    {16, 64, 40},    {17, 96, 40},   {48, 256, 40},
                               {50, 288, 40},  {100, 576, 70},  {33, 992, 40},  {7, 0, 3},
                               {20, 32, 1100}, {20, 256, 1100}, {100, 512, 70}, {33, 1280, 40},
                               {1, 256, 40},   {0, 256, 5},     {0, 64, 5}};
  const auto add = [](DType type, DType dtype, const std::string& what, parity::CaseBody body) {
    for (Isa isa : cpu::kIsas) parity::add_case("linear", isa, type, dtype, what, body);
  };
  for (const QuantInfo& quant : kQuants) {
    const DType type = quant.dtype;
    for (DType dtype : kFloats) {
      for (const auto& s : shapes) {
        const int64_t n = s[0], k = s[1], columns = s[2];
        if (k % info(type).block_elems != 0) continue;
        add(type, dtype, fmt::format("{}x{}", n, k),
            [=](Isa i, DType t, DType d) { shape_case(i, t, d, n, k, columns); });
      }
      add(type, dtype, "parts", parts_case);
      add(type, dtype, "layouts", layout_case);
      add(type, dtype, "special", special_case);
      add(type, dtype, "extreme", extreme_case);
    }
    add(type, DType::f32, "range", range_case);
    add(type, DType::f32, "release", release_case);
  }
  return true;
}();

}  // namespace
}  // namespace wick
