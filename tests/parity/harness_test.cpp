// Tests of the harness itself: a wrong reference would invalidate every other test.

#include "tests/parity/harness.h"

#include <cmath>

namespace wick::parity {
namespace {

TEST(Formats, DecodeThenEncodeGivesTheSameBits) {
  for (DType dtype : {DType::bf16, DType::f16, DType::f8e4m3}) {
    const uint64_t count = uint64_t{1} << (8 * info(dtype).block_bytes);
    for (uint64_t bits = 0; bits < count; ++bits) {
      ASSERT_TRUE(same_bits(dtype, encode(dtype, decode(dtype, bits)), bits)) << bits;
    }
  }
  Random random;
  for (int i = 0; i < 10000; ++i) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const uint64_t bits = random_bits(dtype, Values::bits, random, i);
      ASSERT_TRUE(same_bits(dtype, encode(dtype, decode(dtype, bits)), bits)) << bits;
    }
  }
}

TEST(Formats, RoundToNearestEven) {
  EXPECT_EQ(round_to(DType::bf16, 1.00390625L), 1.0L);
  EXPECT_EQ(round_to(DType::bf16, 1.01171875L), 1.015625L);
  EXPECT_EQ(round_to(DType::f16, 65519.0L), 65504.0L);
  EXPECT_TRUE(std::isinf(round_to(DType::f16, 65520.0L)));
  EXPECT_EQ(round_to(DType::f8e4m3, -1e9L), -448.0L);
  EXPECT_EQ(encode(DType::f32, 0x1p-149L), 1u);
  EXPECT_EQ(encode(DType::f32, -1.5L), 0xbfc00000u);
}

TEST(Harness, EveryPlacementStaysInsideItsStorage) {
  for (const Geometry& g : geometries()) {
    for (int operand = 0; operand < 3; ++operand) {
      for (bool writable : {false, true}) {
        const Placement p = place(g.place, g.shape, DType::f32, operand, writable);
        int64_t low = 0, high = 0;
        for_each_element(p.layout, [&](int64_t, int64_t at) {
          low = std::min(low, at), high = std::max(high, at + 1);
        });
        EXPECT_EQ(low, 0) << g.name;
        EXPECT_LE(high, p.storage_elems) << g.name;
        if (writable) {
          EXPECT_FALSE(p.layout.overlaps_itself()) << g.name;
        }
      }
    }
  }
}

TEST(Harness, FindsWritesOutsideTheOutput) {
  TestTensor out(DType::f32, Place::stepped, {5, 6}, 0, true);
  Random random;
  out.fill(Values::normal, random);
  EXPECT_TRUE(out.surroundings_intact());
  out.storage()[out.storage().size() - 1] = std::byte{1};
  EXPECT_FALSE(out.surroundings_intact());
}

TEST(Harness, ClosenessCountsUlps) {
  EXPECT_TRUE(close(DType::f32, 1.0L, 1.0L + 0x1p-23L, 1));
  EXPECT_FALSE(close(DType::f32, 1.0L, 1.0L + 0x1.1p-23L, 1));
  EXPECT_TRUE(close(DType::f16, INFINITY, 1e9L, 0));
  EXPECT_TRUE(close(DType::f8e4m3, 448, INFINITY, 0));
  EXPECT_FALSE(close(DType::f32, 0.0L, -0.0L, 0));
  EXPECT_FALSE(close(DType::f32, NAN, 1.0L, 100));
}

}  // namespace
}  // namespace wick::parity
