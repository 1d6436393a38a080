// Graph nodes whose type is in their parameters, nodes of batches, attributes of kernel nodes, the
// driver API's nodes, and the memory of graphs.

#include <algorithm>

#include "emu/hip/array.h"
#include "emu/hip/batch.h"
#include "emu/hip/copy.h"
#include "emu/hip/graph_handles.h"

namespace emu::hip {
namespace {

BatchOp node_batch(const hipBatchMemOpNodeParams* params) {
  require(params != nullptr);
  BatchOp op;
  op.values = batch_of(params->paramArray, params->count, params->flags);
  op.asked.assign(params->paramArray, params->paramArray + params->count);
  op.context = params->ctx;
  return op;
}

/// Returns the parameters of a copy in the driver API's form, which counts bytes where the
/// runtime's counts elements of arrays.
HIP_MEMCPY3D driver_params(const hipMemcpy3DParms& p) {
  const auto type_of = [](hipArray_t array) {
    return array == nullptr ? hipMemoryTypeUnified : hipMemoryTypeArray;
  };
  const auto element_of = [](hipArray_t array) {
    return array == nullptr ? size_t{1} : find_array(array)->element();
  };
  const size_t from_element = element_of(p.srcArray), to_element = element_of(p.dstArray);
  HIP_MEMCPY3D result{};
  result.srcMemoryType = type_of(p.srcArray);
  result.srcArray = p.srcArray;
  result.srcDevice = p.srcPtr.ptr;
  result.srcPitch = p.srcPtr.pitch;
  result.srcHeight = p.srcPtr.ysize;
  result.srcXInBytes = p.srcPos.x * from_element;
  result.srcY = p.srcPos.y;
  result.srcZ = p.srcPos.z;
  result.dstMemoryType = type_of(p.dstArray);
  result.dstArray = p.dstArray;
  result.dstDevice = p.dstPtr.ptr;
  result.dstPitch = p.dstPtr.pitch;
  result.dstHeight = p.dstPtr.ysize;
  result.dstXInBytes = p.dstPos.x * to_element;
  result.dstY = p.dstPos.y;
  result.dstZ = p.dstPos.z;
  result.WidthInBytes = p.extent.width * std::max(from_element, to_element);
  result.Height = p.extent.height;
  result.Depth = p.extent.depth;
  return result;
}

/// Attributes of a kernel node, as AMD's runtime has them.
void get_attribute(const KernelOp& op, hipLaunchAttributeID attribute,
                   hipLaunchAttributeValue& value) {
  if (attribute == hipLaunchAttributeCooperative) {
    value.cooperative = op.cooperative ? 1 : 0;
  } else if (attribute == hipLaunchAttributePriority) {
    value.priority = op.priority;
  } else {
    require(attribute == hipLaunchAttributeAccessPolicyWindow);
    value.accessPolicyWindow = op.window;
  }
}

void set_attribute(KernelOp& op, hipLaunchAttributeID attribute,
                   const hipLaunchAttributeValue& value) {
  if (attribute == hipLaunchAttributeCooperative) {
    op.cooperative = value.cooperative != 0;
  } else if (attribute == hipLaunchAttributePriority) {
    op.priority = value.priority;
  } else {
    require(attribute == hipLaunchAttributeAccessPolicyWindow);
    op.window = value.accessPolicyWindow;
  }
}

uint64_t used_by_graphs(int device) {
  uint64_t bytes = 0;
  for (const Allocation& a : memory().live()) {
    if (is_of_graph(a) && a.device == device) bytes += a.bytes;
  }
  return bytes;
}

}  // namespace

namespace {

/// Updates the counters of a device from what is allocated. The caller must hold graph_mutex().
GraphMemory& counted_memory(int device) {
  static auto* all = new std::vector<GraphMemory>(runtime().devices.size());
  GraphMemory& one = (*all)[static_cast<size_t>(device)];
  one.now = used_by_graphs(device);
  one.high = std::max(one.high, one.now);
  return one;
}

}  // namespace

GraphMemory graph_memory(int device) {
  std::lock_guard lock(graph_mutex());
  return counted_memory(device);
}

void restart_graph_memory(int device) {
  std::lock_guard lock(graph_mutex());
  GraphMemory& one = counted_memory(device);
  one.high = one.now;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipGraphAddNode(hipGraphNode_t* node, hipGraph_t graph,
                                   const hipGraphNode_t* after, size_t count,
                                   hipGraphNodeParams* p) {
  EMU_CALL({
    require(p != nullptr);
    switch (p->type) {
      case hipGraphNodeTypeKernel:
        return hipGraphAddKernelNode(node, graph, after, count, &p->kernel);
      case hipGraphNodeTypeMemcpy:
        return hipGraphAddMemcpyNode(node, graph, after, count, &p->memcpy.copyParams);
      case hipGraphNodeTypeMemset:
        return hipGraphAddMemsetNode(node, graph, after, count, &p->memset);
      case hipGraphNodeTypeHost:
        return hipGraphAddHostNode(node, graph, after, count, &p->host);
      case hipGraphNodeTypeGraph:
        return hipGraphAddChildGraphNode(node, graph, after, count, p->graph);
      case hipGraphNodeTypeEmpty:
        return hipGraphAddEmptyNode(node, graph, after, count);
      case hipGraphNodeTypeWaitEvent:
        return hipGraphAddEventWaitNode(node, graph, after, count, p->event);
      case hipGraphNodeTypeEventRecord:
        return hipGraphAddEventRecordNode(node, graph, after, count, p->event);
      case hipGraphNodeTypeMemAlloc:
        return hipGraphAddMemAllocNode(node, graph, after, count, &p->alloc);
      case hipGraphNodeTypeMemFree:
        return hipGraphAddMemFreeNode(node, graph, after, count, p->free);
      case hipGraphNodeTypeExtSemaphoreSignal:
      case hipGraphNodeTypeExtSemaphoreWait:
        return hipErrorNotSupported;
      default:
        return hipErrorInvalidValue;
    }
  });
}

EMU_API hipError_t hipGraphNodeSetParams(hipGraphNode_t node, hipGraphNodeParams* p) {
  EMU_CALL({
    require(p != nullptr);
    switch (p->type) {
      case hipGraphNodeTypeKernel:
        return hipGraphKernelNodeSetParams(node, &p->kernel);
      case hipGraphNodeTypeMemcpy:
        return hipGraphMemcpyNodeSetParams(node, &p->memcpy.copyParams);
      case hipGraphNodeTypeMemset:
        return hipGraphMemsetNodeSetParams(node, &p->memset);
      case hipGraphNodeTypeHost:
        return hipGraphHostNodeSetParams(node, &p->host);
      case hipGraphNodeTypeWaitEvent:
        return hipGraphEventWaitNodeSetEvent(node, p->event);
      case hipGraphNodeTypeEventRecord:
        return hipGraphEventRecordNodeSetEvent(node, p->event);
      default:
        return hipErrorInvalidValue;
    }
  });
}

EMU_API hipError_t hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                             hipGraphNodeParams* p) {
  EMU_CALL({
    require(p != nullptr);
    switch (p->type) {
      case hipGraphNodeTypeKernel:
        return hipGraphExecKernelNodeSetParams(exec, node, &p->kernel);
      case hipGraphNodeTypeMemcpy:
        return hipGraphExecMemcpyNodeSetParams(exec, node, &p->memcpy.copyParams);
      case hipGraphNodeTypeMemset:
        return hipGraphExecMemsetNodeSetParams(exec, node, &p->memset);
      case hipGraphNodeTypeHost:
        return hipGraphExecHostNodeSetParams(exec, node, &p->host);
      case hipGraphNodeTypeGraph:
        return hipGraphExecChildGraphNodeSetParams(exec, node, p->graph);
      case hipGraphNodeTypeWaitEvent:
        return hipGraphExecEventWaitNodeSetEvent(exec, node, p->event);
      case hipGraphNodeTypeEventRecord:
        return hipGraphExecEventRecordNodeSetEvent(exec, node, p->event);
      default:
        return hipErrorInvalidValue;
    }
  });
}

// --- attributes of kernel nodes

EMU_API hipError_t hipGraphKernelNodeGetAttribute(hipGraphNode_t node,
                                                  hipLaunchAttributeID attribute,
                                                  hipLaunchAttributeValue* value) {
  EMU_CALL({
    require(value != nullptr);
    std::lock_guard lock(graph_mutex());
    get_attribute(operation_of<KernelOp>(find_node(node)), attribute, *value);
  });
}

EMU_API hipError_t hipGraphKernelNodeSetAttribute(hipGraphNode_t node,
                                                  hipLaunchAttributeID attribute,
                                                  const hipLaunchAttributeValue* value) {
  EMU_CALL({
    require(value != nullptr);
    std::lock_guard lock(graph_mutex());
    set_attribute(operation_of<KernelOp>(find_node(node)), attribute, *value);
  });
}

EMU_API hipError_t hipGraphKernelNodeCopyAttributes(hipGraphNode_t from, hipGraphNode_t to) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const KernelOp& source = operation_of<KernelOp>(find_node(from));
    KernelOp& target = operation_of<KernelOp>(find_node(to));
    target.cooperative = source.cooperative;
    target.priority = source.priority;
    target.window = source.window;
  });
}

// --- batches

EMU_API hipError_t hipGraphAddBatchMemOpNode(hipGraphNode_t* node, hipGraph_t graph,
                                             const hipGraphNode_t* after, size_t count,
                                             const hipBatchMemOpNodeParams* params) {
  EMU_CALL({ add_node(node, graph, after, count, node_batch(params)); });
}

EMU_API hipError_t hipGraphBatchMemOpNodeGetParams(hipGraphNode_t node,
                                                   hipBatchMemOpNodeParams* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    BatchOp& op = operation_of<BatchOp>(find_node(node));
    *params = {op.context, static_cast<unsigned>(op.asked.size()), op.asked.data(), 0};
  });
}

EMU_API hipError_t hipGraphBatchMemOpNodeSetParams(hipGraphNode_t node,
                                                   hipBatchMemOpNodeParams* params) {
  EMU_CALL({ change<BatchOp>(node, [&] { return node_batch(params); }); });
}

EMU_API hipError_t hipGraphExecBatchMemOpNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                       const hipBatchMemOpNodeParams* params) {
  EMU_CALL({ change<BatchOp>(exec, node, [&] { return node_batch(params); }); });
}

// --- copies from and to variables

EMU_API hipError_t hipGraphMemcpyNodeSetParamsToSymbol(hipGraphNode_t node, const void* symbol,
                                                       const void* from, size_t bytes,
                                                       size_t offset, hipMemcpyKind kind) {
  EMU_CALL(
      { change<CopyOp>(node, [&] { return copy_to_symbol(symbol, from, bytes, offset, kind); }); });
}

EMU_API hipError_t hipGraphMemcpyNodeSetParamsFromSymbol(hipGraphNode_t node, void* to,
                                                         const void* symbol, size_t bytes,
                                                         size_t offset, hipMemcpyKind kind) {
  EMU_CALL(
      { change<CopyOp>(node, [&] { return copy_from_symbol(to, symbol, bytes, offset, kind); }); });
}

EMU_API hipError_t hipGraphExecMemcpyNodeSetParamsToSymbol(hipGraphExec_t exec, hipGraphNode_t node,
                                                           const void* symbol, const void* from,
                                                           size_t bytes, size_t offset,
                                                           hipMemcpyKind kind) {
  EMU_CALL({
    change<CopyOp>(exec, node, [&] { return copy_to_symbol(symbol, from, bytes, offset, kind); });
  });
}

EMU_API hipError_t hipGraphExecMemcpyNodeSetParamsFromSymbol(hipGraphExec_t exec,
                                                             hipGraphNode_t node, void* to,
                                                             const void* symbol, size_t bytes,
                                                             size_t offset, hipMemcpyKind kind) {
  EMU_CALL({
    change<CopyOp>(exec, node, [&] { return copy_from_symbol(to, symbol, bytes, offset, kind); });
  });
}

// --- nodes of the driver API. The context is that of the only one that a device has.

EMU_API hipError_t hipDrvGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph,
                                            const hipGraphNode_t* after, size_t count,
                                            const HIP_MEMCPY3D* params, hipCtx_t) {
  EMU_CALL({ add_node(node, graph, after, count, copy_op(params)); });
}

EMU_API hipError_t hipDrvGraphMemcpyNodeGetParams(hipGraphNode_t node, HIP_MEMCPY3D* params) {
  EMU_CALL({
    require(params != nullptr);
    std::lock_guard lock(graph_mutex());
    *params = driver_params(operation_of<CopyOp>(find_node(node)).asked);
  });
}

EMU_API hipError_t hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const HIP_MEMCPY3D* params) {
  EMU_CALL({ change<CopyOp>(node, [&] { return copy_op(params); }); });
}

EMU_API hipError_t hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                      const HIP_MEMCPY3D* params, hipCtx_t) {
  EMU_CALL({ change<CopyOp>(exec, node, [&] { return copy_op(params); }); });
}

EMU_API hipError_t hipDrvGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph,
                                            const hipGraphNode_t* after, size_t count,
                                            const hipMemsetParams* params, hipCtx_t) {
  return hipGraphAddMemsetNode(node, graph, after, count, params);
}

EMU_API hipError_t hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                      const hipMemsetParams* params, hipCtx_t) {
  return hipGraphExecMemsetNodeSetParams(exec, node, params);
}

EMU_API hipError_t hipDrvGraphAddMemFreeNode(hipGraphNode_t* node, hipGraph_t graph,
                                             const hipGraphNode_t* after, size_t count,
                                             hipDeviceptr_t pointer) {
  return hipGraphAddMemFreeNode(node, graph, after, count, pointer);
}

// --- memory

EMU_API hipError_t hipDeviceGetGraphMemAttribute(int ordinal, hipGraphMemAttributeType attribute,
                                                 void* value) {
  EMU_CALL({
    hip::device(ordinal);
    require(value != nullptr && attribute <= hipGraphMemAttrReservedMemHigh);
    const GraphMemory memory = graph_memory(ordinal);
    const bool high =
        attribute == hipGraphMemAttrUsedMemHigh || attribute == hipGraphMemAttrReservedMemHigh;
    *static_cast<uint64_t*>(value) = high ? memory.high : memory.now;
  });
}

EMU_API hipError_t hipDeviceSetGraphMemAttribute(int ordinal, hipGraphMemAttributeType attribute,
                                                 void* value) {
  EMU_CALL({
    hip::device(ordinal);
    require(value != nullptr && *static_cast<uint64_t*>(value) == 0);  // the counter restarts
    require(attribute == hipGraphMemAttrUsedMemHigh || attribute == hipGraphMemAttrReservedMemHigh);
    restart_graph_memory(ordinal);
  });
}
