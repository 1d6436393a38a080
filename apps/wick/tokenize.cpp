#include <fmt/format.h>

#include <memory>

#include "common.h"

namespace wick::cli {
namespace {

struct Options {
  std::string model;
  TextOptions text;
  bool no_special = false, json = false;
};

int run(const Options& o) {
  const std::string text = o.text.read();
  if (interrupted()) return kInterrupted;
  const text::Tokenizer tokenizer = serve::load_tokenizer(*io::Gguf::open(o.model));
  text::EncodeOptions options;
  options.parse_special = !o.no_special;
  const std::vector<int32_t> tokens = o.text.encode(tokenizer, text, options);
  std::vector<std::string> pieces;
  for (int32_t id : tokens) pieces.emplace_back(tokenizer.piece(id));
  if (o.json) {
    print_json({{"tokens", tokens}, {"pieces", pieces}});
    return kOk;
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    // JSON's escapes make spaces, newlines and stray bytes visible.
    print(fmt::format("{:>8}  {}\n", tokens[i],
                      Json(pieces[i]).dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  return kOk;
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(app, "tokenize", "Show the tokens of a text",
                                  "Example: wick tokenize -m model.gguf -p \"Hello world\"",
                                  [o] { return run(*o); });
  command->add_option("-m,--model", o->model, "Model file (GGUF)")->required()->type_name("FILE");
  o->text.add_to(*command, "Text");
  command->add_flag("--no-special", o->no_special,
                    "Treat control tokens in the text as plain text");
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
