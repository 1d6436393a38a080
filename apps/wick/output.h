#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace wick::cli {

using Json = nlohmann::ordered_json;

/// Gives stdout a buffer of 64 KiB where it is no terminal.
void buffer_output();
/// Writes to stdout through a buffer, which main() flushes at the end. Errors: stdout can't be
/// written. Where stdout is a pipe that nobody reads any more, the process ends silently by
/// SIGPIPE, as other programs do (141 in a shell).
void print(std::string_view text);
/// The same at once, for text that is waited for.
void print_now(std::string_view text);
/// Writes what the buffer holds. Errors as for print().
void flush_output();
/// What the buffer holds, as far as it can be written, in front of an error on stderr.
void flush_output_before_error() noexcept;

/// A JSON text; bytes that aren't UTF-8 become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
/// Prints a JSON document.
void print_json(const Json& json);

/// Prints a JSON object member by member, in print_json()'s form, without holding its lists.
class JsonPrinter {
 public:
  JsonPrinter();
  void value(std::string_view key, const Json& json);
  /// `item(i)` is the JSON text of element i; it is asked for once, in order.
  void list(std::string_view key, size_t count, const std::function<std::string(size_t)>& item);
  void finish();

 private:
  void key(std::string_view name);
  bool first_ = true;
};

/// One line on stderr that begins with "wick: warning: ".
void warn(const std::string& message);
/// `text` with its control characters as spaces: one line of a terminal.
std::string one_line(std::string text);

}  // namespace wick::cli
