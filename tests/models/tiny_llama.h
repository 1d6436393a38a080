#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/shape.h"
#include "wick/io/gguf_writer.h"
#include "wick/tensor/tensor.h"

namespace wick::test {

/// A Llama-like model with random weights, small enough to be computed by plain loops.
struct TinyLlama {
  int64_t layers = 2, hidden = 64, intermediate = 96, heads = 4, kv_heads = 2;
  int64_t key_size = 16, value_size = 16, context = 96, window = 0, rope_dims = 16;
  double rope_base = 10000.0, rope_factor = 1.0;
  std::string rope_scaling = {};          // none, linear, yarn; empty: no such key
  int64_t original_context = 0;           // yarn
  std::vector<float> rope_divisors = {};  // Llama 3
  bool tied = false, biases = false;
  bool scales = false;       // factors of the matrices of layers
  DType dtype = DType::f32;  // of every matrix
  uint32_t seed = 1;
  int64_t padding_rows = 0;  // rows of the embedding beyond the vocabulary

  // Deliberate faults for tests.
  std::set<std::string> without = {};              // tensors to omit
  std::string added = {};                          // a tensor [16] more
  std::map<std::string, Shape> shapes = {};        // tensors with another shape (filled with zeros)
  std::map<std::string, DType> types = {};         // tensors with another type
  std::function<void(io::GgufWriter&)> edit = {};  // final changes of the metadata

  /// Values as the file's types represent them, by tensor name.
  std::map<std::string, std::vector<float>> weights = {};

  /// Returns a model that is wide enough for rows of whole blocks of the type.
  static TinyLlama of_type(DType type) {
    TinyLlama tiny;
    tiny.dtype = type;
    if (info(type).block_elems > 32) {
      tiny.hidden = tiny.intermediate = 256;
      tiny.key_size = tiny.value_size = tiny.rope_dims = 64;
    }
    return tiny;
  }

  /// Writes the model and fills `weights`.
  void write(const std::string& path);
  /// Returns the logits of every position, [tokens][vocabulary], computed in f64 from the
  /// equations.
  std::vector<std::vector<double>> reference(const std::vector<int32_t>& tokens) const;

  /// The byte-level tokens and the tokens of their merges. The last three are <|endoftext|>,
  /// <|im_start|> and <|im_end|>.
  static const std::vector<std::string>& tokens();
  /// Writes tokens(), their merges and a ChatML template.
  static void write_vocabulary(io::GgufWriter& writer);
  int64_t rows() const { return static_cast<int64_t>(tokens().size()) + padding_rows; }

 private:
  struct Entry {
    std::string name;
    Shape shape;
    DType type;
  };

  void write_metadata(io::GgufWriter& w) const;
  std::vector<Entry> entries() const;
  std::vector<float> random_values(const Entry& e, std::mt19937& random) const;
  std::vector<double> rope_frequencies() const;
  double rope_magnitude() const;
};

/// Returns a prompt of tokens of TinyLlama's vocabulary, excluding the last token.
std::vector<int32_t> some_tokens(int64_t count);

/// For types that can only be read: random bits, with scales that make the values as large as those
/// of the other types, whose mean square is 1/k.
Tensor random_blocks(DType type, const Shape& shape, std::mt19937& random);

}  // namespace wick::test
