// Copies between devices in three dimensions, batches of copies, the driver API's copies in three
// dimensions, and fills of rows of wider elements.

#include <algorithm>

#include "emu/hip/array.h"
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

size_t element_of(const hipMemcpy3DOperand& operand) {
  if (operand.type != hipMemcpyOperandTypeArray) return 1;
  require(operand.op.array.array != nullptr);
  return find_array(operand.op.array.array)->element();
}

/// Sets one side of a copy to a batch's operand. Memory has rows and layers of its own size, which
/// count elements of the array that takes part, or else bytes.
void set_side(const hipMemcpy3DOperand& operand, const hipExtent& extent, size_t element,
              hipArray_t& array, hipPos& at, hipPitchedPtr& memory) {
  if (operand.type == hipMemcpyOperandTypeArray) {
    const auto& a = operand.op.array;
    array = a.array;
    at = {a.x, a.y, a.z};
    return;
  }
  require(operand.type == hipMemcpyOperandTypePointer);
  const auto& p = operand.op.ptr;
  const size_t row = p.rowLength == 0 ? extent.width : p.rowLength;
  require(row < kMostBytes);
  memory = {p.ptr, row * element, row * element,
            p.layerHeight == 0 ? extent.height : p.layerHeight};
}

CopyOp batch_copy(const hipMemcpy3DBatchOp& one) {
  require(one.srcAccessOrder >= 1 && one.srcAccessOrder <= 3);
  const size_t element = std::max(element_of(one.src), element_of(one.dst));
  hipMemcpy3DParms parms{};
  set_side(one.src, one.extent, element, parms.srcArray, parms.srcPos, parms.srcPtr);
  set_side(one.dst, one.extent, element, parms.dstArray, parms.dstPos, parms.dstPtr);
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
  parms.extent = {p->WidthInBytes, p->Height, p->Depth};
  parms.srcPos = {p->srcXInBytes, p->srcY, p->srcZ};
  parms.dstPos = {p->dstXInBytes, p->dstY, p->dstZ};
  const auto memory = [&](const void* pointer, size_t pitch, size_t height) {
    const size_t row = pitch == 0 ? p->WidthInBytes : pitch;
    return hipPitchedPtr{const_cast<void*>(pointer), row, row, height == 0 ? p->Height : height};
  };
  // Bytes become elements of the arrays that take part.
  const auto array = [&](hipArray_t handle, hipPos& at) {
    require(handle != nullptr);
    const size_t element = find_array(handle)->element();
    require(at.x % element == 0 && p->WidthInBytes % element == 0);
    at.x /= element;
    parms.extent.width = p->WidthInBytes / element;
    return handle;
  };
  if (p->srcMemoryType == hipMemoryTypeArray) {
    parms.srcArray = array(p->srcArray, parms.srcPos);
  } else {
    const void* from = side_of(p->srcMemoryType, p->srcHost, p->srcDevice);
    parms.srcPtr = memory(from, p->srcPitch, p->srcHeight);
  }
  if (p->dstMemoryType == hipMemoryTypeArray) {
    parms.dstArray = array(p->dstArray, parms.dstPos);
  } else {
    const void* to = side_of(p->dstMemoryType, p->dstHost, p->dstDevice);
    parms.dstPtr = memory(to, p->dstPitch, p->dstHeight);
  }
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
