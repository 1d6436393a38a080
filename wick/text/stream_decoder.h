#pragma once

#include <cstdint>
#include <string>

#include "wick/base/export.h"
#include "wick/text/tokenizer.h"

namespace wick::text {

/// Converts a stream of token ids to text, in whole UTF-8 characters.
///
/// A token may end inside a character. Its last bytes are held back until later tokens complete the
/// character. Bytes that no continuation can make well-formed become U+FFFD, one for each maximal
/// subpart (Unicode 3.9), so the concatenated output is valid UTF-8.
class WICK_API StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = true)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  /// Returns the characters that `id` completes, often none. Errors: the id is outside the
  /// vocabulary.
  std::string push(int32_t id);

  /// Ends the text: returns U+FFFD for an incomplete character, else nothing. Afterwards a new text
  /// can begin.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  std::string held_;  // a proper prefix of a character: at most 3 bytes
};

}  // namespace wick::text
