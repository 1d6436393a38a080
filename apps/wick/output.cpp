// Output of the command: text and JSON on stdout, warnings on stderr.
#include "output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "wick/base/error.h"

namespace wick::cli {
namespace {

bool in_line = false;  // whether the text printed last doesn't end with a newline

[[noreturn]] void cannot_write(int error) {
  if (error == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
    std::_Exit(141);  // reached if the signal is blocked
  }
  throw Error(ErrorKind::file, "stdout", "cannot write", std::strerror(error));
}

}  // namespace

void buffer_output() {
  static char buffer[1 << 16];
  if (isatty(STDOUT_FILENO) == 0) std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

void print(std::string_view text) {
  if (!text.empty()) in_line = text.back() != '\n';
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) cannot_write(errno);
}

bool leave_line() { return std::exchange(in_line, false); }

void print_now(std::string_view text) {
  print(text);
  flush_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0) cannot_write(errno);
}

void flush_output_before_error() noexcept { std::fflush(stdout); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void print_json(const Json& json) { print(json_text(json, 2) + "\n"); }

JsonPrinter::JsonPrinter() { print("{"); }

void JsonPrinter::key(std::string_view name) {
  print(first_ ? "\n  " : ",\n  ");
  first_ = false;
  print(json_text(std::string(name)));
  print(": ");
}

void JsonPrinter::value(std::string_view name, const Json& json) {
  key(name);
  print(json_text(json));
}

void JsonPrinter::list(std::string_view name, size_t count,
                       const std::function<std::string(size_t)>& item) {
  begin_list(name);
  for (size_t i = 0; i < count; ++i) list_item(item(i));
  end_list();
}

void JsonPrinter::begin_list(std::string_view name) {
  key(name);
  print("[");
  items_ = 0;
}

void JsonPrinter::list_item(std::string_view item) {
  print(items_++ == 0 ? "\n    " : ",\n    ");
  print(item);
}

void JsonPrinter::end_list() { print(items_ == 0 ? "]" : "\n  ]"); }

void JsonPrinter::finish() { print("\n}\n"); }

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "wick: warning: %s\n", one_line(message).c_str());
}

}  // namespace wick::cli
