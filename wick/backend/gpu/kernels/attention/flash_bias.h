#pragma once

// The terms that kernels of the bound form add to scores: the masks and ALiBi slopes of the rows
// that a lane holds; and the sinks of these rows. Kernels without terms and sinks use
// LaneBias<Lanes, NoBias>, which is empty.

#include "wick/backend/gpu/kernels/attention/attention_bias.h"

namespace wick::gpu {

/// The elements of a mask for neighbouring keys, loaded at once. The address is a multiple of the
/// vector's bytes.
template <class M, u32 kN>
WICK_DEVICE Vec<M, kN> load_mask(const M* from) {
  if constexpr (sizeof(M) * kN < 4) {  // Vec fills a word
    Vec<M, kN> x;
    if constexpr (sizeof(M) * kN == 1) {
      x.w[0] = *reinterpret_cast<const u8*>(from);
    } else {
      x.w[0] = *reinterpret_cast<const u16*>(from);
    }
    return x;
  } else {
    return load_whole(reinterpret_cast<const Vec<M, kN>*>(from));
  }
}

/// The terms of the rows that a lane holds. flash_rows.h describes Lanes.
template <class Lanes, class Bias>
struct LaneBias;

template <class Lanes>
struct LaneBias<Lanes, NoBias> {
  static constexpr bool kAdds = false;
  WICK_DEVICE explicit LaneBias(const NoBias&) {}
  template <class Rows>
  WICK_DEVICE void find(const Rows&) {}
  WICK_DEVICE void forget_rows() {}
  WICK_DEVICE bool may_hide() const { return false; }
  WICK_DEVICE bool hides_all(float) const { return false; }
};

template <class Lanes>
struct LaneBias<Lanes, ScoreBias> {
  static constexpr bool kAdds = true;
  static constexpr u32 kRows = Lanes::kRows, kNeighbours = Lanes::kNeighbours;

  const ScoreBias& of;
  i64 mask_row[kRows];  // the mask's element for key 0

  WICK_DEVICE explicit LaneBias(const ScoreBias& bias) : of(bias) {}

  /// Finds the rows of the mask.
  template <class Rows>
  WICK_DEVICE void find(const Rows& rows) {
    if (of.mask == nullptr) return;
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      const HeadQuery at(rows, i);
      mask_row[i] = rows.batch * of.mask_batch + at.head * of.mask_head + at.query * of.mask_query;
    }
  }
  /// Makes the compiler forget what it has computed from the rows, such as addresses for each dtype
  /// of the mask.
  WICK_DEVICE void forget_rows() {
#pragma unroll
    for (i64& row : mask_row) {
      u32 low = static_cast<u32>(row), high = static_cast<u32>(static_cast<u64>(row) >> 32);
      forget(low), forget(high);
      row = static_cast<i64>(u64{high} << 32 | low);
    }
  }
  WICK_DEVICE bool may_hide() const { return of.mask != nullptr; }
  /// Whether the mask hides all keys of a row with this sum of exponentials.
  WICK_DEVICE bool hides_all(float sum) const { return sees_nothing(of, sum); }
  WICK_DEVICE bool has_sinks() const { return of.sinks != nullptr; }
  /// The sink of the lane's i-th row.
  template <class Rows>
  WICK_DEVICE float sink(const Rows& rows, u32 i) const {
    return sink_of(of, HeadQuery(rows, i).head);
  }

  /// Adds the terms of a tile of kKeys keys, the first of which is `from`, to scores. The mask has
  /// no elements for keys from rows.keys on.
  template <u32 kKeys, class Rows, u32 kCount>
  WICK_DEVICE void add(const Rows& rows, i32 from, float (&s)[kCount]) const {
    if (of.slopes != nullptr) add_slopes(rows, from, s);
    if (of.mask == nullptr) return;
    const i32 keys = static_cast<i32>(rows.keys);
    if (of.kind == kMaskHides) {
      add_mask<u8, kKeys>(from, keys, s);
    } else if (of.kind == kMaskF32) {
      add_mask<float, kKeys>(from, keys, s);
    } else if (of.kind == kMaskF16) {
      add_mask<f16, kKeys>(from, keys, s);
    } else {
      add_mask<bf16, kKeys>(from, keys, s);
    }
  }

 private:
  /// The distance of score e's key from that of score 0: a constant.
  WICK_DEVICE static u32 step(u32 e) { return Lanes::key(e) - Lanes::key(0); }

  /// The head and the query of a lane's row; of the last row if there are fewer rows.
  struct HeadQuery {
    u32 head, query;
    template <class Rows>
    WICK_DEVICE HeadQuery(const Rows& rows, u32 i) {
      const u32 row = rows.row_of(i) < rows.rows ? rows.row_of(i) : rows.rows - 1;
      head = rows.key_head * rows.c.group + row % rows.c.group;
      query = row / rows.c.group;
    }
  };

  /// Slopes and positions are found anew for each tile, because registers are scarce.
  template <class Rows, u32 kCount>
  WICK_DEVICE void add_slopes(const Rows& rows, i32 from, float (&s)[kCount]) const {
    float slope[kRows], first[kRows];  // first: the distance from the query to score 0's key
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      const HeadQuery at(rows, i);
      const u32 own = at.query + rows.keys - rows.c.queries;
      slope[i] = of.slopes[at.head * of.slope_step];
      first[i] = static_cast<float>(static_cast<i32>(from + Lanes::key(0) - own));
    }
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      const u32 i = Lanes::row_of(e);
      s[e] = fma(slope[i], first[i] + static_cast<float>(step(e)), s[e]);
    }
  }
  template <class M, u32 kKeys, u32 kCount>
  WICK_DEVICE void add_mask(i32 from, i32 keys, float (&s)[kCount]) const {
    const M* row[kRows];
    const i32 first = from + static_cast<i32>(Lanes::key(0));
    if (of.vectors != 0 && from + static_cast<i32>(kKeys) <= keys) {
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) row[i] = static_cast<const M*>(of.mask) + mask_row[i] + first;
#pragma unroll
      for (u32 e = 0; e < kCount; e += kNeighbours) {
        const Vec<M, kNeighbours> x = load_mask<M, kNeighbours>(row[Lanes::row_of(e)] + step(e));
#pragma unroll
        for (u32 j = 0; j < kNeighbours; ++j) s[e + j] = masked(s[e + j], x[j]);
      }
      return;
    }
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      row[i] = static_cast<const M*>(of.mask) + mask_row[i] + first * of.mask_key;
    }
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      if (first + static_cast<i32>(step(e)) >= keys) continue;
      s[e] = masked(s[e], widen(row[Lanes::row_of(e)][step(e) * of.mask_key]));
    }
  }
};

}  // namespace wick::gpu
