#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/error.h"

// Methods that have no kernels yet. Each goes as its kernels come.

namespace wick::gpu {
namespace {

[[noreturn]] void unfinished(const char* op) { throw Error(op, "not on GPUs yet"); }

}  // namespace

// reduce.cpp
void GpuBackend::reduce(Op, const View&, const ConstView&, uint32_t) { unfinished("reduce"); }
void GpuBackend::arg_reduce(Op, const View&, const ConstView&, int) { unfinished("arg_reduce"); }
// linear/matmul.cpp
void GpuBackend::matmul(const View&, const ConstView&, const ConstView&) { unfinished("matmul"); }
// linear/weight.cpp
std::unique_ptr<PreparedWeight> GpuBackend::prepare(std::span<const ConstView>, bool) {
  unfinished("prepare");
}
void GpuBackend::linear(const View&, const ConstView&, const PreparedWeight&, const LinearFusion&) {
  unfinished("linear");
}
// norm.cpp
void GpuBackend::softmax(const View&, const ConstView&, int, bool) { unfinished("softmax"); }
void GpuBackend::rms_norm(const View&, const ConstView&, const ConstView&, float) {
  unfinished("rms_norm");
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
