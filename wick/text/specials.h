#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "wick/text/token_table.h"

namespace wick::text {

/// A set of tokens to be found verbatim in text, the leftmost first and the longest of those.
class SpecialMatcher {
 public:
  struct Match {
    size_t position;  // npos: none left
    size_t length;
    int32_t id;
  };

  /// `ids` with empty bytes are left out; of tokens with the same bytes the lowest id counts.
  SpecialMatcher(const TokenTable& tokens, std::vector<int32_t> ids);

  /// The next match at or after `from`.
  Match find(std::string_view text, size_t from) const;

  /// The token that is exactly `text`.
  std::optional<int32_t> exact(std::string_view text) const;

 private:
  const TokenTable& tokens_;
  std::vector<int32_t> sorted_;  // by bytes
  // The tokens that begin with byte b are sorted_[first_[b]] … sorted_[first_[b + 1] - 1].
  std::array<uint32_t, 257> first_{};
};

}  // namespace wick::text
