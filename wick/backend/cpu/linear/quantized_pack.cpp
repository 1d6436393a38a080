// Packs rows of GGML blocks into panels of 16 rows; see quantized_types.h for the layout.
//
// Index map: the 16 quants bytes of a block's row are four words, and word v of the 16 rows makes
// up the 64-byte vector v: transpositions of 4 × 4 words in registers. Bytes stay as they are in
// the file (a nibble pair there is already columns j and j + 16), but for Q8_0's sign bits.
// Bytes moved: each once in and once out.

#include "wick/backend/cpu/linear/quantized_pack.h"

#include <cstring>

#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

typedef uint32_t Words __attribute__((vector_size(16)));

/// Writes word v of four rows behind each other, for v in 0 to 3, 64 bytes apart.
inline void transpose_words(const uint8_t* const* rows, int64_t at, uint32_t flip, uint8_t* to) {
  Words r[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&r[i], rows[i] + at, sizeof r[i]);
  const Words a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5) ^ flip;
  const Words b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7) ^ flip;
  const Words c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5) ^ flip;
  const Words d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7) ^ flip;
  const Words out[4] = {
      __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
      __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
  for (int v = 0; v < 4; ++v) std::memcpy(to + 64 * v, &out[v], sizeof out[v]);
}

template <class T>
void pack_panel(const uint8_t* const* rows, int64_t blocks, uint8_t* panel) {
  const int64_t padded = (blocks + T::kUnitBlocks - 1) / T::kUnitBlocks * T::kUnitBlocks;
  for (int64_t b = 0; b < padded; ++b) {
    const int64_t g = b % T::kUnitBlocks;
    uint8_t* unit = panel + b / T::kUnitBlocks * Packed<T>::kUnitBytes;
    uint8_t* quants = unit + g * T::kQuantBytes;
    uint8_t* scales = unit + Packed<T>::kScales + g * 2 * kPanelRows;
    uint8_t* minima = unit + Packed<T>::kMinima + g * 2 * kPanelRows;
    if (b >= blocks) {
      std::memset(quants, 0, T::kQuantBytes);
      std::memset(scales, 0, 2 * kPanelRows);
      if (T::kHasMin) std::memset(minima, 0, 2 * kPanelRows);
      continue;
    }
    const int64_t at = b * T::kFileBytes;
    for (int r = 0; r < kPanelRows; r += 4) {
      for (int half = 0; half < T::kQuantBytes / 256; ++half) {
        transpose_words(rows + r, at + T::kFileQuants + 16 * half, T::kFlip,
                        quants + 256 * half + 4 * r);
      }
    }
    for (int r = 0; r < kPanelRows; ++r) {
      std::memcpy(scales + 2 * r, rows[r] + at, 2);
      if (T::kHasMin) std::memcpy(minima + 2 * r, rows[r] + at + 2, 2);
    }
  }
}

template <class T>
constexpr QuantizedPacking packing(int kernels) {
  return {kernels, Packed<T>::panel_bytes, pack_panel<T>};
}

constexpr QuantizedPacking kQ4_0 = packing<Q4_0>(0);
constexpr QuantizedPacking kQ4_1 = packing<Q4_1>(1);
constexpr QuantizedPacking kQ8_0 = packing<Q8_0>(2);

}  // namespace

const QuantizedPacking& quantized_packing(DType dtype) {
  switch (dtype) {
    case DType::q4_0:
      return kQ4_0;
    case DType::q4_1:
      return kQ4_1;
    case DType::q8_0:
      return kQ8_0;
    default:
      throw Error("linear", "weight dtype has no int8 products on cpu", std::string(name(dtype)));
  }
}

}  // namespace wick::cpu
