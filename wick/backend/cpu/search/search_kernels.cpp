// Quantisation of blocks with the least weighted error.
//
// Computes what fit.h, superblock.h and few_levels.h search, block by block, and packs the result.
// The bits don't depend on the instruction set. Bytes moved: each value and weight once in, each
// block once out.

#include "wick/backend/cpu/search/search_kernels.h"

#include "wick/backend/cpu/search/few_levels.h"
#include "wick/backend/cpu/search/superblock.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::f16;
using math::i8;
using math::u32;
using math::u8;
using math::detail::write_fifth_bits;
using math::detail::write_nibbles;

u32 integer(float x) { return static_cast<u32>(static_cast<math::i32>(x)); }
f16 half(float x) { return math::from_f32<f16>(x); }

/// 32 values with one scale: levels are integers from −offset on.
template <class Levels>
f16 search_scale(const float* x, const float* w, float* levels) {
  const float d = fit::to_f16(fit::fit_scale<Levels, 32>(x, w));
  fit::round_all<Levels, 32>(x, 0.0f, fit::finite_recip(d), levels);
  return half(d);
}

void search(const float* x, const float* w, math::BlockQ4_0* out) {
  float levels[32];
  u8 q[32];
  out->d = search_scale<fit::Integers<-8, 7>>(x, w, levels);
  for (int i = 0; i < 32; ++i) q[i] = static_cast<u8>(integer(levels[i] + 8.0f));
  write_nibbles(q, out->qs);
}

void search(const float* x, const float* w, math::BlockQ5_0* out) {
  float levels[32];
  u8 q[32];
  out->d = search_scale<fit::Integers<-16, 15>>(x, w, levels);
  for (int i = 0; i < 32; ++i) q[i] = static_cast<u8>(integer(levels[i] + 16.0f));
  write_nibbles(q, out->qs);
  write_fifth_bits(q, out->qh);
}

/// 32 values with a scale and a minimum of either sign. The levels are rounded for the stored d and
/// m.
template <int count>
void search_line(const float* x, const float* w, f16* d, f16* m, u8* q) {
  const fit::Line line = fit::fit_line<count, 32>(x, w, true);
  const float scale = fit::to_f16(line.scale), minimum = fit::to_f16(line.minimum);
  float levels[32];
  fit::round_all<fit::Integers<0, count>, 32>(x, minimum, fit::finite_recip(scale), levels);
  *d = half(scale);
  *m = half(-minimum);
  for (int i = 0; i < 32; ++i) q[i] = static_cast<u8>(integer(levels[i]));
}

void search(const float* x, const float* w, math::BlockQ4_1* out) {
  u8 q[32];
  search_line<15>(x, w, &out->d, &out->m, q);
  write_nibbles(q, out->qs);
}

void search(const float* x, const float* w, math::BlockQ5_1* out) {
  u8 q[32];
  search_line<31>(x, w, &out->d, &out->m, q);
  write_nibbles(q, out->qs);
  write_fifth_bits(q, out->qh);
}

/// The index of a level in a table of sixteen.
u8 index_in(const float* values, float level) {
  for (u8 i = 0; i < 16; ++i) {
    if (values[i] == level) return i;
  }
  return 0;
}

void search(const float* x, const float* w, math::BlockIQ4_NL* out) {
  float levels[32];
  u8 q[32];
  out->d = search_scale<fit::Entries<fit::NormalTable>>(x, w, levels);
  for (int i = 0; i < 32; ++i) q[i] = index_in(math::kNormalCode.values, levels[i]);
  write_nibbles(q, out->qs);
}

/// Tries the powers of two near the one with which the largest value is between 4 and 8, where
/// e2m1 ends at 6. Errors are compared in units of the smallest one, so they neither overflow nor
/// vanish.
void search(const float* x, const float* w, math::BlockMXFP4* out) {
  using Levels = fit::Entries<fit::E2m1Table>;
  const u32 bits = math::f32_bits(fit::abs(fit::largest_of<32>(x)));
  const int exponent = static_cast<int>(bits >> 23);  // 127 + log2, 0 for denormals
  float least = 0.0f, best[32] = {};
  int chosen = -1;
  for (int off = 0; off < 4; ++off) {
    const int e = exponent - 3 + off;
    if (e < 0 || e > 254) continue;
    math::BlockMXFP4 block{};
    block.e = static_cast<u8>(e);
    const float scale = math::scale_of(block, 0);
    float y[32], q[32];
    for (int i = 0; i < 32; ++i) y[i] = x[i] / scale;
    fit::round_all<Levels, 32>(y, 0.0f, 1.0f, q);
    const float unit = static_cast<float>(1 << off);
    const float error = fit::error_of<32>(y, w, q, 1.0f, 0.0f) * (unit * unit);
    if (chosen >= 0 && !(error < least)) continue;
    least = error;
    chosen = e;
    for (int i = 0; i < 32; ++i) best[i] = q[i];
  }
  u8 q[32];
  for (int i = 0; i < 32; ++i) q[i] = index_in(math::kE2m1Code.values, best[i]);
  out->e = static_cast<u8>(chosen < 0 ? 0 : chosen);
  write_nibbles(q, out->qs);
}

void search(const float* x, const float* w, math::BlockIQ4_XS* out) {
  fit::Scaled<32, 8> block;
  fit::search_scaled<fit::Entries<fit::NormalTable>, fit::Integers<-32, 31>>(x, w, &block);
  out->d = half(block.d);
  out->high = 0;
  for (int part = 0; part < 8; ++part) {
    const u32 f = integer(block.factors[part] + 32.0f);
    const u32 nibble = (f & 15) << part % 2 * 4;
    out->low[part / 2] = static_cast<u8>(part % 2 == 0 ? nibble : out->low[part / 2] | nibble);
    out->high = static_cast<math::u16>(out->high | f >> 4 << 2 * part);
    u8 q[32];
    for (int i = 0; i < 32; ++i) {
      q[i] = index_in(math::kNormalCode.values, block.levels[32 * part + i]);
    }
    write_nibbles(q, out->qs + 16 * part);
  }
}

/// Two bits of 256 values: value 128·n + 32·r + l in bits 2·r of byte 32·n + l.
void pack_two_bits(const u8* q, u8* out) {
  for (int l = 0; l < 64; ++l) {
    const u8* v = q + l / 32 * 128 + l % 32;
    out[l] = static_cast<u8>((v[0] & 3) | (v[32] & 3) << 2 | (v[64] & 3) << 4 | (v[96] & 3) << 6);
  }
}

void search(const float* x, const float* w, math::BlockQ2_K* out) {
  fit::Affine<16, 16> block;
  fit::search_affine<3, 15>(x, w, &block);
  out->d = half(block.d);
  out->dmin = half(block.dmin);
  u8 q[256];
  for (int i = 0; i < 256; ++i) q[i] = static_cast<u8>(integer(block.levels[i]));
  pack_two_bits(q, out->qs);
  for (int i = 0; i < 16; ++i) {
    out->scales[i] = static_cast<u8>(integer(block.factors[i]) | integer(block.minima[i]) << 4);
  }
}

void search(const float* x, const float* w, math::BlockQ3_K* out) {
  fit::Scaled<16, 16> block;
  fit::search_scaled<fit::Integers<-4, 3>, fit::Integers<-32, 31>>(x, w, &block);
  out->d = half(block.d);
  u8 q[256];
  for (int i = 0; i < 256; ++i) q[i] = static_cast<u8>(integer(block.levels[i] + 4.0f));
  pack_two_bits(q, out->qs);
  for (int l = 0; l < 32; ++l) {
    u32 bits = 0;
    for (int r = 0; r < 8; ++r) bits |= (u32{q[32 * r + l]} >> 2 & 1) << r;
    out->hmask[l] = static_cast<u8>(bits);
  }
  for (int i = 0; i < 12; ++i) out->scales[i] = 0;
  for (int part = 0; part < 16; ++part) {
    const u32 f = integer(block.factors[part] + 32.0f);
    u8& low = out->scales[part % 8];
    u8& high = out->scales[8 + part % 4];
    low = static_cast<u8>(low | (f & 15) << part / 8 * 4);
    high = static_cast<u8>(high | f >> 4 << part / 4 * 2);
  }
}

/// The scales, minima and low four bits that Q4_K and Q5_K share.
template <class Block>
void pack_pairs(const fit::Affine<32, 8>& block, Block* out) {
  out->d = half(block.d);
  out->dmin = half(block.dmin);
  math::SixBits pairs[8];
  for (int part = 0; part < 8; ++part) {
    pairs[part] = {static_cast<u8>(integer(block.factors[part])),
                   static_cast<u8>(integer(block.minima[part]))};
  }
  math::write_six_bits(pairs, out->scales);
  for (int i = 0; i < 128; ++i) {
    const float* levels = block.levels + i / 32 * 64 + i % 32;
    out->qs[i] = static_cast<u8>((integer(levels[0]) & 15) | (integer(levels[32]) & 15) << 4);
  }
}

void search(const float* x, const float* w, math::BlockQ4_K* out) {
  fit::Affine<32, 8> block;
  fit::search_affine<15, 63>(x, w, &block);
  pack_pairs(block, out);
}

void search(const float* x, const float* w, math::BlockQ5_K* out) {
  fit::Affine<32, 8> block;
  fit::search_affine<31, 63>(x, w, &block);
  pack_pairs(block, out);
  for (int l = 0; l < 32; ++l) {
    u32 bits = 0;
    for (int r = 0; r < 8; ++r) bits |= (integer(block.levels[32 * r + l]) >> 4) << r;
    out->qh[l] = static_cast<u8>(bits);
  }
}

void search(const float* x, const float* w, math::BlockQ6_K* out) {
  fit::Scaled<16, 16> block;
  fit::search_scaled<fit::Integers<-32, 31>, fit::Bytes>(x, w, &block);
  out->d = half(block.d);
  for (int i = 0; i < 16; ++i) out->scales[i] = static_cast<i8>(block.factors[i]);
  u8 q[256];
  for (int i = 0; i < 256; ++i) q[i] = static_cast<u8>(integer(block.levels[i] + 32.0f));
  math::detail::write_six_bit_quants(q, out);
}

void search(const float* x, const float* w, math::BlockQ1_0* out) {
  out->d = half(fit::to_f16(fit::fit_signs<128>(x, w)));
  for (int i = 0; i < 16; ++i) {
    u32 bits = 0;
    for (int l = 0; l < 8; ++l) bits |= (x[8 * i + l] < 0.0f ? 0u : 1u) << l;
    out->qs[i] = static_cast<u8>(bits);
  }
}

void search(const float* x, const float* w, math::BlockQ2_0* out) {
  const float d = fit::to_f16(fit::fit_two_bits<64>(x, w));
  out->d = half(d);
  float levels[64];
  fit::round_all<fit::Integers<-1, 2>, 64>(x, 0.0f, fit::finite_recip(d), levels);
  u8 q[64];
  for (int i = 0; i < 64; ++i) q[i] = static_cast<u8>(integer(levels[i] + 1.0f));
  for (int i = 0; i < 16; ++i) {
    out->qs[i] =
        static_cast<u8>(q[4 * i] | q[4 * i + 1] << 2 | q[4 * i + 2] << 4 | q[4 * i + 3] << 6);
  }
}

/// 256 values with one scale: q is 0, 1 or 2.
f16 search_ternary(const float* x, const float* w, u8* q) {
  const float d = fit::to_f16(fit::fit_ternary<256>(x, w));
  const float middle = d * 0.5f;
  for (int i = 0; i < 256; ++i) {
    q[i] = static_cast<u8>((x[i] > middle ? 1 : 0) + (x[i] < -middle ? 0 : 1));
  }
  return half(d);
}

void search(const float* x, const float* w, math::BlockTQ2_0* out) {
  u8 q[256];
  out->d = search_ternary(x, w, q);
  pack_two_bits(q, out->qs);
}

/// The byte of a number of five digits in base 3.
u8 byte_of(u32 number) { return static_cast<u8>((number * 256 + 242) / 243); }

void search(const float* x, const float* w, math::BlockTQ1_0* out) {
  u8 q[256];
  out->d = search_ternary(x, w, q);
  const auto number = [&](const u8* first, int stride) {
    u32 all = 0;
    for (int n = 0; n < 5; ++n) all = 3 * all + first[n * stride];
    return all;
  };
  for (int m = 0; m < 32; ++m) out->qs[m] = byte_of(number(q + m, 32));
  for (int m = 0; m < 16; ++m) out->qs[32 + m] = byte_of(number(q + 160 + m, 16));
  for (int m = 0; m < 4; ++m) {  // four digits; the fifth is 0
    const u8* const v = q + 240 + m;
    out->qh[m] = byte_of(3 * (27u * v[0] + 9u * v[4] + 3u * v[8] + v[12]));
  }
}

void search(const float* x, const float* w, math::BlockNVFP4* out) {
  for (int part = 0; part < 4; ++part) {
    float levels[16];
    out->scales[part] = fit::fit_e4m3(x + 16 * part, w + 16 * part, levels);
    u8 q[16];
    for (int i = 0; i < 16; ++i) q[i] = fit::DoubledE2m1::code(levels[i]);
    for (int j = 0; j < 8; ++j) out->qs[8 * part + j] = static_cast<u8>(q[j] | q[j + 8] << 4);
  }
}

template <class Block>
void search_blocks(const float* x, const float* w, int64_t blocks, uint8_t* out) {
  constexpr int kValues = math::kBlockValues<Block>;
  for (int64_t b = 0; b < blocks; ++b) {
    Block block;
    search(x + b * kValues, w + b * kValues, &block);
    __builtin_memcpy(out + b * static_cast<int64_t>(sizeof block), &block, sizeof block);
  }
}

template <class Block, DType dtype, math::CodeTable code>
constexpr SearchBlocks search_of() {
  // lattice_kernels.cpp searches the formats with codebooks.
  if constexpr (dtypes::kSearched.contains(dtype) && code != math::CodeTable::codebook) {
    return search_blocks<Block>;
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

constexpr SearchKernels search_kernels = make_table();

}  // namespace wick::cpu::WICK_ISA
