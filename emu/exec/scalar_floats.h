#pragma once

// Builds scalar instructions from functions of float lanes: sources are scalars, and the first
// lane's result goes to a scalar register or, if it is a condition, to SCC. Modifiers and MODE
// apply as they do to vector instructions, and EXEC doesn't matter.

#include "emu/exec/valu.h"

namespace emu {
namespace {

/// Returns the bits of the first lane's result, after the modifiers of the result.
template <class R>
EMU_INLINE uint32_t first_lane(Wave* w, const Op* op, const R& result) {
  Op own = *op;
  own.dst = offsetof(Wave, spare);
  at<U32>(w, own.dst) = splat<U32>(0);  // a 16-bit result leaves zeros above it
  finish(w, &own, 0, kAllLanes, result);
  return at<uint32_t>(w, own.dst);
}

template <auto F>
Stop of_scalars(Wave* w, const Op* op) {
  using R = typename SignatureOf<F>::Result;
  constexpr bool kOther = has_other_float<F>();
  const uint32_t from[] = {op->a, op->b, op->c};
  for (int i = 0; i < SignatureOf<F>::kCount; ++i) read_scalar(w, op, from[i], 1);
  const bool own_mode = kOther && unusual_mode(w);
  const bool flush = own_mode && (w->mode >> 6 & 3) != 3;
  if (own_mode) set_host_mode(host_mode_64(w->mode));
  const auto result =
      call_with<F>([&]<class T, int I>(std::type_identity<T>, std::integral_constant<int, I>) {
        const T value = argument<T>(w, op, I, 0);
        if constexpr (kOther) return flush ? flushed(value) : value;
        return value;
      });
  if constexpr (kIsLanes<R>) {
    w->scc = result.bits & 1;
    if constexpr (kChecked) w->track->scc_known = true;
  } else {
    const uint32_t value = first_lane(w, op, flush ? flushed(result) : result);
    write_scalar(w, op, op->dst, 1);
    at<uint32_t>(w, op->dst) = value;
  }
  if (own_mode) set_host_mode(host_mode_32(w->mode));
  EMU_NEXT;
}

/// kAccumulate: the destination is also the last source.
template <auto F, bool kAccumulate>
void lower_of_scalars(Lowering& l, const Inst& given) {
  using S = SignatureOf<F>;
  Value values[S::kCount];
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((values[I] = value_of<typename S::template Arg<I>>()), ...);
  }
  (std::make_integer_sequence<int, S::kCount>());
  Inst inst = given;
  if constexpr (kIsLanes<typename S::Result>) {  // SCC isn't among the operands
    Operand none;
    none.kind = Kind::sgpr;
    none.reg = kNull;
    inst.operands.insert(inst.operands.begin(), none);
  }
  const Placed placed = l.place_vector(inst, {.accumulate = kAccumulate}, values);
  if (placed.vectors != 0) refuse_operands(given);
  l.ops.back().fn = &of_scalars<F>;
}

template <auto F>
constexpr Row of_scalars_row(const char* name) {
  return {name, &lower_of_scalars<F, false>};
}
template <auto F>
constexpr Row of_scalars_accumulate(const char* name) {
  return {name, &lower_of_scalars<F, true>};
}

}  // namespace
}  // namespace emu
