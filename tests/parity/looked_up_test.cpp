// 16-bit functions of many numbers, for which backends use lookup tables, must give the results
// that they give for few numbers.

#include <vector>

#include "tests/parity/harness.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/map/map_abi.h"

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

/// Results on a GPU that has shared memory for a table. Some elements follow the last vector, and a
/// run that begins between vectors is computed without the table.
void check_on(Backend& gpu, Op op, DType dtype) {
  constexpr int64_t kMany = (8 << 20) + 13;
  const auto run = [&](int64_t count, int64_t first) {
    const std::vector<uint16_t> x = numbers(first + count);
    const size_t bytes = x.size() * 2;
    void *const in = gpu.alloc(bytes), *const out = gpu.alloc(bytes);
    gpu.upload(in, x.data(), bytes);
    const Layout layout(Shape{count}, {1}, first);
    gpu.unary(op, {out, dtype, layout}, {in, dtype, layout});
    std::vector<uint16_t> y(x.size());
    gpu.download(y.data(), out, bytes);
    gpu.free(in, bytes);
    gpu.free(out, bytes);
    return std::vector<uint16_t>(y.begin() + first, y.end());
  };
  const std::vector<uint16_t> few = run(kNumbers, 0);
  for (int64_t first : {0, 3}) {
    const std::vector<uint16_t> many = run(kMany, first);
    for (size_t i = 0; i < many.size(); ++i) {
      const uint16_t want = few[(i + static_cast<size_t>(first)) % kNumbers];
      if (is_nan(dtype, want) && is_nan(dtype, many[i])) continue;
      ASSERT_EQ(many[i], want) << name(op) << '.' << name(dtype) << " of element " << i;
    }
  }
}

TEST(LookedUp, ManyNumbersGiveWhatFewDoOnGpus) {
  for (const Target& target : all_targets()) {
    if (target.backend == nullptr || target.backend->device().kind == DeviceKind::cpu) continue;
    const gpu::Gpu& gpu = gpu::backend_of(target.backend->device()).gpu();
    if (gpu.info.shared_bytes < static_cast<int>(gpu::kLookedUpBytes)) continue;
    for (Op op : {Op::sin, Op::log1p, Op::erf, Op::normcdf, Op::gelu_erf}) {
      for (DType dtype : {DType::bf16, DType::f16}) check_on(*target.backend, op, dtype);
    }
  }
}

}  // namespace
}  // namespace wick::parity
