#pragma once

// Quantises activations that are in registers to int8 blocks (wick/math/activation.h).

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/math/orders.h"

namespace wick::gpu {

/// Two integers as int16 in a word.
WICK_DEVICE u32 pack_halves(i32 first, i32 second) {
  return (static_cast<u32>(first) & 0xffffu) | static_cast<u32>(second) << 16;
}

/// Quantises and stores this thread's kWide neighbouring values, from column c of a row on.
/// Columns behind the last block aren't stored. All threads that share a block of 32 values must
/// call it, with neighbouring values in neighbouring lanes. Each gets the block's scale, which is
/// also stored unless kScale is false. Blocks share scales only where kWide is 4; then a whole
/// warp must call it, with 128 values from an aligned column on.
template <bool kScale = true, u32 kWide>
WICK_DEVICE ActivationScale store_in_block(const Blocks& to, u64 row, u32 c,
                                           const float (&y)[kWide]) {
  constexpr u32 kBlock = math::kActivationBlock;
  const auto larger = [](u32 a, u32 b) { return a > b ? a : b; };
  u32 most = 0;
#pragma unroll
  for (const float each : y) most = larger(most, f32_bits(each) & 0x7fffffffu);
  most = larger(most, shuffle_xor<1>(most));
  most = larger(most, shuffle_xor<2>(most));
  most = larger(most, shuffle_xor<4>(most));
  if constexpr (kWide <= 2) most = larger(most, shuffle_xor<8>(most));
  if constexpr (kWide == 1) most = larger(most, shuffle_xor<16>(most));
  if constexpr (kWide == 4) {
    static_assert(kWarp * kWide == kSharedBlocks * kBlock);
    u32 shared = to.shared;
    // Otherwise the compiler duplicates the code around it.
    if constexpr (!WICK_AMD) forget(shared);
    if (shared != 1) {
      most = larger(most, shuffle_xor<8>(most));
      most = larger(most, shuffle_xor<16>(most));
    }
  }
#if WICK_AMD
  const ActivationStep step(most, RefinedQuotients<NearInverse>());
#else
  const ActivationStep step(most);
#endif
  i32 sum = 0;
  u32 bytes = 0;
  if constexpr (WICK_AMD && kWide == 4) {
    bytes = step.quantize_four(y);
    sum = dot4(static_cast<i32>(bytes), 0x01010101, 0);
  } else {
#pragma unroll
    for (u32 i = 0; i < kWide; ++i) {
      const i32 value = step.quantize(y[i]);
      sum += value;
      bytes |= (static_cast<u32>(value) & 0xffu) << 8 * i;
    }
  }
  sum += shuffle_xor<1>(sum);
  sum += shuffle_xor<2>(sum);
  const i32 other = shuffle_xor<4>(sum);
  const u32 halves = c / 16 % 2 == 0 ? pack_halves(sum, other) : pack_halves(other, sum);
  sum += other;
  if constexpr (kWide <= 2) sum += shuffle_xor<8>(sum);
  if constexpr (kWide == 1) sum += shuffle_xor<16>(sum);
  if (kWide == 4 && to.halves != 0) sum = static_cast<i32>(halves);
  const ActivationScale scale = {step.d(), sum};
  if (c >= to.padded * kBlock) return scale;
  const u64 at = row * to.padded + c / kBlock;
#if WICK_AMD
  // The address of a uniform row stays in scalar registers.
  i8* const q = to.q + row * to.padded * kBlock;
  const u32 first = c;
#else
  i8* const q = to.q;
  const u64 first = at * kBlock + c % kBlock;
#endif
  if constexpr (kWide == 4) {
    reinterpret_cast<u32*>(q)[first / 4] = bytes;
  } else if constexpr (kWide == 2) {
    reinterpret_cast<u16*>(q)[first / 2] = static_cast<u16>(bytes);
  } else {
    q[first] = static_cast<i8>(bytes);
  }
  if (kScale && c % kBlock == 0) to.scales[at] = scale;
  return scale;
}

}  // namespace wick::gpu
