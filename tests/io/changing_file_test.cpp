// Files that are truncated, overwritten or extended while they are mapped. Each death test runs in
// its own process, since a signal handler applies to the whole process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/expect_error.h"
#include "tests/io/temp_folder.h"
#include "wick/base/pages.h"
#include "wick/io/gguf.h"
#include "wick/io/gguf_writer.h"
#include "wick/io/guarded_range.h"
#include "wick/io/mapped_file.h"

namespace wick::io {
namespace {

using test::TempFolder;
using testing::HasSubstr;
using wick::test::error_of;

class ChangingFile : public testing::Test {
 protected:
  /// Writes a file of `pages` pages of ones.
  std::string make(size_t pages) {
    const std::string path = folder_.path("f");
    std::ofstream(path, std::ios::binary) << std::string(pages * page_bytes(), '\1');
    return path;
  }
  static int64_t sum(const Bytes& bytes) {
    int64_t total = 0;
    for (const std::byte b : bytes.span()) total += std::to_integer<int>(b);
    return total;
  }
  /// A modification time changes only with the ticks of the kernel's clock.
  static void wait_a_tick() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

  TempFolder folder_;
};

TEST_F(ChangingFile, IsAsItWasWhileNobodyWrites) {
  const std::string path = make(3);
  const auto bytes = MappedFile::open("test", path);
  EXPECT_EQ(sum(*bytes), static_cast<int64_t>(bytes->size()));
  EXPECT_FALSE(bytes->changed());
  // These don't change the file itself: another name, other permissions, a new file under its name.
  std::filesystem::create_hard_link(path, folder_.path("other"));
  ::chmod(path.c_str(), 0600);
  EXPECT_FALSE(bytes->changed());
  wait_a_tick();
  std::ofstream(folder_.path("new")) << "another";
  std::filesystem::rename(folder_.path("new"), path);
  std::filesystem::remove(folder_.path("other"));
  EXPECT_FALSE(bytes->changed());
  EXPECT_EQ(sum(*bytes), static_cast<int64_t>(bytes->size()));
  EXPECT_EQ(error_of([&] { bytes->require_unchanged("test"); }), "no error");
}

// Files truncated to whole pages, and to lengths just next to page boundaries.
TEST_F(ChangingFile, CutShortItReadsAsZeros) {
  const auto page = static_cast<off_t>(page_bytes());
  for (off_t length : {off_t{0}, off_t{1}, page - 1, page, page + 1, 3 * page, 8 * page - 1}) {
    const auto bytes = MappedFile::open("test", make(8));
    ASSERT_EQ(::truncate(bytes->size() > 0 ? folder_.path("f").c_str() : "", length), 0);
    EXPECT_EQ(sum(*bytes), length) << length;  // the rest of the last page also reads as zeros
    EXPECT_TRUE(bytes->changed());
    EXPECT_EQ(
        error_of([&] { bytes->require_unchanged("test"); }),
        "test: file was changed while it was in use: " + folder_.path("f") + ": load it again");
    // changed() stays true when the file's length is restored.
    ASSERT_EQ(::truncate(folder_.path("f").c_str(), 8 * page), 0);
    EXPECT_TRUE(bytes->changed());
  }
}

TEST_F(ChangingFile, AnyPageMayBeTheFirstToFail) {
  for (size_t first = 0; first < 6; ++first) {
    const auto bytes = MappedFile::open("test", make(6));
    ASSERT_EQ(::truncate(folder_.path("f").c_str(), 0), 0);
    const volatile std::byte* const data = bytes->data();
    for (size_t i = 0; i < 6; ++i) {
      const size_t at = (first + i * 5) % 6 * page_bytes() + 7;
      EXPECT_EQ(std::to_integer<int>(data[at]), 0);
    }
    EXPECT_TRUE(bytes->changed());
  }
}

TEST_F(ChangingFile, OverwrittenOrLengthened) {
  for (const bool longer : {false, true}) {
    const auto bytes = MappedFile::open("test", make(2));
    wait_a_tick();
    std::fstream file(folder_.path("f"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(longer ? static_cast<std::streamoff>(bytes->size()) : 5);
    file << 'x' << std::flush;
    EXPECT_TRUE(bytes->changed());
    EXPECT_THAT(error_of([&] { bytes->require_unchanged("test"); }), HasSubstr("was changed"));
  }
}

TEST_F(ChangingFile, ManyThreadsReadManyFiles) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (int i = 0; i < 12; ++i) {
    const std::string path = folder_.path("f" + std::to_string(i));
    std::ofstream(path, std::ios::binary) << std::string(64 * page_bytes(), '\1');
    files.push_back(MappedFile::open("test", path));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        for (const auto& file : files) {
          const int64_t total = sum(*file);
          if (total != static_cast<int64_t>(file->size()) && !file->changed()) ++wrong;
        }
        // Adds and removes entries in the signal handler's list.
        const auto again = MappedFile::open("test", folder_.path("f0"));
        (void)sum(*again);
      }
    });
  }
  for (int i = 1; i < 12; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(::truncate(folder_.path("f" + std::to_string(i)).c_str(),
                         static_cast<off_t>(static_cast<size_t>(i) * page_bytes())),
              0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(files[0]->changed());
  for (int i = 1; i < 12; ++i) EXPECT_TRUE(files[static_cast<size_t>(i)]->changed()) << i;
}

// --- Signals for other addresses ---

/// Reads a page beyond the end of an empty file that the test itself has mapped with mmap.
void foreign_bus_error(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (::ftruncate(file, 4096) != 0) ::_exit(90);
  const auto* data = static_cast<const volatile char*>(
      ::mmap(nullptr, page_bytes(), PROT_READ, MAP_SHARED, file, 0));
  if (::ftruncate(file, 0) != 0) ::_exit(91);
  (void)data[0];
}

void exit_42(int) { ::_exit(42); }
void exit_43(int, siginfo_t* details, void*) { ::_exit(details->si_addr != nullptr ? 43 : 44); }

/// Like Python's faulthandler, restores the previous handler and raises the signal again.
struct sigaction before_hook;
void hook(int signal) {
  const char text[] = "hooked\n";
  if (::write(2, text, sizeof(text) - 1) < 0) ::_exit(45);
  ::sigaction(signal, &before_hook, nullptr);
  ::raise(signal);
}
void install_hook() {
  struct sigaction action {};
  action.sa_handler = &hook;
  action.sa_flags = SA_NODEFER;
  ::sigaction(SIGBUS, &action, &before_hook);
}

using ChangingFileDeathTest = ChangingFile;

TEST_F(ChangingFileDeathTest, ForeignSignalsGoWhereTheyWent) {
  const std::string path = make(2);
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        const auto bytes = MappedFile::open("test", path);
        foreign_bus_error(folder_.path("foreign"));
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        const auto bytes = MappedFile::open("test", path);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_IGN);
        const auto bytes = MappedFile::open("test", path);
        ::raise(SIGBUS);
        foreign_bus_error(folder_.path("foreign"));
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, &exit_42);
        const auto bytes = MappedFile::open("test", path);
        foreign_bus_error(folder_.path("foreign"));
      },
      testing::ExitedWithCode(42), "");
  EXPECT_EXIT(
      {
        struct sigaction action {};
        action.sa_sigaction = &exit_43;
        action.sa_flags = SA_SIGINFO;
        ::sigaction(SIGBUS, &action, nullptr);
        const auto bytes = MappedFile::open("test", path);
        foreign_bus_error(folder_.path("foreign"));
      },
      testing::ExitedWithCode(43), "");
}

TEST_F(ChangingFileDeathTest, HandlersInstalledBeforeAndAfter) {
  const std::string path = make(4);
  for (const bool after : {false, true}) {
    // For an address outside all ranges, the hook prints its line once and the process ends.
    EXPECT_EXIT(
        {
          ::signal(SIGBUS, SIG_DFL);
          if (!after) install_hook();
          const auto bytes = MappedFile::open("test", path);
          if (after) install_hook();
          (void)bytes->changed();  // installs wick's handler again
          foreign_bus_error(folder_.path("foreign"));
        },
        testing::KilledBySignal(SIGBUS), "^hooked\n$");
    // For an address in a range, the hook isn't called.
    EXPECT_EXIT(
        {
          ::signal(SIGBUS, SIG_DFL);
          if (!after) install_hook();
          const auto bytes = MappedFile::open("test", path);
          if (after) install_hook();
          (void)bytes->changed();
          if (::truncate(path.c_str(), 1) != 0) ::_exit(1);
          ::_exit(sum(*bytes) == 1 && bytes->changed() ? 7 : 8);
        },
        testing::ExitedWithCode(7), "^$");
    make(4);
  }
}

// --- Model files ---

TEST_F(ChangingFile, KeysAndNamesAreCopies) {
  const std::string path = folder_.path("m.gguf");
  {
    GgufWriter writer(path);
    writer.set_string("general.name", "as written");
    writer.set_u32s("numbers", std::vector<uint32_t>(5000, 7));
    writer.add_tensor("t", DType::f32, Shape{16, 64});
    const std::vector<float> values(16 * 64, 1.0f);
    writer.write("t", std::as_bytes(std::span(values)));
    writer.finish();
  }
  const auto file = Gguf::open(path);
  wait_a_tick();
  {
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    out << std::string(file->file_bytes(), '\xff') << std::flush;
  }
  EXPECT_EQ(file->get_string("general.name"), "as written");
  EXPECT_EQ(file->get_u32s("numbers"), std::vector<uint32_t>(5000, 7));
  EXPECT_EQ(file->tensors().at(0).name, "t");
  EXPECT_THAT(error_of([&] { file->require_unchanged("read"); }),
              testing::StartsWith("read: file was changed while it was in use: "));
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(file->get_u32s("numbers"), std::vector<uint32_t>(5000, 7));
  EXPECT_EQ(file->tensor("t").to_vector<float>().size(), 16u * 64u);  // any contents, but no signal
}

// A header that changes while it is read gives an error, or a file that can be walked.
TEST_F(ChangingFile, OpenedWhileItIsWritten) {
  const std::string path = folder_.path("m.gguf");
  const auto write = [&](uint32_t value) {
    GgufWriter writer(folder_.path("whole.gguf"));
    writer.set_u32s("numbers", std::vector<uint32_t>(3000 + 500 * (value % 5), value));
    for (int i = 0; i < 200; ++i) {
      writer.add_tensor("tensor" + std::to_string(i), DType::f32, Shape{});
    }
    for (int i = 0; i < 200; ++i) {
      writer.write("tensor" + std::to_string(i), std::as_bytes(std::span(&value, 1)));
    }
    writer.finish();
    std::ifstream in(folder_.path("whole.gguf"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::vector<std::string> versions;
  for (uint32_t v = 0; v < 5; ++v) versions.push_back(write(v));
  std::ofstream(path, std::ios::binary) << versions[0];
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (size_t i = 0; !stop; ++i) {
      const int file = ::open(path.c_str(), O_WRONLY | (i % 3 == 0 ? O_TRUNC : 0));
      const std::string& version = versions[i % versions.size()];
      for (size_t at = 0; at < version.size(); at += 1000) {
        const size_t count = std::min<size_t>(1000, version.size() - at);
        if (::write(file, version.data() + at, count) < 0) break;
      }
      ::close(file);
    }
  });
  int opened = 0, refused = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < until) {
    try {
      const auto file = Gguf::open(path);
      // Every key and tensor can be printed, whatever its contents.
      for (const GgufEntry& entry : file->metadata()) (void)entry.value.str();
      for (const GgufTensor& tensor : file->tensors()) (void)tensor.str();
      ++opened;
    } catch (const Error&) {
      ++refused;
    }
  }
  stop = true;
  writer.join();
  EXPECT_GT(opened + refused, 100);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace wick::io
