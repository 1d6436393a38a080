#include "emu/hip/api.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "emu/runtime/interleaver.h"

namespace emu::hip {

Thread& thread() {
  thread_local Thread state;
  return state;
}

void require_usable() {
  Runtime& runtime = Runtime::get();
  if (runtime.devices.empty()) throw Error{hipErrorNoDevice};
  if (!runtime.forked) return;
  static std::atomic<bool> said{false};
  throw Error{hipErrorNotInitialized,
              said.exchange(true) ? "" : "a child of fork can't use its parent's devices"};
}

hipError_t remember(hipError_t code) {
  const bool kept = code != hipErrorNotReady || !of_hip_7();
  if (code != hipSuccess && kept) thread().last = code;
  return code;
}

hipError_t error_of_exception(const char* function) noexcept {
  const auto say = [&](const std::string& what) {
    if (!what.empty()) complain(std::string(function) + ": " + what);
  };
  try {
    throw;
  } catch (const Error& error) {
    say(error.what);
    return error.code;
  } catch (const ObjectError& error) {
    say(error.what());
    switch (error.kind) {
      case ObjectError::Kind::image:
        return hipErrorInvalidImage;
      case ObjectError::Kind::kernel:
        return hipErrorInvalidKernelFile;
      case ObjectError::Kind::no_binary:
        return hipErrorNoBinaryForGpu;
    }
    return hipErrorInvalidImage;
  } catch (const std::bad_alloc&) {
    return hipErrorOutOfMemory;
  } catch (const std::exception& error) {
    say(error.what());
    return hipErrorUnknown;
  } catch (...) {
    return hipErrorUnknown;
  }
}

Device& device(int ordinal) {
  const auto& devices = runtime().devices;
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) {
    throw Error{hipErrorInvalidDevice};
  }
  return *devices[static_cast<size_t>(ordinal)];
}

Device& current_device() { return device(thread().device); }

StreamPtr find_stream(hipStream_t handle) {
  if (handle == nullptr || handle == hipStreamLegacy) return current_device().null_stream();
  if (handle == hipStreamPerThread) {
    std::vector<StreamPtr>& own = thread().streams;
    const auto ordinal = static_cast<size_t>(thread().device);
    if (own.size() <= ordinal) own.resize(ordinal + 1);
    if (own[ordinal] == nullptr) own[ordinal] = current_device().create_stream(hipStreamDefault, 0);
    return own[ordinal];
  }
  StreamPtr stream = runtime().streams.find(handle);
  if (stream == nullptr)
    throw Error{hipErrorContextIsDestroyed, "the stream isn't one, or is destroyed"};
  return stream;
}

EventPtr find_event(hipEvent_t handle) {
  require(handle != nullptr, hipErrorInvalidHandle);
  EventPtr event = runtime().events.find(handle);
  if (event == nullptr) throw Error{hipErrorInvalidHandle, "the event isn't one, or is destroyed"};
  return event->original != nullptr ? event->original : event;
}

hipError_t not_ready() {
  if (Interleaver* const interleaver = Interleaver::get()) interleaver->nudge();
  return hipErrorNotReady;
}

void finish(Stream& stream) {
  stream.wait();
  if (const hipError_t error = stream.take_error(); error != hipSuccess) throw Error{error};
}

void refuse_in_capture(Stream& stream) {
  std::lock_guard lock(graph_mutex());
  if (stream.capture == nullptr) return;
  stream.capture->invalid = true;
  throw Error{hipErrorStreamCaptureUnsupported};
}

namespace {

/// Invalidates the captures for which `forbids` is true, and throws if there is one.
template <class Forbids>
void refuse_where(hipError_t error, const Forbids& forbids) {
  std::lock_guard lock(graph_mutex());
  bool any = false;
  for (const auto& capture : captures()) {
    if (!forbids(*capture)) continue;
    capture->invalid = true;
    any = true;
  }
  if (any) throw Error{error};
}

}  // namespace

void refuse_in_any_capture(hipError_t error) {
  refuse_where(error, [](const Capture&) { return true; });
}

void refuse_unsafe_in_capture() {
  const hipStreamCaptureMode mode = thread().capture_mode;
  if (mode == hipStreamCaptureModeRelaxed) return;
  refuse_where(hipErrorStreamCaptureUnsupported, [mode](const Capture& capture) {
    if (capture.thread == std::this_thread::get_id()) {
      return capture.mode != hipStreamCaptureModeRelaxed;
    }
    return mode == hipStreamCaptureModeGlobal && capture.mode == hipStreamCaptureModeGlobal;
  });
}

void refuse_wait_in_capture(Stream& stream) {
  refuse_in_capture(stream);
  if (stream.null_stream) refuse_implicit(stream);
  refuse_unsafe_in_capture();
}

void refuse_implicit(const Stream& null_stream) {
  refuse_where(hipErrorStreamCaptureImplicit, [&](const Capture& capture) {
    return capture.mode != hipStreamCaptureModeRelaxed &&
           std::ranges::any_of(capture.streams, [&](const StreamPtr& s) {
             return s->blocking() && s->device == null_stream.device;
           });
  });
}

SignalPtr submit(Stream& stream, Operation operation) {
  std::lock_guard lock(graph_mutex());
  if (stream.capture != nullptr) {
    const hipError_t error = capture_operation(stream, std::move(operation));
    if (error != hipSuccess) throw Error{error};
    return nullptr;
  }
  if (stream.null_stream) refuse_implicit(stream);
  if (const auto* wait = std::get_if<WaitOp>(&operation)) {
    if (wait->event->capture != nullptr) throw Error{hipErrorStreamCaptureIsolation};
  }
  return enqueue(stream, operation);
}

void check_range(const void* pointer, size_t bytes, const char* what) {
  require(pointer != nullptr);
  if (!memory().in_arena(address(pointer)) || bytes == 0) return;
  if (memory().covers(address(pointer), bytes)) return;
  const std::string range = std::string(what) + ", " + std::to_string(bytes) + " bytes";
  const std::optional<Allocation> a = memory().find(address(pointer));
  if (!a) throw Error{hipErrorInvalidValue, range + ": " + memory().describe(address(pointer))};
  const size_t from = address(pointer) - a->base;
  throw Error{hipErrorInvalidValue, range + " from byte " + std::to_string(from) + " of " +
                                        describe(*a) + ": " +
                                        std::to_string(from + bytes - a->bytes) + " too many"};
}

}  // namespace emu::hip
