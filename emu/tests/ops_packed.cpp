// Packed 16-bit arithmetic, mixed fused multiply-adds and dot products.

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

using H = Pk<half>;

template <class T, class F>
void both(Table& t, const std::string& name, F f) {
  t.op(name, [f](Pk<T> a, Pk<T> b) {
    return Pk<T>{static_cast<T>(f(a.lo, b.lo)), static_cast<T>(f(a.hi, b.hi))};
  });
}

template <class T, class F>
void clamped(Table& t, const std::string& name, F f) {
  both<T>(t, name, f);
  t.specs.back().clamped([f](Pk<T> a, Pk<T> b) {
    return Pk<T>{saturate<T>(f(a.lo, b.lo)), saturate<T>(f(a.hi, b.hi))};
  });
}

template <class T>
void multiply_add(Table& t, const std::string& name) {
  t.op(name, [](Pk<T> a, Pk<T> b, Pk<T> c) {
     return Pk<T>{static_cast<T>(i64{a.lo} * b.lo + c.lo), static_cast<T>(i64{a.hi} * b.hi + c.hi)};
   }).clamped([](Pk<T> a, Pk<T> b, Pk<T> c) {
    return Pk<T>{saturate<T>(__int128{a.lo} * b.lo + c.lo),
                 saturate<T>(__int128{a.hi} * b.hi + c.hi)};
  });
}

half add(half a, half b) { return half_nearest(static_cast<double>(a) + static_cast<double>(b)); }
half mul(half a, half b) { return half_nearest(static_cast<double>(a) * static_cast<double>(b)); }

i64 nibble(u32 x, int i, bool is_signed) {
  const auto n = static_cast<i64>(x >> (4 * i) & 15);
  return is_signed && n > 7 ? n - 16 : n;
}

i64 byte_of(u32 x, int i, bool is_signed) {
  const auto n = static_cast<i64>(x >> (8 * i) & 255);
  return is_signed && n > 127 ? n - 256 : n;
}

void add_dots(Table& t) {
  t.op("v_dot4_u32_u8", [](u32 a, u32 b, u32 c) {
     for (int i = 0; i < 4; ++i) c += static_cast<u32>(byte_of(a, i, false) * byte_of(b, i, false));
     return c;
   }).clamped([](u32 a, u32 b, u32 c) {
    __int128 total = c;
    for (int i = 0; i < 4; ++i) total += byte_of(a, i, false) * byte_of(b, i, false);
    return saturate<u32>(total);
  });
  t.op("v_dot8_u32_u4", [](u32 a, u32 b, u32 c) {
    for (int i = 0; i < 8; ++i) c += static_cast<u32>(nibble(a, i, false) * nibble(b, i, false));
    return c;
  });
  // Without neg_lo both sources are unsigned. Other tests cover the signed ones.
  t.op("v_dot4_i32_iu8", [](u32 a, u32 b, u32 c) {
    for (int i = 0; i < 4; ++i) c += static_cast<u32>(byte_of(a, i, false) * byte_of(b, i, false));
    return c;
  });
  t.op("v_dot8_i32_iu4", [](u32 a, u32 b, u32 c) {
    for (int i = 0; i < 8; ++i) c += static_cast<u32>(nibble(a, i, false) * nibble(b, i, false));
    return c;
  });
}

}  // namespace

void add_packed(Table& t) {
  t.op("v_pk_add_f16", [](H a, H b) { return H{add(a.lo, b.lo), add(a.hi, b.hi)}; });
  t.op("v_pk_mul_f16", [](H a, H b) { return H{mul(a.lo, b.lo), mul(a.hi, b.hi)}; });
  t.op("v_pk_fma_f16", [](H a, H b, H c) {
    return H{half_fma(a.lo, b.lo, c.lo), half_fma(a.hi, b.hi, c.hi)};
  });
  t.op("v_pk_min_f16", [](H a, H b) { return H{float_min(a.lo, b.lo), float_min(a.hi, b.hi)}; });
  t.op("v_pk_max_f16", [](H a, H b) { return H{float_max(a.lo, b.lo), float_max(a.hi, b.hi)}; });
  clamped<u16>(t, "v_pk_add_u16", [](i64 a, i64 b) { return a + b; });
  clamped<u16>(t, "v_pk_sub_u16", [](i64 a, i64 b) { return a - b; });
  clamped<i16>(t, "v_pk_add_i16", [](i64 a, i64 b) { return a + b; });
  clamped<i16>(t, "v_pk_sub_i16", [](i64 a, i64 b) { return a - b; });
  both<u16>(t, "v_pk_mul_lo_u16", [](u32 a, u32 b) { return a * b; });
  both<u16>(t, "v_pk_min_u16", [](u16 a, u16 b) { return std::min(a, b); });
  both<u16>(t, "v_pk_max_u16", [](u16 a, u16 b) { return std::max(a, b); });
  both<i16>(t, "v_pk_min_i16", [](i16 a, i16 b) { return std::min(a, b); });
  both<i16>(t, "v_pk_max_i16", [](i16 a, i16 b) { return std::max(a, b); });
  both<u16>(t, "v_pk_lshlrev_b16", [](u16 n, u16 a) { return a << (n & 15); });
  both<u16>(t, "v_pk_lshrrev_b16", [](u16 n, u16 a) { return a >> (n & 15); });
  both<i16>(t, "v_pk_ashrrev_i16", [](i16 n, i16 a) { return a >> (n & 15); });
  multiply_add<u16>(t, "v_pk_mad_u16");
  multiply_add<i16>(t, "v_pk_mad_i16");
  add_dots(t);
}

}  // namespace emu::test
