// Copies between devices in three dimensions, batches of copies, the driver API's copies in three
// dimensions, and fills of rows of wider elements.

#include "emu/hip/copy.h"

namespace emu::hip {
namespace {

CopyOp peer_copy(const hipMemcpy3DPeerParms* p) {
  require(p != nullptr);
  device(p->srcDevice);
  device(p->dstDevice);
  hipMemcpy3DParms parms{};
  parms.srcArray = p->srcArray;
  parms.srcPos = p->srcPos;
  parms.srcPtr = p->srcPtr;
  parms.dstArray = p->dstArray;
  parms.dstPos = p->dstPos;
  parms.dstPtr = p->dstPtr;
  parms.extent = p->extent;
  parms.kind = hipMemcpyDefault;
  return copy_op(parms);
}

FillOp fill_rows(hipDeviceptr_t to, size_t pitch, uint32_t value, uint32_t element, size_t width,
                 size_t height) {
  require(width < kMostBytes);
  hipMemsetParams p{};
  p.dst = to;
  p.elementSize = element;
  p.height = height;
  p.pitch = pitch;
  p.value = value;
  p.width = width;
  return fill_op(p);
}

/// Returns the copy of a batch's operand, which has rows and layers of its own size.
hipPitchedPtr pitched(const hipMemcpy3DOperand& operand, const hipExtent& extent) {
  require(operand.type == hipMemcpyOperandTypePointer, hipErrorNotSupported);
  const auto& p = operand.op.ptr;
  const size_t row = p.rowLength == 0 ? extent.width : p.rowLength;
  return {p.ptr, row, row, p.layerHeight == 0 ? extent.height : p.layerHeight};
}

CopyOp batch_copy(const hipMemcpy3DBatchOp& one) {
  require(one.srcAccessOrder >= 1 && one.srcAccessOrder <= 3);
  hipMemcpy3DParms parms{};
  parms.srcPtr = pitched(one.src, one.extent);
  parms.dstPtr = pitched(one.dst, one.extent);
  parms.extent = one.extent;
  parms.kind = hipMemcpyDefault;
  return copy_op(parms);
}

/// Makes all copies of a batch before it queues the first. `failed` becomes the index of a copy
/// that can't be made.
template <class Make>
void copy_batch(size_t count, size_t* failed, hipStream_t stream, const Make& make) {
  if (failed != nullptr) *failed = ~size_t{0};
  std::vector<CopyOp> ready;
  for (size_t i = 0; i < count; ++i) {
    try {
      ready.push_back(make(i));
    } catch (const Error&) {
      if (failed != nullptr) *failed = i;
      throw;
    }
  }
  for (const CopyOp& op : ready) copy(op, stream, true);
}

}  // namespace

CopyOp copy_op(const HIP_MEMCPY3D* p) {
  require(p != nullptr);
  hipMemcpy3DParms parms{};
  const auto side = [](hipMemoryType type, const void* host, const void* device) {
    require(type != hipMemoryTypeArray, hipErrorNotSupported);
    return const_cast<void*>(side_of(type, host, device));
  };
  const auto rows = [&](void* pointer, size_t pitch, size_t height) {
    const size_t row = pitch == 0 ? p->WidthInBytes : pitch;
    return hipPitchedPtr{pointer, row, row, height == 0 ? p->Height : height};
  };
  parms.srcPtr = rows(side(p->srcMemoryType, p->srcHost, p->srcDevice), p->srcPitch, p->srcHeight);
  parms.dstPtr = rows(side(p->dstMemoryType, p->dstHost, p->dstDevice), p->dstPitch, p->dstHeight);
  parms.srcPos = {p->srcXInBytes, p->srcY, p->srcZ};
  parms.dstPos = {p->dstXInBytes, p->dstY, p->dstZ};
  parms.extent = {p->WidthInBytes, p->Height, p->Depth};
  parms.kind = hipMemcpyDefault;
  return copy_op(parms);
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMemcpy3DPeer(hipMemcpy3DPeerParms* parms) {
  EMU_CALL({ copy(peer_copy(parms), nullptr, false); });
}

EMU_API hipError_t hipMemcpy3DPeerAsync(hipMemcpy3DPeerParms* parms, hipStream_t stream) {
  EMU_CALL({ copy(peer_copy(parms), stream, true); });
}

EMU_API hipError_t hipDrvMemcpy3D(const HIP_MEMCPY3D* parms) {
  EMU_CALL({ copy(copy_op(parms), nullptr, false); });
}

EMU_API hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D* parms, hipStream_t stream) {
  EMU_CALL({ copy(copy_op(parms), stream, true); });
}

// AMD's runtime takes a batch without attributes and no other.
EMU_API hipError_t hipMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count,
                                       hipMemcpyAttributes*, size_t*, size_t attributes,
                                       size_t* failed, hipStream_t stream) {
  EMU_CALL({
    require(to != nullptr && from != nullptr && sizes != nullptr && count != 0);
    require(attributes == 0, hipErrorNotSupported);
    copy_batch(count, failed, stream,
               [&](size_t i) { return copy_op(to[i], from[i], sizes[i], hipMemcpyDefault); });
  });
}

EMU_API hipError_t hipMemcpy3DBatchAsync(size_t count, hipMemcpy3DBatchOp* list, size_t* failed,
                                         unsigned long long flags, hipStream_t stream) {
  EMU_CALL({
    require(count != 0 && list != nullptr && flags == 0);
    copy_batch(count, failed, stream, [&](size_t i) { return batch_copy(list[i]); });
  });
}

EMU_API hipError_t hipMemsetD2D8(hipDeviceptr_t to, size_t pitch, unsigned char value, size_t width,
                                 size_t height) {
  EMU_CALL({ fill(fill_rows(to, pitch, value, 1, width, height), nullptr, false); });
}

EMU_API hipError_t hipMemsetD2D8Async(hipDeviceptr_t to, size_t pitch, unsigned char value,
                                      size_t width, size_t height, hipStream_t stream) {
  EMU_CALL({ fill(fill_rows(to, pitch, value, 1, width, height), stream, true); });
}

EMU_API hipError_t hipMemsetD2D16(hipDeviceptr_t to, size_t pitch, unsigned short value,
                                  size_t width, size_t height) {
  EMU_CALL({ fill(fill_rows(to, pitch, value, 2, width, height), nullptr, false); });
}

EMU_API hipError_t hipMemsetD2D16Async(hipDeviceptr_t to, size_t pitch, unsigned short value,
                                       size_t width, size_t height, hipStream_t stream) {
  EMU_CALL({ fill(fill_rows(to, pitch, value, 2, width, height), stream, true); });
}

EMU_API hipError_t hipMemsetD2D32(hipDeviceptr_t to, size_t pitch, unsigned value, size_t width,
                                  size_t height) {
  EMU_CALL({ fill(fill_rows(to, pitch, value, 4, width, height), nullptr, false); });
}

EMU_API hipError_t hipMemsetD2D32Async(hipDeviceptr_t to, size_t pitch, unsigned value,
                                       size_t width, size_t height, hipStream_t stream) {
  EMU_CALL({ fill(fill_rows(to, pitch, value, 4, width, height), stream, true); });
}
