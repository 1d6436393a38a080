// Error, DType, Device and Shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/expect_error.h"
#include "wick/base/device.h"
#include "wick/base/dtype.h"
#include "wick/base/shape.h"
#include "wick/op/op.h"

namespace wick {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Error, PartsAreJoinedAndEmptyOnesLeftOut) {
  EXPECT_STREQ(Error("op", "wrong", "x", "rule").what(), "op: wrong: x: rule");
  EXPECT_STREQ(Error("op", "wrong", "", "rule").what(), "op: wrong: rule");
  EXPECT_STREQ(Error("op", "wrong").what(), "op: wrong");
  EXPECT_EQ(Error("a file.gguf", "wrong").op(), "a file.gguf");
  EXPECT_EQ(Error("op", "wrong").kind(), ErrorKind::value);
  const Error index(ErrorKind::index, "op", "wrong", "x", "rule");
  EXPECT_STREQ(index.what(), "op: wrong: x: rule");
  EXPECT_EQ(index.op(), "op");
  EXPECT_EQ(index.kind(), ErrorKind::index);
}

struct DTypeRow {
  DType dtype;
  const char* name;
  int elems, bytes;
};

// The expected rows, written from the formats' definitions, so that the table can't change by
// accident.
constexpr DTypeRow kRows[] = {
    {DType::u8, "u8", 1, 1},
    {DType::u32, "u32", 1, 4},
    {DType::i16, "i16", 1, 2},
    {DType::i32, "i32", 1, 4},
    {DType::i64, "i64", 1, 8},
    {DType::bf16, "bf16", 1, 2},
    {DType::f16, "f16", 1, 2},
    {DType::f32, "f32", 1, 4},
    {DType::f64, "f64", 1, 8},
    {DType::f8e4m3, "f8e4m3", 1, 1},
    {DType::q4_0, "q4_0", 32, 2 + 16},
    {DType::q4_1, "q4_1", 32, 4 + 16},
    {DType::q5_0, "q5_0", 32, 2 + 4 + 16},
    {DType::q5_1, "q5_1", 32, 4 + 4 + 16},
    {DType::q8_0, "q8_0", 32, 2 + 32},
    {DType::q8_1, "q8_1", 32, 4 + 32},
    {DType::q2_k, "q2_k", 256, 16 + 64 + 4},
    {DType::q3_k, "q3_k", 256, 32 + 64 + 12 + 2},
    {DType::q4_k, "q4_k", 256, 4 + 12 + 128},
    {DType::q5_k, "q5_k", 256, 4 + 12 + 32 + 128},
    {DType::q6_k, "q6_k", 256, 128 + 64 + 16 + 2},
    {DType::q8_k, "q8_k", 256, 4 + 256 + 32},
    {DType::iq2_xxs, "iq2_xxs", 256, 2 + 8 * (4 + 4)},
    {DType::iq2_xs, "iq2_xs", 256, 2 + 64 + 8},
    {DType::iq3_xxs, "iq3_xxs", 256, 2 + 64 + 32},
    {DType::iq1_s, "iq1_s", 256, 2 + 32 + 16},
    {DType::iq4_nl, "iq4_nl", 32, 2 + 16},
    {DType::iq3_s, "iq3_s", 256, 2 + 64 + 8 + 32 + 4},
    {DType::iq2_s, "iq2_s", 256, 2 + 32 + 32 + 8 + 8},
    {DType::iq4_xs, "iq4_xs", 256, 2 + 2 + 4 + 128},
    {DType::iq1_m, "iq1_m", 256, 32 + 16 + 8},
    {DType::tq1_0, "tq1_0", 256, 48 + 4 + 2},
    {DType::tq2_0, "tq2_0", 256, 64 + 2},
    {DType::mxfp4, "mxfp4", 32, 1 + 16},
    {DType::nvfp4, "nvfp4", 64, 4 + 32},
    {DType::q1_0, "q1_0", 128, 2 + 16},
    {DType::q2_0, "q2_0", 64, 2 + 16},
    {DType::boolean, "bool", 1, 1},
};

TEST(DType, Table) {
  ASSERT_EQ(std::size(kRows), static_cast<size_t>(kDTypeCount));
  for (int i = 0; i < kDTypeCount; ++i) {
    const DTypeRow& row = kRows[i];
    EXPECT_EQ(static_cast<int>(row.dtype), i);
    EXPECT_EQ(name(row.dtype), row.name);
    EXPECT_EQ(info(row.dtype).block_elems, row.elems) << row.name;
    EXPECT_EQ(info(row.dtype).block_bytes, row.bytes) << row.name;
    EXPECT_EQ(is_block(row.dtype), row.elems > 1) << row.name;
    EXPECT_EQ(is_block(row.dtype), i >= kRealDTypeCount && row.dtype != DType::boolean) << row.name;
    EXPECT_EQ(bytes_of(row.dtype, 512), 512 / row.elems * row.bytes) << row.name;
    EXPECT_EQ(dtypes::kReal.contains(row.dtype), i < kRealDTypeCount) << row.name;
    EXPECT_EQ(stored(row.dtype), row.dtype == DType::boolean ? DType::u8 : row.dtype) << row.name;
    EXPECT_EQ(dtypes::kFloats.contains(row.dtype), is_float(row.dtype)) << row.name;
    EXPECT_EQ(dtypes::kIntegers.contains(row.dtype), is_integer(row.dtype)) << row.name;
  }
  EXPECT_EQ(kRealDTypeCount, 10);
}

TEST(DType, BlocksThatWickMakes) {
  EXPECT_EQ(names(dtypes::kWrittenBlocks), "q4_0, q4_1, q5_0, q5_1, q8_0, q4_k or q6_k");
  EXPECT_EQ(
      names(dtypes::kSearched),
      "q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq2_xxs, iq2_xs, iq3_xxs, iq1_s, "
      "iq4_nl, iq3_s, iq2_s, iq4_xs, iq1_m, tq1_0, tq2_0, mxfp4, nvfp4, q1_0 or q2_0");
  EXPECT_EQ(
      names(dtypes::kWeightFiles),
      "bf16, f16, f32, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq2_xxs, "
      "iq2_xs, iq3_xxs, iq1_s, iq4_nl, iq3_s, iq2_s, iq4_xs, iq1_m, tq1_0, tq2_0, mxfp4, nvfp4, "
      "q1_0 or q2_0");
}

TEST(DType, Parse) {
  for (const DTypeRow& row : kRows) {
    std::string upper = row.name;
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(parse_dtype(row.name), row.dtype);
    EXPECT_EQ(parse_dtype(upper), row.dtype);
  }
  EXPECT_EQ(parse_dtype("q4_K"), DType::q4_k);
  for (const char* wrong : {"", "f", "f3", "f321", " f32", "f32 ", "float", "q4", "q4_0_", "Ā"}) {
    EXPECT_EQ(parse_dtype(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(parse_dtype(std::string_view("f32\0", 4)), std::nullopt);
}

TEST(Device, ParseAndPrint) {
  for (const char* text : {"cpu", "cuda:0", "hip:0", "cuda:12", "hip:2147483647"}) {
    EXPECT_EQ(Device::parse(text).str(), text);
  }
  EXPECT_EQ(Device::parse("cpu:0"), Device::cpu());
  EXPECT_EQ(Device::parse("cuda").str(), "cuda:0");
  EXPECT_NE(Device::parse("cuda:0"), Device::parse("hip:0"));
  EXPECT_NE(Device::parse("cuda:0"), Device::parse("cuda:1"));
  for (const char* wrong : {"", ":", "gpu", "CPU", "cpu:1", "cpu:", "cuda:", "cuda:-1", "cuda:+1",
                            "cuda: 1", "cuda:1 ", "cuda:0x1", "cuda:1:2", "cuda:2147483648"}) {
    EXPECT_EQ(error_of([&] { Device::parse(wrong); }),
              std::string("device: not a device: '") + wrong + "': use cpu, cuda:N or hip:N");
  }
}

TEST(Shape, Basics) {
  const Shape scalar, s{2, 0, 5};
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elems(), 1);
  EXPECT_EQ(scalar.str(), "[]");
  EXPECT_EQ(s.str(), "[2,0,5]");
  EXPECT_EQ(s.elems(), 0);
  EXPECT_EQ(s.back(), 5);
  EXPECT_EQ(s.back(2), 2);
  EXPECT_EQ(s.with(1, 3), (Shape{2, 3, 5}));
  EXPECT_EQ(s.without(1), (Shape{2, 5}));
  EXPECT_EQ(s.without(0).without(0).without(0), Shape{});
  EXPECT_EQ(s.with_inserted(0, 7), (Shape{7, 2, 0, 5}));
  EXPECT_EQ(s.with_inserted(3, 7), (Shape{2, 0, 5, 7}));
  EXPECT_FALSE((Shape{1} == Shape{}));
  EXPECT_FALSE((Shape{1, 2} == Shape{2, 1}));
}

TEST(Shape, Errors) {
  EXPECT_EQ(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
            "shape: too many dimensions: [1,1,1,1,1,1,1,1,1]: at most 8");
  EXPECT_EQ(error_of([] {
              Shape{2, -1};
            }),
            "shape: negative size: [2,-1]: every size must be >= 0");
  const int64_t half = int64_t{1} << 31;
  EXPECT_EQ((Shape{half, half}).elems(), half * half);
  const std::string rule = ": the product must be <= 2^62";
  EXPECT_THAT(error_of([&] { Shape{half, half, 2}; }), HasSubstr(rule));
  EXPECT_THAT(error_of([&] { Shape{INT64_MAX}; }), HasSubstr(rule));
  // A size of 0 doesn't hide an overflow of the other sizes, because strides are computed from
  // them.
  EXPECT_THAT(error_of([&] { Shape{0, INT64_MAX, INT64_MAX}; }), HasSubstr(rule));
  EXPECT_THAT(error_of([&] {
                Shape{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
              }),
              HasSubstr(rule));
  EXPECT_THAT(error_of([] {
                Shape({1, 1, 1, 1, 1, 1, 1, 1}).with_inserted(0, 1);
              }),
              HasSubstr("shape: too many dimensions"));
}

TEST(Shape, ResolveDim) {
  EXPECT_EQ(resolve_dim("op", 1, 3), 1);
  EXPECT_EQ(resolve_dim("op", -3, 3), 0);
  EXPECT_EQ(error_of([] { resolve_dim("op", 3, 3); }),
            "op: dimension out of range: dim 3 of rank 3: need -3 <= dim < 3");
  EXPECT_EQ(error_of([] { resolve_dim("op", -4, 3); }),
            "op: dimension out of range: dim -4 of rank 3: need -3 <= dim < 3");
  EXPECT_THAT(error_of([] { resolve_dim("op", 0, 0); }), HasSubstr("dim 0 of rank 0"));
  EXPECT_THAT(error_of([] { resolve_dim("op", INT32_MIN, 8); }), HasSubstr("out of range"));
}

TEST(Shape, ResolveDims) {
  using Dims = std::vector<int>;
  EXPECT_EQ(resolve_dims("op", Dims{}, 3), 0u);
  EXPECT_EQ(resolve_dims("op", Dims{-1, 0}, 3), 0b101u);
  EXPECT_EQ(resolve_dims("op", Dims{7, 0, 3}, 8), 0b10001001u);
  EXPECT_EQ(error_of([] {
              resolve_dims("op", Dims{0, 2, -1}, 3);
            }),
            "op: dimension named twice: dims (0,2,-1) of rank 3: name each dimension once");
  EXPECT_EQ(error_of([] {
              resolve_dims("op", Dims{0, 3}, 3);
            }),
            "op: dimension out of range: dim 3 of rank 3: need -3 <= dim < 3");
}

TEST(OpTable, RowsAreComplete) {
  std::set<std::string_view> names;
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = kOps[static_cast<size_t>(i)];
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_FALSE(row.doc.empty()) << row.name;
    bool any = false;
    for (int d = 0; d < kDTypeCount; ++d) any |= row.dtypes.contains(static_cast<DType>(d));
    EXPECT_TRUE(any) << row.name << " takes no dtype";
    EXPECT_EQ(name(static_cast<Op>(i)), row.name);
  }
  EXPECT_EQ(info(Op::silu).kind, OpKind::unary);
  EXPECT_EQ(info(Op::silu_mul).kind, OpKind::binary);
  EXPECT_EQ(info(Op::sum).kind, OpKind::reduce);
  EXPECT_EQ(info(Op::argmax).kind, OpKind::arg);
  EXPECT_EQ(info(Op::matmul).kind, OpKind::other);
  EXPECT_EQ(info(Op::matmul).numeric_class, NumericClass::bound);
  EXPECT_EQ(info(Op::linear).numeric_class, NumericClass::blocked);
  // Elementwise and movement ops give the same bits on all targets.
  for (const OpInfo& row : kOps) {
    if (row.kind == OpKind::unary || row.kind == OpKind::binary) {
      EXPECT_EQ(row.numeric_class, NumericClass::exact) << row.name;
    }
  }
}

}  // namespace
}  // namespace wick
