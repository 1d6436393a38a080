#include "emu/tests/kernels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "emu/tests/assembler.h"
#include "emu/tests/ops.h"

namespace emu::test {

std::vector<KernelInput> make_inputs(const Problem& problem) {
  Random random(problem.seed);
  // There are more inputs than work-items, because kernels also read next to their own record.
  std::vector<KernelInput> inputs(problem.groups * problem.block + 64);
  for (KernelInput& in : inputs) {
    for (uint32_t& x : in.i) x = static_cast<uint32_t>(interesting(Type::b32, random));
    for (float& x : in.f) {
      x = random.chance(4) ? from_bits<float>(interesting(Type::f32, random))
                           : static_cast<float>(static_cast<int32_t>(random.next())) * 1e-6f;
    }
    for (double& x : in.d) {
      x = random.chance(4) ? from_bits<double>(interesting(Type::f64, random))
                           : static_cast<double>(static_cast<int64_t>(random.next())) * 1e-15;
    }
    for (uint16_t& x : in.h) x = static_cast<uint16_t>(interesting(Type::f16, random));
    for (int64_t& x : in.l) x = static_cast<int64_t>(interesting(Type::b64, random));
    for (uint32_t& x : in.small) x = random.below(1024);
  }
  return inputs;
}

std::vector<std::string> device_command(const std::string& source, const std::string& arch,
                                        const std::vector<std::string>& flags,
                                        const std::string& out) {
  // Another compiler, such as a newer one, may build the device's code.
  const char* compiler = std::getenv("EMU_TEST_CLANG");
  std::vector<std::string> words = {compiler == nullptr ? "clang++-19" : compiler,
                                    "-x",
                                    "hip",
                                    "-std=c++20",
                                    "--offload-device-only",
                                    "--no-gpu-bundle-output",
                                    "--offload-arch=" + assembled_as(arch),
                                    "-nogpuinc",
                                    "-nogpulib",
                                    "-ffp-contract=off",
                                    "-Wno-everything",
                                    "-fuse-cuid=none",
                                    "-I",
                                    EMU_CORPUS_DIR};
  if (compiler != nullptr) {  // newer compilers don't define the width of waves
    const bool wide = arch.starts_with("gfx9") ||
                      std::find(flags.begin(), flags.end(), "-mwavefrontsize64") != flags.end();
    words.push_back(std::string("-D__AMDGCN_WAVEFRONT_SIZE=") + (wide ? "64" : "32"));
  }
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"-c", source, "-o", out});
  return words;
}

std::vector<std::string> host_command(const std::string& source, const std::string& out) {
  return {"clang++-19",
          "-x",
          "c++",
          "-std=c++20",
          "-O1",
          "-shared",
          "-fPIC",
          "-w",
          "-march=x86-64-v3",
          "-fno-math-errno",
          "-ffp-contract=off",
          "-Xclang",
          "-ffloat16-excess-precision=none",
          "-fwrapv",
          "-I",
          EMU_CORPUS_DIR,
          source,
          "-o",
          out};
}

std::vector<std::string> run_commands(const std::vector<std::vector<std::string>>& commands) {
  std::vector<std::string> errors(commands.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < commands.size();) {
      std::string said;
      if (run_command(commands[i], said) != 0) errors[i] = said.empty() ? "failed" : said;
    }
  };
  std::thread other(work);
  work();
  other.join();
  return errors;
}

namespace {

/// The explicit arguments, followed by the hidden ones of code object version 5.
struct Arguments {
  const KernelInput* in;
  KernelOutput* out;
  uint32_t n;
  uint32_t unused;
  uint32_t blocks[3];
  uint16_t sizes[3], rest[3];
  uint8_t more[512];
};

/// The fields of the dispatch packet that compiled code reads: arrays that the compiler moves to
/// LDS are laid out by the workgroup size in the packet.
struct alignas(64) Packet {
  uint16_t header = 2, setup = 1, block[3] = {1, 1, 1}, reserved = 0;
  uint32_t grid[3] = {1, 1, 1};
  uint8_t rest[40] = {};
};

}  // namespace

std::vector<KernelOutput> run_on_device(Object& object, const std::string& kernel,
                                        const Problem& problem,
                                        const std::vector<KernelInput>& inputs,
                                        std::string& error) {
  std::vector<KernelOutput> outputs(problem.groups * problem.block);
  const auto found = object.kernels().find(kernel);
  if (found == object.kernels().end()) {
    error = "no kernel " + kernel;
    return outputs;
  }
  auto arguments = std::make_unique<Arguments>();
  std::memset(static_cast<void*>(arguments.get()), 0, sizeof *arguments);
  arguments->in = inputs.data();
  arguments->out = outputs.data();
  arguments->n = static_cast<uint32_t>(outputs.size());
  arguments->blocks[0] = problem.groups;
  arguments->blocks[1] = arguments->blocks[2] = 1;
  arguments->sizes[0] = static_cast<uint16_t>(problem.block);
  arguments->sizes[1] = arguments->sizes[2] = 1;
  Packet packet;
  packet.block[0] = static_cast<uint16_t>(problem.block);
  packet.grid[0] = problem.block * problem.groups;
  try {
    Launch launch;
    launch.dispatch_packet = reinterpret_cast<uint64_t>(&packet);
    launch.descriptor = found->second;
    launch.code = &object.code(!launch.descriptor.wave32());
    if (launch.descriptor.properties >> 11 & 1) launch.descriptor.scratch_bytes += 16384;
    launch.kernel = kernel;
    launch.entry = object.entry(kernel);
    launch.base = object.base();
    launch.groups = {problem.groups, 1, 1};
    launch.block = {problem.block, 1, 1};
    launch.lds_bytes = launch.descriptor.lds_bytes + problem.dynamic_lds;
    launch.kernarg = reinterpret_cast<uint64_t>(arguments.get());
    launch.vgprs = launch.descriptor.vgprs(launch.code->traits.generation);
    Worker worker;
    for (uint64_t group = 0; group < launch.group_count() && error.empty(); ++group) {
      if (!worker.run(launch, group)) error = launch.error.empty() ? "failed" : launch.error;
    }
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  return outputs;
}

std::string difference(const std::vector<KernelOutput>& device,
                       const std::vector<KernelOutput>& host, double tolerance) {
  for (size_t i = 0; i < device.size(); ++i) {
    for (int k = 0; k < 32; ++k) {
      const uint32_t d = device[i].w[k], h = host[i].w[k];
      if (d == h) continue;
      const auto df = std::bit_cast<float>(d), hf = std::bit_cast<float>(h);
      if (tolerance > 0 && std::abs(df - hf) <= tolerance * std::abs(hf)) continue;
      char text[120];
      std::snprintf(text, sizeof text, "item %zu, word %d: emulator %08x (%g), host %08x (%g)", i,
                    k, d, static_cast<double>(df), h, static_cast<double>(hf));
      return text;
    }
  }
  return "";
}

}  // namespace emu::test
