#pragma once

// The devices on which tests of matrix products run: the CPU with each instruction set, and the
// GPUs that WICK_TEST_DEVICES names ("cuda:0,hip:0"). With GPUs, only the CPU's fastest instruction
// set is included, since other tests cover the rest.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "tests/device_work.h"
#include "tests/test_devices.h"
#include "wick/backend/cpu/cpu_backend.h"

namespace wick::test {

struct Machine {
  std::string name;          ///< "cpu-v3", "hip:0"
  Backend* backend;          ///< null if absent
  cpu::Isa isa = {};         ///< for a CPU
  std::string missing = {};  ///< why it is absent

  bool is_cpu() const { return backend->device().kind == DeviceKind::cpu; }
};

/// Returns all machines. Those that are absent here are included, so that their tests are visibly
/// skipped.
inline const std::vector<Machine>& all_machines() {
  static std::deque<cpu::CpuBackend> backends;
  static const std::vector<Machine> list = [] {
  // The instruction sets with integer dot products have the float kernels of the one before.
#if defined(__x86_64__)
    constexpr cpu::Isa kIsas[] = {cpu::Isa::v2, cpu::Isa::v3, cpu::Isa::v4};
#elif defined(__aarch64__)
    constexpr cpu::Isa kIsas[] = {cpu::Isa::neon};
#else
    constexpr cpu::Isa kIsas[] = {cpu::Isa::generic};
#endif
    const auto here = cpu::available_isas();
    std::vector<Machine> all;
    for (const cpu::Isa isa : kIsas) {
      const std::string name = "cpu-" + std::string(cpu::name(isa));
      if (std::find(here.begin(), here.end(), isa) != here.end()) {
        all.push_back({name, &backends.emplace_back(isa), isa});
      } else {
        all.push_back({name, nullptr, isa, "this machine has no " + name});
      }
    }
    const std::vector<std::string> devices = device_names();
    if (devices.empty()) return all;
    gpu::count_work();  // before the first use of a device
    std::erase_if(all, [](const Machine& m) { return m.backend == nullptr; });
    all.erase(all.begin(), all.end() - 1);
    for (const std::string& name : devices) {
      try {
        all.push_back({name, &backend(Device::parse(name))});
      } catch (const std::exception& error) {
        all.push_back({name, nullptr, {}, error.what()});
      }
    }
    return all;
  }();
  return list;
}

/// Returns the machines that are present.
inline const std::vector<Machine>& machines() {
  static const std::vector<Machine> list = [] {
    std::vector<Machine> present = all_machines();
    std::erase_if(present, [](const Machine& m) { return m.backend == nullptr; });
    return present;
  }();
  return list;
}

/// Fails the running test at the end of a scope if the machine is a GPU that ran no kernel, or if
/// an op copied anything to the host. `expected`: whether there is anything to compute. Reports the
/// number of kernels and copies that the GPU ran as the test's property `device_work`.
class ExpectDeviceWork {
 public:
  ExpectDeviceWork(const Machine& machine, bool expected)
      : work_(machine.backend->device()), is_cpu_(machine.is_cpu()), expected_(expected) {}
  ~ExpectDeviceWork() {
    if (is_cpu_) return;
    testing::Test::RecordProperty("device_work", std::to_string(work_.count()));
    EXPECT_EQ(work_.fault(expected_), "");
  }
  ExpectDeviceWork(const ExpectDeviceWork&) = delete;
  ExpectDeviceWork& operator=(const ExpectDeviceWork&) = delete;

 private:
  DeviceWork work_;
  bool is_cpu_, expected_;
};

/// Host bytes copied to a machine's memory. On the CPU, it uses the host's memory directly.
class OnMachine {
 public:
  OnMachine(const Machine& machine, void* host, size_t bytes)
      : backend_(*machine.backend), host_(host), bytes_(bytes) {
    if (machine.is_cpu()) return;
    there_ = backend_.alloc(bytes_ + 1);
    if (bytes_ > 0) backend_.upload(there_, host_, bytes_);
  }
  ~OnMachine() {
    if (there_ != nullptr) backend_.free(there_, bytes_ + 1);
  }
  OnMachine(const OnMachine&) = delete;
  OnMachine& operator=(const OnMachine&) = delete;

  void* data() const { return there_ != nullptr ? there_ : host_; }
  /// Copies what the machine wrote back to the host.
  void fetch() {
    backend_.synchronize();
    if (there_ == nullptr || bytes_ == 0) return;
    const OwnCopies own(backend_.device());
    backend_.download(host_, there_, bytes_);
  }

 private:
  Backend& backend_;
  void* host_;
  size_t bytes_;
  void* there_ = nullptr;
};

}  // namespace wick::test
