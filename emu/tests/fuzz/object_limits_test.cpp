// Hostile objects are refused, or read, in little time and memory. Each shape is read by a child
// process, whose memory and processor time the kernel counts.

#include <gtest/gtest.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/Compression.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "emu/object/bundle.h"
#include "emu/object/debug_info.h"
#include "emu/object/error.h"
#include "emu/object/limits.h"
#include "emu/object/lines.h"
#include "emu/object/object.h"
#include "emu/tests/fuzz/forge.h"

namespace emu::test {
namespace {

#if !defined(NDEBUG) || __has_feature(address_sanitizer)
constexpr long kMostMegabytes = 1024;  // freed memory stays in a quarantine
constexpr double kMostSeconds = 10;
#else
constexpr long kMostMegabytes = 300;
constexpr double kMostSeconds = 1;
#endif

struct Outcome {
  std::string error;  // empty if nothing was thrown
  double seconds = 0;
  long megabytes = 0;
};

/// Runs `read` in a child process and returns what it threw, and what it needed.
Outcome outcome_of(const std::function<void()>& read) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string error;
    try {
      read();
    } catch (const ObjectError& thrown) {
      error = thrown.what();
    } catch (const std::exception& thrown) {
      error = std::string("not an error of the object: ") + thrown.what();
    }
    _exit(write(ends[1], error.data(), error.size()) == static_cast<ssize_t>(error.size()) ? 0 : 1);
  }
  close(ends[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    outcome.error.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  rusage used;
  EXPECT_EQ(wait4(child, &status, 0, &used), child);
  EXPECT_EQ(status, 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  outcome.seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  outcome.megabytes = used.ru_maxrss / 1024;
  return outcome;
}

void expect_cheap(const std::string& name, const std::string& error,
                  const std::function<void()>& read) {
  const Outcome outcome = outcome_of(read);
  printf("%-30s %.2f s, %ld MB: %s\n", name.c_str(), outcome.seconds, outcome.megabytes,
         outcome.error.c_str());
  if (error.empty()) {
    EXPECT_EQ(outcome.error, "") << name;
  } else {
    EXPECT_NE(outcome.error.find(error), std::string::npos) << name << ": " << outcome.error;
  }
  EXPECT_LT(outcome.error.size(), 1000u) << name;
  EXPECT_LT(outcome.seconds, kMostSeconds) << name;
  EXPECT_LT(outcome.megabytes, kMostMegabytes) << name;
}

TEST(ObjectLimits, HostileObjects) {
  hostile_shapes(100, [](const Shape& shape) {
    expect_cheap(shape.name, shape.error, [&] { read_object(shape.object); });
  });
}

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void find_no_line(const std::vector<uint8_t>& object) {
  const std::string line = Lines::of(object)->at(Forge::kCode);
  if (!line.empty()) throw std::runtime_error("a line was found: " + line);
}

TEST(ObjectLimits, HostileLines) {
  hostile_lines(100, [](const Shape& shape, const Debug& debug) {
    expect_cheap(shape.name, "", [&] {
      read_object(shape.object);
      find_no_line(shape.object);
    });
    expect_cheap(shape.name, shape.error, [&] {
      check_debug_info({.info = bytes_of(debug.info),
                        .types = {},
                        .abbreviations = bytes_of(debug.abbreviations),
                        .lines = bytes_of(debug.lines),
                        .ranges = bytes_of(debug.ranges),
                        .range_lists = {}});
    });
  });
}

TEST(ObjectLimits, DebugSectionsOfOneRange) {
  Forge forge;
  std::string units;
  for (int i = 0; i < 10000; ++i) units += std::string{8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 0};
  forge.add_debug(".debug_info", units);
  for (int i = 0; i < 60000; ++i) forge.sections.push_back(forge.sections.back());
  const std::vector<uint8_t> object = forge.finish();
  expect_cheap("debug sections of one range", "", [&] { find_no_line(object); });
}

TEST(ObjectLimits, PackedSectionsThatLie) {
  Forge forge;
  std::string header;
  for (const uint64_t word : {uint64_t{1}, uint64_t{1} << 62, uint64_t{1}}) append(header, word);
  forge.add_debug(".debug_info", header + "xxxxxxxx");
  constexpr uint64_t kCompressed = 1 << 11;  // SHF_COMPRESSED
  forge.sections.back().flags = kCompressed;
  const std::vector<uint8_t> object = forge.finish();
  expect_cheap("packed section", "", [&] { find_no_line(object); });
}

TEST(ObjectLimits, ManyKernelsAreFound) {
  Forge forge;
  forge.add_kernels(1000);
  forge.load_all();
  const CodeObject object = read_object(forge.finish());
  ASSERT_EQ(object.kernels.size(), 1000u);
  EXPECT_EQ(object.kernels[999].name, "k999");
  EXPECT_EQ(object.kernels[999].entry, Forge::kCode);
  EXPECT_EQ(object.kernels[999].descriptor, object.kernels[0].descriptor + 999 * 64);
}

/// A gigabyte of zeros, which zstd packs into less than a megabyte.
TEST(ObjectLimits, BundlesThatUnpackToAGigabyte) {
  namespace zstd = llvm::compression::zstd;
  if (!zstd::isAvailable()) GTEST_SKIP() << "LLVM was built without zstd";
  const uint32_t size = 1 << 30;
  std::vector<uint8_t> packed(24);
  {
    const std::vector<uint8_t> zeros(size);
    llvm::SmallVector<uint8_t, 0> data;
    zstd::compress(zeros, data, 1);
    packed.insert(packed.end(), data.begin(), data.end());
  }
  const auto put = [&](size_t at, auto value) {
    std::memcpy(packed.data() + at, &value, sizeof value);
  };
  std::memcpy(packed.data(), kPackedMagic, 4);
  put(4, uint16_t{2});
  put(6, uint16_t{1});  // zstd
  put(8, static_cast<uint32_t>(packed.size()));
  put(12, size);
  expect_cheap("packed", "a packed bundle of more than 128 times its size",
               [&] { select_image(packed, *parse_target("gfx1100")); });
}

/// Headers that claim a gigabyte, at the end of the memory that is mapped.
TEST(ObjectLimits, ImagesInMemoryThatClaimAGigabyte) {
  const long page = sysconf(_SC_PAGESIZE);
  void* const pages = mmap(nullptr, static_cast<size_t>(2 * page), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const image = static_cast<uint8_t*>(pages);
  ASSERT_EQ(munmap(image + page, static_cast<size_t>(page)), 0);
  Forge forge;
  forge.sections.push_back({Forge::kStrtab, 0, 0, kMostFile, 0});
  const std::vector<uint8_t> elf = forge.finish();
  std::memcpy(image, elf.data(), elf.size());
  expect_cheap("ELF in memory", "an image cut short", [&] { copy_image(image); });

  std::string bundle = kBundleMagic;
  for (const uint64_t word : {uint64_t{1}, uint64_t{0}, kMostFile, uint64_t{0}})
    append(bundle, word);
  std::memcpy(image, bundle.data(), bundle.size());
  expect_cheap("bundle in memory", "an image cut short", [&] { copy_image(image); });
  munmap(image, static_cast<size_t>(page));
}

}  // namespace
}  // namespace emu::test
