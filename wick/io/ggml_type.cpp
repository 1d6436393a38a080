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
    row(0, DType::f32),
    row(1, DType::f16),
    GgmlType{16, "iq2_xxs", 256, 66, std::nullopt},
    GgmlType{17, "iq2_xs", 256, 74, std::nullopt},
    GgmlType{18, "iq3_xxs", 256, 98, std::nullopt},
    GgmlType{19, "iq1_s", 256, 50, std::nullopt},
    GgmlType{21, "iq3_s", 256, 110, std::nullopt},
    GgmlType{22, "iq2_s", 256, 82, std::nullopt},
    GgmlType{24, "i8", 1, 1, std::nullopt},
    row(25, DType::i16),
    row(26, DType::i32),
    row(27, DType::i64),
    row(28, DType::f64),
    GgmlType{29, "iq1_m", 256, 56, std::nullopt},
    row(30, DType::bf16),
    GgmlType{34, "tq1_0", 256, 54, std::nullopt},
    GgmlType{35, "tq2_0", 256, 66, std::nullopt},
    GgmlType{40, "nvfp4", 64, 36, std::nullopt},
    GgmlType{41, "q1_0", 128, 18, std::nullopt},
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
