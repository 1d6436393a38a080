#include "emu/runtime/device_printf.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

namespace emu {
namespace {

constexpr int kMostWidth = 1 << 16;  // a larger width or precision is cut, so that memory suffices

/// A conversion of a format string, such as %-8.3f.
struct Conversion {
  std::string flags, length;
  std::optional<int> width, precision;
  bool width_given = false, precision_given = false;  // by an argument: *
  int elements = 1;                                   // of a vector (OpenCL)
  char letter = 0;
};

int read_number(std::string_view text, size_t& at) {
  int value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = std::min(value * 10 + (text[at] - '0'), kMostWidth);
  }
  return value;
}

/// Reads a conversion from behind its percent sign. The letter stays 0 if there is none.
Conversion read_conversion(std::string_view text, size_t& at) {
  Conversion result;
  const auto take_any = [&](std::string_view of, std::string& to) {
    while (at < text.size() && of.find(text[at]) != of.npos) to += text[at++];
  };
  const auto number = [&](std::optional<int>& value, bool& given) {
    if (at < text.size() && text[at] == '*') {
      given = true;
      ++at;
    } else {
      value = read_number(text, at);
    }
  };
  take_any("-+ #0'", result.flags);
  if (at < text.size() && (text[at] == '*' || (text[at] >= '0' && text[at] <= '9'))) {
    number(result.width, result.width_given);
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    number(result.precision, result.precision_given);
  }
  if (at < text.size() && text[at] == 'v') {
    ++at;
    result.elements = std::clamp(read_number(text, at), 1, 16);
  }
  take_any("hlLqjzt", result.length);
  if (at < text.size()) result.letter = text[at++];
  return result;
}

std::string specification(const Conversion& c, std::string_view length) {
  std::string text = "%" + c.flags;
  if (c.width) text += std::to_string(*c.width);
  if (c.precision) text += "." + std::to_string(*c.precision);
  text += length;
  return text + c.letter;
}

template <class T>
std::string print(const std::string& how, T value) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
  const int bytes = std::snprintf(nullptr, 0, how.c_str(), value);
  if (bytes <= 0) return {};
  std::string text(static_cast<size_t>(bytes) + 1, 0);
  std::snprintf(text.data(), text.size(), how.c_str(), value);
#pragma clang diagnostic pop
  text.pop_back();
  return text;
}

bool is_integer(char letter) { return std::strchr("diouxX", letter) != nullptr; }
bool is_float(char letter) { return std::strchr("fFeEgGaA", letter) != nullptr; }

/// Returns the value as the type that the length modifier names, sign extended for %d and %i.
long long narrowed(const Conversion& c, uint64_t value) {
  const unsigned bits = c.length == "hh"                       ? 8
                        : c.length == "h"                      ? 16
                        : c.length.empty() || c.length == "hl" ? 32
                                                               : 64;
  const uint64_t high = value << (64 - bits);
  const bool is_signed = c.letter == 'd' || c.letter == 'i';
  return static_cast<long long>(
      is_signed ? static_cast<uint64_t>(static_cast<int64_t>(high) >> (64 - bits))
                : high >> (64 - bits));
}

/// Formats any conversion but %s.
std::string convert(const Conversion& c, uint64_t bits) {
  if (is_integer(c.letter)) return print(specification(c, "ll"), narrowed(c, bits));
  if (c.letter == 'c') return print(specification(c, ""), static_cast<int>(bits & 0xff));
  if (c.letter == 'p') return print(specification(c, ""), reinterpret_cast<void*>(bits));
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return print(specification(c, ""), value);
}

/// Splits a format string into literal text and conversions.
/// `convert_one` appends an argument and returns false to end the text.
template <class ConvertOne>
void scan(std::string_view text, std::string& out, const ConvertOne& convert_one) {
  for (size_t at = 0; at < text.size();) {
    const size_t percent = text.find('%', at);
    out += text.substr(at, percent - at);
    if (percent == text.npos) return;
    at = percent + 1;
    if (at < text.size() && text[at] == '%') {
      out += '%';
      ++at;
      continue;
    }
    Conversion c = read_conversion(text, at);
    if (c.letter == 0 || !convert_one(c)) return;
  }
}

/// The words of a message, from the format string on.
class Words {
 public:
  explicit Words(std::span<const uint64_t> words) : words_(words) {}
  bool empty() const { return words_.empty(); }
  uint64_t take() {
    const uint64_t word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }
  std::string take_string() {
    const auto* text = reinterpret_cast<const char*>(words_.data());
    const size_t length = strnlen(text, words_.size_bytes());
    words_ = words_.subspan(std::min(words_.size(), length / 8 + 1));
    return {text, length};
  }

 private:
  std::span<const uint64_t> words_;
};

/// Replaces a * by its argument. Returns false if the arguments are used up.
bool take_star(Words& words, bool given, std::optional<int>& value) {
  if (!given) return true;
  if (words.empty()) return false;
  value = std::clamp(static_cast<int>(words.take()), -kMostWidth, kMostWidth);
  return true;
}

bool convert_word(Words& words, Conversion& c, std::string& out) {
  if (words.empty() || !take_star(words, c.width_given, c.width) ||
      !take_star(words, c.precision_given, c.precision) || words.empty()) {
    return false;
  }
  if (c.width && *c.width < 0) {  // as printf has it: left-justified
    c.flags += '-';
    c.width = -*c.width;
  }
  if (c.precision && *c.precision < 0) c.precision.reset();
  if (c.letter == 's') {
    out += print(specification(c, ""), words.take_string().c_str());
  } else if (c.letter == 'n') {
    words.take();
  } else if (is_integer(c.letter) || is_float(c.letter) || c.letter == 'c' || c.letter == 'p') {
    out += convert(c, words.take());
  } else {
    return false;
  }
  return true;
}

/// Reads an integer up to a separator, which is skipped.
std::optional<uint64_t> take_field(std::string_view& text, char separator, int base = 10) {
  const size_t end = text.find(separator);
  if (end == text.npos) return std::nullopt;
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value, base);
  if (error != std::errc() || stop != text.data() + end) return std::nullopt;
  text.remove_prefix(end + 1);
  return value;
}

/// Undoes the escapes of OpenCL's format strings: C's letters, and \72 for a colon.
std::string unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "abfnrtv\\", kMeanings = "\a\b\f\n\r\t\v\\";
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t letter = at + 1 < text.size() ? kLetters.find(text[at + 1]) : text.npos;
    if (text[at] != '\\') {
      result += text[at];
    } else if (text.substr(at, 3) == "\\72") {
      result += ':';
      at += 2;
    } else if (letter != text.npos) {
      result += kMeanings[letter];
      ++at;
    } else {
      result += text[at];
    }
  }
  return result;
}

/// Reads an argument of an OpenCL record as the word that convert() expects.
uint64_t element(const uint8_t* from, size_t bytes, bool floating) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, std::min<size_t>(bytes, 8));
  if (!floating || bytes == 8) return bits;
  double value;
  if (bytes == 2) {
    _Float16 half;
    std::memcpy(&half, from, sizeof half);
    value = static_cast<double>(half);
  } else {
    float single;
    std::memcpy(&single, from, sizeof single);
    value = static_cast<double>(single);
  }
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Formats an OpenCL record's arguments, each of which is padded to dwords.
bool format_opencl(const PrintFormat& format, std::span<const uint8_t> arguments,
                   std::string& out) {
  size_t at = 0, index = 0;
  bool whole = true;
  scan(format.text, out, [&](Conversion& c) {
    if (index >= format.sizes.size()) return false;
    const size_t bytes = format.sizes[index++];
    if (bytes > arguments.size() - at) return whole = false;
    const uint8_t* from = arguments.data() + at;
    at = std::min(arguments.size(), at + (bytes + 3) / 4 * 4);
    if (c.letter == 's') {  // constant strings, which the compiler has put into the record
      const auto* text = reinterpret_cast<const char*>(from);
      out += print(specification(c, ""), std::string(text, strnlen(text, bytes)).c_str());
      return true;
    }
    const auto count = static_cast<size_t>(c.elements == 3 ? 4 : c.elements);
    const size_t size = bytes / count;
    if (size == 0 || size > 8) return whole = false;
    for (int i = 0; i < c.elements; ++i) {
      if (i > 0) out += ',';
      out += convert(c, element(from + static_cast<size_t>(i) * size, size, is_float(c.letter)));
    }
    return true;
  });
  return whole;
}

const PrintFormat* find_format(std::span<const PrintFormat> formats, uint64_t id) {
  const auto at = std::find_if(formats.begin(), formats.end(),
                               [id](const PrintFormat& format) { return format.id == id; });
  return at == formats.end() ? nullptr : &*at;
}

/// Returns the words of a HIP record: its format string, if it is a constant, and what follows.
std::optional<std::vector<uint64_t>> words_of(std::span<const uint8_t> record, bool constant,
                                              std::span<const PrintFormat> formats) {
  std::vector<uint64_t> words;
  if (constant) {
    uint64_t hash;
    if (record.size() < sizeof hash) return std::nullopt;
    std::memcpy(&hash, record.data(), sizeof hash);
    const PrintFormat* format = find_format(formats, hash);
    if (format == nullptr) return std::nullopt;
    words.resize(format->text.size() / 8 + 1);
    std::memcpy(words.data(), format->text.data(), format->text.size());
    record = record.subspan(sizeof hash);
  }
  const size_t before = words.size();
  words.resize(before + record.size() / 8);
  std::memcpy(words.data() + before, record.data(), record.size() / 8 * 8);
  return words;
}

uint32_t dword_at(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Printed hip_records(std::span<const uint8_t> records, std::span<const PrintFormat> formats) {
  Printed printed;
  while (!records.empty()) {
    // A record's first dword: bit 0, standard error; bit 1, a constant format; then its bytes.
    if (records.size() < 4) return {printed.out, printed.err, false};
    const uint32_t control = dword_at(records, 0);
    const size_t bytes = control >> 2;
    if (bytes < 4 || bytes > records.size()) return {printed.out, printed.err, false};
    const auto words = words_of(records.subspan(4, bytes - 4), (control & 2) != 0, formats);
    if (!words) return {printed.out, printed.err, false};
    ((control & 1) != 0 ? printed.err : printed.out) += format_message(*words);
    records = records.subspan(bytes);
  }
  return printed;
}

Printed opencl_records(std::span<const uint8_t> records, std::span<const PrintFormat> formats) {
  Printed printed;
  while (records.size() >= 4) {
    const PrintFormat* format = find_format(formats, dword_at(records, 0));
    if (format == nullptr) break;
    size_t bytes = 0;
    for (const uint32_t size : format->sizes) bytes += (uint64_t{size} + 3) / 4 * 4;
    records = records.subspan(4);
    if (bytes > records.size() || !format_opencl(*format, records.first(bytes), printed.out)) {
      return {printed.out, printed.err, false};
    }
    records = records.subspan(bytes);
  }
  printed.whole = records.empty();
  return printed;
}

}  // namespace

std::string format_message(std::span<const uint64_t> words) {
  if (words.empty()) return {};
  Words rest(words);
  const std::string text = rest.take_string();
  std::string out;
  scan(text, out, [&](Conversion& c) { return convert_word(rest, c, out); });
  return out;
}

bool read_print_format(std::string_view entry, PrintFormat& format) {
  const auto id = take_field(entry, ':');
  const auto count = take_field(entry, ':');
  if (!id || !count || *count > entry.size()) return false;
  format.id = *id;
  if (*id == 0 && *count == 0) {
    const auto hash = take_field(entry, ',', 16);
    if (!hash) return false;
    format.id = *hash;
    format.of_hip = true;
  }
  for (uint64_t i = 0; i < *count; ++i) {
    const auto size = take_field(entry, ':');
    if (!size || *size > 1 << 16) return false;
    format.sizes.push_back(static_cast<uint32_t>(*size));
  }
  format.text = format.of_hip ? std::string(entry) : unescaped(entry);
  return true;
}

Printed format_records(std::span<const uint8_t> records, std::span<const PrintFormat> formats) {
  const bool of_opencl = !formats.empty() && !formats.front().of_hip;
  return of_opencl ? opencl_records(records, formats) : hip_records(records, formats);
}

}  // namespace emu
