#pragma once

// What can be queued in a stream or be a node of a graph.

#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "emu/runtime/module.h"
#include "emu/runtime/stream.h"

namespace emu {

struct Graph;

struct KernelOp {
  std::shared_ptr<Kernel> kernel;
  std::array<uint32_t, 3> groups{1, 1, 1}, block{1, 1, 1};
  std::array<uint32_t, 3> grid{0, 0, 0};  // items, where the groups don't divide them; else zeros
  uint32_t dynamic_lds = 0;
  bool cooperative = false;
  std::vector<uint8_t> arguments;  // those of the caller, as they lie in the segment
  const void* function = nullptr;  // as the caller named it, for graphs' questions
  std::vector<void*> listed;       // where each argument lies, for them too
};

/// A box of bytes from one place to another: rows of `width`, `height` of them, `depth` layers.
struct CopyOp {
  char* to = nullptr;
  const char* from = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
  hipMemcpyKind kind = hipMemcpyDefault;
  hipMemcpy3DParms asked{};  // for graphs' questions
};

struct FillOp {
  char* to = nullptr;
  uint32_t value = 0, element = 1;                                // element: 1, 2 or 4 bytes
  size_t width = 0, height = 1, depth = 1, pitch = 0, slice = 0;  // width in elements
};

struct HostOp {
  hipHostFn_t function = nullptr;
  void* data = nullptr;
};

struct CallbackOp {  // of hipStreamAddCallback
  hipStreamCallback_t function = nullptr;
  hipStream_t stream = nullptr;
  void* data = nullptr;
};

struct RecordOp {
  EventPtr event;
  bool external = false;  // a node even where a graph is captured, not a mark in its making
};

struct WaitOp {
  EventPtr event;
};

struct EmptyOp {};

struct GraphOp {
  std::shared_ptr<Graph> graph;
};

struct FreeOp {
  uintptr_t address = 0;
  bool of_graph = false;  // memory that a graph has until its end
};

struct AllocOp {  // a graph's own memory: had when the graph is made
  uintptr_t address = 0;
  hipMemAllocNodeParams asked{};
};

/// Waits until a value in memory is as wanted, or writes one.
struct ValueOp {
  void* address = nullptr;
  uint64_t value = 0, mask = ~uint64_t{0};
  unsigned condition = 0;
  bool write = false, wide = false;
};

using Operation = std::variant<KernelOp, CopyOp, FillOp, HostOp, CallbackOp, RecordOp, WaitOp,
                               EmptyOp, GraphOp, FreeOp, AllocOp, ValueOp>;

/// Does what isn't a matter of order between streams: everything but RecordOp, WaitOp and GraphOp.
hipError_t perform(const Operation& operation);

/// Queues it. The signal is set when it is done; null where nothing was queued.
SignalPtr enqueue(Stream& stream, const Operation& operation, std::vector<SignalPtr> after = {});

/// Runs a kernel to its end.
hipError_t run_kernel(const KernelOp& op);

}  // namespace emu
