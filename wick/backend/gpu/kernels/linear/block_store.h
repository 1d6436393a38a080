#pragma once

// Activations in registers that become blocks of int8: wick/math/activation.h.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"

namespace wick::gpu {

/// kWide values from column c on of a row, as a part of their block; of columns behind the last
/// block nothing is stored. All threads of the block come here, neighbours side by side, and get
/// its scale, which is stored, too, unless kScale is false. Only fours may share a scale with other
/// blocks, and then a whole warp comes here with 128 values from an aligned column on.
template <bool kScale = true, u32 kWide>
WICK_DEVICE ActivationScale store_in_block(const Blocks& to, u64 row, u32 c,
                                           const float (&y)[kWide]) {
  constexpr u32 kBlock = 32;
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
    if constexpr (!WICK_AMD) forget(shared);  // or all that is around becomes two copies
    if (shared != 1) {
      most = larger(most, shuffle_xor<8>(most));
      most = larger(most, shuffle_xor<16>(most));
    }
  }
  const ActivationStep step(most);
  i32 sum = 0;
  u32 bytes = 0;
#pragma unroll
  for (u32 i = 0; i < kWide; ++i) {
    const i32 value = step.quantize(y[i]);
    sum += value;
    bytes |= (static_cast<u32>(value) & 0xffu) << 8 * i;
  }
  sum += shuffle_xor<1>(sum);
  sum += shuffle_xor<2>(sum);
  sum += shuffle_xor<4>(sum);
  if constexpr (kWide <= 2) sum += shuffle_xor<8>(sum);
  if constexpr (kWide == 1) sum += shuffle_xor<16>(sum);
  const ActivationScale scale = {step.d(), sum};
  if (c >= to.padded * kBlock) return scale;
  const u64 at = row * to.padded + c / kBlock, first = at * kBlock + c % kBlock;
  if constexpr (kWide == 4) {
    reinterpret_cast<u32*>(to.q)[first / 4] = bytes;
  } else if constexpr (kWide == 2) {
    reinterpret_cast<u16*>(to.q)[first / 2] = static_cast<u16>(bytes);
  } else {
    to.q[first] = static_cast<i8>(bytes);
  }
  if (kScale && c % kBlock == 0) to.scales[at] = scale;
  return scale;
}

}  // namespace wick::gpu
