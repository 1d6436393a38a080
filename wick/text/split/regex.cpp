#include "wick/text/split/regex.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace wick::text {
namespace {

// The reference tokenizers read \s as Unicode's White_Space. PCRE2's \s also contains U+180E, which
// Unicode 6.3 removed from that class, so the class is written out.
constexpr std::string_view kSpace =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
// PCRE2's \w lacks marks and connectors and has all numbers. Oniguruma's has of the numbers that
// are neither digits nor letters only those of Latin-1, and circled and squared letters.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9})"
    R"(\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

// Properties that aren't scripts. PCRE2 reads \p{NAME} of a script as its extension.
constexpr std::string_view kProperties[] = {
    "Alphabetic",   "Alpha",       "Uppercase", "Lowercase", "White_Space",
    "Emoji",        "Any",         "L&",        "ASCII",     "Extended_Pictographic",
    "Join_Control", "Ideographic", "Math",      "Dash",      "Diacritic",
};

[[noreturn]] void throw_pattern(std::string_view pattern, const std::string& what) {
  throw Error("tokenizer", "invalid pattern", fmt::format("'{}'", printable(pattern, 100)), what);
}

/// Converts Oniguruma's syntax to PCRE2's, one construct at a time.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (in_[at_] == '\\') {
        escape(false);
      } else if (in_[at_] == '[') {
        ++at_;
        out_ += '[';
        if (take('^')) out_ += '^';
        in_class();
        out_ += ']';
      } else {
        out_ += in_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  bool take(char c) {
    if (at_ >= in_.size() || in_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// Copies a class up to its closing bracket. Classes inside are united with it.
  void in_class() {
    // A bracket right after the opening one is a member.
    if (take(']')) out_ += "\\]";
    for (int depth = 1; depth > 0;) {
      if (at_ >= in_.size()) throw_pattern(in_, "a class isn't closed");
      const char c = in_[at_];
      if (c == '\\') {
        escape(true);
      } else if (c == ']') {
        --depth;
        ++at_;
      } else if (c == '[' && in_.substr(at_).starts_with("[:")) {
        const size_t end = in_.find(":]", at_ + 2);
        if (end == std::string_view::npos) throw_pattern(in_, "a POSIX class isn't closed");
        out_ += in_.substr(at_, end + 2 - at_);
        at_ = end + 2;
      } else if (c == '[') {
        ++at_;
        if (take('^')) throw_pattern(in_, "a negated class inside a class isn't supported");
        if (take(']')) out_ += "\\]";
        if (++depth > 100) throw_pattern(in_, "classes are nested too deeply");
      } else if (in_.substr(at_).starts_with("&&")) {
        throw_pattern(in_, "intersections of classes aren't supported");
      } else {
        out_ += c;
        ++at_;
      }
    }
  }

  void escape(bool in_a_class) {
    if (at_ + 1 >= in_.size()) throw_pattern(in_, "it ends in a backslash");
    const char c = in_[at_ + 1];
    const std::string_view whole = in_.substr(at_, 2);
    at_ += 2;
    const auto named = [&](std::string_view members, bool negated) {
      if (in_a_class) {
        out_ += negated ? whole : members;
      } else {
        ((out_ += negated ? "[^" : "[") += members) += ']';
      }
    };
    switch (c) {
      case 's':
        return named(kSpace, false);
      case 'S':
        return named(kSpace, true);
      case 'w':
        return named(kWord, false);
      case 'W':
        return named(kWord, true);
      case 'h':
        return named("0-9a-fA-F", false);
      case 'H':
        if (in_a_class) throw_pattern(in_, "\\H in a class isn't supported");
        return named("0-9a-fA-F", true);
      case 'b':
      case 'B':
        if (in_a_class) {
          out_ += whole;
        } else {
          const bool at_edge = c == 'b';
          out_ += fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", kWord,
                              at_edge ? '!' : '=', at_edge ? '=' : '!');
        }
        return;
      case 'u':
        if (in_.size() - at_ < 4) throw_pattern(in_, "\\u needs four digits");
        out_ += fmt::format("\\x{{{}}}", in_.substr(at_, 4));
        at_ += 4;
        return;
      case 'p':
      case 'P':
        return property(whole);
      case 'C':
      case 'K':
        throw_pattern(in_, fmt::format("\\{} isn't supported", c));
      default:
        out_ += whole;
    }
  }

  void property(std::string_view whole) {
    out_ += whole;
    const size_t end = in_.find('}', at_);
    if (!take('{') || end == std::string_view::npos) throw_pattern(in_, "\\p needs {name}");
    std::string_view name = in_.substr(at_, end - at_);
    at_ = end + 1;
    out_ += '{';
    if (name.starts_with('^')) {
      out_ += '^';
      name.remove_prefix(1);
    }
    bool plain = name.size() <= 2 || name.find_first_of(":=") != std::string_view::npos;
    for (const std::string_view known : kProperties) plain = plain || name == known;
    constexpr std::pair<std::string_view, std::string_view> kLong[] = {
        {"Letter", "L"}, {"Mark", "M"},   {"Number", "N"},    {"Punctuation", "P"},
        {"Punct", "P"},  {"Symbol", "S"}, {"Separator", "Z"}, {"Other", "C"},
    };
    for (const auto& [alias, category] : kLong) {
      if (name != alias) continue;
      name = category;
      plain = true;
    }
    if (!plain) out_ += "sc:";
    (out_ += name) += '}';
  }

  std::string_view in_;
  std::string out_;
  size_t at_ = 0;
};

/// Limits for patterns whose matching backtracks too much.
pcre2_match_context* limits() {
  static pcre2_match_context* const context = [] {
    constexpr uint32_t kHeapKib = 256u << 10;
    pcre2_match_context* made = pcre2_match_context_create(nullptr);
    if (made == nullptr) throw std::bad_alloc();
    pcre2_set_heap_limit(made, kHeapKib);
    return made;
  }();
  return context;
}

}  // namespace

struct Regex::Code {
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code = nullptr;
  bool jit = false;
};

void Regex::Scratch::Free::operator()(void* match) const {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match));
}

Regex::Scratch::Scratch(const Regex& regex) {
  if (regex.code_ == nullptr) return;
  match_.reset(pcre2_match_data_create(1, nullptr));
  if (match_ == nullptr) throw std::bad_alloc();
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

std::string Regex::to_pcre2(std::string_view pattern) { return Translator(pattern).run(); }

Regex Regex::literal(std::string_view text) {
  if (text.empty()) throw Error("tokenizer", "invalid pattern", "''", "need some text");
  Regex regex;
  regex.literal_ = text;
  return regex;
}

Regex::Regex(std::string_view pattern) : code_(std::make_unique<Code>()) {
  constexpr size_t kMostBytes = 64u << 10;
  if (pattern.empty() || pattern.size() > kMostBytes) {
    throw_pattern(pattern, fmt::format("need 1 to {} bytes", kMostBytes));
  }
  const std::string translated = to_pcre2(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &offset, nullptr);
  if (code_->code == nullptr) {
    char message[256] = "";
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
    throw_pattern(pattern, fmt::format("PCRE2: {}", message));
  }
  // If the system forbids JIT code pages, PCRE2's slower interpreter runs the pattern.
  code_->jit = pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE) == 0;
}

bool Regex::find(std::string_view text, size_t from, Scratch& scratch, Range& match) const {
  if (code_ == nullptr) {
    const size_t at = text.find(literal_, from);
    if (at == std::string_view::npos) return false;
    match = {at, at + literal_.size()};
    return true;
  }
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  auto* const state = static_cast<pcre2_match_data*>(scratch.match_.get());
  int rc = PCRE2_ERROR_JIT_STACKLIMIT;
  if (code_->jit) {
    rc = pcre2_jit_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, state,
                         limits());
  }
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
    // The interpreter keeps its backtracking points on the heap.
    rc = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                     state, limits());
  }
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc < 0) {
    throw Error(ErrorKind::runtime, "tokenize", "the split pattern failed",
                fmt::format("at offset {}, PCRE2 error {}", from, rc));
  }
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(state);
  match = {ends[0], ends[1]};
  return true;
}

}  // namespace wick::text
