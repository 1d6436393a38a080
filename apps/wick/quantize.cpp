#include <fmt/format.h>

#include <memory>
#include <optional>

#include "common.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/base/error.h"
#include "wick/io/convert.h"

namespace wick::cli {
namespace {

struct Options {
  std::string in, out, type;
  std::optional<int> threads;
  bool json = false;
};

int run(const Options& o) {
  const std::optional<DType> type = parse_dtype(o.type);
  if (!type || !dtypes::kWeights.contains(*type)) {
    throw Error("quantize", "not a weight type", fmt::format("'{}'", o.type),
                "use f32, f16, bf16, q4_0, q4_1, q5_0, q8_0, q4_k or q6_k");
  }
  if (o.threads) cpu::set_threads(*o.threads);
  io::QuantizeResult result;
  {
    Progress progress("quantizing");
    try {
      result = io::quantize_gguf(o.in, o.out, *type, [&](const io::QuantizeProgress& p) {
        progress.update(static_cast<int64_t>(p.done_bytes), static_cast<int64_t>(p.total_bytes));
        return !interrupted();
      });
    } catch (const Error&) {
      if (interrupted()) return kInterrupted;
      throw;
    }
  }
  if (o.json) {
    Json types = Json::array();
    for (const auto& t : result.types) {
      types.push_back({{"type", name(t.dtype)}, {"tensors", t.tensors}, {"bytes", t.bytes}});
    }
    print_json({{"types", types},
                {"notes", result.notes},
                {"bytes_in", result.bytes_in},
                {"bytes_out", result.bytes_out}});
    return kOk;
  }
  for (const std::string& note : result.notes) print(note + "\n");
  for (const auto& t : result.types) {
    print(fmt::format("{:<6} {:>5} tensors {:>10}\n", name(t.dtype), t.tensors,
                      human_bytes(static_cast<int64_t>(t.bytes))));
  }
  print(fmt::format("{} -> {}\n", human_bytes(static_cast<int64_t>(result.bytes_in)),
                    human_bytes(static_cast<int64_t>(result.bytes_out))));
  return kOk;
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, "quantize", "Convert a model's weights to another type",
                  "TYPE is one of f32 f16 bf16 q4_0 q4_1 q5_0 q8_0 q4_k q6_k. Blocks of "
                  "q4_k and q6_k have 256 values: weights whose rows aren't a "
                  "multiple become q5_0 and q8_0. The result appears under its "
                  "name only when whole.\n"
                  "Example: wick quantize model-f16.gguf model-q8_0.gguf q8_0",
                  [o] { return run(*o); });
  command->add_option("IN", o->in, "Model file (GGUF)")->required();
  command->add_option("OUT", o->out, "File to write")->required();
  command->add_option("TYPE", o->type, "Weight type")->required();
  add_number(*command, "-t,--threads", o->threads, kThreadsHelp)->type_name("T");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
