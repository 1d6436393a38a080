#pragma once

// Shared by all functions of the C interface: turning exceptions into error codes, and looking up
// handles.

#include <string>
#include <type_traits>

#include "emu/hip/functions.h"
#include "emu/hip/types.h"
#include "emu/runtime/graph.h"
#include "emu/runtime/runtime.h"

#define EMU_API extern "C" __attribute__((visibility("default")))

namespace emu::hip {

/// Thrown to end a call with an error code. `what`, if it isn't empty, is printed on stderr.
struct Error {
  hipError_t code;
  std::string what = {};
};

struct CallConfiguration {
  dim3 grid, block;
  size_t lds = 0;
  hipStream_t stream = nullptr;
};

/// The runtime's state of each thread.
struct Thread {
  int device = 0;
  hipError_t last = hipSuccess;
  hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;
  std::vector<CallConfiguration> calls;
  std::vector<StreamPtr> streams;  // hipStreamPerThread, indexed by device
};

Thread& thread();

/// Returns the error code of the exception that is being handled and prints its message on stderr.
hipError_t error_of_exception(const char* function) noexcept;

/// Throws if there is no device, and in children of fork.
void require_usable();

/// Returns the version of the runtime by whose name the library was loaded, as
/// hipRuntimeGetVersion gives it. Where releases of AMD's runtime differ, the emulator follows it.
int version();
inline bool of_hip_7() { return version() >= 70'000'000; }

/// Stores the error for hipGetLastError. From HIP 7 on, hipErrorNotReady isn't stored.
hipError_t remember(hipError_t code);

/// Runs a function's body and converts whatever it throws to an error code.
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

/// Returns hipErrorNotReady for a query. Under a seed, a command runs before the next query.
hipError_t not_ready();

/// Waits for the stream and throws its error.
void finish(Stream& stream);
// Calls that aren't allowed while a stream is being captured. Each function invalidates the
// captures that forbid the call and throws hipErrorStreamCaptureUnsupported, or the error that it
// names.

/// A call on a stream that is being captured.
void refuse_in_capture(Stream& stream);
/// A call that waits for a whole device, or a synchronous copy: any capture of any thread in any
/// mode forbids it.
void refuse_in_any_capture(hipError_t error = hipErrorStreamCaptureUnsupported);
/// A potentially unsafe call, such as hipMalloc, hipFree or a wait for another stream. A thread in
/// the relaxed mode may make it. Otherwise captures of this thread forbid it unless they are
/// relaxed, and captures of other threads forbid it if their mode and this thread's are global.
void refuse_unsafe_in_capture();
/// Throws hipErrorStreamCaptureImplicit if work in the null stream would wait for a stream that is
/// being captured.
void refuse_implicit(const Stream& null_stream);
/// A call that waits for a stream or queries its state.
void refuse_wait_in_capture(Stream& stream);

/// Queues the operation, or adds it to the graph that is being captured and returns null.
SignalPtr submit(Stream& stream, Operation operation);

/// Throws if the range is device memory that isn't allocated.
void check_range(const void* pointer, size_t bytes, const char* what);

/// Returns the kernel of a handle, which is a hipFunction_t or a host function registered by a
/// program.
std::shared_ptr<Kernel> find_function(const void* handle);

}  // namespace emu::hip
