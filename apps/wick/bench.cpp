#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common.h"
#include "wick/backend/cpu/cpu.h"

namespace wick::cli {
namespace {

struct Options {
  ModelOptions model;
  std::vector<int64_t> prompts, lengths;
  std::vector<int> threads;
  int64_t depth = 0;
  int repeats = 5;
  bool json = false;
};

struct Row {
  std::string test;
  int threads;
  std::vector<double> tps;  // sorted

  double median() const { return (tps[(tps.size() - 1) / 2] + tps[tps.size() / 2]) / 2; }
};

std::vector<int32_t> some_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * 7919 + 17) % vocabulary));
  return tokens;
}

/// A model under measurement, with a cache.
struct Subject {
  const models::CausalLm& model;
  nn::KvCache cache;
  models::Decoder decoder;

  Subject(const models::CausalLm& measured, int64_t context, DType cache_dtype)
      : model(measured), cache(model.make_cache(context, cache_dtype)), decoder(model, cache) {
    cache.reserve(context);  // as much room in the first repetition as in the last
  }
  void run(std::span<const int32_t> tokens) {
    model.forward(tokens, cache, models::Logits::last);
    backend(model.device()).synchronize();
  }
};

/// Tokens a second of one repetition: the prompt in batches.
double measure(Subject& subject, const std::vector<int32_t>& tokens, int64_t depth, int64_t batch) {
  subject.cache.truncate(depth);
  const auto total = static_cast<int64_t>(tokens.size());
  const double start = now_seconds();
  for (int64_t at = 0; at < total; at += batch) {
    const auto count = static_cast<size_t>(std::min(batch, total - at));
    subject.run(std::span(tokens).subspan(static_cast<size_t>(at), count));
  }
  return static_cast<double>(total) / (now_seconds() - start);
}

/// The same for `total` tokens one by one: the likeliest, as the device draws them and the host
/// reads them.
double measure_steps(Subject& subject, int64_t total, int64_t depth) {
  subject.cache.truncate(depth);
  const Tensor logits =
      Tensor::zeros({1, subject.model.vocab_size()}, DType::f32, subject.model.device());
  SamplerOptions likeliest;
  likeliest.temperature = 0;
  const models::Decoder::Sampling sampling{{}, likeliest};
  const double start = now_seconds();
  subject.decoder.start(logits, {&sampling, 1});
  for (int64_t i = 0; i < total; ++i) subject.decoder.next(true);
  subject.decoder.next(false);
  return static_cast<double>(total) / (now_seconds() - start);
}

Row run_test(Subject& subject, const Options& o, bool prompt, int64_t length, int threads) {
  Row row{fmt::format("{}{}{}", prompt ? "pp" : "tg", length,
                      o.depth > 0 ? fmt::format("@{}", o.depth) : ""),
          threads,
          {}};
  cpu::set_threads(threads);
  const int64_t vocabulary = subject.model.vocab_size();
  const std::vector<int32_t> tokens = some_tokens(length, vocabulary);
  subject.cache.truncate(0);
  if (o.depth > 0) measure(subject, some_tokens(o.depth, vocabulary), 0, o.model.batch);
  const auto once = [&](const std::vector<int32_t>& some) {
    return prompt ? measure(subject, some, o.depth, o.model.batch)
                  : measure_steps(subject, static_cast<int64_t>(some.size()), o.depth);
  };
  // The first repetition warms caches and the allocator and isn't counted.
  const std::vector<int32_t> warm(tokens.begin(),
                                  tokens.begin() + std::min<int64_t>(length, prompt ? length : 8));
  once(warm);
  for (int i = 0; i < o.repeats; ++i) {
    row.tps.push_back(once(tokens));
  }
  std::sort(row.tps.begin(), row.tps.end());
  return row;
}

int run(Options o) {
  if (o.prompts.empty() && o.lengths.empty()) {
    o.prompts = {512};
    o.lengths = {128};
  }
  if (o.threads.empty()) o.threads = {cpu::threads()};
  if (o.repeats < 1)
    throw Error("--repeats", "out of range", fmt::format("{}", o.repeats), "need at least 1");
  constexpr int64_t kMost = 1 << 24;
  if (o.depth < 0 || o.depth > kMost)
    throw Error("--depth", "out of range", fmt::format("{}", o.depth),
                fmt::format("need 0 to {}", kMost));
  // 0 leaves a test out, as in -p 0 -n 128.
  std::erase(o.prompts, 0);
  std::erase(o.lengths, 0);
  if (o.prompts.empty() && o.lengths.empty())
    throw Error("bench", "nothing to measure", "", "need a length above 0 in -p or -n");
  int64_t longest = 1;
  for (const auto* list : {&o.prompts, &o.lengths}) {
    for (int64_t n : *list) {
      if (n < 0 || n > kMost) {
        throw Error("bench", "length out of range", fmt::format("{}", n),
                    fmt::format("need 0 to {}", kMost));
      }
      longest = std::max(longest, n);
    }
  }
  for (int threads : o.threads) cpu::set_threads(threads);  // refuse a bad count before loading
  cpu::set_threads(*std::max_element(o.threads.begin(), o.threads.end()));
  const double start = now_seconds();
  const auto model = o.model.load_model();
  const double load_ms = (now_seconds() - start) * 1e3;
  Subject subject(*model, longest + o.depth, o.model.session().cache_dtype);

  std::vector<Row> rows;
  for (int threads : o.threads) {
    for (int64_t n : o.prompts) rows.push_back(run_test(subject, o, true, n, threads));
    for (int64_t n : o.lengths) rows.push_back(run_test(subject, o, false, n, threads));
  }
  if (o.json) {
    Json list = Json::array();
    for (const Row& row : rows) {
      list.push_back({{"test", row.test},
                      {"threads", row.threads},
                      {"tps", row.median()},
                      {"tps_min", row.tps.front()},
                      {"tps_max", row.tps.back()}});
    }
    print_json({{"rows", list}, {"load_ms", load_ms}, {"peak_bytes", peak_resident_bytes()}});
    return kOk;
  }
  print(fmt::format("{:<12} {:>8} {:>12} {:>12} {:>12}\n", "test", "threads", "tokens/s", "min",
                    "max"));
  for (const Row& row : rows) {
    print(fmt::format("{:<12} {:>8} {:>12.1f} {:>12.1f} {:>12.1f}\n", row.test, row.threads,
                      row.median(), row.tps.front(), row.tps.back()));
  }
  print(fmt::format("load {:.0f} ms, memory {}\n", load_ms, human_bytes(peak_resident_bytes())));
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, "bench", "Measure prompt and generation speed",
                  "Every -p is a row ppN (a prompt of N tokens), every -n a row tgN (N tokens "
                  "generated one by\n"
                  "one from an empty cache), for every -t. The median of the repeats is shown.",
                  [o] { return run(*o); });
  o->model.add_to(*command, false);
  add_number(*command, "-p,--prompt", o->prompts, "Prompt lengths (default 512)")
      ->type_name("N")
      ->delimiter(',');
  add_number(*command, "-n,--tokens", o->lengths, "Generation lengths (default 128)")
      ->type_name("N")
      ->delimiter(',');
  add_number(*command, "-t,--threads", o->threads, kThreadsHelp)->type_name("T")->delimiter(',');
  add_number(*command, "-d,--depth", o->depth, "Tokens in the cache before each test")
      ->type_name("N");
  add_number(*command, "-r,--repeats", o->repeats, "Counted repetitions")
      ->type_name("N")
      ->capture_default_str();
  add_number(*command, "--batch", o->model.batch, "Prompt tokens run at once")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--cache-type", o->model.cache, "Type of the KV cache: f16, bf16 or f32")
      ->type_name("TYPE")
      ->capture_default_str();
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
