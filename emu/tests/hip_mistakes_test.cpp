// Kernels of checks.hip in pairs: one with a mistake, which the checks must report, and one without
// it, about which they must say nothing. Runs for several architectures with all checks enabled.

#include <numeric>

#include "emu/tests/hip_support.h"

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
bool is_gfx9() { return first_device().starts_with("gfx9"); }
std::string checks_file() { return "checks." + first_device() + ".hsaco"; }

/// Returns what is printed while `work` runs and the device finishes.
template <class Work>
std::string said_by(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  return testing::internal::GetCapturedStderr();
}

/// Returns what is printed while a kernel runs in `groups` workgroups of `block` lanes on `data`.
template <class T>
std::string said(const Kernels& kernels, const char* kernel, T* data, unsigned groups = 1,
                 unsigned block = 128) {
  return said_by([&] {
    EXPECT_EQ(hipSuccess, launch(kernels[kernel], groups, block, 2048, nullptr, data)) << kernel;
  });
}

struct Case {
  const char* kernel;
  const char* finding;  // part of each report; empty: there is none
  int64_t reports = 1;
};

void expect_each(const std::vector<Case>& cases, const std::string& file = checks_file(),
                 unsigned block = 128) {
  const Kernels kernels(file);
  for (const auto& [kernel, finding, reports] : cases) {
    Buffer<int> data(4096);
    const std::string text = said(kernels, kernel, data.data, 1, block);
    if (*finding == 0) {
      EXPECT_EQ("", text) << kernel;
    } else {
      EXPECT_TRUE(has(text, finding)) << kernel << ": " << text;
      EXPECT_TRUE(has(text, std::string("kernel ") + kernel)) << text;
      EXPECT_EQ(reports, std::count(text.begin(), text.end(), '\n')) << kernel << ": " << text;
    }
  }
}

constexpr char kLate[] = "without a wait for the store before the barrier";

TEST(HipMistakes, NoWaitForAStoreToLdsBeforeABarrier) {
  expect_each({{"lds_waits", ""},
               {"lds_doesnt_wait", kLate},
               {"lds_waits_for_global", kLate},
               {"lds_waits_for_first", ""},
               {"lds_doesnt_wait_for_second", kLate},
               {"lds_waits_late", kLate},
               {"lds_waits_before_next", ""},
               {"lds_reads_own", ""},
               {"lds_writes_other", "writes LDS at "},
               {"lds_atomic_waits", ""},
               {"lds_atomic_doesnt_wait", kLate}});
}

/// Workgroups of one compute unit needn't wait: it has one cache, and performs operations in order.
TEST(HipMistakes, NoWaitForAStoreToMemoryBeforeABarrier) {
  const char* finding = is_gfx9() ? "" : kLate;
  expect_each({{"global_waits", ""},
               {"global_doesnt_wait", finding},
               {"global_waits_late", finding},
               {"global_waits_before_next", ""}});
  if (first_device() == "gfx1100") {
    expect_each({{"global_waits", ""}, {"global_doesnt_wait", ""}}, "checks_cu.gfx1100.hsaco");
  }
  if (first_device() == "gfx90a") {
    expect_each({{"global_waits", ""}, {"global_doesnt_wait", kLate}}, "checks_split.gfx90a.hsaco");
  }
}

/// One wave needs no waits, since its operations are performed in order.
TEST(HipMistakes, OneWaveNeedsNoBarrier) {
  expect_each({{"lds_doesnt_wait", ""}, {"global_doesnt_wait", ""}, {"waves_race", ""}},
              checks_file(), 32);
}

TEST(HipMistakes, RacesOfWavesInGlobalMemory) {
  expect_each({{"waves_race", "without a barrier between", 2},
               {"waves_race_in_writes", "without a barrier between"},
               {"waves_take_turns", ""},
               {"waves_hand_over", ""}});
  const Kernels kernels(checks_file());
  const Buffer<char> bytes(1024);
  EXPECT_EQ("", said(kernels, "waves_share_dwords", bytes.data));
  // Whether a plain store is an atomic one can be seen on some chips only.
  if (first_device() == "gfx942" || first_device() == "gfx1200") {
    const Buffer<int> data(1);
    EXPECT_EQ("", said(kernels, "groups_store_atomically", data.data, 8, 1));
  }
}

/// Launches of two streams that use the same memory.
class HipStreamRaces : public testing::Test {
 protected:
  void SetUp() override {
    for (hipStream_t& stream : streams) {
      HIP_OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    }
    HIP_OK(hipEventCreate(&event));
    HIP_OK(hipDeviceSynchronize());
  }
  void TearDown() override {
    for (hipStream_t stream : streams) HIP_OK(hipStreamDestroy(stream));
    HIP_OK(hipEventDestroy(event));
  }
  void writes(hipStream_t stream) {
    // Writing the value that memory holds isn't a race.
    EXPECT_EQ(hipSuccess, launch(kernels["writes"], 4, 64, 0, stream, memory.data, ++value));
  }
  void reads(hipStream_t stream) {
    EXPECT_EQ(hipSuccess, launch(kernels["copies"], 4, 64, 0, stream, other.data, memory.data));
  }
  void reads_bytes(hipStream_t stream, int shift, Buffer<char>& to) {
    const char* from = reinterpret_cast<char*>(memory.data) + shift;
    EXPECT_EQ(hipSuccess, launch(kernels["copies_bytes"], 1, 64, 0, stream, to.data, from));
  }
  void writes_bytes(hipStream_t stream, int shift, Buffer<char>& from) {
    char* to = reinterpret_cast<char*>(memory.data) + shift;
    EXPECT_EQ(hipSuccess, launch(kernels["copies_bytes"], 1, 64, 0, stream, to, from.data));
  }
  /// Neither stream waits for the other, so that either kernel may be the one that is reported.
  void expect_race(const std::string& text) {
    EXPECT_TRUE(has(text, "races: kernel ") && has(text, "a kernel on another stream")) << text;
  }

  Kernels kernels{checks_file()};
  Buffer<int> memory{1024}, other{1024};
  hipStream_t streams[2] = {};
  hipEvent_t event = nullptr;
  int value = 0;
};

TEST_F(HipStreamRaces, WithoutAnOrder) {
  for (int i = 0; i < 3; ++i) {
    expect_race(said_by([&] {
      writes(streams[0]);
      reads(streams[1]);
    }));
    expect_race(said_by([&] {
      reads(streams[0]);
      writes(streams[1]);
    }));
    expect_race(said_by([&] {
      writes(streams[0]);
      writes(streams[1]);
    }));
  }
}

TEST_F(HipStreamRaces, NoneOfReads) {
  const Buffer<int> third(1024);
  EXPECT_EQ("", said_by([&] {
              reads(streams[0]);
              EXPECT_EQ(hipSuccess,
                        launch(kernels["copies"], 4, 64, 0, streams[1], third.data, memory.data));
            }));
}

TEST_F(HipStreamRaces, NoneInOrder) {
  // There are more launches than numbers of launches.
  EXPECT_EQ("", said_by([&] {
              for (int i = 0; i < 300; ++i) {
                writes(streams[0]);
                HIP_OK(hipEventRecord(event, streams[0]));
                HIP_OK(hipStreamWaitEvent(streams[1], event, 0));
                reads(streams[1]);
                HIP_OK(hipEventRecord(event, streams[1]));
                HIP_OK(hipStreamWaitEvent(streams[0], event, 0));
              }
            }));
  EXPECT_EQ("", said_by([&] {
              writes(streams[0]);
              HIP_OK(hipStreamSynchronize(streams[0]));
              reads(streams[1]);
              while (hipStreamQuery(streams[1]) != hipSuccess) {
              }
              writes(streams[0]);
            }));
}

TEST_F(HipStreamRaces, NoneAroundTheNullStream) {
  hipStream_t blocking[2];
  for (hipStream_t& stream : blocking) HIP_OK(hipStreamCreate(&stream));
  EXPECT_EQ("", said_by([&] {
              for (int i = 0; i < 10; ++i) {
                writes(blocking[0]);
                reads(nullptr);
                writes(blocking[1]);
                reads(nullptr);
              }
            }));
  expect_race(said_by([&] {
    writes(blocking[0]);
    writes(blocking[1]);
  }));
  for (hipStream_t stream : blocking) HIP_OK(hipStreamDestroy(stream));
}

TEST_F(HipStreamRaces, OfBytes) {
  Buffer<char> one(1024), two(1024);
  EXPECT_EQ("", said_by([&] {
              writes_bytes(streams[0], 0, one);
              writes_bytes(streams[1], 1, two);
            }));
  EXPECT_EQ("", said_by([&] {
              writes_bytes(streams[0], 2, one);
              reads_bytes(streams[1], 1, two);
            }));
  one.set(std::vector<char>(1024, 9));
  expect_race(said_by([&] {
    writes_bytes(streams[0], 1, one);
    reads_bytes(streams[1], 1, two);
  }));
}

TEST_F(HipStreamRaces, InAGraph) {
  for (const bool ordered : {false, true}) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    HIP_OK(hipStreamBeginCapture(streams[0], hipStreamCaptureModeGlobal));
    HIP_OK(hipEventRecord(event, streams[0]));
    HIP_OK(hipStreamWaitEvent(streams[1], event, 0));
    writes(streams[0]);
    if (ordered) {
      HIP_OK(hipEventRecord(event, streams[0]));
      HIP_OK(hipStreamWaitEvent(streams[1], event, 0));
    }
    reads(streams[1]);
    HIP_OK(hipEventRecord(event, streams[1]));
    HIP_OK(hipStreamWaitEvent(streams[0], event, 0));
    HIP_OK(hipStreamEndCapture(streams[0], &graph));
    HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    const std::string text = said_by([&] {
      for (int i = 0; i < 3; ++i) HIP_OK(hipGraphLaunch(exec, streams[0]));
    });
    if (ordered) {
      EXPECT_EQ("", text);
    } else {
      expect_race(text);
    }
    HIP_OK(hipGraphExecDestroy(exec));
    HIP_OK(hipGraphDestroy(graph));
  }
}

TEST(HipMistakes, RegistersThatNothingWrote) {
  expect_each({{"vcc_unwritten", "decides here and comes from what was never written"},
               {"scc_unwritten", "SCC decides here"},
               {"sgpr_unwritten", "never written"},
               {"vgpr_unwritten", "decides here and comes from what was never written"},
               {"lane_unwritten", "never written"},
               {"exec_unwritten", "s90 "},
               {"m0_unwritten", "never written"},
               {"zeros", ""}});
}

TEST(HipMistakes, ScratchThatNothingWrote) {
  expect_each({{"scratch_unwritten", "decides here and comes from what was never written"},
               {"scratch_written", ""}});
}

TEST(HipMistakes, ScratchBeyondItsEnd) {
  const Kernels kernels(checks_file());
  Buffer<int> data(128);
  EXPECT_EQ("", said(kernels, "scratch_beyond", data.data));
  data.set(std::vector<int>(128, 1));
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(kernels["scratch_beyond"], 1, 64, 0, nullptr, data.data));
  EXPECT_NE(hipSuccess, hipDeviceSynchronize());
  (void)hipGetLastError();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(text, "uses scratch beyond its end")) << text;
}

/// Returns what a kernel prints that works on memory that nothing has written.
std::string said_on_fresh(const char* kernel) {
  const Kernels kernels(checks_file());
  int* fresh = nullptr;
  EXPECT_EQ(hipSuccess, hipMalloc(reinterpret_cast<void**>(&fresh), 1 << 14));
  const std::string text = said(kernels, kernel, fresh, 1, 64);
  EXPECT_EQ(hipSuccess, hipFree(fresh));
  return text;
}

TEST(HipMistakes, MemoryOfWhichAPartIsWritten) {
  EXPECT_EQ("", said_on_fresh("copies_padding"));
  EXPECT_EQ("", said_on_fresh("writes_bits"));
  EXPECT_TRUE(has(said_on_fresh("adds"), "which nothing has written"));
}

TEST(HipMistakes, ScalarLoadsThatIgnoreTheLowestBits) {
  expect_each({{"loads_unaligned", ""},
               {"loads_scalar_unaligned", "a scalar load ignores the lowest bits"}});
}

TEST(HipMistakes, WavesThatEndBeforeABarrier) { expect_each({{"last_wave_ends", ""}}); }

}  // namespace
