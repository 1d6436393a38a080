#include "emu/runtime/operation.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "emu/exec/fault.h"
#include "emu/runtime/graph.h"
#include "emu/runtime/runtime.h"

namespace emu {
namespace {

/// Does work on memory that a caller named. Returns an error if the memory isn't mapped or mustn't
/// be written.
template <class Work>
hipError_t reach(const char* what, const Work& work) {
  FaultGuard guard;
  if (survives(guard, work)) return hipSuccess;
  std::string where = "a non-canonical address";
  if (!guard.non_canonical) {
    char address[32];
    std::snprintf(address, sizeof address, "0x%zx", static_cast<size_t>(guard.address));
    where = address + (", " + Runtime::get().memory->describe(guard.address));
  }
  complain(std::string(what) + " can't access " + where);
  return hipErrorInvalidValue;
}

void copy_row(const Memory& memory, char* to, const char* from, size_t bytes) {
  std::memmove(to, from, bytes);
  memory.copied(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), bytes);
}

void copy(const CopyOp& op) {
  const Memory& memory = *Runtime::get().memory;
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      copy_row(memory, op.to + z * op.to_slice + y * op.to_pitch,
               op.from + z * op.from_slice + y * op.from_pitch, op.width);
    }
  }
}

hipError_t run(const CopyOp& op) {
  return reach("a copy", [&] { copy(op); });
}

void fill_row(char* to, const FillOp& op) {
  if (op.element == 1) {
    std::memset(to, static_cast<int>(op.value & 0xff), op.width);
  } else if (op.element == 2) {
    std::fill_n(reinterpret_cast<uint16_t*>(to), op.width, static_cast<uint16_t>(op.value));
  } else {
    std::fill_n(reinterpret_cast<uint32_t*>(to), op.width, op.value);
  }
}

void fill(const FillOp& op) {
  const Shadow& shadow = Runtime::get().memory->shadow();
  for (size_t z = 0; z < op.depth; ++z) {
    for (size_t y = 0; y < op.height; ++y) {
      char* row = op.to + z * op.slice + y * op.pitch;
      fill_row(row, op);
      shadow.written(reinterpret_cast<uintptr_t>(row), op.width * op.element);
    }
  }
}

hipError_t run(const FillOp& op) {
  return reach("a fill", [&] { fill(op); });
}

uint64_t load(const ValueOp& op) {
  return op.wide ? __atomic_load_n(static_cast<uint64_t*>(op.address), __ATOMIC_ACQUIRE)
                 : __atomic_load_n(static_cast<uint32_t*>(op.address), __ATOMIC_ACQUIRE);
}

bool fulfilled(const ValueOp& op) {
  const uint64_t found = load(op) & op.mask, wanted = op.value;
  switch (op.condition) {
    case hipStreamWaitValueGte:
      return found >= wanted;
    case hipStreamWaitValueEq:
      return found == wanted;
    case hipStreamWaitValueAnd:
      return (found & wanted) != 0;
    default:
      return (~(found | wanted) & op.mask) != 0;
  }
}

/// Polls with increasing pauses: the wait may be long, and other threads need the CPU.
void wait_for(const ValueOp& op) {
  constexpr long kFirst = 1000, kLongest = 100000;  // nanoseconds
  timespec pause{0, kFirst};
  while (!fulfilled(op)) {
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(pause.tv_nsec * 2, kLongest);
  }
}

void write(const ValueOp& op) {
  if (op.wide) {
    __atomic_store_n(static_cast<uint64_t*>(op.address), op.value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(static_cast<uint32_t*>(op.address), static_cast<uint32_t>(op.value),
                     __ATOMIC_RELEASE);
  }
  Runtime::get().memory->shadow().written(reinterpret_cast<uintptr_t>(op.address), op.wide ? 8 : 4);
}

hipError_t run(const ValueOp& op) {
  if (op.write) return reach("the write of a value", [&] { write(op); });
  const hipError_t error = reach("the wait for a value", [&] { wait_for(op); });
  LaunchOrder::get().wait_for_any();
  return error;
}

hipError_t run(const BatchOp& op) {
  for (const ValueOp& value : op.values) {
    if (const hipError_t error = run(value); error != hipSuccess) return error;
  }
  return hipSuccess;
}

hipError_t run(const KernelOp& op) { return run_kernel(op); }

/// A function of the host may tell any thread that what precedes it is done.
void tell_host() { LaunchOrder::get().seen_by_host(*LaunchOrder::running()); }

hipError_t run(const HostOp& op) {
  tell_host();
  op.function(op.data);
  return hipSuccess;
}

hipError_t run(const CallbackOp& op) {
  tell_host();
  op.function(op.stream, hipSuccess, op.data);
  return hipSuccess;
}

hipError_t run(const FreeOp& op) {
  if (!op.of_graph) Runtime::get().memory->free(op.address);
  return hipSuccess;
}

template <class Op>
hipError_t run(const Op&) {
  return hipSuccess;
}

}  // namespace

hipError_t perform(const Operation& operation) {
  return std::visit([](const auto& op) { return run(op); }, operation);
}

SignalPtr enqueue(Stream& stream, const Operation& operation, std::vector<SignalPtr> after) {
  if (const auto* record = std::get_if<RecordOp>(&operation)) {
    SignalPtr signal = stream.push([] { return hipSuccess; }, std::move(after));
    std::lock_guard lock(record->event->mutex);
    record->event->signal = signal;
    record->event->stream = stream.shared_from_this();
    record->event->capture = nullptr;
    return signal;
  }
  if (const auto* wait = std::get_if<WaitOp>(&operation)) {
    if (SignalPtr signal = wait->event->current()) after.push_back(std::move(signal));
    return stream.push([] { return hipSuccess; }, std::move(after));
  }
  if (const auto* child = std::get_if<GraphOp>(&operation)) {
    return child->graph->launch(stream, std::move(after));
  }
  return stream.push([operation] { return perform(operation); }, std::move(after));
}

}  // namespace emu
