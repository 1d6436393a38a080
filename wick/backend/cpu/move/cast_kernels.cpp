// All 90 casts between two real dtypes over a dense run: out[i] = cast(in[i]) for i in [0, n),
// rounded once. Moves n·(size in + size out) bytes.

#include "wick/backend/cpu/dense_run.h"
#include "wick/backend/cpu/move/move_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::i32;

/// A float whose rounding to To gives the bits of rounding x once.
template <class To, class From>
inline float toward(From x) {
  if constexpr (math::kSame<From, double>) {
    return math::detail::f64_to_f32_odd(x);
  } else if constexpr (kNarrow<From>) {
    return math::to_f32(x);
  } else if constexpr (sizeof(From) < 4 || math::kSame<From, float>) {
    return static_cast<float>(x);
  } else if constexpr (math::kSame<To, bf16>) {
    // Where the conversion to float (of 64 bits: to double) would round, x is rounded to odd at a
    // higher bit first.
    constexpr int kDigits = sizeof(From) == 4 ? 24 : 53;
    constexpr From kUnit = From{1} << (8 * sizeof(From) - kDigits), kLow = kUnit - 1;
    constexpr From kExact = From{1} << kDigits;
    bool exact = x < kExact;
    if constexpr (From(-1) < From(0)) exact = exact & (x > -kExact);
    const From odd = (x & ~kLow) | ((x & kLow) != 0 ? kUnit : From{0});
    const From y = exact ? x : odd;
    if constexpr (sizeof(From) == 8) return math::detail::f64_to_f32_odd(static_cast<double>(y));
    return static_cast<float>(y);
  } else {
    // Beyond 2^17 every result is infinity or the largest number. Up to there f32 is exact.
    constexpr From kLimit = From{1} << 17;
    From y = x < kLimit ? x : kLimit;
    if constexpr (From(-1) < From(0)) y = y > -kLimit ? y : -kLimit;
    return static_cast<float>(static_cast<i32>(y));
  }
}

template <class To, class From>
inline void toward(float* __restrict to, const From* __restrict from, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (math::kSame<To, bf16> && math::kSame<From, i32>) {
    // Rounds toward zero, then to odd if that was inexact.
    for (int64_t i = 0; i < n; i += 16) {
      const __m512i x = _mm512_loadu_si512(from + i);
      const __m512 y = _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
      const __mmask16 inexact = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(y), x);
      const __m512i bits = _mm512_castps_si512(y);
      _mm512_storeu_si512(to + i, _mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1)));
    }
    return;
  }
#endif
  for (int64_t i = 0; i < n; ++i) to[i] = toward<To>(from[i]);
}

/// n is a multiple of 64: whole cache lines of every type.
template <class To, class From>
__attribute__((noinline)) void lines(To* __restrict to, const From* __restrict from, int64_t n) {
  const int64_t whole = n / 64 * 64;
  if constexpr (kConvertsByRun<From> && math::kSame<To, float>) {
    widen_vectors(to, from, whole);
  } else if constexpr (kConvertsByRun<To> && math::kSame<From, float>) {
    narrow_vectors(to, from, whole);
  } else if constexpr (kConvertsByRun<To> && math::kSame<From, double>) {
    // Longer pieces: conversion from f64 takes many instructions, and longer pieces keep more of
    // its loads in flight.
    alignas(64) float wide[256];
    for (int64_t i = 0; i < whole; i += 256) {
      const int64_t m = whole - i < 256 ? whole - i : 256;
      for (int64_t j = 0; j < m; ++j) wide[j] = toward<To>(from[i + j]);
      narrow_vectors(to + i, wide, m);
    }
  } else if constexpr (kConvertsByRun<From> || kConvertsByRun<To>) {
    for (int64_t i = 0; i < whole; i += 64) {
      alignas(64) float wide[64];
      if constexpr (kConvertsByRun<From>) {
        widen_vectors(wide, from + i, 64);
      } else {
        toward<To>(wide, from + i, 64);
      }
      if constexpr (kConvertsByRun<To>) {
        narrow_vectors(to + i, wide, 64);
      } else {
        for (int64_t j = 0; j < 64; ++j) to[i + j] = math::cast<To>(wide[j]);
      }
    }
  } else {
    for (int64_t i = 0; i < whole; ++i) to[i] = math::cast<To>(from[i]);
  }
}

template <class To, class From>
void cast(int64_t n, void* out, const void* in, bool stream) {
  To* to = static_cast<To*>(out);
  const From* from = static_cast<const From*>(in);
  // Through padded copies: the code for whole cache lines, with no access outside the run.
  auto part = [&](int64_t i, int64_t count) {
    alignas(64) From source[64] = {};
    alignas(64) To result[64];
    __builtin_memcpy(source, from + i, static_cast<size_t>(count) * sizeof(From));
    lines(result, source, 64);
    __builtin_memcpy(to + i, result, static_cast<size_t>(count) * sizeof(To));
  };
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(to) / static_cast<int64_t>(sizeof(To));
    if (head > 0 && head <= n) {
      part(0, head);
      i = head;
    }
    constexpr int64_t kCount = kStreamed<To> < 64 ? 64 : kStreamed<To>;
    for (; n - i >= kCount; i += kCount) {
      alignas(64) To tile[kCount];
      lines(tile, from + i, kCount);
      stream_tile(to + i, tile, kCount);
    }
  }
  if (const int64_t whole = (n - i) / 64 * 64; whole > 0) {
    lines(to + i, from + i, whole);
    i += whole;
  }
  if (i < n) part(i, n - i);
}

template <DType kFrom, DType kTo>
constexpr void add_pair(CastKernels& table) {
  if constexpr (!is_block(kTo) && !is_block(kFrom) && kTo != kFrom) {
    table.run[static_cast<int>(kFrom)][static_cast<int>(kTo)] = cast<Storage<kTo>, Storage<kFrom>>;
  }
}
template <DType kFrom>
constexpr void add_source(CastKernels& table) {
#define WICK_DTYPE(dtype, ...) add_pair<kFrom, DType::dtype>(table);
#include "wick/base/dtypes.def"
}
constexpr CastKernels make_cast_table() {
  CastKernels table{};
#define WICK_DTYPE(dtype, ...) add_source<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

constexpr bool complete(const CastKernels& table) {
  for (int from = 0; from < kRealDTypeCount; ++from) {
    for (int to = 0; to < kRealDTypeCount; ++to) {
      if ((table.run[from][to] == nullptr) != (from == to)) return false;
    }
  }
  return true;
}

}  // namespace

constexpr CastKernels cast_kernels = make_cast_table();
static_assert(complete(cast_kernels));

}  // namespace wick::cpu::WICK_ISA
