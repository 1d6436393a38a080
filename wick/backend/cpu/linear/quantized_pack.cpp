// Packs rows of GGML blocks into panels of 16 rows (layout: quantized_types.h).
//
// Index map: the 16 bytes of nibbles of a block's row are four words, and words v of the 16 rows
// are the 64-byte vector v, by transpositions of 4 × 4 words in registers. Bytes of small blocks
// don't change (the two nibbles of a byte are already columns j and j + 16), but for the sign bits
// of Q8_0; bytes of K-quants are rearranged first. Bytes moved: each once in and once out.

#include "wick/backend/cpu/linear/quantized_pack.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/base/error.h"
#include "wick/math/quants.h"

namespace wick::cpu {
namespace {

typedef uint32_t Words __attribute__((vector_size(16)));

/// Writes word v of four rows one behind another, for v from 0 to 3, 64 bytes apart. All words are
/// XORed with `flip`.
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

/// The fifth bits of 32 quants in the order of columns: those of columns j, j + 4, … in byte j.
uint32_t fifth_bits(const uint8_t* file) {
  uint32_t bits;
  std::memcpy(&bits, file, sizeof bits);
  uint32_t bytes = 0;
  for (int j = 0; j < 4; ++j) {
    uint32_t x = bits >> j & 0x11111111u;
    x = (x | x >> 3) & 0x03030303u;
    x = (x | x >> 6) & 0x000f000fu;
    bytes |= (x | x >> 12) % 256 << (8 * j);
  }
  return bytes;
}

/// Packs blocks of 32, whose quants have the same order in files. A block begins with its scale,
/// behind which is the minimum if there is one.
template <class T, class Block>
void pack_panel(const uint8_t* const* rows, int64_t blocks, uint8_t* panel) {
  using P = Packed<T>;
  constexpr int64_t kQuants = offsetof(Block, qs);
  constexpr uint32_t kFlip = T::kQuants == Quants::bytes ? 0x80808080u : 0;
  const int64_t padded = (blocks + T::kUnitBlocks - 1) / T::kUnitBlocks * T::kUnitBlocks;
  for (int64_t b = 0; b < padded; ++b) {
    const int64_t g = b % T::kUnitBlocks;
    uint8_t* unit = panel + b / T::kUnitBlocks * P::kUnitBytes;
    uint8_t* quants = unit + g * P::kQuantBytes;
    uint8_t* scales = unit + P::kScales + g * P::kScaleBytes;
    uint8_t* minima = unit + P::kMinima + g * P::kScaleBytes;
    if (b >= blocks) {
      std::memset(quants, 0, P::kQuantBytes);
      std::memset(scales, 0, P::kScaleBytes);
      if (T::kHasMin) std::memset(minima, 0, P::kScaleBytes);
      continue;
    }
    const int64_t at = b * static_cast<int64_t>(sizeof(Block));
    for (int r = 0; r < kPanelRows; r += 4) {
      for (int half = 0; half < P::kQuantBytes / 256; ++half) {
        transpose_words(rows + r, at + kQuants + 16 * half, kFlip, quants + 256 * half + 4 * r);
      }
    }
    for (int r = 0; r < kPanelRows; ++r) {
      if constexpr (T::kQuants == Quants::five) {
        const uint32_t bits = fifth_bits(rows[r] + at + offsetof(Block, qh));
        std::memcpy(quants + P::kHighBits + 4 * r, &bits, 4);
      }
      std::memcpy(scales + P::kScaleSize * r, rows[r] + at, P::kScaleSize);
      if (T::kHasMin) std::memcpy(minima + 2 * r, rows[r] + at + 2, 2);
    }
  }
}

/// A superblock of one row, with quants in the order of a panel's rows: 4 bytes for each vector.
struct SuperRow {
  uint8_t quants[8][24];
  uint8_t factors[2][8];  // scale and minimum of a block, or the factors of its two parts
  uint16_t d, minimum;
};

/// Packs 32 unsigned quants of a row: byte 4·v + j of the result belongs to vector v.
template <Quants kQuants>
void pack_quants(const uint8_t* q, uint8_t* to) {
  if constexpr (kQuants == Quants::two) {
    for (int j = 0; j < 8; ++j) {
      const uint8_t* from = q + j / 4 * 16 + j % 4;
      to[j] = static_cast<uint8_t>(from[0] | from[4] << 2 | from[8] << 4 | from[12] << 6);
    }
  } else if constexpr (kQuants == Quants::three) {
    for (int j = 0; j < 12; ++j) to[j] = static_cast<uint8_t>(q[j] | q[16 + j] << 3);
    for (int j = 0; j < 4; ++j) {
      const int first = q[12 + j], second = q[28 + j];
      to[j] = static_cast<uint8_t>(to[j] | (first & 3) << 6);
      to[4 + j] = static_cast<uint8_t>(to[4 + j] | (second & 3) << 6);
      to[8 + j] = static_cast<uint8_t>(to[8 + j] | first >> 2 << 6 | second >> 2 << 7);
    }
  } else if constexpr (kQuants == Quants::six) {
    for (int part = 0; part < 2; ++part) {
      const uint8_t *first = q + 16 * part, *last = first + 12;
      for (int j = 0; j < 12; ++j) {
        const int pair = last[j % 4] >> (j / 4 * 2) & 3;
        to[12 * part + j] = static_cast<uint8_t>(first[j] | pair << 6);
      }
    }
  } else {
    for (int j = 0; j < 16; ++j) to[j] = static_cast<uint8_t>((q[j] & 15) | (q[16 + j] & 15) << 4);
    if constexpr (kQuants == Quants::five) {
      for (int j = 0; j < 4; ++j) {
        int bits = 0;
        for (int k = 0; k < 8; ++k) bits |= q[4 * k + j] >> 4 << k;
        to[16 + j] = static_cast<uint8_t>(bits);
      }
    }
  }
}

/// The scales and minima of q4_k and q5_k.
void read_six_bits(const uint8_t* scales, SuperRow& row) {
  for (int b = 0; b < 8; ++b) {
    const math::SixBits bits = math::read_six_bits(scales, b);
    row.factors[0][b] = bits.scale;
    row.factors[1][b] = bits.minimum;
  }
}

uint16_t inverted_sign(math::f16 x) { return static_cast<uint16_t>(x.bits ^ 0x8000u); }

SuperRow read_row(const math::BlockQ4_K& block) {
  SuperRow row;
  row.d = block.d.bits;
  row.minimum = inverted_sign(block.dmin);
  for (int pair = 0; pair < 4; ++pair) {
    const uint8_t* qs = block.qs + 32 * pair;
    for (int j = 0; j < 16; ++j) {
      row.quants[2 * pair][j] = static_cast<uint8_t>((qs[j] & 15) | (qs[j + 16] & 15) << 4);
      row.quants[2 * pair + 1][j] = static_cast<uint8_t>(qs[j] >> 4 | (qs[j + 16] & 0xf0));
    }
  }
  read_six_bits(block.scales, row);
  return row;
}

SuperRow read_row(const math::BlockQ5_K& block) {
  SuperRow row;
  row.d = block.d.bits;
  row.minimum = inverted_sign(block.dmin);
  for (int b = 0; b < 8; ++b) {
    const uint8_t* qs = block.qs + 32 * (b / 2);
    uint8_t q[32];
    for (int j = 0; j < 32; ++j) {
      q[j] = static_cast<uint8_t>((qs[j] >> (b % 2 * 4) & 15) | (block.qh[j] >> b & 1) << 4);
    }
    pack_quants<Quants::five>(q, row.quants[b]);
  }
  read_six_bits(block.scales, row);
  return row;
}

SuperRow read_row(const math::BlockQ6_K& block) {
  SuperRow row;
  row.d = block.d.bits;
  for (int b = 0; b < 8; ++b) {
    const int n = b / 4, r = b % 4;
    const uint8_t *ql = block.ql + 64 * n + 32 * (r % 2), *qh = block.qh + 32 * n;
    uint8_t q[32];
    for (int j = 0; j < 32; ++j) {
      q[j] = static_cast<uint8_t>((ql[j] >> (r / 2 * 4) & 15) | (qh[j] >> (2 * r) & 3) << 4);
    }
    pack_quants<Quants::six>(q, row.quants[b]);
    row.factors[0][b] = static_cast<uint8_t>(block.scales[2 * b]);
    row.factors[1][b] = static_cast<uint8_t>(block.scales[2 * b + 1]);
  }
  return row;
}

SuperRow read_row(const math::BlockQ2_K& block) {
  SuperRow row;
  row.d = block.d.bits;
  row.minimum = inverted_sign(block.dmin);
  for (int b = 0; b < 8; ++b) {
    uint8_t q[32];
    for (int j = 0; j < 32; ++j) {
      q[j] = static_cast<uint8_t>(block.qs[b / 4 * 32 + j] >> (b % 4 * 2) & 3);
    }
    pack_quants<Quants::two>(q, row.quants[b]);
    row.factors[0][b] = block.scales[2 * b];
    row.factors[1][b] = block.scales[2 * b + 1];
  }
  return row;
}

SuperRow read_row(const math::BlockQ3_K& block) {
  SuperRow row;
  row.d = block.d.bits;
  for (int b = 0; b < 8; ++b) {
    uint8_t q[32];
    for (int j = 0; j < 32; ++j) {
      q[j] = static_cast<uint8_t>((block.qs[b / 4 * 32 + j] >> (b % 4 * 2) & 3) |
                                  (block.hmask[j] >> b & 1) << 2);
    }
    pack_quants<Quants::three>(q, row.quants[b]);
    for (int half = 0; half < 2; ++half) {
      row.factors[half][b] = static_cast<uint8_t>(math::factor_of(block, 2 * b + half));
    }
  }
  return row;
}

SuperRow read_row(const math::BlockIQ4_XS& block) {
  SuperRow row;
  row.d = block.d.bits;
  for (int b = 0; b < 8; ++b) {
    std::memcpy(row.quants[b], block.qs + 16 * b, 16);
    row.factors[0][b] = static_cast<uint8_t>(math::factor_of(block, b));
  }
  return row;
}

/// Where a unit holds factor `which` of block g of row r.
template <class T>
int factor_at(int g, int which, int r) {
  using P = Packed<T>;
  if (T::kHasMin && T::kParts == 2) return P::kFactors + g * P::kFactorBytes + 2 * r + which;
  if (!T::kHasMin) return P::kFactors + g * P::kFactorBytes + which * kPanelRows + r;
  if (which == 0) return P::kFactors + g * kPanelRows + r;
  return P::kMinimumFactors + g / 2 * 2 * kPanelRows + 2 * r + g % 2;
}

/// Packs superblocks; each is a unit.
template <class T, class Block>
void pack_super_panel(const uint8_t* const* rows, int64_t blocks, uint8_t* panel) {
  using P = Packed<T>;
  constexpr int kFactors = T::kHasMin ? 2 : T::kParts;
  for (int64_t unit = 0; unit < blocks / T::kUnitBlocks; ++unit, panel += P::kUnitBytes) {
    SuperRow row[kPanelRows];
    for (int r = 0; r < kPanelRows; ++r) {
      Block block;
      std::memcpy(&block, rows[r] + unit * static_cast<int64_t>(sizeof block), sizeof block);
      row[r] = read_row(block);
    }
    for (int g = 0; g < T::kUnitBlocks; ++g) {
      uint8_t* quants = panel + P::kQuants + g * P::kQuantBytes;
      for (int r = 0; r < kPanelRows; ++r) {
        for (int v = 0; v < P::kQuantBytes / 64; ++v) {
          std::memcpy(quants + 64 * v + 4 * r, row[r].quants[g] + 4 * v, 4);
        }
      }
      for (int which = 0; which < kFactors; ++which) {
        for (int r = 0; r < kPanelRows; ++r) {
          panel[factor_at<T>(g, which, r)] = row[r].factors[which][g];
        }
      }
    }
    for (int r = 0; r < kPanelRows; ++r) {
      std::memcpy(panel + P::kScales + 2 * r, &row[r].d, 2);
      if (T::kHasMin) std::memcpy(panel + P::kMinima + 2 * r, &row[r].minimum, 2);
    }
    std::memset(panel + P::kHeaderBytes, 0, P::kQuants - P::kHeaderBytes);
  }
}

template <class T, class Block>
void pack(const uint8_t* const* rows, int64_t blocks, uint8_t* panel) {
  if constexpr (T::kSuper) {
    pack_super_panel<T, Block>(rows, blocks, panel);
  } else {
    pack_panel<T, Block>(rows, blocks, panel);
  }
}

}  // namespace

QuantizedPacking quantized_packing(DType dtype) {
#define WICK_OWN_QUANT(name, Type, ...) \
  if (dtype == DType::name) return {Packed<Type>::panel_bytes, pack<Type, math::Block##Type>};
#include "wick/math/quants_by_products.def"
  throw Error(ErrorKind::type, "linear", "weight dtype has no int8 products on cpu",
              std::string(name(dtype)));
}

}  // namespace wick::cpu
