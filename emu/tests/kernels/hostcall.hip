// Kernels that call their host while they run. The checks of the host's answers are in the test.

#include "../../hip/device_hostcall.h"
#include "device.h"

extern "C" __device__ int printf(const char* format, ...);

extern "C" __global__ void say_lanes(int from, const char* name) {
  printf("%s: %d\n", name, from + static_cast<int>(item()));
}

extern "C" __global__ void say_types(const char* text) {
  const float single = 1.5f;
  const _Float16 half = 0.25f;
  printf("%d %u %x %#o %c|", -7, 4000000000u, 0xabcu, 8, 'q');
  printf("%ld %llu %hhd %hd|", -5000000000l, 18446744073709551615ull, 300, 70000);
  printf("%f %.3e %g %a|", single, 12345.678, 0.0001, 2.0);
  printf("%8.2f|%-8d|%+d|%08x|%*d|%-*.*f|", 3.14159, 5, 6, 0xbeefu, 6, 42, 9, 2, 2.71828);
  printf("%s|%10s|%-5s|%.2s|%p|%%|", text, "right", "l", "cut", (void*)0x1234);
  printf("%f\n", static_cast<double>(half));
}

extern "C" __global__ void say_missing() { printf("none %d and %s", 1, (const char*)nullptr); }

extern "C" __global__ void say_in_branches(const unsigned* limit) {
  if (item() < limit[0]) {
    printf("low %u\n", item());
  } else if ((item() & 1) != 0) {
    printf("odd %u\n", item());
  }
}

extern "C" __global__ void say_long(const char* text) { printf("<%s>", text); }

/// Prints to standard error and traps, as a failed assertion does.
extern "C" __global__ void fail_above(unsigned limit) {
  if (item() < limit) return;
  const char format[] = "%s:%u: it fails\n", file[] = "a file";
  wick_device::Word message = __ockl_fprintf_stderr_begin();
  message = __ockl_fprintf_append_string_n(message, format, sizeof format, 0);
  message = __ockl_fprintf_append_string_n(message, file, sizeof file, 0);
  __ockl_fprintf_append_args(message, 1, item(), 0, 0, 0, 0, 0, 0, 1);
  __builtin_trap();
}

extern "C" __global__ void take_memory(unsigned** out, unsigned words) {
  auto* block = reinterpret_cast<unsigned*>(__ockl_dm_alloc(words * 4));
  if (block != nullptr) {
    for (unsigned i = 0; i < words; ++i) block[i] = global_item();
  }
  out[global_item()] = block;
}

extern "C" __global__ void give_memory(unsigned** from, unsigned* sums, unsigned words) {
  unsigned* block = from[global_item()];
  unsigned sum = 0;
  for (unsigned i = 0; i < words; ++i) sum += block[i];
  sums[global_item()] = sum;
  __ockl_dm_dealloc(reinterpret_cast<wick_device::Word>(block));
}

extern "C" __global__ void free_at(wick_device::Word address) { __ockl_dm_dealloc(address); }

/// A call of any service with any words.
extern "C" __global__ void call(unsigned service, wick_device::Word a, wick_device::Word b,
                                wick_device::Word* answer) {
  const wick_device::CallAnswer got = wick_device::call_host(service, a, b, 0, 0, 0, 0, 0, 0);
  answer[0] = got.first;
  answer[1] = got.second;
}

/// Overwrites the buffer, then calls.
extern "C" __global__ void spoil(unsigned rounds) {
  wick_device::CallBuffer* buffer = wick_device::call_buffer();
  for (unsigned i = 0; i < rounds; ++i) {
    buffer->headers[i].next = ~wick_device::Word{0};
    buffer->headers[i].lanes = ~wick_device::Word{0};
    buffer->headers[i].service = wick_device::kPrintService;
  }
  buffer->ready = 0xffffffffffff;
  wick_device::ring(buffer->doorbell);
}
