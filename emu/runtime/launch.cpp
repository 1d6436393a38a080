// Turns a kernel and its arguments into a launch: builds the kernarg segment with the hidden
// arguments and the dispatch packet, and reports failures.

#include <algorithm>
#include <cstring>

#include "emu/exec/fault.h"
#include "emu/runtime/device_services.h"
#include "emu/runtime/operation.h"
#include "emu/runtime/runtime.h"

namespace emu {
namespace {

struct Packet {  // a dispatch packet of an AQL queue
  uint16_t header = 0, setup = 0, block[3] = {}, reserved0 = 0;
  uint32_t grid[3] = {}, scratch_bytes = 0, lds_bytes = 0;
  uint64_t kernel = 0, kernarg = 0, reserved1 = 0, completion = 0;
};
static_assert(sizeof(Packet) == 64);

/// Returns the number of work-items along an axis.
uint32_t extent(const KernelOp& op, size_t axis) {
  return op.grid[axis] != 0 ? op.grid[axis] : op.groups[axis] * op.block[axis];
}

uint16_t dimensions(const KernelOp& op) {
  if (extent(op, 2) > 1 || op.block[2] > 1) return 3;
  return extent(op, 1) > 1 || op.block[1] > 1 ? 2 : 1;
}

/// Returns the value of a hidden argument. It is zero for what HIP doesn't have: queues on which
/// kernels launch kernels.
uint64_t hidden(const KernelOp& op, const std::string& kind, uint64_t packet,
                const DeviceServices& services) {
  const auto axis = static_cast<size_t>(kind.back() - 'x');
  const bool known = axis < 3;  // a hostile object may name other axes
  if (known && kind.starts_with("hidden_block_count_")) return extent(op, axis) / op.block[axis];
  if (known && kind.starts_with("hidden_group_size_")) return op.block[axis];
  if (known && kind.starts_with("hidden_remainder_")) return extent(op, axis) % op.block[axis];
  if (kind.starts_with("hidden_global_offset_")) return 0;
  if (kind == "hidden_grid_dims") return dimensions(op);
  if (kind == "hidden_dynamic_lds_size") return op.dynamic_lds;
  if (kind == "hidden_private_base") return kPrivateBase >> 32;
  if (kind == "hidden_shared_base") return kSharedBase >> 32;
  if (kind == "hidden_queue_ptr") return packet;
  return services.argument(kind);
}

void fill_hidden(const KernelOp& op, uint64_t packet, const DeviceServices& services,
                 std::vector<uint8_t>& segment) {
  for (const Argument& argument : op.kernel->info.arguments) {
    if (!argument.hidden()) continue;
    const uint64_t value = hidden(op, argument.kind, packet, services);
    const size_t bytes = std::min<size_t>(argument.size, sizeof value);
    std::memcpy(segment.data() + argument.offset, &value, bytes);
  }
}

/// The device memory of one launch: its arguments and the dispatch packet.
class Segment {
 public:
  Segment(Memory& memory, int device, size_t bytes) : memory_(memory) {
    Allocation wanted;
    wanted.bytes = bytes;
    wanted.kind = MemoryKind::internal;
    wanted.device = device;
    wanted.label = "a kernel's arguments";
    address = memory.allocate(wanted);
  }
  ~Segment() {
    if (address != 0) memory_.free(address);
  }
  uintptr_t address = 0;

 private:
  Memory& memory_;
};

/// Additional scratch bytes per lane for kernels whose stack size isn't known, because they call
/// unknown functions.
constexpr uint32_t kDynamicStack = 16384;

bool dynamic_stack(const Descriptor& descriptor) { return (descriptor.properties >> 11 & 1) != 0; }

hipError_t error_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return hipSuccess;
    case Outcome::timed_out:
      return hipErrorLaunchTimeOut;
    case Outcome::illegal_address:
      return hipErrorIllegalAddress;
    case Outcome::failed:
      return hipErrorLaunchFailure;
  }
  return hipErrorUnknown;
}

size_t kernarg_bytes(const Kernel& kernel) {
  return std::max<size_t>({kernel.info.kernarg_bytes, kernel.descriptor.kernarg_bytes, 16});
}

uint32_t lds_bytes(const KernelOp& op) { return op.kernel->descriptor.lds_bytes + op.dynamic_lds; }

/// Returns the packet's offset in the segment, after the arguments.
size_t packet_offset(const Kernel& kernel) { return (kernarg_bytes(kernel) + 63) / 64 * 64; }

Packet packet_of(const KernelOp& op, uint64_t kernarg) {
  const Kernel& kernel = *op.kernel;
  Packet packet;
  packet.header = 2;  // a kernel dispatch
  packet.setup = dimensions(op);
  for (size_t axis = 0; axis < 3; ++axis) {
    packet.block[axis] = static_cast<uint16_t>(op.block[axis]);
    packet.grid[axis] = extent(op, axis);
  }
  packet.scratch_bytes = kernel.descriptor.scratch_bytes;
  packet.lds_bytes = lds_bytes(op);
  packet.kernel = kernel.module->base() + kernel.info.descriptor;
  packet.kernarg = kernarg;
  return packet;
}

void fill(const KernelOp& op, uintptr_t segment, const DeviceServices& services) {
  const size_t packet_at = packet_offset(*op.kernel);
  std::vector<uint8_t> bytes(packet_at + sizeof(Packet));
  std::memcpy(bytes.data(), op.arguments.data(),
              std::min(op.arguments.size(), kernarg_bytes(*op.kernel)));
  fill_hidden(op, segment + packet_at, services, bytes);
  const Packet packet = packet_of(op, segment);
  std::memcpy(bytes.data() + packet_at, &packet, sizeof packet);
  std::memcpy(reinterpret_cast<void*>(segment), bytes.data(), bytes.size());
  Runtime::get().memory->shadow().written(segment, bytes.size());
}

void describe(const KernelOp& op, uintptr_t segment, Launch& launch) {
  const Kernel& kernel = *op.kernel;
  const Module& module = *kernel.module;
  launch.descriptor = kernel.descriptor;
  if (dynamic_stack(kernel.descriptor)) launch.descriptor.scratch_bytes += kDynamicStack;
  launch.kernel = kernel.info.name;
  launch.entry = kernel.info.entry;
  launch.base = module.base();
  launch.groups = op.groups;
  launch.block = op.block;
  launch.grid = op.grid;
  launch.lds_bytes = lds_bytes(op);
  launch.kernarg = segment;
  launch.dispatch_packet = segment + packet_offset(kernel);
  launch.vgprs = kernel.descriptor.vgprs(module.device.architecture.generation);
}

/// Connects the launch with the memory shadow and race checks, and with what reports of faults
/// need.
void watch(Launch& launch, Module& module) {
  Runtime& runtime = Runtime::get();
  // These functions take locks: see FaultPause.
  launch.line = [&](uint64_t address) { return module.line(address); };
  launch.describe = [&](uint64_t address) {
    const FaultPause pause;
    return runtime.memory->describe(address);
  };
  launch.mapped = [&](uint64_t address, size_t bytes) {
    const FaultPause pause;
    return !runtime.memory->in_arena(address) && runtime.memory->covers(address, bytes);
  };
  if (!runtime.options.checks()) return;
  launch.checked = true;
  launch.shadow = &runtime.memory->shadow();
  launch.check_alignment = runtime.options.wants("alignment");
  launch.races = runtime.races.get();
  launch.check_races = launch.races != nullptr;
  if (launch.races == nullptr) return;
  launch.race_tag = LaunchOrder::get().begin(launch.foreign, [&] { launch.races->forget(); }) << 24;
}

Outcome run(Launch& launch, const Kernel& kernel) {
  Runtime& runtime = Runtime::get();
  if (runtime.profile == nullptr) return runtime.scheduler.run(launch);
  std::lock_guard lock(runtime.profile->one_at_a_time);
  MemoryCounts counts;
  launch.memory_counts = &counts;
  const Outcome outcome = runtime.scheduler.run(launch);
  runtime.profile->add(kernel, launch, counts);
  return outcome;
}

}  // namespace

hipError_t run_kernel(const KernelOp& op) {
  Runtime& runtime = Runtime::get();
  const Kernel& kernel = *op.kernel;
  Module& module = *kernel.module;
  Segment segment(*runtime.memory, module.device.ordinal, packet_offset(kernel) + sizeof(Packet));
  DeviceServices services;
  if (segment.address == 0 || !services.start(*runtime.memory, op)) {
    complain("kernel " + kernel.info.name + ": no device memory left for its arguments");
    return hipErrorOutOfMemory;
  }
  fill(op, segment.address, services);
  const std::shared_ptr<Code> code = module.code(!kernel.descriptor.wave32());
  Launch launch;
  launch.code = code.get();
  describe(op, segment.address, launch);
  watch(launch, module);
  if (services.interactive()) launch.interrupt = [&] { return services.serve(); };
  const Outcome outcome = run(launch, kernel);
  if (launch.races != nullptr) LaunchOrder::get().end(launch.race_tag >> 24);
  services.finish(op);
  for (const std::string& finding : launch.findings) {
    if (runtime.options.wants(finding.substr(0, finding.find(':')))) complain(finding);
  }
  if (outcome != Outcome::done) complain(launch.error);
  return error_of(outcome);
}

}  // namespace emu
