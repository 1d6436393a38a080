#pragma once

// The shared memory of a thread block of decode.gpu, and the pairs of elements that are computed or
// converted on their way there.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"
#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

inline constexpr u32 kDecodeWarps = kDecodeThreads / kWarp;

/// How the keys and values of a chunk reach the chains of fma.
enum class DecodeForm : u32 {
  direct,   ///< from global memory into registers
  staged,   ///< through shared memory, a whole chunk at once
  stream,   ///< through a ring buffer of small pieces in shared memory
  ring,     ///< through three larger buffers in shared memory; values by bulk copies
  cluster,  ///< through shared memory; the thread blocks of a cluster share a chunk: first its
            ///< keys, then the elements of its values
};

/// A thread block's shared memory. Rows are padded to 16 bytes.
struct DecodeShared {
  float *q, *s;  // queries [rows][d]; dot products and then exponentials [rows][256]
  float *k,
      *v;  // direct, stream, ring: keys [fresh][d] and values [fresh][e] that aren't in the cache
  float* soft;  // [rows][2]: the largest score and the sum of exponentials of the chunk
  u32* last;    // [0]: number of keys, later whether the thread block is the last one; [1]: a page
  u64* inbox;   // cluster: counts the bytes of scores that other thread blocks have sent
  char* tile;   // staged: keys [d][256] and values [256][e] of a chunk; cluster: the thread block's
                // keys [d][72] and values [256][32]; stream, ring: the buffers

  WICK_DEVICE DecodeShared(char* memory, u32 rows, u32 fresh, u32 d, u32 e) {
    q = reinterpret_cast<float*>(memory);
    s = q + rows * padded(d);
    k = s + rows * kAttentionChunk;
    v = k + fresh * padded(d);
    soft = v + fresh * padded(e);
    last = reinterpret_cast<u32*>(soft + 2 * rows);
    inbox = reinterpret_cast<u64*>(soft + (2 * rows + 4) / 4 * 4);
    tile = reinterpret_cast<char*>(inbox + 2);
  }
  static WICK_DEVICE u32 padded(u32 n) { return (n + 3) / 4 * 4; }
};

/// Two neighbouring elements of a query, key or value that aren't simply copied from the cache.
/// kStoredKey, kStoredValue: of a key below `start` that shares a pair with a key of this call.
struct NewPair {
  enum Kind : u32 { kNothing, kQuery, kStoredKey, kKey, kStoredValue, kValue };
  Kind kind = kNothing;
  u32 at = 0, x = 0;  // row or key; first element
  bool both = true, turn = false;
  const float *from = nullptr, *cos = nullptr, *sin = nullptr;
  float x0 = 0, x1 = 0, c = 0, s = 0;
};

}  // namespace wick::gpu
