#pragma once

// Convolutions as implicit gemms: the places of rows and terms in the operands' memory, and the
// epilogue. There is no im2col: operands are never copied to matrices.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"
#include "wick/backend/gpu/kernels/spatial/conv_abi.h"

namespace wick::gpu {

/// A gemm of the batch. One thread computes it for its thread block, in shared memory.
struct ConvPlace {
  i64 a, b, out;  ///< the first elements
  i64 start[2];   ///< ConvAxis::start
  u32 axis_rows[2], axis_terms[2];
  u32 rows, terms, first_term;
};

/// The digits (outer, h, w) of the index of a row or a term; w is the fastest one. `sizes`: of h
/// and w.
struct ConvDigits {
  u32 outer, h, w;
  WICK_DEVICE ConvDigits(u32 index, const u32 (&sizes)[2]) {
    const u32 rest = index / sizes[1];
    w = index - rest * sizes[1];
    outer = rest / sizes[0];
    h = rest - outer * sizes[0];
  }
};

/// Sets the sizes and the start of an axis for a phase, and adds the offsets of the phase's first
/// tap and output.
WICK_DEVICE void resolve_phase(ConvPlace& place, const ConvPhases& p, u32 axis, u32 phase) {
  const i64 target = (phase + p.padding) % p.stride, step = p.dilation % p.stride;
  u32 tap = 0;  // the first tap of the phase
  for (i64 at = 0; at != target && tap < p.taps; ++tap) {
    at += step;
    if (at >= p.stride) at -= p.stride;
  }
  place.axis_terms[axis] = tap < p.taps ? (p.taps - 1 - tap) / p.tap_step + 1 : 0;
  place.axis_rows[axis] = static_cast<u32>((p.outputs - phase + p.stride - 1) / p.stride);
  place.start[axis] = (phase + p.padding - tap * p.dilation) / p.stride;
  place.a += tap * p.a_tap;
  place.out += phase * p.out_tap;
}

/// The tile of a thread block, of a_rows by b_rows, in a gemm of the batch. Adjacent thread blocks
/// take the same tile of all phases, whose results are neighbours in memory.
struct ConvBlock {
  u32 phase;
  TilePlace tile;

  WICK_DEVICE ConvBlock(const ConvGemm& p, u32 a_rows, u32 b_rows)
      : phase(p.first_phase + block_index() % p.phases_at_once),
        tile(block_index() / p.phases_at_once, (p.m + a_rows - 1) / a_rows,
             (p.most_rows + b_rows - 1) / b_rows) {}
};

/// Finds the gemm of a thread block.
WICK_DEVICE void resolve(ConvPlace& place, const ConvGemm& p, const ConvBlock& block) {
  const u32 of_w = p.phases[1].count > 1 ? p.phases[1].count : 1;
  const u32 phase[2] = {block.phase / of_w, block.phase % of_w};
  const u32 matrix = p.first + block.tile.matrix;
  const u32 group = matrix / p.slabs, slab = matrix - group * p.slabs;
  place.a = group * p.a_group;
  place.b = group * p.b_group;
  place.out = group * p.out_group + slab * p.out_slab;
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    place.axis_rows[i] = p.axis[i].rows;
    place.axis_terms[i] = p.axis[i].terms;
    place.start[i] = p.axis[i].start;
    if (p.phases[i].count != 0) resolve_phase(place, p.phases[i], i, phase[i]);
  }
  place.rows = p.outer_rows * place.axis_rows[0] * place.axis_rows[1];
  const u32 terms = p.outer_terms * place.axis_terms[0] * place.axis_terms[1];
  place.first_term = p.slabs == 1 ? 0 : slab * p.slab_terms;
  // Phases of few taps may have fewer slabs than others. Further slabs have no terms: sums of zero.
  const u32 left = place.first_term < terms ? terms - place.first_term : 0;
  place.terms = left < p.slab_terms ? left : p.slab_terms;
}

/// Offsets of a term in a and b, and its distance in positions of the image. Int is i32 if all of
/// them fit.
template <class Int>
struct alignas(16) ConvTerm {
  Int a, b, y, x;

  /// Term number `index` of the gemm.
  WICK_DEVICE static ConvTerm of(const ConvGemm& p, const ConvPlace& place, u32 index) {
    ConvDigits at(place.first_term + index, place.axis_terms);
    if (p.packed != 0) {  // the outer digit is the fastest one
      const u32 term = place.first_term + index, tap = term / p.outer_terms;
      at.outer = term - tap * p.outer_terms;
      at.h = tap / place.axis_terms[1];
      at.w = tap - at.h * place.axis_terms[1];
    }
    const i64 y = at.h * p.axis[0].term_step, x = at.w * p.axis[1].term_step;
    const i64 a = at.outer * p.a_outer + at.h * p.axis[0].a_step + at.w * p.axis[1].a_step;
    const i64 b = at.outer * p.b_outer + y * p.axis[0].b_step + x * p.axis[1].b_step;
    return {static_cast<Int>(a), static_cast<Int>(b), static_cast<Int>(y), static_cast<Int>(x)};
  }
};

/// A tile's terms. `table`, in shared memory, holds kTermsAtOnce terms, the first of which is a
/// multiple of kTermsAtOnce.
template <class Int>
struct ConvTerms {
  ConvTerm<Int>* table;
  const ConvGemm& p;
  const ConvPlace& place;

  /// Fills the table if `first` is its first term. All threads call it for each slab, before they
  /// use the slab's terms; `first` is the slab's first term.
  WICK_DEVICE void prepare(u32 first) const {
    if (first % kTermsAtOnce != 0) return;
    sync();
    for (u32 i = thread_index(); i < kTermsAtOnce; i += block_threads()) {
      const bool there = first + i < place.terms;
      table[i] = there ? ConvTerm<Int>::of(p, place, first + i) : ConvTerm<Int>{};
    }
    sync();
  }
  WICK_DEVICE const ConvTerm<Int>& operator[](u32 term) const { return table[term % kTermsAtOnce]; }
};

/// A tile's rows of a or of b, beginning with row `first`.
template <class T, class Int>
struct ConvRows {
  const T* data;
  const ConvTerms<Int>& terms;
  u32 first;
};

/// The sizes of an image along h and w.
template <class Int>
struct ConvImage {
  Int h, w;

  WICK_DEVICE explicit ConvImage(const ConvGemm& p)
      : h(static_cast<Int>(p.axis[0].size)), w(static_cast<Int>(p.axis[1].size)) {}
  /// Whether a position lies inside the image.
  WICK_DEVICE bool has(Int y, Int x) const {
    if constexpr (sizeof(Int) == 4) {
      return (static_cast<u32>(y) < static_cast<u32>(h)) &
             (static_cast<u32>(x) < static_cast<u32>(w));
    } else {
      return (static_cast<u64>(y) < static_cast<u64>(h)) &
             (static_cast<u64>(x) < static_cast<u64>(w));
    }
  }
};

/// The place of a row of a. Indices past the last row are clamped to it.
template <class T, class Int>
struct ConvRowOfA {
  static constexpr bool kIsA = true;
  const T* at;

  WICK_DEVICE void locate(const ConvRows<T, Int>& from, u32 row) {
    const ConvGemm& p = from.terms.p;
    row += from.first;
    at = from.data + from.terms.place.a + (row < p.m ? row : p.m - 1) * p.a_row;
  }
  WICK_DEVICE bool has(const ConvTerm<Int>&, const ConvImage<Int>&) const { return true; }
  WICK_DEVICE const T* operator[](const ConvTerm<Int>& term) const { return at + term.a; }
};

/// The place of a row of b: the element and the position of a term with distance 0. Rows past the
/// last one get a position outside the image.
template <class T, class Int>
struct ConvRowOfB {
  static constexpr bool kIsA = false;
  const T* at;
  Int y, x;

  WICK_DEVICE void locate(const ConvRows<T, Int>& from, u32 row) {
    const ConvPlace& place = from.terms.place;
    row += from.first;
    const bool there = row < place.rows;
    locate(from.data, from.terms.p, place, ConvDigits(there ? row : 0, place.axis_rows), there);
  }
  /// there: false for rows behind the last one.
  WICK_DEVICE void locate(const T* data, const ConvGemm& p, const ConvPlace& place,
                          const ConvDigits& digits, bool there) {
    const i64 h = place.start[0] + digits.h * p.axis[0].row_step,
              w = place.start[1] + digits.w * p.axis[1].row_step;
    at = data + place.b + digits.outer * p.b_row + h * p.axis[0].b_step + w * p.axis[1].b_step;
    y = there ? static_cast<Int>(h) : static_cast<Int>(i64{-1} << (8 * sizeof(Int) - 2));
    x = static_cast<Int>(w);
  }
  WICK_DEVICE bool has(const ConvTerm<Int>& term, const ConvImage<Int>& image) const {
    return image.has(y + term.y, x + term.x);
  }
  WICK_DEVICE const T* operator[](const ConvTerm<Int>& term) const { return at + term.b; }
};

/// The offset of a row of b in out.
WICK_DEVICE i64 offset_in_out(const ConvGemm& p, const ConvPlace& place, const ConvDigits& row) {
  return place.out + row.outer * p.out_outer + row.h * p.axis[0].out_step +
         row.w * p.axis[1].out_step;
}

/// Stores a tile's sums. columns: kN elements of shared memory, for the columns' offsets in out.
template <class T, class Loop>
WICK_DEVICE void store_conv(const Loop& loop, void* out, const ConvGemm& p, const ConvPlace& place,
                            u32 first_m, u32 first_n, i64* columns) {
  using Sum = typename Loop::Sum;
  for (u32 c = thread_index(); c < Loop::kN; c += block_threads()) {
    columns[c] = offset_in_out(p, place, ConvDigits(first_n + c, place.axis_rows));
  }
  sync();
  loop.each([&](u32 row, u32 column, const Sum* sums) {
    const u32 m = first_m + row, n = first_n + column;
    if (m >= p.m || n >= place.rows) return;
    const i64* const at = columns + column;
    const i64 start = m * p.out_m;
    if (p.partial != 0) {
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        if (n + j < place.rows) static_cast<Sum*>(out)[start + at[j]] = sums[j];
      }
      return;
    }
    T* const to = static_cast<T*>(out) + start;
    const bool whole = n + 3 < place.rows && at[1] == at[0] + 1 && at[2] == at[0] + 2 &&
                       at[3] == at[0] + 3 &&
                       reinterpret_cast<u64>(to + at[0]) % (4 * sizeof(T)) == 0;
    if (sizeof(T) <= 4 && whole) {
      const Compute<T> four[4] = {sums[0], sums[1], sums[2], sums[3]};
      store_vec<T, 4>(to + at[0], Vec<T, 4>::of(four));
      return;
    }
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      if (n + j < place.rows) to[at[j]] = narrow<T>(sums[j]);
    }
  });
}

/// The body of a kernel: finds the gemm and the tile of the thread block, calls multiply(rows of a,
/// rows of b, k) and stores the loop's sums. `loop` has kM by kN of them.
template <class T, class Element, class Int, class Loop, class Multiply>
WICK_DEVICE void conv_tile(Loop& loop, const ConvArgs& args, const Multiply& multiply) {
  WICK_SHARED ConvPlace place;
  WICK_SHARED ConvTerm<Int> table[kTermsAtOnce];
  WICK_SHARED i64 columns[Loop::kN];
  const ConvGemm& p = args.gemm;
  pdl_launch_dependents();
  const ConvBlock block(p, Loop::kM, Loop::kN);
  if (thread_index() == 0) resolve(place, p, block);
  sync();
  const u32 first_m = block.tile.row * Loop::kM, first_n = block.tile.column * Loop::kN;
  if (first_n >= place.rows) return;
  const ConvTerms<Int> terms = {table, p, place};
  pdl_wait();
  multiply(ConvRows<Element, Int>{static_cast<const Element*>(args.a), terms, first_m},
           ConvRows<Element, Int>{static_cast<const Element*>(args.b), terms, first_n},
           place.terms);
  store_conv<T>(loop, args.out, p, place, first_m, first_n, columns);
}

}  // namespace wick::gpu
