// Rows of blocks to floats and back, for any layout of the floats.

#include <algorithm>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/block_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

constexpr int64_t kRunElems = 512;  // converted at a time, in an array on the stack
constexpr int64_t kGrainElems = 16384;

/// Reads n elements of the float side, `stride` apart from offset `at` on, as dense floats.
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

/// Calls body(floats, elements, blocks) for runs of whole blocks that cover all rows of both
/// layouts, on all threads: the offset of the run's first value among the floats, and among the
/// elements of the block dtype.
template <class Body>
void for_each_run(const Layout& floats, const Layout& blocks_of, int64_t block, Body&& body) {
  const int64_t row_blocks = floats.shape().back() / block;
  const int64_t stride = floats.stride(floats.rank() - 1);
  const CollapsedDims<2> rows({&floats, &blocks_of}, (1u << (floats.rank() - 1)) - 1);
  parallel_for(rows.elems * row_blocks, kGrainElems / block, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t first = begin % row_blocks;
      const auto at = rows.at(begin / row_blocks);
      const int64_t blocks = std::min({end - begin, row_blocks - first, kRunElems / block});
      body(at[0] + first * block * stride, at[1] + first * block, blocks);
      begin += blocks;
    }
  });
}

}  // namespace

void CpuBackend::quantize(const View& out, const ConstView& in) {
  if (!is_block(out.dtype)) return cast(out, in);
  if (in.layout.elems() == 0) return;
  const BlockKernels& kernels = WICK_SELECT_KERNELS(isa_, block_kernels, no_dots);
  const BlockCodec codec = kernels.of(out.dtype);
  if (codec.quantize == nullptr) {
    throw Error(ErrorKind::type, "quantize", "block dtype can only be read",
                std::string(name(out.dtype)));
  }
  const int64_t stride = in.layout.stride(in.layout.rank() - 1);
  const int64_t block = info(out.dtype).block_elems;
  for_each_run(in.layout, out.layout, block, [&](int64_t from, int64_t to, int64_t blocks) {
    float values[kRunElems];
    read_values(kernels, in, from, stride, blocks * block, values);
    codec.quantize(values, blocks, static_cast<uint8_t*>(out.data) + bytes_of(out.dtype, to));
  });
}

void CpuBackend::dequantize(const View& out, const ConstView& in) {
  if (!is_block(in.dtype)) return cast(out, in);
  if (out.layout.elems() == 0) return;
  const BlockKernels& kernels = WICK_SELECT_KERNELS(isa_, block_kernels, no_dots);
  const BlockCodec codec = kernels.of(in.dtype);
  const int64_t stride = out.layout.stride(out.layout.rank() - 1);
  const int64_t block = info(in.dtype).block_elems;
  for_each_run(out.layout, in.layout, block, [&](int64_t to, int64_t from, int64_t blocks) {
    float values[kRunElems];
    codec.dequantize(static_cast<const uint8_t*>(in.data) + bytes_of(in.dtype, from), blocks,
                     values);
    write_values(kernels, out, to, stride, blocks * block, values);
  });
}

}  // namespace wick::cpu
