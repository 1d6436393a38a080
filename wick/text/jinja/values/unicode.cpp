#include "wick/text/jinja/values/unicode.h"

#include <memory>
#include <new>

#include "wick/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace wick::text::jinja {
namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

/// A compiled pattern; threads may share it. Ill-formed text matches nothing.
class Pattern {
 public:
  explicit Pattern(const char* pattern) {
    int error = 0;
    size_t offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY, &error,
                              &offset, nullptr));
    if (code_ == nullptr) throw std::bad_alloc();
  }

  bool matches(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    if (match == nullptr) throw std::bad_alloc();
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                       match.get(), nullptr) >= 0;
  }

  /// Replaces the match by `replacement`, in PCRE2's extended syntax.
  std::string replaced(std::string_view text, const char* replacement) const {
    std::string out(text.size() + text.size() / 2 + 16, '\0');
    for (;;) {
      size_t size = out.size();
      const int count = pcre2_substitute(
          code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
          PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH, nullptr, nullptr,
          reinterpret_cast<PCRE2_SPTR>(replacement), PCRE2_ZERO_TERMINATED,
          reinterpret_cast<PCRE2_UCHAR*>(out.data()), &size);
      if (count == PCRE2_ERROR_NOMEMORY) {
        out.resize(size);
        continue;
      }
      if (count < 0) return std::string(text);  // ill-formed text stays
      out.resize(size);
      return out;
    }
  }

 private:
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

#define WICK_CLASSES(anchor, end)                                                               \
  {                                                                                             \
    Pattern(anchor R"([\p{L}])" end), Pattern(anchor R"([\p{L}\p{N}])" end),                    \
        Pattern(anchor R"([\p{Nd}])" end),                                                      \
        Pattern(anchor                                                                          \
                R"([\p{Nd}\x{b2}\x{b3}\x{b9}\x{2070}\x{2074}-\x{2079}\x{2080}-\x{2089}])" end), \
        Pattern(anchor R"([\p{N}])" end), Pattern(anchor R"([\p{Lu}])" end),                    \
        Pattern(anchor R"([\p{Ll}])" end), Pattern(anchor R"([\p{L}\p{N}_])" end)               \
  }

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const Utf8Step step = utf8_step(text);
  if (step.kind != Utf8Step::valid) return {0xfffd, 1};
  char32_t point = byte(0) & (0x7fu >> step.length);
  for (size_t i = 1; i < step.length; ++i) point = point << 6 | (byte(i) & 0x3f);
  return {point, step.length};
}

size_t last_character(std::string_view text) {
  const size_t last = text.size() - 1;
  for (size_t back = 0; back < 4 && back <= last; ++back) {
    const size_t at = last - back;
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    return first_character(text.substr(at)).length == back + 1 ? at : last;
  }
  return last;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t pos = 0; pos < text.size(); ++count) pos += first_character(text.substr(pos)).length;
  return count;
}

size_t offset_of(std::string_view text, size_t index) {
  size_t pos = 0;
  for (; index > 0 && pos < text.size(); --index) pos += first_character(text.substr(pos)).length;
  return pos;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool ends_line(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_printable(char32_t point) {
  if (point < 0x80) return point >= 0x20 && point != 0x7f;
  static const Pattern hidden(R"([\p{C}\p{Z}])");
  std::string text;
  append_utf8(text, point);
  return !hidden.matches(text);
}

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!is_space(c.point)) break;
    text.remove_prefix(c.length);
  }
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const size_t at = last_character(text);
    if (!is_space(first_character(text.substr(at)).point)) break;
    text = text.substr(0, at);
  }
  return text;
}

std::string upper(std::string_view text) {
  if (is_ascii(text)) {
    std::string out(text);
    for (char& c : out) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return out;
  }
  static const Pattern all("^.*$");
  return all.replaced(text, "\\U$0");
}

std::string lower(std::string_view text) {
  if (is_ascii(text)) {
    std::string out(text);
    for (char& c : out) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
  }
  static const Pattern all("^.*$");
  return all.replaced(text, "\\L$0");
}

bool all_in_class(std::string_view text, CharacterClass wanted) {
  static const Pattern patterns[] = WICK_CLASSES("^", "+$");
  return patterns[static_cast<size_t>(wanted)].matches(text);
}

bool any_in_class(std::string_view text, CharacterClass wanted) {
  static const Pattern patterns[] = WICK_CLASSES("", "");
  return patterns[static_cast<size_t>(wanted)].matches(text);
}

}  // namespace wick::text::jinja
