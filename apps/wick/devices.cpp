#include "wick/backend/devices.h"

#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "wick/backend/backend.h"
#include "wick/backend/cpu/cpu.h"

namespace wick::cli {
namespace {

constexpr const char* name_of(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "hip"; }
constexpr const char* use_of(DeviceKind kind) {
  return kind == DeviceKind::cuda ? "NVIDIA's driver: devices cuda:N"
                                  : "AMD's runtime: devices hip:N";
}

Json gpu_json(const GpuDescription& gpu) {
  return {{"name", gpu.device.str()},         {"description", gpu.name},
          {"architecture", gpu.architecture}, {"kernels", gpu.kernels},
          {"compiler", gpu.compiler},         {"wave", gpu.wave},
          {"processors", gpu.processors},     {"memory_bytes", gpu.memory_bytes}};
}

Json driver_json(const DriverDescription& driver) {
  Json json = {
      {"name", name_of(driver.kind)}, {"found", driver.found}, {"use", use_of(driver.kind)}};
  if (driver.found) {
    json["file"] = driver.library;
    json["version"] = driver.version;
  } else {
    json["missing"] = driver.missing;
  }
  return json;
}

Json library_json(const LibraryDescription& library) {
  Json json = {{"name", library.name},
               {"vendor", name_of(library.kind)},
               {"found", library.found},
               {"use", library.use}};
  if (library.found) {
    json["file"] = library.library;
    json["version"] = library.version;
  } else {
    json["missing"] = library.missing;
  }
  return json;
}

/// Describes the source of a GPU's kernels.
std::string kernels_text(const GpuDescription& gpu) {
  if (!gpu.kernels.empty()) return "kernels for " + gpu.kernels;
  if (gpu.compiler.empty()) return "this binary has no kernels for it, and no compiler was found";
  return "kernels compiled at first use by " + gpu.compiler;
}

void print_gpus() {
  const std::vector<GpuDescription> all = gpus();
  for (const GpuDescription& gpu : all) {
    print(fmt::format("{}  {} ({}), {} memory, {} multiprocessors, warps of {} ({})\n",
                      gpu.device.str(), gpu.name, gpu.architecture,
                      human_bytes(static_cast<int64_t>(gpu.memory_bytes)), gpu.processors, gpu.wave,
                      kernels_text(gpu)));
  }
  for (const DriverDescription& driver : gpu_drivers()) {
    if (driver.found) {
      print(fmt::format("  {}: {} {}\n", use_of(driver.kind), driver.library, driver.version));
    } else {
      print(fmt::format("  {}: not found: {}\n", use_of(driver.kind), driver.missing));
    }
  }
  for (const LibraryDescription& library : gpu_libraries()) {
    if (library.found) {
      print(fmt::format("  {} {}: {} ({})\n", library.name, library.version, library.use,
                        library.library));
    } else {
      print(fmt::format("  {}: not found, optional: {} ({})\n", library.name, library.use,
                        library.missing));
    }
  }
}

int run(bool json) {
  const Backend& cpu_backend = backend(Device::cpu());
  const MemoryInfo memory = cpu_backend.memory_info();
  if (json) {
    Json device = {{"name", "cpu"},
                   {"description", cpu_backend.description()},
                   {"isa", cpu::isa()},
                   {"isas", cpu::isas()},
                   {"threads", cpu::threads()},
                   {"memory_bytes", memory.total_bytes}};
    Json devices = Json::array({device}), libraries = Json::array();
    for (const GpuDescription& gpu : gpus()) devices.push_back(gpu_json(gpu));
    for (const DriverDescription& driver : gpu_drivers()) libraries.push_back(driver_json(driver));
    for (const LibraryDescription& library : gpu_libraries()) {
      libraries.push_back(library_json(library));
    }
    print_json({{"devices", devices}, {"libraries", libraries}});
    return kOk;
  }
  std::string others;
  for (const std::string& isa : cpu::isas()) others += " " + isa;
  print(fmt::format("cpu  {}, {} memory (runs kernels for:{})\n", cpu_backend.description(),
                    human_bytes(static_cast<int64_t>(memory.total_bytes)), others));
  print_gpus();
  return kOk;
}

}  // namespace

void add_devices(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = add_command(
      app, "devices", "List the devices of this machine",
      "WICK_CPU_ISA=v3 selects the CPU kernels of another instruction set;\n"
      "WICK_CUDA_LIBRARY and WICK_HIP_LIBRARY select other GPU drivers, WICK_NVRTC_LIBRARY and\n"
      "WICK_HIPRTC_LIBRARY other run-time compilers, which compile the kernels of custom ops and\n"
      "those that the binary lacks.\n"
      "WICK_HIP_LIBRARY=build/emu/lib/libamdhip64.so.6 selects a software AMD GPU (make emu).\n"
      "With WICK_EMU_CHECK=all it reports wrong accesses, races and missing barriers of kernels.",
      [json] { return run(*json); });
  command->add_flag("--json", *json, "Print JSON");
}

}  // namespace wick::cli
