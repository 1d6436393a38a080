#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::io {

/// A choice of dtypes for the weights of a file: one dtype, or a mixture, in which some weights get
/// more bits than others.
struct FileType {
  std::string_view name;  ///< "q4_k_m"
  DType dtype;            ///< the dtype of most weights
  uint32_t number;        ///< general.file_type
  enum class Mix : uint8_t {
    none,
    plain,  // few exceptions
    q2_k,
    q2_k_s,
    q3_k_m,
    q3_k_l,
    q4_k_s,
    q4_k_m,
    q5_k_m,
    iq1,     // iq1_s, iq1_m
    iq2_xs,  // iq2_xxs, iq2_xs
    iq2_m,   // iq2_s, iq2_m
    iq3_xxs,
    iq3_xs,
    iq3_s,
    iq3_m,
    iq4,
    few_levels,  // tq1_0, tq2_0, q2_0
    mxfp4_moe,
  } mix = Mix::none;
};

/// All types, in the order of their sizes: the dtypes of dtypes::kWeightFiles, and mixtures.
WICK_API std::span<const FileType> file_types();
/// The type of a name in any case. Nothing if there is no such type.
WICK_API std::optional<FileType> find_file_type(std::string_view name);
/// The names of all types: "f32, f16, … or mxfp4".
WICK_API std::string file_type_names();
/// A file whose weights all have one dtype, except the output matrix. Nothing for dtypes
/// outside dtypes::kWeightFiles.
WICK_API std::optional<FileType> file_type_of(DType dtype);

/// The dtypes that a mixture gives to a model's weights. docs/quantize.md has the rule. Source:
/// llama.cpp, src/llama-quant.cpp.
class Mixture {
 public:
  /// `has_importance`: whether an importance matrix is used.
  Mixture(const ModelFile& model, const FileType& type, bool has_importance);

  /// The dtype that the weight [n, k] or [experts, n, k] should get, whatever its rows' length.
  DType dtype_of(const GgufTensor& weight) const;

 private:
  enum class Role : uint8_t {
    other,
    embedding,
    output,
    value,
    key,
    query,
    attention_output,
    gate_or_up,
    down
  };
  Role role_of(std::string_view name) const;
  bool is_low_bits() const;
  DType of_values(std::string_view name) const;
  DType of_keys() const;
  DType of_queries() const;
  DType of_gate_or_up(int64_t layer) const;
  DType of_down(std::string_view name) const;
  DType of_attention_output() const;
  DType of_output(int64_t k) const;
  DType of_embedding() const;

  FileType type_;
  bool has_importance_, tied_;
  int64_t layers_ = 0, experts_ = 0, queries_per_value_ = 1;
  std::vector<int64_t> value_layers_;  // of the weights that make values, ascending
  // The layers and names of the weights of ffn_down, in ascending order.
  std::vector<std::pair<int64_t, std::string>> downs_;
  bool is_70b_ = false;
};

}  // namespace wick::io
