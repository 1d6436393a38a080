#include <fmt/format.h>

#include <memory>

#include "common.h"
#include "wick/backend/backend.h"
#include "wick/backend/cpu/cpu.h"

namespace wick::cli {
namespace {

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
    print_json({{"devices", Json::array({device})}, {"libraries", Json::array()}});
    return kOk;
  }
  std::string others;
  for (const std::string& isa : cpu::isas()) others += " " + isa;
  print(fmt::format("cpu  {}, {} memory (runs kernels for:{})\n", cpu_backend.description(),
                    human_bytes(static_cast<int64_t>(memory.total_bytes)), others));
  return kOk;
}

}  // namespace

void add_devices(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      add_command(app, "devices", "List what models can run on",
                  "WICK_CPU_ISA=v3 makes the CPU use the kernels of another instruction set.",
                  [json] { return run(*json); });
  command->add_flag("--json", *json, "Print JSON");
}

}  // namespace wick::cli
