// Kernels that call their host: printf through packets and through a buffer, the message of a
// failed assertion, malloc and free.

#include <algorithm>
#include <cinttypes>

#include "emu/tests/hip_support.h"

namespace {

/// Returns what `work` prints on a stream.
template <class Work>
std::string out_of(const Work& work) {
  testing::internal::CaptureStdout();
  work();
  return testing::internal::GetCapturedStdout();
}
template <class Work>
std::string err_of(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// The name of a file of kernels for the first device.
std::string file_of(const std::string& name, const std::string& version) {
  return name + "." + first_device() + version + ".hsaco";
}

struct Text {
  explicit Text(const std::string& text) : buffer(text.size() + 1) {
    buffer.set(std::vector<char>(text.c_str(), text.c_str() + text.size() + 1));
  }
  Buffer<char> buffer;
};

std::vector<std::string> lines_of_lanes(int from, int count, const std::string& name) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) lines.push_back(name + ": " + std::to_string(from + i));
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Runs each test for code object version 4, 5 and 6, which differ in the hidden arguments.
class HipHostcall : public testing::TestWithParam<const char*> {
 protected:
  Kernels kernels{file_of("hostcall", GetParam())};
  Kernels buffered{file_of("print_buffer", GetParam())};
};
INSTANTIATE_TEST_SUITE_P(, HipHostcall, testing::Values(".v4", ".v5", ".v6"),
                         [](const auto& info) { return std::string(info.param + 1); });

TEST_P(HipHostcall, EveryLanePrints) {
  const Text name("lane");
  const std::string said = out_of([&] {
    HIP_OK(launch(kernels["say_lanes"], 1, 100, 0, nullptr, -50, name.buffer.data));
    HIP_OK(hipDeviceSynchronize());
  });
  EXPECT_EQ(sorted_lines(said), lines_of_lanes(-50, 100, "lane"));
}

TEST_P(HipHostcall, MoreWavesThanPackets) {
  const Text name("w");
  const std::string said = out_of([&] {
    HIP_OK(launch(kernels["say_lanes"], 40, 256, 0, nullptr, 0, name.buffer.data));
    HIP_OK(hipDeviceSynchronize());
  });
  std::vector<std::string> expected;
  for (int group = 0; group < 40; ++group) {
    for (int i = 0; i < 256; ++i) expected.push_back("w: " + std::to_string(i));
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted_lines(said), expected);
}

TEST_P(HipHostcall, FormatsLikePrintf) {
  const Text word("a text of more than eight bytes");
  const std::string said = out_of([&] {
    HIP_OK(launch(kernels["say_types"], 1, 1, 0, nullptr, word.buffer.data));
    HIP_OK(hipDeviceSynchronize());
  });
  char expected[600];
  int bytes =
      std::snprintf(expected, sizeof expected, "%d %u %x %#o %c|", -7, 4000000000u, 0xabc, 8, 'q');
  const auto add = [&](const char* format, auto... values) {
    bytes += std::snprintf(expected + bytes, sizeof expected - static_cast<size_t>(bytes), format,
                           values...);
  };
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
#pragma clang diagnostic ignored "-Wformat-security"
  add("%ld %lu %hhd %hd|", -5000000000l, ~0ul, static_cast<signed char>(300),
      static_cast<short>(70000));
  add("%f %.3e %g %a|", 1.5, 12345.678, 0.0001, 2.0);
  add("%8.2f|%-8d|%+d|%08x|%*d|%-*.*f|", 3.14159, 5, 6, 0xbeef, 6, 42, 9, 2, 2.71828);
  add("%s|%10s|%-5s|%.2s|0x1234|%%|", "a text of more than eight bytes", "right", "l", "cut");
  add("%f\n", 0.25);
#pragma clang diagnostic pop
  EXPECT_EQ(said, expected);
}

TEST_P(HipHostcall, LongTextsTakeSeveralPackets) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>('a' + i % 26);
  for (const size_t length : {0, 1, 7, 8, 55, 56, 57, 111, 112, 500}) {
    const Text part(text.substr(0, length));
    EXPECT_EQ(out_of([&] {
                HIP_OK(launch(kernels["say_long"], 1, 1, 0, nullptr, part.buffer.data));
                HIP_OK(hipDeviceSynchronize());
              }),
              "<" + text.substr(0, length) + ">");
  }
}

TEST_P(HipHostcall, LanesInBranches) {
  Buffer<unsigned> limit(1);
  limit.set({10});
  const std::string said = out_of([&] {
    HIP_OK(launch(kernels["say_in_branches"], 1, 64, 0, nullptr, limit.data));
    HIP_OK(hipDeviceSynchronize());
  });
  std::vector<std::string> expected;
  for (int i = 0; i < 64; ++i) {
    if (i < 10) {
      expected.push_back("low " + std::to_string(i));
    } else if (i % 2 == 1) {
      expected.push_back("odd " + std::to_string(i));
    }
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted_lines(said), expected);
}

TEST_P(HipHostcall, AMissingStringIsEmpty) {
  EXPECT_EQ(out_of([&] {
              HIP_OK(launch(kernels["say_missing"], 1, 1, 0, nullptr, 0));
              HIP_OK(hipDeviceSynchronize());
            }),
            "none 1 and ");
}

TEST_P(HipHostcall, AFailedAssertionPrintsAndFails) {
  const std::string said = err_of([&] {
    HIP_OK(launch(kernels["fail_above"], 1, 32, 0, nullptr, 31u));
    EXPECT_EQ(hipErrorLaunchFailure, hipDeviceSynchronize());
  });
  EXPECT_EQ(said.find("a file:31: it fails\n"), 0u) << said;
  EXPECT_NE(said.find("trap"), said.npos) << said;
  (void)hipGetLastError();
  HIP_OK(launch(kernels["fail_above"], 1, 32, 0, nullptr, 32u));
  HIP_OK(hipDeviceSynchronize());
}

TEST_P(HipHostcall, AllocatesAndFrees) {
  size_t before = 0, during = 0, after = 0, total = 0;
  Buffer<unsigned*> blocks(96);
  Buffer<unsigned> sums(96);
  HIP_OK(hipMemGetInfo(&before, &total));
  HIP_OK(launch(kernels["take_memory"], 3, 32, 0, nullptr, blocks.data, 25u));
  HIP_OK(hipDeviceSynchronize());
  HIP_OK(hipMemGetInfo(&during, &total));
  EXPECT_LE(during + 96 * 100, before);
  std::vector<unsigned*> all = blocks.get();
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_NE(all.front(), nullptr);
  // Callers can't free a kernel's memory.
  EXPECT_EQ(hipErrorInvalidValue, hipFree(all.front()));
  HIP_OK(launch(kernels["give_memory"], 3, 32, 0, nullptr, blocks.data, sums.data, 25u));
  HIP_OK(hipDeviceSynchronize());
  std::vector<unsigned> expected;
  for (unsigned i = 0; i < 96; ++i) expected.push_back(25 * i);
  EXPECT_EQ(sums.get(), expected);
  HIP_OK(hipMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
}

TEST_P(HipHostcall, NoMemoryIsNull) {
  Buffer<unsigned*> blocks(1);
  Buffer<uint64_t> answer(2);
  HIP_OK(
      launch(kernels["call"], 1, 1, 0, nullptr, 3u, uint64_t{0}, uint64_t{1} << 60, answer.data));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(answer.get()[0], 0u);
}

/// Runs a kernel that must fail and returns its message.
template <class... Arguments>
std::string failure_of(hipFunction_t kernel, Arguments... arguments) {
  const std::string said = err_of([&] {
    EXPECT_EQ(hipSuccess, launch(kernel, 1, 1, 0, nullptr, arguments...));
    EXPECT_EQ(hipErrorLaunchFailure, hipDeviceSynchronize());
  });
  (void)hipGetLastError();
  return said;
}

TEST_P(HipHostcall, WhatTheHostRefuses) {
  Buffer<uint64_t> answer(2);
  Buffer<int> mine(1);
  const auto call = [&](unsigned service, uint64_t a, uint64_t b) {
    return failure_of(kernels["call"], service, a, b, answer.data);
  };
  EXPECT_NE(call(1, 0x1234, 0).find("service 1, which isn't supported"), std::string::npos);
  EXPECT_NE(call(77, 0, 0).find("service 77"), std::string::npos);
  EXPECT_NE(call(2, 0x500, 0).find("that hasn't begun"), std::string::npos);
  EXPECT_NE(call(2, ~uint64_t{1}, 0).find("that hasn't begun"), std::string::npos);
  const auto free_at = [&](const void* address) {
    return failure_of(kernels["free_at"], reinterpret_cast<uint64_t>(address));
  };
  EXPECT_NE(free_at(mine.data).find("isn't allocated by a kernel"), std::string::npos);
  EXPECT_NE(free_at(&answer).find("isn't allocated by a kernel"), std::string::npos);
  // A stream that doesn't exist is an error of printf.
  HIP_OK(launch(kernels["call"], 1, 1, 0, nullptr, 2u, uint64_t{0x23}, uint64_t{2}, answer.data));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(answer.get()[0], ~uint64_t{0});
}

TEST_P(HipHostcall, ASpoiledBufferEndsItsKernelOnly) {
  EXPECT_NE(failure_of(kernels["spoil"], 16u), "");
  const Text name("still");
  EXPECT_EQ(out_of([&] {
              HIP_OK(launch(kernels["say_lanes"], 1, 1, 0, nullptr, 3, name.buffer.data));
              HIP_OK(hipDeviceSynchronize());
            }),
            "still: 3\n");
}

TEST_P(HipHostcall, PrintsThroughABuffer) {
  const Text name("lane");
  const std::string said = out_of([&] {
    HIP_OK(launch(buffered["say_lanes"], 2, 50, 0, nullptr, 7, name.buffer.data));
    HIP_OK(hipDeviceSynchronize());
  });
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    char line[80];
    std::snprintf(line, sizeof line, "lane: %d, constant, %.2f", 7 + i % 50, 0.25 * (i % 50));
    expected.emplace_back(line);
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted_lines(said), expected);
  const Text format("%d or more!");
  EXPECT_EQ(out_of([&] {
              HIP_OK(launch(buffered["say_format"], 1, 1, 0, nullptr, format.buffer.data));
              HIP_OK(hipDeviceSynchronize());
            }),
            "17 or more!");
}

TEST(HipHostcallOfOpenCl, PrintsThroughABuffer) {
  if (first_device() != "gfx1100") GTEST_SKIP() << "its kernel is for gfx1100 only";
  const Kernels kernels("print_opencl.gfx1100.hsaco");
  struct alignas(16) Vector {
    float x, y, z, w;
  };
  EXPECT_EQ(out_of([&] {
              HIP_OK(launch(kernels["say"], 1, 2, 0, nullptr, 7, Vector{1, 2, 3, 4.5f}));
              HIP_OK(hipDeviceSynchronize());
            }),
            "item: 7 1.50 literal 1.000000,2.000000,3.000000,4.500000 5000000000\t100%\n"
            "item: 8 1.50 literal 1.000000,2.000000,3.000000,4.500000 5000000000\t100%\n");
}

TEST_P(HipHostcall, AFullBufferDropsTheRest) {
  size_t limit = 0;
  HIP_OK(hipDeviceGetLimit(&limit, hipLimitPrintfFifoSize));
  HIP_OK(hipDeviceSetLimit(hipLimitPrintfFifoSize, 256));
  const Text name("n");
  const std::string said = out_of([&] {
    HIP_OK(launch(buffered["say_lanes"], 1, 64, 0, nullptr, 0, name.buffer.data));
    HIP_OK(hipDeviceSynchronize());
  });
  HIP_OK(hipDeviceSetLimit(hipLimitPrintfFifoSize, limit));
  const size_t lines = sorted_lines(said).size();
  EXPECT_GT(lines, 1u);
  EXPECT_LT(lines, 10u);
}

TEST_P(HipHostcall, RecordsThatCantBeRead) {
  for (const unsigned control : {0u, 3u, 2u << 2, 0xfffffffcu, 12u << 2 | 2, 100u << 2 | 2}) {
    const std::string said = err_of([&] {
      HIP_OK(launch(buffered["spoil"], 1, 1, 0, nullptr, control));
      HIP_OK(hipDeviceSynchronize());
    });
    EXPECT_NE(said.find("isn't a record"), said.npos) << control;
  }
}

}  // namespace
