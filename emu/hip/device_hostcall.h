#pragma once

// Lets kernels call the host: printf, assert's message, malloc and free. It implements the
// functions of ROCm's device libraries that the compiler and HIP's headers call, by the protocol of
// those libraries (emu/runtime/device_services.h is the host's side). It needs only the compiler.

#define WICK_CALL __attribute__((device)) inline
// Weak, not inline: the compiler calls these functions where the source doesn't. It removes them
// from code objects whose kernels don't print.
#define WICK_CALL_LIBRARY extern "C" __attribute__((device, weak))

namespace wick_device {

using Word = __UINT64_TYPE__;

struct CallHeader {
  Word next, lanes;
  unsigned service, control;  // bit 0 of control: the wave waits
};
struct CallBuffer {
  CallHeader* headers;
  Word (*payloads)[64][8];
  struct CallSignal* doorbell;
  Word free, ready, index_mask;
};
struct CallSignal {
  Word kind, value;
  Word* mailbox;
  unsigned event;
};
struct CallAnswer {
  Word first, second;
};

constexpr unsigned kPrintService = 2, kMemoryService = 3;
constexpr Word kMessageBegins = 1, kMessageEnds = 2;

}  // namespace wick_device

/// The compiler defines it: 400 for code object version 4, 500 for 5 and later ones.
extern "C" __attribute__((constant)) const int __oclc_ABI_version;

namespace wick_device {

WICK_CALL CallBuffer* call_buffer() {
  using Hidden = const __attribute__((address_space(4))) Word*;
  const auto hidden = (Hidden)__builtin_amdgcn_implicitarg_ptr();
  return reinterpret_cast<CallBuffer*>(hidden[__oclc_ABI_version < 500 ? 3 : 10]);
}

WICK_CALL Word first_lane(Word value) {
  const Word high =
      static_cast<unsigned>(__builtin_amdgcn_readfirstlane(static_cast<int>(value >> 32)));
  const Word low = static_cast<unsigned>(__builtin_amdgcn_readfirstlane(static_cast<int>(value)));
  return high << 32 | low;
}

WICK_CALL Word pop_packet(CallBuffer* buffer) {
  Word top = __hip_atomic_load(&buffer->free, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
  for (;;) {
    if (top != 0) {
      Word* after = &buffer->headers[top & buffer->index_mask].next;
      const Word next = __hip_atomic_load(after, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
      if (__hip_atomic_compare_exchange_strong(&buffer->free, &top, next, __ATOMIC_ACQUIRE,
                                               __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM)) {
        return top;
      }
    } else {
      __builtin_amdgcn_s_sleep(1);
      top = __hip_atomic_load(&buffer->free, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
    }
  }
}

WICK_CALL void push_packet(CallBuffer* buffer, Word* stack, Word packet) {
  Word* after = &buffer->headers[packet & buffer->index_mask].next;
  Word top = __hip_atomic_load(stack, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  do {
    __hip_atomic_store(after, top, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  } while (!__hip_atomic_compare_exchange_strong(stack, &top, packet, __ATOMIC_RELEASE,
                                                 __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM));
}

WICK_CALL void ring(CallSignal* signal) {
  __hip_atomic_fetch_add(&signal->value, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  if (signal->mailbox == nullptr) return;
  const unsigned event = signal->event;
  __hip_atomic_store(signal->mailbox, event, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  __builtin_amdgcn_s_sendmsg(1, __builtin_amdgcn_readfirstlane(event) & 0xff);
}

/// Calls the host from all active lanes and waits for the answer.
WICK_CALL __attribute__((noinline)) CallAnswer call_host(unsigned service, Word a0, Word a1,
                                                         Word a2, Word a3, Word a4, Word a5,
                                                         Word a6, Word a7) {
  CallBuffer* buffer = call_buffer();
  const Word lanes = __builtin_amdgcn_read_exec();
  const unsigned lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  const bool leads = lane == static_cast<unsigned>(__builtin_amdgcn_readfirstlane(lane));
  Word packet = 0;
  if (leads) packet = pop_packet(buffer);
  packet = first_lane(packet);
  CallHeader* header = &buffer->headers[packet & buffer->index_mask];
  Word* slot = buffer->payloads[packet & buffer->index_mask][lane];
  const Word words[8] = {a0, a1, a2, a3, a4, a5, a6, a7};
  for (int i = 0; i < 8; ++i) slot[i] = words[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
  if (leads) {
    header->lanes = lanes;
    header->service = service;
    header->control = 1;
    push_packet(buffer, &buffer->ready, packet);
    ring(buffer->doorbell);
    while (__hip_atomic_load(&header->control, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) & 1) {
      __builtin_amdgcn_s_sleep(1);
    }
  }
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
  const CallAnswer answer = {slot[0], slot[1]};
  if (leads) {
    // The tag above the index changes each time, so that a compare-exchange notices a reuse.
    const Word next = packet + buffer->index_mask + 1;
    push_packet(buffer, &buffer->free, next == 0 ? buffer->index_mask + 1 : next);
  }
  return answer;
}

/// Appends words to a message. `part` is the answer to the previous part, with that one's length.
WICK_CALL Word append_words(Word part, unsigned count, Word a1, Word a2, Word a3, Word a4, Word a5,
                            Word a6, Word a7) {
  constexpr Word kLength = 7 << 5;
  const Word first = (part & ~kLength) | Word{count} << 5;
  return call_host(kPrintService, first, a1, a2, a3, a4, a5, a6, a7).first;
}

/// Appends a text with its final zero, padded to whole words, in parts of up to 7 words.
WICK_CALL __attribute__((noinline)) Word append_text(Word part, const char* text, Word bytes,
                                                     bool last) {
  const Word end = last ? kMessageEnds : 0;
  if (text == nullptr || bytes == 0) return append_words(part | end, 1, 0, 0, 0, 0, 0, 0, 0);
  for (;;) {
    Word words[7] = {};
    const unsigned take = bytes < 56 ? static_cast<unsigned>(bytes) : 56;
    for (unsigned i = 0; i < take; ++i) {
      words[i / 8] |= Word{static_cast<unsigned char>(text[i])} << 8 * (i % 8);
    }
    text += take;
    bytes -= take;
    part = append_words(bytes == 0 ? part | end : part, (take + 7) / 8, words[0], words[1],
                        words[2], words[3], words[4], words[5], words[6]);
    if (bytes == 0) return part;
  }
}

WICK_CALL Word begin_message(Word stream) {
  return append_words(kMessageBegins, 1, stream, 0, 0, 0, 0, 0, 0);
}

}  // namespace wick_device

WICK_CALL_LIBRARY wick_device::Word __ockl_printf_begin(wick_device::Word version) {
  return wick_device::begin_message(version);
}
WICK_CALL_LIBRARY wick_device::Word __ockl_printf_append_args(
    wick_device::Word part, unsigned count, wick_device::Word a1, wick_device::Word a2,
    wick_device::Word a3, wick_device::Word a4, wick_device::Word a5, wick_device::Word a6,
    wick_device::Word a7, unsigned last) {
  if (last != 0) part |= wick_device::kMessageEnds;
  return wick_device::append_words(part, count, a1, a2, a3, a4, a5, a6, a7);
}
WICK_CALL_LIBRARY wick_device::Word __ockl_printf_append_string_n(wick_device::Word part,
                                                                  const char* text,
                                                                  wick_device::Word bytes,
                                                                  unsigned last) {
  return wick_device::append_text(part, text, bytes, last != 0);
}
WICK_CALL_LIBRARY wick_device::Word __ockl_fprintf_stdout_begin() {
  return wick_device::begin_message(0);
}
WICK_CALL_LIBRARY wick_device::Word __ockl_fprintf_stderr_begin() {
  return wick_device::begin_message(1);
}
WICK_CALL_LIBRARY wick_device::Word __ockl_fprintf_append_args(
    wick_device::Word part, unsigned count, wick_device::Word a1, wick_device::Word a2,
    wick_device::Word a3, wick_device::Word a4, wick_device::Word a5, wick_device::Word a6,
    wick_device::Word a7, unsigned last) {
  return __ockl_printf_append_args(part, count, a1, a2, a3, a4, a5, a6, a7, last);
}
WICK_CALL_LIBRARY wick_device::Word __ockl_fprintf_append_string_n(wick_device::Word part,
                                                                   const char* text,
                                                                   wick_device::Word bytes,
                                                                   unsigned last) {
  return wick_device::append_text(part, text, bytes, last != 0);
}

// Every block is an allocation of the host, at a multiple of 4096 bytes.
WICK_CALL_LIBRARY wick_device::Word __ockl_dm_alloc(wick_device::Word bytes) {
  if (bytes == 0) return 0;
  return wick_device::call_host(wick_device::kMemoryService, 0, bytes, 0, 0, 0, 0, 0, 0).first;
}
WICK_CALL_LIBRARY void __ockl_dm_dealloc(wick_device::Word address) {
  if (address == 0) return;
  wick_device::call_host(wick_device::kMemoryService, address, 0, 0, 0, 0, 0, 0, 0);
}

#undef WICK_CALL
#undef WICK_CALL_LIBRARY
