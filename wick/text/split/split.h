#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/split/regex.h"

namespace wick::text {

/// What becomes of the matches of a stage, with the names of tokenizer.json.
enum class SplitBehavior : uint8_t {
  isolated,              ///< each match is a word
  removed,               ///< matches are dropped
  contiguous,            ///< adjacent matches are one word
  merged_with_previous,  ///< a match ends the word before it
  merged_with_next,      ///< a match begins the word after it
};

/// One stage of a pre-tokenizer. Each word of the stage before it may be rewritten and is then cut
/// at the matches of a pattern; text between matches is a word, too.
struct SplitStage {
  std::string pattern = {};  ///< Regex's syntax; empty: words aren't cut
  bool literal = false;      ///< the pattern is plain text
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;        ///< text between matches counts as the matches
  uint32_t group = 0;         ///< cuts each match into groups of characters, counted from its end
  std::string mark = {};      ///< replaces each space; empty: spaces stay
  std::string prefix = {};    ///< inserted before words that don't begin with it
  bool only_first = false;    ///< the prefix is for words at the beginning of the text alone
  bool spares_lines = false;  ///< words that begin with a line end get no prefix
};

/// The stages of a pre-tokenizer. Several threads may call const methods at once.
class Splitter {
 public:
  /// Errors: those of Regex.
  explicit Splitter(std::vector<SplitStage> stages);
  /// Whether no stage drops parts of a text.
  bool keeps_all_bytes() const;
  /// Whether a stage replaces or inserts characters.
  bool rewrites() const;

  /// One pass over a text. Memory is proportional to the number of stages, and to the longest
  /// rewritten word. Time is linear in the text if the patterns' is.
  class Cursor {
   public:
    /// `at_beginning`: whether `text` is the beginning of the whole text. Without stages, the text
    /// is one word.
    Cursor(const Splitter& splitter, std::string_view text, bool at_beginning = true);
    /// Begins with another text.
    void restart(std::string_view text, bool at_beginning);
    /// Returns the next word; empty at the end. `text` must be well-formed UTF-8. A word is valid
    /// until the next call.
    std::string_view next();

   private:
    struct Word {
      std::string_view text;
      bool first = false;  // at the beginning of the whole text
    };
    struct Part {
      size_t begin = 0, end = 0;  // an empty part: there are no more
      bool match = false;
    };
    struct Level {
      explicit Level(const Regex* regex_of_stage, const SplitStage& stage_of_level);
      const Regex* regex;
      const SplitStage* stage;
      std::optional<Regex::Scratch> scratch;
      std::string rewritten;
      Word piece = {};
      size_t pos = 0;           // end of the parts so far
      Regex::Range match = {};  // the match after `pos`, if `found`
      bool found = false;
      size_t ungrouped = 0;  // characters of `match`, if it is cut into groups
      Part held = {};
      bool has_held = false;
    };
    std::string_view next_isolated();
    Word next_of(size_t level);
    void rewrite(Level& level, Word word);
    Part part_of(Level& level);
    Part raw_part_of(Level& level);

    std::vector<Level> levels_;
    Word text_;
    bool done_ = false;
    bool isolates_ = false;  // the only stage isolates the matches of a pattern
  };

 private:
  std::vector<SplitStage> stages_;
  std::vector<std::unique_ptr<const Regex>> regexes_;  // null: the stage doesn't cut
};

}  // namespace wick::text
