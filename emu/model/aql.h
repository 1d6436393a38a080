#pragma once

// Layouts of AQL packets, of signals and of the errors of a queue. Source: HSA Platform System
// Architecture 1.2 and HSA Runtime 1.2 (packets), AMD's extensions in hsa_ext_amd.h,
// amd_hsa_signal.h and amd_hsa_queue.h.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace emu::model {

enum class PacketType : uint8_t {
  vendor = 0,
  invalid = 1,
  dispatch = 2,
  barrier_and = 3,
  agent_dispatch = 4,
  barrier_or = 5,
};
inline constexpr uint32_t kPacketBytes = 64;

inline PacketType type_of(uint16_t header) { return static_cast<PacketType>(header & 0xff); }

struct Dispatch {
  uint16_t header = 0, setup = 0;  // setup: the number of dimensions in its lowest two bits
  uint16_t block[3] = {};
  uint16_t reserved0 = 0;
  uint32_t grid[3] = {};  // in work-items
  uint32_t private_bytes = 0, group_bytes = 0;
  uint64_t kernel = 0, kernarg = 0, reserved1 = 0, completion = 0;
};
static_assert(sizeof(Dispatch) == kPacketBytes);

struct Barrier {
  uint16_t header = 0, reserved0 = 0;
  uint32_t reserved1 = 0;
  uint64_t signals[5] = {};  // 0: none
  uint64_t reserved2 = 0, completion = 0;
};
static_assert(sizeof(Barrier) == kPacketBytes);

/// AMD's packets: `format` says which one.
enum class VendorFormat : uint8_t { pm4 = 1, barrier_value = 2 };

/// Waits until the masked value of a signal meets a condition.
struct BarrierValue {
  uint16_t header = 0;
  uint8_t format = 0, reserved0 = 0;
  uint32_t reserved1 = 0;
  uint64_t signal = 0;
  int64_t value = 0, mask = 0;
  uint32_t condition = 0;  // see Condition
  uint32_t reserved2 = 0;
  uint64_t reserved3[2] = {};
  uint64_t completion = 0;
};
static_assert(sizeof(BarrierValue) == kPacketBytes);

enum class Condition : uint32_t { equal = 0, not_equal = 1, less = 2, not_less = 3 };

/// Runs commands of the packet processor's own language, which lie in memory.
struct Pm4 {
  uint16_t header = 0;
  uint8_t format = 0, reserved0 = 0;
  uint32_t jump[4] = {};  // an INDIRECT_BUFFER command
  uint32_t remaining = 0;
  uint32_t reserved1[8] = {};
  uint64_t completion = 0;
};
static_assert(sizeof(Pm4) == kPacketBytes);

/// All packets have their completion signal here.
inline constexpr size_t kCompletionOffset = 56;

/// What a signal's handle points to.
struct Signal {
  int64_t kind = 0;  // 1: a value in memory
  std::atomic<int64_t> value{0};
  uint64_t mailbox = 0;  // 0: nobody waits for an interrupt
  uint32_t event = 0, reserved0 = 0;
  uint64_t start = 0, end = 0;  // time stamps of the packet, in nanoseconds
  uint64_t queue = 0;
  uint32_t reserved1[2] = {};
};
static_assert(sizeof(Signal) == 64 && offsetof(Signal, value) == 8);
inline constexpr int64_t kUserSignal = 1;

/// Errors of a queue. The packet processor stores one in the queue's inactive signal and processes
/// no further packet.
enum class QueueError : uint32_t {
  dimensions = 2,            // HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS
  group_memory = 4,          // HSA_STATUS_ERROR_INVALID_ALLOCATION
  code = 8,                  // HSA_STATUS_ERROR_INVALID_CODE_OBJECT
  packet_format = 32,        // HSA_STATUS_ERROR_INVALID_PACKET_FORMAT
  group_size = 64,           // HSA_STATUS_ERROR_INVALID_ARGUMENT
  registers = 128,           // HSA_STATUS_ERROR_OUT_OF_REGISTERS
  vendor_format = 256,       // HSA_STATUS_ERROR_INVALID_PACKET_FORMAT
  memory = 0x20000000,       // HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION
  instruction = 0x40000000,  // HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION
  exception = 0x80000000,    // HSA_STATUS_ERROR_EXCEPTION
};

// The runtime's queue structure contains the pointers that it registers, and the handle of the
// signal that takes errors.
inline constexpr uint64_t kWritePointerOffset = 56, kReadPointerOffset = 128,
                          kInactiveSignalOffset = 192;

}  // namespace emu::model
