#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wick::text {

/// SentencePiece's precompiled map from character sequences to their replacements: a double array
/// (the format of Darts-clone) and a block of replacements that end in zero bytes.
class Charsmap {
 public:
  struct Match {
    std::string_view replacement;
    size_t length;  // bytes of the text that it replaces
  };

  /// An empty `blob` is a map without entries. Errors: the sizes in the blob contradict its length;
  /// the replacements aren't UTF-8.
  explicit Charsmap(std::string_view blob);

  /// The longest (or shortest) prefix of `text` that has a replacement. Errors: the map leads out
  /// of its arrays.
  std::optional<Match> find(std::string_view text, bool shortest) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace wick::text
