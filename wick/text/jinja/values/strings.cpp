#include "wick/text/jinja/values/strings.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/text/jinja/values/operators.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

constexpr size_t kNone = std::string::npos;

size_t size_of(const String& text) { return text.text.bytes.size(); }

bool has_character(std::string_view characters, std::string_view one) {
  for (size_t at = 0; at < characters.size();) {
    const size_t length = first_character(characters.substr(at)).length;
    if (characters.substr(at, length) == one) return true;
    at += length;
  }
  return false;
}

Value pieces(Run& run, std::vector<MarkedString> parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (MarkedString& part : parts) items.push_back(run.string(std::move(part)));
  return run.list(std::move(items));
}

template <bool start, bool end>
Value strip(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "strip", arguments, {"/chars"});
  const bool has = given.get(0) != nullptr && !given.get(0)->is_none();
  const std::string characters = has ? given.text(0, {}) : std::string();
  return run.string(stripped(run, text.text, has ? &characters : nullptr, start, end));
}

/// Splits at white space. `limit`: the most splits; negative: no limit.
std::vector<MarkedString> words_of(Run& run, const MarkedString& text, int64_t limit,
                                   bool from_right) {
  run.read(text.bytes.size());
  const std::string_view bytes = text.bytes;
  std::vector<MarkedString> out;
  if (from_right) {
    size_t end = without_trailing_space(bytes).size();
    while (end > 0) {
      run.step();
      size_t begin = end;
      if (limit >= 0 && static_cast<int64_t>(out.size()) == limit) {
        out.push_back(text.slice(0, end));  // as it is, with the space before it
        break;
      }
      while (begin > 0) {
        const size_t last = last_character(bytes.substr(0, begin));
        if (is_space(first_character(bytes.substr(last)).point)) break;
        begin = last;
      }
      out.push_back(text.slice(begin, end));
      end = without_trailing_space(bytes.substr(0, begin)).size();
    }
    std::reverse(out.begin(), out.end());
    return out;
  }
  size_t begin = bytes.size() - without_leading_space(bytes).size();
  while (begin < bytes.size()) {
    run.step();
    size_t end = begin;
    if (limit >= 0 && static_cast<int64_t>(out.size()) == limit) {
      out.push_back(text.slice(begin, bytes.size()));  // as it is, with the space after it
      break;
    }
    while (end < bytes.size()) {
      const Character c = first_character(bytes.substr(end));
      if (is_space(c.point)) break;
      end += c.length;
    }
    out.push_back(text.slice(begin, end));
    begin = bytes.size() - without_leading_space(bytes.substr(end)).size();
  }
  return out;
}

template <bool from_right>
Value split(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "split", arguments, {"sep", "maxsplit"});
  const int64_t limit = given.integer(1, -1);
  if (given.get(0) == nullptr || given.get(0)->is_none()) {
    return pieces(run, words_of(run, text.text, limit, from_right));
  }
  const std::string separator = given.text(0, {});
  if (separator.empty()) run.fail("split: the separator is empty");
  run.read(size_of(text));
  const std::string_view bytes = text.text.bytes;
  std::vector<MarkedString> out;
  size_t begin = 0, end = bytes.size();
  while (limit < 0 || static_cast<int64_t>(out.size()) < limit) {
    run.step();
    if (from_right) {
      const size_t at =
          end < separator.size() ? kNone : bytes.rfind(separator, end - separator.size());
      if (at == kNone) break;
      out.push_back(text.text.slice(at + separator.size(), end));
      end = at;
    } else {
      const size_t at = bytes.find(separator, begin);
      if (at == kNone) break;
      out.push_back(text.text.slice(begin, at));
      begin = at + separator.size();
    }
  }
  out.push_back(text.text.slice(begin, end));
  if (from_right) std::reverse(out.begin(), out.end());
  return pieces(run, std::move(out));
}

Value splitlines(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "splitlines", arguments, {"keepends"});
  return pieces(run, lines_of(run, text.text, given.flag(0, false)));
}

template <bool last>
Value partition(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "partition", arguments, {"/sep"});
  const String& separator = need_string(run, given.need(0));
  if (size_of(separator) == 0) run.fail("partition: the separator is empty");
  run.read(size_of(text));
  const std::string& bytes = text.text.bytes;
  const size_t at = last ? bytes.rfind(separator.text.bytes) : bytes.find(separator.text.bytes);
  const Value whole = run.string(text.text), none = run.text("");
  if (at == kNone) {
    return run.sequence(Sequence::Kind::tuple, last ? std::vector<Value>{none, none, whole}
                                                    : std::vector<Value>{whole, none, none});
  }
  const size_t end = at + size_of(separator);
  return run.sequence(Sequence::Kind::tuple,
                      {run.string(text.text.slice(0, at)), run.string(text.text.slice(at, end)),
                       run.string(text.text.slice(end, bytes.size()))});
}

/// The bytes between two character positions, as text[start:end].
struct Window {
  size_t begin, end;
  bool valid;  // start isn't behind the end of the text
};

Window window(Run& run, const String& text, const Value* start, const Value* end) {
  const auto count = static_cast<int64_t>(text.characters);
  const auto place = [&](const Value* given, int64_t otherwise) {
    if (given == nullptr || given->is_none()) return otherwise;
    const int64_t at = need_integer(run, *given);
    return at < 0 ? std::max<int64_t>(at + count, 0) : at;
  };
  const int64_t first = place(start, 0), last = std::min(place(end, count), count);
  if (first > count || first > last) return {0, 0, false};
  run.read(size_of(text));
  return {offset_of(text.text.bytes, static_cast<size_t>(first)),
          offset_of(text.text.bytes, static_cast<size_t>(last)), true};
}

template <bool at_end>
Value starts_or_ends(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, at_end ? "endswith" : "startswith", arguments,
                         {at_end ? "/suffix" : "/prefix", "/start", "/end"});
  const Window part = window(run, text, given.get(1), given.get(2));
  const auto matches = [&](const Value& wanted) {
    const std::string& affix = need_string(run, wanted).text.bytes;
    if (!part.valid) return false;
    const std::string_view bytes =
        std::string_view(text.text.bytes).substr(part.begin, part.end - part.begin);
    return at_end ? bytes.ends_with(affix) : bytes.starts_with(affix);
  };
  const Sequence* choices = given.need(0).sequence();
  if (choices == nullptr || !choices->is_tuple()) return Value(matches(given.need(0)));
  for (const Value& wanted : choices->items) {
    run.step();
    if (matches(wanted)) return Value(true);
  }
  return Value(false);
}

template <bool last, bool required>
Value find(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "find", arguments, {"/sub", "/start", "/end"});
  const std::string part = need_string(run, given.need(0)).text.bytes;
  const Window place = window(run, text, given.get(1), given.get(2));
  size_t at = kNone;
  if (place.valid) {
    const std::string_view bytes =
        std::string_view(text.text.bytes).substr(place.begin, place.end - place.begin);
    at = last ? bytes.rfind(part) : bytes.find(part);
  }
  if (at == kNone) {
    if (required) run.fail("index: the text has no such part");
    return Value(-1);
  }
  const std::string_view before = std::string_view(text.text.bytes).substr(0, place.begin + at);
  return Value(static_cast<int64_t>(count_characters(before)));
}

Value count(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "count", arguments, {"/sub", "/start", "/end"});
  const std::string part = need_string(run, given.need(0)).text.bytes;
  const Window place = window(run, text, given.get(1), given.get(2));
  if (!place.valid) return Value(0);
  run.read(size_of(text));
  const std::string_view bytes =
      std::string_view(text.text.bytes).substr(place.begin, place.end - place.begin);
  if (part.empty()) return Value(static_cast<int64_t>(count_characters(bytes)) + 1);
  int64_t result = 0;
  for (size_t at = bytes.find(part); at != kNone; at = bytes.find(part, at + part.size())) ++result;
  return Value(result);
}

Value replace(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "replace", arguments, {"/old", "/new", "/count"});
  const String &from = need_string(run, given.need(0)), &to = need_string(run, given.need(1));
  return run.string(replaced(run, text.text, from.text.bytes, to.text, given.integer(2, -1)));
}

Value join(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "join", arguments, {"/iterable"});
  const auto items = iterate(run, given.need(0));
  MarkedString out;
  for (size_t i = 0; i < items->items.size(); ++i) {
    run.step();
    if (i > 0) out.append(text.text);
    out.append(need_string(run, items->items[i]).text);
    run.check_size(out.bytes.size());
  }
  return run.string(std::move(out));
}

Value title(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "title", arguments, {});
  run.step(size_of(text));
  const std::string_view bytes = text.text.bytes;
  MarkedString out;
  bool inside = false;  // the character before is a cased letter
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = first_character(bytes.substr(at)).length;
    const MarkedString one = text.text.slice(at, at + length);
    out.append(in_case(run, one, !inside));
    inside = any_in_class(one.bytes, CharacterClass::upper) ||
             any_in_class(one.bytes, CharacterClass::lower);
    at += length;
  }
  return run.string(std::move(out));
}

template <bool upper_case>
Value to_case(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, upper_case ? "upper" : "lower", arguments, {});
  return run.string(in_case(run, text.text, upper_case));
}

Value capitalize(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "capitalize", arguments, {});
  return run.string(capitalized(run, text.text));
}

template <CharacterClass wanted>
Value is_all(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "a test of a string", arguments, {});
  run.read(size_of(text));
  const std::string& bytes = text.text.bytes;
  if (wanted == CharacterClass::upper || wanted == CharacterClass::lower) {
    const auto other =
        wanted == CharacterClass::upper ? CharacterClass::lower : CharacterClass::upper;
    return Value(any_in_class(bytes, wanted) && !any_in_class(bytes, other));
  }
  return Value(all_in_class(bytes, wanted));
}

Value isspace(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "isspace", arguments, {});
  run.read(size_of(text));
  return Value(size_of(text) > 0 && without_leading_space(text.text.bytes).empty());
}

Value isascii(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "isascii", arguments, {});
  return Value(std::all_of(text.text.bytes.begin(), text.text.bytes.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

template <bool suffix>
Value remove_affix(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, suffix ? "removesuffix" : "removeprefix", arguments, {"/affix"});
  const std::string affix = need_string(run, given.need(0)).text.bytes;
  const std::string& bytes = text.text.bytes;
  if (suffix && !affix.empty() && bytes.ends_with(affix)) {
    return run.string(text.text.slice(0, bytes.size() - affix.size()));
  }
  if (!suffix && bytes.starts_with(affix)) {
    return run.string(text.text.slice(affix.size(), bytes.size()));
  }
  return run.string(text.text);
}

/// Pads to a width. `align`: where the text is in it.
template <char align>
Value justify(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "padding", arguments, {"/width", "/fillchar"});
  const int64_t width = need_integer(run, given.need(0));
  const std::string fill = given.text(1, " ");
  if (count_characters(fill) != 1) run.fail("the fill character must be one character");
  if (align == '^') return run.string(centered(run, text.text, width, fill));
  MarkedString padding;
  const auto size = static_cast<int64_t>(text.characters);
  run.check_size(static_cast<size_t>(std::max<int64_t>(width, 0)));
  for (int64_t i = size; i < width; ++i) padding.append(fill, false);
  MarkedString out = align == '<' ? text.text : padding;
  out.append(align == '<' ? padding : text.text);
  return run.string(std::move(out));
}

Value zfill(Run& run, const String& text, Arguments& arguments) {
  const Parameters given(run, "zfill", arguments, {"/width"});
  const int64_t width = need_integer(run, given.need(0));
  const bool sign = text.text.bytes.starts_with('-') || text.text.bytes.starts_with('+');
  MarkedString out = text.text.slice(0, sign ? 1 : 0);
  run.check_size(static_cast<size_t>(std::max<int64_t>(width, 0)));
  for (auto i = static_cast<int64_t>(text.characters); i < width; ++i) out.append("0", false);
  out.append(text.text, sign ? 1 : 0, size_of(text));
  return run.string(std::move(out));
}

Value format(Run& run, const String& text, Arguments& arguments) {
  return run.string(format_braces(run, text.text, arguments));
}

struct Entry {
  std::string_view name;
  StringMethod method;
};
constexpr Entry kMethods[] = {
    {"capitalize", capitalize},
    {"center", justify<'^'>},
    {"count", count},
    {"endswith", starts_or_ends<true>},
    {"find", find<false, false>},
    {"format", format},
    {"index", find<false, true>},
    {"isalnum", is_all<CharacterClass::alnum>},
    {"isalpha", is_all<CharacterClass::alpha>},
    {"isascii", isascii},
    {"isdecimal", is_all<CharacterClass::decimal>},
    {"isdigit", is_all<CharacterClass::digit>},
    {"islower", is_all<CharacterClass::lower>},
    {"isnumeric", is_all<CharacterClass::numeric>},
    {"isspace", isspace},
    {"isupper", is_all<CharacterClass::upper>},
    {"join", join},
    {"ljust", justify<'<'>},
    {"lower", to_case<false>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<'>'>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", starts_or_ends<false>},
    {"strip", strip<true, true>},
    {"title", title},
    {"upper", to_case<true>},
    {"zfill", zfill},
};

}  // namespace

StringMethod find_string_method(std::string_view name) {
  for (const Entry& entry : kMethods) {
    if (entry.name == name) return entry.method;
  }
  return nullptr;
}

bool keeps_html(std::string_view name) {
  constexpr std::string_view kNames[] = {"capitalize", "lower", "lstrip", "rsplit",     "rstrip",
                                         "split",      "strip", "title",  "splitlines", "upper"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

MarkedString stripped(Run& run, const MarkedString& text, const std::string* characters,
                      bool at_start, bool at_end) {
  run.read(text.bytes.size());
  std::string_view rest = text.bytes;
  size_t begin = 0;
  if (characters == nullptr) {
    if (at_start) rest = without_leading_space(rest);
    begin = text.bytes.size() - rest.size();
    if (at_end) rest = without_trailing_space(rest);
    return text.slice(begin, begin + rest.size());
  }
  while (at_start && !rest.empty()) {
    const size_t length = first_character(rest).length;
    run.read(characters->size());
    if (!has_character(*characters, rest.substr(0, length))) break;
    rest.remove_prefix(length);
    begin += length;
  }
  while (at_end && !rest.empty()) {
    const size_t last = last_character(rest);
    run.read(characters->size());
    if (!has_character(*characters, rest.substr(last))) break;
    rest = rest.substr(0, last);
  }
  return text.slice(begin, begin + rest.size());
}

MarkedString replaced(Run& run, const MarkedString& text, std::string_view from,
                      const MarkedString& to, int64_t count) {
  run.read(text.bytes.size());
  const std::string_view bytes = text.bytes;
  MarkedString out;
  size_t begin = 0;
  const auto insert = [&] {
    run.step();
    run.check_size(out.bytes.size() + to.bytes.size());
    out.append(to);
    --count;
  };
  if (from.empty()) {  // between all characters, and at both ends
    while (count != 0) {
      insert();
      if (begin == bytes.size()) return out;
      const size_t end = begin + first_character(bytes.substr(begin)).length;
      out.append(text, begin, end);
      begin = end;
    }
  }
  while (count != 0) {
    const size_t at = bytes.find(from, begin);
    if (at == kNone) break;
    out.append(text, begin, at);
    insert();
    begin = at + from.size();
  }
  out.append(text, begin, bytes.size());
  return out;
}

std::vector<MarkedString> lines_of(Run& run, const MarkedString& text, bool keep_ends) {
  run.read(text.bytes.size());
  const std::string_view bytes = text.bytes;
  std::vector<MarkedString> out;
  for (size_t begin = 0; begin < bytes.size();) {
    run.step();
    size_t end = begin, after = bytes.size();
    for (; end < bytes.size();) {
      const Character c = first_character(bytes.substr(end));
      if (ends_line(c.point)) {
        const bool pair = c.point == '\r' && bytes.substr(end + 1).starts_with('\n');
        after = end + c.length + (pair ? 1 : 0);
        break;
      }
      end += c.length;
    }
    out.push_back(text.slice(begin, keep_ends ? after : end));
    begin = after;
  }
  return out;
}

MarkedString in_case(Run& run, const MarkedString& text, bool upper_case) {
  run.make(text.bytes.size());
  const auto mapped = [&](size_t begin, size_t end) {
    const std::string_view part = std::string_view(text.bytes).substr(begin, end - begin);
    return upper_case ? upper(part) : lower(part);
  };
  MarkedString out;
  size_t begin = 0;
  for (const TextRange& range : text.content) {
    out.append(mapped(begin, range.begin), false);
    out.append(mapped(range.begin, range.end), true);
    begin = range.end;
  }
  out.append(mapped(begin, text.bytes.size()), false);
  return out;
}

MarkedString escaped(Run& run, const MarkedString& text) {
  run.make(text.bytes.size());
  const std::string_view bytes = text.bytes;
  MarkedString out;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char c = bytes[at];
    const std::string_view entity = c == '&'    ? "&amp;"
                                    : c == '<'  ? "&lt;"
                                    : c == '>'  ? "&gt;"
                                    : c == '\'' ? "&#39;"
                                    : c == '"'  ? "&#34;"
                                                : "";
    if (entity.empty()) continue;
    out.append(text, begin, at);
    out.append(entity, text.has_content());
    begin = at + 1;
  }
  out.append(text, begin, bytes.size());
  return out;
}

MarkedString capitalized(Run& run, const MarkedString& text) {
  if (text.bytes.empty()) return {};
  const size_t first = first_character(text.bytes).length;
  MarkedString out = in_case(run, text.slice(0, first), true);
  out.append(in_case(run, text.slice(first, text.bytes.size()), false));
  return out;
}

MarkedString centered(Run& run, const MarkedString& text, int64_t width, std::string_view fill) {
  run.check_size(static_cast<size_t>(std::max<int64_t>(width, 0)));
  const auto size = static_cast<int64_t>(count_characters(text.bytes));
  const int64_t missing = std::max<int64_t>(width - size, 0);
  // Python puts the odd character on the left if the width is odd.
  const int64_t left = missing / 2 + (missing & width & 1);
  MarkedString out;
  for (int64_t i = 0; i < left; ++i) out.append(fill, false);
  out.append(text);
  for (int64_t i = left; i < missing; ++i) out.append(fill, false);
  return out;
}

}  // namespace wick::text::jinja
