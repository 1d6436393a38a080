#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include "common.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/quant.h"
#include "wick/io/convert.h"
#include "wick/models/open_model.h"
#include "wick/serve/vocabulary.h"

namespace wick::cli {
namespace {

struct QuantizeOptions {
  std::string in, out, type;
  std::optional<int> threads;
  bool json = false, verbose = false;
};

/// The superblock types that quantize can write.
constexpr DTypeSet kKTypes = [] {
  DTypeSet set;
  for (const QuantInfo& type : kQuants) {
    if (type.written && info(type.dtype).block_elems == 256) set = set | DTypeSet::of(type.dtype);
  }
  return set;
}();

/// Parses a type name. llama.cpp's q4_k_s and q4_k_m are mixes of types; wick writes q4_k for them
/// and prints a warning.
DType parse_type(const std::string& text) {
  const auto is = [&](std::string_view name) {
    return std::equal(text.begin(), text.end(), name.begin(), name.end(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    });
  };
  for (const std::string_view mix : {"q4_k_s", "q4_k_m"}) {
    if (!is(mix)) continue;
    warn(
        fmt::format("quantize: {} is written as q4_k, the output matrix as q6_k: llama.cpp's "
                    "mix gives more bits to some other weights",
                    mix));
    return DType::q4_k;
  }
  const std::optional<DType> type = parse_dtype(text);
  if (type && dtypes::kWritten.contains(*type)) return *type;
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool mix = lower.starts_with("iq") || lower.starts_with("tq") ||
                   (lower.starts_with("q") && lower.find("_k") != std::string::npos);
  throw Error(
      "quantize", "not a weight type", fmt::format("'{}'", printable(text)),
      fmt::format(
          "use {}{}", names(dtypes::kWritten),
          mix ? fmt::format(" (of llama.cpp's K-quants only {})", names(kKTypes, "and")) : ""));
}

/// `note` gets the reason why the file keeps the text of tokenizer.json; empty if it doesn't.
io::QuantizeResult convert(const QuantizeOptions& o, DType type, std::string& note) {
  Progress progress("quantizing");
  const std::shared_ptr<const io::ModelFile> in = models::open_model(o.in);
  return io::quantize_gguf(
      *in, o.out, type,
      [&](const io::QuantizeProgress& p) {
        progress.update(static_cast<int64_t>(p.done_bytes), static_cast<int64_t>(p.total_bytes));
        return !interrupted();
      },
      [&](io::GgufMetadata& metadata) { note = serve::convert_vocabulary(*in, metadata); });
}

void warn_requantized(const io::QuantizeResult& result) {
  for (const auto& r : result.requantized) {
    warn(
        fmt::format("quantize: {} tensors were converted from {} to {}, which rounds them twice: "
                    "start from f32, f16 or bf16",
                    r.tensors, name(r.from), name(r.to)));
  }
}

void report(const QuantizeOptions& o, const io::QuantizeResult& result) {
  if (o.verbose) {
    for (const std::string& note : result.notes) print(note + "\n");
  } else {
    for (const auto& r : result.replaced) {
      print(
          fmt::format("{} tensors are {} instead of {}: their rows are not a multiple of {} "
                      "(-v lists them)\n",
                      r.tensors, name(r.type), name(r.wanted), info(r.wanted).block_elems));
    }
  }
  for (const auto& t : result.types) {
    print(fmt::format("{:<6} {:>5} tensors {:>10}\n", name(t.dtype), t.tensors,
                      human_bytes(static_cast<int64_t>(t.bytes))));
  }
  print(fmt::format("{} -> {}\n", human_bytes(static_cast<int64_t>(result.bytes_in)),
                    human_bytes(static_cast<int64_t>(result.bytes_out))));
}

void report_json(const io::QuantizeResult& result, const std::string& note) {
  Json types = Json::array(), replaced = Json::array(), requantized = Json::array();
  for (const auto& t : result.types) {
    types.push_back({{"type", name(t.dtype)}, {"tensors", t.tensors}, {"bytes", t.bytes}});
  }
  for (const auto& r : result.replaced) {
    replaced.push_back(
        {{"wanted", name(r.wanted)}, {"type", name(r.type)}, {"tensors", r.tensors}});
  }
  for (const auto& r : result.requantized) {
    requantized.push_back({{"from", name(r.from)}, {"to", name(r.to)}, {"tensors", r.tensors}});
  }
  print_json({{"types", types},
              {"notes", result.notes},
              {"vocabulary", note},
              {"replaced", replaced},
              {"requantized", requantized},
              {"bytes_in", result.bytes_in},
              {"bytes_out", result.bytes_out}});
}

int run_quantize(const QuantizeOptions& o) {
  const DType type = parse_type(o.type);
  if (o.threads) cpu::set_threads(*o.threads);
  io::QuantizeResult result;
  std::string note;
  try {
    const StopInOrder in_order(Stop::patient);
    result = convert(o, type, note);
  } catch (const Error&) {
    if (interrupted()) return kInterrupted;
    throw;
  }
  if (interrupted()) return kInterrupted;
  if (o.json) {
    report_json(result, note);
  } else {
    if (!note.empty()) {
      warn(fmt::format("quantize: the file keeps the text of tokenizer.json: {}", note));
    }
    warn_requantized(result);
    report(o, result);
  }
  return kOk;
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto o = std::make_shared<QuantizeOptions>();
  CLI::App* command =
      add_command(app, "quantize", "Convert a model's weights to another type",
                  "TYPE is one of " + names(dtypes::kWritten) +
                      ". Blocks of "
                      "q4_k and q6_k have 256 values: weights whose rows aren't a "
                      "multiple of 256 become q5_0 and q8_0. llama.cpp's names q4_k_s and\n"
                      "q4_k_m stand for q4_k. OUT appears only when it is complete, with the "
                      "permissions\nof IN, restricted by the umask.\n"
                      "Example: wick quantize model-f16.gguf model-q8_0.gguf q8_0",
                  [o] { return run_quantize(*o); });
  command->add_option("IN", o->in, "Model file (GGUF) or folder (Hugging Face)")->required();
  command->add_option("OUT", o->out, "File to write")->required();
  command->add_option("TYPE", o->type, "Weight type")->required();
  add_number(*command, "-t,--threads", o->threads, kThreadsHelp)->type_name("T");
  command->add_flag("-v,--verbose", o->verbose, "List every weight that gets another type");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
