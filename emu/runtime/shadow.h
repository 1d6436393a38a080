#pragma once

// What is known of each byte of device memory: whether it belongs to an allocation, and whether
// anything was ever written to it. One bit a byte in two planes; planes are null where checks are
// off. No dependencies: loads and stores of the interpreter use it inline.

#include <cstddef>
#include <cstdint>

namespace emu {

struct Shadow {
  uintptr_t base = 0;
  size_t bytes = 0;
  uint8_t* addressable = nullptr;
  uint8_t* initialised = nullptr;

  bool on() const { return addressable != nullptr; }
  bool holds(uintptr_t address, size_t count) const {
    return address - base < bytes && count <= bytes - (address - base);
  }
};

namespace shadow {

inline uint8_t mask(size_t first, size_t count) {  // within one byte of the plane
  return static_cast<uint8_t>(((1u << count) - 1) << first);
}

/// Whether all `count` bits from `first` on are set.
inline bool all(const uint8_t* plane, size_t first, size_t count) {
  size_t byte = first / 8, bit = first % 8;
  while (count > 0) {
    if (bit == 0 && count >= 64 && byte % 8 == 0) {
      if (*reinterpret_cast<const uint64_t*>(plane + byte) != ~uint64_t{0}) return false;
      byte += 8;
      count -= 64;
      continue;
    }
    const size_t some = count < 8 - bit ? count : 8 - bit;
    const uint8_t wanted = mask(bit, some);
    if ((plane[byte] & wanted) != wanted) return false;
    count -= some;
    bit = 0;
    ++byte;
  }
  return true;
}

/// Sets bits. Bytes of the plane that are shared with neighbours change atomically: other threads
/// may be setting theirs.
inline void set(uint8_t* plane, size_t first, size_t count) {
  size_t byte = first / 8, bit = first % 8;
  while (count > 0) {
    if (bit == 0 && count >= 8) {
      const size_t whole = count / 8;
      __builtin_memset(plane + byte, 0xff, whole);
      byte += whole;
      count -= whole * 8;
      continue;
    }
    const size_t some = count < 8 - bit ? count : 8 - bit;
    const uint8_t wanted = mask(bit, some);
    if ((__atomic_load_n(plane + byte, __ATOMIC_RELAXED) & wanted) != wanted) {
      __atomic_fetch_or(plane + byte, wanted, __ATOMIC_RELAXED);
    }
    count -= some;
    bit = 0;
    ++byte;
  }
}

inline void clear(uint8_t* plane, size_t first, size_t count) {
  size_t byte = first / 8, bit = first % 8;
  while (count > 0) {
    if (bit == 0 && count >= 8) {
      const size_t whole = count / 8;
      __builtin_memset(plane + byte, 0, whole);
      byte += whole;
      count -= whole * 8;
      continue;
    }
    const size_t some = count < 8 - bit ? count : 8 - bit;
    __atomic_fetch_and(plane + byte, static_cast<uint8_t>(~mask(bit, some)), __ATOMIC_RELAXED);
    count -= some;
    bit = 0;
    ++byte;
  }
}

}  // namespace shadow

/// Whether every byte of the range is part of an allocation. Memory outside of the arena isn't.
inline bool is_addressable(const Shadow& s, uintptr_t address, size_t count) {
  return s.holds(address, count) && shadow::all(s.addressable, address - s.base, count);
}

inline bool is_initialised(const Shadow& s, uintptr_t address, size_t count) {
  return !s.holds(address, count) || shadow::all(s.initialised, address - s.base, count);
}

/// Notes that the range was written.
inline void mark_initialised(const Shadow& s, uintptr_t address, size_t count) {
  if (s.initialised != nullptr && s.holds(address, count)) {
    shadow::set(s.initialised, address - s.base, count);
  }
}

}  // namespace emu
