#include "wick/text/normalize/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "wick/base/error.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

utf8proc_category_t category(uint32_t point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(point));
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  if (form == NormalForm::nfc || form == NormalForm::nfkc) {
    options |= UTF8PROC_COMPOSE;
  } else {
    options |= UTF8PROC_DECOMPOSE;
  }
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

/// Sorts each run of combining marks by their classes. utf8proc's own sorting takes quadratic time.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto rank = [](utf8proc_int32_t point) {
    return point < 0x300 ? 0 : utf8proc_get_property(point)->combining_class;
  };
  for (auto begin = points.begin(); begin != points.end();) {
    if (rank(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, points.end(), [&](auto point) { return rank(point) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return rank(a) < rank(b); });
    begin = end;
  }
}

/// Appends the normal form of `text` to `out`. `points` is scratch space.
void append_normalized(std::string_view text, utf8proc_option_t options,
                       std::vector<utf8proc_int32_t>& points, std::string& out) {
  constexpr utf8proc_ssize_t kLongest = 32;  // the longest decomposition has 18 code points
  points.clear();
  for (size_t at = 0; at < text.size();) {
    const auto point = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    utf8proc_int32_t parts[kLongest];
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(point, parts, kLongest, options, &boundary);
    if (count < 0 || count > kLongest) {
      throw Error(ErrorKind::runtime, "tokenize", "the text can't be normalised",
                  count < 0 ? utf8proc_errmsg(count) : "a character decomposes into too many");
    }
    points.insert(points.end(), parts, parts + count);
  }
  order_marks(points);
  const auto count = static_cast<utf8proc_ssize_t>(points.size());
  points.push_back(0);  // utf8proc_reencode() writes UTF-8 over the code points, and a zero byte
  const utf8proc_ssize_t bytes = utf8proc_reencode(points.data(), count, options);
  if (bytes < 0) {
    throw Error(ErrorKind::runtime, "tokenize", "the text can't be normalised",
                utf8proc_errmsg(bytes));
  }
  out.append(reinterpret_cast<const char*>(points.data()), static_cast<size_t>(bytes));
}

}  // namespace

uint32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const uint32_t lead = byte(at);
  if (lead < 0x80) return text[at++];
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint32_t point = lead & (0x7fu >> length);
  for (size_t i = 1; i < length && at + i < text.size(); ++i) {
    point = (point << 6) | (byte(at + i) & 0x3f);
  }
  at = std::min(at + length, text.size());
  return point;
}

bool is_space(uint32_t point) {
  if (point < 0x80) return point == ' ' || (point >= '\t' && point <= '\r');
  return point == 0x85 || point == 0xa0 || point == 0x1680 ||
         (point >= 0x2000 && point <= 0x200a) || point == 0x2028 || point == 0x2029 ||
         point == 0x202f || point == 0x205f || point == 0x3000;
}

bool is_punctuation(uint32_t point) {
  if (point < 0x80) {
    return (point >= '!' && point <= '/') || (point >= ':' && point <= '@') ||
           (point >= '[' && point <= '`') || (point >= '{' && point <= '~');
  }
  const auto kind = category(point);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_control(uint32_t point) {
  if (point < 0x80)
    return (point < ' ' && point != '\t' && point != '\n' && point != '\r') || point == 0x7f;
  const auto kind = category(point);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CN || kind == UTF8PROC_CATEGORY_CO ||
         kind == UTF8PROC_CATEGORY_CS;
}

bool is_mark(uint32_t point) {
  if (point < 0x300) return false;
  const auto kind = category(point);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(uint32_t point) {
  return point >= 0x300 && category(point) == UTF8PROC_CATEGORY_MN;
}

bool is_word_character(uint32_t point) {
  if (point < 0x80) {
    return (point >= '0' && point <= '9') || (point >= 'A' && point <= 'Z') ||
           (point >= 'a' && point <= 'z') || point == '_';
  }
  const auto kind = category(point);
  const bool letter = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
  // Circled and squared letters are symbols with the property Alphabetic.
  const bool enclosed =
      (point >= 0x24b6 && point <= 0x24e9) || (point >= 0x1f130 && point <= 0x1f149) ||
      (point >= 0x1f150 && point <= 0x1f169) || (point >= 0x1f170 && point <= 0x1f189);
  const bool joiner = point == 0x200c || point == 0x200d;
  return letter || is_mark(point) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || enclosed || joiner;
}

bool is_ideograph(uint32_t point) {
  // The reference tokenizer's block for extension E begins at U+2B920 instead of U+2B820.
  return (point >= 0x4e00 && point <= 0x9fff) || (point >= 0x3400 && point <= 0x4dbf) ||
         (point >= 0x20000 && point <= 0x2a6df) || (point >= 0x2a700 && point <= 0x2b73f) ||
         (point >= 0x2b740 && point <= 0x2b81f) || (point >= 0x2b920 && point <= 0x2ceaf) ||
         (point >= 0xf900 && point <= 0xfaff) || (point >= 0x2f800 && point <= 0x2fa1f);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

void normalize(std::string& text, NormalForm form) {
  if (is_ascii(text)) return;
  const auto options = options_of(form);
  std::vector<utf8proc_int32_t> points;
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  const auto plain = [&](size_t i) { return static_cast<signed char>(text[i]) >= 0; };
  // ASCII characters are starters and don't change. One before another character may combine with
  // it.
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && plain(end)) ++end;
    if (end < text.size() && end > begin) --end;
    out.append(text, begin, end - begin);
    begin = end;
    if (end < text.size() && plain(end)) ++end;
    while (end < text.size() && !plain(end)) ++end;
    if (end > begin)
      append_normalized(std::string_view(text).substr(begin, end - begin), options, points, out);
    begin = end;
  }
  text = std::move(out);
}

void to_lower(std::string& text) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (is_ascii(text)) {
    std::transform(text.begin(), text.end(), text.begin(), lower);
    return;
  }
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (static_cast<signed char>(text[at]) >= 0) {
      out += lower(text[at++]);
      continue;
    }
    const uint32_t point = next_code_point(text, at);
    if (point == 0x130) {
      out += "i\xcc\x87";  // the only character whose mapping has two
    } else {
      append_utf8(out,
                  static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point))));
    }
  }
  text = std::move(out);
}

size_t end_of_grapheme(std::string_view text, size_t at) {
  utf8proc_int32_t state = 0;
  uint32_t left = next_code_point(text, at);
  while (at < text.size()) {
    size_t next = at;
    const uint32_t right = next_code_point(text, next);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(left),
                                         static_cast<utf8proc_int32_t>(right), &state)) {
      break;
    }
    left = right;
    at = next;
  }
  return at;
}

}  // namespace wick::text
