#pragma once

// The loop nest of an elementwise operation: which elements meet, in which order, on which thread.
// Shared by every instruction set; kernels only ever see one run of elements with one byte stride
// an operand.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/view.h"

namespace wick::cpu {

/// Loops over N operands of one shape, innermost first; operand 0 is the output. Dims of size 1 are
/// gone, dims are ordered by the output's strides (made positive), and neighbours that every
/// operand walks as one are merged. Strides are in bytes.
template <int N>
struct Nest {
  int rank = 0;
  bool empty = false;
  int64_t size[Shape::kMaxRank];
  int64_t stride[N][Shape::kMaxRank];
  char* base[N];
  int64_t elem_bytes[N];

  int64_t elems() const {
    int64_t n = empty ? 0 : 1;
    for (int d = 0; d < rank; ++d) n *= size[d];
    return n;
  }
  /// The stride of an operand's run along a dim; the element's size where there is no dim left.
  int64_t run_stride(int operand, int d) const {
    return d < rank ? stride[operand][d] : elem_bytes[operand];
  }
  /// How far the inputs move along a dim.
  int64_t input_step(int d) const {
    int64_t step = 0;
    for (int k = 1; k < N; ++k) step += stride[k][d] < 0 ? -stride[k][d] : stride[k][d];
    return step;
  }
  void swap_dims(int a, int b) {
    std::swap(size[a], size[b]);
    for (int k = 0; k < N; ++k) std::swap(stride[k][a], stride[k][b]);
  }
  /// The same elements, a dim's in the other order.
  void turn_round(int d) {
    for (int k = 0; k < N; ++k) {
      base[k] += stride[k][d] * (size[d] - 1);
      stride[k][d] = -stride[k][d];
    }
  }
};

/// Reads an operand's strides into the nest's slot k. Every operand has the shape of the first.
template <int N>
Nest<N> make_nest(const View& out, const ConstView* const (&inputs)[N == 1 ? 1 : N - 1]) {
  Nest<N> nest;
  const Layout* layouts[N];
  layouts[0] = &out.layout;
  nest.base[0] = static_cast<char*>(out.data);
  nest.elem_bytes[0] = info(out.dtype).block_bytes;
  for (int k = 1; k < N; ++k) {
    const ConstView& in = *inputs[k - 1];
    layouts[k] = &in.layout;
    nest.base[k] = static_cast<char*>(const_cast<void*>(in.data));  // kernels don't write inputs
    nest.elem_bytes[k] = info(in.dtype).block_bytes;
  }
  for (int k = 0; k < N; ++k) nest.base[k] += layouts[k]->offset() * nest.elem_bytes[k];

  // Insertion by the output's stride; dims that are already row-major cost one comparison each.
  const Shape& shape = out.layout.shape();
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const int64_t size = shape[d];
    if (size == 0) nest.empty = true;
    if (size <= 1) continue;
    int64_t steps[N];
    for (int k = 0; k < N; ++k) steps[k] = layouts[k]->stride(d) * nest.elem_bytes[k];
    if (steps[0] < 0) {
      for (int k = 0; k < N; ++k) {
        nest.base[k] += steps[k] * (size - 1);
        steps[k] = -steps[k];
      }
    }
    int at = nest.rank++;
    for (; at > 0 && nest.stride[0][at - 1] > steps[0]; --at) {
      nest.size[at] = nest.size[at - 1];
      for (int k = 0; k < N; ++k) nest.stride[k][at] = nest.stride[k][at - 1];
    }
    nest.size[at] = size;
    for (int k = 0; k < N; ++k) nest.stride[k][at] = steps[k];
  }

  int kept = 0;
  for (int d = 1; d < nest.rank; ++d) {
    bool mergeable = true;
    for (int k = 0; k < N; ++k) {
      mergeable = mergeable && nest.stride[k][d] == nest.stride[k][kept] * nest.size[kept];
    }
    if (mergeable) {
      nest.size[kept] *= nest.size[d];
      continue;
    }
    ++kept;
    nest.size[kept] = nest.size[d];
    for (int k = 0; k < N; ++k) nest.stride[k][kept] = nest.stride[k][d];
  }
  if (nest.rank > 0) nest.rank = kept + 1;
  return nest;
}

/// A box of equal steps: how a nest's blocks are enumerated, and hence split over threads.
template <int N>
struct Box {
  int rank = 0;
  int64_t count[Shape::kMaxRank + 3] = {};
  int64_t step[N][Shape::kMaxRank + 3] = {};
  char* base[N] = {};

  void add(int64_t times, const Nest<N>& nest, int dim, int64_t per_step) {
    count[rank] = times;
    for (int k = 0; k < N; ++k) step[k][rank] = nest.stride[k][dim] * per_step;
    ++rank;
  }
  int64_t units() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= count[d];
    return n;
  }
};

/// Calls body(index, pointers) for the units [begin, end) of a box, first dim fastest.
template <int N, class Body>
void walk(const Box<N>& box, int64_t begin, int64_t end, Body&& body) {
  int64_t index[Shape::kMaxRank + 3] = {};
  char* at[N];
  for (int k = 0; k < N; ++k) at[k] = box.base[k];
  int64_t rest = begin;
  for (int d = 0; d < box.rank && rest > 0; ++d) {
    index[d] = rest % box.count[d];
    rest /= box.count[d];
    for (int k = 0; k < N; ++k) at[k] += index[d] * box.step[k][d];
  }
  for (int64_t unit = begin; unit < end; ++unit) {
    body(index, at);
    for (int d = 0; d < box.rank; ++d) {
      for (int k = 0; k < N; ++k) at[k] += box.step[k][d];
      if (++index[d] < box.count[d]) break;
      for (int k = 0; k < N; ++k) at[k] -= index[d] * box.step[k][d];
      index[d] = 0;
    }
  }
}

constexpr int log2_bytes(int64_t bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

/// The dim along which an input lies contiguously while the output's run goes another way, or 0.
template <int N>
int transposed_dim(const Nest<N>& nest, int operand) {
  constexpr int64_t kShort = 4;
  if (nest.rank < 2 || nest.size[0] < kShort) return 0;
  const int64_t along = nest.stride[operand][0];
  if (along == 0 || along == nest.elem_bytes[operand]) return 0;
  for (int d = 1; d < nest.rank; ++d) {
    if (nest.stride[operand][d] == nest.elem_bytes[operand] && nest.size[d] >= kShort) return d;
  }
  return 0;
}

/// Output bytes from which stores go around the caches: they would evict everything and not be
/// found there by whoever reads the output next.
int64_t stream_threshold_bytes();

/// True when a nest's output is large enough, and written in long enough runs, to stream.
template <int N>
bool should_stream(const Nest<N>& nest) {
  return nest.rank > 0 && nest.stride[0][0] == nest.elem_bytes[0] &&
         nest.size[0] * nest.elem_bytes[0] >= 256 &&
         nest.elems() * nest.elem_bytes[0] >= stream_threshold_bytes();
}

/// Makes streamed stores visible to whoever learns that the work is done.
inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Calls body(pointers, rows, cols) for blocks of at most block_rows × block_cols elements of the
/// dims 1 and 0. The rows of a strip come first, then the strip's columns: a strip's pages, of
/// every operand, stay in the translation buffer.
template <int N, class Body>
void for_each_block(const Nest<N>& nest, int64_t block_rows, int64_t block_cols, int64_t grain,
                    bool stream, Body&& body) {
  constexpr int64_t kStrip = 512;
  const int64_t per_strip = kStrip / block_rows;
  Box<N> box;
  for (int k = 0; k < N; ++k) box.base[k] = nest.base[k];
  box.add(std::min(per_strip, (nest.size[1] + block_rows - 1) / block_rows), nest, 1, block_rows);
  box.add((nest.size[0] + block_cols - 1) / block_cols, nest, 0, block_cols);
  box.add((nest.size[1] + kStrip - 1) / kStrip, nest, 1, kStrip);
  for (int d = 2; d < nest.rank; ++d) box.add(nest.size[d], nest, d, 1);
  const int64_t elems = std::min(block_rows, nest.size[1]) * std::min(block_cols, nest.size[0]);
  parallel_for(box.units(), std::max<int64_t>(1, grain / elems), [&](int64_t begin, int64_t end) {
    walk(box, begin, end, [&](const int64_t* index, char* const* at) {
      const int64_t first_row = index[2] * kStrip + index[0] * block_rows;
      const int64_t rows = std::min(block_rows, nest.size[1] - first_row);
      const int64_t cols = std::min(block_cols, nest.size[0] - index[1] * block_cols);
      if (rows > 0) body(at, rows, cols);  // the last strip may be short
    });
    if (stream) stream_fence();
  });
}

/// for_each_run where some inputs (bits of `turned`) lie along dim 1: each block of theirs is
/// transposed into scratch that stays in the first-level cache.
template <int N, class Run>
void for_each_turned_run(const Nest<N>& nest, unsigned turned, const TransposeKernels& transpose,
                         int64_t grain, bool stream, Run&& run) {
  constexpr int64_t kCols = 128;
  int64_t block_rows = 64;  // a line of each turned input
  for (int k = 1; k < N; ++k) {
    if ((turned >> k) & 1u) block_rows = std::min(block_rows, 64 / nest.elem_bytes[k]);
  }
  for_each_block(nest, block_rows, kCols, grain, stream,
                 [&](char* const* at, int64_t rows, int64_t cols) {
                   alignas(64) char scratch[N][kCols * 64];
                   char* pointer[N];
                   int64_t along[N], down[N];
                   for (int k = 0; k < N; ++k) {
                     pointer[k] = at[k];
                     along[k] = nest.stride[k][0];
                     down[k] = nest.stride[k][1];
                     if (((turned >> k) & 1u) == 0) continue;
                     const int64_t bytes = nest.elem_bytes[k];
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

/// Which inputs to transpose (bits by operand), along which dim; one dim serves all of them.
template <int N>
unsigned inputs_to_turn(const Nest<N>& nest, int* across) {
  unsigned turned = 0;
  *across = 0;
  for (int k = 1; k < N; ++k) {
    const int d = transposed_dim(nest, k);
    if (d == 0 || (*across != 0 && d != *across)) continue;
    *across = d;
    turned |= 1u << k;
  }
  return turned;
}

/// Elements, rows and planes of the dims 0, 1 and 2 that are walked together.
struct RunBlock {
  int64_t elems, rows, planes;
};

/// Orders the dims of a nest of two or more for runs along dim 0, and says in which blocks.
template <int N>
RunBlock order_for_runs(Nest<N>& nest) {
  constexpr int64_t kRun = 32768;  // elements of one run, where threads or loops are to be cut
  RunBlock block{kRun, 1, 1};
  int longest = 0, nearest = 1;
  for (int d = 1; d < nest.rank; ++d) {
    if (nest.size[d] > nest.size[longest]) longest = d;
    if (nest.input_step(d) < nest.input_step(nearest)) nearest = d;
  }
  if (nest.size[0] < 8 && nest.size[longest] >= 4 * nest.size[0]) {
    // A short innermost dim: run along the longest one instead, in pieces whose lines stay cached
    // while the short dim, now second, is looped over.
    nest.swap_dims(0, longest);
    nest.swap_dims(1, longest);
    block = {512, nest.size[1], 1};
  } else {
    const int64_t bytes = nest.size[0] * nest.elem_bytes[0];
    block.rows = std::max<int64_t>(1, 8192 / bytes);
    if (nearest != 1 && bytes < 4096) {
      // Inputs lie in another order: blocks of both dims, some kilobytes in a row on either side.
      nest.swap_dims(2, nearest);
      block.planes = std::min(nest.size[2], block.rows);
    }
  }
  if constexpr (N > 1) {
    // Processors look ahead upwards: what is read should lie so, and written it need not.
    for (int d = 1; d < nest.rank; ++d) {
      if (nest.stride[1][d] < 0) nest.turn_round(d);
    }
  }
  block.elems = std::min(block.elems, nest.size[0]);
  block.rows = std::min(block.rows, nest.size[1]);
  return block;
}

/// for_each_run of a nest of one dim or none.
template <int N, class Run>
void for_each_line_run(const Nest<N>& nest, int64_t grain, bool stream, Run&& run) {
  const int64_t n = nest.rank == 0 ? 1 : nest.size[0];
  int64_t strides[N];
  for (int k = 0; k < N; ++k) strides[k] = nest.run_stride(k, 0);
  const auto part = [&](int64_t first, int64_t last) {
    char* at[N];
    for (int k = 0; k < N; ++k) at[k] = nest.base[k] + first * strides[k];
    run(last - first, at, strides);
    if (stream) stream_fence();
  };
  if (n <= grain) return part(0, n);
  parallel_for((n + 63) / 64, (grain + 63) / 64,
               [&](int64_t begin, int64_t end) { part(begin * 64, std::min(n, end * 64)); });
}

/// Calls run(n, pointers, strides) so that every element is covered once, on as many threads as
/// pieces of `grain` elements allow. `stream` says that run's stores go around the caches.
template <int N, class Run>
void for_each_run(Nest<N>& nest, const TransposeKernels& transpose, int64_t grain, bool stream,
                  Run&& run) {
  if (nest.empty) return;
  if (nest.rank <= 1) return for_each_line_run(nest, grain, stream, run);
  int across = 0;
  if (const unsigned turned = inputs_to_turn(nest, &across); turned != 0) {
    nest.swap_dims(1, across);
    return for_each_turned_run(nest, turned, transpose, grain, stream, run);
  }

  const RunBlock block = order_for_runs(nest);
  Box<N> box;
  int64_t strides[N];
  for (int k = 0; k < N; ++k) {
    box.base[k] = nest.base[k];
    strides[k] = nest.stride[k][0];
  }
  const int64_t steps[] = {block.elems, block.rows, block.planes};
  for (int d = 0; d < nest.rank; ++d) {
    const int64_t step = d <= 2 ? steps[d] : 1;
    box.add((nest.size[d] + step - 1) / step, nest, d, step);
  }
  const auto run_block = [&](const int64_t* index, char* const* at) {
    const int64_t n = std::min(block.elems, nest.size[0] - index[0] * block.elems);
    const int64_t rows = std::min(block.rows, nest.size[1] - index[1] * block.rows);
    const int64_t planes =
        block.planes == 1 ? 1 : std::min(block.planes, nest.size[2] - index[2] * block.planes);
    for (int64_t plane = 0; plane < planes; ++plane) {
      char* pointer[N];
      for (int k = 0; k < N; ++k) {
        pointer[k] = at[k] + (block.planes == 1 ? 0 : plane * nest.stride[k][2]);
      }
      for (int64_t row = 0; row < rows; ++row) {
        run(n, pointer, strides);
        for (int k = 0; k < N; ++k) pointer[k] += nest.stride[k][1];
      }
    }
  };
  const int64_t block_elems = block.elems * block.rows * block.planes;
  parallel_for(box.units(), std::max<int64_t>(1, grain / block_elems),
               [&](int64_t begin, int64_t end) {
                 walk(box, begin, end, run_block);
                 if (stream) stream_fence();
               });
}

/// Copies elements of one size along a nest.
void copy_nest(Nest<2>& nest, const MoveKernels& table, bool stream);

/// A number converted to a dtype by the rules of cast.
struct ScalarBytes {
  alignas(8) char bytes[8];
};
ScalarBytes convert(Scalar value, DType dtype);

}  // namespace wick::cpu
