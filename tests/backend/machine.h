#pragma once

// Where tests of products run: the CPU with each instruction set, and the GPUs that
// WICK_TEST_DEVICES names ("cuda:0,hip:0"). With GPUs there is one CPU, the fastest: the others are
// tested elsewhere.

#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"

namespace wick::test {

struct Machine {
  std::string name;  ///< "cpu-v3", "hip:0"
  Backend* backend;
  cpu::Isa isa = {};  ///< of a CPU

  bool is_cpu() const { return backend->device().kind == DeviceKind::cpu; }
};

inline const std::vector<Machine>& machines() {
  static std::deque<cpu::CpuBackend> backends;
  static const std::vector<Machine> list = [] {
    std::vector<Machine> all;
    for (const cpu::Isa isa : cpu::available_isas()) {
      if (isa == cpu::Isa::v4_vnni) continue;  // its float products are v4's
      all.push_back({"cpu-" + std::string(cpu::name(isa)), &backends.emplace_back(isa), isa});
    }
    const char* names = std::getenv("WICK_TEST_DEVICES");
    if (names == nullptr || *names == '\0') return all;
    all.erase(all.begin(), all.end() - 1);
    std::stringstream words(names);
    for (std::string word; std::getline(words, word, ',');) {
      all.push_back({word, &backend(Device::parse(word))});
    }
    return all;
  }();
  return list;
}

/// Bytes of the host's in a machine's memory; on the CPU the very same.
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
  /// Brings what the machine wrote to the host.
  void fetch() {
    backend_.synchronize();
    if (there_ != nullptr && bytes_ > 0) backend_.download(host_, there_, bytes_);
  }

 private:
  Backend& backend_;
  void* host_;
  size_t bytes_;
  void* there_ = nullptr;
};

}  // namespace wick::test
