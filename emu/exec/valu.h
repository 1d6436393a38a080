#pragma once

// Builds vector instructions from functions of lanes. A table's row is a name and a lambda whose
// parameter and result types determine how operands are read and written. Each row has a handler
// for every form; frequent instructions have faster handlers as well.

#include <array>

#include "emu/exec/lowering.h"
#include "emu/exec/numbers.h"
#include "emu/exec/operands.h"
#include "emu/exec/track.h"

namespace emu {
namespace {

using EMU_VARIANT::Shape;

template <class T>
inline constexpr bool kIsPacked = requires {
  T::low;
};
template <class T>
inline constexpr bool kIsLanes = std::is_same_v<T, Lanes>;
template <class T>
inline constexpr bool kIsWide = sizeof(T) == 256 && !kIsPacked<T>;

template <class T>
constexpr Value value_of() {
  if constexpr (std::is_same_v<T, F32> || std::is_same_v<T, Mixed>) {
    return Value::f32;
  } else if constexpr (kIsLanes<T>) {
    return Value::b64;
  } else if constexpr (kIsPacked<T>) {
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

/// Returns whether MODE's fields for 16- and 64-bit floats apply to values of type T.
template <class T>
constexpr bool is_other_float() {
  if constexpr (kIsLanes<T>) {
    return false;
  } else if constexpr (requires(T t) { t.lanes; }) {
    return is_other_float<decltype(T::value)>();
  } else {
    return std::is_same_v<T, F16> || std::is_same_v<T, F64> || std::is_same_v<T, Packed<F16>>;
  }
}

template <auto F>
constexpr bool has_other_float() {
  using S = SignatureOf<F>;
  return []<int... I>(std::integer_sequence<int, I...>) {
    return (is_other_float<typename S::Result>() || ... ||
            is_other_float<typename S::template Arg<I>>());
  }
  (std::make_integer_sequence<int, S::kCount>());
}

// ---- Checked tables: which lanes of the sources, and hence of the result, are known.

template <class T>
EMU_INLINE LaneMask source_known(Wave* w, const Op* op, uint32_t offset, bool vector, int half,
                                 LaneMask enabled, bool decides) {
  if constexpr (kIsLanes<T>) {
    return known_bits(w, op, offset + 4 * static_cast<uint32_t>(half));
  } else {
    constexpr uint32_t kDwords = kIsWide<T> ? 2 : 1;
    if (vector) return read_vector(w, op, offset, kDwords, half, enabled, decides);
    if (!decides) return pass_scalar(w, op, offset, kDwords) ? kAllLanes : 0;
    read_scalar(w, op, offset, kDwords);
    return kAllLanes;
  }
}

/// The known lanes of a result, and of its lower dword alone. The lower dword of a 64-bit integer
/// is assumed to depend on its sources' lower dwords only: compilers leave upper dwords that don't
/// matter uninitialized.
struct Known {
  LaneMask all = kAllLanes, low = kAllLanes;
};

/// Bit I of `vectors` says that argument I is in vector registers.
template <auto F>
EMU_INLINE Known sources_known(Wave* w, const Op* op, unsigned vectors, int half) {
  if constexpr (!kChecked) return {};
  using S = SignatureOf<F>;
  const LaneMask enabled = w->s[kExec + half];
  const uint32_t from[] = {op->a, op->b, op->c};
  // The lanes of a mask may be unknown one by one, but EXEC must be known.
  const bool decides =
      kIsLanes<typename S::Result> && is_sgpr(op->dst) && op->dst >= sgpr_offset(kExec);
  Known known;
  const auto use = [&]<class T>(std::type_identity<T>, uint32_t offset, bool vector)
      __attribute__((always_inline)) {
    const LaneMask lanes = source_known<T>(w, op, offset, vector, half, enabled, decides);
    known.all &= lanes;
    known.low &= kIsWide<T> && vector ? w->track->known[half][vgpr_of(offset)] : lanes;
  };
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (use(std::type_identity<typename S::template Arg<I>>(), from[I], (vectors >> I & 1) != 0), ...);
  }
  (std::make_integer_sequence<int, S::kCount>());
  return known;
}

EMU_INLINE unsigned vector_sources(const Extra& extra) {
  return unsigned{extra.src[0].vector} | unsigned{extra.src[1].vector} << 1 |
         unsigned{extra.src[2].vector} << 2;
}

template <class R>
EMU_INLINE void result_known(Wave* w, const Op* op, int half, const Known& known) {
  if constexpr (!kChecked) return;
  if constexpr (kIsLanes<R>) {
    const uint32_t to = op->dst + 4 * static_cast<uint32_t>(half);
    // Disabled lanes give zeros.
    const bool to_exec = is_sgpr(op->dst) && op->dst >= sgpr_offset(kExec);
    write_bits(w, to, to_exec ? kAllLanes : known.all | ~w->s[kExec + half]);
  } else if constexpr (requires(R r) { r.lanes; }) {
    write_bits(w, op->dst2 + 4 * static_cast<uint32_t>(half), known.all | ~w->s[kExec + half]);
    result_known<decltype(R::value)>(w, op, half, known);
  } else {
    write_vector(w, op, op->dst, kIsWide<R> ? 2 : 1, half, w->s[kExec + half], known.all);
    if constexpr (kIsWide<R> && !kIsFloat<R>) {
      write_vector(w, op, op->dst, 1, half, w->s[kExec + half], known.low);
    }
  }
}

/// For handlers that aren't built from functions: records that every half reads `registers`
/// registers of a scalar or vector source.
EMU_INLINE void note_read(Wave* w, const Op* op, uint32_t offset, bool vector, uint32_t registers) {
  if constexpr (kChecked) {
    if (!vector) return read_scalar(w, op, offset, registers);
    for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
      read_vector(w, op, offset, registers, h, w->s[kExec + h]);
    }
  }
}
/// Records that every half writes `registers` registers; their enabled lanes are known afterwards.
EMU_INLINE void note_write(Wave* w, const Op* op, uint32_t offset, uint32_t registers) {
  if constexpr (kChecked) {
    for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
      write_vector(w, op, offset, registers, h, w->s[kExec + h], kAllLanes);
    }
  }
}

// ---- The full form: modifiers, DPP, SDWA, 64 lanes, a non-default MODE.

/// Reads argument `index` with all its modifiers.
template <class T>
EMU_INLINE T argument(Wave* w, const Op* op, int index, int half) {
  if constexpr (kIsLanes<T>) {
    const uint32_t offset = index == 1 ? op->b : index == 2 ? op->c : op->a;
    return {at<uint32_t>(w, offset + 4 * static_cast<uint32_t>(half))};
  } else if constexpr (kIsWide<T>) {
    U64 bits;
    EMU_VARIANT::fetch_wide(w, op, index, half, bits);
    const SourceForm& form = op->extra->src[index];
    return apply_signs(bits_as<T>(bits), form.neg, form.abs);
  } else {
    U32 bits;
    EMU_VARIANT::fetch(w, op, index, half, bits);
    return shape<T>(bits, op->extra->src[index]);
  }
}

template <class R>
EMU_INLINE void finish(Wave* w, const Op* op, int half, LaneMask enabled, const R& result) {
  if constexpr (kIsLanes<R>) {
    at<uint32_t>(w, op->dst + 4 * static_cast<uint32_t>(half)) = result.bits & enabled;
  } else if constexpr (requires { result.lanes; }) {
    at<uint32_t>(w, op->dst2 + 4 * static_cast<uint32_t>(half)) = result.lanes.bits & enabled;
    finish(w, op, half, enabled, result.value);
  } else if constexpr (kIsPacked<R>) {
    const U32 bits =
        convert<U32>(bits_as<U16>(result.low)) | convert<U32>(bits_as<U16>(result.high)) << 16;
    constexpr bool kFloat = std::is_same_v<R, Packed<F16>>;
    EMU_VARIANT::put(w, op, half, enabled, bits, kFloat ? Shape::packed_f16 : Shape::packed);
  } else if constexpr (kIsWide<R>) {
    EMU_VARIANT::put_wide(w, op, half, enabled, bits_as<U64>(result), std::is_same_v<R, F64>);
  } else if constexpr (sizeof(Element<R>) == 2) {
    constexpr Shape kShape = std::is_same_v<R, F16> ? Shape::f16 : Shape::word;
    EMU_VARIANT::put(w, op, half, enabled, convert<U32>(bits_as<U16>(result)), kShape);
  } else {
    constexpr Shape kShape = std::is_same_v<R, F32> ? Shape::f32 : Shape::dword;
    EMU_VARIANT::put(w, op, half, enabled, bits_as<U32>(result), kShape);
  }
}

/// Calls F with the arguments that `get(type, index)` returns.
template <auto F, class Get>
EMU_INLINE auto call_with(const Get& get) {
  using S = SignatureOf<F>;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return F(get(std::type_identity<typename S::template Arg<I>>(),
                 std::integral_constant<int, I>())...);
  }
  (std::make_integer_sequence<int, S::kCount>());
}

template <class T>
EMU_INLINE T flushed(T value) {
  if constexpr (std::is_same_v<T, F16>) {
    EMU_VARIANT::flush_denormals(value);
  } else if constexpr (std::is_same_v<T, Packed<F16>>) {
    EMU_VARIANT::flush_denormals(value.low);
    EMU_VARIANT::flush_denormals(value.high);
  }
  return value;
}

template <auto F>
Stop full(Wave* w, const Op* op) {
  using R = typename SignatureOf<F>::Result;
  constexpr bool kOther = has_other_float<F>();
  const bool own_mode = kOther && unusual_mode(w);
  const bool flush = own_mode && (w->mode >> 6 & 3) != 3;
  if (own_mode) set_host_mode(host_mode_64(w->mode));
  const int halves = w->lanes == 64 ? 2 : 1;
  // All sources are read before a result is written, because DPP may read a register that it
  // writes.
  R results[2];
  LaneMask enabled[2];
  Known known[2];
#pragma clang loop unroll(disable)
  for (int h = 0; h < halves; ++h) {
    enabled[h] = w->s[kExec + h];
    known[h] = sources_known<F>(w, op, vector_sources(*op->extra), h);
    if (op->extra->cross_lane) known[h] = {};  // the source lanes aren't the ones that were checked
    if (op->extra->cross_lane) enabled[h] &= EMU_VARIANT::dpp_enabled(w, op, h);
    results[h] =
        call_with<F>([&]<class T, int I>(std::type_identity<T>, std::integral_constant<int, I>) {
          const T value = argument<T>(w, op, I, h);
          if constexpr (kOther) return flush ? flushed(value) : value;
          return value;
        });
  }
#pragma clang loop unroll(disable)
  for (int h = 0; h < halves; ++h) {
    if constexpr (kOther) {
      if (flush) results[h] = flushed(results[h]);
    }
    finish(w, op, h, enabled[h], results[h]);
    result_known<R>(w, op, h, known[h]);
  }
  if (own_mode) set_host_mode(host_mode_32(w->mode));
  EMU_NEXT;
}

// ---- The faster forms.

/// Reads an argument of type T without modifiers, from a vector register if kVector.
template <class T, bool kVector>
EMU_INLINE T plain(Wave* w, uint32_t offset, int half) {
  if constexpr (kIsLanes<T>) {
    return {at<uint32_t>(w, offset + 4 * static_cast<uint32_t>(half))};
  } else if constexpr (kIsWide<T>) {
    return bits_as<T>(load_qword(w, offset, kVector, half));
  } else if constexpr (kIsPacked<T>) {
    return shape<T>(load_dword(w, offset, kVector, half), SourceForm{.hi_hi = true});
  } else if constexpr (sizeof(Element<T>) == 2) {
    return bits_as<T>(convert<U16>(load_dword(w, offset, kVector, half)));
  } else {
    return bits_as<T>(load_dword(w, offset, kVector, half));
  }
}

/// Reads an argument with sign modifiers and register halves, but from the same lane.
template <class T>
EMU_INLINE T near(Wave* w, uint32_t offset, const SourceForm& form, int half) {
  if constexpr (kIsLanes<T>) {
    return {at<uint32_t>(w, offset + 4 * static_cast<uint32_t>(half))};
  } else if constexpr (kIsWide<T>) {
    return apply_signs(bits_as<T>(load_qword(w, offset, form.vector, half)), form.neg, form.abs);
  } else {
    return shape<T>(load_dword(w, offset, form.vector, half), form);
  }
}

template <class R>
EMU_INLINE void finish_plain(Wave* w, const Op* op, int half, R result) {
  const LaneMask exec = w->s[kExec + half];
  const uint32_t to = op->dst + static_cast<uint32_t>(half) * w->half_bytes;
  if constexpr (kIsLanes<R>) {
    at<uint32_t>(w, op->dst + 4 * static_cast<uint32_t>(half)) = result.bits & exec;
  } else if constexpr (requires { result.lanes; }) {
    at<uint32_t>(w, op->dst2 + 4 * static_cast<uint32_t>(half)) = result.lanes.bits & exec;
    finish_plain(w, op, half, result.value);
  } else if constexpr (kIsWide<R>) {
    store_qword(w, to, exec, bits_as<U64>(result));
  } else if constexpr (kIsPacked<R>) {
    store_dword(w, to, exec,
                convert<U32>(bits_as<U16>(result.low)) | convert<U32>(bits_as<U16>(result.high))
                                                             << 16);
  } else if constexpr (sizeof(Element<R>) == 2) {
    const U32 old = at<U32>(w, to);
    store_dword(w, to, exec, (old & 0xffff0000) | convert<U32>(bits_as<U16>(result)));
  } else {
    store_dword(w, to, exec, bits_as<U32>(result));
  }
}

/// The fastest form: kHalves times 32 lanes, no modifiers.
template <auto F, unsigned kVectors, int kHalves>
Stop fast(Wave* w, const Op* op) {
  if constexpr (has_other_float<F>()) {
    if (unusual_mode(w)) [[unlikely]] {
      [[clang::musttail]] return full<F>(w, op);
    }
  }
  using R = typename SignatureOf<F>::Result;
  const uint32_t from[] = {op->a, op->b, op->c};
  const auto compute = [&](int half) __attribute__((always_inline)) {
    result_known<R>(w, op, half, sources_known<F>(w, op, kVectors, half));
    return call_with<F>([&]<class T, int I>(std::type_identity<T>, std::integral_constant<int, I>) {
      return plain<T, (kVectors >> I & 1) != 0>(w, from[I], half);
    });
  };
  if constexpr (kHalves == 1) {
    finish_plain(w, op, 0, compute(0));
  } else if constexpr (kIsLanes<R> || requires(R r) { r.lanes; }) {
    // The scalar destination may also be a source of the second half.
    const R low = compute(0), high = compute(1);
    finish_plain(w, op, 0, low);
    finish_plain(w, op, 1, high);
  } else {
    finish_plain(w, op, 0, compute(0));
    finish_plain(w, op, 1, compute(1));
  }
  EMU_NEXT;
}

/// Handles both wave sizes and sign modifiers, but no DPP, SDWA or output modifiers.
template <auto F>
Stop quick(Wave* w, const Op* op) {
  if constexpr (has_other_float<F>()) {
    if (unusual_mode(w)) [[unlikely]] {
      [[clang::musttail]] return full<F>(w, op);
    }
  }
  using R = typename SignatureOf<F>::Result;
  const Extra& x = *op->extra;
  const uint32_t from[] = {op->a, op->b, op->c};
  const auto half = [&](int h) {
    return call_with<F>([&]<class T, int I>(std::type_identity<T>, std::integral_constant<int, I>) {
      return near<T>(w, from[I], x.src[I], h);
    });
  };
  if constexpr (kIsLanes<R> || requires(R r) { r.lanes; }) {
    // The scalar destination may also be a source of the second half.
    R results[2];
    const int halves = w->lanes == 64 ? 2 : 1;
#pragma clang loop unroll(disable)
    for (int h = 0; h < halves; ++h) {
      result_known<R>(w, op, h, sources_known<F>(w, op, vector_sources(x), h));
      results[h] = half(h);
    }
#pragma clang loop unroll(disable)
    for (int h = 0; h < halves; ++h) finish_plain(w, op, h, results[h]);
  } else {
    int h = 0;
#pragma clang loop unroll(disable)
    do {
      result_known<R>(w, op, h, sources_known<F>(w, op, vector_sources(x), h));
      finish_plain(w, op, h, half(h));
    } while (++h * kLanes < static_cast<int>(w->lanes));
  }
  EMU_NEXT;
}

// ---- Rows.

/// Which handlers a row has: `rare` only the full one, `warm` also the quick one, `hot` also a fast
/// one for each combination of vector and scalar operands.
enum class Heat : uint8_t { rare, warm, hot };

template <auto F>
Handler pick_fast(unsigned vectors, bool wave64) {
  constexpr int kCount = SignatureOf<F>::kCount;
  static constexpr auto table = []<unsigned... I>(std::integer_sequence<unsigned, I...>) {
    return std::array<Handler, 2 * sizeof...(I)>{&fast<F, I, 1>..., &fast<F, I, 2>...};
  }
  (std::make_integer_sequence<unsigned, 1u << kCount>());
  return table[vectors + (wave64 ? 1u << kCount : 0)];
}

template <class T>
constexpr bool is_word() {
  if constexpr (kIsLanes<T> || kIsPacked<T> || requires(T t) { t.lanes; })
    return false;
  else
    return sizeof(Element<T>) == 2;
}

/// Returns whether a result's upper dword may be unknown while the lower one is known.
template <class R>
constexpr bool has_upper() {
  if constexpr (requires(R r) { r.lanes; }) return has_upper<decltype(R::value)>();
  return kIsWide<R> && !kIsFloat<R>;
}

/// Records what the placed operation reads and writes, unless it reads other lanes or changes EXEC.
template <auto F>
void note_computation(Lowering& l, const Op& op) {
  using S = SignatureOf<F>;
  using R = typename S::Result;
  using enum Access::Kind;
  if (op.extra->cross_lane || (is_sgpr(op.dst) && op.dst >= sgpr_offset(kExec))) return;
  const auto lanes = static_cast<uint32_t>(l.halves());  // dwords of a lane mask
  const auto note_source = [&]<class T>(std::type_identity<T>, uint32_t offset) {
    if constexpr (kIsLanes<T>) {
      l.access(offset, lanes, read);
    } else if (kIsWide<T> && has_upper<R>() && is_vgpr(offset)) {
      l.access(offset, 1, read);
      l.access(offset + 128, 1, read_upper);
    } else {
      l.access(offset, kIsWide<T> ? 2 : 1, read);
    }
  };
  const uint32_t from[] = {op.a, op.b, op.c};
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (note_source(std::type_identity<typename S::template Arg<I>>(), from[I]), ...);
  }
  (std::make_integer_sequence<int, S::kCount>());
  if constexpr (requires(R r) { r.lanes; }) l.access(op.dst2, lanes, write);
  if constexpr (has_upper<R>()) {
    l.access(op.dst, 1, write);
    l.access(op.dst + 128, 1, write_upper);
  } else if constexpr (requires(R r) { r.lanes; }) {
    l.access(op.dst, kIsWide<decltype(R::value)> ? 2 : 1, write);
  } else {
    l.access(op.dst, kIsLanes<R> ? lanes : kIsWide<R> ? 2 : 1, write);
  }
  l.only_computes();
}

/// kAccumulate: the destination is also the last source.
template <auto F, bool kAccumulate, Heat kHeat>
void lower_vector(Lowering& l, const Inst& inst) {
  using S = SignatureOf<F>;
  using R = typename S::Result;
  constexpr int kCount = S::kCount;
  static_assert(kCount >= 1 && kCount <= 3);
  constexpr bool kTwoResults = requires(R r) { r.lanes; };
  Value values[kCount];
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((values[I] = value_of<typename S::template Arg<I>>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
  const Placed placed =
      l.place_vector(inst, {.results = kTwoResults ? 2u : 1u, .accumulate = kAccumulate}, values);
  Op& op = l.ops.back();
  op.fn = &full<F>;
  note_computation<F>(l, op);
  if constexpr (kHeat == Heat::rare) return;
  if (is_word<R>() && !l.traits.keep_high) return;
  if constexpr (kHeat != Heat::rare) {
    if (placed.form >= PlacedForm::quick) op.fn = &quick<F>;
  }
  if constexpr (kHeat == Heat::hot) {
    if (placed.form == PlacedForm::plain) op.fn = pick_fast<F>(placed.vectors, l.traits.wave64);
  }
}

template <auto F>
constexpr Row vop(const char* name) {
  return {name, &lower_vector<F, false, Heat::rare>};
}
template <auto F>
constexpr Row warm(const char* name) {
  return {name, &lower_vector<F, false, Heat::warm>};
}
template <auto F>
constexpr Row hot(const char* name) {
  return {name, &lower_vector<F, false, Heat::hot>};
}
/// A row whose destination is also the last source.
template <auto F>
constexpr Row hot_accumulate(const char* name) {
  return {name, &lower_vector<F, true, Heat::hot>};
}
template <auto F>
constexpr Row warm_accumulate(const char* name) {
  return {name, &lower_vector<F, true, Heat::warm>};
}
template <auto F>
constexpr Row vop_accumulate(const char* name) {
  return {name, &lower_vector<F, true, Heat::rare>};
}

/// Lowers 16-bit results that preserve the other half of their register on every architecture.
/// kHigh: the result goes to the upper half.
template <auto F, bool kAccumulate, bool kHigh>
void lower_keeping(Lowering& l, const Inst& inst) {
  lower_vector<F, kAccumulate, Heat::rare>(l, inst);
  Extra& extra = l.extras.back();
  extra.keep_high = true;
  if (kHigh) extra.dst_hi = true;
}
template <auto F>
constexpr Row keeping(const char* name) {
  return {name, &lower_keeping<F, false, false>};
}

/// Handler of an instruction that depends on MODE's IEEE bit. It runs `kUsual` if the bit is set,
/// as compilers set it, and otherwise G in the full form.
template <Handler kUsual, auto G>
Stop by_ieee(Wave* w, const Op* op) {
  if ((w->mode & kIeeeMode) == 0) [[unlikely]] {
    [[clang::musttail]] return full<G>(w, op);
  }
  [[clang::musttail]] return kUsual(w, op);
}

/// Lowers to `F` with the IEEE bit and to `G` without it.
template <auto F, auto G, Heat kHeat>
void lower_by_ieee(Lowering& l, const Inst& inst) {
  lower_vector<F, false, kHeat>(l, inst);
  Handler& fn = l.ops.back().fn;
  const auto replace = [&fn]<Handler kUsual>() {
    if (fn != kUsual) return false;
    fn = &by_ieee<kUsual, G>;
    return true;
  };
  if (replace.template operator()<&full<F>>()) return;
  if constexpr (kHeat != Heat::rare) {
    if (replace.template operator()<&quick<F>>()) return;
  }
  if constexpr (kHeat == Heat::hot) {
    [&]<unsigned... I>(std::integer_sequence<unsigned, I...>) {
      ((replace.template operator()<&fast<F, I, 1>>() ||
        replace.template operator()<&fast<F, I, 2>>()) ||
       ...);
    }
    (std::make_integer_sequence<unsigned, 1u << SignatureOf<F>::kCount>());
  }
}
template <auto F, auto G, Heat kHeat = Heat::rare>
constexpr Row ieee(const char* name) {
  return {name, &lower_by_ieee<F, G, kHeat>};
}
/// Makes both functions from one expression, in which N is the FloatOrder.
#define EMU_BY_IEEE(parameters, expression) \
  [] parameters {                           \
    using N = FloatOrder<true>;             \
    return expression;                      \
  },                                        \
      [] parameters {                       \
        using N = FloatOrder<false>;        \
        return expression;                  \
      }

/// With the modifier `clamp`, integer results saturate: `G` is F with saturation.
template <auto F, auto G, Heat kHeat>
void lower_saturating(Lowering& l, const Inst& inst) {
  if (inst.has("clamp")) {
    lower_vector<G, false, Heat::rare>(l, inst);
  } else {
    lower_vector<F, false, kHeat>(l, inst);
  }
}
template <auto F, auto G>
constexpr Row hot_saturating(const char* name) {
  return {name, &lower_saturating<F, G, Heat::hot>};
}
template <auto F, auto G>
constexpr Row saturating(const char* name) {
  return {name, &lower_saturating<F, G, Heat::rare>};
}

}  // namespace
}  // namespace emu
