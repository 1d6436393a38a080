// Instructions of gfx12: one counter for each kind of wait, barriers in two parts, and
// minimum and maximum that return NaN.

#include "emu/arch/gfx12/rows.h"

#include "emu/exec/extremes.h"
#include "emu/exec/launch.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

// ---- Waits and barriers.

/// Op::a, Op::b, Op::c, Op::d and Op::imm2: how many loads, operations of LDS, scalar loads, stores
/// and samples may stay outstanding.
Stop wait(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    wait_for_vmem(w, op->a);
    wait_for_lds(w, op->b);
    wait_for_smem(w, op->c);
    wait_for_stores(w, op->d);
    wait_for_samples(w, op->imm2);
  }
  EMU_NEXT;
}

constexpr uint32_t kNotAsked = 1000;

enum class For : uint8_t {
  loads,
  lds,
  scalars,
  stores,
  samples,
  loads_and_lds,
  stores_and_lds,
  all
};

template <For kFor>
void lower_wait(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&wait);
  const auto count = static_cast<uint32_t>(inst.immediate);
  op.a = op.b = op.c = op.d = op.imm2 = kNotAsked;
  if (kFor == For::all) op.a = op.b = op.c = op.d = op.imm2 = 0;
  if (kFor == For::loads) op.a = count;
  if (kFor == For::lds) op.b = count;
  if (kFor == For::scalars) op.c = count;
  if (kFor == For::stores) op.d = count;
  if (kFor == For::samples) op.imm2 = count;
  // These two count loads or stores in their upper field, and operations of LDS in the lower one.
  if (kFor == For::loads_and_lds) op.a = count >> 8 & 63;
  if (kFor == For::stores_and_lds) op.d = count >> 8 & 63;
  if (kFor == For::loads_and_lds || kFor == For::stores_and_lds) op.b = count & 63;
}

Stop barrier(Wave* w, const Op* op) {
  if constexpr (kChecked) check_barrier(w, op);
  w->next = op + 1;
  return Stop::barrier;
}

Stop sleep(Wave* w, const Op* op) {
  w->next = op + 1;
  return Stop::yield;
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

/// Scopes up to a shader engine (SCOPE_SE) only order the waves of a workgroup.
void lower_invalidate(Lowering& l, const Inst& inst) {
  const std::string_view scope = inst.word("scope");
  if (scope.empty() || scope == "SCOPE_CU" || scope == "SCOPE_SE") return l.only_computes();
  l.emit(&invalidate);
}

template <Handler kHandler>
void lower_to(Lowering& l, const Inst&) {
  l.emit(kHandler);
}

/// The barrier of the workgroup has the number -1.
void lower_signal(Lowering& l, const Inst& inst) {
  const Operand& number = inst.operands.at(0);
  if (number.kind != Kind::integer || number.bits != ~uint64_t{0}) {
    throw NotImplemented("a named barrier");
  }
  l.emit(&signal);
}

void lower_barrier(Lowering& l, const Inst& inst) {
  if (static_cast<int16_t>(inst.immediate) != -1) throw NotImplemented("a named barrier");
  l.emit(&barrier);
}

/// Waves wait at the second part of a barrier only, which is later than they must.
void lower_nothing(Lowering& l, const Inst&) { l.only_computes(); }

template <class V>
EMU_INLINE Packed<V> each_minimum(Packed<V> a, Packed<V> b) {
  return {kMinimum<V>(a.low, b.low), kMinimum<V>(a.high, b.high)};
}
template <class V>
EMU_INLINE Packed<V> each_maximum(Packed<V> a, Packed<V> b) {
  return {kMaximum<V>(a.low, b.low), kMaximum<V>(a.high, b.high)};
}

constexpr Row kRows[] = {
    {"s_wait_loadcnt", &lower_wait<For::loads>},
    {"s_wait_dscnt", &lower_wait<For::lds>},
    {"s_wait_kmcnt", &lower_wait<For::scalars>},
    {"s_wait_loadcnt_dscnt", &lower_wait<For::loads_and_lds>},
    {"s_wait_storecnt", &lower_wait<For::stores>},
    {"s_wait_storecnt_dscnt", &lower_wait<For::stores_and_lds>},
    {"s_wait_idle", &lower_wait<For::all>},
    {"s_wait_samplecnt", &lower_wait<For::samples>},
    {"s_wait_bvhcnt", &lower_nothing},
    {"s_wait_expcnt", &lower_nothing},
    {"s_wait_alu", &lower_nothing},
    {"s_barrier_signal", &lower_signal},
    {"s_barrier_wait", &lower_barrier},
    {"global_inv", &lower_invalidate},
    {"global_wb", &lower_nothing},
    {"global_wbinv", &lower_invalidate},
    {"s_prefetch_inst", &lower_nothing},
    {"s_prefetch_inst_pc_rel", &lower_nothing},
    {"s_prefetch_data", &lower_nothing},
    {"s_prefetch_data_pc_rel", &lower_nothing},
    {"s_sleep_var", &lower_to<&sleep>},
    vop<kMinimum<F32>>("v_minimum_f32"),
    vop<kMaximum<F32>>("v_maximum_f32"),
    vop<kMinimum<F64>>("v_minimum_f64"),
    vop<kMaximum<F64>>("v_maximum_f64"),
    vop<kMinimum<F16>>("v_minimum_f16"),
    vop<kMaximum<F16>>("v_maximum_f16"),
    vop<kMinimum3<F32>>("v_minimum3_f32"),
    vop<kMaximum3<F32>>("v_maximum3_f32"),
    vop<kMinimum3<F16>>("v_minimum3_f16"),
    vop<kMaximum3<F16>>("v_maximum3_f16"),
    vop<kMinimumMaximum<F32>>("v_minimummaximum_f32"),
    vop<kMaximumMinimum<F32>>("v_maximumminimum_f32"),
    vop<kMinimumMaximum<F16>>("v_minimummaximum_f16"),
    vop<kMaximumMinimum<F16>>("v_maximumminimum_f16"),
    vop<[](Packed<F16> a, Packed<F16> b) { return each_minimum(a, b); }>("v_pk_minimum_f16"),
    vop<[](Packed<F16> a, Packed<F16> b) { return each_maximum(a, b); }>("v_pk_maximum_f16"),
};

}  // namespace

std::span<const Row> gfx12_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
