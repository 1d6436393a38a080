// Comparisons: v_cmp into a lane mask, v_cmpx into EXEC.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

enum class Is : uint8_t { f, lt, eq, le, gt, lg, ge, o, u, nge, nlg, ngt, nle, neq, nlt, t };

/// Each comparison has its own type, so that v_cmp and v_cmpx share handlers.
template <class V, Is kIs>
struct Compare {
  [[gnu::always_inline]] constexpr Lanes operator()(V a, V b) const {
    if constexpr (kIs == Is::f) return {0};
    if constexpr (kIs == Is::t) return {kAllLanes};
    if constexpr (kIs == Is::lt) return {lane_mask(a < b)};
    if constexpr (kIs == Is::eq) return {lane_mask(a == b)};
    if constexpr (kIs == Is::le) return {lane_mask(a <= b)};
    if constexpr (kIs == Is::gt) return {lane_mask(a > b)};
    if constexpr (kIs == Is::lg) return {lane_mask(a < b) | lane_mask(a > b)};
    if constexpr (kIs == Is::ge) return {lane_mask(a >= b)};
    if constexpr (kIs == Is::o) return {~(lane_mask(a != a) | lane_mask(b != b))};
    if constexpr (kIs == Is::u) return {lane_mask(a != a) | lane_mask(b != b)};
    if constexpr (kIs == Is::nge) return {~lane_mask(a >= b)};
    if constexpr (kIs == Is::nlg) return {~(lane_mask(a < b) | lane_mask(a > b))};
    if constexpr (kIs == Is::ngt) return {~lane_mask(a > b)};
    if constexpr (kIs == Is::nle) return {~lane_mask(a <= b)};
    if constexpr (kIs == Is::neq) return {lane_mask(a != b)};
    if constexpr (kIs == Is::nlt) return {~lane_mask(a < b)};
  }
};

/// The classes are bits of an operand, which has 16 bits for f16 values and 32 bits otherwise.
template <class V>
using Asked = std::conditional_t<std::is_same_v<V, F16>, U16, U32>;

/// Returns whether a value belongs to one of the classes that `asked` names.
template <class V>
EMU_INLINE Lanes is_class(V x, Asked<V> asked) {
  using T = Truth<V>;
  const T nan = bits_as<T>(is_nan(x)), quiet = (bits_as<T>(float_bits(x)) & Layout<V>::kQuiet) != 0;
  const T infinite = is_infinite(x), zero = is_zero(x), denormal = is_denormal(x);
  const T negative = is_negative(x);
  const T normal = ~(nan | infinite | zero | denormal);
  const T kinds[] = {nan & ~quiet,        nan & quiet,          infinite & negative,
                     normal & negative,   denormal & negative,  zero & negative,
                     zero & ~negative,    denormal & ~negative, normal & ~negative,
                     infinite & ~negative};
  LaneMask found = 0;
  for (uint32_t i = 0; i < 10; ++i) {
    using E = Element<Asked<V>>;
    found |= lane_mask(kinds[i]) & lane_mask(asked >> static_cast<E>(i) & static_cast<E>(1));
  }
  return {found};
}

/// Copies EXEC to the destination on architectures whose v_cmpx also names one.
Stop copy_exec(Wave* w, const Op* op) {
  write_scalar(w, op, op->dst, w->lanes / 32);
  at<uint32_t>(w, op->dst) = w->s[kExec];
  if (w->lanes == 64) at<uint32_t>(w, op->dst + 4) = w->s[kExec + 1];
  EMU_NEXT;
}

template <auto F, Heat kHeat>
void lower_cmpx(Lowering& l, const Inst& inst) {
  const Value values[] = {value_of<typename SignatureOf<F>::template Arg<0>>(),
                          value_of<typename SignatureOf<F>::template Arg<1>>()};
  const Placed placed = l.place_vector(inst, {.to_exec = true}, values);
  l.ops.back().fn = &full<F>;
  if constexpr (kHeat != Heat::rare) {
    if (placed.form >= PlacedForm::quick) l.ops.back().fn = &quick<F>;
  }
  if (inst.operands.size() > 2) l.emit(&copy_exec).dst = l.destination(inst.operands[0]);
}

template <auto F, Heat kHeat>
constexpr Row cmp(const char* name) {
  return {name, &lower_vector<F, false, kHeat>};
}
template <auto F, Heat kHeat>
constexpr Row cmpx(const char* name) {
  return {name, &lower_cmpx<F, kHeat>};
}

#define EMU_COMPARE(type, V, relation, is, heat)                                      \
  cmp<Compare<V, Is::is>{}, Heat::heat>("v_cmp_" relation "_" type),                  \
      cmpx<Compare<V, Is::is>{}, Heat::heat == Heat::rare ? Heat::rare : Heat::warm>( \
          "v_cmpx_" relation "_" type)

#define EMU_COMPARE_INTEGER(type, V, heat)                                         \
  EMU_COMPARE(type, V, "lt", lt, heat), EMU_COMPARE(type, V, "eq", eq, heat),      \
      EMU_COMPARE(type, V, "le", le, heat), EMU_COMPARE(type, V, "gt", gt, heat),  \
      EMU_COMPARE(type, V, "ne", neq, heat), EMU_COMPARE(type, V, "ge", ge, heat), \
      EMU_COMPARE(type, V, "f", f, rare), EMU_COMPARE(type, V, "t", t, rare)

#define EMU_COMPARE_FLOAT(type, V, heat, colder)                                          \
  EMU_COMPARE(type, V, "lt", lt, heat), EMU_COMPARE(type, V, "eq", eq, heat),             \
      EMU_COMPARE(type, V, "le", le, heat), EMU_COMPARE(type, V, "gt", gt, heat),         \
      EMU_COMPARE(type, V, "lg", lg, colder), EMU_COMPARE(type, V, "ge", ge, heat),       \
      EMU_COMPARE(type, V, "o", o, colder), EMU_COMPARE(type, V, "u", u, colder),         \
      EMU_COMPARE(type, V, "nge", nge, colder), EMU_COMPARE(type, V, "nlg", nlg, colder), \
      EMU_COMPARE(type, V, "ngt", ngt, colder), EMU_COMPARE(type, V, "nle", nle, colder), \
      EMU_COMPARE(type, V, "neq", neq, colder), EMU_COMPARE(type, V, "nlt", nlt, colder), \
      EMU_COMPARE(type, V, "f", f, rare), EMU_COMPARE(type, V, "t", t, rare),             \
      EMU_COMPARE(type, V, "tru", t, rare)

template <class V>
inline constexpr auto kClass = [](V x, Asked<V> asked) { return is_class(x, asked); };

constexpr Row kRows[] = {
    EMU_COMPARE_INTEGER("i32", I32, hot),
    EMU_COMPARE_INTEGER("u32", U32, hot),
    EMU_COMPARE_INTEGER("i64", I64, warm),
    EMU_COMPARE_INTEGER("u64", U64, warm),
    EMU_COMPARE_INTEGER("i16", I16, warm),
    EMU_COMPARE_INTEGER("u16", U16, warm),
    EMU_COMPARE_FLOAT("f32", F32, hot, warm),
    EMU_COMPARE_FLOAT("f64", F64, warm, rare),
    EMU_COMPARE_FLOAT("f16", F16, warm, rare),
    cmp<kClass<F32>, Heat::warm>("v_cmp_class_f32"),
    cmp<kClass<F64>, Heat::rare>("v_cmp_class_f64"),
    cmp<kClass<F16>, Heat::rare>("v_cmp_class_f16"),
    cmpx<kClass<F32>, Heat::rare>("v_cmpx_class_f32"),
    cmpx<kClass<F64>, Heat::rare>("v_cmpx_class_f64"),
    cmpx<kClass<F16>, Heat::rare>("v_cmpx_class_f16"),
};

}  // namespace

std::span<const Row> compare_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
