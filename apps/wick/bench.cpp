#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "common.h"
#include "wick/backend/cpu/cpu.h"

namespace wick::cli {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<int64_t> prompts, lengths, sequences;
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
  /// The standard deviation of the repetitions; 0 for one.
  double deviation() const {
    double mean = 0, squares = 0;
    for (const double x : tps) mean += x / static_cast<double>(tps.size());
    for (const double x : tps) squares += (x - mean) * (x - mean);
    return tps.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(tps.size() - 1));
  }
};

std::vector<int32_t> some_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * 7919 + 17) % vocabulary));
  return tokens;
}

/// A model to measure, with a cache for several sequences.
struct Subject {
  const models::CausalLm& model;
  nn::KvCache cache;
  std::map<int64_t, models::Decoder> decoders;  // keyed by the number of sequences

  Subject(const models::CausalLm& measured, int64_t context, DType cache_dtype, int64_t sequences)
      : model(measured), cache(model.make_cache(context, cache_dtype, sequences)) {
    // Reserves the full context, so that all repetitions have the same amount of memory.
    for (int64_t s = 0; s < sequences; ++s) cache.reserve(context, s);
  }
  void truncate(int64_t length) {
    for (int64_t s = 0; s < cache.sequences(); ++s) cache.truncate(length, s);
  }
  /// Drops what follows the first `depth` tokens. Recurrent states can't be shortened, so sequences
  /// that have them run these tokens again.
  void rewind(int64_t depth, int64_t batch) {
    if (!cache.has_states() || depth == 0) return truncate(depth);
    for (int64_t s = 0; s < cache.sequences(); ++s) {
      if (cache.length(s) == 0) continue;
      cache.truncate(0, s);
      run(s, some_tokens(depth, model.vocab_size()), batch);
    }
  }
  models::Decoder& decoder(int64_t sequences) {
    std::vector<int64_t> numbers(static_cast<size_t>(sequences));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    return decoders.try_emplace(sequences, model, cache, numbers).first->second;
  }
  /// Runs a prompt in batches.
  void run(int64_t sequence, const std::vector<int32_t>& tokens, int64_t batch) {
    const auto total = static_cast<int64_t>(tokens.size());
    const int64_t end = cache.length(sequence) + total;
    for (int64_t at = 0; at < total; at += batch) {
      const auto count = static_cast<size_t>(std::min(batch, total - at));
      const models::BatchInput input{
          sequence, std::span(tokens).subspan(static_cast<size_t>(at), count), {}, end};
      (void)model.forward({&input, 1}, cache, models::Logits::last);
      backend(model.device()).synchronize();
    }
  }
};

/// Returns the tokens per second of one run of a prompt.
double measure_prompt(Subject& subject, const std::vector<int32_t>& tokens, int64_t depth,
                      int64_t batch) {
  subject.rewind(depth, batch);
  const double start = now_seconds();
  subject.run(0, tokens, batch);
  return static_cast<double>(tokens.size()) / (now_seconds() - start);
}

/// Returns the tokens per second of `steps` decoding steps of all sequences. The device chooses the
/// most likely tokens, and the host reads them.
double measure_steps(Subject& subject, int64_t steps, int64_t depth, int64_t sequences,
                     int64_t batch) {
  subject.rewind(depth, batch);
  const Tensor logits =
      Tensor::zeros({sequences, subject.model.vocab_size()}, DType::f32, subject.model.device());
  SamplerOptions likeliest;
  likeliest.temperature = 0;
  const std::vector<models::Decoder::Sampling> sampling(static_cast<size_t>(sequences),
                                                        {{}, likeliest});
  models::Decoder& decoder = subject.decoder(sequences);
  const double start = now_seconds();
  decoder.start(logits, sampling);
  for (int64_t i = 0; i < steps; ++i) decoder.next(true);
  decoder.next(false);
  return static_cast<double>(steps * sequences) / (now_seconds() - start);
}

struct Test {
  bool prompt;
  int64_t length, sequences;
};

void print_row(const Row& row) {
  print_now(fmt::format("{:<12} {:>8} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.2f}\n", row.test,
                        row.threads, row.median(), row.tps.front(), row.tps.back(),
                        row.deviation()));
}

/// `done` is called after each repetition.
Row run_test(Subject& subject, const BenchOptions& o, const Test& test, int threads,
             const std::function<void()>& done) {
  Row row{fmt::format("{}{}{}{}", test.prompt ? "pp" : "tg", test.length,
                      test.sequences > 1 ? fmt::format("x{}", test.sequences) : "",
                      o.depth > 0 ? fmt::format("@{}", o.depth) : ""),
          threads,
          {}};
  cpu::set_threads(threads);
  const int64_t vocabulary = subject.model.vocab_size();
  subject.truncate(0);
  if (o.depth > 0) {
    for (int64_t s = 0; s < test.sequences; ++s) {
      subject.run(s, some_tokens(o.depth, vocabulary), o.model.batch);
    }
  }
  const std::vector<int32_t> tokens = some_tokens(test.length, vocabulary);
  const auto once = [&](int64_t length) {
    return test.prompt ? measure_prompt(subject, tokens, o.depth, o.model.batch)
                       : measure_steps(subject, length, o.depth, test.sequences, o.model.batch);
  };
  // A first, short run warms up caches and the allocator and isn't measured.
  once(std::min<int64_t>(test.length, 8));
  for (int i = 0; i < o.repeats; ++i) {
    row.tps.push_back(once(test.length));
    done();
    note(fmt::format("{} with {} threads, run {}: {:.1f} tokens/s", row.test, threads, i + 1,
                     row.tps.back()));
  }
  std::sort(row.tps.begin(), row.tps.end());
  return row;
}

int run_bench(BenchOptions o) {
  if (o.prompts.empty() && o.lengths.empty()) {
    o.prompts = {512};
    o.lengths = {128};
  }
  if (o.threads.empty()) o.threads = {cpu::threads()};
  if (o.repeats < 1)
    throw Error("--repeats", "out of range", fmt::format("{}", o.repeats), "need at least 1");
  if (o.sequences.empty()) o.sequences = {1};
  for (int64_t n : o.sequences) {
    if (n < 1 || n > 4096) {
      throw Error("--sequences", "out of range", fmt::format("{}", n), "need 1 to 4096");
    }
  }
  constexpr int64_t kMost = 1 << 24;
  if (o.depth < 0 || o.depth > kMost)
    throw Error("--depth", "out of range", fmt::format("{}", o.depth),
                fmt::format("need 0 to {}", kMost));
  // A length of 0 omits a test, as in -p 0 -n 128.
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
  for (int threads : o.threads) cpu::set_threads(threads);  // rejects an invalid count early
  cpu::set_threads(*std::max_element(o.threads.begin(), o.threads.end()));
  o.model.context = longest + o.depth;
  o.model.sequences = *std::max_element(o.sequences.begin(), o.sequences.end());
  const double start = now_seconds();
  const auto model = o.model.load_model();
  const double load_ms = (now_seconds() - start) * 1e3;
  Subject subject(*model, longest + o.depth, o.model.session().cache_dtype,
                  *std::max_element(o.sequences.begin(), o.sequences.end()));

  std::vector<Row> rows;
  const auto tests = static_cast<int64_t>(
      o.threads.size() * (o.prompts.size() + o.sequences.size() * o.lengths.size()));
  int64_t runs = 0;
  const auto add = [&](const Test& test, int threads) {
    {
      Progress progress("measuring");
      rows.push_back(
          run_test(subject, o, test, threads, [&] { progress.update(++runs, tests * o.repeats); }));
    }
    if (!o.json) print_row(rows.back());
  };
  if (!o.json) {
    print_now(fmt::format("{:<12} {:>8} {:>12} {:>12} {:>12} {:>12}\n", "test", "threads",
                          "tokens/s", "min", "max", "deviation"));
  }
  for (int threads : o.threads) {
    for (int64_t n : o.prompts) add({true, n, 1}, threads);
    for (int64_t s : o.sequences) {
      for (int64_t n : o.lengths) add({false, n, s}, threads);
    }
  }
  note_memory(model->device());
  if (o.json) {
    Json list = Json::array();
    for (const Row& row : rows) {
      list.push_back({{"test", row.test},
                      {"threads", row.threads},
                      {"tps", row.median()},
                      {"tps_min", row.tps.front()},
                      {"tps_max", row.tps.back()},
                      {"tps_deviation", row.deviation()}});
    }
    print_json({{"rows", list}, {"load_ms", load_ms}, {"peak_bytes", peak_resident_bytes()}});
    return kOk;
  }
  print(fmt::format("load {:.0f} ms, memory {}\n", load_ms, human_bytes(peak_resident_bytes())));
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command =
      add_command(app, "bench", "Measure prompt and generation speed",
                  "Each -p adds a row ppN (a prompt of N tokens), each -n a row tgN (N tokens "
                  "generated one at\n"
                  "a time from an empty cache; tgNxS: in S conversations at once), for each -t. "
                  "The table shows\nthe median, minimum, maximum and standard deviation of the "
                  "repetitions.",
                  [o] { return run_bench(*o); });
  o->model.add_to(*command, false);
  add_number(*command, "-p,--prompt", o->prompts, "Prompt lengths (default 512)")
      ->type_name("N")
      ->delimiter(',');
  add_number(*command, "-n,--tokens", o->lengths, "Generation lengths (default 128)")
      ->type_name("N")
      ->delimiter(',');
  add_number(*command, "-s,--sequences", o->sequences,
             "Conversations that generate at once (default 1); tokens/s is their total")
      ->type_name("N")
      ->delimiter(',');
  add_number(*command, "-t,--threads", o->threads, kThreadsHelp)->type_name("T")->delimiter(',');
  add_number(*command, "-d,--depth", o->depth, "Tokens in the cache before each test")
      ->type_name("N");
  add_number(*command, "-r,--repeats", o->repeats, "Number of measured repetitions")
      ->type_name("N")
      ->capture_default_str();
  add_number(*command, "--batch", o->model.batch, "Prompt tokens per batch")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--cache-type", o->model.cache, cache_types_help())
      ->type_name("TYPE")
      ->capture_default_str();
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
