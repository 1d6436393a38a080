// Rows of blocks to floats and back, under any layout of the float side.

#include <algorithm>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/block_kernels.h"
#include "wick/backend/cpu/linear/rows.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

constexpr int64_t kRunElems = 512;  // converted at a time, by way of the stack
constexpr int64_t kGrainElems = 16384;

/// Elements [at, at + n) steps of `stride` of the float side, as dense floats and back.
void read_values(const BlockKernels& kernels, const ConstView& view, int64_t at, int64_t stride,
                 int64_t n, float* out) {
  if (view.dtype == DType::f32) {
    const float* from = static_cast<const float*>(view.data) + at;
    for (int64_t i = 0; i < n; ++i) out[i] = from[i * stride];
    return;
  }
  const auto* from = static_cast<const uint16_t*>(view.data) + at;
  const HalfCodec& codec = view.dtype == DType::f16 ? kernels.f16 : kernels.bf16;
  if (stride == 1) {
    codec.to_f32(from, n, out);
    return;
  }
  uint16_t dense[kRunElems];
  for (int64_t i = 0; i < n; ++i) dense[i] = from[i * stride];
  codec.to_f32(dense, n, out);
}

void write_values(const BlockKernels& kernels, const View& view, int64_t at, int64_t stride,
                  int64_t n, const float* in) {
  if (view.dtype == DType::f32) {
    float* to = static_cast<float*>(view.data) + at;
    for (int64_t i = 0; i < n; ++i) to[i * stride] = in[i];
    return;
  }
  auto* to = static_cast<uint16_t*>(view.data) + at;
  const HalfCodec& codec = view.dtype == DType::f16 ? kernels.f16 : kernels.bf16;
  if (stride == 1) {
    codec.from_f32(in, n, to);
    return;
  }
  uint16_t dense[kRunElems];
  codec.from_f32(in, n, dense);
  for (int64_t i = 0; i < n; ++i) to[i * stride] = dense[i];
}

/// Calls body(row, first element in it, blocks) for runs of whole blocks that cover all rows, on
/// all threads.
template <class Body>
void for_each_run(const Layout& floats, int64_t block, Body&& body) {
  const int64_t row_blocks = floats.shape().back() / block;
  parallel_for(
      row_count(floats) * row_blocks, kGrainElems / block, [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t row = begin / row_blocks, first = begin % row_blocks;
          const int64_t blocks = std::min({end - begin, row_blocks - first, kRunElems / block});
          body(row, first * block, blocks);
          begin += blocks;
        }
      });
}

}  // namespace

void CpuBackend::quantize(const View& out, const ConstView& in) {
  if (!is_block(out.dtype)) return cast(out, in);
  if (in.layout.elems() == 0) return;
  const BlockKernels& kernels = WICK_SELECT_KERNELS(isa_, block_kernels, v4);
  const BlockCodec codec = kernels.of(out.dtype);
  if (codec.quantize == nullptr) {
    throw Error(ErrorKind::type, "quantize", "block dtype can only be read",
                std::string(name(out.dtype)));
  }
  const int64_t stride = in.layout.stride(in.layout.rank() - 1);
  const int64_t block = info(out.dtype).block_elems;
  for_each_run(in.layout, block, [&](int64_t row, int64_t first, int64_t blocks) {
    float values[kRunElems];
    read_values(kernels, in, row_offset(in.layout, row) + first * stride, stride, blocks * block,
                values);
    const int64_t to = bytes_of(out.dtype, row_offset(out.layout, row) + first);
    codec.quantize(values, blocks, static_cast<uint8_t*>(out.data) + to);
  });
}

void CpuBackend::dequantize(const View& out, const ConstView& in) {
  if (!is_block(in.dtype)) return cast(out, in);
  if (out.layout.elems() == 0) return;
  const BlockKernels& kernels = WICK_SELECT_KERNELS(isa_, block_kernels, v4);
  const BlockCodec codec = kernels.of(in.dtype);
  const int64_t stride = out.layout.stride(out.layout.rank() - 1);
  const int64_t block = info(in.dtype).block_elems;
  for_each_run(out.layout, block, [&](int64_t row, int64_t first, int64_t blocks) {
    float values[kRunElems];
    const int64_t from = bytes_of(in.dtype, row_offset(in.layout, row) + first);
    codec.dequantize(static_cast<const uint8_t*>(in.data) + from, blocks, values);
    write_values(kernels, out, row_offset(out.layout, row) + first * stride, stride, blocks * block,
                 values);
  });
}

}  // namespace wick::cpu
