#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
    iq4,
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
  enum class Role : uint8_t { other, embedding, output, value, key, attention_output, down };
  Role role_of(std::string_view name) const;
  DType of_values(std::string_view name) const;
  DType of_down(int64_t layer) const;
  DType of_attention_output() const;
  DType of_output() const;

  FileType type_;
  bool has_importance_, tied_;
  int64_t layers_ = 0, experts_ = 0, queries_per_value_ = 1;
  std::vector<int64_t> value_layers_;  // of the weights that make values, ascending
  bool is_70b_ = false;
};

}  // namespace wick::io
