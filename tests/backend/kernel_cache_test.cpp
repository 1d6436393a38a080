// The disk cache of compiled kernels: hits, damaged entries, size limits, and concurrent processes.

#include "wick/backend/gpu/compile/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace wick::gpu {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLimit = 1 << 20;

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wick-kernel-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path folder() const { return root_ / "made" / "when needed"; }
  fs::path entry(const std::string& key) const { return folder() / (key + ".kernel"); }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  /// Sets the time of a file's last use to `seconds` seconds ago.
  static void set_age(const fs::path& path, int seconds) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }

  fs::path root_;
};

TEST_F(KernelCacheTest, GivesBackWhatWasStored) {
  const KernelCache cache(folder(), kLimit);
  EXPECT_FALSE(cache.load("a"));
  const std::string image("an image\0with a zero", 20);
  cache.store("a", image);
  cache.store("b", "");
  EXPECT_EQ(cache.load("a"), image);
  EXPECT_EQ(cache.load("b"), "");
  EXPECT_FALSE(cache.load("c"));
  cache.store("a", "another");
  EXPECT_EQ(cache.load("a"), "another");
  EXPECT_EQ(KernelCache(folder(), kLimit).load("a"), "another");
  EXPECT_EQ(files(), 2u);  // no unfinished file is left
}

TEST_F(KernelCacheTest, DamageIsAMiss) {
  const KernelCache cache(folder(), kLimit);
  const std::string image(1000, 'x');
  cache.store("a", image);
  const std::string whole = read(entry("a"));
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write(entry("a"), damaged);
    ASSERT_FALSE(cache.load("a")) << "byte " << at;
  }
  for (const size_t length : {size_t{0}, size_t{5}, size_t{45}, whole.size() - 1}) {
    write(entry("a"), whole.substr(0, length));
    ASSERT_FALSE(cache.load("a")) << length << " bytes";
  }
  write(entry("a"), whole + "x");
  EXPECT_FALSE(cache.load("a"));
  // The entry has the name of another kernel.
  write(entry("b"), whole);
  EXPECT_FALSE(cache.load("b"));
  fs::remove(entry("a"));
  fs::create_directory(entry("a"));
  EXPECT_FALSE(cache.load("a"));
  fs::remove(entry("a"));
  write(entry("a"), "rubbish");
  cache.store("a", image);
  EXPECT_EQ(cache.load("a"), image);
}

TEST_F(KernelCacheTest, WhatWasNotUsedForLongestGoesFirst) {
  const KernelCache cache(folder(), 3500);
  const std::string image(1000, 'x');
  for (const char* key : {"a", "b", "c"}) cache.store(key, image);
  set_age(entry("a"), 300);
  set_age(entry("b"), 200);
  set_age(entry("c"), 100);
  EXPECT_TRUE(cache.load("a"));  // "a" is used now, so "b" is the oldest
  cache.store("d", image);
  EXPECT_TRUE(cache.load("a"));
  EXPECT_FALSE(cache.load("b"));
  EXPECT_TRUE(cache.load("c"));
  EXPECT_TRUE(cache.load("d"));
  cache.store("large", std::string(4000, 'x'));
  EXPECT_FALSE(cache.load("large"));
  EXPECT_EQ(files(), 3u);
}

TEST_F(KernelCacheTest, LeavesFilesThatAreNotItsOwn) {
  const KernelCache cache(folder(), 1500);
  cache.store("a", "x");
  write(folder() / "notes", std::string(5000, 'x'));
  write(folder() / ".unfinished-old", "x");
  write(folder() / ".unfinished-new", "x");
  set_age(folder() / "notes", 100'000);
  set_age(folder() / ".unfinished-old", 100'000);
  cache.store("b", std::string(1000, 'x'));
  EXPECT_TRUE(fs::exists(folder() / "notes"));
  EXPECT_FALSE(fs::exists(folder() / ".unfinished-old"));
  EXPECT_TRUE(fs::exists(folder() / ".unfinished-new"));
  EXPECT_TRUE(cache.load("a"));
}

TEST_F(KernelCacheTest, AFolderThatCannotBeMadeKeepsNothing) {
  write(root_ / "file", "");
  const KernelCache under_a_file(root_ / "file" / "kernels", kLimit);
  under_a_file.store("a", "x");
  EXPECT_FALSE(under_a_file.load("a"));
  const KernelCache none("", kLimit);
  none.store("a", "x");
  EXPECT_FALSE(none.load("a"));
  if (geteuid() == 0) return;  // root may write everywhere
  ASSERT_EQ(chmod(root_.c_str(), 0500), 0);
  const KernelCache read_only(root_ / "kernels", kLimit);
  read_only.store("a", "x");
  EXPECT_FALSE(read_only.load("a"));
  ASSERT_EQ(chmod(root_.c_str(), 0700), 0);
}

/// Stores and loads a few keys until it is killed. Exits with 1 if a loaded value is wrong.
[[noreturn]] void use_until_killed(const KernelCache& cache, unsigned seed) {
  for (unsigned i = seed;; i = i * 1664525u + 1013904223u) {
    const std::string key = std::to_string(i >> 16 & 15);
    const std::string image(size_t{1000} * (1 + (i >> 16 & 15)), static_cast<char>(i >> 16 & 15));
    if (const auto found = cache.load(key); found && *found != image) _exit(1);
    if ((i >> 24 & 3) == 0) cache.store(key, image);
  }
}

TEST_F(KernelCacheTest, ManyProcessesMayUseItAndBeKilled) {
  const KernelCache cache(folder(), 60'000);  // less than all keys take
  for (unsigned round = 0; round < 5; ++round) {
    std::vector<pid_t> children;
    for (unsigned i = 0; i < 4; ++i) {
      children.push_back(fork());
      if (children.back() == 0) use_until_killed(cache, round * 17 + i);
    }
    usleep(60'000);
    for (const pid_t child : children) {
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status)) << "a wrong image";
    }
  }
  cache.store("last", "x");  // a killed process may have stored more than the limit allows
  EXPECT_TRUE(cache.load("last"));
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder())) {
    if (file.path().extension() == ".kernel") bytes += file.file_size();
  }
  EXPECT_LE(bytes, 60'000u);
}

}  // namespace
}  // namespace wick::gpu
