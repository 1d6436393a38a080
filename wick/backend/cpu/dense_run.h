#pragma once

// Loops of kernels over a dense run of elements: in whole cache lines, with or without non-temporal
// stores. The ends of the run are computed in padded copies. For kernel sources only (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/storage_type.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Elements of a cache line. Kernels get multiples of it, so that their loops are whole vectors
/// without tails.
template <class S>
inline constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(S));

/// Elements that are computed before they are stored with non-temporal stores: a few cache lines,
/// so that the stores overlap with the arithmetic of the next ones.
template <class S>
inline constexpr int64_t kStreamed = 4 * kLine<S>;

template <class S>
inline S at(const char* p) {
  S value;
  __builtin_memcpy(&value, p, sizeof(S));
  return value;
}

/// Bytes from p to the next cache line.
inline int64_t bytes_to_line(const void* p) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(p) & 63);
}

template <class S>
inline void stream_tile(S* to, const S* tile, int64_t n) {
  for (int64_t i = 0; i < n; i += kLine<S>) stream_line(to + i, tile + i);
}

/// A value for the unused lanes of a vector, harmless even as a divisor.
template <class S>
inline S filler() {
  if constexpr (kNarrow<S>) {
    return S{0};
  } else {
    return static_cast<S>(1);
  }
}

/// A copy of up to kN elements, padded to kN.
template <class S, int64_t kN>
struct PaddedLine {
  alignas(64) S elems[kN];
  PaddedLine(const S* from, int64_t n) {
    for (S& element : elems) element = filler<S>();
    __builtin_memcpy(elems, from, static_cast<size_t>(n) * sizeof(S));
  }
  const S* pointer() const { return elems; }
};

/// The least number of elements that fill whole cache lines of every type.
template <class... S>
constexpr int64_t line_of_all() {
  int64_t n = 1;
  ((n = kLine<S> > n ? kLine<S> : n), ...);
  return n;
}

/// Covers a run of n elements with calls of lines(y, inputs.., count), where count elements fill
/// whole cache lines of every operand. The end of the run, and with `stream` its start up to a
/// cache line, go through padded copies, so that no byte outside the run is accessed. Streamed
/// results are computed in pieces, so that the stores of one overlap with the arithmetic of the
/// next.
template <class S, class Lines, class... In>
inline void cover(int64_t n, bool stream, const Lines& lines, S* y, const In*... in) {
  constexpr int64_t kN = line_of_all<S, In...>();
  auto part = [&lines](int64_t count, S* to, const In*... from) {
    alignas(64) S result[kN];
    lines(result, PaddedLine<In, kN>(from, count).pointer()..., kN);
    __builtin_memcpy(to, result, static_cast<size_t>(count) * sizeof(S));
  };
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(y) / static_cast<int64_t>(sizeof(S));
    if (head > 0 && head <= n) {
      part(head, y, in...);
      i = head;
    }
    constexpr int64_t kCount = kStreamed < S >> kN ? kStreamed<S> : kN;
    for (; n - i >= kCount; i += kCount) {
      alignas(64) S tile[kCount];
      lines(tile, (in + i)..., kCount);
      stream_tile(y + i, tile, kCount);
    }
  }
  if (const int64_t whole = (n - i) / kN * kN; whole > 0) {
    lines(y + i, (in + i)..., whole);
    i += whole;
  }
  if (i < n) part(n - i, y + i, (in + i)...);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
