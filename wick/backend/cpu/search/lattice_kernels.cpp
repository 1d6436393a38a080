// Quantisation of the formats with codebooks with the least weighted error.
//
// Computes what lattice.h searches, superblock by superblock, and packs the result as
// wick/math/lattice_blocks.h describes. The bits don't depend on the instruction set. Bytes moved:
// each value and weight once in, each block once out; the codebook and its neighbours, 260 to
// 490 KiB, stay in the second cache.

#include "wick/backend/cpu/search/lattice.h"
#include "wick/backend/cpu/search/search_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::f16;
using math::u16;
using math::u32;
using math::u8;

/// How a block's values are searched.
template <class Block>
struct FormatOf;
template <>
struct FormatOf<math::BlockIQ2_XXS> : fit::LatticeFormat<fit::TwoBits, 32, 31, fit::Signs::even> {};
template <>
struct FormatOf<math::BlockIQ2_XS> : fit::LatticeFormat<fit::TwoBits, 16, 31, fit::Signs::even> {};
template <>
struct FormatOf<math::BlockIQ2_S> : fit::LatticeFormat<fit::TwoBits, 16, 31, fit::Signs::all> {};
template <>
struct FormatOf<math::BlockIQ3_XXS> : fit::LatticeFormat<fit::ThreeBits, 32, 31, fit::Signs::even> {
};
template <>
struct FormatOf<math::BlockIQ3_S> : fit::LatticeFormat<fit::OddThreeBits, 32, 31, fit::Signs::all> {
};
template <>
struct FormatOf<math::BlockIQ1_S> : fit::LatticeFormat<fit::OneBit, 32, 15, fit::Signs::none, 32> {
};
template <>
struct FormatOf<math::BlockIQ1_M> : fit::LatticeFormat<fit::OneBit, 16, 15, fit::Signs::none, 8> {};
template <class Block>
using LatticeOf = fit::Lattice<FormatOf<Block>>;

/// The stored s of the factor 2·s + 1 of a part.
template <class F>
u32 stored_factor(const fit::Lattice<F>& block, int part) {
  return (static_cast<u32>(static_cast<math::i32>(block.factors[part])) - 1) / 2;
}
/// Entry i of a superblock.
template <class F>
u32 entry_of(const fit::Lattice<F>& block, int i) {
  return block.parts[i / F::kGroups].entries[i % F::kGroups];
}

/// Writes four times seven signs of a part and its s as a little-endian word.
template <class F>
void write_sign_word(const fit::Lattice<F>& block, int part, u8* out) {
  u32 word = stored_factor(block, part) << 28;
  for (int i = 0; i < 4; ++i) word |= (block.negative[4 * part + i] & 127u) << 7 * i;
  for (int i = 0; i < 4; ++i) out[i] = static_cast<u8>(word >> 8 * i);
}
/// Two s of parts of 16 values.
template <class F>
u8 two_factors(const fit::Lattice<F>& block, int i) {
  return static_cast<u8>(stored_factor(block, 2 * i) | stored_factor(block, 2 * i + 1) << 4);
}

void pack(const LatticeOf<math::BlockIQ2_XXS>& block, math::BlockIQ2_XXS* out) {
  out->d = math::from_f32<f16>(block.d);
  for (int part = 0; part < 8; ++part) {
    u8* const to = out->qs + 8 * part;
    for (int i = 0; i < 4; ++i) to[i] = static_cast<u8>(entry_of(block, 4 * part + i));
    write_sign_word(block, part, to + 4);
  }
}

void pack(const LatticeOf<math::BlockIQ2_XS>& block, math::BlockIQ2_XS* out) {
  out->d = math::from_f32<f16>(block.d);
  for (int i = 0; i < 32; ++i) {
    out->qs[i] = static_cast<u16>(entry_of(block, i) | (block.negative[i] & 127u) << 9);
  }
  for (int i = 0; i < 8; ++i) out->scales[i] = two_factors(block, i);
}

void pack(const LatticeOf<math::BlockIQ2_S>& block, math::BlockIQ2_S* out) {
  out->d = math::from_f32<f16>(block.d);
  for (int i = 0; i < 32; ++i) {
    out->qs[i] = static_cast<u8>(entry_of(block, i));
    out->signs[i] = block.negative[i];
  }
  for (int i = 0; i < 8; ++i) {
    u32 high = 0;
    for (int j = 0; j < 4; ++j) high |= entry_of(block, 4 * i + j) >> 8 << 2 * j;
    out->qh[i] = static_cast<u8>(high);
    out->scales[i] = two_factors(block, i);
  }
}

void pack(const LatticeOf<math::BlockIQ3_XXS>& block, math::BlockIQ3_XXS* out) {
  out->d = math::from_f32<f16>(block.d);
  for (int i = 0; i < 64; ++i) out->qs[i] = static_cast<u8>(entry_of(block, i));
  for (int part = 0; part < 8; ++part) write_sign_word(block, part, out->words + 4 * part);
}

void pack(const LatticeOf<math::BlockIQ3_S>& block, math::BlockIQ3_S* out) {
  out->d = math::from_f32<f16>(block.d);
  for (int i = 0; i < 64; ++i) out->qs[i] = static_cast<u8>(entry_of(block, i));
  for (int i = 0; i < 32; ++i) out->signs[i] = block.negative[i];
  for (int i = 0; i < 8; ++i) {
    u32 high = 0;
    for (int j = 0; j < 8; ++j) high |= entry_of(block, 8 * i + j) >> 8 << j;
    out->qh[i] = static_cast<u8>(high);
  }
  for (int i = 0; i < 4; ++i) out->scales[i] = two_factors(block, i);
}

void pack(const LatticeOf<math::BlockIQ1_S>& block, math::BlockIQ1_S* out) {
  out->d = math::from_f32<f16>(block.d);
  for (int i = 0; i < 32; ++i) out->qs[i] = static_cast<u8>(entry_of(block, i));
  for (int part = 0; part < 8; ++part) {
    u32 word = stored_factor(block, part) << 12;
    for (int i = 0; i < 4; ++i) word |= entry_of(block, 4 * part + i) >> 8 << 3 * i;
    if (block.parts[part].shifts[0] < 0.0f) word |= 0x8000;
    out->qh[part] = static_cast<u16>(word);
  }
}

void pack(const LatticeOf<math::BlockIQ1_M>& block, math::BlockIQ1_M* out) {
  const u32 d = math::from_f32<f16>(block.d).bits;
  for (int i = 0; i < 32; ++i) out->qs[i] = static_cast<u8>(entry_of(block, i));
  for (int part = 0; part < 16; ++part) {
    u32 high = 0;
    for (int i = 0; i < 2; ++i) {
      const u32 minus = block.parts[part].shifts[i] < 0.0f ? 8 : 0;
      high |= (entry_of(block, 2 * part + i) >> 8 | minus) << 4 * i;
    }
    out->qh[part] = static_cast<u8>(high);
  }
  for (int i = 0; i < 4; ++i) {
    u32 word = (d >> 4 * i & 15) << 12;
    for (int j = 0; j < 4; ++j) word |= stored_factor(block, 4 * i + j) << 3 * j;
    out->scales[i] = static_cast<u16>(word);
  }
}

template <class Block, DType dtype>
void search_blocks(const float* x, const float* w, int64_t blocks, uint8_t* out) {
  const Neighbours book = neighbours_of(dtype);
  for (int64_t b = 0; b < blocks; ++b) {
    LatticeOf<Block> found;
    fit::search_lattice<FormatOf<Block>>(book, x + 256 * b, w + 256 * b, &found);
    Block block;
    pack(found, &block);
    __builtin_memcpy(out + b * static_cast<int64_t>(sizeof block), &block, sizeof block);
  }
}

template <class Block, DType dtype, math::CodeTable code>
constexpr SearchBlocks search_of() {
  if constexpr (code == math::CodeTable::codebook) {
    return search_blocks<Block, dtype>;
  } else {
    return nullptr;
  }
}

constexpr SearchKernels make_table() {
  SearchKernels table{};
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, ...) \
  table.blocks[quant_index(DType::name)] =                                     \
      search_of<math::Block##Type, DType::name, math::CodeTable::code>();
#include "wick/math/quants.def"
  return table;
}

}  // namespace

constexpr SearchKernels lattice_kernels = make_table();

}  // namespace wick::cpu::WICK_ISA
