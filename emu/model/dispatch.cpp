// Checks a dispatch packet and makes a launch of it.

#include "emu/exec/fault.h"
#include "emu/model/queue.h"
#include "emu/object/limits.h"
#include "emu/object/preload.h"
#include "emu/runtime/descriptor.h"

namespace emu::model {
namespace {

[[noreturn]] void bad(QueueError code, const std::string& what) { throw PacketError(code, what); }

Descriptor descriptor_at(uint64_t address) {
  uint8_t bytes[64];
  if (address % 64 != 0 || !read_at(address, bytes)) {
    bad(QueueError::code, "there is no kernel object at " + hex(address));
  }
  return read_descriptor(bytes);
}

/// Throws if the number of workgroups has more than 64 bits.
void check_groups(const std::array<uint32_t, 3>& groups) {
  uint64_t count = uint64_t{groups[0]} * groups[1];
  if (__builtin_mul_overflow(count, groups[2], &count)) {
    bad(QueueError::dimensions, "more than 2^64 - 1 workgroups");
  }
}

void set_sizes(const Dispatch& packet, Launch& launch) {
  const int dimensions = packet.setup & 3;
  if (dimensions == 0) bad(QueueError::dimensions, "a grid without dimensions");
  bool partial = false;
  for (size_t axis = 0; axis < 3; ++axis) {
    const bool used = axis < static_cast<size_t>(dimensions);
    const uint32_t block = packet.block[axis], grid = packet.grid[axis];
    if (block == 0 || grid == 0 || (!used && (block != 1 || grid != 1))) {
      bad(QueueError::dimensions, "axis " + std::to_string(axis) + " has a grid of " +
                                      std::to_string(grid) + " in blocks of " +
                                      std::to_string(block));
    }
    launch.block[axis] = block;
    launch.groups[axis] = (grid - 1) / block + 1;
    partial |= grid % block != 0;
  }
  check_groups(launch.groups);
  if (partial) launch.grid = {packet.grid[0], packet.grid[1], packet.grid[2]};
  const uint64_t items = uint64_t{packet.block[0]} * packet.block[1] * packet.block[2];
  if (items > kMostItems) {
    bad(QueueError::group_size, "a workgroup of " + std::to_string(items) + " work-items");
  }
}

void check_resources(const Dispatch& packet, const Descriptor& d, const Architecture& a) {
  if (packet.group_bytes > a.lds_bytes) {
    bad(QueueError::group_memory, "a workgroup with " + std::to_string(packet.group_bytes) +
                                      " bytes of LDS; " + a.name + " has " +
                                      std::to_string(a.lds_bytes));
  }
  if (packet.private_bytes > kMostScratch) {
    bad(QueueError::group_memory,
        "scratch of " + std::to_string(packet.private_bytes) + " bytes for each lane");
  }
  if (d.vgprs(a.generation) > a.max_vgprs) {
    bad(QueueError::registers, "the kernel needs " + std::to_string(d.vgprs(a.generation)) +
                                   " vector registers; " + a.name + " has " +
                                   std::to_string(a.max_vgprs));
  }
  if (d.wave32() && a.generation < 10) {
    bad(QueueError::code,
        "a kernel for waves of 32 lanes, which " + std::string(a.name) + " lacks");
  }
  const Preload preload(d.preload);
  const uint32_t kernarg_bytes = std::max(d.kernarg_bytes, preload.argument_bytes());
  if (!preload.fits(d.user_sgprs(), kernarg_bytes)) {
    bad(QueueError::code, "the kernel preloads more arguments than it has user SGPRs");
  }
  uint8_t byte;
  if (kernarg_bytes > 0 &&
      (!read_at(packet.kernarg, byte) || !read_at(packet.kernarg + kernarg_bytes - 1, byte))) {
    bad(QueueError::memory, "the arguments at " + hex(packet.kernarg) + " can't be read");
  }
}

}  // namespace

void Queue::dispatch(uint64_t at) {
  const auto packet = read_packet<Dispatch>(at);
  Launch launch;
  set_sizes(packet, launch);
  launch.descriptor = descriptor_at(packet.kernel);
  const uint64_t entry = packet.kernel + static_cast<uint64_t>(launch.descriptor.entry_offset) +
                         Preload(launch.descriptor.preload).header_bytes();
  std::shared_ptr<LoadedCode> loaded;
  try {
    if (entry % 4 != 0) bad_image("its code isn't aligned");
    loaded = model_.code.find(packet.kernel, entry);
  } catch (const ObjectError& error) {
    bad(QueueError::code, "kernel object " + hex(packet.kernel) + ": " + error.what());
  }
  check_resources(packet, launch.descriptor, model_.architecture);
  launch.descriptor.lds_bytes = launch.lds_bytes = packet.group_bytes;
  launch.descriptor.scratch_bytes = packet.private_bytes;

  launch.code = &model_.code.lowered(*loaded, !launch.descriptor.wave32());
  launch.base = loaded->base;
  launch.entry = entry - loaded->base;
  const auto name = loaded->image.kernels.find(packet.kernel - loaded->base);
  launch.kernel = name != loaded->image.kernels.end() ? name->second : "at " + hex(packet.kernel);
  launch.kernarg = packet.kernarg;
  launch.dispatch_packet = at;
  launch.vgprs = launch.descriptor.vgprs(model_.architecture.generation);
  // DeviceMemory::describe() takes a lock, which a fault in it would leave locked: see FaultPause.
  launch.describe = [this](uint64_t address) {
    const FaultPause pause;
    return model_.memory.describe(address);
  };
  launch.mapped = [](uint64_t, size_t) { return true; };
  run(launch);
}

}  // namespace emu::model
