// Scalar logic, shifts and bit fields, and the instructions that save and change EXEC.

#include <bit>

#include "emu/exec/rows/rows.h"
#include "emu/exec/salu.h"

namespace emu::EMU_VARIANT {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

template <class T>
T nonzero(T value, u32& scc) {
  scc = value != 0;
  return value;
}

/// EXEC becomes kCombine(source, EXEC), and SCC says whether any lane is left. The destination
/// receives the old EXEC, or with kWrite the new one.
template <class T, auto kCombine, bool kWrite>
Stop save_exec(Wave* w, const Op* op) {
  const auto source = scalar_source<T>(w, op->a);
  const auto exec = scalar_source<T>(w, sgpr_offset(kExec));
  if constexpr (kChecked) {
    const auto unknown = static_cast<T>(unknown_bits<T>(w, op, op->a));
    const bool matters = kCombine(static_cast<T>(source & ~unknown), exec) !=
                         kCombine(static_cast<T>(source | unknown), exec);
    if (matters) unknown_scalar(w, op, op->a / 4);
    write_scalar(w, op, op->dst, sizeof(T) / 4);
  }
  const auto put = [&](u32 to, T value) {
    at<u32>(w, to) = static_cast<u32>(value);
    if constexpr (sizeof(T) == 8) at<u32>(w, to + 4) = static_cast<u32>(value >> 32);
  };
  const T result = static_cast<T>(kCombine(source, exec));
  put(op->dst, kWrite ? result : exec);
  put(sgpr_offset(kExec), result);
  w->scc = result != 0;
  if constexpr (kChecked) w->track->scc_known = true;
  EMU_NEXT;
}

template <class T, auto kCombine, bool kWrite>
void lower_save_exec(Lowering& l, const Inst& inst) {
  if (inst.operands.size() < 2) refuse_operands(inst);
  Op& op = l.emit(&save_exec<T, kCombine, kWrite>);
  op.dst = l.destination(inst.operands[0]);
  op.a = l.source(inst.operands[1], sizeof(T) == 8 ? Value::u64 : Value::b32);
}

#define EMU_EXEC_ROWS(name, combine, write)                                                        \
  {"s_" name "_b32", &lower_save_exec<u32, [](u32 s, u32 e) -> u32 { return combine; }, write>}, { \
    "s_" name "_b64", &lower_save_exec<u64, [](u64 s, u64 e) -> u64 { return combine; }, write>    \
  }

/// Makes a row of 32 and one of 64 bits. `T` is the type; SCC says whether the result is nonzero.
#define EMU_LOGIC(name, result)                                                                 \
  sop_bits<[](u32 a, u32 b, u32& scc) { return nonzero<u32>(result, scc); }>("s_" name "_b32"), \
      sop_bits<[](u64 a, u64 b, u32& scc) { return nonzero<u64>(result, scc); }>("s_" name "_b64")

/// Extracts a bit field whose position and width are in one register.
template <class T>
T field(T value, u32 where) {
  constexpr u32 kBits = sizeof(T) * 8;
  const u32 width = where >> 16 & 0x7f;
  value >>= where & (kBits - 1);
  return width >= kBits ? value : value & ((T{1} << width) - 1);
}
template <class T>
T signed_field(T value, u32 where) {
  constexpr u32 kBits = sizeof(T) * 8;
  using U = std::make_unsigned_t<T>;
  const u32 width = where >> 16 & 0x7f;
  if (width == 0) return 0;
  value >>= where & (kBits - 1);
  if (width >= kBits) return value;
  const u32 up = kBits - width;
  return static_cast<T>(static_cast<U>(value) << up) >> up;
}

template <class T>
T mask(u32 width, u32 at) {
  return ((T{1} << (width & (sizeof(T) * 8 - 1))) - 1) << (at & (sizeof(T) * 8 - 1));
}

template <class T>
T reversed(T value) {
  return sizeof(T) == 8 ? static_cast<T>(__builtin_bitreverse64(value))
                        : static_cast<T>(__builtin_bitreverse32(static_cast<u32>(value)));
}

template <class T>
i32 leading_zeros(T value) {
  return value == 0 ? -1 : std::countl_zero(value);
}
template <class T>
i32 trailing_zeros(T value) {
  return value == 0 ? -1 : std::countr_zero(value);
}
template <class T>
i32 leading_signs(T value) {
  using S = std::make_signed_t<T>;
  return leading_zeros<T>(value ^ static_cast<T>(static_cast<S>(value) >> (sizeof(T) * 8 - 1)));
}

/// Returns one bit for each four bits of the source: whether any of them is set.
template <class T>
T quads(T value) {
  T result = 0;
  for (u32 i = 0; i < sizeof(T) * 2; ++i) {
    if (value >> (4 * i) & 15) result |= T{1} << i;
  }
  return result;
}
/// Sets all four bits of each group of four that has any bit set.
template <class T>
T whole_quads(T value) {
  T result = 0;
  for (u32 i = 0; i < sizeof(T) * 2; ++i) {
    if (value >> (4 * i) & 15) result |= T{15} << (4 * i);
  }
  return result;
}

u64 replicated(u32 value) {
  u64 result = 0;
  for (u32 i = 0; i < 32; ++i) result |= u64{value >> i & 1} * 3 << (2 * i);
  return result;
}

template <class T>
T with_bit(T old, u32 at, bool set) {
  const T bit = T{1} << (at & (sizeof(T) * 8 - 1));
  return set ? old | bit : old & ~bit;
}

constexpr auto kCtz32 = [](u32 a) { return trailing_zeros(a); };
constexpr auto kCtz64 = [](u64 a) { return trailing_zeros(a); };
constexpr auto kClz32 = [](u32 a) { return leading_zeros(a); };
constexpr auto kClz64 = [](u64 a) { return leading_zeros(a); };
constexpr auto kCls32 = [](u32 a) { return leading_signs(a); };
constexpr auto kCls64 = [](u64 a) { return leading_signs(a); };

// clang-format off: it takes & between names in macros for references.
constexpr Row kRows[] = {
    EMU_EXEC_ROWS("and_saveexec", s& e, false),
    EMU_EXEC_ROWS("or_saveexec", s | e, false),
    EMU_EXEC_ROWS("xor_saveexec", s ^ e, false),
    EMU_EXEC_ROWS("nand_saveexec", ~(s& e), false),
    EMU_EXEC_ROWS("nor_saveexec", ~(s | e), false),
    EMU_EXEC_ROWS("xnor_saveexec", ~(s ^ e), false),
    // The names say which operand is inverted: first gfx11's names, then the older ones.
    EMU_EXEC_ROWS("and_not0_saveexec", ~s& e, false),
    EMU_EXEC_ROWS("and_not1_saveexec", s & ~e, false),
    EMU_EXEC_ROWS("or_not0_saveexec", ~s | e, false),
    EMU_EXEC_ROWS("or_not1_saveexec", s | ~e, false),
    EMU_EXEC_ROWS("and_not0_wrexec", ~s& e, true),
    EMU_EXEC_ROWS("and_not1_wrexec", s & ~e, true),
    EMU_EXEC_ROWS("andn1_saveexec", ~s& e, false),
    EMU_EXEC_ROWS("andn2_saveexec", s & ~e, false),
    EMU_EXEC_ROWS("orn1_saveexec", ~s | e, false),
    EMU_EXEC_ROWS("orn2_saveexec", s | ~e, false),
    EMU_EXEC_ROWS("andn1_wrexec", ~s& e, true),
    EMU_EXEC_ROWS("andn2_wrexec", s & ~e, true),
    EMU_LOGIC("and", a& b),
    EMU_LOGIC("or", a | b),
    EMU_LOGIC("xor", a ^ b),
    EMU_LOGIC("nand", ~(a& b)),
    EMU_LOGIC("nor", ~(a | b)),
    EMU_LOGIC("xnor", ~(a ^ b)),
    EMU_LOGIC("and_not1", a & ~b),
    EMU_LOGIC("or_not1", a | ~b),
    EMU_LOGIC("andn2", a & ~b),
    EMU_LOGIC("orn2", a | ~b),
    sop_bits<[](u32 a, u32& scc) { return nonzero(~a, scc); }>("s_not_b32"),
    sop_bits<[](u64 a, u32& scc) { return nonzero(~a, scc); }>("s_not_b64"),
    sop_bits<[](u32 a, u32 b, u32& scc) { return nonzero(a << (b & 31), scc); }>("s_lshl_b32"),
    sop_bits<[](u64 a, u32 b, u32& scc) { return nonzero(a << (b & 63), scc); }>("s_lshl_b64"),
    sop_bits<[](u32 a, u32 b, u32& scc) { return nonzero(a >> (b & 31), scc); }>("s_lshr_b32"),
    sop_bits<[](u64 a, u32 b, u32& scc) { return nonzero(a >> (b & 63), scc); }>("s_lshr_b64"),
    sop_bits<[](i32 a, u32 b, u32& scc) { return nonzero(a >> (b & 31), scc); }>("s_ashr_i32"),
    sop_bits<[](i64 a, u32 b, u32& scc) { return nonzero(a >> (b & 63), scc); }>("s_ashr_i64"),
    sop<[](u32 a, u32 b, u32& scc) { return nonzero(field(a, b), scc); }>("s_bfe_u32"),
    sop<[](u64 a, u32 b, u32& scc) { return nonzero(field(a, b), scc); }>("s_bfe_u64"),
    sop<[](i32 a, u32 b, u32& scc) { return nonzero(signed_field(a, b), scc); }>("s_bfe_i32"),
    sop<[](i64 a, u32 b, u32& scc) { return nonzero(signed_field(a, b), scc); }>("s_bfe_i64"),
    sop<[](u32 width, u32 at) { return mask<u32>(width, at); }>("s_bfm_b32"),
    sop<[](u32 width, u32 at) { return mask<u64>(width, at); }>("s_bfm_b64"),
    sop<[](u32 a) { return reversed(a); }>("s_brev_b32"),
    sop<[](u64 a) { return reversed(a); }>("s_brev_b64"),
    sop<[](u32 a, u32& scc) { return nonzero(std::popcount(a), scc); }>("s_bcnt1_i32_b32"),
    sop<[](u64 a, u32& scc) { return nonzero(std::popcount(a), scc); }>("s_bcnt1_i32_b64"),
    sop<[](u32 a, u32& scc) { return nonzero(std::popcount(~a), scc); }>("s_bcnt0_i32_b32"),
    sop<[](u64 a, u32& scc) { return nonzero(std::popcount(~a), scc); }>("s_bcnt0_i32_b64"),
    sop<kCtz32>("s_ctz_i32_b32"),
    sop<kCtz64>("s_ctz_i32_b64"),
    sop<kClz32>("s_clz_i32_u32"),
    sop<kClz64>("s_clz_i32_u64"),
    sop<kCls32>("s_cls_i32"),
    sop<kCls64>("s_cls_i32_i64"),
    sop<kCtz32>("s_ff1_i32_b32"),
    sop<kCtz64>("s_ff1_i32_b64"),
    sop<[](u32 a) { return trailing_zeros(~a); }>("s_ff0_i32_b32"),
    sop<[](u64 a) { return trailing_zeros(~a); }>("s_ff0_i32_b64"),
    sop<kClz32>("s_flbit_i32_b32"),
    sop<kClz64>("s_flbit_i32_b64"),
    sop<kCls32>("s_flbit_i32"),
    sop<kCls64>("s_flbit_i32_i64"),
    sop<[](u32 a) { return static_cast<i32>(static_cast<int8_t>(a)); }>("s_sext_i32_i8"),
    sop<[](u32 a) { return static_cast<i32>(static_cast<int16_t>(a)); }>("s_sext_i32_i16"),
    sop_accumulate<[](u32 at, u32 old) { return with_bit(old, at, false); }>("s_bitset0_b32"),
    sop_accumulate<[](u32 at, u64 old) { return with_bit(old, at, false); }>("s_bitset0_b64"),
    sop_accumulate<[](u32 at, u32 old) { return with_bit(old, at, true); }>("s_bitset1_b32"),
    sop_accumulate<[](u32 at, u64 old) { return with_bit(old, at, true); }>("s_bitset1_b64"),
    sop<[](u32 a, u32 at, u32& scc) { scc = (a >> (at & 31) & 1) == 0; }>("s_bitcmp0_b32"),
    sop<[](u64 a, u32 at, u32& scc) { scc = (a >> (at & 63) & 1) == 0; }>("s_bitcmp0_b64"),
    sop<[](u32 a, u32 at, u32& scc) { scc = (a >> (at & 31) & 1) != 0; }>("s_bitcmp1_b32"),
    sop<[](u64 a, u32 at, u32& scc) { scc = (a >> (at & 63) & 1) != 0; }>("s_bitcmp1_b64"),
    sop<[](u32 a) { return replicated(a); }>("s_bitreplicate_b64_b32"),
    sop<[](u32 a, u32& scc) { return nonzero(quads(a), scc); }>("s_quadmask_b32"),
    sop<[](u64 a, u32& scc) { return nonzero(quads(a), scc); }>("s_quadmask_b64"),
    sop<[](u32 a, u32& scc) { return nonzero(whole_quads(a), scc); }>("s_wqm_b32"),
    sop<[](u64 a, u32& scc) { return nonzero(whole_quads(a), scc); }>("s_wqm_b64"),
    sop<[](u32 a, u32 b) { return (a & 0xffff) | b << 16; }>("s_pack_ll_b32_b16"),
    sop<[](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); }>("s_pack_lh_b32_b16"),
    sop<[](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); }>("s_pack_hh_b32_b16"),
    sop<[](u32 a, u32 b) { return a >> 16 | b << 16; }>("s_pack_hl_b32_b16"),
};
// clang-format on

}  // namespace

std::span<const Row> scalar_bit_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
