// Kernels of custom ops without a device: launch geometry, sources that are generated from texts,
// and checks of code objects.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/backend/custom_kernels.h"
#include "tests/expect_error.h"
#include "wick/backend/gpu/compile/compiler.h"
#include "wick/backend/gpu/custom/custom_text.h"
#include "wick/backend/gpu/custom/object_file.h"

namespace wick::gpu {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr LaunchLimits kLimits = {.block_threads = 1024,
                                  .threads = {1024, 1024, 64},
                                  .blocks = {INT32_MAX, 65535, 65535},
                                  .in_grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                  .shared_bytes = 65536};

std::string grid_error(const KernelGrid& grid, int64_t threads = 0, int64_t shared_bytes = 0) {
  return error_of([&] { check_grid("op", grid, kLimits, threads, shared_bytes); });
}

TEST(CustomGrid, LimitsAreNamed) {
  EXPECT_EQ(grid_error({}), "no error");
  EXPECT_EQ(grid_error({.blocks = {INT32_MAX, 1, 1}, .threads = {2, 1, 1}}), "no error");
  EXPECT_EQ(grid_error({.threads = {16, 16, 4}}), "no error");
  EXPECT_EQ(
      grid_error({.blocks = {0, 1, 1}}),
      "op: a grid without threads: 0x1x1 blocks of 256x1x1 threads, 0 bytes of shared memory: "
      "need at least one block of one thread");
  EXPECT_THAT(grid_error({.threads = {-1, 1, 1}}), HasSubstr("a grid without threads"));
  EXPECT_THAT(grid_error({.blocks = {1, 1, INT64_MIN}}), HasSubstr("a grid without threads"));
  EXPECT_THAT(grid_error({.threads = {1025, 1, 1}}), AllOf(HasSubstr("too many threads in a block"),
                                                           HasSubstr("the limit along x is 1024")));
  EXPECT_THAT(grid_error({.threads = {1, 1, 65}}), HasSubstr("the limit along z is 64"));
  EXPECT_THAT(grid_error({.threads = {1024, 2, 1}}), HasSubstr("the device's limit is 1024"));
  EXPECT_THAT(grid_error({.threads = {INT64_MAX, 1, 1}}), HasSubstr("too many threads"));
  EXPECT_THAT(grid_error({.blocks = {1, 65536, 1}}),
              AllOf(HasSubstr("too many blocks"), HasSubstr("the limit along y is 65535")));
  // 2^32 + 1 blocks would be one block if they were cut to 32 bits.
  EXPECT_THAT(grid_error({.blocks = {(int64_t{1} << 32) + 1, 1, 1}}), HasSubstr("too many blocks"));
  EXPECT_THAT(grid_error({.blocks = {1 << 24, 1, 1}, .threads = {256, 1, 1}}),
              AllOf(HasSubstr("too many threads in the grid"), HasSubstr("4294967295")));
  EXPECT_THAT(grid_error({.threads = {256, 1, 1}}, 128),
              HasSubstr("the kernel's limit is 128, by its registers or launch bounds"));
  EXPECT_EQ(grid_error({.shared_bytes = 65536}), "no error");
  EXPECT_THAT(grid_error({.shared_bytes = 65537}),
              AllOf(HasSubstr("too much shared memory"), HasSubstr("limit is 65536 bytes")));
  EXPECT_THAT(grid_error({.shared_bytes = 65536}, 0, 4), HasSubstr("the kernel itself uses 4"));
  EXPECT_THAT(grid_error({.shared_bytes = -1}), HasSubstr("a negative size of shared memory"));
  EXPECT_THAT(grid_error({.shared_bytes = INT64_MAX}), HasSubstr("too much shared memory"));
}

TEST(CustomGrid, OverElements) {
  EXPECT_EQ(KernelGrid::over(1).blocks[0], 1);
  EXPECT_THAT(grid_error(KernelGrid::over(0)), HasSubstr("a grid without threads: 0x1x1 blocks"));
  EXPECT_THAT(grid_error(KernelGrid::over(-5)), HasSubstr("a grid without threads: -5x1x1 blocks"));
  EXPECT_EQ(KernelGrid::over(256).blocks[0], 1);
  EXPECT_EQ(KernelGrid::over(257).blocks[0], 2);
  EXPECT_EQ(KernelGrid::over(INT64_MAX).blocks[0], (INT64_MAX - 1) / 256 + 1);
  EXPECT_THAT(grid_error(KernelGrid::over(INT64_MAX)), HasSubstr("too many blocks"));
  EXPECT_THAT(grid_error(KernelGrid::over(5, 0)), HasSubstr("a grid without threads"));
}

ConstView some(DType dtype, const Layout& layout = Layout::contiguous({2, 3})) {
  return {nullptr, dtype, layout};
}

std::string source_error(const KernelText& text, const std::vector<KernelArgument>& arguments,
                         const KernelGrid& grid = {}) {
  return error_of(
      [&] { source_of({.op = "op", .text = &text, .grid = grid, .arguments = arguments}); });
}

TEST(CustomText, NamesAreChecked) {
  const KernelText text{.body = ""};
  for (const char* name : {"", "two words", "1x", "_x", "x;int y", "x\n", "\xc3\xa4"}) {
    EXPECT_THAT(source_error(text, {{name, some(DType::f32)}}), HasSubstr("op: not a name for a"));
    EXPECT_THAT(source_error({.body = "", .constants = {{name, 1}}}, {}), HasSubstr("not a name"));
  }
  EXPECT_THAT(source_error(text, {{"x", 1}, {"x", 2}}), HasSubstr("a name is given twice"));
  EXPECT_THAT(source_error(text, {{"x", some(DType::f32)}, {"x_shape", 2}}), HasSubstr("x_shape"));
  EXPECT_THAT(source_error({.body = std::string("a\0b", 3)}, {}), HasSubstr("a zero byte"));
  EXPECT_THAT(source_error({.body = "", .header = std::string(1, '\0')}, {}),
              HasSubstr("a zero byte"));
  EXPECT_THAT(source_error(text, {}, {.threads = {8, 8, 1}}), HasSubstr("threads along one axis"));
}

/// The source depends on dtypes, ranks, constants and the threads of a block, and on nothing else.
TEST(CustomText, SourcesOfLaunches) {
  const KernelText text{.body = "body();", .constants = {{"n", 5}}};
  const auto source = [&](const KernelText& t, const ConstView& x, int64_t threads = 256) {
    const std::vector<KernelArgument> arguments = {{"x", x}, {"by", 1.5f}};
    return source_of(
        {.op = "op", .text = &t, .grid = {.threads = {threads, 1, 1}}, .arguments = arguments});
  };
  const std::string first = source(text, some(DType::f32));
  EXPECT_EQ(first, source(text, some(DType::f32, Layout::contiguous({7, 9}, 3))));
  EXPECT_NE(first, source(text, some(DType::f16)));
  EXPECT_NE(first, source(text, some(DType::f32, Layout::contiguous({6}))));
  EXPECT_NE(first, source({.body = "body();", .constants = {{"n", 6}}}, some(DType::f32)));
  EXPECT_NE(first, source({.body = "body();", .constants = {{"n", 5u}}}, some(DType::f32)));
  EXPECT_NE(first, source(text, some(DType::f32), 128));
  EXPECT_THAT(first, HasSubstr("#line 1 \"custom_op.body\"\nbody();"));
}

/// Launches have the same key if and only if they have the same source.
TEST(CustomText, KeysOfLaunches) {
  std::vector<KernelText> texts = {{.body = "a"}, {.body = "b"}, {.body = "a", .header = "a"}};
  for (const auto& value : {KernelConstant{"n", 1}, KernelConstant{"n", 2}, KernelConstant{"n", 1u},
                            KernelConstant{"m", 1}, KernelConstant{"n", true},
                            KernelConstant{"n", DType::f32}, KernelConstant{"n", DType::f16}}) {
    texts.push_back({.body = "a", .constants = {value}});
  }
  const View out{nullptr, DType::f32, Layout::contiguous({2, 3})};
  const std::vector<std::vector<KernelArgument>> arguments = {
      {},
      {{"x", some(DType::f32)}},
      {{"x", some(DType::f32, Layout::contiguous({5, 4}, 2))}},
      {{"x", out}},
      {{"y", some(DType::f32)}},
      {{"x", some(DType::f16)}},
      {{"x", some(DType::f32, Layout::contiguous({6}))}},
      {{"x", 1.0f}},
      {{"x", 2.0f}},
      {{"x", 1.0}},
      {{"x", some(DType::f32)}, {"y", 1}},
  };
  std::map<std::string, std::string> source_by_key, key_by_source;
  for (const char* op : {"op", "other"}) {
    for (const KernelText& text : texts) {
      for (const auto& list : arguments) {
        for (const int64_t threads : {64, 256}) {
          const KernelLaunch launch{
              .op = op, .text = &text, .grid = {.threads = {threads, 1, 1}}, .arguments = list};
          const std::string key = key_of(launch), source = source_of(launch);
          EXPECT_EQ(source_by_key.try_emplace(key, source).first->second, source);
          EXPECT_EQ(key_by_source.try_emplace(source, key).first->second, key) << source;
        }
      }
    }
  }
  EXPECT_EQ(source_by_key.size(), 2 * 10 * 9 * 2u);
}

TEST(CustomText, ArgumentsOfCodeObjectsAreLaidOutAsInC) {
  const std::vector<KernelArgument> arguments = {
      {"a", true},
      {"b", int32_t{-2}},
      {"c", View{reinterpret_cast<void*>(16), DType::f32, {}}},
      {"d", 1.0f},
      {"e", 2.0}};
  struct Expected {
    bool a = true;
    int32_t b = -2;
    uint64_t c = 16;
    float d = 1;
    double e = 2;
  } expected;
  const std::vector<std::byte> bytes = packed_arguments(arguments);
  ASSERT_EQ(bytes.size(), sizeof expected);
  Expected found;
  std::memcpy(&found, bytes.data(), sizeof found);
  EXPECT_TRUE(found.a && found.b == -2 && found.c == 16 && found.d == 1 && found.e == 2);
  EXPECT_TRUE(packed_arguments({}).empty());
}

TEST(CustomText, CompilesForNvidia) {
  const Compiler* const compiler = Compiler::of(DeviceKind::cuda);
  if (compiler == nullptr) GTEST_SKIP() << "no NVRTC: " << Compiler::missing(DeviceKind::cuda);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    const std::vector<KernelArgument> arguments = {
        {"x", some(dtype)},
        {"y", View{nullptr, DType::f32, Layout::contiguous({4})}},
        {"offset", 1.0f}};
    const std::string source = source_of({.op = "op",
                                          .text = &everything(),
                                          .grid = {.threads = {64, 1, 1}},
                                          .arguments = arguments});
    for (const char* device : {"sm_80", "sm_90"}) {
      EXPECT_EQ(
          error_of([&] {
            EXPECT_EQ(
                compiler->compile({"op.gpu", source, &kernel_sources()}, compiler->target(device))
                    .substr(0, 4),
                "\177ELF");
          }),
          "no error");
    }
  }
}

/// An ELF file for AMD GPUs, with a segment and a section that have the same 32 bytes.
std::string small_elf() {
  constexpr size_t kSegments = 64, kBytes = kSegments + 56, kSections = kBytes + 32;
  std::string file(kSections + 2 * 64, '\0');
  const auto put = [&file](size_t at, auto value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  };
  std::memcpy(file.data(), "\177ELF\2\1\1", 7);
  put(18, uint16_t{224});
  put(32, uint64_t{kSegments});
  put(40, uint64_t{kSections});
  for (const auto& [at, value] :
       {std::pair<size_t, uint16_t>{52, 64}, {54, 56}, {56, 1}, {58, 64}, {60, 2}, {62, 1}}) {
    put(at, value);
  }
  put(kSegments + 8, uint64_t{kBytes});
  put(kSegments + 32, uint64_t{32});
  put(kSections + 64 + 24, uint64_t{kBytes});
  put(kSections + 64 + 32, uint64_t{32});
  return file;
}

/// Every truncation of a code object, and bytes that aren't code, are errors.
void check_refusals(const std::string& code) {
  const auto check = [](const std::string& bytes, DeviceKind kind = DeviceKind::hip) {
    return error_of([&] { check_code("op", kind, bytes); });
  };
  EXPECT_EQ(check(code), "no error");
  for (size_t size = 0; size < code.size(); size += size < 4096 ? 1 : 97) {
    EXPECT_NE(check(code.substr(0, size)), "no error") << size;
  }
  EXPECT_THAT(check(""), HasSubstr("op: no code"));
  EXPECT_THAT(check("hello"), HasSubstr("op: not a code object: 5 bytes: need an ELF"));
  EXPECT_THAT(check(code, DeviceKind::cuda), HasSubstr("for other processors: ELF machine 224"));
  EXPECT_THAT(check("hello", DeviceKind::cuda), HasSubstr("need PTX or a cubin"));
  EXPECT_EQ(check(".version 8.0\n.target sm_80\n", DeviceKind::cuda), "no error");
  EXPECT_NE(check(std::string(".version 8.0\n.target sm_80\n\0", 28), DeviceKind::cuda),
            "no error");
  // Bytes of the header in any state are either accepted or refused, without reading outside.
  for (size_t at = 16; at < 64; ++at) {
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string damaged = code;
      damaged[at] = value;
      check(damaged);
    }
  }
}

TEST(CustomCode, WhatIsNotCodeIsRefused) {
  check_refusals(small_elf());
  std::string chosen;
  if (const auto images = find_images("gfx1100", chosen)) check_refusals(images->at("iota"));
}

}  // namespace
}  // namespace wick::gpu
