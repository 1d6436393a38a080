#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/convert.h"
#include "wick/models/open_model.h"
#include "wick/serve/vocabulary.h"

namespace wick::cli {
namespace {

struct QuantizeCommand {
  std::string in, out, type, importance, output_type, embedding_type;
  std::vector<std::string> tensor_types;
  std::optional<int> threads;
  bool json = false, verbose = false;
};

io::FileType parse_type(const std::string& text) {
  if (const std::optional<io::FileType> type = io::find_file_type(text)) return *type;
  throw Error("quantize", "not a weight type", fmt::format("'{}'", printable(text)),
              "use " + io::file_type_names());
}

/// The dtype of weights that an option names. Mixtures aren't dtypes.
DType parse_dtype_of(const char* option, const std::string& text) {
  const std::optional<DType> dtype = parse_dtype(text);
  if (dtype && dtypes::kWeightFiles.contains(*dtype)) return *dtype;
  throw Error(option, "not a dtype that can be written", fmt::format("'{}'", printable(text)),
              "use " + names(dtypes::kWeightFiles));
}

io::TensorType parse_tensor_type(const std::string& text) {
  constexpr const char* kOption = "--tensor-type";
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(kOption, "not an assignment", fmt::format("'{}'", printable(text)),
                "need PATTERN=TYPE");
  }
  return {text.substr(0, equals), parse_dtype_of(kOption, text.substr(equals + 1))};
}

io::QuantizeOptions parse(const QuantizeCommand& o) {
  io::QuantizeOptions options{.type = parse_type(o.type)};
  for (const std::string& text : o.tensor_types) {
    options.tensor_types.push_back(parse_tensor_type(text));
  }
  if (!o.output_type.empty()) {
    options.output_type = parse_dtype_of("--output-type", o.output_type);
  }
  if (!o.embedding_type.empty()) {
    options.embedding_type = parse_dtype_of("--token-embedding-type", o.embedding_type);
  }
  return options;
}

/// `note` gets the reason why the file keeps the text of tokenizer.json; empty if it doesn't.
io::QuantizeResult convert(const QuantizeCommand& o, const io::QuantizeOptions& options,
                           std::string& note) {
  Progress progress("quantizing");
  const std::shared_ptr<const io::ModelFile> in = models::open_model(o.in);
  check_output("quantize", o.out, {in->path(), o.importance});
  return io::quantize_gguf(
      *in, o.out, options,
      [&](const io::QuantizeProgress& p) {
        progress.update(static_cast<int64_t>(p.done_bytes), static_cast<int64_t>(p.total_bytes));
        return !interrupted();
      },
      [&](io::GgufMetadata& metadata) { note = serve::convert_vocabulary(*in, metadata); });
}

/// "a, b, c and 5 others"
std::string some_of(const std::vector<std::string>& tensors) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(tensors.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + printable(tensors[i]);
  }
  if (tensors.size() > kShown) text += fmt::format(" and {} others", tensors.size() - kShown);
  return text;
}

/// Breaks a text into lines of at most 90 characters.
std::string wrapped(std::string text) {
  constexpr size_t kWidth = 90;
  for (size_t begin = 0; text.size() - begin > kWidth;) {
    const size_t space = text.rfind(' ', begin + kWidth);
    if (space == std::string::npos || space <= begin) break;
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

void warn_importance(const io::QuantizeResult& result) {
  const auto& missing = result.without_importance;
  if (!missing.empty()) {
    warn(fmt::format("quantize: the importance matrix has no data for {}: all columns count alike",
                     some_of(missing)));
  }
  const auto& partial = result.partial_importance;
  if (!partial.empty()) {
    warn(
        fmt::format("quantize: the importance matrix has no data for some experts of {}: their "
                    "columns count alike",
                    some_of(partial)));
  }
}

void warn_unused(const io::QuantizeResult& result) {
  for (const std::string& pattern : result.unused_patterns) {
    warn(fmt::format("--tensor-type: no weight gets the type of '{}'", printable(pattern)));
  }
}

void warn_not_finite(const io::QuantizeResult& result) {
  for (const auto& t : result.not_finite) {
    warn(fmt::format("quantize: {} has {} values that are NaN or infinite", printable(t.tensor),
                     t.values));
  }
}

void warn_requantized(const io::QuantizeResult& result) {
  for (const auto& r : result.requantized) {
    warn(
        fmt::format("quantize: {} tensors were converted from {} to {}, which rounds them twice: "
                    "start from f32, f16 or bf16",
                    r.tensors, name(r.from), name(r.to)));
  }
}

void report(const QuantizeCommand& o, const io::QuantizeResult& result) {
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
  Json not_finite = Json::array();
  for (const auto& t : result.not_finite) {
    not_finite.push_back({{"tensor", t.tensor}, {"values", t.values}});
  }
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
              {"not_finite", not_finite},
              {"without_importance", result.without_importance},
              {"partial_importance", result.partial_importance},
              {"unused_patterns", result.unused_patterns},
              {"bytes_in", result.bytes_in},
              {"bytes_out", result.bytes_out}});
}

int run_quantize(const QuantizeCommand& o) {
  io::QuantizeOptions options = parse(o);
  if (o.threads) cpu::set_threads(*o.threads);
  std::optional<io::Importance> importance;
  if (!o.importance.empty()) importance = io::Importance::load(o.importance);
  options.importance = importance ? &*importance : nullptr;
  io::QuantizeResult result;
  std::string note;
  try {
    const StopInOrder in_order(Stop::patient);
    result = convert(o, options, note);
  } catch (const Error&) {
    if (interrupted()) return interrupted_code();
    throw;
  }
  if (interrupted()) return interrupted_code();
  if (o.json) {
    report_json(result, note);
  } else {
    if (!note.empty()) {
      warn(fmt::format("quantize: the file keeps the text of tokenizer.json: {}", note));
    }
    warn_requantized(result);
    warn_unused(result);
    warn_importance(result);
    warn_not_finite(result);
    report(o, result);
  }
  return kOk;
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto o = std::make_shared<QuantizeCommand>();
  CLI::App* command = add_command(
      app, "quantize", "Convert a model's weights to another type",
      wrapped("TYPE is one of " + io::file_type_names()) +
          ".\nNames that end with _s, _m and _l, q2_k, and those that begin with iq and tq, are "
          "llama.cpp's\nmixtures: some weights get types with more bits. Those of iq1 and iq2, "
          "iq3_xxs "
          "and iq3_xs\nneed an importance matrix. mxfp4 is for "
          "the weights of experts; others become q8_0. The\noutput matrix gets q6_k, q5_k or "
          "q8_0. Weights whose rows aren't a multiple of the block's\nsize get another "
          "type. OUT appears only when it is complete, with the permissions\nof IN, "
          "restricted by the umask. If OUT is a symbolic link, the file that it\nrefers to is "
          "replaced.\n"
          "Examples: wick quantize model-f16.gguf model-q8_0.gguf q8_0\n"
          "          wick quantize --imatrix imatrix.gguf model-f16.gguf out.gguf q3_k_m",
      [o] { return run_quantize(*o); });
  require_value(command->add_option("IN", o->in, kModelHelp))->required();
  require_value(command->add_option("OUT", o->out, "File to write"))->required();
  command->add_option("TYPE", o->type, "Weight type")->required();
  require_value(command->add_option("--imatrix", o->importance,
                                    "Importance matrix (wick imatrix): columns that matter are "
                                    "rounded better"))
      ->type_name("FILE");
  command
      ->add_option("--tensor-type", o->tensor_types,
                   "Type of the weights whose names contain PATTERN, in which * is any text; may "
                   "be given several times")
      ->type_name("PATTERN=TYPE")
      ->expected(1)
      ->take_all();
  require_value(command->add_option("--output-type", o->output_type, "Type of the output matrix"))
      ->type_name("TYPE");
  require_value(command->add_option("--token-embedding-type", o->embedding_type,
                                    "Type of the embedding table"))
      ->type_name("TYPE");
  add_number(*command, "-t,--threads", o->threads, kThreadsHelp)->type_name("T");
  command->add_flag("-v,--verbose", o->verbose, "List every weight that gets another type");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
