// Random numbers (docs/design/numerics/random.md). Sixteen counters are computed at a time, with
// their words in four arrays, so that compilers vectorise the arithmetic. Writes 16 bytes per
// counter.

#include "wick/backend/cpu/random/random_kernels.h"

#include "wick/math/normal.h"

namespace wick::cpu::WICK_ISA {
namespace {

constexpr int kCounters = 16;

/// The words of sixteen counters.
struct Words {
  alignas(64) uint32_t v[4][kCounters];

  WICK_FN Words(uint64_t seed, uint64_t first) {
    for (int i = 0; i < kCounters; ++i) {
      const math::Philox4 r =
          math::philox(seed, math::kTensorStream, first + static_cast<uint64_t>(i));
      for (int k = 0; k < 4; ++k) v[k][i] = r.v[k];
    }
  }
};

/// Calls block(words, to), which writes kEach numbers per counter, for sixteen counters at a time.
template <int kEach, class A, class Block>
WICK_FN void for_each_block(uint64_t seed, uint64_t first, int64_t counters, A* out,
                            const Block& block) {
  int64_t i = 0;
  for (; i + kCounters <= counters; i += kCounters) {
    block(Words(seed, first + static_cast<uint64_t>(i)), out + i * kEach);
  }
  if (i == counters) return;
  A rest[kCounters * kEach];
  block(Words(seed, first + static_cast<uint64_t>(i)), rest);
  __builtin_memcpy(out + i * kEach, rest, static_cast<size_t>((counters - i) * kEach) * sizeof(A));
}

void uniform_f32(uint64_t seed, uint64_t first, int64_t counters, float a, float b, float* out) {
  const float width = b - a;
  for_each_block<4>(seed, first, counters, out, [=](const Words& words, float* to) {
    float y[4][kCounters];
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < kCounters; ++i) y[k][i] = a + math::uniform_f32(words.v[k][i]) * width;
    }
    for (int i = 0; i < kCounters; ++i) {
      for (int k = 0; k < 4; ++k) to[4 * i + k] = y[k][i];
    }
  });
}

void normal_f32(uint64_t seed, uint64_t first, int64_t counters, float a, float b, float* out) {
  for_each_block<4>(seed, first, counters, out, [=](const Words& words, float* to) {
    float y[4][kCounters];
    for (int k = 0; k < 4; k += 2) {
      for (int i = 0; i < kCounters; ++i) {
        const auto pair = math::normal_pair(math::uniform_f32(words.v[k][i]),
                                            math::uniform_f32(words.v[k + 1][i]));
        y[k][i] = a + pair.a * b;
        y[k + 1][i] = a + pair.b * b;
      }
    }
    for (int i = 0; i < kCounters; ++i) {
      for (int k = 0; k < 4; ++k) to[4 * i + k] = y[k][i];
    }
  });
}

void uniform_f64(uint64_t seed, uint64_t first, int64_t counters, double a, double b, double* out) {
  const double width = b - a;
  for_each_block<2>(seed, first, counters, out, [=](const Words& words, double* to) {
    for (int i = 0; i < kCounters; ++i) {
      to[2 * i] = a + math::uniform_f64(words.v[0][i], words.v[1][i]) * width;
      to[2 * i + 1] = a + math::uniform_f64(words.v[2][i], words.v[3][i]) * width;
    }
  });
}

void normal_f64(uint64_t seed, uint64_t first, int64_t counters, double a, double b, double* out) {
  for_each_block<2>(seed, first, counters, out, [=](const Words& words, double* to) {
    for (int i = 0; i < kCounters; ++i) {
      const auto pair = math::normal_pair(math::uniform_f64(words.v[0][i], words.v[1][i]),
                                          math::uniform_f64(words.v[2][i], words.v[3][i]));
      to[2 * i] = a + pair.a * b;
      to[2 * i + 1] = a + pair.b * b;
    }
  });
}

}  // namespace

constexpr RandomKernels random_kernels = {uniform_f32, normal_f32, uniform_f64, normal_f64};
static_assert(complete(random_kernels));

}  // namespace wick::cpu::WICK_ISA
