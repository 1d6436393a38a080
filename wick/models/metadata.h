#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::models {

/// The metadata of a model file under its architecture's prefix: "block_count" reads the key
/// "llama.block_count" if general.architecture is "llama". All getters throw if a key without a
/// default is missing, or if a value has the wrong type or is out of range; the message names the
/// file and the full key. The file must outlive this object.
class WICK_API Metadata {
 public:
  /// Errors: the file doesn't name its architecture.
  explicit Metadata(const io::ModelFile& file);

  const io::ModelFile& file() const { return file_; }
  std::string_view architecture() const { return architecture_; }
  /// The full key with the architecture's prefix.
  std::string key(std::string_view name) const;
  bool contains(std::string_view name) const { return file_.contains(key(name)); }

  /// A count from 1 to `most`.
  int64_t count(std::string_view name, int64_t most) const;
  int64_t count(std::string_view name, int64_t most, int64_t or_else) const;
  /// An integer from `least` to `most`.
  int64_t integer(std::string_view name, int64_t least, int64_t most, int64_t or_else) const;
  /// A finite number above `least`.
  double number_above(std::string_view name, float least, float or_else) const;
  /// A finite number of at least 0.
  float number(std::string_view name) const;
  float number(std::string_view name, float or_else) const;
  std::string_view string(std::string_view name, std::string_view or_else) const;
  bool flag(std::string_view name, bool or_else) const;
  /// A count from `least` to `most` for each of `layers` layers: an array, or one number for all.
  std::vector<int64_t> counts(std::string_view name, int64_t layers, int64_t most,
                              int64_t least = 1) const;
  /// An array of `count` bools.
  std::vector<bool> bools(std::string_view name, int64_t count) const;

  /// Throws "PATH: value out of range: KEY = VALUE: need RULE".
  [[noreturn]] void out_of_range(std::string_view name, std::string_view value,
                                 std::string_view rule) const;

 private:
  int64_t in_range(std::string_view name, int64_t value, int64_t least, int64_t most) const;

  const io::ModelFile& file_;
  std::string architecture_;
};

}  // namespace wick::models
