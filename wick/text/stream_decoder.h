#pragma once

#include <cstdint>
#include <string>

#include "wick/base/export.h"
#include "wick/text/tokenizer.h"

namespace wick::text {

/// Turns a stream of token ids into text, whole UTF-8 characters at a time.
///
/// A token may end inside a character: those bytes are held back until later tokens complete it.
/// Bytes that no continuation can make well-formed become U+FFFD, one for each maximal subpart
/// (Unicode 3.9), so all that comes out joined is UTF-8.
class WICK_API StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = true)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  /// The characters that `id` completes, often none. Errors: an id outside the vocabulary.
  std::string push(int32_t id);

  /// Ends the text: U+FFFD for a character left incomplete, else nothing. Ready for the next text.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  std::string held_;  // a proper prefix of a character: at most 3 bytes
};

}  // namespace wick::text
