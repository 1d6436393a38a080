#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "common.h"

namespace wick::cli {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  bool json = false;
};

int run_perplexity(const PerplexityOptions& o) {
  const std::string text = read_text(o.file);
  const auto engine = o.model.load();
  o.model.check_context(engine->model());
  const std::vector<int32_t> tokens = encode_text(engine->tokenizer(), text, o.file);
  Progress progress("scoring");
  const serve::Perplexity result =
      serve::perplexity(*engine, tokens, o.model.session(), [&](int64_t done) {
        progress.update(done, static_cast<int64_t>(tokens.size()));
        return true;
      });
  note_memory(engine->model().device());
  // The standard errors of the mean, and of its exponential to first order.
  const auto count = static_cast<double>(result.nll.size());
  double squares = 0;
  for (const double x : result.nll) squares += (x - result.mean_nll) * (x - result.mean_nll);
  const double error = count < 2 ? 0 : std::sqrt(squares / (count - 1) / count);
  if (o.json) {
    JsonPrinter json;
    json.value("tokens", result.tokens);
    json.list("nll", result.nll.size(), [&](size_t i) { return json_text(result.nll[i]); });
    json.value("mean_nll", result.mean_nll);
    json.value("mean_nll_error", error);
    json.value("perplexity", std::exp(result.mean_nll));
    json.value("perplexity_error", error * std::exp(result.mean_nll));
    json.finish();
  } else {
    print(fmt::format(
        "{} tokens, {} scored: mean NLL {:.5f} +- {:.5f} nats, perplexity {:.4f} +- {:.4f}\n",
        result.tokens, result.nll.size(), result.mean_nll, error, std::exp(result.mean_nll),
        error * std::exp(result.mean_nll)));
  }
  return kOk;
}

}  // namespace

void add_perplexity(CLI::App& app) {
  auto o = std::make_shared<PerplexityOptions>();
  CLI::App* command = add_command(
      app, "perplexity", "Score a text",
      "The text is split into chunks of --ctx tokens, which run independently from an "
      "empty cache.\nEvery token except a chunk's first is scored by its negative "
      "log-likelihood (natural logarithm).\nIf the vocabulary's texts begin with a bos token, "
      "it replaces each chunk's first token.",
      [o] { return run_perplexity(*o); });
  o->model.add_to(*command);
  require_value(command->add_option("-f,--file", o->file, "Text file (-: stdin)"))
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", o->json, "Print JSON with every token's score");
}

}  // namespace wick::cli
