#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "wick/base/export.h"
#include "wick/io/gguf.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// A low-rank adapter of a model: for some of its matrices W a pair of factors A and B, so that the
/// adapted matrix is W + scale · B·A. Source: Hu et al., "LoRA", 2021.
class WICK_API Adapter {
 public:
  struct Factors {
    Tensor a;  ///< f32 [rank, k]
    Tensor b;  ///< f32 [n, rank], times alpha / rank
  };

  /// Opens a GGUF file as llama.cpp's converter writes it, or a folder as PEFT writes it
  /// (hf::read_peft), for a model of an architecture. Errors: it isn't a LoRA adapter; it is of
  /// another architecture; it has no factors; a factor is missing or the two don't fit; those of
  /// hf::read_peft.
  static Adapter open(const std::string& path, std::string_view architecture,
                      const io::ModelFile& model);

  /// The factors of the matrix `name` [n, k]; null if the adapter has none. Errors: the sizes
  /// differ.
  const Factors* find(const std::string& name, int64_t n, int64_t k) const;
  /// Errors: the adapter has factors of a matrix that wasn't asked for.
  void require_all_used() const;
  const std::string& path() const { return path_; }

 private:
  void read_gguf(std::string_view architecture);
  void read_folder(std::string_view architecture, const io::ModelFile& model);

  struct Entry {
    Factors factors;
    bool used = false;
  };
  std::string path_;
  std::shared_ptr<std::map<std::string, Entry>> entries_;
};

}  // namespace wick::models
