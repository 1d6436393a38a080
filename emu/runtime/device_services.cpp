#include "emu/runtime/device_services.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "emu/runtime/device.h"
#include "emu/runtime/device_printf.h"
#include "emu/runtime/operation.h"
#include "emu/runtime/options.h"
#include "emu/runtime/runtime.h"

namespace emu {
namespace {

constexpr uint64_t kSlab = uint64_t{1} << 21;  // the device libraries find a slab by its address
constexpr size_t kHeapBytes = 128 << 10;
constexpr size_t kPackets = 16;            // a power of two; waves wait for a free packet
constexpr size_t kMostMessages = 1 << 16;  // unfinished ones of a launch
constexpr size_t kMostWords = 1 << 17;     // of a message

/// What the buffer's address points to. `free` and `ready` are stacks of packets: an index with a
/// tag above it, which differs each time a packet is pushed. 0 is the end of a stack.
struct CallBuffer {
  uint64_t headers, payloads, doorbell, free, ready, index_mask;
};

/// A signal of HSA. A wave adds to its value, stores the event in the mailbox and interrupts.
struct Signal {
  int64_t kind, value;
  uint64_t mailbox;
  uint32_t event, reserved0;
  uint64_t start, end, queue, reserved1;
};
static_assert(sizeof(Signal) == 64);

struct Payload {
  uint64_t slots[64][8];  // by lane
};

/// Everything of the buffer that the waves of a launch share.
struct Calls {
  CallBuffer buffer;
  Signal doorbell;
  uint64_t mailbox;
};

enum Service : uint32_t { kPrint = 2, kMemory = 3 };

/// Fields of a message's first word.
constexpr uint64_t kBegin = 1, kEnd = 2;

Allocation internal(size_t bytes, int device, const char* label) {
  Allocation wanted;
  wanted.bytes = bytes;
  wanted.kind = MemoryKind::internal;
  wanted.device = device;
  wanted.label = label;
  return wanted;
}

void write_text(const std::string& text, FILE* stream) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace

uint64_t DeviceHeap::structure(Memory& memory, int device) {
  std::lock_guard lock(mutex_);
  if (structure_ != 0) return structure_;
  structure_ = memory.allocate(internal(kHeapBytes, device, "the heap of kernels"), 4096);
  if (structure_ == 0) return 0;
  std::memset(reinterpret_cast<void*>(structure_), 0, kHeapBytes);
  memory.shadow().written(structure_, kHeapBytes);
  return structure_;
}

uint64_t DeviceHeap::allocate(Memory& memory, int device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  // Blocks at multiples of 4096 bytes are those that aren't parts of slabs.
  const size_t alignment = bytes == kSlab ? kSlab : 4096;
  const uint64_t address =
      memory.allocate(internal(bytes, device, "memory that a kernel allocated"), alignment);
  if (address != 0) blocks_[address] = bytes;
  return address;
}

bool DeviceHeap::free(Memory& memory, uint64_t address) {
  std::lock_guard lock(mutex_);
  return blocks_.erase(address) != 0 && memory.free(address);
}

ServiceMemory::~ServiceMemory() {
  if (address_ != 0) memory_->free(address_);
}

bool ServiceMemory::allocate(Memory& memory, int device, size_t bytes, size_t zeroed) {
  memory_ = &memory;
  address_ = memory.allocate(internal(bytes, device, "memory of a kernel's services"), 4096);
  if (address_ == 0) return false;
  std::memset(reinterpret_cast<void*>(address_), 0, zeroed);
  memory.shadow().written(address_, bytes);
  return true;
}

struct Hostcalls::Header {
  uint64_t next, lanes;
  uint32_t service, control;  // bit 0 of control: the wave waits
};

bool Hostcalls::start(Memory& memory, Device& device) {
  arena_ = &memory;
  device_ = &device;
  constexpr size_t kHeaders = sizeof(Calls) + kPackets * sizeof(Header);
  constexpr size_t kBytes = (kHeaders + 63) / 64 * 64 + kPackets * sizeof(Payload);
  if (!memory_.allocate(memory, device.ordinal, kBytes, kHeaders)) return false;
  auto* calls = reinterpret_cast<Calls*>(address());
  auto* headers = reinterpret_cast<Header*>(calls + 1);
  calls->buffer.headers = reinterpret_cast<uint64_t>(headers);
  calls->buffer.payloads = address() + (kHeaders + 63) / 64 * 64;
  calls->buffer.doorbell = reinterpret_cast<uint64_t>(&calls->doorbell);
  calls->buffer.index_mask = kPackets - 1;
  calls->doorbell.kind = 1;  // a signal of a user
  calls->doorbell.mailbox = reinterpret_cast<uint64_t>(&calls->mailbox);
  calls->doorbell.event = 1;
  // Packet 0 has a tag from the start, since 0 would be the end of the stack.
  uint64_t top = kPackets;
  for (uint64_t i = 1; i < kPackets; ++i) {
    headers[i].next = top;
    top = i;
  }
  calls->buffer.free = top;
  return true;
}

std::string Hostcalls::serve() {
  auto* calls = reinterpret_cast<Calls*>(address());
  std::atomic_ref<uint64_t> ready(calls->buffer.ready);
  if (ready.load(std::memory_order_relaxed) == 0) return {};
  std::lock_guard lock(mutex_);
  // A kernel can overwrite the packets, so only this object's own numbers count.
  auto* headers = reinterpret_cast<Header*>(calls + 1);
  auto* payloads = reinterpret_cast<Payload*>(
      address() + (sizeof(Calls) + kPackets * sizeof(Header) + 63) / 64 * 64);
  uint64_t packet = ready.exchange(0, std::memory_order_acquire);
  for (size_t count = 0; packet != 0 && count < kPackets; ++count) {
    Header& header = headers[packet % kPackets];
    Payload& payload = payloads[packet % kPackets];
    packet = header.next;
    const uint32_t service = header.service;
    for (uint64_t lanes = header.lanes; lanes != 0; lanes &= lanes - 1) {
      const std::string error = serve(service, payload.slots[__builtin_ctzll(lanes)]);
      if (!error.empty()) return error;
    }
    std::atomic_ref(header.control).fetch_and(~1u, std::memory_order_release);
  }
  return {};
}

std::string Hostcalls::serve(uint32_t service, uint64_t* slot) {
  if (service == kPrint) return print(slot);
  if (service == kMemory) return manage_memory(slot);
  return "a call of the host for service " + std::to_string(service) + ", which isn't supported";
}

/// The first word describes a part of a message: bits 0 and 1 mark the first and the last one, bits
/// 5 to 7 are the number of words that follow, and the bits above are the message's number, which
/// the answer to the first part gives.
std::string Hostcalls::print(uint64_t* slot) {
  uint64_t number = slot[0] >> 8;
  if ((slot[0] & kBegin) != 0) {
    if (free_messages_.empty()) {
      if (messages_.size() == kMostMessages) return "more unfinished messages than the host keeps";
      free_messages_.push_back(messages_.size());
      messages_.emplace_back();
    }
    number = free_messages_.back();
    free_messages_.pop_back();
    messages_[number] = {1};  // word 0 marks a message in use
  }
  if (number >= messages_.size() || messages_[number].empty()) {
    return "a part of a message that hasn't begun";
  }
  std::vector<uint64_t>& message = messages_[number];
  message.insert(message.end(), slot + 1, slot + 1 + (slot[0] >> 5 & 7));
  if (message.size() > kMostWords) return "a message of more than a mebibyte";
  if ((slot[0] & kEnd) == 0) {
    slot[0] = (slot[0] & 0xfe) | number << 8;
    return {};
  }
  const uint64_t stream = message.size() > 1 ? message[1] : 0;  // 0: standard output, 1: error
  if (stream > 1) {
    slot[0] = ~uint64_t{0};
  } else {
    const std::string text =
        message.size() > 2 ? format_message(std::span(message).subspan(2)) : "";
    write_text(text, stream == 1 ? stderr : stdout);
    slot[0] = text.size();
  }
  message.clear();
  free_messages_.push_back(number);
  return {};
}

/// Word 0 is the address of memory to be freed. If it is 0, word 1 is a number of bytes to
/// allocate.
std::string Hostcalls::manage_memory(uint64_t* slot) {
  DeviceHeap& heap = device_->heap;
  if (slot[0] == 0) {
    slot[0] = slot[1] == 0 ? 0 : heap.allocate(*arena_, device_->ordinal, slot[1]);
    return {};
  }
  if (heap.free(*arena_, slot[0])) return {};
  return "it frees memory at an address that isn't allocated by a kernel";
}

bool DeviceServices::start(Memory& memory, const KernelOp& op) {
  Device& device = op.kernel->module->device;
  for (const Argument& argument : op.kernel->info.arguments) {
    bool fits = true;
    if (argument.kind == "hidden_hostcall_buffer" && !interactive()) {
      fits = hostcalls_.start(memory, device);
    } else if (argument.kind == "hidden_heap_v1") {
      heap_ = device.heap.structure(memory, device.ordinal);
      fits = heap_ != 0;
    } else if (argument.kind == "hidden_printf_buffer" && printf_bytes_ == 0) {
      printf_bytes_ =
          std::clamp<size_t>(device.limits[hipLimitPrintfFifoSize], 16, size_t{1} << 30);
      fits = printf_.allocate(memory, device.ordinal, printf_bytes_, 8);
      const auto room = static_cast<uint32_t>(printf_bytes_ - 8);
      if (fits) std::memcpy(reinterpret_cast<void*>(printf_.address() + 4), &room, sizeof room);
    } else if (argument.kind == "hidden_multigrid_sync_arg" && op.cooperative) {
      fits = grid_.address() != 0 || start_grid(memory, op);
    }
    if (!fits) return false;
  }
  return true;
}

/// What the workgroups of a cooperative launch use to wait for each other.
bool DeviceServices::start_grid(Memory& memory, const KernelOp& op) {
  struct Grid {
    uint64_t several;  // the counters of a launch on several devices
    uint32_t number, count;
    uint64_t items_before, items;
    uint32_t arrived[2];
    uint32_t groups, reserved;
  };
  const int device = op.kernel->module->device.ordinal;
  if (!grid_.allocate(memory, device, 128, 128)) return false;
  Grid grid{};
  grid.several = grid_.address() + sizeof(Grid);
  grid.count = 1;
  grid.groups = op.groups[0] * op.groups[1] * op.groups[2];
  grid.items = uint64_t{grid.groups} * op.block[0] * op.block[1] * op.block[2];
  std::memcpy(reinterpret_cast<void*>(grid_.address()), &grid, sizeof grid);
  return true;
}

uint64_t DeviceServices::argument(const std::string& kind) const {
  if (kind == "hidden_hostcall_buffer") return hostcalls_.address();
  if (kind == "hidden_heap_v1") return heap_;
  if (kind == "hidden_printf_buffer") return printf_.address();
  if (kind == "hidden_multigrid_sync_arg") return grid_.address();
  return 0;
}

void DeviceServices::finish(const KernelOp& op) {
  if (printf_bytes_ == 0) return;
  uint32_t used;
  std::memcpy(&used, reinterpret_cast<const void*>(printf_.address()), sizeof used);
  const auto* records = reinterpret_cast<const uint8_t*>(printf_.address() + 8);
  const size_t bytes = std::min<size_t>(used, printf_bytes_ - 8);
  const Printed printed = format_records({records, bytes}, op.kernel->module->print_formats());
  write_text(printed.out, stdout);
  write_text(printed.err, stderr);
  if (!printed.whole) {
    complain("kernel " + op.kernel->info.name + ": its printf buffer holds what isn't a record");
  }
}

}  // namespace emu
