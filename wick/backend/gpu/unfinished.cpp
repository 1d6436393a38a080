#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/float_weight.h"
#include "wick/base/error.h"

// Methods that have no kernels yet. Each goes as its kernels come.

namespace wick::gpu {
namespace {

[[noreturn]] void unfinished(const char* op) { throw Error(op, "not on GPUs yet"); }

}  // namespace

// move.cpp
void GpuBackend::fill(const View&, Scalar) { unfinished("fill"); }
void GpuBackend::iota(const View&, Scalar, Scalar) { unfinished("iota"); }
void GpuBackend::copy(const View&, const ConstView&) { unfinished("copy"); }
void GpuBackend::cast(const View&, const ConstView&) { unfinished("cast"); }
void GpuBackend::index_select(const View&, const ConstView&, const ConstView&, int) {
  unfinished("index_select");
}
// map.cpp
void GpuBackend::unary(Op, const View&, const ConstView&) { unfinished("unary"); }
void GpuBackend::binary(Op, const View&, const ConstView&, const ConstView&) {
  unfinished("binary");
}
void GpuBackend::affine(const View&, const ConstView&, Scalar, Scalar) { unfinished("affine"); }
// reduce.cpp
void GpuBackend::reduce(Op, const View&, const ConstView&, uint32_t) { unfinished("reduce"); }
void GpuBackend::arg_reduce(Op, const View&, const ConstView&, int) { unfinished("arg_reduce"); }
// linear/
void GpuBackend::quantize(const View&, const ConstView&) { unfinished("quantize"); }
void GpuBackend::dequantize(const View&, const ConstView&) { unfinished("dequantize"); }
// norm.cpp
void GpuBackend::softmax(const View&, const ConstView&, int, bool) { unfinished("softmax"); }
void GpuBackend::rms_norm(const View&, const ConstView&, const ConstView&, float) {
  unfinished("rms_norm");
}
void GpuBackend::rope(const View&, const ConstView&, const ConstView&, const ConstView&, bool) {
  unfinished("rope");
}
// attention.cpp
void GpuBackend::attention(const View&, const ConstView&, const ConstView&, const ConstView&,
                           const AttentionParams&) {
  unfinished("attention");
}
void GpuBackend::cached_attention(const View&, const ConstView&, const CachedAttention&) {
  unfinished("cached_attention");
}

}  // namespace wick::gpu
