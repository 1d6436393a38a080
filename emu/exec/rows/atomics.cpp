// Atomic operations on global and flat memory.

#include "emu/exec/atomics.h"

#include "emu/exec/address.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

template <class T, auto F, bool kCompare, bool kScalarBase, bool kFlat>
Stop atomic(Wave* w, const Op* op) {
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const char* data = half_of(w, op->b, half);
    address_known<kScalarBase>(w, op, half);
    read_vector(w, op, op->b, sizeof(T) / 4 * (kCompare ? 2 : 1), half, w->s[kExec + half]);
    char* to = op->dst == 0 ? nullptr : half_of(w, op->dst, half);
    const bool ok = for_addresses<kScalarBase>(
        w, op, half, w->s[kExec + half],
        [&](uint64_t base, const uint32_t* offsets, LaneMask lanes) {
          if (kFlat && (base + 0x80000000) >> 32 == kSharedBase >> 32) {
            char* lds = reinterpret_cast<char*>(w->lds) + op->imm;
            return atomic_half<T, F, kCompare, Lds>(w, op, lds, offsets, lanes, data, to);
          }
          return atomic_half<T, F, kCompare, Global>(w, op, reinterpret_cast<char*>(base), offsets,
                                                     lanes, data, to);
        });
    if (!ok) return Stop::fault;
  }
  if (op->dst != 0)
    load_issued(w, op, op->dst, sizeof(T) / 4, kFlat ? kVmem | kLds : kVmem);
  else
    store_issued(w, kFlat ? kStore | kLds : kStore);
  EMU_NEXT;
}

template <class T, auto F, bool kCompare, bool kFlat>
void lower_atomic(Lowering& l, const Inst& inst) {  // [vdst,] vaddr, vdata [, saddr or off]
  const size_t plain = kFlat ? 2 : 3;
  const bool returns = inst.operands.size() > plain;
  const size_t first = returns ? 1 : 0;
  const bool scalar = !kFlat && has_scalar_base(inst, first + 2);
  Op& op =
      l.emit(scalar ? &atomic<T, F, kCompare, true, kFlat> : &atomic<T, F, kCompare, false, kFlat>);
  if (returns) op.dst = l.destination(inst.operands[0]);
  op.b = l.source(inst.operands.at(first + 1), Value::b32);
  place_address(l, inst, op, inst.operands.at(first),
                kFlat ? nullptr : &inst.operands.at(first + 2));
}

#define EMU_ATOMIC(name, T, F)                                  \
  {"global_atomic_" name, &lower_atomic<T, F, false, false>}, { \
    "flat_atomic_" name, &lower_atomic<T, F, false, true>       \
  }
#define EMU_COMPARE_SWAP(name, T)                                  \
  {"global_atomic_" name, &lower_atomic<T, kSwap, true, false>}, { \
    "flat_atomic_" name, &lower_atomic<T, kSwap, true, true>       \
  }
// The names of gfx10 and earlier, followed by those of gfx11 and later.
#define EMU_ATOMICS(old_name, name32, name64, T32, T64, F)                                      \
  EMU_ATOMIC(old_name, T32, F), EMU_ATOMIC(old_name "_x2", T64, F), EMU_ATOMIC(name32, T32, F), \
      EMU_ATOMIC(name64, T64, F)

constexpr Row kRows[] = {
    EMU_ATOMICS("swap", "swap_b32", "swap_b64", uint32_t, uint64_t, kSwap),
    EMU_ATOMICS("add", "add_u32", "add_u64", uint32_t, uint64_t, kAdd),
    EMU_ATOMICS("sub", "sub_u32", "sub_u64", uint32_t, uint64_t, kSub),
    EMU_ATOMICS("smin", "min_i32", "min_i64", int32_t, int64_t, kMin),
    EMU_ATOMICS("umin", "min_u32", "min_u64", uint32_t, uint64_t, kMin),
    EMU_ATOMICS("smax", "max_i32", "max_i64", int32_t, int64_t, kMax),
    EMU_ATOMICS("umax", "max_u32", "max_u64", uint32_t, uint64_t, kMax),
    EMU_ATOMICS("and", "and_b32", "and_b64", uint32_t, uint64_t, kAnd),
    EMU_ATOMICS("or", "or_b32", "or_b64", uint32_t, uint64_t, kOr),
    EMU_ATOMICS("xor", "xor_b32", "xor_b64", uint32_t, uint64_t, kXor),
    EMU_ATOMICS("inc", "inc_u32", "inc_u64", uint32_t, uint64_t, kIncrement),
    EMU_ATOMICS("dec", "dec_u32", "dec_u64", uint32_t, uint64_t, kDecrement),
    EMU_ATOMIC("csub", uint32_t, kSubClamp),
    EMU_ATOMIC("csub_u32", uint32_t, kSubClamp),
    EMU_ATOMIC("add_f32", float, kAdd),
    EMU_ATOMIC("add_f64", double, kAdd),
    EMU_ATOMIC("min_f64", double, kMinFloat),
    EMU_ATOMIC("max_f64", double, kMaxFloat),
    EMU_ATOMIC("fmin", float, kMinFloat),
    EMU_ATOMIC("fmax", float, kMaxFloat),
    EMU_ATOMIC("fmin_x2", double, kMinFloat),
    EMU_ATOMIC("fmax_x2", double, kMaxFloat),
    EMU_ATOMIC("min_f32", float, kMinFloat),
    EMU_ATOMIC("max_f32", float, kMaxFloat),
    EMU_ATOMIC("sub_clamp_u32", uint32_t, kSubClamp),
    EMU_ATOMIC("cond_sub_u32", uint32_t, kConditionalSub),
    EMU_ATOMIC("min_num_f32", float, kMinFloat),
    EMU_ATOMIC("max_num_f32", float, kMaxFloat),
    EMU_ATOMIC("pk_add_f16", uint32_t, kPackedAddF16),
    EMU_ATOMIC("pk_add_bf16", uint32_t, kPackedAddBf16),
    EMU_COMPARE_SWAP("cmpswap", uint32_t),
    EMU_COMPARE_SWAP("cmpswap_x2", uint64_t),
    EMU_COMPARE_SWAP("cmpswap_b32", uint32_t),
    EMU_COMPARE_SWAP("cmpswap_b64", uint64_t),
    EMU_COMPARE_SWAP("fcmpswap", float),
    EMU_COMPARE_SWAP("fcmpswap_x2", double),
    EMU_COMPARE_SWAP("cmpswap_f32", float),
};

}  // namespace

std::span<const Row> atomic_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
