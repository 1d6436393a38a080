// Vectors of two 16-bit values, mixed precision, and dot products of halves.
#include "corpus.h"

DEVICE u32 both(half2 x) { return bits(x.x) | bits(x.y) << 16; }
DEVICE half2 pair(const Input& in, int k) { return half2{in.h[k], in.h[k + 1]}; }
template <class V>
DEVICE u32 raw(V x) { return __builtin_bit_cast(u32, x); }

KERNEL packed_half(ARGUMENTS) {
  ENTER;
  const half2 a = pair(in, 0), b = pair(in, 2), c = pair(in, 4);
  out.put(both(a + b));
  out.put(both(a - b));
  out.put(both(a * b));
  out.put(both(a * b + c));
  out.put(both(-a * half2{b.y, b.x}));
  out.put(both(a + half2{b.x, b.x}));
  out.put(both(a * static_cast<half>(0.5f)));
  const half2 one = {1, 1};
  out.put(both(__builtin_elementwise_max(a + one, b + one)));
  out.put(both(__builtin_elementwise_min(a + one, b + one)));
  out.put(both(__builtin_elementwise_abs(a)));
  out.put(both(half2{a.y, c.x}));
}

KERNEL packed_fma(ARGUMENTS) {
  ENTER;
  const half2 a = pair(in, 0), b = pair(in, 2), c = pair(in, 4);
#ifdef __AMDGCN__
  out.put(both(__builtin_elementwise_fma(a, b, c)));
  out.put(__builtin_elementwise_fma(a.x, b.x, c.x));
#else
  const auto fma = [](half x, half y, half z) {
    return static_cast<half>(__builtin_fmal(static_cast<long double>(x), static_cast<long double>(y),
                                            static_cast<long double>(z)));
  };
  out.put(both(half2{fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)}));
  out.put(fma(a.x, b.x, c.x));
#endif
}

KERNEL packed_integer(ARGUMENTS) {
  ENTER;
  const short2 a = __builtin_bit_cast(short2, in.i[0]), b = __builtin_bit_cast(short2, in.i[1]);
  const ushort2 x = __builtin_bit_cast(ushort2, in.i[2]), y = __builtin_bit_cast(ushort2, in.i[3]);
  const ushort2 few = __builtin_bit_cast(ushort2, in.i[4] & 0x000f000f);
  out.put(raw(x + y));
  out.put(raw(x - y));
  out.put(raw(x * y));
  out.put(raw(x * y + few));
  out.put(raw(x << few));
  out.put(raw(x >> few));
  out.put(raw(a >> __builtin_bit_cast(short2, few)));
  out.put(raw(__builtin_elementwise_min(a, b)));
  out.put(raw(__builtin_elementwise_max(a, b)));
  out.put(raw(__builtin_elementwise_min(x, y)));
  out.put(raw(__builtin_elementwise_max(x, y)));
  out.put(raw(__builtin_elementwise_add_sat(a, b)));
  out.put(raw(__builtin_elementwise_sub_sat(x, y)));
}

KERNEL mixed_precision(ARGUMENTS) {
  ENTER;
  const half2 a = pair(in, 0), b = pair(in, 2);
  float sum = in.f[0];
  sum = __builtin_fmaf(static_cast<float>(a.x), static_cast<float>(b.x), sum);
  sum = __builtin_fmaf(static_cast<float>(a.y), static_cast<float>(b.y), sum);
  out.put(sum);
  out.put(__builtin_fmaf(static_cast<float>(a.y), in.f[1], -in.f[2]));
  out.put(static_cast<half>(__builtin_fmaf(static_cast<float>(a.x), static_cast<float>(b.y), in.f[3])));
  out.put(both(half2{static_cast<half>(in.f[4]), static_cast<half>(in.f[5])}));
  const float2 wide = {static_cast<float>(a.x), static_cast<float>(a.y)};
  out.put(wide.x + wide.y);
}

KERNEL dot_products(ARGUMENTS) {
  ENTER;
  // The values are integers, so sums are exact in every order.
  const half2 a = {static_cast<half>(static_cast<float>(in.small[0] & 63)),
                   static_cast<half>(static_cast<float>(in.small[1] & 63))};
  const half2 b = {static_cast<half>(static_cast<float>(in.small[2] & 63)),
                   static_cast<half>(-static_cast<float>(in.small[3] & 31))};
  const float c = static_cast<float>(in.small[0]);
#ifdef __AMDGCN__
  out.put(__builtin_amdgcn_fdot2(a, b, c, false));
  out.put(__builtin_amdgcn_fdot2(a, b, -1e6f, true));
  out.put(__builtin_amdgcn_cvt_pkrtz(in.f[6], in.f[7]).x == static_cast<half>(0.0f));
#else
  const float dot = static_cast<float>(a.x) * static_cast<float>(b.x) +
                    static_cast<float>(a.y) * static_cast<float>(b.y);
  out.put(dot + c);
  out.put(std::min(std::max(dot - 1e6f, 0.0f), 1.0f));
  out.put(std::fabs(in.f[6]) < 0x1p-24f);
#endif
}
