#pragma once

// The operations that a stream can queue or a graph's node can run.

#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "emu/hip/types_extended.h"
#include "emu/runtime/module.h"
#include "emu/runtime/stream.h"

namespace emu {

struct Graph;

struct KernelOp {
  std::shared_ptr<Kernel> kernel;
  std::array<uint32_t, 3> groups{1, 1, 1}, block{1, 1, 1};
  // Work-items of the grid if the workgroups don't divide it, zeros otherwise.
  std::array<uint32_t, 3> grid{0, 0, 0};
  uint32_t dynamic_lds = 0;
  bool cooperative = false;
  // Attributes that graph nodes have. They change no result.
  int priority = 0;
  hipAccessPolicyWindow window{};
  std::vector<uint8_t> arguments;  // the caller's arguments in the layout of the kernarg segment
  // The function as the caller named it, for queries of graph nodes.
  const void* function = nullptr;
  std::vector<void*> listed;  // the address of each argument, for queries of graph nodes
};

/// Copies a box of bytes: `depth` layers of `height` rows of `width` bytes.
struct CopyOp {
  char* to = nullptr;
  const char* from = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
  hipMemcpyKind kind = hipMemcpyDefault;
  hipMemcpy3DParms asked{};  // for queries of graph nodes
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

struct CallbackOp {  // queued by hipStreamAddCallback
  hipStreamCallback_t function = nullptr;
  hipStream_t stream = nullptr;
  void* data = nullptr;
};

struct RecordOp {
  EventPtr event;
  bool external = false;  // the record is a node even during capture, instead of a dependency
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
  bool of_graph = false;  // the graph owns the memory until its end
};

struct AllocOp {  // the graph's own memory, allocated when the graph is made
  uintptr_t address = 0;
  hipMemAllocNodeParams asked{};
};

/// Waits until a value in memory meets a condition, or writes a value.
struct ValueOp {
  void* address = nullptr;
  uint64_t value = 0, mask = ~uint64_t{0};
  unsigned condition = 0;
  bool write = false, wide = false;
};

struct BatchOp {  // waits and writes of a graph's node, one after the other
  std::vector<ValueOp> values;
  std::vector<hipStreamBatchMemOpParams> asked;  // for queries of graph nodes
  hipCtx_t context = nullptr;
};

using Operation = std::variant<KernelOp, CopyOp, FillOp, HostOp, CallbackOp, RecordOp, WaitOp,
                               EmptyOp, GraphOp, FreeOp, AllocOp, ValueOp, BatchOp>;

/// Performs any operation except RecordOp, WaitOp and GraphOp, which order streams.
hipError_t perform(const Operation& operation);

/// Queues the operation. Returns the signal that is set when it is done, or null if nothing was
/// queued.
SignalPtr enqueue(Stream& stream, const Operation& operation, std::vector<SignalPtr> after = {});

/// Runs a kernel to its end.
hipError_t run_kernel(const KernelOp& op);

}  // namespace emu
