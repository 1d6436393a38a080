#include <fmt/format.h>

#include <memory>

#include "common.h"

namespace wick::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  TextOptions text;
  bool no_special = false, json = false;
};

/// The JSON texts of a vocabulary's pieces, each made on first use: a text of millions of tokens
/// repeats a few thousand pieces.
class Pieces {
 public:
  explicit Pieces(const text::Tokenizer& tokenizer)
      : tokenizer_(tokenizer), texts_(static_cast<size_t>(tokenizer.vocab_size())) {}

  const std::string& operator[](int32_t id) {
    std::string& text = texts_[static_cast<size_t>(id)];
    if (text.empty()) text = json_text(std::string(tokenizer_.piece(id)));
    return text;
  }

 private:
  const text::Tokenizer& tokenizer_;
  std::vector<std::string> texts_;
};

int run_tokenize(const TokenizeOptions& o) {
  std::vector<int32_t> tokens;
  const text::Tokenizer tokenizer = [&] {
    const std::string text = o.text.read();
    text::Tokenizer loaded = serve::open_tokenizer(o.model);
    if (!loaded.warning().empty()) warn(fmt::format("{}: {}", o.model, loaded.warning()));
    text::EncodeOptions options;
    options.parse_special = !o.no_special;
    tokens = o.text.encode(loaded, text, options);
    return loaded;
  }();
  Pieces pieces(tokenizer);
  if (o.json) {
    JsonPrinter json;
    json.list("tokens", tokens.size(), [&](size_t i) { return std::to_string(tokens[i]); });
    json.list("pieces", tokens.size(), [&](size_t i) { return pieces[tokens[i]]; });
    json.finish();
    return kOk;
  }
  // JSON escapes make spaces, newlines and invalid bytes visible.
  for (const int32_t id : tokens) print(fmt::format("{:>8}  {}\n", id, pieces[id]));
  return kOk;
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto o = std::make_shared<TokenizeOptions>();
  CLI::App* command =
      add_command(app, "tokenize", "Show the tokens of a text",
                  "Reads the whole text into memory and needs four more bytes per token.\n"
                  "Example: wick tokenize -m model.gguf -p \"Hello world\"",
                  [o] { return run_tokenize(*o); });
  command->add_option("-m,--model", o->model, kTokenizerHelp)->required()->type_name("FILE");
  o->text.add_to(*command, "Text");
  command->add_flag("--no-special", o->no_special,
                    "Treat control tokens in the text as plain text");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
