#pragma once

// The loops of an elementwise operation: in which order and on which thread its elements are
// processed. Every instruction set shares them. A kernel is called for one run of elements at a
// time, with one byte stride per operand.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/view.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {

/// N operands of one shape with collapsed dims; operand 0 is the output. Dims are ordered by the
/// output's strides, which are positive. Dims are counted from the innermost here; strides are in
/// bytes.
template <int N>
struct StridedOperands {
  CollapsedDims<N> dims;
  char* data[N];  ///< the first byte of each storage; dims.start leads to the first element
  int64_t elem_bytes[N];

  bool empty() const { return dims.elems == 0; }
  int64_t elems() const { return dims.elems; }
  int rank() const { return dims.rank(); }
  int64_t size(int d) const { return dims.inner(d).size; }
  int64_t stride(int operand, int d) const {
    return dims.inner(d).stride[static_cast<size_t>(operand)];
  }
  char* first(int operand) const {
    return data[operand] + dims.start[static_cast<size_t>(operand)];
  }
  /// Whether an operand's elements lie side by side along a dim.
  bool is_dense(int operand, int d) const { return stride(operand, d) == elem_bytes[operand]; }
  /// The sum over the inputs of the bytes from one index of a dim to the next.
  int64_t input_step(int d) const {
    int64_t step = 0;
    for (int k = 1; k < N; ++k) step += std::abs(stride(k, d));
    return step;
  }
  void swap_dims(int a, int b) { std::swap(dims.inner(a), dims.inner(b)); }
};

/// The operands of an operation whose elements may be processed in any order. All inputs have the
/// output's shape.
template <int N>
StridedOperands<N> collapse(const View& out, const ConstView* const (&inputs)[N == 1 ? 1 : N - 1]) {
  StridedOperands<N> operands;
  const Layout* layouts[N];
  layouts[0] = &out.layout;
  operands.data[0] = static_cast<char*>(out.data);
  operands.elem_bytes[0] = info(out.dtype).block_bytes;
  for (int k = 1; k < N; ++k) {
    const ConstView& in = *inputs[k - 1];
    layouts[k] = &in.layout;
    operands.data[k] =
        static_cast<char*>(const_cast<void*>(in.data));  // kernels don't write inputs
    operands.elem_bytes[k] = info(in.dtype).block_bytes;
  }
  typename CollapsedDims<N>::Offsets bytes;
  const auto in_bytes = [&](const auto& elems_of) {
    for (int k = 0; k < N; ++k) {
      bytes[static_cast<size_t>(k)] = elems_of(*layouts[k]) * operands.elem_bytes[k];
    }
    return bytes;
  };
  operands.dims.start = in_bytes([](const Layout& layout) { return layout.offset(); });
  const Shape& shape = out.layout.shape();
  for (int d = 0; d < shape.rank(); ++d) {
    operands.dims.add(shape[d], in_bytes([d](const Layout& layout) { return layout.stride(d); }));
  }
  operands.dims.arrange();
  return operands;
}

/// A grid of blocks of elements. Threads take ranges of it.
template <int N>
struct BlockGrid {
  static constexpr int kMaxRank = Shape::kMaxRank + 3;
  int rank = 0;
  int64_t count[kMaxRank] = {};
  int64_t step[N][kMaxRank] = {};  ///< in bytes
  char* first[N] = {};

  explicit BlockGrid(const StridedOperands<N>& operands) {
    for (int k = 0; k < N; ++k) first[k] = operands.first(k);
  }
  /// Adds an outer dim of `blocks` blocks, each `elems` elements of a dim of the operands.
  void add(int64_t blocks, const StridedOperands<N>& operands, int dim, int64_t elems) {
    count[rank] = blocks;
    for (int k = 0; k < N; ++k) step[k][rank] = operands.stride(k, dim) * elems;
    ++rank;
  }
  int64_t blocks() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= count[d];
    return n;
  }

  /// Calls body(index, pointers) for the blocks [begin, end), the first dim fastest.
  template <class Body>
  void for_each(int64_t begin, int64_t end, Body&& body) const {
    int64_t index[kMaxRank] = {};
    char* at[N];
    for (int k = 0; k < N; ++k) at[k] = first[k];
    int64_t rest = begin;
    for (int d = 0; d < rank && rest > 0; ++d) {
      index[d] = rest % count[d];
      rest /= count[d];
      for (int k = 0; k < N; ++k) at[k] += index[d] * step[k][d];
    }
    for (int64_t block = begin; block < end; ++block) {
      body(index, at);
      for (int d = 0; d < rank; ++d) {
        for (int k = 0; k < N; ++k) at[k] += step[k][d];
        if (++index[d] < count[d]) break;
        for (int k = 0; k < N; ++k) at[k] -= index[d] * step[k][d];
        index[d] = 0;
      }
    }
  }
};

constexpr int log2_bytes(int64_t bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

/// The dim along which an input is dense while its elements are apart along the innermost dim, or 0
/// if there is none that is worth a transposition.
template <int N>
int transposed_dim(const StridedOperands<N>& operands, int input) {
  constexpr int64_t kShort = 4;
  if (operands.rank() < 2 || operands.size(0) < kShort) return 0;
  if (operands.stride(input, 0) == 0 || operands.is_dense(input, 0)) return 0;
  for (int d = 1; d < operands.rank(); ++d) {
    if (operands.is_dense(input, d) && operands.size(d) >= kShort) return d;
  }
  return 0;
}

/// Outputs of at least this many bytes are written with non-temporal stores. With ordinary stores
/// they would evict everything else from the caches, and be evicted themselves before they are
/// read.
int64_t stream_threshold_bytes();

/// Whether the output is large enough, and dense along long enough runs, for non-temporal stores.
template <int N>
bool should_stream(const StridedOperands<N>& operands) {
  return operands.rank() > 0 && operands.is_dense(0, 0) &&
         operands.size(0) * operands.elem_bytes[0] >= 256 &&
         operands.elems() * operands.elem_bytes[0] >= stream_threshold_bytes();
}

/// Orders non-temporal stores before later stores, which tell other threads that the work is done.
inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Calls body(pointers, rows, cols) for blocks of at most block_rows × block_cols elements of the
/// dims 1 and 0. A strip of 512 rows is finished before the next one, block rows fastest, so that
/// the strip's pages of every operand stay in the TLB.
template <int N, class Body>
void for_each_block(const StridedOperands<N>& operands, int64_t block_rows, int64_t block_cols,
                    int64_t grain, bool stream, Body&& body) {
  constexpr int64_t kStrip = 512;
  const int64_t all_rows = operands.size(1), all_cols = operands.size(0);
  const int64_t per_strip = kStrip / block_rows;
  BlockGrid<N> grid(operands);
  grid.add(std::min(per_strip, (all_rows + block_rows - 1) / block_rows), operands, 1, block_rows);
  grid.add((all_cols + block_cols - 1) / block_cols, operands, 0, block_cols);
  grid.add((all_rows + kStrip - 1) / kStrip, operands, 1, kStrip);
  for (int d = 2; d < operands.rank(); ++d) grid.add(operands.size(d), operands, d, 1);
  const int64_t elems = std::min(block_rows, all_rows) * std::min(block_cols, all_cols);
  parallel_for(grid.blocks(), std::max<int64_t>(1, grain / elems), [&](int64_t begin, int64_t end) {
    grid.for_each(begin, end, [&](const int64_t* index, char* const* at) {
      const int64_t first_row = index[2] * kStrip + index[0] * block_rows;
      const int64_t rows = std::min(block_rows, all_rows - first_row);
      const int64_t cols = std::min(block_cols, all_cols - index[1] * block_cols);
      if (rows > 0) body(at, rows, cols);  // the last strip may be short
    });
    if (stream) stream_fence();
  });
}

/// for_each_run where some inputs (the bits of `transposed`) are dense along dim 1: a block of such
/// an input is transposed into scratch memory that stays in L1.
template <int N, class Run>
void for_each_transposed_run(const StridedOperands<N>& operands, unsigned transposed,
                             const TransposeKernels& transpose, int64_t grain, bool stream,
                             Run&& run) {
  constexpr int64_t kCols = 128;
  int64_t block_rows = 64;  // one cache line of each transposed input
  for (int k = 1; k < N; ++k) {
    if ((transposed >> k) & 1u) block_rows = std::min(block_rows, 64 / operands.elem_bytes[k]);
  }
  for_each_block(operands, block_rows, kCols, grain, stream,
                 [&](char* const* at, int64_t rows, int64_t cols) {
                   alignas(64) char scratch[N][kCols * 64];
                   char* pointer[N];
                   int64_t along[N], down[N];
                   for (int k = 0; k < N; ++k) {
                     pointer[k] = at[k];
                     along[k] = operands.stride(k, 0);
                     down[k] = operands.stride(k, 1);
                     if (((transposed >> k) & 1u) == 0) continue;
                     const int64_t bytes = operands.elem_bytes[k];
                     transpose[log2_bytes(bytes)](scratch[k], kCols * bytes, at[k], along[k], rows,
                                                  cols, false);
                     pointer[k] = scratch[k];
                     along[k] = bytes;
                     down[k] = kCols * bytes;
                   }
                   for (int64_t r = 0; r < rows; ++r) {
                     run(cols, pointer, along);
                     for (int k = 0; k < N; ++k) pointer[k] += down[k];
                   }
                 });
}

/// The inputs to transpose (a bit per operand), and in *across the one dim along which all of them
/// are dense.
template <int N>
unsigned inputs_to_transpose(const StridedOperands<N>& operands, int* across) {
  unsigned transposed = 0;
  *across = 0;
  for (int k = 1; k < N; ++k) {
    const int d = transposed_dim(operands, k);
    if (d == 0 || (*across != 0 && d != *across)) continue;
    *across = d;
    transposed |= 1u << k;
  }
  return transposed;
}

/// The sizes of a block along the dims 0, 1 and 2.
struct RunBlock {
  int64_t elems, rows, planes;
};

/// Orders two or more dims for runs along dim 0, and chooses the block size.
template <int N>
RunBlock order_for_runs(StridedOperands<N>& operands) {
  constexpr int64_t kRun = 32768;  // longer runs are cut, so that threads can share them
  RunBlock block{kRun, 1, 1};
  int longest = 0, nearest = 1;
  for (int d = 1; d < operands.rank(); ++d) {
    if (operands.size(d) > operands.size(longest)) longest = d;
    if (operands.input_step(d) < operands.input_step(nearest)) nearest = d;
  }
  if (operands.size(0) < 8 && operands.size(longest) >= 4 * operands.size(0)) {
    // The innermost dim is short: runs go along the longest dim instead. They are short enough for
    // their cache lines to stay in L1 while the short dim, now second, is looped over.
    operands.swap_dims(0, longest);
    operands.swap_dims(1, longest);
    block = {512, operands.size(1), 1};
  } else {
    const int64_t bytes = operands.size(0) * operands.elem_bytes[0];
    block.rows = std::max<int64_t>(1, 8192 / bytes);
    if (nearest != 1 && bytes < 4096) {
      // The inputs have another order of dims than the output. Blocks span both innermost dims, so
      // that reads and writes both have contiguous runs of some kilobytes.
      operands.swap_dims(2, nearest);
      block.planes = std::min(operands.size(2), block.rows);
    }
  }
  if constexpr (N > 1) {
    // Hardware prefetchers favour ascending reads; the order of writes matters less.
    for (int d = 1; d < operands.rank(); ++d) {
      if (operands.stride(1, d) < 0) operands.dims.reverse(operands.dims.inner(d));
    }
  }
  block.elems = std::min(block.elems, operands.size(0));
  block.rows = std::min(block.rows, operands.size(1));
  return block;
}

/// for_each_run of operands with at most one dim.
template <int N, class Run>
void for_each_piece_of_run(const StridedOperands<N>& operands, int64_t grain, bool stream,
                           Run&& run) {
  const int64_t n = operands.elems();
  int64_t strides[N];
  for (int k = 0; k < N; ++k) {
    strides[k] = operands.rank() > 0 ? operands.stride(k, 0) : operands.elem_bytes[k];
  }
  const auto part = [&](int64_t first, int64_t last) {
    char* at[N];
    for (int k = 0; k < N; ++k) at[k] = operands.first(k) + first * strides[k];
    run(last - first, at, strides);
    if (stream) stream_fence();
  };
  if (n <= grain) return part(0, n);
  parallel_for((n + 63) / 64, (grain + 63) / 64,
               [&](int64_t begin, int64_t end) { part(begin * 64, std::min(n, end * 64)); });
}

/// Calls run(n, pointers, strides) so that every element is covered once, on as many threads as
/// pieces of `grain` elements allow. May reorder the operands' dims. `stream` says that run uses
/// non-temporal stores.
template <int N, class Run>
void for_each_run(StridedOperands<N>& operands, const TransposeKernels& transpose, int64_t grain,
                  bool stream, Run&& run) {
  if (operands.empty()) return;
  if (operands.rank() <= 1) return for_each_piece_of_run(operands, grain, stream, run);
  int across = 0;
  if (const unsigned transposed = inputs_to_transpose(operands, &across); transposed != 0) {
    operands.swap_dims(1, across);
    return for_each_transposed_run(operands, transposed, transpose, grain, stream, run);
  }

  const RunBlock block = order_for_runs(operands);
  BlockGrid<N> grid(operands);
  int64_t along[N], down[N], deep[N];
  for (int k = 0; k < N; ++k) {
    along[k] = operands.stride(k, 0);
    down[k] = operands.stride(k, 1);
    deep[k] = operands.rank() > 2 ? operands.stride(k, 2) : 0;
  }
  const int64_t steps[] = {block.elems, block.rows, block.planes};
  for (int d = 0; d < operands.rank(); ++d) {
    const int64_t step = d <= 2 ? steps[d] : 1;
    grid.add((operands.size(d) + step - 1) / step, operands, d, step);
  }
  const int64_t sizes[] = {operands.size(0), operands.size(1),
                           block.planes == 1 ? 1 : operands.size(2)};
  const auto run_block = [&](const int64_t* index, char* const* at) {
    const int64_t n = std::min(block.elems, sizes[0] - index[0] * block.elems);
    const int64_t rows = std::min(block.rows, sizes[1] - index[1] * block.rows);
    const int64_t planes =
        block.planes == 1 ? 1 : std::min(block.planes, sizes[2] - index[2] * block.planes);
    for (int64_t plane = 0; plane < planes; ++plane) {
      char* pointer[N];
      for (int k = 0; k < N; ++k) pointer[k] = at[k] + plane * deep[k];
      for (int64_t row = 0; row < rows; ++row) {
        run(n, pointer, along);
        for (int k = 0; k < N; ++k) pointer[k] += down[k];
      }
    }
  };
  const int64_t block_elems = block.elems * block.rows * block.planes;
  parallel_for(grid.blocks(), std::max<int64_t>(1, grain / block_elems),
               [&](int64_t begin, int64_t end) {
                 grid.for_each(begin, end, run_block);
                 if (stream) stream_fence();
               });
}

/// Copies the elements of operand 1 to operand 0. Both have elements of one size.
void copy_elements(StridedOperands<2>& operands, const MoveKernels& table, bool stream);

/// A number converted to a dtype by the rules of cast.
struct ScalarBytes {
  alignas(8) char bytes[8];
};
ScalarBytes convert(Scalar value, DType dtype);

}  // namespace wick::cpu
