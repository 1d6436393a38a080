#include "wick/text/jinja/parse/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/printable.h"
#include "wick/base/utf8.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

// Longer ones come first.
constexpr std::string_view kSymbols[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  Lexer(std::string_view source, Run& run) : source_(source), run_(run) {}

  std::vector<Token> tokens() {
    while (pos_ < source_.size()) data();
    add(Token::Kind::end, pos_, 0, {});
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text, size_t at) const {
    return source_.substr(std::min(at, source_.size())).starts_with(text);
  }
  char peek(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }
  size_t skip_space(size_t at) const {
    return source_.size() - without_leading_space(source_.substr(at)).size();
  }

  void add(Token::Kind kind, size_t position, size_t size, std::string text) {
    for (; counted_ < position; ++counted_) line_ += source_[counted_] == '\n';
    tokens_.push_back({kind, line_, position, size, std::move(text)});
  }
  [[noreturn]] void fail(std::string_view what, size_t at) {
    const size_t end = std::min(source_.find('\n', at), source_.size());
    const auto newlines =
        std::count(source_.begin(), source_.begin() + static_cast<long>(at), '\n');
    run_.at(static_cast<size_t>(newlines) + 1, {at, end - at});
    run_.fail(what);
  }

  /// Removes the white space before a tag whose sign is `sign`. `block`: the tag isn't a
  /// variable's.
  std::string_view stripped(std::string_view text, char sign, bool block) const {
    if (sign == '-') return without_trailing_space(text);
    if (sign == '+' || !block) return text;
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_starts_) return text;
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    return without_leading_space(text.substr(begin)).empty() ? text.substr(0, begin) : text;
  }

  void add_data(size_t begin, std::string_view text) {
    if (!text.empty()) add(Token::Kind::data, begin, text.size(), std::string(text));
  }

  /// Reads data up to the next tag, and the tag.
  void data() {
    const size_t begin = pos_;
    size_t open = begin;
    do {
      open = source_.find('{', open);
      if (open == std::string_view::npos) {
        add_data(begin, source_.substr(begin));
        pos_ = source_.size();
        return;
      }
      const char next = peek(open + 1);
      if (next == '{' || next == '%' || next == '#') break;
    } while (++open > 0);
    const char kind = peek(open + 1);
    char sign = peek(open + 2);
    if (sign != '-' && sign != '+') sign = '\0';
    add_data(begin, stripped(source_.substr(begin, open - begin), sign, kind != '{'));
    pos_ = open + (sign != '\0' ? 3 : 2);
    line_starts_ = false;
    if (kind == '#') return comment(open);
    if (kind == '%' && raw(open)) return;
    const bool variable = kind == '{';
    add(variable ? Token::Kind::variable_begin : Token::Kind::block_begin, open, pos_ - open, {});
    inside(open, variable);
  }

  /// Moves behind the end of a tag that begins at `at` with its sign. `trims`: a newline after it
  /// is dropped, unless the sign is +.
  void close(size_t at, bool trims) {
    const char sign = peek(at);
    pos_ = at + (sign == '-' || sign == '+' ? 3 : 2);
    const size_t end = pos_;
    if (sign == '-') {
      pos_ = skip_space(pos_);
    } else if (sign != '+' && trims && peek(pos_) == '\n') {
      ++pos_;
    }
    line_starts_ = pos_ > end && source_[pos_ - 1] == '\n';
  }

  void comment(size_t open) {
    const size_t end = source_.find("#}", pos_);
    if (end == std::string_view::npos) fail("a comment isn't closed", open);
    const bool sign = end > pos_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    close(sign ? end - 1 : end, true);
  }

  /// Reads {% raw %} … {% endraw %}. Returns false if the tag is another one.
  bool raw(size_t open) {
    size_t at = skip_space(pos_);
    if (!starts("raw", at)) return false;
    at = skip_space(at + 3);
    if (starts("-%}", at)) {
      pos_ = skip_space(at + 3);
      line_starts_ = source_[pos_ - 1] == '\n';
    } else if (starts("%}", at)) {
      pos_ = at + 2;
    } else {
      return false;
    }
    const size_t begin = pos_;
    for (size_t tag = source_.find("{%", begin); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      const char sign = peek(tag + 2);
      const bool has_sign = sign == '-' || sign == '+';
      size_t end = skip_space(std::min(tag + (has_sign ? 3 : 2), source_.size()));
      if (!starts("endraw", end)) continue;
      end = skip_space(end + 6);
      if (!starts("%}", end) && !starts("-%}", end) && !starts("+%}", end)) continue;
      add_data(begin, stripped(source_.substr(begin, tag - begin), sign, true));
      close(end, true);
      return true;
    }
    fail("a raw block isn't closed", open);
  }

  /// Reads the tokens of a tag.
  void inside(size_t open, bool variable) {
    const std::string_view stop = variable ? "}}" : "%}";
    std::string brackets;  // the closing brackets that are expected
    for (;;) {
      pos_ = skip_space(pos_);
      if (pos_ >= source_.size()) {
        fail(variable ? "a tag {{ isn't closed" : "a tag {% isn't closed", open);
      }
      const char c = source_[pos_];
      if (brackets.empty()) {
        const bool sign = c == '-' || (c == '+' && !variable);
        if (starts(stop, pos_) || (sign && starts(stop, pos_ + 1))) {
          const size_t end = pos_;
          add(variable ? Token::Kind::variable_end : Token::Kind::block_end, end, sign ? 3 : 2, {});
          close(end, !variable);
          return;
        }
      }
      if (c == '\'' || c == '"') {
        string();
      } else if (is_digit(c)) {
        number();
      } else if (begins_name(c)) {
        const size_t begin = pos_;
        while (pos_ < source_.size() && (begins_name(source_[pos_]) || is_digit(source_[pos_]))) {
          ++pos_;
        }
        const size_t size = pos_ - begin;
        add(Token::Kind::name, begin, size, std::string(source_.substr(begin, size)));
      } else {
        symbol(brackets);
      }
    }
  }

  void symbol(std::string& brackets) {
    for (const std::string_view text : kSymbols) {
      if (!starts(text, pos_)) continue;
      if (text == "(" || text == "[" || text == "{") {
        brackets += text == "(" ? ')' : text == "[" ? ']' : '}';
      } else if (text == ")" || text == "]" || text == "}") {
        if (brackets.empty() || brackets.back() != text[0]) {
          fail(fmt::format("unexpected '{}'", text), pos_);
        }
        brackets.pop_back();
      }
      add(Token::Kind::symbol, pos_, text.size(), std::string(text));
      pos_ += text.size();
      return;
    }
    fail("unexpected character", pos_);
  }

  /// Skips digits with single underscores in between.
  size_t digits(size_t at, std::string_view allowed = "0123456789") const {
    while (at < source_.size()) {
      const size_t next = source_[at] == '_' ? at + 1 : at;
      if (next >= source_.size() || allowed.find(source_[next]) == std::string_view::npos) break;
      at = next + 1;
    }
    return at;
  }

  void number() {
    const size_t begin = pos_;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    size_t end = digits(begin);
    auto kind = Token::Kind::integer;
    const char prefix = static_cast<char>(peek(begin + 1) | 0x20);
    if (peek(begin) == '0' && (prefix == 'x' || prefix == 'o' || prefix == 'b')) {
      const std::string_view allowed = prefix == 'x'   ? "0123456789abcdefABCDEF"
                                       : prefix == 'o' ? "01234567"
                                                       : "01";
      const size_t all = digits(begin + 2, allowed);
      if (all > begin + 2) end = all;
    } else if (!after_dot) {
      size_t more = end;
      if (peek(more) == '.' && is_digit(peek(more + 1))) more = digits(more + 1);
      size_t exponent = more;
      if ((peek(exponent) | 0x20) == 'e') {
        ++exponent;
        if (peek(exponent) == '+' || peek(exponent) == '-') ++exponent;
        if (is_digit(peek(exponent))) more = digits(exponent);
      }
      if (more > end) kind = Token::Kind::real;
      end = more;
    }
    std::string text(source_.substr(begin, end - begin));
    std::erase(text, '_');
    add(kind, begin, end - begin, std::move(text));
    pos_ = end;
  }

  /// Reads a string literal, with the escapes of Python.
  void string() {
    const size_t begin = pos_;
    const char quote = source_[begin];
    std::string value;
    size_t at = begin + 1;
    while (true) {
      if (at >= source_.size()) fail("a string isn't closed", begin);
      const char c = source_[at];
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        ++at;
        continue;
      }
      at = escape(at, value);
    }
    add(Token::Kind::string, begin, at + 1 - begin, std::move(value));
    pos_ = at + 1;
  }

  size_t escape(size_t at, std::string& value) {
    const char c = peek(at + 1);
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = kNames.find(c); i != std::string_view::npos && at + 1 < source_.size()) {
      value += kValues[i];
      return at + 2;
    }
    if (c == '\n') return at + 2;
    if (c == 'x') return code(at, 2, value);
    if (c == 'u') return code(at, 4, value);
    if (c == 'U') return code(at, 8, value);
    if (c == 'N') fail("\\N escapes aren't supported", at);
    if (c >= '0' && c <= '7') {
      char32_t point = 0;
      size_t end = at + 1;
      while (end < at + 4 && peek(end) >= '0' && peek(end) <= '7') {
        point = point * 8 + static_cast<char32_t>(peek(end++) - '0');
      }
      append_utf8(value, point);
      return end;
    }
    value += '\\';  // an unknown escape stays as it is
    return at + 1;
  }

  size_t code(size_t at, size_t count, std::string& value) {
    char32_t point = 0;
    for (size_t i = 0; i < count; ++i) {
      const char c = peek(at + 2 + i);
      const char low = static_cast<char>(c | 0x20);
      if (!is_digit(c) && !(low >= 'a' && low <= 'f')) fail("malformed escape in a string", at);
      point = point << 4 | static_cast<char32_t>(is_digit(c) ? c - '0' : low - 'a' + 10);
    }
    if (!is_character(point)) fail("an escape in a string isn't a character", at);
    append_utf8(value, point);
    return at + 2 + count;
  }

  std::string_view source_;
  Run& run_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  size_t counted_ = 0;  // newlines before this position are in line_
  uint32_t line_ = 1;
  bool line_starts_ = true;  // whether the data at pos_ begins a line
};

}  // namespace

std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source, Run& run) {
  return Lexer(source, run).tokens();
}

}  // namespace wick::text::jinja
