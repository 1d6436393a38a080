#include <fmt/format.h>

#include <atomic>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/map/looked_up.h"
#include "wick/backend/cpu/map/map_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

/// What an op costs per element: a few instructions, a division or a square root, or more.
enum class Cost { light, division, heavy };
constexpr Cost cost_of(Op op) {
  const OpKind kind = info(op).kind;
  if (kind == OpKind::compare || kind == OpKind::test) return Cost::light;
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::sqr:
    case Op::relu:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::bitwise_not:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::maximum:
    case Op::minimum:
    case Op::bitwise_and:
    case Op::bitwise_or:
    case Op::bitwise_xor:
    case Op::shift_left:
    case Op::shift_right:
    case Op::affine:
    case Op::clamp:
    case Op::where:
      return Cost::light;
    case Op::sqrt:
    case Op::recip:
    case Op::div:
      return Cost::division;
    default:
      return Cost::heavy;
  }
}

/// The fewest elements for a thread: a few microseconds of work.
constexpr int64_t grain_of(Op op) {
  const Cost cost = cost_of(op);
  return cost == Cost::light ? 32768 : (cost == Cost::division ? 16384 : 8192);
}

/// Non-temporal stores pay where memory bandwidth is the limit. Functions that arithmetic limits
/// need the cache to hide their stores: plain stores then cost nothing, non-temporal ones up to a
/// third.
constexpr bool worth_streaming(Op op, DType dtype) {
  if (op == Op::neg || op == Op::abs || op == Op::where) return true;  // no conversion
  if (op == Op::sqrt) return dtype == DType::f32 || dtype == DType::f64;
  return cost_of(op) != Cost::heavy && dtype != DType::f8e4m3;
}

int index(Op op) { return static_cast<int>(op); }
int index(DType dtype) { return static_cast<int>(dtype); }

/// A table's kernel. Errors: the op has none for the dtype.
template <class Kernel>
Kernel kernel_of(const Kernel (&run)[kOpCount][kRealDTypeCount], Op op, DType dtype) {
  const Kernel kernel = run[index(op)][index(dtype)];
  if (kernel == nullptr) {
    throw Error(ErrorKind::type, name(op), "dtype isn't supported", name(dtype));
  }
  return kernel;
}

/// Covers every element by calls of kernel(n, pointers to dense operands, stream).
template <size_t kInputs, class Kernel>
void map(Isa isa, Op op, DType dtype, const View& out, const ConstView* const (&inputs)[kInputs],
         Kernel&& kernel) {
  constexpr int kOperands = static_cast<int>(kInputs) + 1;
  const MoveKernels& move = WICK_SELECT_KERNELS(isa, move_kernels, no_dots);
  StridedOperands<kOperands> operands = collapse<kOperands>(out, inputs);
  const bool stream = worth_streaming(op, dtype) && should_stream(operands);
  for_each_run(operands, move.transpose, grain_of(op), stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 run_dense<kOperands>(n, at, stride, operands.elem_bytes, stream, kernel);
               });
}

}  // namespace

void CpuBackend::unary(Op op, const View& out, const ConstView& in) {
  const UnaryKernels& table = WICK_SELECT_KERNELS(isa_, unary_kernels, no_dots);
  const UnaryKernel kernel = kernel_of(table.run, op, out.dtype);
  const uint16_t* const results =
      results_to_look_up(isa_, op, out.dtype, kernel, out.layout.elems());
  if (results != nullptr) {
    return map(isa_, op, out.dtype, out, {&in},
               [&](int64_t n, char* const* p, bool) { look_up(results, n, p[0], p[1]); });
  }
  map(isa_, op, out.dtype, out, {&in},
      [&](int64_t n, char* const* p, bool stream) { kernel(n, p[0], p[1], stream); });
}

void CpuBackend::unary_with(Op op, const View& out, const ConstView& in, Scalar p, Scalar q) {
  const UnaryWithKernels& table = WICK_SELECT_KERNELS(isa_, unary_with_kernels, no_dots);
  const UnaryWithKernel kernel = kernel_of(table.run, op, out.dtype);
  // Narrow floats compute in f32, every other dtype in itself.
  const DType compute = is_float(out.dtype) && out.dtype != DType::f64 ? DType::f32 : out.dtype;
  const ScalarBytes u = convert(p, compute), v = convert(q, compute);
  map(isa_, op, out.dtype, out, {&in}, [&](int64_t n, char* const* at, bool stream) {
    kernel(n, at[0], at[1], u.bytes, v.bytes, stream);
  });
}

void CpuBackend::test(Op op, const View& out, const ConstView& in) {
  const CompareKernels& table = WICK_SELECT_KERNELS(isa_, compare_kernels, no_dots);
  const UnaryKernel kernel = kernel_of(table.test, op, in.dtype);
  map(isa_, op, in.dtype, out, {&in},
      [&](int64_t n, char* const* p, bool stream) { kernel(n, p[0], p[1], stream); });
}

void CpuBackend::binary(Op op, const View& out, const ConstView& a, const ConstView& b) {
  const BinaryKernels& table = WICK_SELECT_KERNELS(isa_, binary_kernels, no_dots);
  const BinaryKernel kernel = kernel_of(table.run, op, out.dtype);
  std::atomic<bool> zero_divisor{false};
  map(isa_, op, out.dtype, out, {&a, &b}, [&](int64_t n, char* const* p, bool stream) {
    if (kernel(n, p[0], p[1], p[2], stream)) return;
    zero_divisor.store(true, std::memory_order_relaxed);
  });
  if (zero_divisor.load(std::memory_order_relaxed)) {
    throw Error(name(op), "integer division by zero",
                fmt::format("{}{} / {}{}", name(a.dtype), a.layout.shape().str(), name(b.dtype),
                            b.layout.shape().str()));
  }
}

void CpuBackend::compare(Op op, const View& out, const ConstView& a, const ConstView& b) {
  const CompareKernels& table = WICK_SELECT_KERNELS(isa_, compare_kernels, no_dots);
  const CompareKernel kernel = kernel_of(table.run, op, a.dtype);
  map(isa_, op, a.dtype, out, {&a, &b},
      [&](int64_t n, char* const* p, bool stream) { kernel(n, p[0], p[1], p[2], stream); });
}

void CpuBackend::where(const View& out, const ConstView& condition, const ConstView& a,
                       const ConstView& b) {
  const WhereKernels& table = WICK_SELECT_KERNELS(isa_, where_kernels, no_dots);
  const auto bytes = [](DType dtype) { return log2_bytes(info(dtype).block_bytes); };
  const WhereKernel kernel = table.run[bytes(condition.dtype)][bytes(out.dtype)];
  if (kernel == nullptr || !dtypes::kConditions.contains(condition.dtype)) {
    throw Error(ErrorKind::type, "where", "condition of this dtype", name(condition.dtype));
  }
  map(isa_, Op::where, out.dtype, out, {&condition, &a, &b},
      [&](int64_t n, char* const* p, bool stream) { kernel(n, p[0], p[1], p[2], p[3], stream); });
}

}  // namespace wick::cpu
