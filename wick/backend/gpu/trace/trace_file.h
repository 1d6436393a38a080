#pragma once

// A file of spans of time in Chrome's trace format, which Perfetto shows.

#include <cstdio>
#include <string>
#include <string_view>

namespace wick::gpu {

/// A row of the picture: a process of the viewer (here a device) and a thread of it (a stream).
struct TraceRow {
  int process = 0;
  int thread = 0;
};

/// The form is an array of events, each on a line of its own: a file whose end is missing, because
/// the process was killed, is read as far as it goes.
class TraceFile {
 public:
  /// Errors: the file can't be written.
  explicit TraceFile(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void name_process(int process, std::string_view name);
  void name_thread(TraceRow row, std::string_view name);
  /// Times in microseconds. `arguments` are the inside of a JSON object.
  void span(TraceRow row, std::string_view name, std::string_view category, double start_us,
            double duration_us, std::string_view arguments);
  /// Makes what was written so far survive the process.
  void flush();
  /// Ends the file; what is written after that is lost.
  void close();

 private:
  void event(const std::string& text);

  std::FILE* file_;
  bool first_ = true;
};

}  // namespace wick::gpu
