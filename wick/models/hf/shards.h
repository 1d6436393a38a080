#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wick/io/safetensors.h"

namespace wick::models::hf {

/// A tensor and the file that holds it.
struct Stored {
  const io::Safetensors* file;
  const io::SafeTensor* tensor;
};

/// The safetensors files of a folder: model.safetensors, or those that model.safetensors.index.json
/// lists.
struct Shards {
  std::vector<std::shared_ptr<const io::Safetensors>> files;
  std::vector<Stored> tensors;  ///< in the order of their names

  /// Errors: there are neither; the index is invalid or names a file outside the folder; a file is
  /// missing or invalid, or lacks a tensor that the index says is in it.
  static Shards open(const std::string& folder);
};

/// The names of files by the names of tensors in the text of an index. Errors: the text isn't such
/// an index; a name of a file has folders. `path` is for error messages.
std::vector<std::pair<std::string, std::string>> parse_index(std::string_view text,
                                                             const std::string& path);

}  // namespace wick::models::hf
