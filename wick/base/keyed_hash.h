#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// The two random numbers of a hash function.
struct HashKey {
  uint64_t a;
  uint64_t b;
};
/// The key of KeyedHash: both numbers are below 2^60, drawn once per process.
WICK_API const HashKey& process_hash_key();
/// Draws two random 64-bit numbers at each call.
WICK_API HashKey random_hash_key();

/// Hashes strings with a random key, so that nobody can craft a file whose names all fall into one
/// bucket of a hash table. The hash is length · b plus a polynomial in a, modulo 2^61 - 1, whose
/// coefficients are words of 7 bytes. For two strings of n bytes, at most n / 7 + 1 of the 2^59
/// values of a give equal hashes; for strings of different lengths, one value of b does. Hashes are
/// below 2^61, and their low and high bits are equally well distributed.
class KeyedHash {
 public:
  using is_transparent = void;

  KeyedHash() : key_(process_hash_key()) {}
  explicit KeyedHash(HashKey key) : key_(key) {}

  size_t operator()(std::string_view text) const { return hash(text.data(), text.size()); }

  uint64_t hash(const char* data, size_t size) const {
    constexpr uint64_t kSevenBytes = ~uint64_t{0} >> 8;
    // The length has its own factor, so that leading zero bytes change the hash.
    const Product length = static_cast<Product>(size) * key_.b;
    uint64_t hash = 0;
    for (; size >= 8; data += 7, size -= 7) {
      uint64_t word;
      std::memcpy(&word, data, 8);
      hash = fold(static_cast<Product>(hash + (word & kSevenBytes)) * key_.a);
    }
    hash = fold(static_cast<Product>(hash + last_word(data, size)) * key_.a + length);
    hash = (hash & kPrime) + (hash >> 61);
    return hash >= kPrime ? hash - kPrime : hash;
  }

 private:
  using Product = unsigned __int128;
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

  /// Returns a number congruent to `product` modulo the prime; it is below 2^64 - 2^56 for products
  /// below 2^124.5.
  static uint64_t fold(Product product) {
    return (static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61);
  }

  /// The last 7 or fewer bytes as a number. The overlapping reads of 4 bytes agree in the shared
  /// bits.
  static uint64_t last_word(const char* data, size_t size) {
    if (size >= 4) {
      uint32_t first, last;
      std::memcpy(&first, data, 4);
      std::memcpy(&last, data + size - 4, 4);
      return first | (static_cast<uint64_t>(last) << (8 * (size - 4)));
    }
    uint64_t word = 0;
    if (size > 0) {
      const auto at = [&](size_t i) { return uint64_t{static_cast<unsigned char>(data[i])}; };
      word = at(0) | at(size / 2) << 8 * (size / 2) | at(size - 1) << 8 * (size - 1);
    }
    return word;
  }

  HashKey key_;
};

}  // namespace wick
