#pragma once

// Helpers that the tests of streams, events, graphs and captures share.

#include <atomic>
#include <thread>

#include "emu/tests/hip_support.h"

/// Blocks a stream until the gate is opened.
struct Gate {
  std::atomic<bool> open{false}, reached{false};
  static void wait(void* gate) {
    auto* self = static_cast<Gate*>(gate);
    self->reached = true;
    while (!self->open) std::this_thread::yield();
  }
};

struct Stream {
  explicit Stream(unsigned flags = hipStreamNonBlocking) {
    EXPECT_EQ(hipSuccess, hipStreamCreateWithFlags(&handle, flags));
  }
  ~Stream() { EXPECT_EQ(hipSuccess, hipStreamDestroy(handle)); }
  operator hipStream_t() const { return handle; }
  hipStream_t handle = nullptr;
};

struct Event {
  explicit Event(unsigned flags = hipEventDefault) {
    EXPECT_EQ(hipSuccess, hipEventCreateWithFlags(&handle, flags));
  }
  ~Event() { EXPECT_EQ(hipSuccess, hipEventDestroy(handle)); }
  operator hipEvent_t() const { return handle; }
  hipEvent_t handle = nullptr;
};

/// Checks that a call is rejected, and clears the error that it left.
#define HIP_REFUSES(error, call)       \
  do {                                 \
    EXPECT_EQ(error, (call)) << #call; \
    (void)hipGetLastError();           \
  } while (false)

/// Returns the handle of a destroyed stream.
inline hipStream_t destroyed_stream() {
  hipStream_t handle = nullptr;
  EXPECT_EQ(hipSuccess, hipStreamCreate(&handle));
  EXPECT_EQ(hipSuccess, hipStreamDestroy(handle));
  return handle;
}

inline hipEvent_t destroyed_event() {
  hipEvent_t handle = nullptr;
  EXPECT_EQ(hipSuccess, hipEventCreate(&handle));
  EXPECT_EQ(hipSuccess, hipEventDestroy(handle));
  return handle;
}

/// A program's code as compilers register it before main: kernels are identified by host functions,
/// and variables by their host shadows.
class Program {
 public:
  Program() : image_(kernel_file(basic_kernels())), wrapper_{kMagic, 1, image_.data(), nullptr} {
    handle_ = __hipRegisterFatBinary(&wrapper_);
    EXPECT_NE(nullptr, handle_);
  }
  ~Program() { __hipUnregisterFatBinary(handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Returns the host function that stands for the kernel in launches.
  const void* kernel(const char* name) {
    const void* function = &places_[used_++];
    __hipRegisterFunction(handle_, function, nullptr, name, 0, nullptr, nullptr, nullptr, nullptr,
                          nullptr);
    return function;
  }
  const void* variable(std::string name, size_t bytes) {
    void* shadow = &places_[used_++];
    __hipRegisterVar(handle_, shadow, nullptr, name.data(), 0, bytes, 0, 0);
    return shadow;
  }

 private:
  static constexpr unsigned kMagic = 0x48495046;  // HIPF
  struct Wrapper {
    unsigned magic, version;
    const void *image, *unused;
  };
  const std::vector<char> image_;
  const Wrapper wrapper_;
  void** handle_ = nullptr;
  char places_[16] = {};
  size_t used_ = 0;
};
