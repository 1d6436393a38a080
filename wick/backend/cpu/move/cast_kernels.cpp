// All 90 casts between two real dtypes over a dense run: out[i] = cast(in[i]) for i in [0, n),
// rounded once, a block of elements at a time. Moves n·(size in + size out) bytes.

#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/tile.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::i32, math::i64, math::u32;

/// A number on its way to f16, as an f32 from which the processor's conversion gives the bits that
/// one rounding would have given.
template <class From>
inline float toward_f16(From x) {
  if constexpr (math::kSame<From, double>) {
    return math::detail::f64_to_f32_odd(x);
  } else if constexpr (kNarrow<From>) {
    return math::to_f32(x);
  } else if constexpr (sizeof(From) < 4) {
    return static_cast<float>(x);
  } else {
    // Beyond 2^17 all is infinity; below, an f32 holds the integer.
    constexpr From kLimit = From{1} << 17;
    From y = x < kLimit ? x : kLimit;
    if constexpr (From(-1) < From(0)) y = y > -kLimit ? y : -kLimit;
    return static_cast<float>(static_cast<i32>(y));
  }
}

/// n a multiple of 64: whole lines of every type.
template <class To, class From>
__attribute__((noinline)) void lines(To* __restrict to, const From* __restrict from, int64_t n) {
  if constexpr (kStepwise<From> && math::kSame<To, float>) {
    widen(to, from, n);
  } else if constexpr (kStepwise<To> && math::kSame<From, float>) {
    narrow(to, from, n);
  } else if constexpr (kStepwise<From> || kStepwise<To>) {
    alignas(64) float wide[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = n - i < kPiece ? (n - i) / 64 * 64 : kPiece;
      if constexpr (kStepwise<From>) {
        widen(wide, from + i, m);
        for (int64_t j = 0; j < m; ++j) to[i + j] = math::cast<To>(wide[j]);
      } else {
        for (int64_t j = 0; j < m; ++j) wide[j] = toward_f16(from[i + j]);
        narrow(to + i, wide, m);
      }
    }
  } else {
    const int64_t whole = n / 64 * 64;
    for (int64_t i = 0; i < whole; ++i) to[i] = math::cast<To>(from[i]);
  }
}

template <class To, class From>
void cast(int64_t n, void* out, const void* in, bool stream) {
  To* to = static_cast<To*>(out);
  const From* from = static_cast<const From*>(in);
  // Through padded copies: the same code as for whole lines, nothing touched outside the run.
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
