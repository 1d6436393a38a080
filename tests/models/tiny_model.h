#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/shape.h"
#include "wick/io/gguf_writer.h"

namespace wick::test {

/// Pseudo-random values of a tensor: make_adapters.py has the same.
std::vector<float> random_values(const std::string& name, const Shape& shape, double low,
                                 double high);

/// A tiny model of an architecture as data/NAME.json describes it (see reference/make_models.py):
/// the keys and tensors that llama.cpp's converter writes, and the logits that transformers
/// computes. The weights are pseudo-random.
struct TinyModel {
  std::string name, architecture;
  std::vector<float> logits;            ///< of every fourth token of some_tokens(24), row by row
  int64_t tokens = 24;                  ///< whose logits were computed
  std::vector<int64_t> positions = {};  ///< of models in data/long, whose logits are these tokens'
  std::vector<float> embeddings;        ///< of models without logits: mean, first and last row

  // Changes to the described model.
  std::function<void(io::GgufWriter&)> edit = {};  ///< final changes of the metadata
  std::set<std::string> without = {};              ///< tensors to omit
  std::map<std::string, Shape> shapes = {};        ///< tensors with another shape
  DType dtype = DType::f32;                        ///< of matrices whose rows are whole blocks
  bool dequantized = false;                        ///< writes the values of `dtype` as f32
  /// By the names of matrices without ".weight": factors of their first dim. They are written as
  /// NAME.scale or, if `multiplied`, multiplied into the values.
  std::map<std::string, std::vector<float>> factors = {};
  bool multiplied = false;
  std::string seed = {};  ///< gives other weights
  /// Added to the values of tensors; if `dequantized`, after quantising them.
  std::map<std::string, std::vector<float>> deltas = {};

  /// The names of all descriptions.
  static std::vector<std::string> names();
  /// Reads a description. Errors (std::runtime_error): it is missing.
  static TinyModel read(const std::string& name);
  /// All models.
  static std::vector<TinyModel> all();

  bool has_experts() const;
  /// The shape of a tensor. Errors (std::runtime_error): the model doesn't have it.
  Shape shape_of(const std::string& tensor) const;
  /// Writes the model and a vocabulary of 40 tokens.
  void write(const std::string& path) const;
  /// Writes the files that transformers writes, without a tokenizer: config.json, and the weights
  /// in `shards` safetensors files (1: without an index) of a float dtype. Returns the folder.
  std::string write_directory(const std::string& folder, int shards = 2,
                              DType type = DType::f32) const;
  std::string config;  ///< config.json; empty if the description has no directory

 private:
  struct Key {
    std::string name, type, value;  // value: JSON
  };
  struct Entry {
    std::string name;
    Shape shape;
    std::vector<float> values;  // of tensors that aren't weights
  };
  /// Some elements of a tensor of transformers and the elements of the GGUF file's tensor that they
  /// have the values of: nested loops of `sizes`, whose strides follow the first element.
  struct Part {
    std::string from;
    std::vector<int64_t> sizes, to, at;
    float add = 0;
    float divide = 1;          // the converter multiplies by this
    bool negated_log = false;  // log(-value)
  };
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<Part> parts;  // other elements are zeros
  };
  std::vector<float> values_of_parameter(const Parameter& parameter) const;
  void set(io::GgufWriter& writer, const Key& key) const;
  std::vector<Entry> written_entries() const;
  /// The values in the file, before they are quantised.
  std::vector<float> written_values(const Entry& entry) const;
  DType dtype_of(const Entry& entry) const;

  std::vector<Key> keys_;
  std::vector<Entry> entries_;
  std::vector<Parameter> parameters_;
};

}  // namespace wick::test
