#pragma once

// The properties of block dtypes that wick/math/quants.def declares.

#include <array>
#include <cstdint>

#include "wick/base/dtype.h"

namespace wick {

enum class QuantScale : uint8_t { f16, f32, e8m0, e4m3, nibbles };

/// A row of quants.def, which explains the columns.
struct QuantInfo {
  DType dtype;
  uint32_t number;
  int bits, offset, part;
  QuantScale scale;
  int at, minimum_at;
  int reach;

  constexpr bool has_minimum() const { return minimum_at >= 0; }
};

inline constexpr std::array kQuants = {
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, reach)                                    \
  QuantInfo{DType::name, number, bits, offset, part, QuantScale::scale, at, minimum_at, reach},
#include "wick/math/quants.def"
};

inline constexpr int kBlockDTypeCount = static_cast<int>(kQuants.size());
/// The index in kQuants; block dtypes follow the real dtypes in DType.
constexpr size_t quant_index(DType dtype) { return static_cast<size_t>(dtype) - kRealDTypeCount; }
constexpr const QuantInfo& quant(DType dtype) { return kQuants[quant_index(dtype)]; }

static_assert(kQuants[0].dtype == static_cast<DType>(kRealDTypeCount) &&
              quant(kQuants.back().dtype).dtype == kQuants.back().dtype);
static_assert([] {
  for (const QuantInfo& row : kQuants) {
    if ((row.reach > 0) != dtypes::kWeightFiles.contains(row.dtype)) return false;
  }
  return true;
}());

}  // namespace wick
