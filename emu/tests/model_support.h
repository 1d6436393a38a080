#pragma once

// A stand-in for ROCr above the model library: it allocates memory as the hook does, loads code
// objects, and writes packets into queues.

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emu/model/aql.h"
#include "emu/model/hook.h"

namespace emu::model::test {

/// The architecture of the test's GPUs, from EMU_MODEL_ARCH.
std::string architecture();

/// Writes a topology folder with these GPUs and names it in HSA_MODEL_TOPOLOGY.
void write_topology(const std::vector<uint32_t>& versions);

/// A GPU of the topology, and its memory. Models can't be created twice, so the tests share two of
/// them.
class Gpu {
 public:
  explicit Gpu(Model* model);
  /// The first or second GPU.
  static Gpu& number(int index);

  /// An allocation. `host`: where the process can access it, which is `address` itself if the
  /// memory is visible.
  struct Memory {
    uint64_t address = 0, bytes = 0;
    char* host = nullptr;
    size_t offset = 0;  // in the file behind all memory

    template <class T>
    T* at(uint64_t from = 0) const {
      return reinterpret_cast<T*>(host + from);
    }
  };
  Memory allocate(uint64_t bytes, bool visible = true);
  /// Allocates at an address that was freed before.
  Memory allocate_at(uint64_t address, uint64_t bytes, bool visible);
  void free(const Memory& memory);

  Model* const model;

 private:
  char* aperture_ = nullptr;
};

/// A code object in device memory.
class Program {
 public:
  Program(Gpu& gpu, const std::string& file, bool visible = true);
  Program(Gpu& gpu, const std::string& file, const Gpu::Memory& place);
  ~Program();
  /// The address of a kernel's descriptor.
  uint64_t kernel(const std::string& name) const;
  const Gpu::Memory& memory() const { return memory_; }

 private:
  void load();
  Gpu& gpu_;
  std::vector<char> file_;
  Gpu::Memory memory_;
};

/// A signal in device memory.
class TestSignal {
 public:
  TestSignal(Gpu& gpu, int64_t value);
  ~TestSignal();
  uint64_t handle() const { return memory_.address; }
  Signal& signal() const { return *memory_.at<Signal>(); }
  int64_t value() const { return signal().value.load(); }
  /// Waits until the value is `wanted`; returns false after 20 seconds.
  bool becomes(int64_t wanted) const;

 private:
  Gpu& gpu_;
  Gpu::Memory memory_;
};

/// A queue, as ROCr lays it out.
class TestQueue {
 public:
  explicit TestQueue(Gpu& gpu, uint32_t packets = 16);
  ~TestQueue();

  /// Writes a packet and makes it valid.
  template <class Packet>
  void submit(const Packet& packet) {
    submit_bytes(&packet);
  }
  void submit_bytes(const void* packet);
  /// Waits until so many packets have been processed; returns false after 20 seconds.
  bool processes(uint64_t packets) const;
  uint64_t processed() const;
  /// The error that the queue was given; 0: none.
  TestSignal& error() { return error_; }
  uint16_t header(uint64_t index) const;
  const Gpu::Memory& ring() const { return ring_; }
  bool exists() const { return queue_ != nullptr; }
  /// Destroys the queue before the end of its scope.
  void end();

 private:
  Gpu& gpu_;
  const uint32_t packets_;
  Gpu::Memory memory_, ring_;
  TestSignal error_;
  Queue* queue_ = nullptr;
  uint64_t written_ = 0;
};

/// Arguments of a kernel (explicit ones, then those that compilers hide), and their dispatch.
class Call {
 public:
  Call(Gpu& gpu, uint64_t kernel, uint32_t groups, uint32_t items);
  ~Call();
  template <class T>
  Call& with(const T& argument) {
    bytes_ = (bytes_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    std::memcpy(memory_.host + bytes_, &argument, sizeof argument);
    bytes_ += sizeof argument;
    return *this;
  }
  /// The packet, after the hidden arguments have been written.
  Dispatch packet(uint64_t completion = 0);

 private:
  Gpu& gpu_;
  Gpu::Memory memory_;
  Dispatch dispatch_;
  uint32_t groups_, items_;
  size_t bytes_ = 0;
};

std::string basic_kernels();

/// Returns what `work` prints on standard error.
std::string said_by(const std::function<void()>& work);

/// Waits until `met` is true; returns false after 20 seconds.
bool comes_true(const std::function<bool()>& met);

}  // namespace emu::model::test
