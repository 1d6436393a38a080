#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/block_kernels.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/base/called_as.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

constexpr int64_t kGrain = 32768;
constexpr int64_t kPadding = -1;  // stands for an id that asks for zeros

std::string_view called_as() { return CalledAs::name_or("index_select"); }

std::string describe(const ConstView& view) {
  return fmt::format("{}{}", name(view.dtype), view.layout.shape().str());
}

/// Checks all ids in row-major order and calls put(i, id or kPadding).
template <class T, class Put>
void read_ids(const ConstView& ids, const ConstView& in, int64_t size, Put&& put) {
  const CollapsedDims<1> all({&ids.layout});
  int64_t i = 0;
  all.runs(0, all.elems, [&](const auto& at, const auto& stride, int64_t count) {
    const T* from = static_cast<const T*>(ids.data) + at[0];
    for (int64_t j = 0; j < count; ++j, ++i) {
      const T id = from[j * stride[0]];
      const bool padding =
          !std::numeric_limits<T>::is_signed && id == std::numeric_limits<T>::max();
      const auto wide = static_cast<int64_t>(id);
      if (!padding && (wide < 0 || wide >= size)) {
        throw Error(ErrorKind::index, called_as(), "id out of range",
                    fmt::format("id {} at position {}, x {}", wide, i, describe(in)),
                    fmt::format("need 0 <= id < {}", size));
      }
      put(i, padding ? kPadding : wide);
    }
  });
}

/// The byte offset into the source of each id. All ids are checked before anything is written.
std::vector<int64_t> source_offsets(const ConstView& ids, const ConstView& in, int64_t size,
                                    int64_t bytes_per_id) {
  std::vector<int64_t> offsets(static_cast<size_t>(ids.layout.elems()));
  auto put = [&](int64_t i, int64_t id) {
    offsets[static_cast<size_t>(i)] = id == kPadding ? INT64_MIN : id * bytes_per_id;
  };
  switch (ids.dtype) {
    case DType::u8:
      read_ids<uint8_t>(ids, in, size, put);
      break;
    case DType::u32:
      read_ids<uint32_t>(ids, in, size, put);
      break;
    case DType::i32:
      read_ids<int32_t>(ids, in, size, put);
      break;
    case DType::i64:
      read_ids<int64_t>(ids, in, size, put);
      break;
    default:
      throw Error(ErrorKind::type, called_as(), "ids have the wrong dtype", describe(ids),
                  "need u8, u32, i32 or i64");
  }
  return offsets;
}
constexpr int64_t kZeros = INT64_MIN;

/// One row of the output along the selected dim: one element for each id.
template <class T>
void gather_line(char* out, int64_t out_stride, const char* in,
                 const std::vector<int64_t>& offsets) {
  for (const int64_t offset : offsets) {
    T value{};
    if (offset != kZeros) std::memcpy(&value, in + offset, sizeof value);
    std::memcpy(out, &value, sizeof value);
    out += out_stride;
  }
}

/// Rows of a block dtype: a few blocks at a time are dequantised, then cast into the output's row.
void select_blocks(const View& out, const ConstView& in, const std::vector<int64_t>& offsets,
                   const BlockCodec& codec, CastKernel cast) {
  constexpr int64_t kTile = 512;
  const int64_t block = info(in.dtype).block_elems, bytes = info(in.dtype).block_bytes;
  const int64_t elems = in.layout.shape()[1], out_bytes = info(out.dtype).block_bytes;
  const int64_t row_step = out.layout.stride(0) * out_bytes,
                step = out.layout.stride(1) * out_bytes;
  char* const to = static_cast<char*>(out.data) + out.layout.offset() * out_bytes;
  const char* const from = static_cast<const char*>(in.data) + in.layout.offset() / block * bytes;
  const bool direct = out.dtype == DType::f32 && step == out_bytes;
  parallel_for(
      static_cast<int64_t>(offsets.size()),
      std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(elems, 1)),
      [&](int64_t begin, int64_t end) {
        alignas(64) float tile[kTile];
        for (int64_t i = begin; i < end; ++i) {
          const int64_t offset = offsets[static_cast<size_t>(i)];
          char* row = to + i * row_step;
          if (offset == kZeros) std::fill_n(tile, kTile, 0.0f);
          for (int64_t e = 0; e < elems; e += kTile) {
            const int64_t m = std::min(kTile, elems - e);
            char* target = row + e * step;
            float* result = direct ? reinterpret_cast<float*>(target) : tile;
            if (offset != kZeros) {
              codec.dequantize(reinterpret_cast<const uint8_t*>(from + offset + e / block * bytes),
                               m / block, result);
            } else if (direct) {
              std::fill_n(result, m, 0.0f);
            }
            if (direct) continue;
            char* const operands[] = {target, reinterpret_cast<char*>(tile)};
            const int64_t strides[] = {step, sizeof(float)}, sizes[] = {out_bytes, sizeof(float)};
            run_dense<2>(m, operands, strides, sizes, false, [&](int64_t n, char* const* p, bool) {
              if (cast == nullptr) {
                std::memcpy(p[0], p[1], static_cast<size_t>(n) * sizeof(float));
              } else {
                cast(n, p[0], p[1], false);
              }
            });
          }
        }
      });
}

/// Dense slices, such as rows of a table. The next row is prefetched while one is copied.
void select_rows(const StridedOperands<2>& slice, const std::vector<int64_t>& offsets,
                 int64_t out_step, CopyKernel copy) {
  const int64_t bytes = slice.elems() * slice.elem_bytes[0];
  const int64_t ahead = std::min<int64_t>(bytes, 2048);
  const auto count = static_cast<int64_t>(offsets.size());
  parallel_for(count, std::max<int64_t>(1, 65536 / bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + 1 < end && offsets[static_cast<size_t>(i + 1)] != kZeros) {
        const char* next = slice.first(1) + offsets[static_cast<size_t>(i + 1)];
        for (int64_t b = 0; b < ahead; b += 64) __builtin_prefetch(next + b);
      }
      char* const to = slice.first(0) + i * out_step;
      const int64_t offset = offsets[static_cast<size_t>(i)];
      if (offset == kZeros) {
        std::memset(to, 0, static_cast<size_t>(bytes));
      } else {
        copy(bytes, to, slice.first(1) + offset, false);
      }
    }
  });
}

/// The selected dim is the output's innermost: loops along it.
void select_lines(const StridedOperands<2>& slice, const std::vector<int64_t>& offsets,
                  int64_t out_step) {
  const auto count = static_cast<int64_t>(offsets.size());
  const int log2_size = log2_bytes(slice.elem_bytes[0]);
  BlockGrid<2> grid(slice);
  for (int d = 0; d < slice.rank(); ++d) grid.add(slice.size(d), slice, d, 1);
  parallel_for(grid.blocks(), std::max<int64_t>(1, kGrain / 4 / count),
               [&](int64_t begin, int64_t end) {
                 grid.for_each(begin, end, [&](const int64_t*, char* const* at) {
                   switch (log2_size) {
                     case 0:
                       return gather_line<uint8_t>(at[0], out_step, at[1], offsets);
                     case 1:
                       return gather_line<uint16_t>(at[0], out_step, at[1], offsets);
                     case 2:
                       return gather_line<uint32_t>(at[0], out_step, at[1], offsets);
                     default:
                       return gather_line<uint64_t>(at[0], out_step, at[1], offsets);
                   }
                 });
               });
}

/// Slice by slice. Dims are collapsed once; only the pointers change.
void select_slices(const StridedOperands<2>& slice, const std::vector<int64_t>& offsets,
                   int64_t out_step, const MoveKernels& move) {
  const FillKernel zero_run = move.fill[log2_bytes(slice.elem_bytes[0])];
  const char zero[8] = {};
  const auto clear = [&](int64_t n, char* const* at, const int64_t* stride) {
    run_dense<1>(n, at, stride, slice.elem_bytes, false,
                 [&](int64_t m, char* const* p, bool) { zero_run(m, p[0], zero, false); });
  };
  parallel_for(static_cast<int64_t>(offsets.size()), std::max<int64_t>(1, kGrain / slice.elems()),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t offset = offsets[static_cast<size_t>(i)];
                   StridedOperands<2> here = slice;
                   here.data[0] += i * out_step;
                   if (offset != kZeros) {
                     here.data[1] += offset;
                     copy_elements(here, move, false);
                     continue;
                   }
                   // The input gets the output's strides, because `clear` doesn't read it.
                   for (auto& dim : here.dims.dims) dim.stride[1] = dim.stride[0];
                   for_each_run(here, move.transpose, kGrain, false, clear);
                 }
               });
}

View without(const View& view, int dim) {
  const Layout line = view.layout.narrow(dim, 0, 1).squeeze(dim);
  return {view.data, view.dtype, line};
}
ConstView without(const ConstView& view, int dim) {
  const Layout line = view.layout.narrow(dim, 0, 1).squeeze(dim);
  return {view.data, view.dtype, line};
}

}  // namespace

void CpuBackend::index_select(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  const MoveKernels& move = WICK_SELECT_KERNELS(isa_, move_kernels, no_dots);
  const CastKernels& casts = WICK_SELECT_KERNELS(isa_, cast_kernels, no_dots);
  const int64_t size = in.layout.shape()[dim];
  if (is_block(in.dtype)) {
    if (in.layout.rank() != 2 || dim != 0 || !is_float(out.dtype)) {
      throw Error(ErrorKind::type, called_as(), "block weights can't be read this way",
                  fmt::format("x {}, dim {}, out {}", describe(in), dim, name(out.dtype)),
                  "need rows of a matrix (dim 0), to a float type");
    }
    const BlockKernels& blocks = WICK_SELECT_KERNELS(isa_, block_kernels, no_dots);
    const int64_t row_bytes =
        in.layout.stride(0) / info(in.dtype).block_elems * info(in.dtype).block_bytes;
    select_blocks(out, in, source_offsets(ids, in, size, row_bytes), blocks.of(in.dtype),
                  casts.run[static_cast<int>(DType::f32)][static_cast<int>(out.dtype)]);
    return;
  }

  const int64_t bytes = info(in.dtype).block_bytes;
  const std::vector<int64_t> offsets = source_offsets(ids, in, size, in.layout.stride(dim) * bytes);
  if (out.layout.elems() == 0) return;

  // The other dims: one slice of the output and one of the source.
  const View out_slice = without(out, dim);
  // An empty source dim leaves only padding ids, which read nothing.
  const ConstView in_slice = size == 0 ? ConstView(out_slice) : without(in, dim);
  const ConstView* const inputs[] = {&in_slice};
  const StridedOperands<2> slice = collapse<2>(out_slice, inputs);
  const int64_t out_step = out.layout.stride(dim) * bytes;
  if (slice.rank() > 0 && offsets.size() >= 8 && std::abs(out_step) < slice.stride(0, 0)) {
    select_lines(slice, offsets, out_step);
  } else if (slice.rank() == 0 ||
             (slice.rank() == 1 && slice.is_dense(0, 0) && slice.is_dense(1, 0))) {
    select_rows(slice, offsets, out_step, move.copy);
  } else {
    select_slices(slice, offsets, out_step, move);
  }
}

}  // namespace wick::cpu
