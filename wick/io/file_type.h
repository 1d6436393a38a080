#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

/// The type of a name in any case: a dtype of dtypes::kWritten or one that a search can make, or a
/// mixture. Nothing if there is no such type.
WICK_API std::optional<FileType> find_file_type(std::string_view name);
/// All types, the largest first.
WICK_API std::span<const FileType> file_types();
/// The names of all types: "f32, f16, … or mxfp4".
WICK_API std::string file_type_names();
/// The dtypes of file_types().
WICK_API DTypeSet file_dtypes();
/// A file whose weights all have one dtype, except the output matrix. Nothing if wick can't write
/// the dtype.
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

  const ModelFile& model_;
  FileType type_;
  bool has_importance_, tied_;
  int64_t layers_ = 0, experts_ = 0, queries_per_value_ = 1;
  bool is_70b_ = false;
};

}  // namespace wick::io
