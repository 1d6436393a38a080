#include "wick/serve/embed.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "common.h"
#include "wick/base/error.h"

namespace wick::cli {
namespace {

struct CommandOptions {
  ModelOptions model;
  std::vector<std::string> texts;
  std::string file;
  serve::EmbedOptions embed;
  bool raw = false, json = false;
};

/// The texts of the command line, then the lines of the file.
std::vector<std::string> read_texts(const CommandOptions& o) {
  std::vector<std::string> texts = o.texts;
  if (!o.file.empty()) {
    const std::string all = read_text(o.file);
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      std::string line = all.substr(begin, end - begin);
      if (line.ends_with('\r')) line.pop_back();
      texts.push_back(std::move(line));
      begin = end + 1;
    }
  }
  if (texts.empty()) throw Error("embed", "no text", "", "give texts, or a file with -f");
  return texts;
}

int run_embed(CommandOptions o) {
  const std::vector<std::string> texts = read_texts(o);
  // What a step of serve::embed takes, for --gpu-layers auto.
  o.model.context = o.model.batch = serve::kEmbedTokens;
  o.model.cache = "f32";
  const std::shared_ptr<const serve::Engine> engine = o.model.load();
  o.embed.normalize = !o.raw;
  const StopInOrder stop(Stop::soon);
  Progress progress("Texts");
  const auto count = static_cast<int64_t>(texts.size());
  const Tensor rows = serve::embed(*engine, texts, o.embed, [&](int64_t done) {
    progress.update(done, count);
    return !interrupted();
  });
  note_memory(engine->model().device());
  const std::vector<float> values = rows.to_vector<float>();
  const auto done = static_cast<size_t>(rows.size(0)), size = static_cast<size_t>(rows.size(1));
  const auto row = [&](size_t i, const char* between) {
    std::string line;
    for (size_t j = 0; j < size; ++j) {
      line += fmt::format("{}{}", j == 0 ? "" : between, values[i * size + j]);
    }
    return line;
  };
  if (o.json) {
    JsonPrinter json;
    json.list("embeddings", done, [&](size_t i) { return "[" + row(i, ",") + "]"; });
    json.finish();
  } else {
    for (size_t i = 0; i < done; ++i) print(row(i, " ") + "\n");
  }
  return rows.size(0) < count ? interrupted_code() : kOk;
}

}  // namespace

void add_embed(CLI::App& app) {
  auto o = std::make_shared<CommandOptions>();
  CLI::App* command =
      add_command(app, "embed", "Make embeddings of texts",
                  "Prints one line of numbers for each text, pooled as the model file says.\n"
                  "Example: wick embed -m all-MiniLM-L6-v2.gguf \"A cat sleeps.\" \"A dog barks.\"",
                  [o] { return run_embed(*o); });
  o->model.add_to(*command, false);
  command->add_option("TEXT", o->texts, "Texts");
  require_value(command->add_option("-f,--file", o->file,
                                    "File with one text per line; - for standard input"))
      ->type_name("FILE");
  add_number(*command, "--size", o->embed.size,
             "Keep only the first elements of each embedding (Matryoshka models)");
  command->add_flag("--raw", o->raw, "Don't scale embeddings to the norm 1");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
