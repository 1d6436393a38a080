// A graph's nodes of each kind: adding them, asking for and changing what they do.

#include "emu/hip/copy.h"
#include "emu/hip/graph_handles.h"
#include "emu/hip/launch.h"

namespace emu::hip {
namespace {

/// A node of the graph, or its counterpart in the one that is ready to run.
template <class Op, class Make>
void change(Node* node, const Make& make) {
  Op& op = operation_of<Op>(node);
  op = make();
}

KernelOp kernel_of(const hipKernelNodeParams* params) {
  require(params != nullptr && params->func != nullptr);
  return kernel_op(request_of(*params), current_device());
}

HostOp host_of(const hipHostNodeParams* params) {
  require(params != nullptr && params->fn != nullptr);
  return {params->fn, params->userData};
}

}  // namespace
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
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    change<KernelOp>(find_node(node), [&] { return kernel_of(params); });
  });
}

EMU_API hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   const hipKernelNodeParams* params) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    change<KernelOp>(node_of(*find_exec(exec), node), [&] { return kernel_of(params); });
  });
}

// --- copies

EMU_API hipError_t hipGraphAddMemcpyNode(EMU_NODE_ARGUMENTS, const hipMemcpy3DParms* params) {
  EMU_CALL({
    require(params != nullptr);
    add_node(node, graph, after, count, copy_op(*params));
  });
}

EMU_API hipError_t hipGraphAddMemcpyNode1D(EMU_NODE_ARGUMENTS, void* to, const void* from,
                                           size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({
    require(bytes != 0);
    add_node(node, graph, after, count, copy_op(to, from, bytes, kind));
  });
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
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    change<CopyOp>(find_node(node), [&] { return copy_op(*params); });
  });
}

EMU_API hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* to, const void* from,
                                                 size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({
    require(bytes != 0);
    std::lock_guard lock(graph_mutex());
    change<CopyOp>(find_node(node), [&] { return copy_op(to, from, bytes, kind); });
  });
}

EMU_API hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   hipMemcpy3DParms* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    change<CopyOp>(node_of(*find_exec(exec), node), [&] { return copy_op(*params); });
  });
}

EMU_API hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node,
                                                     void* to, const void* from, size_t bytes,
                                                     hipMemcpyKind kind) {
  EMU_CALL({
    require(bytes != 0);
    std::lock_guard lock(graph_mutex());
    change<CopyOp>(node_of(*find_exec(exec), node), [&] { return copy_op(to, from, bytes, kind); });
  });
}

// --- fills

EMU_API hipError_t hipGraphAddMemsetNode(EMU_NODE_ARGUMENTS, const hipMemsetParams* params) {
  EMU_CALL({
    require(params != nullptr);
    add_node(node, graph, after, count, fill_op(*params));
  });
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
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    change<FillOp>(find_node(node), [&] { return fill_op(*params); });
  });
}

EMU_API hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   const hipMemsetParams* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    change<FillOp>(node_of(*find_exec(exec), node), [&] { return fill_op(*params); });
  });
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
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    change<HostOp>(find_node(node), [&] { return host_of(params); });
  });
}

EMU_API hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                 const hipHostNodeParams* params) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    change<HostOp>(node_of(*find_exec(exec), node), [&] { return host_of(params); });
  });
}

// --- events

EMU_API hipError_t hipGraphAddEventRecordNode(EMU_NODE_ARGUMENTS, hipEvent_t event) {
  EMU_CALL({ add_node(node, graph, after, count, RecordOp{find_event(event)}); });
}

EMU_API hipError_t hipGraphAddEventWaitNode(EMU_NODE_ARGUMENTS, hipEvent_t event) {
  EMU_CALL({ add_node(node, graph, after, count, WaitOp{find_event(event)}); });
}

EMU_API hipError_t hipGraphEventRecordNodeGetEvent(hipGraphNode_t node, hipEvent_t* event) {
  EMU_CALL({
    require(event != nullptr);
    std::lock_guard lock(graph_mutex());
    *event = reinterpret_cast<hipEvent_t>(operation_of<RecordOp>(find_node(node)).event.get());
  });
}

EMU_API hipError_t hipGraphEventWaitNodeGetEvent(hipGraphNode_t node, hipEvent_t* event) {
  EMU_CALL({
    require(event != nullptr);
    std::lock_guard lock(graph_mutex());
    *event = reinterpret_cast<hipEvent_t>(operation_of<WaitOp>(find_node(node)).event.get());
  });
}

EMU_API hipError_t hipGraphEventRecordNodeSetEvent(hipGraphNode_t node, hipEvent_t event) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    operation_of<RecordOp>(find_node(node)).event = find_event(event);
  });
}

EMU_API hipError_t hipGraphEventWaitNodeSetEvent(hipGraphNode_t node, hipEvent_t event) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    operation_of<WaitOp>(find_node(node)).event = find_event(event);
  });
}

EMU_API hipError_t hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                                       hipEvent_t event) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    operation_of<RecordOp>(node_of(*find_exec(exec), node)).event = find_event(event);
  });
}

EMU_API hipError_t hipGraphExecEventWaitNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                                     hipEvent_t event) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    operation_of<WaitOp>(node_of(*find_exec(exec), node)).event = find_event(event);
  });
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
    Node* found = node_of(*find_exec(exec), node);
    operation_of<GraphOp>(found).graph = find_graph(child)->clone();
  });
}

// --- memory of a graph

EMU_API hipError_t hipGraphAddMemAllocNode(EMU_NODE_ARGUMENTS, hipMemAllocNodeParams* params) {
  EMU_CALL({
    require(params != nullptr && params->bytesize != 0);
    require(params->poolProps.allocType == hipMemAllocationTypePinned);
    require(params->poolProps.location.type == hipMemLocationTypeDevice);
    Allocation wanted;
    wanted.bytes = params->bytesize;
    wanted.device = hip::device(params->poolProps.location.id).ordinal;
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<Graph> owner = find_graph(graph);
    const uintptr_t at = memory().allocate(wanted);
    require(at != 0, hipErrorOutOfMemory);
    owner->memory.emplace_back(reinterpret_cast<void*>(at),
                               [](void* block) { memory().free(address(block)); });
    params->dptr = reinterpret_cast<void*>(at);
    add_node(node, graph, after, count, AllocOp{at, *params});
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

// A graph's memory is had until the graph goes: the node only orders.
EMU_API hipError_t hipGraphAddMemFreeNode(EMU_NODE_ARGUMENTS, void* pointer) {
  EMU_CALL({
    require(pointer != nullptr);
    add_node(node, graph, after, count, FreeOp{address(pointer), true});
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

// --- objects that live as long as a graph

EMU_API hipError_t hipUserObjectCreate(hipUserObject_t* object, void* data, hipHostFn_t destroy,
                                       unsigned references, unsigned flags) {
  EMU_CALL({
    require(object != nullptr && destroy != nullptr && references != 0 && flags == 1);
    auto made = std::make_shared<UserObject>();
    made->data = data;
    made->destroy = destroy;
    made->references = static_cast<int>(references);
    *object = user_objects().add<hipUserObject_t>(std::move(made));
  });
}

namespace {

void release_object(hipUserObject_t handle, unsigned count) {
  const std::shared_ptr<UserObject> object = user_objects().find(handle);
  require(object != nullptr && count != 0 && static_cast<int>(count) <= object->references);
  object->references -= static_cast<int>(count);
  if (object->references != 0) return;
  user_objects().remove(handle);
  object->destroy(object->data);
}

}  // namespace

EMU_API hipError_t hipUserObjectRelease(hipUserObject_t object, unsigned count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    release_object(object, count);
  });
}

EMU_API hipError_t hipUserObjectRetain(hipUserObject_t object, unsigned count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<UserObject> found = user_objects().find(object);
    require(found != nullptr && count != 0);
    found->references += static_cast<int>(count);
  });
}

EMU_API hipError_t hipGraphRetainUserObject(hipGraph_t graph, hipUserObject_t object,
                                            unsigned count, unsigned flags) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<UserObject> found = user_objects().find(object);
    require(found != nullptr && count != 0 && flags <= 1);
    const std::shared_ptr<Graph> owner = find_graph(graph);
    if (flags == 0) found->references += static_cast<int>(count);
    for (unsigned i = 0; i < count; ++i) owner->objects.push_back(found);
  });
}

EMU_API hipError_t hipGraphReleaseUserObject(hipGraph_t graph, hipUserObject_t object,
                                             unsigned count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<Graph> owner = find_graph(graph);
    const std::shared_ptr<UserObject> found = user_objects().find(object);
    require(found != nullptr);
    for (unsigned i = 0; i < count; ++i) {
      const auto at = std::find(owner->objects.begin(), owner->objects.end(), found);
      require(at != owner->objects.end());
      owner->objects.erase(at);
      release_object(object, 1);
    }
  });
}
