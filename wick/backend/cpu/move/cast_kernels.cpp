// All 90 casts between two real dtypes over a dense run: out[i] = cast(in[i]) for i in [0, n),
// rounded once, a block of elements at a time. Moves n·(size in + size out) bytes.

#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/tile.h"

namespace wick::cpu::WICK_ISA {
namespace {

constexpr int64_t kBlock = 64;  // elements: whole lines of every type

template <class To, class From>
inline void block(To* __restrict to, const From* __restrict from) {
  if constexpr (math::kSame<From, f16> && math::kSame<To, float>) {
    widen<kBlock>(to, from);
  } else if constexpr (math::kSame<From, f16>) {
    alignas(64) float wide[kBlock];
    widen<kBlock>(wide, from);
    block<To>(to, wide);
  } else if constexpr (math::kSame<From, float> && math::kSame<To, f16>) {
    narrow<kBlock>(to, from);
  } else {
    for (int64_t i = 0; i < kBlock; ++i) to[i] = math::cast<To>(from[i]);
  }
}

template <class To, class From>
void cast(int64_t n, void* out, const void* in, bool stream) {
  To* to = static_cast<To*>(out);
  const From* from = static_cast<const From*>(in);
  int64_t i = 0;
  if (stream) {
    for (; i < n && bytes_to_line(to + i) != 0; ++i) to[i] = math::cast<To>(from[i]);
    for (; i + kBlock <= n; i += kBlock) {
      alignas(64) To result[kBlock];
      block(result, from + i);
#pragma GCC unroll 8
      for (int64_t j = 0; j < kBlock; j += kLine<To>) stream_line(to + i + j, result + j);
    }
  }
  for (; i + kBlock <= n; i += kBlock) block(to + i, from + i);
  if (i < n) {
    // Through padded copies: the same vector code, nothing touched beyond the end.
    alignas(64) From source[kBlock] = {};
    alignas(64) To result[kBlock];
    __builtin_memcpy(source, from + i, static_cast<size_t>(n - i) * sizeof(From));
    block(result, source);
    __builtin_memcpy(to + i, result, static_cast<size_t>(n - i) * sizeof(To));
  }
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
constexpr CastKernels make_table() {
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

constexpr CastKernels cast_kernels = make_table();
static_assert(complete(cast_kernels));

}  // namespace wick::cpu::WICK_ISA
