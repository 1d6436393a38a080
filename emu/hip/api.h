#pragma once

// What all functions of the C interface share: how they end, and what they find by handles.

#include <string>
#include <type_traits>

#include "emu/hip/functions.h"
#include "emu/hip/types.h"
#include "emu/runtime/graph.h"
#include "emu/runtime/runtime.h"

#define EMU_API extern "C" __attribute__((visibility("default")))

namespace emu::hip {

/// Ends a call with an error code, and a line on stderr where there is something to say.
struct Error {
  hipError_t code;
  std::string what = {};
};

struct CallConfiguration {
  dim3 grid, block;
  size_t lds = 0;
  hipStream_t stream = nullptr;
};

/// What the runtime keeps for each thread.
struct Thread {
  int device = 0;
  hipError_t last = hipSuccess;
  hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;
  std::vector<CallConfiguration> calls;
  std::vector<StreamPtr> streams;  // hipStreamPerThread, by device
};

Thread& thread();

/// The code of whatever is in flight; what it says goes to stderr.
hipError_t error_of_exception(const char* function) noexcept;

/// Throws where there is no device, and in children of fork.
void require_usable();

/// Remembers the error for hipGetLastError. "Not ready" is an answer, not an error.
hipError_t remember(hipError_t code);

/// Runs a function's body, and makes a code of whatever it throws.
template <class Body>
hipError_t call(const char* function, const Body& body) {
  hipError_t code = hipSuccess;
  try {
    require_usable();
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
    } else {
      code = body();
    }
  } catch (...) {
    code = error_of_exception(function);
  }
  return remember(code);
}

#define EMU_CALL(...) return ::emu::hip::call(__func__, [&]() __VA_ARGS__)

inline void require(bool fulfilled, hipError_t otherwise = hipErrorInvalidValue) {
  if (!fulfilled) throw Error{otherwise};
}

inline Runtime& runtime() { return Runtime::get(); }
inline Memory& memory() { return *Runtime::get().memory; }
inline uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

Device& device(int ordinal);
Device& current_device();
StreamPtr find_stream(hipStream_t handle);
EventPtr find_event(hipEvent_t handle);

/// Waits for the stream and throws its error.
void finish(Stream& stream);
// Calls that aren't allowed while a graph is being captured. Each function spoils the captures that
// forbid the call and throws hipErrorStreamCaptureUnsupported, or the error that it names.

/// A call about a stream that is being captured.
void refuse_in_capture(Stream& stream);
/// A call that waits for a whole device, or copies while the caller waits: forbidden in any mode,
/// whoever captures.
void refuse_in_any_capture(hipError_t error = hipErrorStreamCaptureUnsupported);
/// An unsafe call, such as hipMalloc, hipFree or a wait for other work. The mode of this thread and
/// those of the captures decide: a relaxed thread may do all of it; captures of this thread forbid
/// it unless they are relaxed; those of other threads if both are global.
void refuse_unsafe_in_capture();
/// Work in the null stream, which would wait for streams that are being captured. Throws
/// hipErrorStreamCaptureImplicit.
void refuse_implicit(const Stream& null_stream);
/// A wait for a stream, or a question about its work.
void refuse_wait_in_capture(Stream& stream);

/// Queues the operation, or captures it. Null where it was captured.
SignalPtr submit(Stream& stream, Operation operation);

/// Refuses ranges of device memory that aren't allocated.
void check_range(const void* pointer, size_t bytes, const char* what);

/// The kernel of a handle: hipFunction_t, or a function of the program that was registered.
std::shared_ptr<Kernel> find_function(const void* handle);

}  // namespace emu::hip
