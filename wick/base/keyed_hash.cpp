#include "wick/base/keyed_hash.h"

#include <sys/random.h>

#include <chrono>
#include <cstdint>

namespace wick {
namespace {

uint64_t random_word() {
  uint64_t word = 0;
  if (::getrandom(&word, sizeof(word), GRND_NONBLOCK) == static_cast<ssize_t>(sizeof(word))) {
    return word;
  }
  // A sandbox may forbid the system call. The fallback mixes the clock with an address of this
  // process, which are hard to guess.
  static int place = 0;
  const auto now = std::chrono::high_resolution_clock::now().time_since_epoch().count();
  return (static_cast<uint64_t>(now) * 0x9e3779b97f4a7c15u) ^ reinterpret_cast<uintptr_t>(&place);
}

HashKey draw() {
  constexpr uint64_t kMask = (uint64_t{1} << 61) - 1;
  // Bit 59 of a is set, because a small multiplier would keep short strings in byte order.
  return {(random_word() & (kMask >> 1)) | uint64_t{1} << 59, random_word() & (kMask >> 1)};
}

}  // namespace

HashKey random_hash_key() { return {random_word(), random_word()}; }

const HashKey& process_hash_key() {
  static const HashKey key = draw();
  return key;
}

}  // namespace wick
