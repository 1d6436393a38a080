#include "emu/exec/operands.h"

#include "emu/exec/numbers.h"

namespace emu::EMU_VARIANT {
namespace {

uint32_t offset_of(const Op* op, int index) {
  return index == 0 ? op->a : index == 1 ? op->b : op->c;
}

/// Lane i of the result is lane index[i] & 31 of `v`.
EMU_INLINE U32 permute(const U32& v, const U32& index) {
  U32 out;
#if defined(__AVX512F__)
  __m512i from[2], by[2];
  __builtin_memcpy(from, &v, sizeof v);
  __builtin_memcpy(by, &index, sizeof index);
  for (__m512i& part : by) part = _mm512_permutex2var_epi32(from[0], part, from[1]);
  __builtin_memcpy(&out, by, sizeof out);
#elif defined(__AVX2__)
  __m256i from[4], by[4];
  __builtin_memcpy(from, &v, sizeof v);
  __builtin_memcpy(by, &index, sizeof index);
  for (__m256i& part : by) {
    // Bit 3 of the index selects a register of a pair, bit 4 selects the pair.
    const __m256 bit3 = _mm256_castsi256_ps(_mm256_slli_epi32(part, 28));
    const __m256 bit4 = _mm256_castsi256_ps(_mm256_slli_epi32(part, 27));
    __m256 moved[4];
    for (int i = 0; i < 4; ++i) {
      moved[i] = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(from[i], part));
    }
    const __m256 low = _mm256_blendv_ps(moved[0], moved[1], bit3);
    const __m256 high = _mm256_blendv_ps(moved[2], moved[3], bit3);
    part = _mm256_castps_si256(_mm256_blendv_ps(low, high, bit4));
  }
  __builtin_memcpy(&out, by, sizeof out);
#else
  for (int i = 0; i < kLanes; ++i) out[i] = v[index[i] & 31];
#endif
  return out;
}

EMU_INLINE U32 dpp_index(const Extra& x, int half) {
  U8 from;
  __builtin_memcpy(&from, x.from + half * kLanes, sizeof from);
  return convert<U32>(from);
}

/// Returns the lanes whose source lane exists and is enabled. Disabled source lanes count, too, if
/// reading them is allowed.
EMU_INLINE LaneMask dpp_readable(Wave* w, const Extra& x, int half) {
  LaneMask readable = static_cast<LaneMask>(x.valid >> (half * kLanes));
  const uint64_t exec = w->exec();
  const bool all = w->lanes == 64 ? exec == ~uint64_t{0} : static_cast<uint32_t>(exec) == ~0u;
  if (all || x.fetch_inactive) return readable;
  const U32 index = dpp_index(x, half);
  const U32 low = splat<U32>(w->s[kExec]) >> (index & 31);
  const U32 high = splat<U32>(w->s[kExec + 1]) >> (index & 31);
  return readable & lane_mask((index < kLanes ? low : high) & 1);
}

EMU_INLINE U32 dpp_dword(Wave* w, const Extra& x, uint32_t offset, int half) {
  const U32 index = dpp_index(x, half);
  U32 value = permute(at<U32>(w, offset), index);
  if (w->lanes == 64) {
    const U32 high = permute(at<U32>(w, offset + w->half_bytes), index);
    value = index < kLanes ? value : high;
  }
  if (x.bound_zero) value = select(dpp_readable(w, x, half), value, splat<U32>(0));
  return value;
}

/// Extracts the part of a register that SDWA names into the low bits.
EMU_INLINE U32 sdwa_part(U32 v, const SourceForm& form) {
  const uint32_t up = 32 - 8 * (form.byte + form.bytes), down = 32 - 8 * form.bytes;
  if (form.sext) return bits_as<U32>(bits_as<I32>(v << up) >> down);
  return (v << up) >> down;
}

/// Inserts a result into the part of a register that SDWA names.
EMU_INLINE U32 sdwa_placed(const Extra& x, U32 value, U32 old) {
  const uint32_t up = 8 * x.dst_byte, width = 8 * x.dst_bytes;
  const uint32_t mask = (width == 16 ? 0xffffu : 0xffu) << up;
  U32 placed = (value << up) & mask;
  if (x.dst_unused == 2) placed |= old & ~mask;
  if (x.dst_unused == 1) {
    const U32 top = bits_as<U32>(bits_as<I32>(value << (32 - width)) >> 31);
    placed |= top & ~(mask | (mask - 1));
  }
  return placed;
}

/// Returns whether MODE lets output modifiers multiply results of type V: not in IEEE mode, and not
/// where results may be denormals.
template <class V>
EMU_INLINE bool multiplies(const Wave* w) {
  constexpr uint32_t kDenormalResults = std::is_same_v<V, F32> ? 1 << 5 : 1 << 7;
  return (w->mode & (kIeeeMode | kDenormalResults)) == 0;
}

template <class V>
EMU_INLINE V modified(const Wave* w, V x, const Extra& extra) {
  using E = Element<V>;
  if (extra.omod != 0 && multiplies<V>(w)) {
    constexpr double kFactors[] = {1, 2, 4, 0.5};
    x = x * splat<V>(static_cast<E>(kFactors[extra.omod & 3]));
    x = is_zero(x) | is_denormal(x) ? splat<V>(0) : x;  // also -0
  }
  if (!extra.clamp) return x;
  const V zero = splat<V>(0), one = splat<V>(1);
  V r = x > zero ? x : zero;  // NaN fails the comparison
  r = r < one ? r : one;
  constexpr uint32_t kNanToZero = 1 << 8;  // the DX10_CLAMP bit of MODE
  return (w->mode & kNanToZero) != 0 ? r : (x == x ? r : x);
}

EMU_INLINE U32 modified_f16(const Wave* w, U32 bits, const Extra& extra) {
  return convert<U32>(bits_as<U16>(modified(w, bits_as<F16>(convert<U16>(bits)), extra)));
}

}  // namespace

void fetch(Wave* w, const Op* op, int index, int half, U32& out) {
  const Extra& x = *op->extra;
  const SourceForm& form = x.src[index];
  const uint32_t offset = offset_of(op, index);
  out = x.cross_lane && index == 0 ? dpp_dword(w, x, offset, half)
                                   : load_dword(w, offset, form.vector, half);
  if (form.bytes != 4) out = sdwa_part(out, form);
}

void fetch_wide(Wave* w, const Op* op, int index, int half, U64& out) {
  const Extra& x = *op->extra;
  const uint32_t offset = offset_of(op, index);
  if (x.cross_lane && index == 0) {
    out = pair(dpp_dword(w, x, offset, half), dpp_dword(w, x, offset + 128, half));
  } else {
    out = load_qword(w, offset, x.src[index].vector, half);
  }
}

LaneMask dpp_enabled(Wave* w, const Op* op, int half) {
  const Extra& x = *op->extra;
  LaneMask enabled = static_cast<LaneMask>(x.enabled >> (half * kLanes));
  if (!x.bound_zero) enabled &= dpp_readable(w, x, half);
  return enabled;
}

void put(Wave* w, const Op* op, int half, LaneMask enabled, const U32& value, Shape shape) {
  const Extra& x = *op->extra;
  const uint32_t to = op->dst + static_cast<uint32_t>(half) * w->half_bytes;
  U32 bits = value;
  if (x.omod != 0 || x.clamp) {
    if (shape == Shape::f32) bits = bits_as<U32>(modified(w, bits_as<F32>(bits), x));
    if (shape == Shape::f16) bits = modified_f16(w, bits, x);
    if (shape == Shape::packed_f16) {
      bits = modified_f16(w, bits & 0xffff, x) | modified_f16(w, bits >> 16, x) << 16;
    }
  }
  if (x.dst_bytes != 4) {
    bits = sdwa_placed(x, bits, at<U32>(w, to));
  } else if (shape == Shape::word || shape == Shape::f16) {
    const U32 old = at<U32>(w, to);
    if (x.dst_hi) {
      bits = (old & 0xffff) | bits << 16;
    } else if (x.keep_high) {
      bits = (old & 0xffff0000) | bits;
    }
  }
  store_dword(w, to, enabled, bits);
}

void put_wide(Wave* w, const Op* op, int half, LaneMask enabled, const U64& value, bool is_float) {
  const Extra& x = *op->extra;
  U64 bits = value;
  if (is_float && (x.omod != 0 || x.clamp)) bits = bits_as<U64>(modified(w, bits_as<F64>(bits), x));
  store_qword(w, op->dst + static_cast<uint32_t>(half) * w->half_bytes, enabled, bits);
}

void flush_denormals(F16& value) {
  const U16 bits = bits_as<U16>(value);
  value = is_denormal(value) ? bits_as<F16>(bits & 0x8000) : value;
}

}  // namespace emu::EMU_VARIANT
