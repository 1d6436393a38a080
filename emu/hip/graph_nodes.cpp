// Graph nodes of each kind: adding them, and reading and changing their parameters.

#include <climits>

#include "emu/hip/copy.h"
#include "emu/hip/graph_handles.h"
#include "emu/hip/launch.h"

namespace emu::hip {
namespace {

template <class Op>
void put_event(hipGraphNode_t node, hipEvent_t* event) {
  require(event != nullptr);
  std::lock_guard lock(graph_mutex());
  *event = reinterpret_cast<hipEvent_t>(operation_of<Op>(find_node(node)).event.get());
}

KernelOp kernel_of(const hipKernelNodeParams* params) {
  require(params != nullptr && params->func != nullptr);
  return kernel_op(request_of(*params), current_device());
}

CopyOp copy_of(const hipMemcpy3DParms* params) {
  require(params != nullptr);
  return copy_op(*params);
}

CopyOp copy_of(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  require(bytes != 0);
  return copy_op(to, from, bytes, kind);
}

FillOp fill_of(const hipMemsetParams* params) {
  require(params != nullptr);
  return fill_op(*params);
}

HostOp host_of(const hipHostNodeParams* params) {
  require(params != nullptr && params->fn != nullptr);
  return {params->fn, params->userData};
}

constexpr char kOfGraph[] = "of a graph";

}  // namespace

std::shared_ptr<void> graph_block(size_t bytes, int device) {
  Allocation wanted;
  wanted.bytes = bytes;
  wanted.device = device;
  wanted.label = kOfGraph;
  const uintptr_t at = memory().allocate(wanted);
  require(at != 0, hipErrorOutOfMemory);
  graph_memory(device);  // records the highest use
  // The caller may have freed the block already, and another allocation may have its address.
  const uint64_t serial = memory().find(at)->serial;
  return {reinterpret_cast<void*>(at), [serial](const void* block) {
            const std::optional<Allocation> a = memory().find(address(block));
            if (a && a->serial == serial) memory().free(a->base);
          }};
}

bool is_of_graph(const Allocation& allocation) { return allocation.label == kOfGraph; }

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

#define EMU_NODE_ARGUMENTS \
  hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count

EMU_API hipError_t hipGraphAddEmptyNode(EMU_NODE_ARGUMENTS) {
  EMU_CALL({ add_node(node, graph, after, count, EmptyOp{}); });
}

// --- kernels

EMU_API hipError_t hipGraphAddKernelNode(EMU_NODE_ARGUMENTS, const hipKernelNodeParams* params) {
  EMU_CALL({ add_node(node, graph, after, count, kernel_of(params)); });
}

EMU_API hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    KernelOp& op = operation_of<KernelOp>(find_node(node));
    *params = {};
    params->func = const_cast<void*>(op.function);
    params->gridDim = {op.groups[0], op.groups[1], op.groups[2]};
    params->blockDim = {op.block[0], op.block[1], op.block[2]};
    params->sharedMemBytes = op.dynamic_lds;
    op.listed.clear();
    for (const Argument& argument : op.kernel->info.arguments) {
      if (!argument.hidden()) op.listed.push_back(op.arguments.data() + argument.offset);
    }
    params->kernelParams = op.listed.data();
  });
}

EMU_API hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node,
                                               const hipKernelNodeParams* params) {
  EMU_CALL({ change<KernelOp>(node, [&] { return kernel_of(params); }); });
}

EMU_API hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   const hipKernelNodeParams* params) {
  EMU_CALL({ change<KernelOp>(exec, node, [&] { return kernel_of(params); }); });
}

// --- copies

EMU_API hipError_t hipGraphAddMemcpyNode(EMU_NODE_ARGUMENTS, const hipMemcpy3DParms* params) {
  EMU_CALL({ add_node(node, graph, after, count, copy_of(params)); });
}

EMU_API hipError_t hipGraphAddMemcpyNode1D(EMU_NODE_ARGUMENTS, void* to, const void* from,
                                           size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({ add_node(node, graph, after, count, copy_of(to, from, bytes, kind)); });
}

EMU_API hipError_t hipGraphAddMemcpyNodeToSymbol(EMU_NODE_ARGUMENTS, const void* symbol,
                                                 const void* from, size_t bytes, size_t offset,
                                                 hipMemcpyKind kind) {
  EMU_CALL({
    add_node(node, graph, after, count,
             copy_op(symbol_address(symbol, offset, bytes), from, bytes, kind));
  });
}

EMU_API hipError_t hipGraphAddMemcpyNodeFromSymbol(EMU_NODE_ARGUMENTS, void* to, const void* symbol,
                                                   size_t bytes, size_t offset,
                                                   hipMemcpyKind kind) {
  EMU_CALL({
    add_node(node, graph, after, count,
             copy_op(to, symbol_address(symbol, offset, bytes), bytes, kind));
  });
}

EMU_API hipError_t hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    *params = operation_of<CopyOp>(find_node(node)).asked;
  });
}

EMU_API hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node,
                                               const hipMemcpy3DParms* params) {
  EMU_CALL({ change<CopyOp>(node, [&] { return copy_of(params); }); });
}

EMU_API hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* to, const void* from,
                                                 size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({ change<CopyOp>(node, [&] { return copy_of(to, from, bytes, kind); }); });
}

EMU_API hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   hipMemcpy3DParms* params) {
  EMU_CALL({ change<CopyOp>(exec, node, [&] { return copy_of(params); }); });
}

EMU_API hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node,
                                                     void* to, const void* from, size_t bytes,
                                                     hipMemcpyKind kind) {
  EMU_CALL({ change<CopyOp>(exec, node, [&] { return copy_of(to, from, bytes, kind); }); });
}

// --- fills

EMU_API hipError_t hipGraphAddMemsetNode(EMU_NODE_ARGUMENTS, const hipMemsetParams* params) {
  EMU_CALL({ add_node(node, graph, after, count, fill_of(params)); });
}

EMU_API hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    const FillOp& op = operation_of<FillOp>(find_node(node));
    *params = {op.to, op.element, op.height, op.pitch, op.value, op.width};
  });
}

EMU_API hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams* params) {
  EMU_CALL({ change<FillOp>(node, [&] { return fill_of(params); }); });
}

EMU_API hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   const hipMemsetParams* params) {
  EMU_CALL({ change<FillOp>(exec, node, [&] { return fill_of(params); }); });
}

// --- functions of the host

EMU_API hipError_t hipGraphAddHostNode(EMU_NODE_ARGUMENTS, const hipHostNodeParams* params) {
  EMU_CALL({ add_node(node, graph, after, count, host_of(params)); });
}

EMU_API hipError_t hipGraphHostNodeGetParams(hipGraphNode_t node, hipHostNodeParams* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    const HostOp& op = operation_of<HostOp>(find_node(node));
    *params = {op.function, op.data};
  });
}

EMU_API hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams* params) {
  EMU_CALL({ change<HostOp>(node, [&] { return host_of(params); }); });
}

EMU_API hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                 const hipHostNodeParams* params) {
  EMU_CALL({ change<HostOp>(exec, node, [&] { return host_of(params); }); });
}

// --- events

EMU_API hipError_t hipGraphAddEventRecordNode(EMU_NODE_ARGUMENTS, hipEvent_t event) {
  EMU_CALL({ add_node(node, graph, after, count, RecordOp{find_event(event)}); });
}

EMU_API hipError_t hipGraphAddEventWaitNode(EMU_NODE_ARGUMENTS, hipEvent_t event) {
  EMU_CALL({ add_node(node, graph, after, count, WaitOp{find_event(event)}); });
}

EMU_API hipError_t hipGraphEventRecordNodeGetEvent(hipGraphNode_t node, hipEvent_t* event) {
  EMU_CALL({ put_event<RecordOp>(node, event); });
}

EMU_API hipError_t hipGraphEventWaitNodeGetEvent(hipGraphNode_t node, hipEvent_t* event) {
  EMU_CALL({ put_event<WaitOp>(node, event); });
}

EMU_API hipError_t hipGraphEventRecordNodeSetEvent(hipGraphNode_t node, hipEvent_t event) {
  EMU_CALL({ change<RecordOp>(node, [&] { return RecordOp{find_event(event)}; }); });
}

EMU_API hipError_t hipGraphEventWaitNodeSetEvent(hipGraphNode_t node, hipEvent_t event) {
  EMU_CALL({ change<WaitOp>(node, [&] { return WaitOp{find_event(event)}; }); });
}

EMU_API hipError_t hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                                       hipEvent_t event) {
  EMU_CALL({ change<RecordOp>(exec, node, [&] { return RecordOp{find_event(event)}; }); });
}

EMU_API hipError_t hipGraphExecEventWaitNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                                     hipEvent_t event) {
  EMU_CALL({ change<WaitOp>(exec, node, [&] { return WaitOp{find_event(event)}; }); });
}

// --- graphs within graphs

EMU_API hipError_t hipGraphAddChildGraphNode(EMU_NODE_ARGUMENTS, hipGraph_t child) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    add_node(node, graph, after, count, GraphOp{find_graph(child)->clone()});
  });
}

EMU_API hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t* child) {
  EMU_CALL({
    require(child != nullptr);
    std::lock_guard lock(graph_mutex());
    *child = graphs().add<hipGraph_t>(operation_of<GraphOp>(find_node(node)).graph);
  });
}

EMU_API hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                       hipGraph_t child) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    auto& [now] = operation_of<GraphOp>(node_of(*find_exec(exec), node));
    const std::shared_ptr<Graph> wanted = find_graph(child);
    Node* culprit = nullptr;
    require(compare(*now, *wanted, culprit) == hipGraphExecUpdateSuccess);
    now = wanted->clone();
  });
}

// --- memory of a graph

EMU_API hipError_t hipGraphAddMemAllocNode(EMU_NODE_ARGUMENTS, hipMemAllocNodeParams* params) {
  EMU_CALL({
    require(params != nullptr && params->bytesize != 0);
    require(params->poolProps.allocType == hipMemAllocationTypePinned);
    require(params->poolProps.location.type == hipMemLocationTypeDevice);
    const int ordinal = hip::device(params->poolProps.location.id).ordinal;
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<void> block = graph_block(params->bytesize, ordinal);
    hipMemAllocNodeParams asked = *params;
    asked.dptr = block.get();
    add_node(node, graph, after, count, AllocOp{address(block.get()), asked});
    find_graph(graph)->memory.push_back(block);
    params->dptr = block.get();
  });
}

EMU_API hipError_t hipGraphMemAllocNodeGetParams(hipGraphNode_t node,
                                                 hipMemAllocNodeParams* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    *params = operation_of<AllocOp>(find_node(node)).asked;
  });
}

// A graph's memory stays allocated until the graph is destroyed, so this node only orders
// operations.
EMU_API hipError_t hipGraphAddMemFreeNode(EMU_NODE_ARGUMENTS, void* pointer) {
  EMU_CALL({
    const std::optional<Allocation> a = memory().find(address(pointer));
    require(a && a->base == address(pointer) && is_of_graph(*a));
    std::lock_guard lock(graph_mutex());
    for (const auto& other : find_graph(graph)->nodes) {
      const auto* free = std::get_if<FreeOp>(&other->operation);
      require(free == nullptr || free->address != a->base);
    }
    add_node(node, graph, after, count, FreeOp{a->base, true});
  });
}

EMU_API hipError_t hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void* pointer) {
  EMU_CALL({
    require(pointer != nullptr);
    std::lock_guard lock(graph_mutex());
    *static_cast<uintptr_t*>(pointer) = operation_of<FreeOp>(find_node(node)).address;
  });
}

EMU_API hipError_t hipDeviceGraphMemTrim(int ordinal) {
  EMU_CALL({ hip::device(ordinal); });
}

// --- user objects, which live as long as a graph

namespace {

Handles<UserObject>& user_objects() {
  static auto* all = new Handles<UserObject>;
  return *all;
}

/// Finds a user object, and checks the number of references to take or release.
std::shared_ptr<UserObject> find_object(hipUserObject_t handle, unsigned count) {
  std::shared_ptr<UserObject> object = user_objects().find(handle);
  require(object != nullptr && count != 0 && count <= INT_MAX);
  return object;
}

}  // namespace

EMU_API hipError_t hipUserObjectCreate(hipUserObject_t* object, void* data, hipHostFn_t destroy,
                                       unsigned references, unsigned flags) {
  EMU_CALL({
    require(object != nullptr && destroy != nullptr && flags == hipUserObjectNoDestructorSync);
    require(references != 0 && references <= INT_MAX);
    auto made = std::make_shared<UserObject>();
    made->data = data;
    made->destroy = destroy;
    made->references = references;
    made->forget = [](const UserObject* gone) { user_objects().remove(gone); };
    *object = user_objects().add<hipUserObject_t>(std::move(made));
  });
}

EMU_API hipError_t hipUserObjectRelease(hipUserObject_t object, unsigned count) {
  EMU_CALL({
    std::unique_lock lock(graph_mutex());
    const std::shared_ptr<UserObject> found = find_object(object, count);
    require(count <= found->references);
    const bool last = found->release(count);
    lock.unlock();
    if (last) found->destroy(found->data);
  });
}

EMU_API hipError_t hipUserObjectRetain(hipUserObject_t object, unsigned count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    find_object(object, count)->references += count;
  });
}

EMU_API hipError_t hipGraphRetainUserObject(hipGraph_t graph, hipUserObject_t object,
                                            unsigned count, unsigned flags) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<UserObject> found = find_object(object, count);
    require(flags == 0 || flags == hipGraphUserObjectMove);
    const std::shared_ptr<Graph> owner = find_graph(graph);
    require(flags == 0 || count <= found->references);
    owner->retain(found, count);
    if (flags == hipGraphUserObjectMove) found->references -= count;
  });
}

EMU_API hipError_t hipGraphReleaseUserObject(hipGraph_t graph, hipUserObject_t object,
                                             unsigned count) {
  EMU_CALL({
    std::unique_lock lock(graph_mutex());
    const std::shared_ptr<Graph> owner = find_graph(graph);
    const std::shared_ptr<UserObject> found = find_object(object, count);
    const auto at = owner->objects.find(found);
    require(at != owner->objects.end() && count <= at->second);
    at->second -= count;
    if (at->second == 0) owner->objects.erase(at);
    const bool last = found->release(count);
    lock.unlock();
    if (last) found->destroy(found->data);
  });
}
