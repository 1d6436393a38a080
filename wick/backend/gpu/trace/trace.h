#pragma once

// WICK_TRACE=FILE writes the times of kernels and copies in Chrome's trace format.
//
// When a driver is opened, the functions of its table are replaced by functions that record an
// event before and after the work. The times are read when somebody synchronises the stream.
// Without WICK_TRACE the table is unchanged. The events between kernels prevent programmatic
// dependent launch (Driver::launch_with). A graph is traced as one span.

#include <functional>
#include <string>

#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

/// Whether WICK_TRACE names a file.
bool tracing();
/// Wraps the functions if WICK_TRACE is set. Errors: the file can't be written.
Api traced(DeviceKind kind, const Api& functions);
/// Records that the calling thread uses a device from now on.
void trace_device(Device device);

/// Traces a kernel launch that doesn't go through the table.
int trace_launch(DeviceKind kind, void* function, const unsigned (&blocks)[3], unsigned threads,
                 unsigned shared_bytes, void* stream, const std::function<int()>& act);

/// Traces work on a stream that doesn't go through the table. Returns the code of `act`; there is a
/// span if it is 0. `act` must not use functions of the table that put work on a stream.
int trace_work(DeviceKind kind, void* stream, const char* category, const std::string& name,
               const std::string& arguments, const std::function<int()>& act);

}  // namespace wick::gpu
