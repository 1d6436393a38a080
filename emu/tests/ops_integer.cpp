// Integer arithmetic.

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

i32 low24(i32 x) { return static_cast<i32>(static_cast<u32>(x) << 8) >> 8; }
i64 product24(i32 a, i32 b) { return i64{low24(a)} * low24(b); }
u64 product24(u32 a, u32 b) { return u64{a & 0xffffff} * (b & 0xffffff); }

With<u32> sum(u32 a, u32 b, bool c) {
  const u64 wide = u64{a} + b + c;
  return {static_cast<u32>(wide), wide >> 32 != 0};
}
With<u32> difference(u32 a, u32 b, bool c) { return {a - b - c, u64{a} < u64{b} + c}; }
With<u32> most(With<u32> x) { return x.bit ? With<u32>{~0u, true} : x; }
With<u32> least(With<u32> x) { return x.bit ? With<u32>{0, true} : x; }

void add_sums(Table& t) {
  t.op("v_add_nc_u32", [](u32 a, u32 b) { return a + b; }).clamped([](u32 a, u32 b) {
    return saturate<u32>(__int128{a} + b);
  });
  t.op("v_sub_nc_u32", [](u32 a, u32 b) { return a - b; }).clamped([](u32 a, u32 b) {
    return saturate<u32>(__int128{a} - b);
  });
  t.op("v_subrev_nc_u32", [](u32 a, u32 b) { return b - a; }).clamped([](u32 a, u32 b) {
    return saturate<u32>(__int128{b} - a);
  });
  t.op("v_add_nc_i32", [](u32 a, u32 b) { return a + b; }).clamped([](i32 a, i32 b) {
    return saturate<i32>(__int128{a} + b);
  });
  t.op("v_sub_nc_i32", [](u32 a, u32 b) { return a - b; }).clamped([](i32 a, i32 b) {
    return saturate<i32>(__int128{a} - b);
  });
  t.op("v_add_co_u32", [](u32 a, u32 b) { return sum(a, b, false); }).clamped([](u32 a, u32 b) {
    return most(sum(a, b, false));
  });
  t.op("v_sub_co_u32", [](u32 a, u32 b) {
     return difference(a, b, false);
   }).clamped([](u32 a, u32 b) { return least(difference(a, b, false)); });
  t.op("v_subrev_co_u32", [](u32 a, u32 b) {
     return difference(b, a, false);
   }).clamped([](u32 a, u32 b) { return least(difference(b, a, false)); });
  const std::string carry = "_co_ci_u32";
  t.op("v_add" + carry, [](u32 a, u32 b, bool c) {
     return sum(a, b, c);
   }).clamped([](u32 a, u32 b, bool c) { return most(sum(a, b, c)); });
  t.op("v_sub" + carry, [](u32 a, u32 b, bool c) {
     return difference(a, b, c);
   }).clamped([](u32 a, u32 b, bool c) { return least(difference(a, b, c)); });
  t.op("v_subrev" + carry, [](u32 a, u32 b, bool c) {
     return difference(b, a, c);
   }).clamped([](u32 a, u32 b, bool c) { return least(difference(b, a, c)); });
  t.op("v_add3_u32", [](u32 a, u32 b, u32 c) { return a + b + c; });
  t.op("v_lshl_add_u32", [](u32 a, u32 n, u32 b) { return (a << (n % 32)) + b; });
  t.op("v_add_lshl_u32", [](u32 a, u32 b, u32 n) { return (a + b) << (n % 32); });
  t.op("v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; });
}

void add_products(Table& t) {
  t.op("v_mul_lo_u32", [](u32 a, u32 b) { return a * b; });
  t.op("v_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); });
  t.op("v_mul_hi_i32", [](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); });
  t.op("v_mul_i32_i24", [](i32 a, i32 b) { return static_cast<i32>(product24(a, b)); });
  t.op("v_mul_u32_u24", [](u32 a, u32 b) { return static_cast<u32>(product24(a, b)); });
  t.op("v_mul_hi_i32_i24", [](i32 a, i32 b) { return static_cast<i32>(product24(a, b) >> 32); });
  t.op("v_mul_hi_u32_u24", [](u32 a, u32 b) { return static_cast<u32>(product24(a, b) >> 32); });
  t.op("v_mad_i32_i24", [](i32 a, i32 b, i32 c) {
     return static_cast<u32>(product24(a, b)) + static_cast<u32>(c);
   }).clamped([](i32 a, i32 b, i32 c) { return saturate<i32>(__int128{product24(a, b)} + c); });
  t.op("v_mad_u32_u24", [](u32 a, u32 b, u32 c) {
     return static_cast<u32>(product24(a, b)) + c;
   }).clamped([](u32 a, u32 b, u32 c) { return saturate<u32>(__int128{product24(a, b)} + c); });
  t.op("v_mad_u64_u32", [](u32 a, u32 b, u64 c) {
    const unsigned __int128 x = (unsigned __int128){c} + u64{a} * b;
    return With<u64>{static_cast<u64>(x), x >> 64 != 0};
  });
  t.op("v_mad_i64_i32", [](i32 a, i32 b, i64 c) {
    const __int128 x = __int128{c} + i64{a} * b;
    return With<u64>{static_cast<u64>(x), x < 0};  // the carry is bit 64 of the sum
  });
  t.op("v_mul_lo_u16", [](u16 a, u16 b) { return static_cast<u16>(u32{a} * b); });
  t.op("v_mad_u16", [](u16 a, u16 b, u16 c) {
     return static_cast<u16>(u32{a} * b + c);
   }).clamped([](u16 a, u16 b, u16 c) { return saturate<u16>(__int128{a} * b + c); });
  t.op("v_mad_i16", [](u16 a, u16 b, u16 c) {
     return static_cast<u16>(u32{a} * b + c);
   }).clamped([](i16 a, i16 b, i16 c) { return saturate<i16>(__int128{a} * b + c); });
  t.op("v_mad_u32_u16", [](u16 a, u16 b, u32 c) {
     return u32{a} * b + c;
   }).clamped([](u16 a, u16 b, u32 c) { return saturate<u32>(__int128{a} * b + c); });
  t.op("v_mad_i32_i16", [](i16 a, i16 b, u32 c) {
     return static_cast<u32>(i32{a} * b) + c;
   }).clamped([](i16 a, i16 b, i32 c) { return saturate<i32>(__int128{a} * b + c); });
}

/// gfx9 has two names for each of these. The instructions with the older names clear the upper half
/// of their register.
void add_legacy(Table& t) {
  t.op("v_mad_legacy_u16", [](u16 a, u16 b, u16 c) {
     return static_cast<u16>(u32{a} * b + c);
   }).clamped([](u16 a, u16 b, u16 c) { return saturate<u16>(__int128{a} * b + c); });
  t.op("v_mad_legacy_i16", [](u16 a, u16 b, u16 c) {
     return static_cast<u16>(u32{a} * b + c);
   }).clamped([](i16 a, i16 b, i16 c) { return saturate<i16>(__int128{a} * b + c); });
  t.op("v_subrev_u16", [](u16 a, u16 b) {
     return static_cast<u16>(b - a);
   }).clamped([](u16 a, u16 b) { return saturate<u16>(b - a); });
}

template <class T>
void add_order(Table& t, const std::string& type, bool two, bool mixed) {
  t.op("v_min_" + type, [](T a, T b) { return std::min(a, b); });
  t.op("v_max_" + type, [](T a, T b) { return std::max(a, b); });
  if (!two) return;
  t.op("v_min3_" + type, [](T a, T b, T c) { return std::min({a, b, c}); });
  t.op("v_max3_" + type, [](T a, T b, T c) { return std::max({a, b, c}); });
  t.op("v_med3_" + type, [](T a, T b, T c) { return int_med3(a, b, c); });
  if (!mixed) return;
  t.op("v_minmax_" + type, [](T a, T b, T c) { return std::max(std::min(a, b), c); });
  t.op("v_maxmin_" + type, [](T a, T b, T c) { return std::min(std::max(a, b), c); });
}

void add_short(Table& t) {
  t.op("v_add_nc_u16", [](u16 a, u16 b) {
     return static_cast<u16>(a + b);
   }).clamped([](u16 a, u16 b) { return saturate<u16>(a + b); });
  t.op("v_sub_nc_u16", [](u16 a, u16 b) {
     return static_cast<u16>(a - b);
   }).clamped([](u16 a, u16 b) { return saturate<u16>(a - b); });
  t.op("v_add_nc_i16", [](u16 a, u16 b) {
     return static_cast<u16>(a + b);
   }).clamped([](i16 a, i16 b) { return saturate<i16>(a + b); });
  t.op("v_sub_nc_i16", [](u16 a, u16 b) {
     return static_cast<u16>(a - b);
   }).clamped([](i16 a, i16 b) { return saturate<i16>(a - b); });
  t.op("v_lshlrev_b16", [](u16 n, u16 a) { return static_cast<u16>(a << (n & 15)); });
  t.op("v_lshrrev_b16", [](u16 n, u16 a) { return static_cast<u16>(a >> (n & 15)); });
  t.op("v_ashrrev_i16", [](u16 n, i16 a) { return static_cast<i16>(a >> (n & 15)); });
  t.op("v_and_b16", [](u16 a, u16 b) { return static_cast<u16>(a & b); });
  t.op("v_or_b16", [](u16 a, u16 b) { return static_cast<u16>(a | b); });
  t.op("v_xor_b16", [](u16 a, u16 b) { return static_cast<u16>(a ^ b); });
  t.op("v_not_b16", [](u16 a) { return static_cast<u16>(~a); });
}

u32 byte_at(u32 x, int i) { return x >> (8 * i) & 255; }

u32 sad(u32 a, u32 b, bool masked) {
  u32 total = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 x = byte_at(a, i), y = byte_at(b, i);
    if (!masked || y != 0) total += x > y ? x - y : y - x;
  }
  return total;
}

void add_differences(Table& t) {
  t.op("v_sad_u8", [](u32 a, u32 b, u32 c) {
     return c + sad(a, b, false);
   }).clamped([](u32 a, u32 b, u32 c) { return saturate<u32>(__int128{c} + sad(a, b, false)); });
  t.op("v_msad_u8", [](u32 a, u32 b, u32 c) { return c + sad(a, b, true); });
  t.op("v_sad_hi_u8", [](u32 a, u32 b, u32 c) { return c + (sad(a, b, false) << 16); });
  t.op("v_sad_u16", [](u32 a, u32 b, u32 c) {
    for (int shift : {0, 16}) {
      const auto x = static_cast<i32>(a >> shift & 0xffff),
                 y = static_cast<i32>(b >> shift & 0xffff);
      c += static_cast<u32>(std::abs(x - y));
    }
    return c;
  });
  t.op("v_sad_u32", [](u32 a, u32 b, u32 c) { return c + (a > b ? a - b : b - a); });
  t.op("v_lerp_u8", [](u32 a, u32 b, u32 c) {
    u32 result = 0;
    for (int i = 0; i < 4; ++i) {
      result |= (byte_at(a, i) + byte_at(b, i) + (byte_at(c, i) & 1)) / 2 << (8 * i);
    }
    return result;
  });
  const auto quad = [](u64 a, u32 b, u64 c, bool masked) {
    u64 result = 0;
    for (int i = 0; i < 4; ++i) {
      const u64 x = (c >> (16 * i) & 0xffff) + sad(static_cast<u32>(a >> (8 * i)), b, masked);
      result |= (x & 0xffff) << (16 * i);
    }
    return result;
  };
  t.op("v_qsad_pk_u16_u8", [quad](u64 a, u32 b, u64 c) { return quad(a, b, c, false); });
  t.op("v_mqsad_pk_u16_u8", [quad](u64 a, u32 b, u64 c) { return quad(a, b, c, true); });
}

}  // namespace

void add_integer(Table& t) {
  add_sums(t);
  add_products(t);
  add_legacy(t);
  add_order<u32>(t, "u32", true, true);
  add_order<i32>(t, "i32", true, true);
  add_order<u16>(t, "u16", true, false);
  add_order<i16>(t, "i16", true, false);
  add_short(t);
  add_differences(t);
}

}  // namespace emu::test
