// Events: recording, waiting, and elapsed time.

#include <chrono>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

constexpr unsigned kKnownFlags = hipEventBlockingSync | hipEventDisableTiming |
                                 hipEventInterprocess | hipEventDisableSystemFence |
                                 hipEventReleaseToDevice | hipEventReleaseToSystem;

void create(hipEvent_t* handle, unsigned flags) {
  require(handle != nullptr && (flags & ~kKnownFlags) == 0);
  const unsigned both = hipEventReleaseToDevice | hipEventReleaseToSystem;
  require((flags & both) != both);
  require((flags & hipEventInterprocess) == 0 || (flags & hipEventDisableTiming) != 0);
  *handle = runtime().events.add<hipEvent_t>(std::make_shared<Event>(flags, thread().device));
}

/// Returns the capture in which the event was recorded. The caller must hold graph_mutex().
std::shared_ptr<Capture> capture_of(Event& event) {
  if (event.capture != nullptr && event.capture->ended) event.capture = nullptr;
  return event.capture;
}

/// Returns the event's signal; throws if the event was recorded in a capture.
SignalPtr signal_of(Event& event) {
  std::lock_guard lock(graph_mutex());
  if (const std::shared_ptr<Capture> capture = capture_of(event)) {
    capture->invalid = true;
    throw Error{hipErrorCapturedEvent};
  }
  return event.current();
}

/// Makes a stream join the capture in which the event was recorded, or wait for the event within
/// that capture.
void join_capture(Stream& stream, const EventPtr& event) {
  const std::shared_ptr<Capture> capture = event->capture;
  if (capture->invalid) throw Error{hipErrorStreamCaptureInvalidated};
  if (stream.capture != nullptr && stream.capture != capture) {
    stream.capture->invalid = capture->invalid = true;
    throw Error{hipErrorStreamCaptureMerge};
  }
  if (stream.null_stream) {
    capture->invalid = true;
    throw Error{hipErrorStreamCaptureImplicit};
  }
  if (stream.capture == nullptr) {
    stream.capture = capture;
    capture->streams.push_back(stream.shared_from_this());
  }
  std::vector<Node*>& frontier = capture->frontier[&stream];
  for (Node* node : event->nodes) {
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) {
      frontier.push_back(node);
    }
  }
}

void record(hipEvent_t handle, hipStream_t stream_handle, bool external = false) {
  const EventPtr event = find_event(handle);
  const StreamPtr stream = find_stream(stream_handle);
  require(stream->device->ordinal == event->device, hipErrorInvalidHandle);
  submit(*stream, RecordOp{event, external});
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipEventCreate(hipEvent_t* event) {
  EMU_CALL({ create(event, hipEventDefault); });
}

EMU_API hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  EMU_CALL({ create(event, flags); });
}

EMU_API hipError_t hipEventDestroy(hipEvent_t handle) {
  EMU_CALL({
    find_event(handle);
    runtime().events.remove(handle);
  });
}

EMU_API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  EMU_CALL({ record(event, stream); });
}

EMU_API hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
  EMU_CALL({
    require(flags == hipEventRecordDefault || flags == hipEventRecordExternal);
    record(event, stream, flags == hipEventRecordExternal);
  });
}

EMU_API hipError_t hipEventQuery(hipEvent_t handle) {
  EMU_CALL({
    const SignalPtr signal = signal_of(*find_event(handle));
    refuse_unsafe_in_capture();
    return signal == nullptr || signal->done() ? hipSuccess : not_ready();
  });
}

EMU_API hipError_t hipEventSynchronize(hipEvent_t handle) {
  EMU_CALL({
    const EventPtr event = find_event(handle);
    const SignalPtr signal = signal_of(*event);
    refuse_unsafe_in_capture();
    if (signal == nullptr) return hipSuccess;
    signal->wait();
    StreamPtr stream;
    {
      std::lock_guard lock(event->mutex);
      stream = event->stream;
    }
    return stream->take_error();
  });
}

EMU_API hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  EMU_CALL({
    require(milliseconds != nullptr);
    const EventPtr first = find_event(start), last = find_event(stop);
    require(((first->flags | last->flags) & hipEventDisableTiming) == 0, hipErrorInvalidHandle);
    const SignalPtr from = signal_of(*first), to = signal_of(*last);
    require(from != nullptr && to != nullptr, hipErrorInvalidHandle);
    if (!from->done() || !to->done()) return hipErrorNotReady;
    const std::chrono::duration<float, std::milli> time = to->time() - from->time();
    *milliseconds = time.count();
    return hipSuccess;
  });
}

EMU_API hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle, unsigned flags) {
  EMU_CALL({
    require(flags == hipEventWaitDefault || flags == hipEventWaitExternal);
    const EventPtr event = find_event(event_handle);
    const StreamPtr stream = find_stream(handle);
    std::lock_guard lock(graph_mutex());
    if (stream->capture != nullptr && flags == hipEventWaitExternal) {
      submit(*stream, WaitOp{event});
      return;
    }
    if (capture_of(*event) != nullptr) return join_capture(*stream, event);
    if (stream->capture != nullptr) {
      if (event->current() == nullptr) return;  // never recorded: nothing to wait for
      stream->capture->invalid = true;
      throw Error{hipErrorStreamCaptureIsolation};
    }
    if (event->current() != nullptr) submit(*stream, WaitOp{event});
  });
}
