#pragma once

// Implements read-modify-write operations on global memory and LDS.

#include <algorithm>
#include <atomic>
#include <cmath>

#include "emu/exec/memory.h"

namespace emu {
namespace {

template <class T>
T minimum_number(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T maximum_number(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// Each function returns the new value of memory from the old value and the data.
inline constexpr auto kSwap = [](auto, auto data) { return data; };
inline constexpr auto kAdd = [](auto old, auto data) {
  return static_cast<decltype(old)>(old + data);
};
inline constexpr auto kSub = [](auto old, auto data) {
  return static_cast<decltype(old)>(old - data);
};
inline constexpr auto kReverseSub = [](auto old, auto data) {
  return static_cast<decltype(old)>(data - old);
};
inline constexpr auto kMin = [](auto old, auto data) { return data < old ? data : old; };
inline constexpr auto kMax = [](auto old, auto data) { return data > old ? data : old; };
inline constexpr auto kMinFloat = [](auto old, auto data) { return minimum_number(old, data); };
inline constexpr auto kMaxFloat = [](auto old, auto data) { return maximum_number(old, data); };
inline constexpr auto kAnd = [](auto old, auto data) { return old & data; };
inline constexpr auto kOr = [](auto old, auto data) { return old | data; };
inline constexpr auto kXor = [](auto old, auto data) { return old ^ data; };
inline constexpr auto kIncrement = [](auto old, auto data) {
  return old >= data ? decltype(old)(0) : static_cast<decltype(old)>(old + 1);
};
inline constexpr auto kDecrement = [](auto old, auto data) {
  return old == 0 || old > data ? data : static_cast<decltype(old)>(old - 1);
};
inline constexpr auto kSubClamp = [](auto old, auto data) {
  return old < data ? decltype(old)(0) : static_cast<decltype(old)>(old - data);
};
inline constexpr auto kConditionalSub = [](auto old, auto data) {
  return old >= data ? static_cast<decltype(old)>(old - data) : old;
};
/// Adds bf16 numbers and rounds to the nearest, ties to even.
inline constexpr auto kPackedAddBf16 = [](uint32_t old, uint32_t data) {
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const auto part = [&](uint32_t x) { return __builtin_bit_cast(float, x >> shift << 16); };
    const float sum = part(old) + part(data);
    const auto bits = __builtin_bit_cast(uint32_t, sum);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    result |= (sum != sum ? bits >> 16 | 0x40 : rounded) << shift;
  }
  return result;
};
inline constexpr auto kPackedAddF16 = [](uint32_t old, uint32_t data) {
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const auto part = [&](uint32_t x) {
      return __builtin_bit_cast(_Float16, static_cast<uint16_t>(x >> shift));
    };
    const auto sum =
        static_cast<_Float16>(static_cast<float>(part(old)) + static_cast<float>(part(data)));
    result |= uint32_t{__builtin_bit_cast(uint16_t, sum)} << shift;
  }
  return result;
};

/// Reads one lane's value, whose dwords lie in registers 128 bytes apart.
template <class T>
EMU_INLINE T read_lane(const char* reg, int lane) {
  char bytes[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); i += 4) std::memcpy(bytes + i, reg + 32 * i + 4 * lane, 4);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <class T>
EMU_INLINE void write_lane(char* reg, int lane, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof value);
  for (size_t i = 0; i < sizeof(T); i += 4) std::memcpy(reg + 32 * i + 4 * lane, bytes + i, 4);
}

template <int kBytes>
using Bits = std::conditional_t<kBytes == 8, uint64_t, uint32_t>;

/// Atomically replaces *at by next(*at) and returns the old value.
template <class T, class Next>
EMU_INLINE T exchange(char* at, const Next& next) {
  using B = Bits<sizeof(T)>;
  std::atomic_ref<B> memory(*reinterpret_cast<B*>(at));
  B old = memory.load(std::memory_order_relaxed);
  for (;;) {
    const B desired = __builtin_bit_cast(B, static_cast<T>(next(__builtin_bit_cast(T, old))));
    if (memory.compare_exchange_weak(old, desired)) return __builtin_bit_cast(T, old);
  }
}

/// Runs the operation for one half's lanes in ascending order. kCompare: the second value of the
/// data is the comparand. If `to` is null, old values aren't returned.
template <class T, auto F, bool kCompare, class Space>
EMU_INLINE bool atomic_half(Wave* w, const Op* op, char* base, const uint32_t* offsets,
                            LaneMask enabled, const char* data, char* to) {
  if constexpr (!Space::kFaults) {  // LDS; those on global memory order the waves
    Space::issued(w, base, offsets, enabled, sizeof(T), true);
  }
  for (LaneMask left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    char* memory = base + offsets[lane];
    // The old value that a swap returns may be unused: compilers request it even where nothing
    // reads it.
    constexpr bool kSwaps =
        std::is_same_v<std::remove_cv_t<decltype(F)>, std::remove_cv_t<decltype(kSwap)>> &&
        !kCompare;
    if (!Space::exchangeable(w, op, memory, sizeof(T), lane, !kSwaps)) {
      if (Space::kFaults) return false;
      if (to != nullptr) write_lane<T>(to, lane, T{});
      continue;
    }
    if (reinterpret_cast<uintptr_t>(memory) % sizeof(T) != 0) {
      fail(w, op, "an atomic operation on an address that isn't aligned");
      return false;
    }
    const T value = read_lane<T>(data, lane);
    T old;
    if constexpr (kCompare) {
      const T compare = read_lane<T>(data + 32 * sizeof(T), lane);
      old = exchange<T>(memory, [&](T now) { return now == compare ? value : now; });
    } else {
      old = exchange<T>(memory, [&](T now) { return F(now, value); });
    }
    if (to != nullptr) write_lane<T>(to, lane, old);
  }
  return true;
}

}  // namespace
}  // namespace emu
