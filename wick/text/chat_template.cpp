// Checks chat templates without evaluating them. A scanner that understands Jinja's tags, string
// literals and concatenation converts a template to text in which each expression is one character.
// That text is compared with the grammar of a format's turns.
#include "wick/text/chat_template.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace wick::text {
namespace {

constexpr char kExpression = '\1';  // the value of an expression, in the scanned output
constexpr char kNothing = '\2';     // a value outside of turns, such as bos_token
constexpr char kWrong = '\3';       // content whose filters differ from the format's

constexpr std::string_view kBlank = " \t\n\r";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Returns the end of the string literal that begins at `pos`; npos if it isn't terminated.
size_t end_of_literal(std::string_view text, size_t pos) {
  const char quote = text[pos];
  for (size_t i = pos + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// Finds `stop` in `text` outside of string literals; npos if it isn't there.
size_t find_outside_literals(std::string_view text, std::string_view stop, size_t pos) {
  while (pos < text.size()) {
    if (text.substr(pos).starts_with(stop)) return pos;
    if (text[pos] == '\'' || text[pos] == '"') {
      pos = end_of_literal(text, pos);
    } else {
      ++pos;
    }
  }
  return std::string_view::npos;
}

/// Returns the value of a text that consists of one string literal.
std::optional<std::string> literal(std::string_view text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return std::nullopt;
  if (end_of_literal(text, 0) != text.size()) return std::nullopt;
  std::string value;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    ++i;
    value += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i] == 'r' ? '\r' : text[i];
  }
  return value;
}

/// Splits a concatenation at + and ~ outside of literals and brackets.
std::vector<std::string_view> operands(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0, i = 0;
  int depth = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\'' || c == '"') {
      i = std::min(end_of_literal(text, i), text.size());
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0 && (c == '+' || c == '~')) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    ++i;
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

/// Whether one pair of brackets encloses the whole text: "(a + b)", not "(a) + (b)".
bool bracketed(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\'' || text[i] == '"') {
      i = std::min(end_of_literal(text, i), text.size());
      continue;
    }
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1 == text.size();
    ++i;
  }
  return false;
}

class Scanner {
 public:
  Scanner(std::string_view text, ChatFormat format) : text_(text), format_(format) {
    if (text_.ends_with('\n')) text_.remove_suffix(1);  // Jinja drops a trailing newline
  }

  /// Returns the template's output; nullopt if a tag isn't closed.
  std::optional<std::string> run() {
    size_t pos = 0;
    bool strip_left = false, after_block = false;
    while (pos < text_.size()) {
      const size_t open = find_tag(pos);
      std::string_view raw = text_.substr(pos, open - pos);
      const bool tag = open != std::string_view::npos;
      if (strip_left) raw.remove_prefix(std::min(raw.find_first_not_of(kBlank), raw.size()));
      // Transformers and llama.cpp configure Jinja with trim_blocks and lstrip_blocks.
      if (after_block && raw.starts_with('\n')) raw.remove_prefix(1);
      const char kind = tag ? text_[open + 1] : '\0';
      if (tag && open + 2 < text_.size() && text_[open + 2] == '-') {
        const size_t last = raw.find_last_not_of(kBlank);
        raw = raw.substr(0, last == std::string_view::npos ? 0 : last + 1);
      } else if (tag && kind != '{') {
        const size_t before = text_.substr(0, open).find_last_not_of(" \t");
        if (before == std::string_view::npos || text_[before] == '\n') {
          raw = raw.substr(0, raw.find_last_not_of(" \t") + 1);  // npos + 1 is 0
        }
      }
      put(std::string(raw));
      if (!tag) break;
      const std::string_view stop = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
      const size_t close =
          kind == '#' ? text_.find(stop, open + 2) : find_outside_literals(text_, stop, open + 2);
      if (close == std::string_view::npos) return std::nullopt;
      std::string_view inside = text_.substr(open + 2, close - open - 2);
      if (inside.starts_with('-') || inside.starts_with('+')) inside.remove_prefix(1);
      strip_left = inside.ends_with('-');
      if (strip_left) inside.remove_suffix(1);
      after_block = kind != '{';
      if (kind == '{') put(value(trim(inside)));
      if (kind == '%') statement(trim(inside));
      pos = close + 2;
    }
    return std::move(out_);
  }

 private:
  struct Block {
    bool passed_over;  // whether an enclosing block is skipped
    bool skipped;      // whether the current branch or an enclosing block is skipped
  };

  size_t find_tag(size_t pos) const {
    for (; (pos = text_.find('{', pos)) != std::string_view::npos; ++pos) {
      if (pos + 1 < text_.size() &&
          (text_[pos + 1] == '{' || text_[pos + 1] == '%' || text_[pos + 1] == '#')) {
        return pos;
      }
    }
    return std::string_view::npos;
  }

  bool skips() const { return !blocks_.empty() && blocks_.back().skipped; }
  void put(const std::string& text) {
    if (!skips()) out_ += text;
  }

  /// Whether a condition or a loop requires tools; "not message.tool_calls" doesn't.
  static bool about_tools(std::string_view condition) {
    for (size_t at = condition.find("tool"); at != std::string_view::npos;
         at = condition.find("tool", at + 1)) {
      size_t begin = at;
      while (begin > 0 && !contains(" (", condition.substr(begin - 1, 1))) --begin;
      if (!trim(condition.substr(0, begin)).ends_with("not")) return true;
    }
    return false;
  }

  void statement(std::string_view text) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t\n("));
    const std::string_view rest = trim(text.substr(word.size()));
    if (word == "if" || word == "for" || word == "macro") {
      const bool outer = skips();
      blocks_.push_back({outer, outer || word == "macro" || about_tools(rest)});
    } else if ((word == "elif" || word == "else") && !blocks_.empty()) {
      Block& block = blocks_.back();
      block.skipped = block.passed_over || (word == "elif" && about_tools(rest));
    } else if ((word == "endif" || word == "endfor" || word == "endmacro") && !blocks_.empty()) {
      blocks_.pop_back();
    } else if (word == "set") {
      assign(rest);
    }
  }

  void assign(std::string_view text) {
    const size_t equals = find_outside_literals(text, "=", 0);
    if (equals == std::string_view::npos) return;
    variables_.push_back(trim(text.substr(0, equals)));
    // The scanner outputs a variable that holds a turn at its assignment.
    const std::string assigned = value(trim(text.substr(equals + 1)));
    if (contains(assigned, "<|")) put(assigned);
  }

  std::string value(std::string_view text) const {
    if (text.starts_with("raise_exception")) return {};
    std::string result;
    for (const std::string_view operand : operands(text)) {
      if (const auto words = literal(operand)) {
        result += *words;
      } else if (bracketed(operand)) {
        result += value(trim(operand.substr(1, operand.size() - 2)));
      } else {
        result += expression(operand);
      }
    }
    return result;
  }

  char expression(std::string_view text) const {
    if (contains(text, "<|")) return kWrong;  // markers that the scanner doesn't understand
    if (text == "bos_token") return kNothing;
    if (std::find(variables_.begin(), variables_.end(), text) != variables_.end()) {
      return kNothing;
    }
    if (!contains(text, "content")) return kExpression;
    const bool trims = contains(text, "trim") || contains(text, "strip");
    return trims == (format_ == ChatFormat::llama3) ? kExpression : kWrong;
  }

  std::string_view text_;
  ChatFormat format_;
  std::string out_;
  std::vector<Block> blocks_;
  std::vector<std::string_view> variables_;
};

/// The literal parts of a format's turns.
struct Grammar {
  std::string_view start, after_role, end, after_end;
};

Grammar grammar(ChatFormat format) {
  if (format == ChatFormat::chat_ml) return {"<|im_start|>", "\n", "<|im_end|>", "\n"};
  return {"<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", ""};
}

/// Returns `text` without the characters of expressions.
std::string without_values(std::string_view text) {
  std::string rest;
  for (const char c : text) {
    if (c != kExpression && c != kNothing) rest += c;
  }
  return rest;
}

/// Returns the role at the start of `text`, an expression or a word; empty if there is none.
std::string_view role_at(std::string_view text) {
  if (!text.empty() && (text[0] == kExpression || text[0] == kNothing)) return text.substr(0, 1);
  for (const std::string_view word : {"system", "user", "assistant"}) {
    if (text.starts_with(word)) return word;
  }
  return {};
}

}  // namespace

bool gives_turns(std::string_view chat_template, ChatFormat format) {
  const std::optional<std::string> scanned = Scanner(chat_template, format).run();
  if (!scanned) return false;
  const Grammar turn = grammar(format);
  const std::string system =
      format == ChatFormat::chat_ml ? default_system_message(chat_template) : "";
  std::string_view rest = *scanned;
  bool any_user = false, ended = false;
  for (;;) {
    const size_t start = rest.find(turn.start);
    const std::string between = without_values(rest.substr(0, start));
    if (contains(rest.substr(0, start), std::string_view(&kExpression, 1))) return false;
    if (between != (ended ? turn.after_end : "")) return false;
    if (start == std::string_view::npos) return any_user;
    rest.remove_prefix(start + turn.start.size());
    const std::string_view role = role_at(rest);
    rest.remove_prefix(role.size());
    if (role.empty() || !rest.starts_with(turn.after_role)) return false;
    rest.remove_prefix(turn.after_role.size());
    const size_t end = rest.find(turn.end), next = rest.find(turn.start);
    ended = end != std::string_view::npos && end < next;
    if (!ended) {  // the start of the answer
      if (role != "assistant") return false;
      continue;
    }
    const std::string words = without_values(rest.substr(0, end));
    if (!words.empty() && (words != system || role != "system")) return false;
    any_user = any_user || role == "user" || role.size() == 1;
    rest.remove_prefix(end + turn.end.size());
  }
}

std::string_view name(ChatFormat format) {
  return format == ChatFormat::chat_ml ? "ChatML" : "Llama 3";
}

}  // namespace wick::text
