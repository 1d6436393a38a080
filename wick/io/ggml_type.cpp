#include "wick/io/ggml_type.h"

#include <fmt/format.h>

#include <array>

namespace wick::io {
namespace {

constexpr GgmlType row(uint32_t number, DType dtype) {
  return {number, name(dtype), info(dtype).block_elems, info(dtype).block_bytes, dtype};
}

// The gaps are types that the format has withdrawn.
constexpr std::array kTypes = {
#define WICK_QUANT(name, Type, number, ...) row(number, DType::name),
#include "wick/math/quants.def"
    row(0, DType::f32),  row(1, DType::f16),   GgmlType{24, "i8", 1, 1, std::nullopt},
    row(25, DType::i16), row(26, DType::i32),  row(27, DType::i64),
    row(28, DType::f64), row(30, DType::bf16),
};

}  // namespace

const GgmlType* find_ggml_type(uint32_t number) {
  for (const GgmlType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::optional<uint32_t> ggml_type_number(DType dtype) {
  for (const GgmlType& type : kTypes) {
    if (type.dtype == dtype) return type.number;
  }
  return std::nullopt;
}

std::string ggml_type_name(uint32_t number) {
  const GgmlType* type = find_ggml_type(number);
  return type != nullptr ? std::string(type->name) : fmt::format("type {}", number);
}

}  // namespace wick::io
