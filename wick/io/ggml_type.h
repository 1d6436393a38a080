#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wick/base/dtype.h"
#include "wick/base/export.h"

namespace wick::io {

/// A tensor type of the GGUF format. Tensors of types without a dtype can be listed but not read.
struct GgmlType {
  uint32_t number;
  std::string_view name;
  int32_t block_elems;
  int32_t block_bytes;
  std::optional<DType> dtype;
};

/// Returns the type with a number; null if the format doesn't define the number.
WICK_API const GgmlType* find_ggml_type(uint32_t number);

/// Returns the type number of a dtype in files; nothing for u8, u32 and f8e4m3.
WICK_API std::optional<uint32_t> ggml_type_number(DType dtype);

/// Returns the type's name, for example "q4_1", or "type 99" for an undefined number.
WICK_API std::string ggml_type_name(uint32_t number);

}  // namespace wick::io
