#include "emu/hip/copy.h"

#include <algorithm>

#include "emu/hip/array.h"

namespace emu::hip {
namespace {

/// Returns whether the memory is known to the runtime, so that asynchronous work on it needn't
/// block the host. Ordinary host memory isn't.
bool pinned(const void* pointer) {
  return memory().in_arena(address(pointer)) || memory().find(address(pointer)).has_value();
}

bool on_device(const void* pointer) {
  const std::optional<Allocation> a = memory().find(address(pointer));
  return a && (a->kind == MemoryKind::device || a->kind == MemoryKind::internal);
}

void check_side(const void* pointer, size_t bytes, bool device, const char* what) {
  check_range(pointer, bytes, what);
  if (device && !pinned(pointer)) {
    throw Error{hipErrorInvalidValue, std::string(what) + " isn't memory of a device"};
  }
}

void check_kind(hipMemcpyKind kind) {
  require(kind <= hipMemcpyDefault || kind == hipMemcpyDeviceToDeviceNoCU,
          hipErrorInvalidMemcpyDirection);
}

bool to_device(hipMemcpyKind kind) {
  return kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice ||
         kind == hipMemcpyDeviceToDeviceNoCU;
}

bool from_device(hipMemcpyKind kind) {
  return kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice ||
         kind == hipMemcpyDeviceToDeviceNoCU;
}

/// If the memory belongs to another device than the stream's, waits for that device's work, since
/// nothing else orders the two. Returns whether it did.
bool finish_other(const void* pointer, const Stream& stream) {
  const std::optional<Allocation> a = memory().find(address(pointer));
  if (!a || a->device == stream.device->ordinal) return false;
  for (const StreamPtr& other : device(a->device).streams()) {
    if (other->blocking()) other->wait();
  }
  return true;
}

/// Refuses a synchronous copy or fill while a stream is being captured.
void refuse_synchronous(Stream& stream) {
  if (stream.null_stream) refuse_in_any_capture(hipErrorStreamCaptureImplicit);
  refuse_wait_in_capture(stream);
}

}  // namespace

void copy(const CopyOp& op, hipStream_t handle, bool async) {
  if (!async) refuse_synchronous(*find_stream(handle));
  if (op.width == 0 || op.height == 0 || op.depth == 0) return;
  const StreamPtr stream = find_stream(handle);
  const bool devices = on_device(op.to) && on_device(op.from);
  const bool ordinary = !pinned(op.to) || !pinned(op.from);
  bool wait = async ? ordinary : !devices;
  {
    std::lock_guard lock(graph_mutex());
    if (stream->capture != nullptr) {
      submit(*stream, op);
      return;
    }
  }
  if (!async && devices) {
    for (const char* side : {static_cast<const char*>(op.to), op.from}) {
      if (finish_other(side, *stream)) wait = true;
    }
  }
  const SignalPtr signal = submit(*stream, op);
  if (!wait) return;
  signal->wait();
  const hipError_t error = stream->take_error();
  if (error != hipSuccess) throw Error{error};
}

void fill(const FillOp& op, hipStream_t handle, bool async) {
  if (!async) refuse_synchronous(*find_stream(handle));
  if (op.width == 0 || op.height == 0 || op.depth == 0) return;
  const StreamPtr stream = find_stream(handle);
  const bool elsewhere = !async && finish_other(op.to, *stream);
  const SignalPtr signal = submit(*stream, op);
  // As documented, the host doesn't wait for a copy into memory of the same device, and waits for
  // copies to its own memory or to other devices.
  if (signal != nullptr && !async && (elsewhere || !on_device(op.to))) signal->wait();
}

namespace {

constexpr size_t kMost = kMostBytes;

void check_box(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  require(width < kMost && height < kMost && depth < kMost && pitch < kMost && slice < kMost);
  require(height == 0 || pitch < kMost / height);
  require(depth == 0 || slice < kMost / depth);
}

/// Returns the byte offset at which a box starts: at (x, y, z), with x in bytes.
size_t offset_of(const hipPos& at, size_t pitch, size_t slice) {
  require(at.x < kMost && (at.y == 0 || pitch < kMost / at.y) &&
          (at.z == 0 || slice < kMost / at.z));
  return at.z * slice + at.y * pitch + at.x;
}

/// Returns the bytes of a layer if there are several layers. Throws if the box reaches beyond a
/// layer.
size_t slice_of(const hipPitchedPtr& p, const hipPos& at, const hipExtent& e) {
  if (e.depth <= 1 && at.z == 0) return 0;
  require(p.pitch == 0 || p.ysize < kMost / p.pitch);
  require(e.height <= p.ysize && at.y <= p.ysize - e.height);
  return p.pitch * p.ysize;
}

void check_fill(const FillOp& op) {
  if (op.width == 0 || op.height == 0 || op.depth == 0) return;
  require(op.to != nullptr);
  check_box(op.width, op.height, op.depth, op.height > 1 ? op.pitch : 0,
            op.depth > 1 ? op.slice : 0);
  const size_t row = op.width * op.element;
  const size_t last = (op.depth - 1) * op.slice + (op.height - 1) * op.pitch + row;
  check_side(op.to, last, true, "what is to be filled");
  require(address(op.to) % op.element == 0);
}

/// Throws unless `kind` is a direction to a kernel's variable, or from one.
void check_symbol_kind(hipMemcpyKind kind, hipMemcpyKind host) {
  require(kind == host || kind == hipMemcpyDefault || kind == hipMemcpyDeviceToDevice ||
              kind == hipMemcpyDeviceToDeviceNoCU,
          hipErrorInvalidMemcpyDirection);
}

}  // namespace

CopyOp copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                      hipMemcpyKind kind) {
  check_symbol_kind(kind, hipMemcpyHostToDevice);
  return copy_op(symbol_address(symbol, offset, bytes), from, bytes, kind);
}

CopyOp copy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset,
                        hipMemcpyKind kind) {
  check_symbol_kind(kind, hipMemcpyDeviceToHost);
  return copy_op(to, symbol_address(symbol, offset, bytes), bytes, kind);
}

FillOp fill_2d(void* to, size_t pitch, int value, size_t width, size_t height) {
  require(width <= pitch || height <= 1, hipErrorInvalidPitchValue);
  FillOp op{static_cast<char*>(to), static_cast<uint32_t>(value), 1, width, height, 1, pitch, 0};
  check_fill(op);
  return op;
}

FillOp fill_3d(const hipPitchedPtr& to, int value, const hipExtent& extent) {
  FillOp op{static_cast<char*>(to.ptr),
            static_cast<uint32_t>(value),
            1,
            extent.width,
            extent.height,
            extent.depth,
            to.pitch,
            slice_of(to, {}, extent)};
  require(extent.width <= to.pitch);
  check_fill(op);
  return op;
}

namespace {

CopyOp copy_param(const hip_Memcpy2D& asked) {
  const hip_Memcpy2D p = without_arrays(asked);
  const void* from = side_of(p.srcMemoryType, p.srcHost, p.srcDevice);
  void* to = const_cast<void*>(side_of(p.dstMemoryType, p.dstHost, p.dstDevice));
  require(from != nullptr && to != nullptr);
  require(p.WidthInBytes < kMost && p.srcXInBytes < kMost && p.dstXInBytes < kMost);
  const size_t from_pitch = p.srcPitch == 0 ? p.WidthInBytes + p.srcXInBytes : p.srcPitch;
  const size_t to_pitch = p.dstPitch == 0 ? p.WidthInBytes + p.dstXInBytes : p.dstPitch;
  require(p.WidthInBytes <= from_pitch && p.WidthInBytes <= to_pitch, hipErrorInvalidPitchValue);
  require(p.srcXInBytes <= from_pitch - p.WidthInBytes);
  require(p.dstXInBytes <= to_pitch - p.WidthInBytes);
  const bool host_from = p.srcMemoryType == hipMemoryTypeHost;
  const bool host_to = p.dstMemoryType == hipMemoryTypeHost;
  require(host_from || pinned(from));
  require(host_to || pinned(to));
  return copy_op(
      static_cast<char*>(to) + offset_of({p.dstXInBytes, p.dstY, 0}, to_pitch, 0), to_pitch,
      static_cast<const char*>(from) + offset_of({p.srcXInBytes, p.srcY, 0}, from_pitch, 0),
      from_pitch, p.WidthInBytes, p.Height, hipMemcpyDefault);
}

}  // namespace

CopyOp copy_op(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  check_kind(kind);
  if (bytes != 0) {
    check_side(to, bytes, to_device(kind), "the destination");
    check_side(from, bytes, from_device(kind), "the source");
  }
  CopyOp op;
  op.to = static_cast<char*>(to);
  op.from = static_cast<const char*>(from);
  op.width = bytes;
  op.kind = kind;
  op.asked.kind = kind;
  op.asked.dstPtr = {to, bytes, bytes, 1};
  op.asked.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  op.asked.extent = {bytes, 1, 1};
  return op;
}

CopyOp copy_op(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
               size_t height, hipMemcpyKind kind) {
  if (width != 0 && height != 0) {
    require(width <= to_pitch && width <= from_pitch, hipErrorInvalidPitchValue);
  }
  CopyOp op = copy_op(to, from, 0, kind);
  op.width = width;
  op.height = height;
  op.to_pitch = to_pitch;
  op.from_pitch = from_pitch;
  op.asked.extent = {width, height, 1};
  op.asked.dstPtr = {to, to_pitch, width, height};
  op.asked.srcPtr = {const_cast<void*>(from), from_pitch, width, height};
  if (width == 0 || height == 0) return op;
  check_box(width, height, 1, std::max(to_pitch, from_pitch), 0);
  check_side(to, (height - 1) * to_pitch + width, to_device(kind), "the destination");
  check_side(from, (height - 1) * from_pitch + width, from_device(kind), "the source");
  return op;
}

CopyOp copy_op(const hipMemcpy3DParms& p) {
  if (p.srcArray != nullptr || p.dstArray != nullptr) {
    CopyOp op = copy_op(without_arrays(p));
    op.asked = p;
    return op;
  }
  require(p.srcPtr.ptr != nullptr && p.dstPtr.ptr != nullptr);
  const hipExtent& e = p.extent;
  require(
      (e.height <= 1 && e.depth <= 1) || (e.width <= p.srcPtr.pitch && e.width <= p.dstPtr.pitch),
      hipErrorInvalidPitchValue);
  CopyOp op = copy_op(p.dstPtr.ptr, p.srcPtr.ptr, 0, p.kind);
  op.asked = p;
  op.width = e.width;
  op.height = e.height;
  op.depth = e.depth;
  op.to_pitch = p.dstPtr.pitch;
  op.from_pitch = p.srcPtr.pitch;
  if (e.width == 0 || e.height == 0 || e.depth == 0) return op;
  const bool rows = e.height > 1 || e.depth > 1;
  require(!rows || p.dstPos.x <= p.dstPtr.pitch - e.width);
  require(!rows || p.srcPos.x <= p.srcPtr.pitch - e.width);
  op.to_slice = slice_of(p.dstPtr, p.dstPos, e);
  op.from_slice = slice_of(p.srcPtr, p.srcPos, e);
  op.to += offset_of(p.dstPos, op.to_pitch, op.to_slice);
  op.from += offset_of(p.srcPos, op.from_pitch, op.from_slice);
  check_box(e.width, e.height, e.depth, e.height > 1 ? std::max(op.to_pitch, op.from_pitch) : 0,
            e.depth > 1 ? std::max(op.to_slice, op.from_slice) : 0);
  check_side(op.to, (e.depth - 1) * op.to_slice + (e.height - 1) * op.to_pitch + e.width,
             to_device(p.kind), "the destination");
  check_side(op.from, (e.depth - 1) * op.from_slice + (e.height - 1) * op.from_pitch + e.width,
             from_device(p.kind), "the source");
  return op;
}

FillOp fill_op(void* to, uint32_t value, uint32_t element, size_t count) {
  FillOp op{static_cast<char*>(to), value, element, count, 1, 1, count * element, 0};
  check_fill(op);
  return op;
}

FillOp fill_op(const hipMemsetParams& p) {
  require(p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4);
  require(p.height <= 1 || p.width * p.elementSize <= p.pitch);
  FillOp op{static_cast<char*>(p.dst), p.value, p.elementSize, p.width, p.height, 1, p.pitch, 0};
  check_fill(op);
  return op;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_op(to, from, bytes, kind), nullptr, false); });
}

EMU_API hipError_t hipMemcpyWithStream(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                       hipStream_t stream) {
  EMU_CALL({ copy(copy_op(to, from, bytes, kind), stream, false); });
}

EMU_API hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                  hipStream_t stream) {
  EMU_CALL({ copy(copy_op(to, from, bytes, kind), stream, true); });
}

EMU_API hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, size_t bytes) {
  EMU_CALL({ copy(copy_op(to, from, bytes, hipMemcpyHostToDevice), nullptr, false); });
}

EMU_API hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
  EMU_CALL({ copy(copy_op(to, from, bytes, hipMemcpyDeviceToHost), nullptr, false); });
}

EMU_API hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  EMU_CALL({ copy(copy_op(to, from, bytes, hipMemcpyDeviceToDevice), nullptr, false); });
}

EMU_API hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t bytes,
                                      hipStream_t stream) {
  EMU_CALL({ copy(copy_op(to, from, bytes, hipMemcpyHostToDevice), stream, true); });
}

EMU_API hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes,
                                      hipStream_t stream) {
  EMU_CALL({ copy(copy_op(to, from, bytes, hipMemcpyDeviceToHost), stream, true); });
}

EMU_API hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                                      hipStream_t stream) {
  EMU_CALL({ copy(copy_op(to, from, bytes, hipMemcpyDeviceToDevice), stream, true); });
}

EMU_API hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                                 size_t bytes) {
  EMU_CALL({
    hip::device(to_device);
    hip::device(from_device);
    copy(copy_op(to, from, bytes, hipMemcpyDeviceToDevice), nullptr, false);
  });
}

EMU_API hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                      size_t bytes, hipStream_t stream) {
  EMU_CALL({
    hip::device(to_device);
    hip::device(from_device);
    copy(copy_op(to, from, bytes, hipMemcpyDeviceToDevice), stream, true);
  });
}

EMU_API hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                               size_t width, size_t height, hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_op(to, to_pitch, from, from_pitch, width, height, kind), nullptr, false); });
}

EMU_API hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                    size_t width, size_t height, hipMemcpyKind kind,
                                    hipStream_t stream) {
  EMU_CALL({ copy(copy_op(to, to_pitch, from, from_pitch, width, height, kind), stream, true); });
}

EMU_API hipError_t hipMemcpyParam2D(const hip_Memcpy2D* parms) {
  EMU_CALL({
    require(parms != nullptr);
    copy(copy_param(*parms), nullptr, false);
  });
}

EMU_API hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D* parms, hipStream_t stream) {
  EMU_CALL({
    require(parms != nullptr);
    copy(copy_param(*parms), stream, true);
  });
}

EMU_API hipError_t hipDrvMemcpy2DUnaligned(const hip_Memcpy2D* parms) {
  EMU_CALL({
    require(parms != nullptr);
    copy(copy_param(*parms), nullptr, false);
  });
}

EMU_API hipError_t hipMemcpy3D(const hipMemcpy3DParms* parms) {
  EMU_CALL({
    require(parms != nullptr);
    copy(copy_op(*parms), nullptr, false);
  });
}

EMU_API hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* parms, hipStream_t stream) {
  EMU_CALL({
    require(parms != nullptr);
    copy(copy_op(*parms), stream, true);
  });
}

EMU_API hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes,
                                     size_t offset, hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_to_symbol(symbol, from, bytes, offset, kind), nullptr, false); });
}

EMU_API hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                          size_t offset, hipMemcpyKind kind, hipStream_t stream) {
  EMU_CALL({ copy(copy_to_symbol(symbol, from, bytes, offset, kind), stream, true); });
}

EMU_API hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                       hipMemcpyKind kind) {
  EMU_CALL({ copy(copy_from_symbol(to, symbol, bytes, offset, kind), nullptr, false); });
}

EMU_API hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes,
                                            size_t offset, hipMemcpyKind kind, hipStream_t stream) {
  EMU_CALL({ copy(copy_from_symbol(to, symbol, bytes, offset, kind), stream, true); });
}

EMU_API hipError_t hipMemset(void* to, int value, size_t bytes) {
  EMU_CALL({ fill(fill_op(to, static_cast<uint32_t>(value), 1, bytes), nullptr, false); });
}

EMU_API hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  EMU_CALL({ fill(fill_op(to, static_cast<uint32_t>(value), 1, bytes), stream, true); });
}

EMU_API hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  EMU_CALL({ fill(fill_op(to, value, 1, count), nullptr, false); });
}

EMU_API hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count,
                                    hipStream_t stream) {
  EMU_CALL({ fill(fill_op(to, value, 1, count), stream, true); });
}

EMU_API hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  EMU_CALL({ fill(fill_op(to, value, 2, count), nullptr, false); });
}

EMU_API hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count,
                                     hipStream_t stream) {
  EMU_CALL({ fill(fill_op(to, value, 2, count), stream, true); });
}

EMU_API hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  EMU_CALL({ fill(fill_op(to, static_cast<uint32_t>(value), 4, count), nullptr, false); });
}

EMU_API hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count,
                                     hipStream_t stream) {
  EMU_CALL({ fill(fill_op(to, static_cast<uint32_t>(value), 4, count), stream, true); });
}

EMU_API hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  EMU_CALL({ fill(fill_2d(to, pitch, value, width, height), nullptr, false); });
}

EMU_API hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                    hipStream_t stream) {
  EMU_CALL({ fill(fill_2d(to, pitch, value, width, height), stream, true); });
}

EMU_API hipError_t hipMemset3D(hipPitchedPtr to, int value, hipExtent extent) {
  EMU_CALL({ fill(fill_3d(to, value, extent), nullptr, false); });
}

EMU_API hipError_t hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent,
                                    hipStream_t stream) {
  EMU_CALL({ fill(fill_3d(to, value, extent), stream, true); });
}
