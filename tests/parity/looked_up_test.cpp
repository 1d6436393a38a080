// 16-bit functions of many numbers, for which the CPU uses lookup tables, must give the results
// that they give for few numbers.

#include <vector>

#include "tests/parity/harness.h"
#include "wick/backend/cpu/cpu_backend.h"

namespace wick::parity {
namespace {

constexpr int64_t kNumbers = 65536, kCopies = 5;

std::vector<uint16_t> numbers(int64_t count) {
  std::vector<uint16_t> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
  return x;
}

bool is_nan(DType dtype, uint16_t bits) {
  const int infinity = dtype == DType::bf16 ? 0x7f80 : 0x7c00;
  return (bits & 0x7fff) > infinity;
}

void check(cpu::Isa isa, Op op, DType dtype) {
  cpu::CpuBackend backend(isa);
  const auto run = [&](const std::vector<uint16_t>& x, int64_t step) {
    std::vector<uint16_t> y(x.size() / static_cast<size_t>(step), 0x1234);
    const auto n = static_cast<int64_t>(y.size());
    backend.unary(op, {y.data(), dtype, Layout::contiguous({n})},
                  {x.data(), dtype, Layout(Shape{n}, {step}, 0)});
    return y;
  };
  const std::vector<uint16_t> few = run(numbers(kNumbers), 1);
  for (int64_t step : {1, 3}) {
    const std::vector<uint16_t> x = numbers(kCopies * step * kNumbers);
    const std::vector<uint16_t> many = run(x, step);
    for (size_t i = 0; i < many.size(); ++i) {
      const uint16_t want = few[x[i * static_cast<size_t>(step)]];
      if (is_nan(dtype, want) && is_nan(dtype, many[i])) continue;
      ASSERT_EQ(many[i], want) << name(op) << '.' << name(dtype) << ' ' << cpu::name(isa)
                               << " step " << step << " of " << x[i * static_cast<size_t>(step)];
    }
  }
}

TEST(LookedUp, ManyNumbersGiveWhatFewDo) {
  for (cpu::Isa isa : cpu::available_isas()) {
    for (Op op : {Op::sin, Op::cos, Op::erf, Op::normcdf, Op::gelu, Op::gelu_erf, Op::exp}) {
      for (DType dtype : {DType::bf16, DType::f16}) check(isa, op, dtype);
    }
  }
}

}  // namespace
}  // namespace wick::parity
