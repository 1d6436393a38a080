#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "wick/base/export.h"
#include "wick/io/gguf.h"
#include "wick/models/matrix_change.h"

namespace wick::models {

/// A low-rank adapter of a model: changes of some of its matrices.
class WICK_API Adapter {
 public:
  /// Opens a GGUF file as llama.cpp's converter writes it, or a folder as PEFT writes it
  /// (hf::read_peft), for a model of an architecture. Errors: it isn't a LoRA adapter; it is of
  /// another architecture; it has no factors; a factor is missing or the two don't fit; those of
  /// hf::read_peft.
  static Adapter open(const std::string& path, std::string_view architecture,
                      const io::ModelFile& model);

  /// The change of the matrix `name` [n, k]; null if the adapter has none. Errors: the sizes
  /// differ.
  const MatrixChange* find(const std::string& name, int64_t n, int64_t k) const;
  /// The change of a table [rows, size] that is read by row. Errors: those of find().
  const MatrixChange* find_table(const std::string& name, int64_t rows, int64_t size) const;
  /// The factors of `count` matrices [n, k] that the tensor `name` holds. Errors: those of find();
  /// the number of matrices differs.
  const MatrixChange* find_stack(const std::string& name, int64_t count, int64_t n,
                                 int64_t k) const;
  /// Errors: the adapter has a change of a matrix that wasn't asked for.
  void require_all_used() const;
  const std::string& path() const { return path_; }

 private:
  void read_gguf(std::string_view architecture);
  void read_folder(std::string_view architecture, const io::ModelFile& model);
  const MatrixChange* take(const std::string& name) const;
  [[noreturn]] void wrong_sizes(const std::string& name, const MatrixChange& change,
                                const Shape& matrix) const;

  struct Entry {
    MatrixChange change;
    bool used = false;
  };
  std::string path_;
  std::shared_ptr<std::map<std::string, Entry>> entries_;
};

}  // namespace wick::models
