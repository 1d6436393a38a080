// Operand values: edge cases of each type, and random bits.

#include "emu/tests/ops.h"

namespace emu::test {
namespace {

constexpr uint32_t kF32[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x3f800000,
    0xbf800000, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40000000, 0xc0000000, 0x40490fdb, 0x3eaaaaab,
    0x4b000001, 0x4b7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f7fffff, 0x4f800000, 0x5f000000,
    0x477fe000, 0x477ff000, 0x38800000, 0x33800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc00001, 0x7f800001, 0xff812345, 0x42c80000, 0xc2fe0000, 0x437f0000, 0x3f7fffff,
};

constexpr uint16_t kF16[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3800, 0xb800,
    0x3e00, 0x4000, 0xc000, 0x4248, 0x3555, 0x6400, 0x6401, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
    0x7e00, 0xfe01, 0x7c01, 0xfd23, 0x5bf8, 0x4900, 0x77ff, 0x7800, 0xf800, 0x3bff,
};

constexpr uint64_t kF64[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x000fffffffffffff,
    0x0010000000000000, 0x8010000000000000, 0x3ff0000000000000, 0xbff0000000000000,
    0x3fe0000000000000, 0x3ff8000000000000, 0x4000000000000000, 0x400921fb54442d18,
    0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0x41efffffffe00000,
    0x41f0000000000000, 0x4330000000000001, 0x47efffffe0000000, 0x36a0000000000000,
    0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0x7ff0000000000001, 0x3ff0000000000001, 0x3810000000000000,
};

constexpr uint32_t kInt[] = {
    0,          1,          2,          3,          7,          8,          15,         16,
    31,         32,         33,         63,         64,         0x7f,       0x80,       0xff,
    0x100,      0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffff,   0x800000,   0xffffff,
    0x1000000,  0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x55555555, 0xaaaaaaaa,
    0x00ff00ff, 0x01020304, 0xff00ff00, 0x80808080,
};

template <size_t kCount, class T>
T any(const T (&values)[kCount], Random& random) {
  return values[random.below(kCount)];
}

/// Returns a float of moderate magnitude, since random bits alone are mostly huge or tiny.
uint32_t moderate(Random& random) {
  const auto bits = static_cast<uint32_t>(random.next());
  return (bits & 0x807fffff) | (117 + random.below(20)) << 23;
}

uint16_t half_value(Random& random) {
  return random.chance(2) ? any(kF16, random) : static_cast<uint16_t>(random.next());
}

uint16_t short_value(Random& random) {
  return static_cast<uint16_t>(random.chance(2) ? any(kInt, random) : random.next());
}

}  // namespace

uint64_t interesting(Type type, Random& random) {
  const uint32_t kind = random.below(4);
  switch (type) {
    case Type::bit:
      return random.next() & 1;
    case Type::f16:
      return half_value(random);
    case Type::b16:
      return short_value(random);
    case Type::pk_f16:
      return half_value(random) | uint32_t{half_value(random)} << 16;
    case Type::pk_b16:
      return short_value(random) | uint32_t{short_value(random)} << 16;
    case Type::f32:
      if (kind < 2) return any(kF32, random);
      return kind == 2 ? moderate(random) : static_cast<uint32_t>(random.next());
    case Type::b32:
      return kind < 2 ? any(kInt, random) : static_cast<uint32_t>(random.next());
    case Type::f64:
      if (kind < 2) return any(kF64, random);
      if (kind == 2)
        return std::bit_cast<uint64_t>(double{std::bit_cast<float>(moderate(random))} *
                                       1.000000123456789);
      return random.next();
    case Type::b64:
      if (kind == 0) return any(kInt, random);
      if (kind == 1) return uint64_t{any(kInt, random)} << 32 | any(kInt, random);
      return random.next() >> random.below(64);
  }
  return 0;
}

}  // namespace emu::test
