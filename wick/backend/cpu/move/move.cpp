#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/move/iota_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/math/half.h"

namespace wick::cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements, for work that memory limits

/// The blocks of a transposing copy: both sides use whole cache lines, and the pages of a block fit
/// the TLB.
constexpr int64_t kBlockRows = 64, kBlockCols = 64;

template <class T>
ScalarBytes convert_to(Scalar value) {
  ScalarBytes result{};
  const T element =
      value.is_integer ? math::cast<T>(static_cast<math::i64>(value.i)) : math::cast<T>(value.f);
  std::memcpy(result.bytes, &element, sizeof element);
  return result;
}

/// Copies one strided element after another, without a tile.
template <class T>
void copy_strided(int64_t n, char* const* at, const int64_t* stride) {
  char* to = at[0];
  const char* from = at[1];
  for (int64_t i = 0; i < n; ++i, to += stride[0], from += stride[1]) {
    std::memcpy(to, from, sizeof(T));
  }
}

/// Non-temporal stores pay where memory bandwidth is the limit. Conversions that arithmetic limits
/// need the cache to hide their stores.
bool worth_streaming(DType to, DType from) {
  if (to == DType::f8e4m3) return false;
  if (from == DType::f8e4m3) return to == DType::f32 || to == DType::f64;
  return to != DType::bf16 || from != DType::f64;
}

int index(DType dtype) { return static_cast<int>(dtype); }

}  // namespace

void copy_elements(StridedOperands<2>& operands, const MoveKernels& table, bool stream) {
  const int64_t size = operands.elem_bytes[0];
  for_each_run(operands, table.transpose, kGrain, stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 if (stride[0] == size && stride[1] == size) {
                   table.copy(n * size, at[0], at[1], stream);
                   return;
                 }
                 if (stride[0] == size && stride[1] == -size) {
                   table.reverse[log2_bytes(size)](n * size, at[0], at[1], stream);
                   return;
                 }
                 switch (size) {
                   case 1:
                     return copy_strided<uint8_t>(n, at, stride);
                   case 2:
                     return copy_strided<uint16_t>(n, at, stride);
                   case 4:
                     return copy_strided<uint32_t>(n, at, stride);
                   default:
                     return copy_strided<uint64_t>(n, at, stride);
                 }
               });
}

ScalarBytes convert(Scalar value, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return convert_to<math::u8>(value);
    case DType::u32:
      return convert_to<math::u32>(value);
    case DType::i16:
      return convert_to<math::i16>(value);
    case DType::i32:
      return convert_to<math::i32>(value);
    case DType::i64:
      return convert_to<math::i64>(value);
    case DType::bf16:
      return convert_to<math::bf16>(value);
    case DType::f16:
      return convert_to<math::f16>(value);
    case DType::f32:
      return convert_to<float>(value);
    case DType::f64:
      return convert_to<double>(value);
    default:
      return convert_to<math::f8e4m3>(value);
  }
}

int64_t stream_threshold_bytes() {
  static const int64_t bytes = [] {
    // The operating system's figure first: cpuid of a virtual machine may report the caches of the
    // whole host.
    int64_t cache = 0;
    if (std::FILE* file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r")) {
      long long kib = 0;
      if (std::fscanf(file, "%lldK", &kib) == 1) cache = kib << 10;
      std::fclose(file);
    }
    if (cache <= 0) cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return std::clamp(cache, int64_t{4} << 20, int64_t{64} << 20);
  }();
  return bytes;
}

void CpuBackend::fill(const View& out, Scalar value) {
  const MoveKernels& table = WICK_SELECT_KERNELS(isa_, move_kernels, no_dots);
  const ConstView* const none[1] = {};
  StridedOperands<1> operands = collapse<1>(out, none);
  const ScalarBytes element = convert(value, out.dtype);
  const FillKernel kernel = table.fill[log2_bytes(operands.elem_bytes[0])];
  const bool stream = should_stream(operands);
  for_each_run(operands, table.transpose, kGrain, stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 run_dense<1>(n, at, stride, operands.elem_bytes, stream,
                              [&](int64_t m, char* const* p, bool around) {
                                kernel(m, p[0], element.bytes, around);
                              });
               });
}

void CpuBackend::iota(const View& out, Scalar start, Scalar step) {
  // Element i, counted row-major, is start + i·step in i64 (wrapping) or f64 (two roundings), then
  // cast. The numbers are computed a tile at a time, and the cast kernel stores them.
  const CastKernels& casts = WICK_SELECT_KERNELS(isa_, cast_kernels, no_dots);
  const IotaKernels& make = WICK_SELECT_KERNELS(isa_, iota_kernels, no_dots);
  const CollapsedDims<1> dims({&out.layout});
  if (dims.elems == 0) return;
  const int64_t bytes = info(out.dtype).block_bytes;
  const bool whole = start.is_integer && step.is_integer;
  // Null if the numbers already have the output's dtype.
  const CastKernel store = casts.run[index(whole ? DType::i64 : DType::f64)][index(out.dtype)];
  constexpr int64_t kTile = 512;
  const int64_t inner = dims.rank() == 0 ? 1 : dims.inner(0).size;
  const bool dense = dims.rank() == 0 || dims.inner(0).stride[0] == 1;
  const bool stream =
      store != nullptr && dense && inner >= kTile && dims.elems * bytes >= stream_threshold_bytes();
  const int64_t tiles = (dims.elems + kTile - 1) / kTile;
  parallel_for(tiles, kGrain / kTile, [&](int64_t begin, int64_t end) {
    alignas(64) int64_t integers[kTile];
    alignas(64) double reals[kTile];
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kTile, count = std::min(kTile, dims.elems - first);
      if (whole) {
        make.integers(count, first, static_cast<uint64_t>(start.i), static_cast<uint64_t>(step.i),
                      integers);
      } else {
        make.reals(count, first, start.f, step.f, reals);
      }
      char* numbers = whole ? reinterpret_cast<char*>(integers) : reinterpret_cast<char*>(reals);
      dims.runs(first, first + count, [&](const auto& at, const auto& stride, int64_t m) {
        char* const operands[] = {static_cast<char*>(out.data) + at[0] * bytes, numbers};
        const int64_t strides[] = {stride[0] * bytes, 8}, sizes[] = {bytes, 8};
        run_dense<2>(m, operands, strides, sizes, stream,
                     [&](int64_t k, char* const* p, bool around) {
                       if (store != nullptr) {
                         store(k, p[0], p[1], around);
                       } else {
                         std::memcpy(p[0], p[1], static_cast<size_t>(k) * 8);
                       }
                     });
        numbers += m * 8;
      });
    }
    if (stream) stream_fence();
  });
}

void CpuBackend::copy(const View& out, const ConstView& in) {
  const MoveKernels& table = WICK_SELECT_KERNELS(isa_, move_kernels, no_dots);
  const ConstView* const inputs[] = {&in};
  StridedOperands<2> operands = collapse<2>(out, inputs);
  if (operands.empty()) return;
  const bool stream = should_stream(operands);
  const int across = transposed_dim(operands, 1);
  const bool dense_rows = operands.rank() > 0 && operands.is_dense(0, 0);
  if (across == 0 || !dense_rows) {
    copy_elements(operands, table, stream);
    return;
  }
  // Transposed blocks are copied without a tile.
  operands.swap_dims(1, across);
  const TransposeKernel kernel = table.transpose[log2_bytes(operands.elem_bytes[0])];
  const int64_t out_row = operands.stride(0, 1), in_col = operands.stride(1, 0);
  for_each_block(operands, kBlockRows, kBlockCols, kGrain, stream,
                 [&](char* const* at, int64_t rows, int64_t cols) {
                   kernel(at[0], out_row, at[1], in_col, rows, cols, stream);
                 });
}

void CpuBackend::cast(const View& out, const ConstView& in) {
  if (out.dtype == in.dtype) {
    copy(out, in);
    return;
  }
  const CastKernels& casts = WICK_SELECT_KERNELS(isa_, cast_kernels, no_dots);
  const MoveKernels& move = WICK_SELECT_KERNELS(isa_, move_kernels, no_dots);
  const CastKernel kernel = casts.run[index(in.dtype)][index(out.dtype)];
  const ConstView* const inputs[] = {&in};
  StridedOperands<2> operands = collapse<2>(out, inputs);
  const bool stream = worth_streaming(out.dtype, in.dtype) && should_stream(operands);
  for_each_run(operands, move.transpose, kGrain, stream,
               [&](int64_t n, char* const* at, const int64_t* stride) {
                 run_dense<2>(n, at, stride, operands.elem_bytes, stream,
                              [&](int64_t m, char* const* p, bool around) {
                                kernel(m, p[0], p[1], around);
                              });
               });
}

}  // namespace wick::cpu
