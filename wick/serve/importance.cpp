#include "wick/serve/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "wick/base/error.h"
#include "wick/models/observe.h"

namespace wick::serve {
namespace {

constexpr const char* kOp = "imatrix";

/// Sums the squares of each weight's inputs, per column, and counts their rows.
class Collector final : public models::InputObserver {
 public:
  void on_input(std::span<const std::string> weights, const Tensor& x) override {
    const Rows rows(x);
    for (const std::string& weight : weights) {
      Sums& of = sums_of(weight, 1, rows.k);
      for (int64_t row = 0; row < rows.count; ++row) of.add(0, rows.at(row));
      require_finite(weight, of);
    }
  }

  void on_input(std::span<const std::string> weights, int64_t count, const Tensor& x,
                const Tensor& ids) override {
    const Rows rows(x);
    const std::vector<uint32_t> chosen = ids.to(Device::cpu()).to_vector<uint32_t>();
    const int64_t each = ids.size(1);
    for (const std::string& weight : weights) {
      Sums& of = sums_of(weight, count, rows.k);
      for (size_t i = 0; i < chosen.size(); ++i) {
        of.add(chosen[i], rows.at(static_cast<int64_t>(i) / each));
      }
      require_finite(weight, of);
    }
  }

  io::Importance result() const {
    io::Importance importance;
    for (const auto& [name, sums] : sums_) {
      io::Importance::Entry& entry = importance.entries[name];
      entry.sums.assign(sums.squares.begin(), sums.squares.end());
      entry.counts.assign(sums.counts.begin(), sums.counts.end());
    }
    return importance;
  }

 private:
  /// The rows of a tensor [t, k] as f32 on the host.
  struct Rows {
    explicit Rows(const Tensor& x)
        : count(x.size(0)),
          k(x.size(1)),
          values(x.to(Device::cpu()).to(DType::f32).to_vector<float>()) {}
    std::span<const float> at(int64_t row) const {
      return std::span(values).subspan(static_cast<size_t>(row * k), static_cast<size_t>(k));
    }
    int64_t count, k;
    std::vector<float> values;
  };
  struct Sums {
    std::vector<double> squares;  // [matrices, k]
    std::vector<double> counts;
    void add(uint32_t matrix, std::span<const float> row) {
      double* const to = squares.data() + matrix * row.size();
      for (size_t i = 0; i < row.size(); ++i) to[i] += static_cast<double>(row[i]) * row[i];
      counts[matrix] += 1;
    }
  };

  Sums& sums_of(const std::string& weight, int64_t count, int64_t k) {
    Sums& of = sums_[weight];
    of.squares.resize(static_cast<size_t>(count * k));
    of.counts.resize(static_cast<size_t>(count));
    return of;
  }

  static void require_finite(const std::string& weight, const Sums& sums) {
    const bool finite = std::all_of(sums.squares.begin(), sums.squares.end(),
                                    [](double v) { return std::abs(v) < 3.4e38; });
    if (finite) return;
    throw Error(ErrorKind::runtime, kOp, "input of a weight isn't finite", weight);
  }

  std::map<std::string, Sums> sums_;
};

}  // namespace

int64_t importance_chunks(int64_t tokens, const ImportanceOptions& options) {
  if (options.chunk_size < 1 || options.first_chunk < 0 || options.chunks < 0) {
    throw Error(kOp, "option out of range",
                fmt::format("chunks of {}, first {}, at most {}", options.chunk_size,
                            options.first_chunk, options.chunks));
  }
  if (tokens < 1) throw Error(kOp, "the text has no tokens");
  if (options.first_token >= 0 && std::min(options.chunk_size, tokens) < 2) {
    throw Error(kOp, "chunks of one token have no text",
                fmt::format("the vocabulary's first token {} replaces it", options.first_token),
                "need at least 2 tokens");
  }
  const int64_t all = std::max<int64_t>(1, tokens / options.chunk_size);
  if (options.first_chunk >= all) {
    throw Error(kOp, "no text after the first chunks",
                fmt::format("{} tokens, {} chunks of {}", tokens, all, options.chunk_size),
                fmt::format("first chunk below {}", all));
  }
  const int64_t rest = all - options.first_chunk;
  return options.chunks == 0 ? rest : std::min(rest, options.chunks);
}

io::Importance importance(const models::CausalLm& model, std::span<const int32_t> tokens,
                          const ImportanceOptions& options,
                          const std::function<bool(int64_t done)>& progress) {
  const auto total = static_cast<int64_t>(tokens.size());
  const int64_t chunks = importance_chunks(total, options);
  Collector collector;
  const models::ObserveInputs observed(collector);
  int64_t done = 0;
  while (done < chunks) {
    const int64_t start = (options.first_chunk + done) * options.chunk_size;
    const int64_t size = std::min(options.chunk_size, total - start);
    const auto part = tokens.subspan(static_cast<size_t>(start), static_cast<size_t>(size));
    std::vector<int32_t> chunk(part.begin(), part.end());
    if (options.first_token >= 0) chunk.front() = options.first_token;
    static_cast<void>(model.embed(std::vector<std::vector<int32_t>>{chunk}));
    ++done;
    if (progress && !progress(done)) break;
  }
  io::Importance result = collector.result();
  result.chunk_count = static_cast<uint32_t>(done);
  result.chunk_size = static_cast<uint32_t>(std::min(options.chunk_size, total));
  return result;
}

}  // namespace wick::serve
