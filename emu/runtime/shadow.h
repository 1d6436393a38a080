#pragma once

// What is known of every byte of device memory: two planes of one bit a byte. Depends on nothing,
// so that the runtime, which marks, and the interpreter, which asks, share it.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace emu {

struct Shadow {
  uintptr_t base = 0;  // of the arena that all device memory lies in
  size_t bytes = 0;
  uint8_t* addressable = nullptr;  // may be written
  uint8_t* initialised = nullptr;  // may be read: addressable, and written before

  bool covers(uintptr_t address, size_t size) const {
    const uintptr_t offset = address - base;
    return offset < bytes && size <= bytes - offset;
  }

  /// Whether the bits of all bytes are set. At most 56 bytes at a time are looked at.
  static bool all_set(const uint8_t* plane, size_t offset, size_t size) {
    if (size == 64 && offset % 8 == 0) return whole_word(plane, offset) == ~uint64_t{0};
    for (; size > 56; offset += 56, size -= 56) {
      if (!word_set(plane, offset, 56)) return false;
    }
    return word_set(plane, offset, size);
  }

  static void set(uint8_t* plane, size_t offset, size_t size) {
    if (size == 64 && offset % 8 == 0) {  // whole bytes, which are nobody else's
      if (whole_word(plane, offset) != ~uint64_t{0}) std::memset(plane + offset / 8, 0xff, 8);
      return;
    }
    if (size >= 1024) {
      const size_t head = (8 - offset % 8) % 8;
      set_word(plane, offset, head);
      offset += head;
      size -= head;
      std::memset(plane + offset / 8, 0xff, size / 8);
      offset += size / 8 * 8;
      size %= 8;
    }
    for (; size > 56; offset += 56, size -= 56) set_word(plane, offset, 56);
    set_word(plane, offset, size);
  }

  static void clear(uint8_t* plane, size_t offset, size_t size) {
    while (size > 0 && (offset % 8 != 0 || size < 8)) {
      const auto bit = static_cast<uint8_t>(1u << offset % 8);
      __atomic_fetch_and(plane + offset / 8, static_cast<uint8_t>(~bit), __ATOMIC_RELAXED);
      ++offset;
      --size;
    }
    if (size == 0) return;
    std::memset(plane + offset / 8, 0, size / 8);
    clear(plane, offset + size / 8 * 8, size % 8);
  }

  /// Notes that the range was written; nothing where checks are off.
  void written(uintptr_t address, size_t size) const {
    if (initialised != nullptr && covers(address, size)) set(initialised, address - base, size);
  }

  bool writable(uintptr_t address, size_t size) const {
    return covers(address, size) && all_set(addressable, address - base, size);
  }
  bool readable(uintptr_t address, size_t size) const {
    return covers(address, size) && all_set(initialised, address - base, size);
  }

 private:
  static uint64_t whole_word(const uint8_t* plane, size_t offset) {
    uint64_t word;
    std::memcpy(&word, plane + offset / 8, sizeof word);
    return word;
  }
  // The planes are eight bytes longer than they need be.
  static uint64_t word_mask(size_t offset, size_t size) {
    return ((uint64_t{1} << size) - 1) << (offset & 7);
  }
  static bool word_set(const uint8_t* plane, size_t offset, size_t size) {
    uint64_t word;
    std::memcpy(&word, plane + offset / 8, sizeof word);
    const uint64_t mask = word_mask(offset, size);
    return (word & mask) == mask;
  }
  static void set_word(uint8_t* plane, size_t offset, size_t size) {
    uint64_t word;
    std::memcpy(&word, plane + offset / 8, sizeof word);
    const uint64_t mask = word_mask(offset, size);
    if ((word & mask) == mask) return;
    // Bytes beside ours may be another thread's: set ours one by one.
    for (size_t byte = 0; byte < 8; ++byte) {
      const auto bits = static_cast<uint8_t>(mask >> (8 * byte));
      if (bits != 0) __atomic_fetch_or(plane + offset / 8 + byte, bits, __ATOMIC_RELAXED);
    }
  }
};

}  // namespace emu
