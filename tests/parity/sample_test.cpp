// sample: the token that the CPU's Sampler chooses, bit by bit, for many seeds and options, and the
// state it leaves; recorded once and replayed; every error.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/parity/grid.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// What a device starts with, and what it has after some steps; of one sequence or several.
struct State {
  TestTensor logits, token, position, history, counts, chosen, options;
  State(int64_t vocabulary, int64_t room, Place place = Place::contiguous, int64_t rows = 1)
      : logits(DType::f32, place, {rows, vocabulary}, 1),
        token(DType::u32, Place::contiguous, {rows}, 2),
        position(DType::u32, Place::contiguous, {rows}, 3),
        history(DType::u32, Place::contiguous, {rows, room}, 4),
        counts(DType::u32, Place::contiguous, {rows, 3}, 5),
        chosen(DType::u32, Place::contiguous, {3, rows}, 7),
        options(DType::u32, Place::contiguous, {rows, kSamplerWords}, 6) {
    token.fill_bits([](int64_t) { return 7; });
    position.fill_bits([](int64_t) { return 100; });
    history.fill_bits([](int64_t) { return 0; });
    counts.fill_bits([](int64_t) { return 0; });
    chosen.fill_bits([](int64_t) { return 9; });
  }
  void set_history(const std::vector<uint32_t>& tokens) {
    history.fill_bits([&](int64_t i) {
      return static_cast<size_t>(i) < tokens.size() ? tokens[static_cast<size_t>(i)] : 0;
    });
    counts.fill_bits(
        [&](int64_t i) { return i == 0 ? tokens.size() : 3 + static_cast<size_t>(i); });
  }
  /// Errors: those of Sampler.
  void set_options(std::span<const SamplerOptions> all) {
    std::vector<uint32_t> words;
    for (const SamplerOptions& o : all) {
      for (const uint32_t word : sampler_words(o)) words.push_back(word);
    }
    options.fill_bits([&](int64_t i) { return words[static_cast<size_t>(i)]; });
  }
  std::vector<uint64_t> bits() const {
    std::vector<uint64_t> all;
    for (const TestTensor* t : {&token, &position, &history, &counts, &chosen}) {
      for (uint64_t b : t->bits()) all.push_back(b);
    }
    return all;
  }
};

struct There {
  Backend& backend;
  State& host;
  OnDevice logits, token, position, history, counts, chosen, options;
  There(Backend& b, State& s)
      : backend(b),
        host(s),
        logits(b, s.logits.storage()),
        token(b, s.token.storage()),
        position(b, s.position.storage()),
        history(b, s.history.storage()),
        counts(b, s.counts.storage()),
        chosen(b, s.chosen.storage()),
        options(b, s.options.storage()) {}
  void run() {
    backend.sample({.tokens = token.view(host.token.view()),
                    .positions = position.view(host.position.view()),
                    .history = history.view(host.history.view()),
                    .counts = counts.view(host.counts.view()),
                    .chosen = chosen.view(host.chosen.view()),
                    .options = options.view(std::as_const(host.options).view())},
                   logits.view(std::as_const(host.logits).view()));
  }
  void fetch() {
    token.fetch(host.token.storage());
    position.fetch(host.position.storage());
    history.fetch(host.history.storage());
    counts.fetch(host.counts.storage());
    chosen.fetch(host.chosen.storage());
  }
};

std::vector<std::byte> copy_of(const TestTensor& t) {
  return {t.storage().begin(), t.storage().end()};
}
void restore(TestTensor& t, const std::vector<std::byte>& bytes) {
  std::copy(bytes.begin(), bytes.end(), t.storage().begin());
}

std::string describe(const SamplerOptions& o) {
  return fmt::format("t {} k {} p {} min {} penalties {} {} {} of {} seed {}", o.temperature,
                     o.top_k, o.top_p, o.min_p, o.repetition_penalty, o.presence_penalty,
                     o.frequency_penalty, o.penalty_window, o.seed);
}

/// `steps` tokens one after another on every target; the states must be the same.
void check(State& state, const SamplerOptions& options, int steps, bool recorded = false) {
  state.set_options({&options, 1});
  const std::string what = fmt::format("sample of {}, {}", state.logits.elems(), describe(options));
  TestTensor* const kept[] = {&state.token, &state.position, &state.history, &state.counts,
                              &state.chosen};
  std::vector<std::vector<std::byte>> before;
  for (const TestTensor* t : kept) before.push_back(copy_of(*t));
  std::vector<uint64_t> first;
  for (const Target& target : targets()) {
    for (size_t i = 0; i < before.size(); ++i) restore(*kept[i], before[i]);
    try {
      There there(*target.backend, state);
      std::unique_ptr<DeviceGraph> recording;
      if (recorded) recording = target.backend->record([&] { there.run(); });
      for (int i = 0; i < steps; ++i) recorded ? recording->replay() : there.run();
      there.backend.synchronize();
      there.fetch();
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " on " << target.name << " threw: " << error.what();
      return;
    }
    if (first.empty()) {
      first = state.bits();
    } else {
      EXPECT_EQ(state.bits(), first) << what << " on " << target.name;
    }
  }
  for (size_t i = 0; i < before.size(); ++i) restore(*kept[i], before[i]);
}

/// Logits like a model's, many equal ones, or wild ones.
enum class Kind : uint8_t { usual, few_values, flat, wide, mostly_ruled_out };

void fill(State& state, Kind kind, Random& random) {
  state.logits.fill_with([&](int64_t) -> long double {
    switch (kind) {
      case Kind::usual:
        return static_cast<float>(3 * random.normal());
      case Kind::few_values:
        return static_cast<float>(random.below(9)) - 4;
      case Kind::flat:
        return random.below(2) == 0 ? 0.0 : -0.0;
      case Kind::wide:
        return static_cast<float>(random.normal() * std::exp2(random.below(40) - 20));
      case Kind::mostly_ruled_out:
        return random.below(20) == 0 ? static_cast<float>(random.normal()) : -kInf;
    }
    return 0;
  });
}
constexpr Kind kKinds[] = {Kind::usual, Kind::few_values, Kind::flat, Kind::wide,
                           Kind::mostly_ruled_out};

SamplerOptions some_options(Random& random) {
  SamplerOptions o;
  const float temperatures[] = {0.0f, 0.1f, 0.8f, 1.0f, 1.7f, 30.0f};
  const int tops[] = {0, 1, 2, 40, 40, 40, 200, 1000, 5000};
  const float ps[] = {1.0f, 0.95f, 0.95f, 0.5f, 0.01f, 0.999999f};
  const float mins[] = {0.0f, 0.05f, 0.05f, 0.5f, 1.0f, 1e-7f};
  const auto pick = [&](auto& list) {
    return list[static_cast<size_t>(random.below(static_cast<int64_t>(std::size(list))))];
  };
  o.temperature = pick(temperatures), o.top_k = pick(tops), o.top_p = pick(ps),
  o.min_p = pick(mins);
  if (random.below(2) == 0) {
    const float repetitions[] = {1.0f, 1.1f, 0.7f, 2.0f};
    const float others[] = {0.0f, 0.3f, -0.5f, 4.0f};
    const int windows[] = {64, 0, 5, -1};
    o.repetition_penalty = pick(repetitions), o.presence_penalty = pick(others);
    o.frequency_penalty = pick(others), o.penalty_window = pick(windows);
  }
  o.seed = random.next();
  return o;
}

void check_random() {
  Random random(11);
  for (int64_t vocabulary : {1, 5, 127, 128, 129, 2047, 2049, 5000, 12345}) {
    for (Kind kind : kKinds) {
      State state(vocabulary, 200,
                  random.below(4) == 0 && vocabulary > 100 ? Place::stepped : Place::contiguous);
      fill(state, kind, random);
      if (kind == Kind::mostly_ruled_out && vocabulary < 200) continue;
      std::vector<uint32_t> history;
      for (int64_t i = random.below(150); i > 0; --i) {
        history.push_back(static_cast<uint32_t>(random.below(std::min<int64_t>(vocabulary, 300))));
      }
      state.set_history(history);
      for (int i = 0; i < 6; ++i) {
        check(state, some_options(random), 1 + static_cast<int>(random.below(4)));
        if (failed()) return;
      }
    }
  }
}

/// Vocabularies of models, with the options that matter.
void check_large() {
  Random random(12);
  for (int64_t vocabulary : {49152, 128256, 256000, 300000}) {
    State state(vocabulary, 100);
    for (Kind kind : {Kind::usual, Kind::few_values}) {
      fill(state, kind, random);
      state.set_history({1, 2, 3, 2, 1, static_cast<uint32_t>(vocabulary - 1)});
      SamplerOptions o;
      o.seed = random.next();
      check(state, o, 3, true);
      o.temperature = 0;
      check(state, o, 2);
      o.temperature = 1, o.repetition_penalty = 1.2f;
      check(state, o, 2);
      if (vocabulary == 49152) {
        o.top_k = 0;
        check(state, o, 1);
      }
      if (failed()) return;
    }
  }
}

void check_errors() {
  Random random(13);
  const auto expect_error = [&](State& state, const SamplerOptions& options, const char* text) {
    state.set_options({&options, 1});
    const auto before = state.bits();
    for (const Target& target : targets()) {
      There there(*target.backend, state);
      try {
        there.run();
        there.backend.synchronize();
        ADD_FAILURE() << target.name << ": no error with " << text;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
            << target.name << ": " << error.what();
      }
      there.fetch();
      EXPECT_EQ(state.bits(), before) << target.name << ": " << text;
    }
  };
  for (float temperature : {0.0f, 0.8f}) {
    SamplerOptions o;
    o.temperature = temperature;
    for (float bad : {kInf, std::numeric_limits<float>::quiet_NaN(), -std::nanf("")}) {
      State state(5000, 10);
      state.logits.fill_with([&](int64_t i) { return i == 4321 ? bad : 1.0f; });
      expect_error(state, o, "token 4321");
    }
    State nothing(3000, 10);
    nothing.logits.fill_with([](int64_t) { return -kInf; });
    expect_error(nothing, o, "every logit is -inf");
    State full(3000, 2);
    fill(full, Kind::usual, random);
    full.set_history({5, 6});
    expect_error(full, o, "history is full");
    State wrong(3000, 10);
    fill(wrong, Kind::usual, random);
    wrong.set_history({5, 3000});
    o.presence_penalty = 1;
    expect_error(wrong, o, "3000");
    o.top_p = 0;
    EXPECT_THROW(wrong.set_options({&o, 1}), Error);
  }
  // No room and no penalties: the history is left out.
  State none(3000, 0);
  fill(none, Kind::usual, random);
  check(none, {}, 3);
}

/// Several sequences, each with its own options and history, against each of them alone.
void check_batches() {
  Random random(14);
  for (const int64_t rows : {2, 5, 33}) {
    const int64_t vocabulary = 3000, room = 40;
    State all(vocabulary, room, rows == 5 ? Place::stepped : Place::contiguous, rows);
    fill(all, Kind::usual, random);
    std::vector<SamplerOptions> options;
    for (int64_t i = 0; i < rows; ++i) options.push_back(some_options(random));
    all.set_options(options);
    const auto seen = [&](int64_t row) { return row % 7; };
    all.history.fill_bits(
        [&](int64_t i) { return i % room < seen(i / room) ? static_cast<uint64_t>(i % 30) : 0; });
    all.counts.fill_bits(
        [&](int64_t i) { return static_cast<uint64_t>(i % 3 == 0 ? seen(i / 3) : i); });
    const auto before = copy_of(all.history), counts = copy_of(all.counts);
    const auto logits = all.logits.bits(), history = all.history.bits(), starts = all.counts.bits();
    std::vector<uint64_t> tokens;
    for (int64_t row = 0; row < rows; ++row) {
      State one(vocabulary, room);
      const auto at = [&](const std::vector<uint64_t>& bits, int64_t width) {
        return
            [&bits, row, width](int64_t i) { return bits[static_cast<size_t>(row * width + i)]; };
      };
      one.logits.fill_bits(at(logits, vocabulary));
      one.history.fill_bits(at(history, room));
      one.counts.fill_bits(at(starts, 3));
      one.set_options({&options[static_cast<size_t>(row)], 1});
      There(*targets().front().backend, one).run();
      tokens.push_back(one.token.bits().front());
    }
    for (const Target& target : targets()) {
      restore(all.history, before), restore(all.counts, counts);
      There there(*target.backend, all);
      there.run();
      there.backend.synchronize();
      there.fetch();
      EXPECT_EQ(all.token.bits(), tokens) << rows << " rows on " << target.name;
      const auto after = all.history.bits();
      for (int64_t row = 0; row < rows; ++row) {
        EXPECT_EQ(after[static_cast<size_t>(row * room + seen(row))],
                  tokens[static_cast<size_t>(row)])
            << target.name;
      }
    }
    if (failed()) return;
  }
}

const bool added = [] {
  add("sample.batches", check_batches);
  add("sample.random", check_random);
  add("sample.large", check_large);
  add("sample.errors", check_errors);
  return true;
}();

}  // namespace
}  // namespace wick::parity
