// Copying, filling, reversing and transposing runs of elements: a kernel for each element size of
// 1, 2, 4 and 8 bytes.

#include <utility>

#include "wick/backend/cpu/dense_run.h"
#include "wick/backend/cpu/move/move_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Copies a dense run of bytes.
void copy(int64_t bytes, void* out, const void* in, bool stream) {
  char* to = static_cast<char*>(out);
  const char* from = static_cast<const char*>(in);
  if (stream) {
    const int64_t head = bytes_to_line(to);
    if (head < bytes) {
      __builtin_memcpy(to, from, static_cast<size_t>(head));
      to += head, from += head, bytes -= head;
      for (; bytes >= 64; to += 64, from += 64, bytes -= 64) stream_line(to, from);
    }
  }
  __builtin_memcpy(to, from, static_cast<size_t>(bytes));
}

/// out[i] = in[-i], a cache line at a time.
template <class T>
void reverse(int64_t bytes, void* out, const void* in, bool stream) {
  T* to = static_cast<T*>(out);
  const T* from = static_cast<const T*>(in);
  const int64_t n = bytes / static_cast<int64_t>(sizeof(T));
  int64_t i = 0;
  if (stream) {
    for (; i < n && bytes_to_line(to + i) != 0; ++i) to[i] = from[-i];
  }
  for (; i + kLine<T> <= n; i += kLine<T>) {
    alignas(64) T line[kLine<T>];
    const T* first = from - i - (kLine<T> - 1);
    __builtin_prefetch(reinterpret_cast<const char*>(first) - 2048);
    for (int64_t j = 0; j < kLine<T>; ++j) line[j] = first[kLine<T> - 1 - j];
    stream ? stream_line(to + i, line) : static_cast<void>(__builtin_memcpy(to + i, line, 64));
  }
  for (; i < n; ++i) to[i] = from[-i];
}

/// out[i] = value: writes n·sizeof(T) bytes.
template <class T>
void fill(int64_t n, void* out, const void* value_bytes, bool stream) {
  T* to = static_cast<T*>(out);
  const T value = at<T>(static_cast<const char*>(value_bytes));
  int64_t i = 0;
  if (stream) {
    alignas(64) T line[kLine<T>];
    for (T& element : line) element = value;
    for (; i < n && bytes_to_line(to + i) != 0; ++i) to[i] = value;
    for (; i + kLine<T> <= n; i += kLine<T>) stream_line(to + i, line);
  }
  for (; i < n; ++i) to[i] = value;
}

// ---- Transposition ----

/// Side of a square of elements, one register a row. For bytes it is 16: wider registers have no
/// cheap interleave of bytes across their halves.
template <class T>
inline constexpr int kSide = static_cast<int>(sizeof(T) == 1 ? 16 : kVectorBytes / sizeof(T));
template <class T>
struct VectorType {
  typedef T type __attribute__((vector_size(kSide<T> * sizeof(T))));
};
template <class T>
using Vector = typename VectorType<T>::type;

template <class V, size_t... kI>
inline V interleave_low(V a, V b, std::index_sequence<kI...>) {
  return __builtin_shufflevector(a, b, (kI / 2 + (kI % 2) * sizeof...(kI))...);
}
template <class V, size_t... kI>
inline V interleave_high(V a, V b, std::index_sequence<kI...>) {
  return __builtin_shufflevector(a, b, (sizeof...(kI) / 2 + kI / 2 + (kI % 2) * sizeof...(kI))...);
}

/// Transposes by log2(side) perfect shuffles of all rows: each interleaves row i with row i +
/// side/2.
template <class T, int kStage = kSide<T>>
inline void shuffle_rows(Vector<T>* rows) {
  if constexpr (kStage > 1) {
    constexpr int kN = kSide<T>;
    constexpr auto kSequence = std::make_index_sequence<kN>();
    Vector<T> next[kN];
#pragma GCC unroll 64
    for (int i = 0; i < kN / 2; ++i) {
      next[2 * i] = interleave_low(rows[i], rows[i + kN / 2], kSequence);
      next[2 * i + 1] = interleave_high(rows[i], rows[i + kN / 2], kSequence);
    }
    shuffle_rows<T, kStage / 2>(next);
#pragma GCC unroll 64
    for (int i = 0; i < kN; ++i) rows[i] = next[i];
  }
}

template <class T>
inline void transpose_square(char* out, int64_t out_stride, const char* in, int64_t in_stride) {
  using V = Vector<T>;
  V rows[kSide<T>];
#pragma GCC unroll 64
  for (int i = 0; i < kSide<T>; ++i) rows[i] = at<V>(in + i * in_stride);
  shuffle_rows<T>(rows);
#pragma GCC unroll 64
  for (int i = 0; i < kSide<T>; ++i) __builtin_memcpy(out + i * out_stride, &rows[i], sizeof(V));
}

/// Transposes a tile of kLine<T> cache lines. Cache lines at a power-of-two stride share a few sets
/// of the cache, so each is read and written once, whole, and the squares work on dense copies.
template <class T>
inline void transpose_tile(char* out, int64_t out_stride, const char* in, int64_t in_stride,
                           bool stream) {
  constexpr int64_t kN = kLine<T>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  alignas(64) char result[kN * 64];
  if constexpr (kSide<T> == kN) {
    if (!stream) {
      transpose_square<T>(out, out_stride, in, in_stride);
      return;
    }
    transpose_square<T>(result, 64, in, in_stride);
  } else {
    alignas(64) char source[kN * 64];
    for (int64_t i = 0; i < kN; ++i) __builtin_memcpy(source + i * 64, in + i * in_stride, 64);
    for (int64_t c = 0; c < kN; c += kSide<T>) {
      for (int64_t r = 0; r < kN; r += kSide<T>) {
        transpose_square<T>(result + r * 64 + c * kSize, 64, source + c * 64 + r * kSize, 64);
      }
    }
  }
  for (int64_t i = 0; i < kN; ++i) {
    if (stream) {
      stream_line(out + i * out_stride, result + i * 64);
    } else {
      __builtin_memcpy(out + i * out_stride, result + i * 64, 64);
    }
  }
}

/// out[r·out_stride + c] = in[c·in_stride + r] for rows × cols elements, tile by tile. The cache
/// lines of the next column of tiles are prefetched meanwhile.
template <class T>
void transpose(char* out, int64_t out_stride, const char* in, int64_t in_stride, int64_t rows,
               int64_t cols, bool stream) {
  constexpr int64_t kN = kLine<T>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const bool around =
      stream && ((reinterpret_cast<uintptr_t>(out) | static_cast<uint64_t>(out_stride)) & 63) == 0;
  const int64_t whole_rows = rows / kN * kN, whole_cols = cols / kN * kN;
  for (int64_t c = 0; c < whole_cols; c += kN) {
    const int64_t ahead = c + kN < whole_cols ? kN * in_stride : 0;
    for (int64_t r = 0; r < whole_rows; r += kN) {
      const char* from = in + c * in_stride + r * kSize;
      for (int64_t i = 0; i < kN; ++i) __builtin_prefetch(from + ahead + i * in_stride);
      transpose_tile<T>(out + r * out_stride + c * kSize, out_stride, from, in_stride, around);
    }
  }
  // The remaining rows, then the remaining columns.
  auto move = [=](int64_t r, int64_t c) {
    __builtin_memcpy(out + r * out_stride + c * kSize, in + c * in_stride + r * kSize, sizeof(T));
  };
  for (int64_t r = whole_rows; r < rows; ++r) {
    for (int64_t c = 0; c < whole_cols; ++c) move(r, c);
  }
  for (int64_t c = whole_cols; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) move(r, c);
  }
}

}  // namespace

constexpr MoveKernels move_kernels = {
    copy,
    {reverse<math::u8>, reverse<math::u16>, reverse<math::u32>, reverse<math::u64>},
    {fill<math::u8>, fill<math::u16>, fill<math::u32>, fill<math::u64>},
    {transpose<math::u8>, transpose<math::u16>, transpose<math::u32>, transpose<math::u64>}};
static_assert(complete(move_kernels));

}  // namespace wick::cpu::WICK_ISA
