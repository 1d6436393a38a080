#include "wick/serve/embed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::cli {
namespace {

struct CommandOptions {
  ModelOptions model;
  std::vector<std::string> texts;
  std::string file;
  serve::EmbedOptions embed;
  std::optional<int64_t> size;
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

/// The name of a text in errors.
std::string text_name(const CommandOptions& o, size_t index) {
  if (index < o.texts.size()) return fmt::format("TEXT {}", index + 1);
  return fmt::format("{}: line {}", o.file == "-" ? "stdin" : printable(o.file),
                     index - o.texts.size() + 1);
}

int run_embed(CommandOptions o) {
  if (o.size && *o.size < 1) {
    throw Error("embed", "--size out of range", fmt::format("{}", *o.size), "need at least 1");
  }
  o.embed.size = o.size.value_or(0);
  const std::vector<std::string> texts = read_texts(o);
  // What a step of serve::embed_steps takes, for --gpu-layers auto.
  o.model.context = o.model.batch = serve::kEmbedTokens;
  o.model.cache = "f32";
  const std::shared_ptr<const serve::Engine> engine = o.model.load();
  o.embed.normalize = !o.raw;
  o.embed.text_name = [&](size_t index) { return text_name(o, index); };
  o.embed.cancelled = interrupted;
  const StopInOrder stop(Stop::soon);
  Progress progress("Texts");
  const auto count = static_cast<int64_t>(texts.size());
  int64_t done = 0;
  std::optional<JsonPrinter> json;
  const auto begin = [&] {
    if (o.json && !json) json.emplace().begin_list("embeddings");
  };
  serve::embed_steps(*engine, texts, o.embed, [&](const Tensor& rows) {
    progress.erase();
    begin();
    const std::vector<float> values = rows.to_vector<float>();
    const auto size = static_cast<size_t>(rows.size(1));
    for (size_t at = 0; at < values.size(); at += size) {
      const auto row = std::span(values).subspan(at, size);
      if (json) {
        json->list_item(fmt::format("[{}]", fmt::join(row, ",")));
      } else {
        print(fmt::format("{}\n", fmt::join(row, " ")));
      }
    }
    flush_output();
    done += rows.size(0);
    progress.update(done, count);
  });
  note_memory(engine->model().device());
  begin();
  if (json) {
    json->end_list();
    json->finish();
  }
  return done < count ? interrupted_code() : kOk;
}

}  // namespace

void add_embed(CLI::App& app) {
  auto o = std::make_shared<CommandOptions>();
  CLI::App* command = add_command(
      app, "embed", "Make embeddings of texts",
      "Prints one line of numbers for each text, pooled as the model file says, as soon as it is\n"
      "computed.\n"
      "Example: wick embed -m all-MiniLM-L6-v2.gguf \"A cat sleeps.\" \"A dog barks.\"",
      [o] { return run_embed(*o); });
  o->model.add_to(*command, false);
  command->add_option("TEXT", o->texts, "Texts");
  require_value(command->add_option("-f,--file", o->file,
                                    "File with one text per line; - for standard input"))
      ->type_name("FILE");
  add_number(*command, "--size", o->size,
             "Keep only the first elements of each embedding (Matryoshka models)");
  command->add_flag("--raw", o->raw, "Don't scale embeddings to the norm 1");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
