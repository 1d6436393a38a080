#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/serve/importance.h"

namespace wick::cli {
namespace {

struct ImatrixOptions {
  ModelOptions model;
  std::string text, out;
  std::optional<int64_t> context;
  int64_t first = 0, count = 0;
  bool json = false;
};

constexpr int64_t kUsualChunk = 512;

/// Errors: an option is out of range, whatever the model.
void check(const ImatrixOptions& o) {
  const auto require = [](const char* option, int64_t value, int64_t least) {
    if (value >= least) return;
    throw Error(option, "out of range", fmt::format("{}", value),
                fmt::format("need at least {}", least));
  };
  require("--ctx", o.context.value_or(kUsualChunk), 1);
  require("--chunk", o.first, 0);
  require("--chunks", o.count, 0);
}

serve::ImportanceOptions chunks_of(const ImatrixOptions& o, const serve::Engine& engine) {
  const int64_t longest = engine.model().context_length();
  if (o.context && *o.context > longest) {
    throw Error("--ctx", "out of range", fmt::format("{}", *o.context),
                fmt::format("the model was trained for {}", longest));
  }
  serve::ImportanceOptions options{.chunk_size = o.context.value_or(std::min(kUsualChunk, longest)),
                                   .first_chunk = o.first,
                                   .chunks = o.count};
  const auto& tokenizer = engine.tokenizer();
  if (const auto first = tokenizer.first_added()) options.first_token = *first;
  return options;
}

/// The number of expert weights with at least one expert that no token used.
int64_t partial_weights(const io::Importance& importance) {
  return std::count_if(importance.entries.begin(), importance.entries.end(), [](const auto& of) {
    const auto& counts = of.second.counts;
    return counts.size() > 1 && std::find(counts.begin(), counts.end(), 0.0f) != counts.end();
  });
}

/// `longest`: the number of positions that the model was trained for.
void report(const ImatrixOptions& o, const io::Importance& importance, int64_t tokens,
            int64_t longest) {
  const int64_t partial = partial_weights(importance);
  if (o.json) {
    print_json({{"out", o.out},
                {"weights", importance.entries.size()},
                {"partial", partial},
                {"tokens", tokens},
                {"chunks", importance.chunk_count},
                {"chunk_size", importance.chunk_size}});
    return;
  }
  if (!o.context && longest < kUsualChunk) {
    warn(
        fmt::format("imatrix: chunks of {} tokens instead of {}: the model was trained for no "
                    "more",
                    longest, kUsualChunk));
  }
  if (partial > 0) {
    warn(
        fmt::format("imatrix: {} weights have experts that no token used: a longer text may "
                    "use them",
                    partial));
  }
  print(fmt::format("{} weights, {} chunks of {} tokens -> {}\n", importance.entries.size(),
                    importance.chunk_count, importance.chunk_size, printable(o.out)));
}

int run_imatrix(ImatrixOptions o) {
  check(o);
  std::vector<std::string> inputs = o.model.input_paths();
  inputs.push_back(o.text);
  check_output("--output", o.out, inputs);
  // What a step of serve::importance takes, for --gpu-layers auto.
  o.model.context = o.model.batch = o.context.value_or(kUsualChunk);
  o.model.cache = "f32";
  const std::string text = read_text(o.text);
  const auto engine = o.model.load();
  const serve::ImportanceOptions options = chunks_of(o, *engine);
  const std::vector<int32_t> tokens =
      encode_text(engine->tokenizer(), text, o.text, {.add_eos = false});
  const int64_t chunks = serve::importance_chunks(static_cast<int64_t>(tokens.size()), options);
  const StopInOrder in_order(Stop::patient);
  io::Importance importance;
  {
    Progress progress("collecting");
    importance = serve::importance(engine->model(), tokens, options, [&](int64_t done) {
      progress.update(done, chunks);
      return !interrupted();
    });
  }
  note_memory(engine->model().device());
  if (interrupted()) return interrupted_code();
  importance.datasets = {o.text};
  importance.save(o.out);
  report(o, importance, static_cast<int64_t>(importance.chunk_count) * importance.chunk_size,
         engine->model().context_length());
  return kOk;
}

}  // namespace

void add_imatrix(CLI::App& app) {
  auto o = std::make_shared<ImatrixOptions>();
  CLI::App* command = add_command(
      app, "imatrix", "Measure which columns of the weights matter",
      "Runs a text through a model and sums the squares of what each weight's columns are\n"
      "multiplied by. `wick quantize --imatrix OUT` then rounds columns with large sums more\n"
      "exactly. The text should be like what the model will be used for; the model should have\n"
      "the best weights that fit in memory. The text is split into chunks of --ctx tokens, which\n"
      "run independently; a shorter rest is left out.\n"
      "Example: wick imatrix -m model-f16.gguf -f text.txt -o imatrix.gguf",
      [o] { return run_imatrix(*o); });
  o->model.add_to(*command, false);
  require_value(command->add_option("-f,--file", o->text, "Text file (-: stdin)"))
      ->required()
      ->type_name("FILE");
  require_value(command->add_option("-o,--output", o->out, "File to write (GGUF)"))
      ->required()
      ->type_name("FILE");
  add_number(*command, "-c,--ctx", o->context, "Tokens in a chunk (default: 512)")->type_name("N");
  add_number(*command, "--chunk", o->first, "First chunk to run; chunks are counted from 0")
      ->type_name("N")
      ->capture_default_str();
  add_number(*command, "--chunks", o->count, "Largest number of chunks; 0: all")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
