// Instructions of gfx12: one counter for each kind of wait, barriers in two parts, scalar floats,
// and minimum and maximum that return NaN.

#include "emu/arch/gfx12/rows.h"

#include <cmath>

#include "emu/exec/launch.h"
#include "emu/exec/salu.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

// ---- Waits and barriers.

/// Op::a, Op::b, Op::c and Op::d: how many loads, operations of LDS, scalar loads and stores may
/// stay outstanding.
/// The checks number the operations of LDS and the scalar loads together. If both are outstanding,
/// a wait that leaves some operations of LDS may therefore count as one for more of them: the
/// checks may miss a missing wait, and never report one that is there.
Stop wait(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    wait_for_vmem(w, op->a);
    wait_for_lds(w, op->b);
    wait_for_smem(w, op->c);
    wait_for_stores(w, op->d);
  }
  EMU_NEXT;
}

constexpr uint32_t kNotAsked = 1000;

enum class For : uint8_t { loads, lds, scalars, stores, loads_and_lds, stores_and_lds, all };

template <For kFor>
void lower_wait(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&wait);
  const auto count = static_cast<uint32_t>(inst.immediate);
  op.a = op.b = op.c = op.d = kNotAsked;
  if (kFor == For::all) op.a = op.b = op.c = op.d = 0;
  if (kFor == For::loads) op.a = count;
  if (kFor == For::lds) op.b = count;
  if (kFor == For::scalars) op.c = count;
  if (kFor == For::stores) op.d = count;
  // The upper field of the other two is for loads or stores.
  if (kFor == For::loads_and_lds) op.a = count >> 8 & 63;
  if (kFor == For::stores_and_lds) op.d = count >> 8 & 63;
  if (kFor == For::loads_and_lds || kFor == For::stores_and_lds) op.b = count & 63;
}

Stop barrier(Wave* w, const Op* op) {
  if constexpr (kChecked) check_barrier(w, op);
  w->next = op + 1;
  return Stop::barrier;
}

/// The first part of a barrier: what the wave does later isn't ordered by the barrier.
Stop signal(Wave* w, const Op* op) {
  if constexpr (kChecked) arrive(w);
  EMU_NEXT;
}

Stop invalidate(Wave* w, const Op* op) {
  if constexpr (kChecked) w->group->synchronised = true;
  EMU_NEXT;
}

/// Within the scope of a shader engine, which is the smallest that is written, only the waves of a
/// workgroup are ordered.
void lower_invalidate(Lowering& l, const Inst& inst) {
  const std::string_view scope = inst.word("scope");
  if (scope.empty() || scope == "SCOPE_CU" || scope == "SCOPE_SE") return l.only_computes();
  l.emit(&invalidate);
}

template <Handler kHandler>
void lower_to(Lowering& l, const Inst&) {
  l.emit(kHandler);
}

/// Waves wait at the second part of a barrier only, which is later than they must.
void lower_nothing(Lowering& l, const Inst&) { l.only_computes(); }

// ---- Scalar floats, which round as MODE says.

using u32 = uint32_t;
using i32 = int32_t;

float real(u32 bits) { return std::bit_cast<float>(bits); }
u32 bits(float value) { return std::bit_cast<u32>(value); }

constexpr auto kMultiplyAdd = [](u32 a, u32 b, u32 c) {
  return bits(std::fma(real(a), real(b), real(c)));
};

template <class T>
T saturated(float x) {
  if (!(x == x)) return 0;
  if (x <= static_cast<float>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<float>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

#define EMU_COMPARE_REAL(name, condition) \
  sop<[](u32 x, u32 y, u32& scc) {        \
    const float a = real(x), b = real(y); \
    scc = condition;                      \
  }>("s_cmp_" name "_f32")

// ---- Minimum and maximum that return NaN if a source is NaN, and order -0 below +0.

template <class V>
EMU_INLINE V either_nan(V a, V b, V otherwise) {
  return is_nan(a) ? quieted(a) : is_nan(b) ? quieted(b) : otherwise;
}
template <class V>
inline constexpr auto kMinimum =
    [](V a, V b) { return either_nan(a, b, FloatOrder<false>::least(a, b)); };
template <class V>
inline constexpr auto kMaximum =
    [](V a, V b) { return either_nan(a, b, FloatOrder<false>::most(a, b)); };
template <class V>
inline constexpr auto kMinimum3 = [](V a, V b, V c) { return kMinimum<V>(kMinimum<V>(a, b), c); };
template <class V>
inline constexpr auto kMaximum3 = [](V a, V b, V c) { return kMaximum<V>(kMaximum<V>(a, b), c); };

constexpr Row kRows[] = {
    {"s_wait_loadcnt", &lower_wait<For::loads>},
    {"s_wait_dscnt", &lower_wait<For::lds>},
    {"s_wait_kmcnt", &lower_wait<For::scalars>},
    {"s_wait_loadcnt_dscnt", &lower_wait<For::loads_and_lds>},
    {"s_wait_storecnt", &lower_wait<For::stores>},
    {"s_wait_storecnt_dscnt", &lower_wait<For::stores_and_lds>},
    {"s_wait_idle", &lower_wait<For::all>},
    {"s_wait_samplecnt", &lower_nothing},
    {"s_wait_bvhcnt", &lower_nothing},
    {"s_wait_expcnt", &lower_nothing},
    {"s_wait_alu", &lower_nothing},
    {"s_barrier_signal", &lower_to<&signal>},
    {"s_barrier_wait", &lower_to<&barrier>},
    {"global_inv", &lower_invalidate},
    {"global_wb", &lower_nothing},
    {"global_wbinv", &lower_invalidate},
    {"s_prefetch_inst", &lower_nothing},
    {"s_prefetch_inst_pc_rel", &lower_nothing},
    {"s_prefetch_data", &lower_nothing},
    sop<[](u32 a, u32 b) { return bits(real(a) + real(b)); }>("s_add_f32"),
    sop<[](u32 a, u32 b) { return bits(real(a) - real(b)); }>("s_sub_f32"),
    sop<[](u32 a, u32 b) { return bits(real(a) * real(b)); }>("s_mul_f32"),
    sop_accumulate<kMultiplyAdd>("s_fmac_f32"),
    sop<kMultiplyAdd>("s_fmaak_f32"),
    sop<kMultiplyAdd>("s_fmamk_f32"),
    sop<[](i32 a) { return bits(static_cast<float>(a)); }>("s_cvt_f32_i32"),
    sop<[](u32 a) { return bits(static_cast<float>(a)); }>("s_cvt_f32_u32"),
    sop<[](u32 a) { return saturated<i32>(real(a)); }>("s_cvt_i32_f32"),
    sop<[](u32 a) { return saturated<u32>(real(a)); }>("s_cvt_u32_f32"),
    sop<[](u32 a) { return bits(std::floor(real(a))); }>("s_floor_f32"),
    sop<[](u32 a) { return bits(std::ceil(real(a))); }>("s_ceil_f32"),
    sop<[](u32 a) { return bits(std::trunc(real(a))); }>("s_trunc_f32"),
    EMU_COMPARE_REAL("lt", a < b),
    EMU_COMPARE_REAL("eq", a == b),
    EMU_COMPARE_REAL("le", a <= b),
    EMU_COMPARE_REAL("gt", a > b),
    EMU_COMPARE_REAL("lg", a<b || a> b),
    EMU_COMPARE_REAL("ge", a >= b),
    EMU_COMPARE_REAL("neq", !(a == b)),
    EMU_COMPARE_REAL("nlt", !(a < b)),
    EMU_COMPARE_REAL("ngt", !(a > b)),
    vop<kMinimum<F32>>("v_minimum_f32"),
    vop<kMaximum<F32>>("v_maximum_f32"),
    vop<kMinimum<F64>>("v_minimum_f64"),
    vop<kMaximum<F64>>("v_maximum_f64"),
    vop<kMinimum<F16>>("v_minimum_f16"),
    vop<kMaximum<F16>>("v_maximum_f16"),
    vop<kMinimum3<F32>>("v_minimum3_f32"),
    vop<kMaximum3<F32>>("v_maximum3_f32"),
};

}  // namespace

std::span<const Row> gfx12_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
