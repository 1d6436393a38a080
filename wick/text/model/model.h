#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace wick::text {

/// The last stage of a tokenizer: turns words into tokens. Models are immutable, and several
/// threads may use one at once.
class Model {
 public:
  virtual ~Model() = default;

  /// The scratch space of one thread.
  class Run {
   public:
    virtual ~Run() = default;
    /// Appends the tokens of `word`, which is well-formed UTF-8 and not empty.
    virtual void encode(std::string_view word, std::vector<int32_t>& out) = 0;
  };
  virtual std::unique_ptr<Run> run() const = 0;
  /// The bytes of words that are part of a token wherever they are: they aren't dropped, and aren't
  /// unknown.
  virtual std::bitset<256> kept_bytes() const { return {}; }
};

}  // namespace wick::text
