#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace wick {

/// A 61-bit checksum of bytes that are added in pieces of any size. It detects damage; it doesn't
/// protect against a forged file. The bytes are words of 7 bytes, the last one padded with zeros,
/// and the checksum is the polynomial of these words and of the length, modulo the prime 2^61 - 1.
/// Any change within one word changes the checksum.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    length_ += bytes.size();
    while (held_ > 0 && !bytes.empty()) {
      hold(bytes.front());
      bytes = bytes.subspan(1);
    }
    for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(kWordBytes)) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof word);
      step(word & kWordMask);
    }
    for (const std::byte byte : bytes) hold(byte);
  }

  /// The checksum of all bytes added so far.
  uint64_t value() const {
    Checksum last = *this;
    last.step(last.word_);
    last.step(length_);
    const uint64_t low = (last.sum_ & kPrime) + (last.sum_ >> 61);
    return low >= kPrime ? low - kPrime : low;
  }

 private:
  using Product = unsigned __int128;
  static constexpr size_t kWordBytes = 7;
  static constexpr uint64_t kWordMask = ~uint64_t{0} >> 8, kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t kBase = 0x0d3f5b79a2c4e68fULL;  // any number below 2^60

  void step(uint64_t word) {
    const Product product = static_cast<Product>(sum_ + word) * kBase;
    sum_ = (static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61);
  }
  void hold(std::byte byte) {
    word_ |= static_cast<uint64_t>(byte) << (8 * held_);
    if (++held_ < kWordBytes) return;
    step(word_);
    word_ = 0;
    held_ = 0;
  }

  uint64_t sum_ = 0;   // below 2^62 because of kBase, and congruent to the polynomial
  uint64_t word_ = 0;  // the first held_ bytes of the next word
  uint64_t length_ = 0;
  size_t held_ = 0;
};

}  // namespace wick
