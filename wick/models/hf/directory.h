#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wick/io/gguf.h"
#include "wick/models/hf/description.h"
#include "wick/models/hf/int4.h"
#include "wick/models/hf/naming.h"
#include "wick/models/hf/packed.h"
#include "wick/models/hf/shards.h"

namespace wick::models::hf {

/// A model's folder as Hugging Face's transformers writes it: config.json, safetensors files, and,
/// if they exist, tokenizer.json, tokenizer_config.json, chat_template.jinja and
/// generation_config.json, and modules.json with the folders that it names. Its keys and tensors
/// are those of the GGUF file that llama.cpp's converter makes of the folder, except that the
/// tokenizer is the text of tokenizer.json, under the key tokenizer.huggingface.json.
class Directory final : public io::ModelFile {
 public:
  /// Errors: a file is missing or invalid; the model_type isn't supported; a tensor has no place in
  /// the architecture; the shapes contradict the configuration.
  explicit Directory(const std::string& path);

  std::string format() const override;
  std::vector<std::string> files() const override;
  uint64_t file_bytes() const override;
  void require_unchanged(std::string_view op) const override;
  using ModelFile::tensor;
  Tensor tensor(const io::GgufTensor& tensor) const override;
  int64_t parts(const io::GgufTensor& tensor) const override;
  Tensor part(const io::GgufTensor& whole, int64_t index) const override;
  std::shared_ptr<const io::Bytes> mapped(const io::GgufTensor& tensor,
                                          int64_t part) const override;

 private:
  /// A tensor under its GGUF name.
  struct Target {
    std::string name;
    Form form = Form::same;
    bool adds_one = false;
    bool negates_exp = false;        // the values are -exp(x)
    std::vector<RowFactor> factors;  // of rows; empty: all are 1
    bool stacked = false;            // the sources are the parts of another dim, which is the first
    std::vector<Source> sources;     // empty: a tensor of `values`
    std::vector<float> values;
    std::vector<FormView> views;  // of each source
    DType dtype = DType::f32;
    Shape shape;
  };

  static bool changes_values(const Target& target) {
    return target.adds_one || target.negates_exp || !target.factors.empty();
  }
  void read_tensors(const Description& description);
  void check_tensors(const Description& description) const;
  void read_dense(const std::string& folder, const std::string& name, const Sizes& sizes);
  /// Sets the views, the dtype and the shape. Errors: the sources don't fit.
  void describe_target(Target& target, const Sizes& sizes) const;
  DType dtype_of(const Target& target, const Source& source) const;
  const Target& target_of(const io::GgufTensor& tensor) const;
  /// Whether a source's elements are those of the target, in their order.
  static bool is_mapped(const Target& target, size_t source);
  Tensor load(const Target& target, size_t source) const;
  Tensor load_part(const Target& target, int64_t index) const;

  std::shared_ptr<const io::Gguf> keys_;  // storage of keys and values
  Shards shards_;
  ScaleBlock scale_block_;
  Int4Config int4_;
  Sizes sizes_;
  std::vector<Target> targets_;  // of tensors()
};

}  // namespace wick::models::hf
