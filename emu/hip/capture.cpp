// Stream capture: operations on a captured stream become nodes of a graph instead of running.

#include <algorithm>

#include "emu/hip/graph_handles.h"

namespace emu::hip {
namespace {

/// Ends the capture of all its streams.
void release(const std::shared_ptr<Capture>& capture) {
  for (const StreamPtr& stream : capture->streams) stream->capture = nullptr;
  capture->ended = true;
  std::erase(captures(), capture);
}

/// Returns whether all work that was captured in other streams has been joined to the origin
/// stream, or removed from the dependencies by the caller.
bool joined(const Capture& capture) {
  const auto at = capture.frontier.find(capture.origin);
  for (const auto& node : capture.graph->nodes) {
    if (!node->before.empty() || capture.let_go.contains(node.get())) continue;
    if (at == capture.frontier.end()) return false;
    const std::vector<Node*>& last = at->second;
    if (std::find(last.begin(), last.end(), node.get()) == last.end()) return false;
  }
  return true;
}

hipStreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return hipStreamCaptureStatusNone;
  return stream.capture->invalid ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
}

std::shared_ptr<Capture> begin(Stream& stream, hipStreamCaptureMode mode) {
  static unsigned long long count = 0;  // guarded by graph_mutex()
  auto capture = std::make_shared<Capture>();
  capture->graph = std::make_shared<Graph>();
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->id = ++count;
  capture->streams.push_back(stream.shared_from_this());
  stream.capture = capture;
  captures().push_back(capture);
  return capture;
}

/// Starts a capture after the checks that all captures need.
std::shared_ptr<Capture> begin(hipStream_t handle, hipStreamCaptureMode mode) {
  require(mode <= hipStreamCaptureModeRelaxed);
  const StreamPtr stream = find_stream(handle);
  require(!stream->null_stream, hipErrorStreamCaptureUnsupported);
  require(stream->capture == nullptr, hipErrorIllegalState);
  return begin(*stream, mode);
}

/// Finds a stream for a query. Throws for the null stream if work in it would wait for a stream
/// that is being captured.
StreamPtr find_for_question(hipStream_t handle) {
  StreamPtr stream = find_stream(handle);
  if (!stream->null_stream) return stream;
  for (const auto& capture : captures()) {
    for (const StreamPtr& s : capture->streams) {
      require(!s->blocking() || s->device != stream->device, hipErrorStreamCaptureImplicit);
    }
  }
  return stream;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    begin(handle, mode);
  });
}

EMU_API hipError_t hipStreamBeginCaptureToGraph(hipStream_t handle, hipGraph_t graph_handle,
                                                const hipGraphNode_t* nodes,
                                                const hipGraphEdgeData*, size_t count,
                                                hipStreamCaptureMode mode) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<Graph> graph = find_graph(graph_handle);
    require(nodes != nullptr || count == 0);
    std::vector<Node*> frontier;
    for (size_t i = 0; i < count; ++i) {
      frontier.push_back(find_node(nodes[i]));
      require(graph->holds(frontier.back()));
    }
    const std::shared_ptr<Capture> capture = begin(handle, mode);
    capture->graph = graph;
    capture->of_caller = true;
    for (const auto& node : graph->nodes) capture->let_go.insert(node.get());
    capture->frontier[capture->origin] = std::move(frontier);
  });
}

EMU_API hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t* graph) {
  EMU_CALL({
    require(graph != nullptr);
    *graph = nullptr;
    const StreamPtr stream = find_stream(handle);
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<Capture> capture = stream->capture;
    require(capture != nullptr, hipErrorIllegalState);
    require(capture->origin == stream.get(), hipErrorStreamCaptureUnmatched);
    require(capture->mode == hipStreamCaptureModeRelaxed ||
                capture->thread == std::this_thread::get_id(),
            hipErrorStreamCaptureWrongThread);
    release(capture);
    const bool whole = !capture->invalid && joined(*capture);
    // The graph's handle may have been given out before the capture ended.
    if (!whole && !capture->of_caller) graphs().remove(capture->graph.get());
    require(!capture->invalid, hipErrorStreamCaptureInvalidated);
    require(whole, hipErrorStreamCaptureUnjoined);
    *graph = graphs().add<hipGraph_t>(capture->graph);
  });
}

EMU_API hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status) {
  EMU_CALL({
    require(status != nullptr);
    std::lock_guard lock(graph_mutex());
    const StreamPtr stream = find_for_question(handle);
    *status = status_of(*stream);
  });
}

EMU_API hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus* status,
                                           unsigned long long* id) {
  EMU_CALL({
    require(status != nullptr);
    std::lock_guard lock(graph_mutex());
    const StreamPtr stream = find_for_question(handle);
    *status = status_of(*stream);
    if (id != nullptr) *id = stream->capture == nullptr ? 0 : stream->capture->id;
  });
}

EMU_API hipError_t hipStreamGetCaptureInfo_v2(hipStream_t handle, hipStreamCaptureStatus* status,
                                              unsigned long long* id, hipGraph_t* graph,
                                              const hipGraphNode_t** nodes, size_t* count) {
  EMU_CALL({
    require(status != nullptr);
    std::lock_guard lock(graph_mutex());
    const StreamPtr stream = find_for_question(handle);
    *status = status_of(*stream);
    if (*status != hipStreamCaptureStatusActive) return;
    Capture& capture = *stream->capture;
    if (id != nullptr) *id = capture.id;
    if (graph != nullptr) *graph = graphs().add<hipGraph_t>(capture.graph);
    const std::vector<Node*>& frontier = capture.frontier[stream.get()];
    if (nodes != nullptr) *nodes = reinterpret_cast<const hipGraphNode_t*>(frontier.data());
    if (count != nullptr) *count = frontier.size();
  });
}

EMU_API hipError_t hipStreamUpdateCaptureDependencies(hipStream_t handle, hipGraphNode_t* nodes,
                                                      size_t count, unsigned flags) {
  EMU_CALL({
    require(flags <= hipStreamSetCaptureDependencies && (nodes != nullptr || count == 0));
    const StreamPtr stream = find_stream(handle);
    std::lock_guard lock(graph_mutex());
    require(stream->capture != nullptr, hipErrorIllegalState);
    Capture& capture = *stream->capture;
    require(!capture.invalid, hipErrorStreamCaptureInvalidated);
    std::vector<Node*>& frontier = capture.frontier[stream.get()];
    std::vector<Node*> wanted;
    if (flags == hipStreamAddCaptureDependencies) wanted = frontier;
    for (size_t i = 0; i < count; ++i) {
      auto* node = reinterpret_cast<Node*>(nodes[i]);
      require(capture.graph->holds(node));
      if (std::find(wanted.begin(), wanted.end(), node) == wanted.end()) wanted.push_back(node);
    }
    if (flags == hipStreamSetCaptureDependencies) {
      capture.let_go.insert(frontier.begin(), frontier.end());
    }
    frontier = std::move(wanted);
  });
}

EMU_API hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  EMU_CALL({
    require(mode != nullptr && *mode <= hipStreamCaptureModeRelaxed);
    std::swap(thread().capture_mode, *mode);
  });
}
