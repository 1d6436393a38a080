#pragma once

// Vector instructions from functions of lanes: a table's row is a name and a lambda whose parameter
// and result types say how operands are read and written.

#include <array>

#include "emu/exec/lowering.h"
#include "emu/exec/track.h"
#include "emu/exec/values.h"

namespace emu {
namespace {

template <class T>
constexpr Value value_of() {
  if constexpr (std::is_same_v<T, F32> || std::is_same_v<T, Mixed>) {
    return Value::f32;
  } else if constexpr (std::is_same_v<T, Lanes>) {
    return Value::b32;
  } else if constexpr (requires { T::low; }) {
    return std::is_same_v<T, Packed<F16>> ? Value::pk_f16 : Value::b32;
  } else if constexpr (std::is_same_v<T, F16>) {
    return Value::f16;
  } else if constexpr (std::is_same_v<T, F64>) {
    return Value::f64;
  } else if constexpr (std::is_same_v<T, U64>) {
    return Value::u64;
  } else if constexpr (std::is_same_v<T, I64>) {
    return Value::b64;
  } else if constexpr (sizeof(Element<T>) == 2) {
    return Value::b16;
  } else {
    return Value::b32;
  }
}

/// Argument of type T, from a register when kVector, plain of form.
template <class T, bool kVector>
EMU_INLINE T plain(Wave* w, uint32_t offset) {
  if constexpr (std::is_same_v<T, Lanes>) {
    return {at<uint32_t>(w, offset)};
  } else if constexpr (sizeof(T) == 256) {
    return bits_as<T>(load_qword(w, offset, kVector, 0));
  } else {
    return bits_as<T>(load_dword(w, offset, kVector, 0));
  }
}

/// Argument I of F, with every modifier.
template <class T>
EMU_INLINE T formed(Wave* w, uint32_t offset, const SourceForm& form, int half) {
  if constexpr (std::is_same_v<T, Lanes>) {
    return {at<uint32_t>(w, offset + 4 * static_cast<uint32_t>(half))};
  } else if constexpr (sizeof(T) == 256) {
    return apply_signs(bits_as<T>(load_qword(w, offset, form.vector, half)), form.neg, form.abs);
  } else {
    return shape<T>(load_dword(w, offset, form.vector, half), form);
  }
}

/// Source 0 under DPP: other lanes' values, read before anything is written.
template <class T>
EMU_INLINE T across(Wave* w, const Op* op, const Extra& extra, int half, LaneMask& enabled) {
  if constexpr (std::is_same_v<T, Lanes> || sizeof(T) == 256) {
    return formed<T>(w, op->a, extra.src[0], half);
  } else {
    LaneMask readable = 0;
    const uint64_t exec = w->exec();
    uint32_t values[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int lane = half * kLanes + i, from = extra.from[lane];
      const bool valid = (extra.valid >> lane & 1) && (extra.fetch_inactive || (exec >> from & 1));
      readable |= LaneMask{valid} << i;
      const char* base = reinterpret_cast<const char*>(w) + op->a;
      __builtin_memcpy(&values[i], base + (from >= kLanes ? w->half_bytes : 0) + 4 * (from & 31), 4);
    }
    U32 value;
    __builtin_memcpy(&value, values, sizeof value);
    enabled &= static_cast<LaneMask>(extra.enabled >> (half * kLanes));
    if (extra.bound_zero) {
      value = select(readable, value, splat<U32>(0));
    } else {
      enabled &= readable;
    }
    return shape<T>(value, extra.src[0]);
  }
}

template <class R, bool kPredicate = false>
EMU_INLINE void finish_plain(Wave* w, const Op* op, R result) {
  const LaneMask exec = w->s[kExec];
  if constexpr (std::is_same_v<R, Lanes>) {
    at<uint32_t>(w, op->dst) = result.bits & exec;
  } else if constexpr (requires { result.lanes; }) {
    at<uint32_t>(w, op->dst2) = result.lanes.bits & exec;
    finish_plain(w, op, result.value);
  } else if constexpr (sizeof(R) == 256) {
    store_qword(w, op->dst, exec, bits_as<U64>(result));
  } else {
    store_dword(w, op->dst, exec, bits_as<U32>(result));
  }
}

/// Checked tables: the lanes whose sources are all known.
template <class T>
EMU_INLINE LaneMask source_known(Wave* w, const Op* op, uint32_t offset, bool vector, int half,
                                 LaneMask enabled, bool decides) {
  if constexpr (std::is_same_v<T, Lanes>) {
    read_scalar(w, op, offset + 4 * static_cast<uint32_t>(half), 1);
    return kAllLanes;
  } else {
    constexpr uint32_t kDwords = sizeof(T) == 256 ? 2 : 1;
    if (vector) return read_vector(w, op, offset, kDwords, half, enabled, decides);
    read_scalar(w, op, offset, kDwords);
    return kAllLanes;
  }
}

template <auto F>
EMU_INLINE LaneMask sources_known(Wave* w, const Op* op, int half, LaneMask enabled, bool a, bool b,
                                  bool c) {
  if constexpr (!kChecked) return kAllLanes;
  using S = SignatureOf<F>;
  constexpr bool kDecides = std::is_same_v<typename S::Result, Lanes>;
  LaneMask known = source_known<typename S::template Arg<0>>(w, op, op->a, a, half, enabled, kDecides);
  if constexpr (S::kCount > 1) {
    known &= source_known<typename S::template Arg<1>>(w, op, op->b, b, half, enabled, kDecides);
  }
  if constexpr (S::kCount > 2) {
    known &= source_known<typename S::template Arg<2>>(w, op, op->c, c, half, enabled, kDecides);
  }
  return known;
}

template <class R>
EMU_INLINE void result_known(Wave* w, const Op* op, int half, LaneMask enabled, LaneMask known) {
  if constexpr (!kChecked) return;
  if constexpr (std::is_same_v<R, Lanes>) {
    write_scalar(w, op, op->dst + 4 * static_cast<uint32_t>(half), 1);
  } else if constexpr (requires(R r) { r.lanes; }) {
    write_scalar(w, op, op->dst2 + 4 * static_cast<uint32_t>(half), 1);
    result_known<decltype(R::value)>(w, op, half, enabled, known);
  } else {
    write_vector(w, op, op->dst, sizeof(R) == 256 ? 2 : 1, half, enabled, known);
  }
}

/// The quick form: 32 lanes, no modifiers, 32- and 64-bit values.
template <auto F, bool kA, bool kB, bool kC>
Stop fast(Wave* w, const Op* op) {
  using S = SignatureOf<F>;
  using A = typename S::template Arg<0>;
  const LaneMask active = w->s[kExec];
  const LaneMask known = sources_known<F>(w, op, 0, active, kA, kB, kC);
  if constexpr (S::kCount == 1) {
    finish_plain(w, op, F(plain<A, kA>(w, op->a)));
  } else if constexpr (S::kCount == 2) {
    using B = typename S::template Arg<1>;
    finish_plain(w, op, F(plain<A, kA>(w, op->a), plain<B, kB>(w, op->b)));
  } else {
    using B = typename S::template Arg<1>;
    using C = typename S::template Arg<2>;
    finish_plain(w, op, F(plain<A, kA>(w, op->a), plain<B, kB>(w, op->b), plain<C, kC>(w, op->c)));
  }
  result_known<typename S::Result>(w, op, 0, active, known);
  EMU_NEXT;
}

/// Every form: modifiers, DPP, SDWA, 64 lanes.
template <auto F>
Stop full(Wave* w, const Op* op) {
  using S = SignatureOf<F>;
  using A = typename S::template Arg<0>;
  using R = typename S::Result;
  const Extra& x = *op->extra;
  const int halves = w->lanes == 64 ? 2 : 1;
  R results[2];  // all sources are read before a result is written: DPP may read a register it writes
  LaneMask enabled[2], known[2];
  for (int h = 0; h < halves; ++h) {
    enabled[h] = w->s[kExec + h];
    known[h] = sources_known<F>(w, op, h, enabled[h], x.src[0].vector, x.src[1].vector,
                                x.src[2].vector);
    if (x.cross_lane) known[h] = kAllLanes;  // other lanes' than those that were asked for
    const A a = x.cross_lane ? across<A>(w, op, x, h, enabled[h]) : formed<A>(w, op->a, x.src[0], h);
    if constexpr (S::kCount == 1) {
      results[h] = F(a);
    } else if constexpr (S::kCount == 2) {
      using B = typename S::template Arg<1>;
      results[h] = F(a, formed<B>(w, op->b, x.src[1], h));
    } else {
      using B = typename S::template Arg<1>;
      using C = typename S::template Arg<2>;
      results[h] = F(a, formed<B>(w, op->b, x.src[1], h), formed<C>(w, op->c, x.src[2], h));
    }
  }
  for (int h = 0; h < halves; ++h) {
    if constexpr (requires { results[h].lanes; } || std::is_same_v<R, Lanes>) {
      store_result(w, op, x, h, enabled[h], enabled[h], results[h]);
    } else {
      store_result(w, op, x, h, enabled[h], enabled[h], output_modifiers(results[h], x));
    }
    result_known<R>(w, op, h, enabled[h], known[h]);
  }
  EMU_NEXT;
}

struct VectorRow {
  bool accumulate = false;  // the destination is the last source
};

inline bool needs_full(const Lowering& l, const Inst& inst) {
  if (l.traits.wave64 || inst.form != Form::plain || inst.has("clamp") || inst.has("mul") ||
      inst.has("div")) {
    return true;
  }
  for (const Operand& operand : inst.operands) {
    if (operand.neg || operand.abs || operand.sext || operand.hi) return true;
  }
  return inst.has("op_sel") || inst.has("op_sel_hi") || inst.has("neg_lo") || inst.has("neg_hi");
}

template <class T>
constexpr bool plain_type() {
  if constexpr (std::is_same_v<T, Lanes>) {
    return true;
  } else if constexpr (requires(T t) { t.lanes; }) {
    return plain_type<decltype(T::value)>();
  } else {
    return sizeof(T) == 128 || sizeof(T) == 256 ? !requires { T::low; } && !std::is_same_v<T, Mixed>
                                                : false;
  }
}

template <auto F, int kBits>
constexpr Handler fast_handler() {
  return &fast<F, (kBits & 1) != 0, (kBits & 2) != 0, (kBits & 4) != 0>;
}

/// The quick handler for operands of these kinds.
template <auto F>
Handler pick_fast(unsigned vectors) {
  constexpr int kCount = SignatureOf<F>::kCount;
  static constexpr auto table = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<Handler, sizeof...(I)>{fast_handler<F, I>()...};
  }(std::make_integer_sequence<int, 1 << kCount>());
  return table[vectors];
}

/// kHot: worth a handler for each combination of vector and scalar operands.
template <auto F, bool kAccumulate, bool kHot>
void lower_vector(Lowering& l, const Inst& inst) {
  using S = SignatureOf<F>;
  constexpr int kCount = S::kCount;
  constexpr bool kTwoResults = requires(typename S::Result r) { r.lanes; };
  Inst full_inst = inst;
  if (kAccumulate) full_inst.operands.push_back(inst.operands[0]);
  const auto& operands = full_inst.operands;
  const size_t first = kTwoResults ? 2 : 1;
  if (operands.size() < first + kCount) throw NotImplemented("operands of '" + inst.text + "'");
  Op op;
  op.dst = l.destination(operands[0]);
  if (kTwoResults) op.dst2 = l.destination(operands[1]);
  unsigned vectors = 0;
  const auto place = [&]<int I>(std::integral_constant<int, I>, uint32_t& to) {
    if constexpr (I < kCount) {
      const Operand& operand = operands[first + I];
      to = l.source(operand, value_of<typename S::template Arg<I>>());
      if (operand.kind == Kind::vgpr) vectors |= 1u << I;
    }
  };
  place(std::integral_constant<int, 0>(), op.a);
  place(std::integral_constant<int, 1>(), op.b);
  place(std::integral_constant<int, 2>(), op.c);
  if constexpr (kHot) {
    if (!needs_full(l, inst)) {
      op.fn = pick_fast<F>(vectors);
      l.ops.push_back(op);
      return;
    }
  }
  op.fn = &full<F>;
  op.extra = l.extra(full_inst, first, kCount);
  l.ops.push_back(op);
}

template <auto F>
constexpr Row vop(const char* name) {
  return {name, &lower_vector<F, false, false>};
}
template <auto F>
constexpr Row hot(const char* name) {
  return {name, &lower_vector<F, false, true>};
}
/// The destination is also the last source.
template <auto F>
constexpr Row hot_accumulate(const char* name) {
  return {name, &lower_vector<F, true, true>};
}
template <auto F>
constexpr Row vop_accumulate(const char* name) {
  return {name, &lower_vector<F, true, false>};
}

}  // namespace
}  // namespace emu
