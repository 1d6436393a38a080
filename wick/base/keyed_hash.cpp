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
  // A sandbox may forbid the call. The clock and an address of this process are hard to guess, too.
  static int place = 0;
  const auto now = std::chrono::high_resolution_clock::now().time_since_epoch().count();
  return (static_cast<uint64_t>(now) * 0x9e3779b97f4a7c15u) ^ reinterpret_cast<uintptr_t>(&place);
}

HashKey draw() {
  constexpr uint64_t kMask = (uint64_t{1} << 61) - 1;
  // A small multiplier would leave short strings in order of their bytes.
  return {(random_word() & (kMask >> 1)) | uint64_t{1} << 59, random_word() & (kMask >> 1)};
}

}  // namespace

HashKey random_hash_key() { return {random_word(), random_word()}; }

const HashKey& process_hash_key() {
  static const HashKey key = draw();
  return key;
}

}  // namespace wick
