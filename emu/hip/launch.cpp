#include "emu/hip/launch.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "emu/hip/program.h"
#include "emu/object/limits.h"

namespace emu::hip {
namespace {

/// Throws the error of a rejected launch, with a message that names the kernel.
[[noreturn]] void refuse(hipError_t code, const Kernel& kernel, const std::string& what) {
  throw Error{code, "kernel " + kernel.info.name + ": " + what};
}

/// Returns the offset of a kernel's last argument.
uint32_t last_argument(const Kernel& kernel) {
  uint32_t offset = 0;
  for (const Argument& argument : kernel.info.arguments) {
    if (!argument.hidden()) offset = std::max(offset, argument.offset);
  }
  return offset;
}

/// Reads the arguments from the `extra` list: pairs of a name and a value, up to the end mark.
std::vector<uint8_t> packed_arguments(const Kernel& kernel, void** extra) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (int i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[i + 1];
    } else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE) {
      require(extra[i + 1] != nullptr);
      bytes = *static_cast<const size_t*>(extra[i + 1]);
    } else {
      refuse(hipErrorInvalidValue, kernel, "its extra parameters aren't any that are known");
    }
    if (i > 4) refuse(hipErrorInvalidValue, kernel, "its extra parameters have no end");
  }
  const uint32_t wanted = kernel.info.explicit_bytes();
  const uint32_t most = std::max(kernel.info.kernarg_bytes, (wanted + 15) / 16 * 16);
  // HIP copies as many bytes as the kernel declares and ignores the size. Some kernels of rocBLAS
  // declare an argument more than they get and use; it is zero here.
  if (bytes < wanted && bytes != last_argument(kernel)) {
    refuse(hipErrorInvalidValue, kernel,
           "its arguments have " + std::to_string(wanted) + " bytes, not " + std::to_string(bytes));
  }
  require(buffer != nullptr || bytes == 0);
  bytes = std::min<size_t>(bytes, most);  // programs pass buffers that are larger than needed
  std::vector<uint8_t> arguments(std::max<size_t>(bytes, wanted));
  if (bytes != 0) std::memcpy(arguments.data(), buffer, bytes);
  return arguments;
}

std::vector<uint8_t> listed_arguments(const Kernel& kernel, void** params) {
  std::vector<uint8_t> arguments(kernel.info.explicit_bytes());
  size_t index = 0;
  for (const Argument& argument : kernel.info.arguments) {
    if (argument.hidden()) continue;
    if (params == nullptr || params[index] == nullptr) {
      refuse(hipErrorInvalidValue, kernel, "argument " + std::to_string(index) + " is missing");
    }
    std::memcpy(arguments.data() + argument.offset, params[index++], argument.size);
  }
  return arguments;
}

void check_sizes(const Kernel& kernel, const LaunchRequest& r) {
  const Architecture& a = kernel.module->device.architecture;
  uint64_t items = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (r.groups[axis] == 0 || r.block[axis] == 0) {
      refuse(hipErrorInvalidConfiguration, kernel, "a grid or a block of size zero");
    }
    if (r.block[axis] > kMostItems) {
      refuse(hipErrorInvalidConfiguration, kernel, "a block of more than 1024 along an axis");
    }
    items *= r.block[axis];
    const uint64_t limit = axis == 0 ? 0x7fffffff : 0xffffffff;
    if (r.groups[axis] > limit || r.groups[axis] * r.block[axis] > 0xffffffff) {
      refuse(hipErrorInvalidConfiguration, kernel,
             "a grid of more than 2^32 - 1 items along an axis");
    }
  }
  if (items > kMostItems)
    refuse(hipErrorInvalidConfiguration, kernel, "a block of more than 1024 items");
  if (items > kernel.info.max_items) {
    refuse(hipErrorLaunchFailure, kernel,
           "compiled for blocks of " + std::to_string(kernel.info.max_items) + " items, not " +
               std::to_string(items));
  }
  const uint64_t lds = kernel.descriptor.lds_bytes + std::min<uint64_t>(r.lds, 1u << 31);
  if (lds > a.lds_bytes) {
    refuse(hipErrorInvalidValue, kernel,
           std::to_string(lds) + " bytes of LDS, a workgroup has " + std::to_string(a.lds_bytes));
  }
  const int generation = a.generation;
  if (kernel.descriptor.vgprs(generation) > a.max_vgprs) {
    refuse(hipErrorLaunchOutOfResources, kernel, "more vector registers than there are");
  }
}

void check_cooperative(const Kernel& kernel, const LaunchRequest& r) {
  const int items = static_cast<int>(r.block[0] * r.block[1] * r.block[2]);
  const int held = resident_groups(kernel, items, r.lds);
  const auto all = static_cast<uint64_t>(held) *
                   static_cast<uint64_t>(kernel.module->device.architecture.processors);
  // The axes are multiplied one by one, since the product of all three may exceed 64 bits.
  uint64_t groups = 1;
  for (const uint64_t along : r.groups) groups = groups > all ? groups : groups * along;
  if (groups > all) {
    refuse(hipErrorCooperativeLaunchTooLarge, kernel,
           "a cooperative launch of more groups than run at once: " + std::to_string(all));
  }
}

/// Finds an event to be recorded before or after a kernel, if there is one.
EventPtr find_mark(hipEvent_t handle, const Stream& stream) {
  if (handle == nullptr) return nullptr;
  EventPtr event = find_event(handle);
  require(event->device == stream.device->ordinal, hipErrorInvalidHandle);
  return event;
}

}  // namespace

SignalPtr submit_launch(const LaunchRequest& request, hipStream_t handle, hipEvent_t start,
                        hipEvent_t stop) {
  const StreamPtr stream = find_stream(handle);
  KernelOp op = kernel_op(request, *stream->device);
  const EventPtr before = find_mark(start, *stream), after = find_mark(stop, *stream);
  if (before != nullptr) submit(*stream, RecordOp{before});
  SignalPtr signal = submit(*stream, std::move(op));
  if (after != nullptr) submit(*stream, RecordOp{after});
  return signal;
}

namespace {

LaunchRequest launch_of(const void* function, dim3 grid, dim3 block, void** params, size_t lds) {
  LaunchRequest r;
  r.function = function;
  r.groups = {grid.x, grid.y, grid.z};
  r.block = {block.x, block.y, block.z};
  r.params = params;
  r.lds = lds;
  return r;
}

}  // namespace

void launch_all(const hipLaunchParams* list, int count, unsigned flags, bool cooperative) {
  constexpr unsigned known =
      hipCooperativeLaunchMultiDeviceNoPreSync | hipCooperativeLaunchMultiDeviceNoPostSync;
  require(list != nullptr && count > 0 && (flags & ~known) == 0);
  require(static_cast<size_t>(count) <= runtime().devices.size());
  std::vector<std::pair<StreamPtr, KernelOp>> ready;
  for (const hipLaunchParams& p : std::span(list, static_cast<size_t>(count))) {
    require(p.stream != nullptr, hipErrorInvalidHandle);
    require(p.func != nullptr, hipErrorInvalidDeviceFunction);
    const StreamPtr stream = find_stream(p.stream);
    for (const auto& [other, op] : ready) {
      require(other->device != stream->device, hipErrorInvalidDevice);
    }
    LaunchRequest r = launch_of(p.func, p.gridDim, p.blockDim, p.args, p.sharedMem);
    r.cooperative = cooperative;
    ready.emplace_back(stream, kernel_op(r, *stream->device));
  }
  for (auto& [stream, op] : ready) submit(*stream, std::move(op));
}

namespace {

/// Throws hipErrorInvalidImage for a null handle of a module's function.
void require_function(hipFunction_t function) {
  require(function != nullptr, hipErrorInvalidImage);
}

}  // namespace

KernelOp kernel_op(const LaunchRequest& r, Device& device) {
  require(r.params == nullptr || r.extra == nullptr);
  std::shared_ptr<Kernel> kernel = runtime().find_kernel(r.function);
  if (kernel == nullptr) kernel = Registry::get().kernel(r.function, device);
  require(kernel != nullptr, hipErrorInvalidDeviceFunction);
  if (kernel->module->device.ordinal != device.ordinal) {
    refuse(hipErrorInvalidDevice, *kernel,
           "its module is loaded on another device than the stream's");
  }
  check_sizes(*kernel, r);
  if (r.cooperative) check_cooperative(*kernel, r);
  KernelOp op;
  for (size_t axis = 0; axis < 3; ++axis) {
    op.groups[axis] = static_cast<uint32_t>(r.groups[axis]);
    op.block[axis] = static_cast<uint32_t>(r.block[axis]);
    if (r.items[axis] % r.block[axis] != 0) op.grid[axis] = static_cast<uint32_t>(r.items[axis]);
  }
  const bool cut = op.grid[0] != 0 || op.grid[1] != 0 || op.grid[2] != 0;
  if (cut && kernel->info.uniform_groups) {
    refuse(
        hipErrorInvalidConfiguration, *kernel,
        "compiled for grids that are whole workgroups (-fno-offload-uniform-block allows others)");
  }
  op.arguments =
      r.extra != nullptr ? packed_arguments(*kernel, r.extra) : listed_arguments(*kernel, r.params);
  op.dynamic_lds = static_cast<uint32_t>(r.lds);
  op.cooperative = r.cooperative;
  op.function = r.function;
  op.kernel = std::move(kernel);
  return op;
}

LaunchRequest request_of(const hipKernelNodeParams& p) {
  LaunchRequest r = launch_of(p.func, p.gridDim, p.blockDim, p.kernelParams, p.sharedMemBytes);
  r.extra = p.extra;
  return r;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                         unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                         unsigned lds, hipStream_t stream, void** params,
                                         void** extra) {
  EMU_CALL({
    require_function(function);
    LaunchRequest r = launch_of(function, {gx, gy, gz}, {bx, by, bz}, params, lds);
    r.extra = extra;
    submit_launch(r, stream);
  });
}

namespace {

/// Launches with a grid given in work-items. The last workgroups may be smaller than the others.
hipError_t ext_launch(const char* name, hipFunction_t function, dim3 items, dim3 block, size_t lds,
                      hipStream_t stream, void** params, void** extra, hipEvent_t start,
                      hipEvent_t stop, unsigned flags) {
  return emu::hip::call(name, [&] {
    require_function(function);
    require((flags & ~unsigned{hipExtAnyOrderLaunch}) == 0);
    const auto groups = [](uint32_t all, uint32_t each) {
      return each == 0 ? 0 : static_cast<uint32_t>((uint64_t{all} + each - 1) / each);
    };
    const dim3 grid{groups(items.x, block.x), groups(items.y, block.y), groups(items.z, block.z)};
    LaunchRequest r = launch_of(function, grid, block, params, lds);
    r.items = {items.x, items.y, items.z};
    r.extra = extra;
    submit_launch(r, stream, start, stop);
  });
}

}  // namespace

// The public header declares this function and the older one below with C++ linkage.
__attribute__((visibility("default"))) hipError_t hipExtModuleLaunchKernel(
    hipFunction_t function, uint32_t nx, uint32_t ny, uint32_t nz, uint32_t bx, uint32_t by,
    uint32_t bz, size_t lds, hipStream_t stream, void** params, void** extra, hipEvent_t start,
    hipEvent_t stop, uint32_t flags) {
  return ext_launch(__func__, function, {nx, ny, nz}, {bx, by, bz}, lds, stream, params, extra,
                    start, stop, flags);
}

__attribute__((visibility("default"))) hipError_t hipHccModuleLaunchKernel(
    hipFunction_t function, uint32_t nx, uint32_t ny, uint32_t nz, uint32_t bx, uint32_t by,
    uint32_t bz, size_t lds, hipStream_t stream, void** params, void** extra, hipEvent_t start,
    hipEvent_t stop) {
  return ext_launch(__func__, function, {nx, ny, nz}, {bx, by, bz}, lds, stream, params, extra,
                    start, stop, 0);
}

// Newer headers declare both functions with C linkage.
EMU_API void launch_ext_with_c_linkage() __asm__("hipExtModuleLaunchKernel")
    __attribute__((alias("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_"
                         "tPPvS4_P11ihipEvent_tS6_j")));
EMU_API void launch_hcc_with_c_linkage() __asm__("hipHccModuleLaunchKernel")
    __attribute__((alias("_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_"
                         "tPPvS4_P11ihipEvent_tS6_")));

EMU_API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx,
                                                    unsigned gy, unsigned gz, unsigned bx,
                                                    unsigned by, unsigned bz, unsigned lds,
                                                    hipStream_t stream, void** params) {
  EMU_CALL({
    require_function(function);
    LaunchRequest r = launch_of(function, {gx, gy, gz}, {bx, by, bz}, params, lds);
    r.cooperative = true;
    submit_launch(r, stream);
  });
}

EMU_API hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** params,
                                   size_t lds, hipStream_t stream) {
  EMU_CALL({
    require(function != nullptr, hipErrorInvalidDeviceFunction);
    submit_launch(launch_of(function, grid, block, params, lds), stream);
  });
}

EMU_API hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** params,
                                      size_t lds, hipStream_t stream, hipEvent_t start,
                                      hipEvent_t stop, int flags) {
  EMU_CALL({
    require(function != nullptr, hipErrorInvalidDeviceFunction);
    require((flags & ~hipExtAnyOrderLaunch) == 0);
    submit_launch(launch_of(function, grid, block, params, lds), stream, start, stop);
  });
}

EMU_API hipError_t hipLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                              void** params, unsigned lds, hipStream_t stream) {
  EMU_CALL({
    require(function != nullptr, hipErrorInvalidDeviceFunction);
    LaunchRequest r = launch_of(function, grid, block, params, lds);
    r.cooperative = true;
    submit_launch(r, stream);
  });
}

EMU_API hipError_t hipLaunchCooperativeKernelMultiDevice(hipLaunchParams* list, int count,
                                                         unsigned flags) {
  EMU_CALL({ launch_all(list, count, flags, true); });
}

EMU_API hipError_t hipExtLaunchMultiKernelMultiDevice(hipLaunchParams* list, int count,
                                                      unsigned flags) {
  EMU_CALL({ launch_all(list, count, flags, false); });
}
