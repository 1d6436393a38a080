// The functions whose names end in _spt: they use the calling thread's default stream where the
// others use the null stream. Programs get them if they are compiled with
// -fgpu-default-stream=per-thread.

#include "emu/hip/copy.h"
#include "emu/hip/functions_thread_stream.h"

namespace emu::hip {
namespace {

hipStream_t thread_stream(hipStream_t stream) {
  return stream == nullptr ? hipStreamPerThread : stream;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

// --- copies and fills

EMU_API hipError_t hipMemcpy_spt(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_op(to, from, bytes, kind), hipStreamPerThread, false); });
}

EMU_API hipError_t hipMemcpyAsync_spt(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                      hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, kind, thread_stream(stream));
}

EMU_API hipError_t hipMemcpy2D_spt(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, hipMemcpyKind kind) {
  EMU_CALL({
    copy(copy_op(to, to_pitch, from, from_pitch, width, height, kind), hipStreamPerThread, false);
  });
}

EMU_API hipError_t hipMemcpy2DAsync_spt(void* to, size_t to_pitch, const void* from,
                                        size_t from_pitch, size_t width, size_t height,
                                        hipMemcpyKind kind, hipStream_t stream) {
  return hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind,
                          thread_stream(stream));
}

EMU_API hipError_t hipMemcpy3D_spt(const hipMemcpy3DParms* parms) {
  EMU_CALL({
    require(parms != nullptr);
    copy(copy_op(*parms), hipStreamPerThread, false);
  });
}

EMU_API hipError_t hipMemcpy3DAsync_spt(const hipMemcpy3DParms* parms, hipStream_t stream) {
  return hipMemcpy3DAsync(parms, thread_stream(stream));
}

EMU_API hipError_t hipMemcpyToSymbol_spt(const void* symbol, const void* from, size_t bytes,
                                         size_t offset, hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_to_symbol(symbol, from, bytes, offset, kind), hipStreamPerThread, false); });
}

EMU_API hipError_t hipMemcpyToSymbolAsync_spt(const void* symbol, const void* from, size_t bytes,
                                              size_t offset, hipMemcpyKind kind,
                                              hipStream_t stream) {
  return hipMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, thread_stream(stream));
}

EMU_API hipError_t hipMemcpyFromSymbol_spt(void* to, const void* symbol, size_t bytes,
                                           size_t offset, hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_from_symbol(to, symbol, bytes, offset, kind), hipStreamPerThread, false); });
}

EMU_API hipError_t hipMemcpyFromSymbolAsync_spt(void* to, const void* symbol, size_t bytes,
                                                size_t offset, hipMemcpyKind kind,
                                                hipStream_t stream) {
  return hipMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, thread_stream(stream));
}

EMU_API hipError_t hipMemset_spt(void* to, int value, size_t bytes) {
  EMU_CALL(
      { fill(fill_op(to, static_cast<uint32_t>(value), 1, bytes), hipStreamPerThread, false); });
}

EMU_API hipError_t hipMemsetAsync_spt(void* to, int value, size_t bytes, hipStream_t stream) {
  return hipMemsetAsync(to, value, bytes, thread_stream(stream));
}

EMU_API hipError_t hipMemset2D_spt(void* to, size_t pitch, int value, size_t width, size_t height) {
  EMU_CALL({ fill(fill_2d(to, pitch, value, width, height), hipStreamPerThread, false); });
}

EMU_API hipError_t hipMemset2DAsync_spt(void* to, size_t pitch, int value, size_t width,
                                        size_t height, hipStream_t stream) {
  return hipMemset2DAsync(to, pitch, value, width, height, thread_stream(stream));
}

EMU_API hipError_t hipMemset3D_spt(hipPitchedPtr to, int value, hipExtent extent) {
  EMU_CALL({ fill(fill_3d(to, value, extent), hipStreamPerThread, false); });
}

EMU_API hipError_t hipMemset3DAsync_spt(hipPitchedPtr to, int value, hipExtent extent,
                                        hipStream_t stream) {
  return hipMemset3DAsync(to, value, extent, thread_stream(stream));
}

// --- launches

EMU_API hipError_t hipLaunchKernel_spt(const void* function, dim3 grid, dim3 block, void** params,
                                       size_t lds, hipStream_t stream) {
  return hipLaunchKernel(function, grid, block, params, lds, thread_stream(stream));
}

EMU_API hipError_t hipLaunchCooperativeKernel_spt(const void* function, dim3 grid, dim3 block,
                                                  void** params, uint32_t lds, hipStream_t stream) {
  return hipLaunchCooperativeKernel(function, grid, block, params, lds, thread_stream(stream));
}

EMU_API hipError_t hipLaunchHostFunc_spt(hipStream_t stream, hipHostFn_t function, void* data) {
  return hipLaunchHostFunc(thread_stream(stream), function, data);
}

EMU_API hipError_t hipGraphLaunch_spt(hipGraphExec_t exec, hipStream_t stream) {
  return hipGraphLaunch(exec, thread_stream(stream));
}

// --- streams and events

EMU_API hipError_t hipStreamAddCallback_spt(hipStream_t stream, hipStreamCallback_t function,
                                            void* data, unsigned flags) {
  return hipStreamAddCallback(thread_stream(stream), function, data, flags);
}

EMU_API hipError_t hipStreamSynchronize_spt(hipStream_t stream) {
  return hipStreamSynchronize(thread_stream(stream));
}

EMU_API hipError_t hipStreamQuery_spt(hipStream_t stream) {
  return hipStreamQuery(thread_stream(stream));
}

EMU_API hipError_t hipStreamGetFlags_spt(hipStream_t stream, unsigned* flags) {
  return hipStreamGetFlags(thread_stream(stream), flags);
}

EMU_API hipError_t hipStreamGetPriority_spt(hipStream_t stream, int* priority) {
  return hipStreamGetPriority(thread_stream(stream), priority);
}

EMU_API hipError_t hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return hipStreamWaitEvent(thread_stream(stream), event, flags);
}

EMU_API hipError_t hipEventRecord_spt(hipEvent_t event, hipStream_t stream) {
  return hipEventRecord(event, thread_stream(stream));
}

EMU_API hipError_t hipStreamBeginCapture_spt(hipStream_t stream, hipStreamCaptureMode mode) {
  return hipStreamBeginCapture(thread_stream(stream), mode);
}

EMU_API hipError_t hipStreamEndCapture_spt(hipStream_t stream, hipGraph_t* graph) {
  return hipStreamEndCapture(thread_stream(stream), graph);
}

EMU_API hipError_t hipStreamIsCapturing_spt(hipStream_t stream, hipStreamCaptureStatus* status) {
  return hipStreamIsCapturing(thread_stream(stream), status);
}

EMU_API hipError_t hipStreamGetCaptureInfo_spt(hipStream_t stream, hipStreamCaptureStatus* status,
                                               unsigned long long* id) {
  return hipStreamGetCaptureInfo(thread_stream(stream), status, id);
}

EMU_API hipError_t hipStreamGetCaptureInfo_v2_spt(hipStream_t stream,
                                                  hipStreamCaptureStatus* status,
                                                  unsigned long long* id, hipGraph_t* graph,
                                                  const hipGraphNode_t** nodes, size_t* count) {
  return hipStreamGetCaptureInfo_v2(thread_stream(stream), status, id, graph, nodes, count);
}
