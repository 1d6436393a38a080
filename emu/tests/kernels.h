#pragma once

// Kernels from one source for both sides. The emulator runs the device code and fibers run the host
// code. corpus/corpus.h defines the inputs and outputs.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emu/tests/harness.h"
#include "emu/tests/object.h"

namespace emu::test {

struct KernelInput {
  uint32_t i[8];
  float f[8];
  double d[4];
  uint16_t h[8];
  int64_t l[4];
  uint32_t small[4];
};
struct KernelOutput {
  uint32_t w[32];
};

struct Problem {
  uint32_t groups = 4, block = 128;
  uint32_t dynamic_lds = 128 * 16;
  uint64_t seed = 1;
};

std::vector<KernelInput> make_inputs(const Problem& problem);

/// `flags` are in addition to those that every kernel needs, such as {"-O2", "-mwavefrontsize64"}.
std::vector<std::string> device_command(const std::string& source, const std::string& arch,
                                        const std::vector<std::string>& flags,
                                        const std::string& out);
std::vector<std::string> host_command(const std::string& source, const std::string& out);

/// Runs the commands, some of them concurrently. Returns the errors of each; an empty string means
/// success.
std::vector<std::string> run_commands(const std::vector<std::vector<std::string>>& commands);

/// Returns the emulator's results. `error` receives the message of a failure.
std::vector<KernelOutput> run_on_device(Object& object, const std::string& kernel,
                                        const Problem& problem,
                                        const std::vector<KernelInput>& inputs, std::string& error);

/// A library that was built by host_command.
class HostLibrary {
 public:
  explicit HostLibrary(const std::string& path);
  ~HostLibrary();
  HostLibrary(const HostLibrary&) = delete;
  HostLibrary& operator=(const HostLibrary&) = delete;
  std::vector<KernelOutput> run(const std::string& kernel, const Problem& problem,
                                const std::vector<KernelInput>& inputs, uint32_t lanes);

 private:
  void* handle_;
};

/// Returns the first difference, or an empty string. `tolerance` is relative and applies to f32
/// values.
std::string difference(const std::vector<KernelOutput>& device,
                       const std::vector<KernelOutput>& host, double tolerance);

}  // namespace emu::test
