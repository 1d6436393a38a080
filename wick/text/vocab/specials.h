#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "wick/text/vocab/token_table.h"

namespace wick::text {

class SpecialAutomaton;

/// Finds tokens verbatim in text: the leftmost match, and the longest match at that position.
class SpecialMatcher {
 public:
  struct Match {
    size_t position;  // npos: no more matches
    size_t length;
    int32_t id;
  };

  /// Tokens with empty bytes are ignored; of tokens with equal bytes the lowest id counts.
  SpecialMatcher(const TokenTable& tokens, std::vector<int32_t> ids);
  ~SpecialMatcher();

  /// One pass over a text, in time linear in its length. It starts by comparing the text with the
  /// sorted tokens at each position, which is fastest for real vocabularies. After more steps than
  /// a fixed multiple of the text's length, it switches to an automaton.
  class Cursor {
   public:
    Cursor(const SpecialMatcher& matcher, std::string_view text)
        : matcher_(matcher), text_(text), budget_(kStepsPerByte * text.size() + kFreeSteps) {}
    /// The next match at or after `from`, which must not decrease from call to call.
    Match next(size_t from);
    /// The number of byte comparisons so far, for tests.
    size_t steps() const { return steps_; }

   private:
    static constexpr size_t kStepsPerByte = 4, kFreeSteps = 4096;

    const SpecialMatcher& matcher_;
    std::string_view text_;
    size_t budget_, steps_ = 0;
    bool by_automaton_ = false;
    std::vector<Match> matches_;  // longest match at each position, the last position first
  };

  /// Returns the token whose bytes are exactly `text`.
  std::optional<int32_t> exact(std::string_view text) const;

 private:
  /// Returns the longest token at `start`; its length is 0 if no token begins there. Adds the
  /// number of compared bytes to `steps`.
  Match longest_at(std::string_view text, size_t start, size_t& steps) const;
  const SpecialAutomaton& automaton() const;

  const TokenTable& tokens_;
  std::vector<int32_t> sorted_;  // sorted by bytes
  // The tokens that begin with byte b are sorted_[first_[b]] … sorted_[first_[b + 1] - 1].
  std::array<uint32_t, 257> first_{};
  // Created when a text first needs it.
  mutable std::once_flag automaton_made_;
  mutable std::unique_ptr<const SpecialAutomaton> automaton_;
};

}  // namespace wick::text
