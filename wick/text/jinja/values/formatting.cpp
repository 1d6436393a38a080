// The operator % of strings, and str.format().
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "wick/base/printable.h"
#include "wick/base/utf8.h"
#include "wick/text/jinja/values/operators.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

constexpr int64_t kMaxWidth = 1000;

/// How a value is written: [[fill]align][sign][#][0][width][,][.precision][type].
struct Spec {
  std::string fill = " ";
  char align = '\0', sign = '-', type = '\0';
  bool alternate = false, zero = false, commas = false;
  int64_t width = 0, precision = -1;
};

int64_t read_number(Run& run, std::string_view text, size_t& at) {
  int64_t value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > kMaxWidth) run.fail(fmt::format("a width or precision exceeds {}", kMaxWidth));
  }
  return value;
}

/// Pads to the spec's width. `sign`: the bytes before which zeros aren't inserted.
MarkedString padded(const MarkedString& text, const Spec& spec, char otherwise, size_t sign = 0) {
  const auto size = static_cast<int64_t>(count_characters(text.bytes));
  const auto missing = static_cast<size_t>(std::max<int64_t>(spec.width - size, 0));
  const char align = spec.align != '\0' ? spec.align : otherwise;
  const size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  MarkedString out;
  const auto fill = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) out.append(spec.fill, false);
  };
  const size_t head = align == '=' ? sign : 0;
  out.append(text, 0, head);
  fill(before);
  out.append(text, head, text.bytes.size());
  fill(missing - before);
  return out;
}

std::string with_commas(const std::string& digits) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(end);
}

std::string sign_of(bool negative, char wanted) {
  if (negative) return "-";
  return wanted == '+' ? "+" : wanted == ' ' ? " " : "";
}

MarkedString number_text(const Spec& spec, bool negative, const std::string& prefix,
                         std::string digits) {
  if (spec.commas) digits = with_commas(digits);
  const std::string head = sign_of(negative, spec.sign) + prefix;
  Spec padding = spec;
  if (spec.zero && spec.align == '\0') {
    padding.fill.assign(1, '0');
    padding.align = '=';
  }
  return padded(MarkedString::plain(head + digits), padding, '>', head.size());
}

MarkedString integer_text(Run& run, const Spec& spec, int64_t value) {
  const uint64_t size =
      value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string digits, prefix;
  switch (spec.type) {
    case 'x':
      digits = fmt::format("{:x}", size);
      prefix = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", size);
      prefix = "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", size);
      prefix = "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", size);
      prefix = "0b";
      break;
    case 'c': {
      if (value < 0 || !is_character(static_cast<uint64_t>(value)))
        run.fail("%c needs a character");
      std::string text;
      append_utf8(text, static_cast<char32_t>(value));
      return padded(MarkedString::plain(text), spec, '<');
    }
    default:
      digits = fmt::format("{}", size);
  }
  if (!spec.alternate) prefix.clear();
  const auto least = static_cast<size_t>(std::max<int64_t>(spec.precision, 0));
  if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
  return number_text(spec, value < 0, prefix, std::move(digits));
}

MarkedString real_text(const Spec& spec, double value) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const bool capital = spec.type >= 'A' && spec.type <= 'Z';
  if (std::isnan(value) || std::isinf(value)) {
    const char* text = std::isnan(value) ? (capital ? "NAN" : "nan") : (capital ? "INF" : "inf");
    Spec spaced = spec;
    spaced.zero = false;
    return number_text(spaced, negative, {}, text);
  }
  if (spec.type == '\0' && spec.precision < 0) {
    return number_text(spec, negative, {}, float_repr(std::fabs(value)));
  }
  const bool percent = spec.type == '%';
  const char type = spec.type == '\0' ? 'g' : percent ? 'f' : spec.type;
  const char format[] = {'%',
                         spec.alternate ? '#' : '.',
                         spec.alternate ? '.' : '*',
                         spec.alternate ? '*' : type,
                         spec.alternate ? type : '\0',
                         '\0'};
  std::string digits(static_cast<size_t>(std::max<int64_t>(spec.precision, 6)) + 400, '\0');
  const int count = std::snprintf(digits.data(), digits.size(), format,
                                  static_cast<int>(spec.precision < 0 ? 6 : spec.precision),
                                  std::fabs(percent ? value * 100 : value));
  digits.resize(static_cast<size_t>(count));
  if (percent) digits += '%';
  return number_text(spec, negative, {}, std::move(digits));
}

MarkedString text_with(const Spec& spec, const MarkedString& text) {
  if (spec.precision < 0) return padded(text, spec, '<');
  return padded(text.slice(0, offset_of(text.bytes, static_cast<size_t>(spec.precision))), spec,
                '<');
}

/// Reads a format specification of str.format().
Spec read_spec(Run& run, std::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < text.size() && std::string_view("<>^=").find(text[i]) != std::string_view::npos;
  };
  const size_t first = text.empty() ? 0 : first_character(text).length;
  if (first > 0 && is_align(first)) {
    spec.fill = std::string(text.substr(0, first));
    spec.align = text[first];
    at = first + 1;
  } else if (is_align(0)) {
    spec.align = text[at++];
  }
  const auto take = [&](char c) { return at < text.size() && text[at] == c && ++at > 0; };
  for (const char sign : {'+', '-', ' '}) {
    if (take(sign)) spec.sign = sign;
  }
  spec.alternate = take('#');
  spec.zero = take('0');
  spec.width = read_number(run, text, at);
  spec.commas = take(',');
  if (take('.')) spec.precision = read_number(run, text, at);
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) run.fail("malformed format specification", text);
  return spec;
}

MarkedString formatted(Run& run, const Value& value, std::string_view text) {
  if (text.empty()) return to_text(run, value);
  const Spec spec = read_spec(run, text);
  const auto integer = value.integer();
  const bool is_real_type =
      spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (value.string() != nullptr) {
    if (spec.type != '\0' && spec.type != 's') run.fail("a string needs the format type s", text);
    return text_with(spec, value.string()->text);
  }
  if (integer && !is_real_type) {
    if (spec.type != '\0' && std::string_view("bcdoxX").find(spec.type) == std::string_view::npos) {
      run.fail("an integer has no such format type", text);
    }
    return integer_text(run, spec, *integer);
  }
  if (const auto real = value.number()) {
    if (spec.type != '\0' && !is_real_type) run.fail("a float has no such format type", text);
    return real_text(spec, *real);
  }
  run.fail(fmt::format("a '{}' has no format specifications", value.type_name()), text);
}

/// Reads replacement fields of str.format().
class Braces {
 public:
  Braces(Run& run, const MarkedString& format, const Arguments& arguments)
      : run_(run), format_(format), bytes_(format.bytes), arguments_(arguments) {}

  MarkedString whole() {
    MarkedString out;
    size_t begin = 0;
    for (size_t at = 0; at < bytes_.size();) {
      const char c = bytes_[at];
      if (c != '{' && c != '}') {
        ++at;
        continue;
      }
      out.append(format_, begin, at);
      if (at + 1 < bytes_.size() && bytes_[at + 1] == c) {
        out.append(format_, at, at + 1);
        at += 2;
      } else {
        const size_t end = bytes_.find('}', at);
        if (c == '}' || end == std::string_view::npos) run_.fail("a single brace in a format");
        out.append(field(bytes_.substr(at + 1, end - at - 1)));
        run_.check_size(out.bytes.size());
        at = end + 1;
      }
      begin = at;
    }
    out.append(format_, begin, bytes_.size());
    return out;
  }

 private:
  MarkedString field(std::string_view text) {
    run_.step();
    if (text.find('{') != std::string_view::npos) run_.fail("nested fields aren't supported");
    const size_t colon = std::min(text.find(':'), text.size());
    std::string_view name = text.substr(0, colon);
    const std::string_view spec = colon < text.size() ? text.substr(colon + 1) : "";
    char conversion = '\0';
    if (name.size() >= 2 && name[name.size() - 2] == '!') {
      conversion = name.back();
      name.remove_suffix(2);
    }
    const Value found = value(name);
    if (conversion == '\0') return formatted(run_, found, spec);
    if (conversion != 's' && conversion != 'r') run_.fail("unknown conversion", text);
    const Value shown =
        run_.string(conversion == 's' ? to_text(run_, found) : to_repr(run_, found));
    return formatted(run_, shown, spec);
  }

  Value value(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Value found = argument(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      if (path[0] == '.') {
        const size_t stop = std::min(path.find_first_of(".[", 1), path.size());
        found = attribute(run_, found, path.substr(1, stop - 1));
        path.remove_prefix(stop);
      } else {
        const size_t stop = path.find(']');
        if (path[0] != '[' || stop == std::string_view::npos) run_.fail("malformed field", path);
        const std::string_view key = path.substr(1, stop - 1);
        found = item(run_, found, number(key) ? Value(*number(key)) : run_.text(key));
        path.remove_prefix(stop + 1);
      }
    }
    return found;
  }

  static std::optional<int64_t> number(std::string_view text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
  }

  Value argument(std::string_view name) {
    auto index = number(name);
    if (name.empty()) index = next_++;
    if (index) {
      if (*index >= static_cast<int64_t>(arguments_.positional.size())) {
        run_.fail("a format has more fields than arguments");
      }
      return arguments_.positional[static_cast<size_t>(*index)];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    run_.fail("a format's field has no argument", name);
  }

  Run& run_;
  const MarkedString& format_;
  std::string_view bytes_;
  const Arguments& arguments_;
  int64_t next_ = 0;
};

MarkedString converted(Run& run, const Spec& given, const Value& value) {
  Spec spec = given;
  const char type = spec.type;
  if (type == 's' || type == 'r') {
    spec.zero = false;
    if (spec.align == '\0') spec.align = '>';
    return text_with(spec, type == 's' ? to_text(run, value) : to_repr(run, value));
  }
  if (!value.number()) run.fail_type(fmt::format("a number for %{}", type), value);
  if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
    if (spec.precision < 0) spec.precision = 6;
    return real_text(spec, *value.number());
  }
  if (type == 'i' || type == 'u') spec.type = 'd';
  if (const auto integer = value.integer()) return integer_text(run, spec, *integer);
  const double real = std::trunc(*value.real());
  if (spec.type != 'd' || !(std::fabs(real) < 0x1p63)) {
    run.fail_type(fmt::format("an integer for %{}", type), value);
  }
  return integer_text(run, spec, static_cast<int64_t>(real));
}

}  // namespace

MarkedString format_percent(Run& run, const MarkedString& format, const Value& values) {
  const std::string_view bytes = format.bytes;
  const Sequence* tuple = values.sequence();
  if (tuple != nullptr && !tuple->is_tuple()) tuple = nullptr;
  size_t used = 0;
  const auto next = [&]() -> Value {
    if (tuple == nullptr) {
      if (used++ > 0) run.fail("not enough arguments for a format");
      return values;
    }
    if (used >= tuple->items.size()) run.fail("not enough arguments for a format");
    return tuple->items[used++];
  };
  MarkedString out;
  size_t begin = 0;
  for (size_t at = bytes.find('%'); at != std::string_view::npos; at = bytes.find('%', begin)) {
    run.step();
    out.append(format, begin, at++);
    run.check_size(out.bytes.size());
    std::optional<Value> named;
    if (at < bytes.size() && bytes[at] == '(') {
      const size_t close = bytes.find(')', at);
      if (close == std::string_view::npos) run.fail("a key in a format isn't closed");
      if (values.dict() == nullptr) run.fail("a format with keys needs a dict");
      const std::string_view key = bytes.substr(at + 1, close - at - 1);
      const Value* found = values.dict()->find(key);
      if (found == nullptr) run.fail("a format's key is missing", key);
      named = *found;
      at = close + 1;
    }
    Spec spec;
    for (; at < bytes.size(); ++at) {
      const char c = bytes[at];
      if (c == '-') {
        spec.align = '<';
      } else if (c == '+' || (c == ' ' && spec.sign != '+')) {
        spec.sign = c;
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c == '0') {
        spec.zero = true;
      } else if (c != ' ') {
        break;
      }
    }
    spec.width = read_number(run, bytes, at);
    if (at < bytes.size() && bytes[at] == '.') {
      ++at;
      spec.precision = read_number(run, bytes, at);
    }
    if (at >= bytes.size()) run.fail("incomplete format");
    spec.type = bytes[at++];
    begin = at;
    if (spec.type == '%') {
      out.append("%", false);
      continue;
    }
    if (std::string_view("sriudfFeEgGxXoc").find(spec.type) == std::string_view::npos) {
      run.fail("unsupported format character", bytes.substr(at - 1, 1));
    }
    out.append(converted(run, spec, named ? *named : next()));
  }
  out.append(format, begin, bytes.size());
  const bool left =
      tuple != nullptr ? used < tuple->items.size() : used == 0 && values.dict() == nullptr;
  if (left && (tuple == nullptr || !tuple->items.empty())) {
    run.fail("not all arguments of a format were used");
  }
  run.check_size(out.bytes.size());
  return out;
}

MarkedString format_braces(Run& run, const MarkedString& format, const Arguments& arguments) {
  return Braces(run, format, arguments).whole();
}

}  // namespace wick::text::jinja
