// Cross-lane instructions.
#include "corpus.h"

KERNEL lanes_permute(ARGUMENTS) {
  ENTER;
  const u32 x = in.i[0];
  if (lanes() == 32) {
    out.put(bpermute(in.small[0] & 31, x));
    out.put(permute((lane() * 5 + 3) & 31, x));
  }
  out.put(SWIZZLE(x, 0x801b));
  out.put(SWIZZLE(x, 0x041f));
  out.put(SWIZZLE(x, 0x7c1f));
  out.put(SWIZZLE(x, 0x001c));
}

KERNEL lanes_dpp(ARGUMENTS) {
  ENTER;
  const u32 x = in.i[0], y = in.i[1];
  out.put(DPP(y, x, 0x1b, 15, 15, false));
  out.put(DPP(y, x, 0x4e, 15, 15, true));
  out.put(DPP(y, x, 0x101, 15, 15, false));
  out.put(DPP(0, x, 0x10f, 15, 15, true));
  out.put(DPP(y, x, 0x113, 10, 15, false));
  out.put(DPP(y, x, 0x125, 15, 12, false));
  out.put(DPP(y, x, 0x140, 15, 15, false));
  out.put(DPP(y, x, 0x141, 5, 15, false));
  out.put(DPP(0, x, 0x153, 15, 15, true));
  // The compiler folds these into the arithmetic that follows.
  float s = static_cast<float>(in.small[1]);
  s += __builtin_bit_cast(float, DPP(0, __builtin_bit_cast(u32, s), 0x111, 15, 15, true));
  s += __builtin_bit_cast(float, DPP(0, __builtin_bit_cast(u32, s), 0x112, 15, 15, true));
  out.put(s);
  u32 m = in.small[2];
  m += DPP(0, m, 0xb1, 15, 15, true);
  m += DPP(0, m, 0x4e, 15, 15, true);
  out.put(m);
}

#if SINCE_GFX10
KERNEL lanes_permlane(ARGUMENTS) {
  ENTER;
  const u32 x = in.i[0];
  out.put(DPP(0, x, 0x16a, 15, 15, true));
  out.put(DPP8(x, 0xfac688 & 0xffffff));
  out.put(DPP8(x, 07654321 & 0xffffff));
  out.put(PERMLANE16(x, x, 0x76543210, 0xfedcba98, true, false));
  out.put(PERMLANE16(x, x, 0x01234567, 0x89abcdef, true, false));
  out.put(PERMLANEX16(x, x, 0x76543210, 0xfedcba98, true, false));
  out.put(PERMLANEX16(x, x, 0xffffffff, 0xffffffff, true, false));
  out.put(PERMLANEX16(0, x, read_first(in.i[1]), 0x31313131, true, true));
}
#endif

#if ONLY_GFX9
KERNEL lanes_whole_wave(ARGUMENTS) {
  ENTER;
  const u32 x = in.i[0], y = in.i[1];
  if (lanes() != 64) return;
  out.put(bpermute64(in.small[0] & 63, x));
  out.put(DPP(y, x, 0x130, 15, 15, false));
  out.put(DPP(0, x, 0x134, 15, 15, true));
  out.put(DPP(y, x, 0x138, 15, 15, false));
  out.put(DPP(0, x, 0x13c, 15, 15, true));
  out.put(DPP(y, x, 0x142, 10, 15, false));
  out.put(DPP(y, x, 0x143, 12, 15, false));
  // Sums a wave as libraries for these architectures do; the result is in the last lane.
  u32 sum = in.small[1];
  sum += DPP(0, sum, 0x111, 15, 15, false);
  sum += DPP(0, sum, 0x112, 15, 15, false);
  sum += DPP(0, sum, 0x114, 15, 14, false);
  sum += DPP(0, sum, 0x118, 15, 12, false);
  sum += DPP(0, sum, 0x142, 10, 15, false);
  sum += DPP(0, sum, 0x143, 12, 15, false);
  out.put(read_lane(sum, 63));
}
#endif

KERNEL lanes_read(ARGUMENTS) {
  ENTER;
  const u32 x = in.i[0];
  out.put(read_first(x));
  out.put(read_lane(x, 5));
  out.put(read_lane(x, read_first(in.small[0]) & (lanes() - 1)));
  out.put(ballot((x & 1) != 0));
  out.put(static_cast<u32>(__builtin_popcountll(ballot(in.f[0] > 0.0f))));
  out.put(lane());
}

KERNEL lanes_reduction(ARGUMENTS) {
  ENTER;
  u32 sum = in.small[0];
  sum += DPP(0, sum, 0xb1, 15, 15, true);
  sum += DPP(0, sum, 0x4e, 15, 15, true);
  sum += DPP(0, sum, 0x141, 15, 15, true);
  sum += DPP(0, sum, 0x140, 15, 15, true);
#if SINCE_GFX10 && defined(__AMDGCN__)
  sum += PERMLANEX16(0, sum, 0, 0, true, true);
#else
  sum += SWIZZLE(sum, 0x401f);  // adds the value of the lane 16 further on
#endif
  out.put(sum);
  i32 most = static_cast<i32>(in.i[1]);
  for (u32 mask = 16; mask > 0; mask /= 2) {
    const i32 other = static_cast<i32>(lanes() == 32 ? bpermute(lane() ^ mask, static_cast<u32>(most))
                                                     : 0);
    most = other > most ? other : most;
  }
  out.put(lanes() == 32 ? most : 0);
}
