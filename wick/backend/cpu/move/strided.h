#pragma once

// Runs with strides. Strided operands are gathered into a dense tile that stays in L1, a kernel for
// dense runs computes there, and the results are scattered. Dense operands are used in place.

#include <cstdint>
#include <cstring>

namespace wick::cpu {

/// Gathers elements `stride` bytes apart (0: one element repeated) into a dense array.
void gather(char* to, const char* from, int64_t stride, int64_t n, int64_t elem_bytes);
/// Scatters a dense array to elements `stride` bytes apart.
void scatter(char* to, int64_t stride, const char* from, int64_t n, int64_t elem_bytes);

/// Covers a run by calls of kernel(n, pointers, stream) with dense operands. sizes and strides are
/// in bytes; operand 0 is the output. Output that goes through a tile isn't streamed.
template <int N, class Kernel>
inline void run_dense(int64_t n, char* const* at, const int64_t* strides, const int64_t* sizes,
                      bool stream, Kernel&& kernel) {
  bool dense = true;
  for (int k = 0; k < N; ++k) dense = dense && strides[k] == sizes[k];
  if (dense) {
    kernel(n, at, stream);
    return;
  }
  constexpr int64_t kTileBytes = 4096;
  alignas(64) char tiles[N][kTileBytes];
  int64_t largest = 1;
  for (int k = 0; k < N; ++k) largest = sizes[k] > largest ? sizes[k] : largest;
  const int64_t tile_elems = kTileBytes / largest;
  char* here[N];
  for (int k = 1; k < N; ++k) {
    if (strides[k] != 0) continue;
    gather(tiles[k], at[k], 0, n < tile_elems ? n : tile_elems, sizes[k]);
    here[k] = tiles[k];
  }
  for (int64_t i = 0; i < n; i += tile_elems) {
    const int64_t m = n - i < tile_elems ? n - i : tile_elems;
    for (int k = 1; k < N; ++k) {
      if (strides[k] == 0) continue;
      here[k] = at[k] + i * strides[k];
      if (strides[k] == sizes[k]) continue;
      gather(tiles[k], here[k], strides[k], m, sizes[k]);
      here[k] = tiles[k];
    }
    char* const out = at[0] + i * strides[0];
    const bool direct = strides[0] == sizes[0];
    here[0] = direct ? out : tiles[0];
    kernel(m, here, stream && direct);
    if (!direct) scatter(out, strides[0], tiles[0], m, sizes[0]);
  }
}

}  // namespace wick::cpu
