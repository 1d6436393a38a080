#include "wick/base/log.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace wick {
namespace {

struct Log {
  std::atomic<bool> on = false;
  std::mutex mutex;
  LogSink sink;
};

/// Never destroyed, because threads may log while the process ends.
Log& the_log() {
  static Log* const log = new Log;
  return *log;
}

}  // namespace

void set_log(LogSink sink) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.on = static_cast<bool>(sink);
  log.sink = std::move(sink);
}

bool logging() noexcept { return the_log().on; }

void log_line(std::string_view line) {
  Log& log = the_log();
  if (!log.on) return;
  const std::lock_guard lock(log.mutex);
  if (log.sink) log.sink(line);
}

}  // namespace wick
