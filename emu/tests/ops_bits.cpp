// Logic, shifts, bit fields, permutations, bit counts, selection.

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

i32 leading(u32 x) {
  for (int i = 0; i < 32; ++i) {
    if (x >> (31 - i) & 1) return i;
  }
  return -1;
}

i32 trailing(u32 x) {
  for (int i = 0; i < 32; ++i) {
    if (x >> i & 1) return i;
  }
  return -1;
}

u32 ones(u32 x) {
  u32 n = 0;
  for (int i = 0; i < 32; ++i) n += x >> i & 1;
  return n;
}

u32 reversed(u32 x) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}

u32 permuted(u32 a, u32 b, u32 select) {
  const u64 data = u64{a} << 32 | b;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 s = select >> (8 * i) & 255;
    u32 byte = 0;
    if (s >= 13)
      byte = 255;
    else if (s == 12)
      byte = 0;
    else if (s >= 8)
      byte = (data >> (16 * (s - 8) + 15) & 1) != 0 ? 255 : 0;
    else
      byte = static_cast<u32>(data >> (8 * s) & 255);
    result |= byte << (8 * i);
  }
  return result;
}

void add_fields(Table& t) {
  t.op("v_bfe_u32", [](u32 a, u32 at, u32 n) {
    return static_cast<u32>((u64{a} >> (at % 32)) & ((u64{1} << (n % 32)) - 1));
  });
  t.op("v_bfe_i32", [](i32 a, u32 at, u32 n) -> i32 {
    const u32 width = n % 32;
    if (width == 0) return 0;
    i64 field = (i64{a} >> (at % 32)) & ((i64{1} << width) - 1);
    if (field >> (width - 1) & 1) field -= i64{1} << width;
    return static_cast<i32>(field);
  });
  t.op("v_bfi_b32", [](u32 m, u32 a, u32 b) { return (m & a) | (~m & b); });
  t.op("v_bfm_b32", [](u32 n, u32 at) { return ((1u << (n % 32)) - 1) << (at % 32); });
  t.op("v_alignbit_b32",
       [](u32 a, u32 b, u32 n) { return static_cast<u32>((u64{a} << 32 | b) >> (n % 32)); });
  t.op("v_alignbyte_b32",
       [](u32 a, u32 b, u32 n) { return static_cast<u32>((u64{a} << 32 | b) >> (8 * (n % 4))); });
  t.op("v_perm_b32", [](u32 a, u32 b, u32 select) { return permuted(a, b, select); });
  t.op("v_pack_b32_f16",
       [](half a, half b) { return static_cast<u32>(to_bits(a) | to_bits(b) << 16); });
}

}  // namespace

void add_bits(Table& t) {
  t.op("v_mov_b32", [](u32 a) { return a; });
  t.op("v_not_b32", [](u32 a) { return ~a; });
  t.op("v_bfrev_b32", [](u32 a) { return reversed(a); });
  t.op("v_clz_i32_u32", [](u32 a) { return leading(a); });
  t.op("v_ctz_i32_b32", [](u32 a) { return trailing(a); });
  t.op("v_cls_i32", [](i32 a) -> i32 {
    for (int i = 1; i < 32; ++i) {
      if ((a >> (31 - i) & 1) != (a >> 31 & 1)) return i;
    }
    return -1;
  });
  t.op("v_and_b32", [](u32 a, u32 b) { return a & b; });
  t.op("v_or_b32", [](u32 a, u32 b) { return a | b; });
  t.op("v_xor_b32", [](u32 a, u32 b) { return a ^ b; });
  t.op("v_xnor_b32", [](u32 a, u32 b) { return ~(a ^ b); });
  t.op("v_lshlrev_b32", [](u32 n, u32 a) { return a << (n % 32); });
  t.op("v_lshrrev_b32", [](u32 n, u32 a) { return a >> (n % 32); });
  t.op("v_ashrrev_i32", [](u32 n, i32 a) { return a >> (n % 32); });
  t.op("v_lshlrev_b64", [](u32 n, u64 a) { return a << (n % 64); });
  t.op("v_lshrrev_b64", [](u32 n, u64 a) { return a >> (n % 64); });
  t.op("v_ashrrev_i64", [](u32 n, i64 a) { return a >> (n % 64); });
  t.op("v_lshl_or_b32", [](u32 a, u32 n, u32 b) { return a << (n % 32) | b; });
  t.op("v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; });
  t.op("v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; });
  t.op("v_xor3_b32", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  t.op("v_bcnt_u32_b32", [](u32 a, u32 b) { return ones(a) + b; });
  t.op("v_cndmask_b32", [](float a, float b, bool c) { return c ? b : a; }).exact();
  t.op("v_cndmask_b16", [](half a, half b, bool c) { return c ? b : a; }).exact();
  add_fields(t);
}

}  // namespace emu::test
