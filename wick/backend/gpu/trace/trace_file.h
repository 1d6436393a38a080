#pragma once

// A file of time spans in Chrome's trace format, which Perfetto displays.

#include <cstdio>
#include <string>
#include <string_view>

namespace wick::gpu {

/// A row of the display: a process of the viewer (here a device) and a thread (here a stream).
struct TraceRow {
  int process = 0;
  int thread = 0;
};

/// The file is a JSON array with one event a line. If the process is killed and the end is missing,
/// viewers read it up to there.
class TraceFile {
 public:
  /// Errors: the file can't be written.
  explicit TraceFile(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void name_process(int process, std::string_view name);
  void name_thread(TraceRow row, std::string_view name);
  /// Times are in microseconds. `arguments` is the inside of a JSON object.
  void span(TraceRow row, std::string_view name, std::string_view category, double start_us,
            double duration_us, std::string_view arguments);
  /// Writes buffered text, so that it survives a crash.
  void flush();
  /// Ends the file; later events are dropped.
  void close();

 private:
  void event(const std::string& text);

  std::FILE* file_;
  bool first_ = true;
};

}  // namespace wick::gpu
