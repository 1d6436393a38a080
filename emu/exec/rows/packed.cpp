// Packed arithmetic: two 16-bit values per lane, and gfx90a's two 32-bit values per lane.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

using PF = Packed<F16>;
using PU = Packed<U16>;
using PI = Packed<I16>;

#define EMU_EACH(P, expression)                                                \
  [](P x, P y) {                                                               \
    const auto one = [](auto a, auto b) -> decltype(a) { return expression; }; \
    return P{one(x.low, y.low), one(x.high, y.high)};                          \
  }
#define EMU_EACH3(P, expression)                                                       \
  [](P x, P y, P z) {                                                                  \
    const auto one = [](auto a, auto b, auto c) -> decltype(a) { return expression; }; \
    return P{one(x.low, y.low, z.low), one(x.high, y.high, z.high)};                   \
  }

EMU_INLINE U16 mad_clamped(U16 a, U16 b, U16 c) {
  const U32 product = convert<U32>(a) * convert<U32>(b);
  const U32 sum = product + convert<U32>(c);
  return convert<U16>((product > 0xffff) | (sum > 0xffff) ? splat<U32>(0xffff) : sum);
}
EMU_INLINE I16 mad_clamped(I16 a, I16 b, I16 c) {
  const I32 sum = convert<I32>(a) * convert<I32>(b) + convert<I32>(c);
  return convert<I16>(clip(sum, -0x8000, 0x7fff));
}

/// Reads one source of a packed 32-bit instruction: its modifiers select the dword and sign for
/// each result. The other dword isn't read, since compilers may leave it uninitialized. `known` is
/// narrowed to the lanes that are known.
EMU_INLINE U32 pair_part(Wave* w, const Op* op, int index, bool second, int half, LaneMask& known) {
  const uint32_t sources[] = {op->a, op->b, op->c};
  const SourceForm& form = op->extra->src[index];
  const uint32_t step = form.vector ? 128 : 4;
  const uint32_t offset = sources[index] + ((second ? form.hi_hi : form.hi) ? step : 0);
  if (form.vector) {
    known &= read_vector(w, op, offset, 1, half, w->s[kExec + half]);
  } else if (!pass_scalar(w, op, offset, 1)) {
    known = 0;
  }
  const U32 bits = load_dword(w, offset, form.vector, half);
  return bits ^ ((second ? form.neg_hi : form.neg) ? 0x80000000u : 0u);
}

/// Computes both results from all sources. kMove: the first result comes from source 0, the second
/// from source 1.
template <auto kOp, int kSources, bool kMove>
Stop pair_op(Wave* w, const Op* op) {
  const Extra& x = *op->extra;
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    U32 results[2];
    LaneMask known[2] = {kAllLanes, kAllLanes};
    for (int i = 0; i < 2; ++i) {
      const auto part = [&](int index) { return pair_part(w, op, index, i != 0, h, known[i]); };
      if constexpr (kMove) {
        results[i] = part(i);
      } else if constexpr (kSources == 2) {
        results[i] = kOp(part(0), part(1));
      } else {
        results[i] = kOp(part(0), part(1), part(2));
      }
    }
    for (uint32_t i = 0; i < 2; ++i) {
      write_vector(w, op, op->dst + 128 * i, 1, h, w->s[kExec + h], known[i]);
    }
    if (x.clamp) {
      Op result = *op;
      for (const U32& bits : results) {
        put(w, &result, h, w->s[kExec + h], bits, Shape::f32);
        result.dst += 128;
      }
      continue;
    }
    const uint32_t to = op->dst + static_cast<uint32_t>(h) * w->half_bytes;
    for (uint32_t i = 0; i < 2; ++i) store_dword(w, to + 128 * i, w->s[kExec + h], results[i]);
  }
  EMU_NEXT;
}

template <auto kOp, int kSources, bool kMove = false>
void lower_pair(Lowering& l, const Inst& inst) {
  constexpr Value kValues[] = {Value::f32, Value::f32, Value::f32};
  l.place_vector(inst, {}, std::span(kValues, kSources));
  l.ops.back().fn = &pair_op<kOp, kSources, kMove>;
}

EMU_INLINE F32 f(U32 bits) { return bits_as<F32>(bits); }

constexpr Row kRows[] = {
    hot<EMU_EACH(PF, a + b)>("v_pk_add_f16"),
    hot<EMU_EACH(PF, a * b)>("v_pk_mul_f16"),
    ieee<EMU_EACH(PF, FloatOrder<true>::least(a, b)), EMU_EACH(PF, FloatOrder<false>::least(a, b)),
         Heat::warm>("v_pk_min_f16"),
    ieee<EMU_EACH(PF, FloatOrder<true>::most(a, b)), EMU_EACH(PF, FloatOrder<false>::most(a, b)),
         Heat::warm>("v_pk_max_f16"),
    hot<EMU_EACH3(PF, fma(a, b, c))>("v_pk_fma_f16"),
    warm_accumulate<EMU_EACH3(PF, fma(a, b, c))>("v_pk_fmac_f16"),
    saturating<EMU_EACH(PU, a + b), EMU_EACH(PU, __builtin_elementwise_add_sat(a, b))>("v_pk_add_u16"),
    saturating<EMU_EACH(PU, a - b), EMU_EACH(PU, __builtin_elementwise_sub_sat(a, b))>("v_pk_sub_u16"),
    saturating<EMU_EACH(PI, a + b), EMU_EACH(PI, __builtin_elementwise_add_sat(a, b))>("v_pk_add_i16"),
    saturating<EMU_EACH(PI, a - b), EMU_EACH(PI, __builtin_elementwise_sub_sat(a, b))>("v_pk_sub_i16"),
    saturating<EMU_EACH3(PU, a * b + c), EMU_EACH3(PU, mad_clamped(a, b, c))>("v_pk_mad_u16"),
    saturating<EMU_EACH3(PI, a * b + c), EMU_EACH3(PI, mad_clamped(a, b, c))>("v_pk_mad_i16"),
    vop<EMU_EACH(PU, a * b)>("v_pk_mul_lo_u16"),
    vop<EMU_EACH(PU, minimum(a, b))>("v_pk_min_u16"),
    vop<EMU_EACH(PU, maximum(a, b))>("v_pk_max_u16"),
    vop<EMU_EACH(PI, minimum(a, b))>("v_pk_min_i16"),
    vop<EMU_EACH(PI, maximum(a, b))>("v_pk_max_i16"),
    vop<EMU_EACH(PU, b << (a & 15))>("v_pk_lshlrev_b16"),
    vop<EMU_EACH(PU, b >> (a & 15))>("v_pk_lshrrev_b16"),
    vop<EMU_EACH(PI, b >> (a & 15))>("v_pk_ashrrev_i16"),
    {"v_pk_fma_f32", &lower_pair<[](U32 a, U32 b, U32 c) {
       return bits_as<U32>(fma(f(a), f(b), f(c)));
     }, 3>},
    {"v_pk_mul_f32", &lower_pair<[](U32 a, U32 b) {
       return bits_as<U32>(f(a) * f(b));
     }, 2>},
    {"v_pk_add_f32", &lower_pair<[](U32 a, U32 b) {
       return bits_as<U32>(f(a) + f(b));
     }, 2>},
    // The first result comes from source 0 and the second from source 1; op_sel selects the dword
    // for each.
    {"v_pk_mov_b32", [](Lowering& l, const Inst& inst) {
       lower_pair<nullptr, 2, true>(l, inst);
       SourceForm& second = l.extras.back().src[1];
       second.hi_hi = second.hi;
     }},
};

}  // namespace

std::span<const Row> packed_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
