#pragma once

// Kernels from one source for both sides: compiled for the device and run by the emulator, compiled
// for the host and run by fibers; inputs and outputs as corpus/corpus.h has them.

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

/// Flags beside those that every kernel needs: {"-O2", "-mwavefrontsize64"}.
std::vector<std::string> device_command(const std::string& source, const std::string& arch,
                                        const std::vector<std::string>& flags,
                                        const std::string& out);
std::vector<std::string> host_command(const std::string& source, const std::string& out);

/// Runs the commands, some at a time; the errors of each, empty where it ended well.
std::vector<std::string> run_commands(const std::vector<std::vector<std::string>>& commands);

/// The emulator's results; `error` says what went wrong.
std::vector<KernelOutput> run_on_device(Object& object, const std::string& kernel,
                                        const Problem& problem,
                                        const std::vector<KernelInput>& inputs, std::string& error);

/// A library that host_command made.
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

/// Empty, or the first difference. `tolerance`: relative, of f32 values.
std::string difference(const std::vector<KernelOutput>& device,
                       const std::vector<KernelOutput>& host, double tolerance);

}  // namespace emu::test
