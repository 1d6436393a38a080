#include <fmt/format.h>

#include <atomic>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/map/map_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

/// What an op costs an element: a handful of instructions, a division or a root, or more.
enum class Cost { light, division, heavy };
constexpr Cost cost_of(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::sqr:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::maximum:
    case Op::minimum:
    case Op::affine:
      return Cost::light;
    case Op::sqrt:
    case Op::recip:
    case Op::div:
      return Cost::division;
    default:
      return Cost::heavy;
  }
}

/// Elements that a thread should get at least: a few microseconds of work.
constexpr int64_t grain_of(Op op) {
  const Cost cost = cost_of(op);
  return cost == Cost::light ? 32768 : (cost == Cost::division ? 16384 : 8192);
}

/// Streaming pays where memory is the limit. Functions and conversions whose arithmetic is need the
/// cache to hide their stores: plain stores then cost nothing, streamed ones up to a third.
constexpr bool worth_streaming(Op op, DType dtype) {
  if (op == Op::neg || op == Op::abs) return true;  // of any dtype: only the sign changes
  if (op == Op::sqrt) return dtype == DType::f32 || dtype == DType::f64;
  return cost_of(op) != Cost::heavy && dtype != DType::f8e4m3;
}

int index(Op op) { return static_cast<int>(op); }
int index(DType dtype) { return static_cast<int>(dtype); }

}  // namespace

void CpuBackend::unary(Op op, const View& out, const ConstView& in) {
  const UnaryKernels& table = WICK_SELECT_KERNELS(isa_, unary_kernels, v4);
  const MoveKernels& move = WICK_SELECT_KERNELS(isa_, move_kernels, v4);
  const UnaryKernel kernel = table.run[index(op)][index(out.dtype)];
  if (kernel == nullptr) {
    throw Error(name(op), "dtype isn't supported", name(out.dtype));
  }
  const ConstView* const inputs[] = {&in};
  Nest<2> nest = make_nest<2>(out, inputs);
  const bool stream = worth_streaming(op, out.dtype) && should_stream(nest);
  for_each_run(nest, move.transpose, grain_of(op), stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 run_dense<2>(n, at, stride, nest.elem_bytes, stream,
                              [&](int64_t m, char* const* p, bool around) {
                                kernel(m, p[0], p[1], around);
                              });
               });
}

void CpuBackend::binary(Op op, const View& out, const ConstView& a, const ConstView& b) {
  const BinaryKernels& table = WICK_SELECT_KERNELS(isa_, binary_kernels, v4);
  const MoveKernels& move = WICK_SELECT_KERNELS(isa_, move_kernels, v4);
  const BinaryKernel kernel = table.run[index(op)][index(out.dtype)];
  if (kernel == nullptr) {
    throw Error(name(op), "dtype isn't supported", name(out.dtype));
  }
  const ConstView* const inputs[] = {&a, &b};
  Nest<3> nest = make_nest<3>(out, inputs);
  const bool stream = worth_streaming(op, out.dtype) && should_stream(nest);
  std::atomic<bool> zero_divisor{false};
  for_each_run(nest, move.transpose, grain_of(op), stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 run_dense<3>(n, at, stride, nest.elem_bytes, stream,
                              [&](int64_t m, char* const* p, bool around) {
                                if (kernel(m, p[0], p[1], p[2], around)) return;
                                zero_divisor.store(true, std::memory_order_relaxed);
                              });
               });
  if (zero_divisor.load(std::memory_order_relaxed)) {
    throw Error(name(op), "integer division by zero",
                fmt::format("{}{} / {}{}", name(a.dtype), a.layout.shape().str(), name(b.dtype),
                            b.layout.shape().str()));
  }
}

void CpuBackend::affine(const View& out, const ConstView& in, Scalar mul, Scalar add) {
  const BinaryKernels& table = WICK_SELECT_KERNELS(isa_, binary_kernels, v4);
  const MoveKernels& move = WICK_SELECT_KERNELS(isa_, move_kernels, v4);
  const AffineKernel kernel = table.affine[index(out.dtype)];
  // Narrow floats compute in f32; everything else in the dtype itself.
  const DType compute = is_float(out.dtype) && out.dtype != DType::f64 ? DType::f32 : out.dtype;
  const ScalarBytes m = convert(mul, compute), b = convert(add, compute);
  const ConstView* const inputs[] = {&in};
  Nest<2> nest = make_nest<2>(out, inputs);
  const bool stream = worth_streaming(Op::affine, out.dtype) && should_stream(nest);
  for_each_run(nest, move.transpose, grain_of(Op::affine), stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 run_dense<2>(n, at, stride, nest.elem_bytes, stream,
                              [&](int64_t count, char* const* p, bool around) {
                                kernel(count, p[0], p[1], m.bytes, b.bytes, around);
                              });
               });
}

}  // namespace wick::cpu
