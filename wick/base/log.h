#pragma once

#include <functional>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// Receives one line, without a newline, about what the process does. Any thread may call it, one
/// at a time. A sink must not log or call set_log: either would deadlock.
using LogSink = std::function<void(std::string_view line)>;

/// Sets where log lines go; an empty sink, which is the default, drops them.
WICK_API void set_log(LogSink sink);
/// Whether there is a sink, so that callers can omit the work of making a line.
WICK_API bool logging() noexcept;
/// Passes a line to the sink.
WICK_API void log_line(std::string_view line);

}  // namespace wick
