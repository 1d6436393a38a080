// Matrix instructions of waves of 32 lanes. The sums are exact.
#include "corpus.h"

DEVICE half number(u32 x) { return static_cast<half>(static_cast<float>(static_cast<i32>(x % 17) - 8)); }

DEVICE u32 element(u32 row, u32 k, u32 seed) { return (row * 31 + k * 7 + seed * 13) * 2654435761u >> 13; }

KERNEL matrix_f16(ARGUMENTS) {
  ENTER;
  if (lanes() != 32) return;
  const u32 row = lane() % 16, s = group();
#ifdef __AMDGCN__
#if __AMDGCN_WAVEFRONT_SIZE == 32
  half16 a, b;
  float8 c;
  half16 hc;
  for (u32 k = 0; k < 16; ++k) {
    a[k] = number(element(row, k, s));
    b[k] = number(element(row, k, s + 1));
    hc[k] = 0;
  }
  for (u32 r = 0; r < 8; ++r) c[r] = static_cast<float>(element(r * 2 + lane() / 16, row, 5) & 15);
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
  hc = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, hc, false);
  for (u32 r = 0; r < 8; ++r) out.put(c[r]);
  for (u32 r = 0; r < 8; ++r) out.put(hc[2 * r]);
#endif
#else
  for (int pass = 0; pass < 2; ++pass) {
    for (u32 r = 0; r < 8; ++r) {
      const u32 i = r * 2 + lane() / 16;
      float sum = pass == 0 ? static_cast<float>(element(i, row, 5) & 15) : 0;
      for (u32 k = 0; k < 16; ++k) {
        sum += static_cast<float>(number(element(i, k, s))) * static_cast<float>(number(element(row, k, s + 1)));
      }
      if (pass == 0) out.put(sum);
      else out.put(static_cast<half>(sum));
    }
  }
#endif
}

KERNEL matrix_bf16(ARGUMENTS) {
  ENTER;
  if (lanes() != 32) return;
  const u32 row = lane() % 16, s = group();
#ifdef __AMDGCN__
#if __AMDGCN_WAVEFRONT_SIZE == 32
  short16 a, b, hc;
  float8 c;
  const auto bf = [](half x) {
    return static_cast<i16>(__builtin_bit_cast(u32, static_cast<float>(x)) >> 16);
  };
  for (u32 k = 0; k < 16; ++k) {
    a[k] = bf(number(element(row, k, s)));
    b[k] = bf(number(element(row, k, s + 1) & 1));
    hc[k] = 0;
  }
  for (u32 r = 0; r < 8; ++r) c[r] = 0.5f;
  c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c);
  hc = __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32(a, b, hc, true);
  for (u32 r = 0; r < 8; ++r) out.put(c[r]);
  u32 any = 0;
  for (u32 r = 0; r < 8; ++r) any |= static_cast<u32>(static_cast<u16>(hc[2 * r]));
  out.put(any);
#endif
#else
  for (u32 r = 0; r < 8; ++r) {
    const u32 i = r * 2 + lane() / 16;
    float sum = 0.5f;
    for (u32 k = 0; k < 16; ++k) {
      sum += static_cast<float>(number(element(i, k, s))) *
             static_cast<float>(number(element(row, k, s + 1) & 1));
    }
    out.put(sum);
  }
  out.put(0u);
#endif
}

KERNEL matrix_int(ARGUMENTS) {
  ENTER;
  if (lanes() != 32) return;
  const u32 row = lane() % 16, s = group();
#ifdef __AMDGCN__
#if __AMDGCN_WAVEFRONT_SIZE == 32
  int4 a, b;
  int2 a4, b4;
  int8 c, c4;
  for (u32 k = 0; k < 4; ++k) {
    a[k] = static_cast<i32>(element(row, k, s) * 40503u);
    b[k] = static_cast<i32>(element(row, k, s + 1) * 40503u);
  }
  for (u32 k = 0; k < 2; ++k) {
    a4[k] = a[k];
    b4[k] = b[k];
  }
  for (u32 r = 0; r < 8; ++r) c[r] = c4[r] = static_cast<i32>(r) - 3;
  c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, c, false);
  c4 = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(false, a4, true, b4, c4, false);
  for (u32 r = 0; r < 8; ++r) out.put(c[r]);
  for (u32 r = 0; r < 8; ++r) out.put(c4[r]);
#endif
#else
  const auto part = [](u32 r, u32 k, u32 seed, u32 width) {
    return element(r, k * width / 32, seed) * 40503u >> (k * width % 32) & ((1u << width) - 1);
  };
  for (u32 r = 0; r < 8; ++r) {
    i32 sum = static_cast<i32>(r) - 3;
    for (u32 k = 0; k < 16; ++k) {
      sum += static_cast<i8>(part(r * 2 + lane() / 16, k, s, 8)) * static_cast<i8>(part(row, k, s + 1, 8));
    }
    out.put(sum);
  }
  for (u32 r = 0; r < 8; ++r) {
    i32 sum = static_cast<i32>(r) - 3;
    for (u32 k = 0; k < 16; ++k) {
      const i32 b = static_cast<i32>(part(row, k, s + 1, 4));
      sum += static_cast<i32>(part(r * 2 + lane() / 16, k, s, 4)) * (b > 7 ? b - 16 : b);
    }
    out.put(sum);
  }
#endif
}
