#pragma once

// What a thread block of decode.gpu keeps in its shared memory, and what it takes there from
// elsewhere than the cache.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"
#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

inline constexpr u32 kDecodeWarps = kDecodeThreads / kWarp;

/// How a chunk's keys and values come into chains.
enum class DecodeForm : u32 {
  direct,   ///< from memory into registers
  staged,   ///< through shared memory
  stream,   ///< so, too, through a ring of small pieces: for many thread blocks at once
  cluster,  ///< so, too, and several thread blocks share a chunk: first its keys, then its values'
            ///< elements
};

/// A thread block's shared memory. Rows are padded to 16 bytes.
struct DecodeShared {
  float *q, *s;  // [rows][d]; [rows][256], dot products and then exponentials
  float *k, *v;  // direct, stream: what isn't in the cache, [fresh][d], [fresh][e]
  float* soft;   // [rows][2]: the chunk's largest score and its sum
  u32* last;  // whether the thread block is the last to arrive; how many keys there are, and a page
  u64* inbox;  // counts scores that other parts have sent
  char* tile;  // staged, parts: the thread block's keys of a chunk, [d][256] or [d][72], and
               // values, [256][e] or [256][32]; stream: the ring

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

/// Two elements of what isn't in the cache, on their way to where chains find them.
struct NewPair {
  enum Kind : u32 { kNothing, kQuery, kStoredKey, kKey, kStoredValue, kValue };
  Kind kind = kNothing;
  u32 at = 0, x = 0;  // row or key, first element
  bool both = true, turn = false;
  const float *from = nullptr, *cos = nullptr, *sin = nullptr;
  float x0 = 0, x1 = 0, c = 0, s = 0;
};

}  // namespace wick::gpu
