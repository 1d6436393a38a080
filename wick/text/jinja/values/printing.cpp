// str(), repr() and JSON of values.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "wick/text/jinja/values/operators.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

void append_string_repr(Run& run, const MarkedString& text, MarkedString& out) {
  run.step(1 + text.bytes.size() / 16);
  const std::string_view bytes = text.bytes;
  const bool doubled =
      bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  out.append(std::string_view(&quote, 1), false);
  size_t begin = 0;  // characters from here are copied as they are
  for (size_t at = 0; at < bytes.size();) {
    const Character c = first_character(bytes.substr(at));
    std::string escape;
    if (c.point == static_cast<char32_t>(quote) || c.point == '\\') {
      escape = {'\\', static_cast<char>(c.point)};
    } else if (c.point == '\n') {
      escape = "\\n";
    } else if (c.point == '\r') {
      escape = "\\r";
    } else if (c.point == '\t') {
      escape = "\\t";
    } else if (!is_printable(c.point)) {
      const auto point = static_cast<uint32_t>(c.point);
      escape = point < 0x100     ? fmt::format("\\x{:02x}", point)
               : point < 0x10000 ? fmt::format("\\u{:04x}", point)
                                 : fmt::format("\\U{:08x}", point);
    }
    if (!escape.empty()) {
      out.append(text, begin, at);
      out.append(escape, text.has_content());
      begin = at + c.length;
    }
    at += c.length;
  }
  out.append(text, begin, bytes.size());
  out.append(std::string_view(&quote, 1), false);
}

class Printer {
 public:
  explicit Printer(Run& run) : run_(run) {}

  void repr(const Value& value) {
    const Run::Nested nested(run_);
    run_.step();
    run_.check_size(out.bytes.size());
    if (const String* text = value.string()) return append_string_repr(run_, text->text, out);
    if (const Dict* dict = value.dict()) {
      add("{");
      std::string_view between;
      for (const auto& [key, element] : dict->entries) {
        add(between);
        repr(key);
        add(": ");
        repr(element);
        between = ", ";
      }
      return add("}");
    }
    if (const auto* names = value.names()) {
      add("<Namespace {");
      std::string_view between;
      for (const auto& [name, element] : (*names)->attributes) {
        add(between);
        append_string_repr(run_, MarkedString::plain(name), out);
        add(": ");
        repr(element);
        between = ", ";
      }
      return add("}>");
    }
    if (const Sequence* items = value.sequence()) return sequence(*items);
    if (value.is_undefined()) return add("Undefined");
    scalar(value);
  }

  /// Adds a value that is neither a string nor a container.
  void scalar(const Value& value) {
    if (value.is_none()) return add("None");
    if (const bool* flag = value.boolean()) return add(*flag ? "True" : "False");
    if (const int64_t* integer = value.strict_integer()) return add(fmt::format("{}", *integer));
    if (const double* real = value.real()) return add(float_repr(*real));
    const std::string text = value.callable()->printed();
    if (text.empty()) run_.fail(fmt::format("a '{}' can't be printed", value.type_name()));
    add(text);
  }

  MarkedString out;

 private:
  void add(std::string_view text) { out.append(text, false); }

  void sequence(const Sequence& items) {
    using Kind = Sequence::Kind;
    if (items.kind == Kind::generator) {
      run_.fail("a generator can't be printed: convert it with the filter list");
    }
    if (items.kind == Kind::range) return range(items);
    const bool tuple = items.is_tuple();
    if (items.kind == Kind::keys) add("dict_keys(");
    if (items.kind == Kind::values) add("dict_values(");
    if (items.kind == Kind::items) add("dict_items(");
    add(tuple ? "(" : "[");
    std::string_view between;
    for (const Value& element : items.items) {
      add(between);
      repr(element);
      between = ", ";
    }
    if (tuple && items.items.size() == 1) add(",");
    add(tuple ? ")" : "]");
    if (items.kind == Kind::keys || items.kind == Kind::values || items.kind == Kind::items) {
      add(")");
    }
  }

  void range(const Sequence& items) {
    if (items.items.empty()) return add("range(0, 0)");
    const int64_t first = *items.items.front().integer(), last = *items.items.back().integer();
    const int64_t step = items.items.size() > 1 ? *items.items[1].integer() - first : int64_t{1};
    if (step == 1) return add(fmt::format("range({}, {})", first, last + 1));
    run_.fail("a range with a step can't be printed: convert it with the filter list");
  }

  Run& run_;
};

class JsonPrinter {
 public:
  JsonPrinter(Run& run, bool ascii, std::string_view indent, bool indented,
              std::string_view item_separator, std::string_view key_separator, bool sort_keys)
      : run_(run),
        ascii_(ascii),
        indented_(indented),
        sort_keys_(sort_keys),
        indent_(indent),
        item_separator_(item_separator),
        key_separator_(key_separator) {}

  void value(const Value& v, int level) {
    const Run::Nested nested(run_);
    run_.step();
    run_.check_size(out.bytes.size());
    if (const String* text = v.string()) return string(text->text);
    if (v.is_none()) return add("null");
    if (const bool* flag = v.boolean()) return add(*flag ? "true" : "false");
    if (const int64_t* integer = v.strict_integer()) return add(fmt::format("{}", *integer));
    if (const double* real = v.real()) return add(number(*real));
    if (const Dict* dict = v.dict()) return object(*dict, level);
    const Sequence* items = v.sequence();
    if (items == nullptr || (items->kind != Sequence::Kind::list && !items->is_tuple())) {
      run_.fail(fmt::format("a value of type '{}' can't be written as JSON", v.type_name()),
                v.is_undefined() ? *v.undefined()->reason : std::string());
    }
    if (items->items.empty()) return add("[]");
    add("[");
    for (size_t i = 0; i < items->items.size(); ++i) {
      separate(i > 0, level + 1);
      value(items->items[i], level + 1);
    }
    newline(level);
    add("]");
  }

  MarkedString out;

 private:
  void add(std::string_view text) { out.append(text, false); }

  static std::string number(double real) {
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real > 0 ? "Infinity" : "-Infinity";
    return float_repr(real);
  }

  void newline(int level) {
    if (!indented_) return;
    add("\n");
    for (int i = 0; i < level; ++i) add(indent_);
  }

  void separate(bool between, int level) {
    if (between) add(item_separator_);
    newline(level);
  }

  void object(const Dict& dict, int level) {
    if (dict.entries.empty()) return add("{}");
    std::vector<const std::pair<jinja::Value, jinja::Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (sort_keys_) {
      std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
        return order(run_, a->first, b->first) == std::strong_ordering::less;
      });
    }
    add("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      separate(i > 0, level + 1);
      key(entries[i]->first);
      add(key_separator_);
      value(entries[i]->second, level + 1);
    }
    newline(level);
    add("}");
  }

  void key(const Value& v) {
    if (const String* text = v.string()) return string(text->text);
    if (!v.is_none() && !v.number()) {
      run_.fail(fmt::format("a key of type '{}' can't be written as JSON", v.type_name()));
    }
    add("\"");
    value(v, 0);
    add("\"");
  }

  void string(const MarkedString& text) {
    run_.read(text.bytes.size());
    add("\"");
    const std::string_view bytes = text.bytes;
    size_t begin = 0;
    for (size_t at = 0; at < bytes.size();) {
      const Character c = first_character(bytes.substr(at));
      if (c.point >= 0x20 && c.point != '"' && c.point != '\\' && (!ascii_ || c.point < 0x7f)) {
        at += c.length;
        continue;
      }
      out.append(text, begin, at);
      out.append(escape(c.point), text.has_content());
      at += c.length;
      begin = at;
    }
    out.append(text, begin, bytes.size());
    add("\"");
  }

  static std::string escape(char32_t point) {
    constexpr std::string_view kFrom = "\"\\\n\r\t\f\b", kTo = "\"\\nrtfb";
    const size_t found =
        point < 0x80 ? kFrom.find(static_cast<char>(point)) : std::string_view::npos;
    if (found != std::string_view::npos) return {'\\', kTo[found]};
    auto value = static_cast<uint32_t>(point);
    if (value < 0x10000) return fmt::format("\\u{:04x}", value);
    value -= 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (value >> 10), 0xdc00 + (value & 0x3ff));
  }

  Run& run_;
  bool ascii_, indented_, sort_keys_;
  std::string indent_, item_separator_, key_separator_;
};

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // The shortest digits, as d.ddde±xx.
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  int exponent = 0;
  std::string_view power = text.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  const std::string sign = std::signbit(value) ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string mantissa = digits.substr(0, 1);
    if (count > 1) mantissa.append(1, '.').append(digits, 1);
    return fmt::format("{}{}e{}{:02}", sign, mantissa, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return fmt::format("{}0.{:0>{}}", sign, digits, count - exponent - 1);
  }
  if (count <= exponent + 1) {
    return fmt::format("{}{:0<{}}.0", sign, digits, exponent + 1);
  }
  const auto whole = static_cast<size_t>(exponent + 1);
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

MarkedString to_repr(Run& run, const Value& value) {
  Printer printer(run);
  printer.repr(value);
  run.make(printer.out.bytes.size());
  return std::move(printer.out);
}

MarkedString to_text(Run& run, const Value& value) {
  if (const String* text = value.string()) {
    run.make(text->text.bytes.size());
    return text->text;
  }
  if (value.is_undefined()) return {};
  return to_repr(run, value);
}

MarkedString to_json(Run& run, const Value& value, bool ascii, const Value& indent,
                     std::string_view item_separator, std::string_view key_separator,
                     bool sort_keys) {
  std::string unit;
  if (const auto width = indent.integer()) {
    unit.assign(static_cast<size_t>(std::clamp<int64_t>(*width, 0, 1000)), ' ');
  } else if (!indent.is_none()) {
    unit = need_string(run, indent).text.bytes;
  }
  JsonPrinter printer(run, ascii, unit, !indent.is_none(), item_separator, key_separator,
                      sort_keys);
  printer.value(value, 0);
  run.make(printer.out.bytes.size());
  return std::move(printer.out);
}

}  // namespace wick::text::jinja
