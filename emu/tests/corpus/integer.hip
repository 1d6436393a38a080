// Integers of 8 to 64 bits: division, shifts, bit fields, bit counts, permutations, dot products.
#include "corpus.h"

KERNEL int_arithmetic(ARGUMENTS) {
  ENTER;
  const u32 a = in.i[0], b = in.i[1], c = in.i[2];
  const i32 x = static_cast<i32>(in.i[3]), y = static_cast<i32>(in.i[4]);
  out.put(a + b - c);
  out.put(a * b + c);
  out.put((a << (c & 31)) + b);
  out.put((a + b) << 3);
  out.put((a ^ b) + c);
  out.put(a & b & c);
  out.put(a | b | c);
  out.put(a ^ b ^ c);
  out.put((a & b) | c);
  out.put((a << 5) | b);
  out.put((a & c) | (b & ~c));
  out.put(~(a ^ b));
  out.put(x >> (c & 31));
  out.put(a >> (c & 31));
  out.put(x < y ? x : y);
  out.put(a > b ? a : b);
  out.put(__builtin_elementwise_max(__builtin_elementwise_max(x, y), static_cast<i32>(c)));
  out.put(__builtin_elementwise_min(__builtin_elementwise_max(x, -100), 100));
  out.put(__builtin_elementwise_abs(static_cast<i32>(x >> 1)));
  out.put((a & 0xffffff) * (b & 0xffffff));
  out.put(((x << 8) >> 8) * ((y << 8) >> 8) + static_cast<i32>(c));
}

KERNEL int_products(ARGUMENTS) {
  ENTER;
  const u32 a = in.i[0], b = in.i[1];
  const i32 x = static_cast<i32>(in.i[3]), y = static_cast<i32>(in.i[4]);
  out.put(static_cast<u32>(u64{a} * b >> 32));
  out.put(static_cast<i32>(i64{x} * y >> 32));
  out.put(u64{a} * b + static_cast<u64>(in.l[0]));
  out.put(i64{x} * y + in.l[1]);
  out.put(static_cast<u64>(in.l[0]) * static_cast<u64>(in.l[1]));
  out.put(static_cast<u64>(static_cast<unsigned __int128>(static_cast<u64>(in.l[2])) *
                               static_cast<u64>(in.l[3]) >> 64));
}

KERNEL long_arithmetic(ARGUMENTS) {
  ENTER;
  const u64 a = static_cast<u64>(in.l[0]), b = static_cast<u64>(in.l[1]);
  const i64 x = in.l[2], y = in.l[3];
  const u32 shift = in.small[0] & 63;
  out.put(a + b);
  out.put(a - b);
  out.put(a << shift);
  out.put(a >> shift);
  out.put(x >> shift);
  out.put(x < y ? x : y);
  out.put(a > b);
  out.put(x <= y);
  out.put(a == b);
  out.put(a & b);
  out.put((a | b) ^ static_cast<u64>(x));
  out.put(static_cast<u32>(__builtin_popcountll(a)));
  out.put(a == 0 ? 64 : __builtin_clzll(a));
  out.put(b == 0 ? 64 : __builtin_ctzll(b));
  out.put(static_cast<u64>(__builtin_bitreverse64(a)));
}

KERNEL division(ARGUMENTS) {
  ENTER;
  const u32 a = in.i[0], b = in.i[1] | 1;
  const i32 x = static_cast<i32>(in.i[2] & ~1u), y = static_cast<i32>(in.i[3] | 2);
  out.put(a / b);
  out.put(a % b);
  out.put(x / (y == -1 ? 3 : y));
  out.put(x % (y == -1 ? 3 : y));
  out.put(a / 7);
  out.put(x / 10);
  out.put(a % 1000);
  out.put(static_cast<u32>(static_cast<u16>(a)) / (static_cast<u16>(b) | 1u));
}

KERNEL long_division(ARGUMENTS) {
  ENTER;
  const u64 a = static_cast<u64>(in.l[0]), b = static_cast<u64>(in.l[1]) | 1;
  const i64 x = in.l[2] & ~i64{1}, y = in.l[3] | 2;
  out.put(a / b);
  out.put(a % b);
  out.put(x / (y == -1 ? 3 : y));
  out.put(x % (y == -1 ? 3 : y));
  out.put(a / 1000003);
  out.put(a / (b >> 40 | 1));
  out.put(x / 10);
}

KERNEL bit_operations(ARGUMENTS) {
  ENTER;
  const u32 a = in.i[0], b = in.i[1], shift = in.small[0] & 31;
  out.put(static_cast<u32>(__builtin_popcount(a)) + b);
  out.put(a == 0 ? 32 : __builtin_clz(a));
  out.put(b == 0 ? 32 : __builtin_ctz(b));
  out.put(__builtin_bitreverse32(a));
  out.put(__builtin_bswap32(a));
  out.put(__builtin_rotateleft32(a, shift));
  out.put(__builtin_rotateright32(b, 7));
  out.put(a >> 5 & 0x3ff);
  out.put(static_cast<i32>(a << 7) >> 20);
  out.put(static_cast<u32>((u64{a} << 32 | b) >> shift));
  out.put((a & 0xffff) | b << 16);
  out.put(a >> 16 | (b & 0xffff0000));
  out.put(__builtin_elementwise_add_sat(a, b));
  out.put(__builtin_elementwise_sub_sat(a, b));
  out.put(__builtin_elementwise_add_sat(static_cast<i32>(a), static_cast<i32>(b)));
  out.put(__builtin_elementwise_sub_sat(static_cast<i32>(a), static_cast<i32>(b)));
  u32 carry = 0;
  const u32 low = __builtin_addc(a, b, 0, &carry);
  out.put(low);
  out.put(carry);
}

KERNEL short_arithmetic(ARGUMENTS) {
  ENTER;
  const u16 a = static_cast<u16>(in.i[0]), b = static_cast<u16>(in.i[1]);
  const i16 x = static_cast<i16>(in.i[2]), y = static_cast<i16>(in.i[3]);
  const u8 p = static_cast<u8>(in.i[4]), q = static_cast<u8>(in.i[5]);
  out.put(static_cast<u32>(static_cast<u16>(a + b)));
  out.put(static_cast<u32>(static_cast<u16>(a * b)));
  out.put(static_cast<i32>(static_cast<i16>(x - y)));
  out.put(static_cast<i32>(static_cast<i16>(x >> (in.small[0] & 15))));
  out.put(static_cast<u32>(static_cast<u16>(a >> (in.small[0] & 15))));
  out.put(static_cast<u32>(static_cast<u16>(a << (in.small[0] & 15))));
  out.put(static_cast<i32>(x < y ? x : y));
  out.put(static_cast<u32>(a > b ? a : b));
  out.put(static_cast<u32>(static_cast<u16>(a * b + static_cast<u16>(in.i[2]))));
  out.put(static_cast<u32>(__builtin_elementwise_add_sat(i32{a}, i32{b})));
  out.put(static_cast<i32>(__builtin_elementwise_sub_sat(i32{x}, i32{y})));
  out.put(static_cast<u32>(static_cast<u8>(p + q)));
  out.put(static_cast<u32>(static_cast<u8>(p * q)));
  out.put(static_cast<i32>(x) * y);
  out.put(static_cast<u32>(a) * b + in.i[6]);
}

DEVICE u32 byte_of(u32 x, int i) { return x >> (8 * i) & 255; }

/// Returns a dot product of signed and unsigned bytes, saturated.
DEVICE i32 mixed_dot4(u32 a, u32 b, i32 c) {
  i64 sum = c;
  for (int i = 0; i < 4; ++i) sum += static_cast<i8>(byte_of(a, i)) * static_cast<i32>(byte_of(b, i));
  constexpr i64 most = 0x7fffffff;
  return static_cast<i32>(sum > most ? most : sum < -most - 1 ? -most - 1 : sum);
}

KERNEL special_integers(ARGUMENTS) {
  ENTER;
  const u32 a = in.i[0], b = in.i[1], c = in.i[2];
#ifdef __AMDGCN__
  out.put(__builtin_amdgcn_perm(a, b, c & 0x07070707));
  out.put(__builtin_amdgcn_alignbyte(a, b, c & 3));
  out.put(__builtin_amdgcn_alignbit(a, b, c & 31));
  out.put(__builtin_amdgcn_ubfe(a, 5, 9));
  out.put(__builtin_amdgcn_sbfe(static_cast<i32>(a), in.small[0] & 15, 9));
  out.put(__builtin_amdgcn_sad_u8(a, b, c));
  out.put(__builtin_amdgcn_msad_u8(a, b, c));
  out.put(__builtin_amdgcn_sad_u16(a, b, c));
  out.put(__builtin_amdgcn_lerp(a, b, c));
  out.put(__builtin_amdgcn_udot4(a, b, c, false));
  const i32 sum = static_cast<i32>(c);
#if MIXED_DOTS
  out.put(__builtin_amdgcn_sudot4(true, a, true, b, sum, false));
  out.put(__builtin_amdgcn_sudot4(true, a, false, b, sum, true));
#else
  out.put(__builtin_amdgcn_sdot4(static_cast<i32>(a), static_cast<i32>(b), sum, false));
  out.put(mixed_dot4(a, b, sum));
#endif
  out.put(__builtin_amdgcn_udot8(a, b, c, false));
#if MIXED_DOTS
  out.put(__builtin_amdgcn_sudot8(true, a, true, b, sum, false));
#else
  out.put(__builtin_amdgcn_sdot8(static_cast<i32>(a), static_cast<i32>(b), sum, false));
#endif
#else
  u32 result = 0;
  const u64 both = u64{a} << 32 | b;
  for (int i = 0; i < 4; ++i) result |= static_cast<u32>(both >> (8 * (c >> (8 * i) & 7)) & 255) << (8 * i);
  out.put(result);
  out.put(static_cast<u32>(both >> (8 * (c & 3))));
  out.put(static_cast<u32>(both >> (c & 31)));
  out.put(a >> 5 & 511);
  out.put(static_cast<i32>(a << (23 - (in.small[0] & 15))) >> 23);
  u32 sad = c, masked = c, wide = c, lerp = 0, u4 = c, u8s = c;
  i64 s4 = static_cast<i32>(c), s8 = static_cast<i32>(c);
  for (int i = 0; i < 4; ++i) {
    const u32 x = byte_of(a, i), y = byte_of(b, i), d = x > y ? x - y : y - x;
    sad += d;
    if (y != 0) masked += d;
    lerp |= (x + y + (byte_of(c, i) & 1)) / 2 << (8 * i);
    u4 += x * y;
    s4 += static_cast<i8>(x) * static_cast<i8>(y);
  }
  for (int i = 0; i < 32; i += 16) {
    const i32 x = a >> i & 0xffff, y = b >> i & 0xffff;
    wide += static_cast<u32>(x > y ? x - y : y - x);
  }
  for (int i = 0; i < 32; i += 4) {
    const i32 x = a >> i & 15, y = b >> i & 15;
    u8s += static_cast<u32>(x * y);
    s8 += (x > 7 ? x - 16 : x) * (y > 7 ? y - 16 : y);
  }
  out.put(sad);
  out.put(masked);
  out.put(wide);
  out.put(lerp);
  out.put(u4);
  out.put(static_cast<u32>(s4));
  out.put(mixed_dot4(a, b, static_cast<i32>(c)));
  out.put(u8s);
  out.put(static_cast<u32>(s8));
#endif
}
