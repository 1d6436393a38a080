#pragma once

// Rows of conversions from and to 8-bit floats. Families differ in how an instruction names the
// byte that it reads or writes; the rows are lowered from here.

#include "emu/exec/float8.h"
#include "emu/exec/valu.h"

namespace emu {
namespace {

/// Runs `G` if MODE's bit FP16_OVFL is set, and `F` otherwise.
template <auto F, auto G>
Stop by_overflow(Wave* w, const Op* op) {
  if ((w->mode & kClampsOverflow) != 0) [[unlikely]] {
    [[clang::musttail]] return full<G>(w, op);
  }
  [[clang::musttail]] return full<F>(w, op);
}

template <class Format, int kByte>
inline constexpr auto kFromByte = [](U32 x) { return from_float8<Format>(x >> (8 * kByte)); };

/// Two floats from the bytes of a word.
template <class Format>
inline constexpr auto kFromWord = [](U16 x) {
  const U32 bytes = convert<U32>(x);
  return pair(bits_as<U32>(from_float8<Format>(bytes)),
              bits_as<U32>(from_float8<Format>(bytes >> 8)));
};

template <class Format, bool kClamp>
inline constexpr auto kToWord = [](F32 a, F32 b) {
  const U32 none = splat<U32>(0);
  const U32 low = to_float8<Format, kClamp, Rounding8::nearest>(a, none);
  const U32 high = to_float8<Format, kClamp, Rounding8::nearest>(b, none);
  return convert<U16>(low | high << 8);
};

/// Replaces one byte of the old value.
template <class Format, bool kClamp, int kByte>
inline constexpr auto kToByte = [](F32 x, U32 seed, U32 old) {
  const U32 byte = to_float8<Format, kClamp, Rounding8::stochastic>(x, seed);
  return (old & ~(0xffu << (8 * kByte))) | byte << (8 * kByte);
};

template <class Format, int kByte>
void lower_from_byte(Lowering& l, const Inst& inst) {
  lower_vector<kFromByte<Format, kByte>, false, Heat::rare>(l, inst);
}

template <class Format>
void lower_from_byte_of(Lowering& l, const Inst& inst, unsigned byte) {
  constexpr void (*kLower[])(Lowering&, const Inst&) = {
      &lower_from_byte<Format, 0>, &lower_from_byte<Format, 1>, &lower_from_byte<Format, 2>,
      &lower_from_byte<Format, 3>};
  kLower[byte & 3](l, inst);
}

template <class Format>
void lower_from_word(Lowering& l, const Inst& inst) {
  lower_vector<kFromWord<Format>, false, Heat::rare>(l, inst);
}

template <class Format>
void lower_to_word(Lowering& l, const Inst& inst) {
  lower_keeping<kToWord<Format, false>, false, false>(l, inst);
  if (inst.operands.at(0).hi) l.extras.back().dst_hi = true;
  l.ops.back().fn = &by_overflow<kToWord<Format, false>, kToWord<Format, true>>;
}

template <class Format, int kByte>
void lower_to_byte(Lowering& l, const Inst& inst) {
  lower_vector<kToByte<Format, false, kByte>, true, Heat::rare>(l, inst);
  l.ops.back().fn = &by_overflow<kToByte<Format, false, kByte>, kToByte<Format, true, kByte>>;
}

/// Bits 2 and 3 of OPSEL are the number of the byte that the instruction writes.
template <class Format>
void lower_to_byte_of(Lowering& l, const Inst& given) {
  constexpr void (*kLower[])(Lowering&, const Inst&) = {
      &lower_to_byte<Format, 0>, &lower_to_byte<Format, 1>, &lower_to_byte<Format, 2>,
      &lower_to_byte<Format, 3>};
  const auto& bits = given.list("op_sel");
  const int byte = bits.size() < 4 ? 0 : bits[2] + 2 * bits[3];
  Inst inst = given;
  inst.lists.clear();  // elsewhere they select halves
  kLower[byte](l, inst);
}

/// Lowers by the formats of the chip.
template <auto kFnuz, auto kOcp>
void lower_by_format(Lowering& l, const Inst& inst) {
  l.traits.ocp_float8 ? kOcp(l, inst) : kFnuz(l, inst);
}

}  // namespace
}  // namespace emu
