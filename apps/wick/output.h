#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace wick::cli {

using Json = nlohmann::ordered_json;

/// Gives stdout a buffer of 64 KiB if it isn't a terminal.
void buffer_output();
/// Writes to stdout through a buffer, which main() flushes at the end. Errors: writing fails. If
/// stdout is a pipe that has no reader, the process ends silently by SIGPIPE, like other programs
/// (exit code 141 in a shell).
void print(std::string_view text);
/// Writes to stdout and flushes, for text that the user waits for.
void print_now(std::string_view text);
/// Tells that another stream begins a new line after the printed text. Returns whether the text
/// doesn't end with a newline, which the other stream must print then.
bool leave_line();
/// Flushes the buffer. Errors: those of print().
void flush_output();
/// Writes as much of the buffer as possible before an error is printed to stderr.
void flush_output_before_error() noexcept;

/// Serialises JSON; bytes that aren't UTF-8 become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
/// Prints a JSON document.
void print_json(const Json& json);

/// Prints a JSON object member by member in the format of print_json(), without holding its lists
/// in memory.
class JsonPrinter {
 public:
  JsonPrinter();
  void value(std::string_view key, const Json& json);
  /// `item(i)` returns the JSON text of element i. It is called once for each element, in order.
  void list(std::string_view key, size_t count, const std::function<std::string(size_t)>& item);
  // A list whose length isn't known yet, element by element as JSON texts.
  void begin_list(std::string_view key);
  void list_item(std::string_view item);
  void end_list();
  void finish();

 private:
  void key(std::string_view name);
  bool first_ = true;
  size_t items_ = 0;  // of the list that was begun
};

/// Prints one line to stderr that begins with "wick: warning: ".
void warn(const std::string& message);
/// Replaces control characters in `text` by spaces, so that it is one line on a terminal.
std::string one_line(std::string text);

}  // namespace wick::cli
