#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace wick::text {

/// A pattern of a vocabulary, compiled by PCRE2. The syntax is the one of the models' reference
/// tokenizers (Oniguruma's): \s, \w and \b follow Unicode's properties, \p{Han} is a script, ^ and
/// $ match at line ends, and a class may contain classes. Several threads may use one pattern at
/// once.
class Regex {
 public:
  /// Errors: the pattern is malformed, longer than 64 KiB, or uses an intersection of classes.
  explicit Regex(std::string_view pattern);
  /// A pattern that matches `text` itself.
  static Regex literal(std::string_view text);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  struct Range {
    size_t begin, end;
  };

  /// Scratch space of the searches of one thread.
  class Scratch {
   public:
    explicit Scratch(const Regex& regex);

   private:
    friend class Regex;
    struct Free {
      void operator()(void* match) const;
    };
    std::unique_ptr<void, Free> match_;
  };

  /// Finds the first match in `text`, which must be well-formed UTF-8, at or after `from`. Returns
  /// false if there is none. Errors: a match takes more steps or memory than PCRE2's limits allow.
  bool find(std::string_view text, size_t from, Scratch& scratch, Range& match) const;

  /// Converts a pattern to PCRE2's syntax.
  static std::string to_pcre2(std::string_view pattern);

 private:
  struct Code;
  Regex() = default;

  std::unique_ptr<Code> code_;  // null: the pattern is `literal_`
  std::string literal_;
};

}  // namespace wick::text
