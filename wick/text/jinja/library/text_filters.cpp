// Filters of strings and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "wick/text/jinja/library/filters.h"
#include "wick/text/jinja/values/strings.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

bool is_html(const Value& value) { return value.string() != nullptr && value.string()->html; }

template <bool upper_case>
Value change_case(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, upper_case ? "upper" : "lower", arguments, {});
  return run.string(in_case(run, to_text(run, value), upper_case), is_html(value));
}

Value trim(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "trim", arguments, {"chars"});
  const bool has = given.get(0) != nullptr && !given.get(0)->is_none();
  const std::string characters = has ? given.text(0, {}) : std::string();
  return run.string(stripped(run, to_text(run, value), has ? &characters : nullptr, true, true),
                    is_html(value));
}

Value capitalize(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "capitalize", arguments, {});
  return run.string(capitalized(run, to_text(run, value)), is_html(value));
}

Value title(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "title", arguments, {});
  const MarkedString text = to_text(run, value);
  run.step(text.bytes.size());
  const std::string_view bytes = text.bytes;
  MarkedString out;
  bool begins = true;
  for (size_t at = 0; at < bytes.size();) {
    const Character c = first_character(bytes.substr(at));
    const bool separator =
        is_space(c.point) ||
        (c.point < 0x80 &&
         std::string_view("-({[<").find(static_cast<char>(c.point)) != std::string_view::npos);
    out.append(in_case(run, text.slice(at, at + c.length), begins && !separator));
    begins = separator;
    at += c.length;
  }
  return run.string(std::move(out));
}

Value center(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "center", arguments, {"width"});
  return run.string(centered(run, to_text(run, value), given.integer(0, 80), " "), is_html(value));
}

Value replace(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "replace", arguments, {"old", "new", "count"});
  const bool all = given.get(2) == nullptr || given.get(2)->is_none();
  return run.string(replaced(run, to_text(run, value), plain_text(run, given.need(0)),
                             to_text(run, given.need(1)), all ? -1 : given.integer(2, -1)));
}

Value indent(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "indent", arguments, {"width", "first", "blank"});
  MarkedString unit;
  if (const Value* width = given.get(0); width != nullptr && width->string() != nullptr) {
    unit = width->string()->text;
  } else {
    const int64_t count = std::max<int64_t>(given.integer(0, 4), 0);
    run.check_size(static_cast<size_t>(count));
    unit = MarkedString::plain(std::string(static_cast<size_t>(count), ' '));
  }
  const bool first = given.flag(1, false), blank = given.flag(2, false);
  MarkedString text = need_string(run, value).text;
  if (is_html(value)) run.fail("indent isn't supported after the filter safe");
  text.append("\n", false);
  const std::vector<MarkedString> lines = lines_of(run, text, false);
  MarkedString out;
  for (size_t i = 0; i < lines.size(); ++i) {
    run.step();
    if (i > 0) out.append("\n", false);
    if (i == 0 ? first : (blank || !lines[i].bytes.empty())) out.append(unit);
    out.append(lines[i]);
    run.check_size(out.bytes.size());
  }
  return run.string(std::move(out));
}

Value truncate(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "truncate", arguments, {"length", "killwords", "end", "leeway"});
  const String& text = need_string(run, value);
  if (text.html) run.fail("truncate isn't supported after the filter safe");
  const int64_t length = given.integer(0, 255);
  const MarkedString end =
      given.get(2) != nullptr ? need_string(run, *given.get(2)).text : MarkedString::plain("...");
  const bool default_leeway = given.get(3) == nullptr || given.get(3)->is_none();
  const int64_t leeway = default_leeway ? 5 : given.integer(3, 5);
  const int64_t kept = length - static_cast<int64_t>(count_characters(end.bytes));
  if (kept < 0 || leeway < 0) run.fail("truncate: the length is less than that of the end");
  if (static_cast<int64_t>(text.characters) - leeway <= length) return value;
  MarkedString out = text.text.slice(0, offset_of(text.text.bytes, static_cast<size_t>(kept)));
  if (!given.flag(1, false)) {
    const size_t blank = out.bytes.rfind(' ');
    if (blank != std::string::npos) out = out.slice(0, blank);
  }
  out.append(end);
  return run.string(std::move(out));
}

Value wordcount(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "wordcount", arguments, {});
  const std::string text = plain_text(run, value);
  run.step(text.size());
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = first_character(std::string_view(text).substr(at)).length;
    const bool word = all_in_class(std::string_view(text).substr(at, length), CharacterClass::word);
    count += word && !inside;
    inside = word;
    at += length;
  }
  return Value(count);
}

template <bool always>
Value escape(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "escape", arguments, {});
  if (!always && is_html(value)) return value;
  return run.string(escaped(run, to_text(run, value)), true);
}

Value safe(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "safe", arguments, {});
  return run.string(to_text(run, value), true);
}

Value to_string(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "string", arguments, {});
  if (value.string() != nullptr) return value;
  return run.string(to_text(run, value));
}

Value urlencode(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "urlencode", arguments, {});
  if (value.dict() != nullptr || value.sequence() != nullptr) {
    run.fail("urlencode of dicts and lists isn't supported");
  }
  const MarkedString text = to_text(run, value);
  std::string out;
  for (const char c : text.bytes) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  MarkedString result;
  result.append(out, text.has_content());
  return run.string(std::move(result));
}

Value tojson(Run& run, const Value& value, Arguments& arguments) {
  // The parameters of the function that replaces jinja2's own tojson for chat templates.
  const Parameters given(run, "tojson", arguments,
                         {"ensure_ascii", "indent", "separators", "sort_keys"});
  const Value indent = given.get(1) != nullptr ? *given.get(1) : Value();
  std::string between = indent.is_none() ? ", " : ",", after_key = ": ";
  if (const Value* separators = given.get(2); separators != nullptr && !separators->is_none()) {
    const auto pair = iterate(run, *separators);
    if (pair->items.size() != 2) run.fail("tojson: separators must be two strings");
    between = need_string(run, pair->items[0]).text.bytes;
    after_key = need_string(run, pair->items[1]).text.bytes;
  }
  return run.string(
      to_json(run, value, given.flag(0, false), indent, between, after_key, given.flag(3, false)));
}

std::optional<double> parse_real(std::string_view text) {
  text = without_trailing_space(without_leading_space(text));
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    const bool tiny = text.find("e-") != std::string_view::npos;
    const double limit = tiny ? 0.0 : HUGE_VAL;
    return text.starts_with('-') ? -limit : limit;
  }
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(Run& run, std::string_view text, int64_t base) {
  text = without_trailing_space(without_leading_space(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefix = [&](char letter, int64_t radix) {
    if (base != radix || text.size() < 2 || text[0] != '0' || (text[1] | 0x20) != letter) return;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  };
  prefix('x', 16);
  prefix('o', 8);
  prefix('b', 2);
  std::string digits(negative ? "-" : "");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {  // allowed between two digits
      if (i == 0 || i + 1 == text.size() || text[i + 1] == '_') return std::nullopt;
      continue;
    }
    if (text[i] == '-' || text[i] == '+') return std::nullopt;
    digits += text[i];
  }
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (error == std::errc::result_out_of_range) {
    run.fail("an integer is out of range: integers have 64 bits");
  }
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

int64_t truncated(Run& run, double value) {
  if (!(std::fabs(value) < 0x1p63)) run.fail("a float is out of the range of integers");
  return static_cast<int64_t>(value);
}

Value to_int(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "int", arguments, {"default", "base"});
  const Value otherwise = given.get(0) != nullptr ? *given.get(0) : Value(0);
  const int64_t base = given.integer(1, 10);
  if (base < 2 || base > 36) run.fail("int: the base must be 2 to 36");
  run.require_defined(value);
  if (const auto integer = value.integer()) return Value(*integer);
  std::optional<double> real;
  if (const String* text = value.string()) {
    run.read(text->text.bytes.size());
    if (const auto integer = parse_integer(run, text->text.bytes, base)) return Value(*integer);
    real = parse_real(text->text.bytes);
    if (real && !std::isfinite(*real)) return otherwise;
  } else if (value.real() != nullptr) {
    real = *value.real();
    if (std::isnan(*real)) return otherwise;
  }
  return real ? Value(truncated(run, *real)) : otherwise;
}

Value to_float(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "float", arguments, {"default"});
  run.require_defined(value);
  if (const auto number = value.number()) return Value(*number);
  if (const String* text = value.string()) {
    if (const auto real = parse_real(text->text.bytes)) return Value(*real);
  }
  return given.get(0) != nullptr ? *given.get(0) : Value(0.0);
}

Value absolute(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "abs", arguments, {});
  if (const double* real = value.real()) return Value(std::fabs(*real));
  const auto integer = value.integer();
  if (!integer) run.fail_type("a number", value);
  return *integer < 0 ? negate(run, Value(*integer)) : Value(*integer);
}

double rounded(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::isfinite(unit) ? std::nearbyint(value / unit) * unit : 0.0;
  }
  // printf rounds the exact value to even, as Python does.
  char text[700];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(precision), value);
  double result = 0;
  std::from_chars(text, text + std::char_traits<char>::length(text), result);
  return result;
}

Value round(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "round", arguments, {"precision", "method"});
  const int64_t precision = given.integer(0, 0);
  const std::string method = given.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    run.fail("round: the method must be common, ceil or floor");
  }
  if (!value.number()) run.fail_type("a number", value);
  if (method == "common") {
    if (const auto integer = value.integer()) {
      if (precision < 0) run.fail("round: an integer can't be rounded to tens");
      return Value(*integer);
    }
    return Value(rounded(*value.real(), precision));
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *value.number() * unit;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Value format(Run& run, const Value& value, Arguments& arguments) {
  const MarkedString text = to_text(run, value);
  if (is_html(value)) run.fail("format isn't supported after the filter safe");
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    run.fail("format: positional and named arguments can't be mixed");
  }
  if (arguments.named.empty()) {
    const Value values = run.sequence(Sequence::Kind::tuple, std::move(arguments.positional));
    return run.string(format_percent(run, text, values));
  }
  Dict dict;
  for (const auto& [name, given] : arguments.named) dict.set(run.text(name), given);
  return run.string(format_percent(run, text, run.dict(std::move(dict))));
}

Value otherwise(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "default", arguments, {"default_value", "boolean"});
  if (!value.is_undefined() && (!given.flag(1, false) || value.truth())) return value;
  return given.get(0) != nullptr ? *given.get(0) : run.text("");
}

constexpr NamedFilter kFilters[] = {
    {"abs", absolute},
    {"capitalize", capitalize},
    {"center", center},
    {"d", otherwise},
    {"default", otherwise},
    {"e", escape<false>},
    {"escape", escape<false>},
    {"float", to_float},
    {"forceescape", escape<true>},
    {"format", format},
    {"indent", indent},
    {"int", to_int},
    {"lower", change_case<false>},
    {"replace", replace},
    {"round", round},
    {"safe", safe},
    {"string", to_string},
    {"title", title},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", change_case<true>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
};

}  // namespace

std::span<const NamedFilter> text_filters() { return kFilters; }

}  // namespace wick::text::jinja
