#pragma once

// The state of every byte of device memory, in two planes with one bit per byte. Has no
// dependencies, because both the runtime, which sets the bits, and the interpreter, which tests
// them, use it.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace emu {

struct Shadow {
  uintptr_t base = 0;  // address of the arena that contains all device memory
  size_t bytes = 0;
  uint8_t* addressable = nullptr;  // the byte may be written
  uint8_t* initialised = nullptr;  // the byte may be read: it is addressable and has been written

  bool covers(uintptr_t address, size_t size) const {
    const uintptr_t offset = address - base;
    return offset < bytes && size <= bytes - offset;
  }

  /// Returns whether the bits of all bytes are set. Tests at most 56 bytes at a time.
  static bool all_set(const uint8_t* plane, size_t offset, size_t size) {
    if (size == 64 && offset % 8 == 0) return whole_word(plane, offset) == ~uint64_t{0};
    for (; size > 56; offset += 56, size -= 56) {
      if (!word_set(plane, offset, 56)) return false;
    }
    return word_set(plane, offset, size);
  }

  static void set(uint8_t* plane, size_t offset, size_t size) {
    if (size == 64 && offset % 8 == 0) {  // these plane bytes belong to no other access
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

  /// The bytes whose bits are in one word of a plane.
  static constexpr size_t kWord = 64;
  /// Returns whether the bits of all bytes of whole words are set.
  static bool words_set(const uint8_t* plane, size_t offset, size_t size) {
    uint64_t all = ~uint64_t{0};
    for (size_t i = 0; i < size; i += kWord) all &= whole_word(plane, offset + i);
    return all == ~uint64_t{0};
  }
  static void set_words(uint8_t* plane, size_t offset, size_t size) {
    if (words_set(plane, offset, size)) return;
    for (size_t i = 0; i < size; i += kWord) set(plane, offset + i, kWord);
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

  /// Marks the range as written. Does nothing if checks are off.
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
  // The planes have eight extra bytes at the end.
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
    // Neighbouring bits may belong to another thread, so each byte is updated atomically.
    for (size_t byte = 0; byte < 8; ++byte) {
      const auto bits = static_cast<uint8_t>(mask >> (8 * byte));
      if (bits != 0) __atomic_fetch_or(plane + offset / 8 + byte, bits, __ATOMIC_RELAXED);
    }
  }
};

}  // namespace emu
