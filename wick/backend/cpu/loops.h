#pragma once

// The loop nest of an elementwise operation: which elements meet, in which order, on which thread.
// Shared by every instruction set; kernels only ever see one run of elements with one byte stride
// an operand.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/view.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

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
  void swap_dims(int a, int b) {
    std::swap(size[a], size[b]);
    for (int k = 0; k < N; ++k) std::swap(stride[k][a], stride[k][b]);
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
  int64_t count[Shape::kMaxRank + 2];
  int64_t step[N][Shape::kMaxRank + 2];
  char* base[N];

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
  int64_t index[Shape::kMaxRank + 2] = {};
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

/// Calls run(n, pointers, strides) so that every element is covered once, on as many threads as
/// pieces of `grain` elements allow. Inputs stored across the output's run are transposed block by
/// block into scratch that stays in the first-level cache. `stream` says that run's stores go
/// around the caches.
template <int N, class Run>
void for_each_run(Nest<N>& nest, const TransposeKernels& transpose, int64_t grain, bool stream,
                  Run&& run) {
  constexpr int64_t kRun = 32768;  // elements of one run, where threads or loops are to be cut
  if (nest.empty) return;
  int64_t strides[N];
  if (nest.rank <= 1) {
    const int64_t n = nest.rank == 0 ? 1 : nest.size[0];
    for (int k = 0; k < N; ++k) strides[k] = nest.run_stride(k, 0);
    if (n <= grain) {
      run(n, nest.base, strides);
      if (stream) stream_fence();
      return;
    }
    parallel_for((n + 63) / 64, (grain + 63) / 64, [&](int64_t begin, int64_t end) {
      char* at[N];
      for (int k = 0; k < N; ++k) at[k] = nest.base[k] + begin * 64 * strides[k];
      run(std::min(n, end * 64) - begin * 64, at, strides);
      if (stream) stream_fence();
    });
    return;
  }

  // Which inputs to transpose, along which dim; one dim serves all of them.
  int across = 0;
  unsigned turned = 0;
  for (int k = 1; k < N; ++k) {
    const int d = transposed_dim(nest, k);
    if (d == 0 || (across != 0 && d != across)) continue;
    across = d;
    turned |= 1u << k;
  }

  Box<N> box;
  for (int k = 0; k < N; ++k) box.base[k] = nest.base[k];
  int64_t run_elems, block_rows = 1;
  if (turned != 0) {
    nest.swap_dims(1, across);
    run_elems = 64, block_rows = 32;
  } else {
    run_elems = kRun;
    int longest = 0;
    for (int d = 1; d < nest.rank; ++d) {
      if (nest.size[d] > nest.size[longest]) longest = d;
    }
    if (nest.size[0] < 8 && nest.size[longest] >= 4 * nest.size[0]) {
      // A short innermost dim: run along the longest one instead, in pieces whose lines stay cached
      // while the short dim, now second, is looped over.
      nest.swap_dims(0, longest);
      nest.swap_dims(1, longest);
      run_elems = 512;
      block_rows = nest.size[1];
    } else {
      block_rows = std::max<int64_t>(1, 2048 / nest.size[0]);
    }
  }
  run_elems = std::min(run_elems, nest.size[0]);
  block_rows = std::min(block_rows, nest.size[1]);
  box.add((nest.size[0] + run_elems - 1) / run_elems, nest, 0, run_elems);
  box.add((nest.size[1] + block_rows - 1) / block_rows, nest, 1, block_rows);
  for (int d = 2; d < nest.rank; ++d) box.add(nest.size[d], nest, d, 1);
  for (int k = 0; k < N; ++k) strides[k] = nest.stride[k][0];

  auto part = [&](int64_t begin, int64_t end) {
    alignas(64) char scratch[N][64 * 32 * 8];
    walk(box, begin, end, [&](const int64_t* index, char* const* at) {
      const int64_t cols = std::min(run_elems, nest.size[0] - index[0] * run_elems);
      const int64_t rows = std::min(block_rows, nest.size[1] - index[1] * block_rows);
      char* pointer[N];
      int64_t along[N], down[N];
      for (int k = 0; k < N; ++k) {
        pointer[k] = at[k];
        along[k] = strides[k];
        down[k] = nest.stride[k][1];
        if ((turned >> k) & 1u) {
          const int64_t bytes = nest.elem_bytes[k];
          transpose[log2_bytes(bytes)](scratch[k], 64 * bytes, at[k], strides[k], rows, cols,
                                       false);
          pointer[k] = scratch[k];
          along[k] = bytes;
          down[k] = 64 * bytes;
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        run(cols, pointer, along);
        for (int k = 0; k < N; ++k) pointer[k] += down[k];
      }
    });
    if (stream) stream_fence();
  };
  parallel_for(box.units(), std::max<int64_t>(1, grain / (run_elems * block_rows)), part);
}

/// Copies elements of one size along a nest.
void copy_nest(Nest<2>& nest, const MoveKernels& table, bool stream);

/// A number converted to a dtype by the rules of cast.
struct ScalarBytes {
  alignas(8) char bytes[8];
};
ScalarBytes convert(Scalar value, DType dtype);

}  // namespace wick::cpu
