#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// Element types: ten real dtypes, the GGML block types in their file layout, and bool.
enum class DType : uint8_t {
#define WICK_DTYPE(name, block_elems, block_bytes, kind) name,
#define WICK_STORED_DTYPE(name, text, dtype) name,
#include "wick/base/dtypes.def"
};

enum class DTypeKind : uint8_t { unsigned_integer, signed_integer, floating, block, boolean };

/// One constexpr row of the dtype table. A real dtype is a block of one element.
struct DTypeInfo {
  std::string_view name;
  int32_t block_elems;
  int32_t block_bytes;
  DTypeKind kind;
};

inline constexpr std::array kDTypes = {
#define WICK_DTYPE(name, block_elems, block_bytes, kind) \
  DTypeInfo{#name, block_elems, block_bytes, DTypeKind::kind},
#define WICK_STORED_DTYPE(name, text, as) DTypeInfo{text, 1, 1, DTypeKind::name},
#include "wick/base/dtypes.def"
};

/// kDTypeCount counts all dtypes, kRealDTypeCount the dtypes that kernels compute in, which come
/// first.
inline constexpr int kDTypeCount = static_cast<int>(kDTypes.size());
inline constexpr int kRealDTypeCount = static_cast<int>(DType::f8e4m3) + 1;

static_assert(kDTypeCount <= 64, "DTypeSet has a bit for each");

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }
constexpr std::string_view name(DType dtype) { return info(dtype).name; }
constexpr bool is_block(DType dtype) { return info(dtype).kind == DTypeKind::block; }
constexpr bool is_float(DType dtype) { return info(dtype).kind == DTypeKind::floating; }
constexpr bool is_integer(DType dtype) {
  return info(dtype).kind == DTypeKind::unsigned_integer ||
         info(dtype).kind == DTypeKind::signed_integer;
}
/// The dtype that backends see for this one; see WICK_STORED_DTYPE.
constexpr DType stored(DType dtype) {
#define WICK_STORED_DTYPE(name, text, as) \
  if (dtype == DType::name) return DType::as;
#include "wick/base/dtypes.def"
  return dtype;
}

/// Bytes of `elems` elements; elems must be a multiple of the dtype's block.
constexpr int64_t bytes_of(DType dtype, int64_t elems) {
  return elems / info(dtype).block_elems * info(dtype).block_bytes;
}

/// Bytes of an element; of block dtypes a part of their block's bytes.
constexpr double bytes_per_element(DType dtype) {
  return static_cast<double>(info(dtype).block_bytes) /
         static_cast<double>(info(dtype).block_elems);
}

/// Returns the dtype with this name, in upper or lower case, or nothing if there is none.
WICK_API std::optional<DType> parse_dtype(std::string_view text);

/// A set of dtypes, for the rows of ops.def.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  template <class... D>
  static constexpr DTypeSet of(D... dtypes) {
    DTypeSet set;
    ((set.bits_ |= uint64_t{1} << static_cast<int>(dtypes)), ...);
    return set;
  }
  constexpr bool contains(DType dtype) const {
    return ((bits_ >> static_cast<int>(dtype)) & 1u) != 0;
  }
  friend constexpr bool operator==(DTypeSet a, DTypeSet b) = default;
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) {
    DTypeSet set;
    set.bits_ = a.bits_ | b.bits_;
    return set;
  }

 private:
  uint64_t bits_ = 0;
};

namespace dtypes {
inline constexpr DTypeSet kIntegers =
    DTypeSet::of(DType::u8, DType::u32, DType::i16, DType::i32, DType::i64);
inline constexpr DTypeSet kFloats =
    DTypeSet::of(DType::bf16, DType::f16, DType::f32, DType::f64, DType::f8e4m3);
inline constexpr DTypeSet kReal = kIntegers | kFloats;
/// kAny: the real dtypes and bool. kBits: the integers and bool.
inline constexpr DTypeSet kAny = kReal | DTypeSet::of(DType::boolean);
inline constexpr DTypeSet kBits = kIntegers | DTypeSet::of(DType::boolean);
inline constexpr DTypeSet kIds = DTypeSet::of(DType::u8, DType::u32, DType::i32, DType::i64);
inline constexpr DTypeSet kConditions =
    DTypeSet::of(DType::boolean, DType::u8, DType::u32, DType::i64);
inline constexpr DTypeSet kActivations = DTypeSet::of(DType::bf16, DType::f16, DType::f32);
/// kBlocks: all block dtypes. kOwnProducts: those that `linear` has dedicated kernels for.
inline constexpr DTypeSet kBlocks = DTypeSet()
#define WICK_QUANT(name, ...) | DTypeSet::of(DType::name)
#include "wick/math/quants.def"
    ;
inline constexpr DTypeSet kOwnProducts = DTypeSet()
#define WICK_OWN_QUANT(name, ...) | DTypeSet::of(DType::name)
#include "wick/math/quants_by_products.def"
    ;
/// The block dtypes that wick can make. kWrittenBlocks: by the op `quantize`. kSearched: by a
/// search (backend/cpu/search); those of `quantize` with 8 bits gain nothing from it.
inline constexpr DTypeSet kWrittenBlocks = DTypeSet()
#define WICK_OF_written(name) | DTypeSet::of(DType::name)
#define WICK_OF_searched(name)
#define WICK_OF_read(name)
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, reach)                                    \
  WICK_OF_##writes(name)
#include "wick/math/quants.def"
#undef WICK_OF_written
#undef WICK_OF_searched
#undef WICK_OF_read
    ;
inline constexpr DTypeSet kSearched = DTypeSet()
#define WICK_OF_written(name, bits) | ((bits) < 8 ? DTypeSet::of(DType::name) : DTypeSet())
#define WICK_OF_searched(name, bits) | DTypeSet::of(DType::name)
#define WICK_OF_read(name, bits)
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, reach)                                    \
  WICK_OF_##writes(name, bits)
#include "wick/math/quants.def"
#undef WICK_OF_written
#undef WICK_OF_searched
#undef WICK_OF_read
    ;
/// kWeights: dtypes that a weight of `linear` may have. kWritten: dtypes to which the ops `cast`
/// and `quantize` convert weights. kWeightFiles: dtypes of the weights in files that `wick
/// quantize` writes.
inline constexpr DTypeSet kWeights = DTypeSet::of(DType::f32, DType::f16, DType::bf16) | kBlocks;
inline constexpr DTypeSet kWritten =
    DTypeSet::of(DType::f32, DType::f16, DType::bf16) | kWrittenBlocks;
inline constexpr DTypeSet kWeightFiles = kWritten | kSearched;
}  // namespace dtypes

/// The names of a set in the table's order, for example "f32, f16 or bf16"; `last` comes before the
/// last name.
WICK_API std::string names(DTypeSet set, std::string_view last = "or");

}  // namespace wick
