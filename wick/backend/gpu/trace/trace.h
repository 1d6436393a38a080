#pragma once

// WICK_TRACE=FILE: when kernels and copies ran on the devices, in Chrome's trace format.
//
// The functions of a driver's table are replaced, when it is opened, by ones that put an event in
// front of and behind what they do; the times are read when somebody waits for the stream. Without
// WICK_TRACE the table stays as it is. Kernels are kept from starting early (Driver::launch_with)
// by events between them; captured work is one span, of the graph that it became.

#include <functional>
#include <string>

#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

/// Whether WICK_TRACE names a file.
bool tracing();
/// The functions, so that they write the trace if there is to be one. Errors: the file can't be
/// written.
Api traced(DeviceKind kind, const Api& functions);
/// Says that the calling thread uses a device from now on.
void trace_device(Device device);

/// Launches a kernel on a stream by another way than the table's; a span as of that.
int trace_launch(DeviceKind kind, void* function, const unsigned (&blocks)[3], unsigned threads,
                 unsigned shared_bytes, void* stream, const std::function<int()>& act);

/// Does something on a stream that doesn't go through the table, and gives its code; a span where
/// that is 0. `act` may not use functions of the table that put work on a stream.
int trace_work(DeviceKind kind, void* stream, const char* category, const std::string& name,
               const std::string& arguments, const std::function<int()>& act);

}  // namespace wick::gpu
