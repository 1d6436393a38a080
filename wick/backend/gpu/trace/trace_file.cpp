#include "wick/backend/gpu/trace/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// A JSON string. Bytes outside ASCII are copied: drivers' names are UTF-8.
std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace

TraceFile::TraceFile(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) {
    throw Error(ErrorKind::file, "WICK_TRACE", "the file can't be written",
                fmt::format("'{}'", path), std::strerror(errno));
  }
  std::fputs("[", file_);
}

TraceFile::~TraceFile() { close(); }

void TraceFile::event(const std::string& text) {
  if (file_ == nullptr) return;
  std::fputs(first_ ? "\n" : ",\n", file_);
  std::fputs(text.c_str(), file_);
  first_ = false;
}

void TraceFile::name_process(int process, std::string_view name) {
  event(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})", process,
                    quoted(name)));
}

void TraceFile::name_thread(TraceRow row, std::string_view name) {
  event(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                    row.process, row.thread, quoted(name)));
}

void TraceFile::span(TraceRow row, std::string_view name, std::string_view category,
                     double start_us, double duration_us, std::string_view arguments) {
  event(fmt::format(
      R"({{"name":{},"cat":{},"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
      quoted(name), quoted(category), row.process, row.thread, start_us, duration_us, arguments));
}

void TraceFile::flush() {
  if (file_ != nullptr) std::fflush(file_);
}

void TraceFile::close() {
  if (file_ == nullptr) return;
  std::fputs("\n]\n", file_);
  const bool failed = std::ferror(file_) != 0;
  if (std::fclose(std::exchange(file_, nullptr)) != 0 || failed) {
    // At exit nobody can catch an exception.
    std::fputs("wick: WICK_TRACE: the file couldn't be written to its end\n", stderr);
  }
}

}  // namespace wick::gpu
