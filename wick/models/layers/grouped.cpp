#include "wick/models/layers/grouped.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/tensor/fused.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

/// Whether grouped_linear gives each row the bits that it has alone, whatever the sequences are.
bool rows_are_alone(const Weight& weight) {
  return weight.device().kind == DeviceKind::cpu || weight.dtype() == DType::f32 ||
         weight.rows_alike() == INT64_MAX;
}

}  // namespace

Tensor grouped_of_runs(const Tensor& x, const std::vector<Weight>& weights, const Tensor& ids,
                       Runs runs) {
  const std::span<const nn::RowRun> sequences = runs.sequences;
  if (sequences.empty() || rows_are_alone(weights.front())) return grouped_linear(x, weights, ids);
  int64_t tokens = 0;
  for (const nn::RowRun& run : sequences) tokens += run.rows;
  if (tokens == 0 || x.size(0) % tokens != 0) {
    throw Error("grouped_linear", "runs don't cover the rows",
                fmt::format("{} tokens of {}", tokens, x.str()), "need a run for each token");
  }
  const int64_t of_token = x.size(0) / tokens, alike = weights.front().rows_alike();
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (size_t i = 0; i < sequences.size();) {
    auto [count, each] = sequences[i++];
    if (each <= alike) {  // these runs are computed together, as single tokens
      each = 1;
      while (i < sequences.size() && sequences[i].each <= alike) count += sequences[i++].rows;
    }
    const int64_t rows = count * of_token;
    parts.push_back(grouped_linear(x.narrow(0, first, rows), weights, ids.narrow(0, first, rows),
                                   {.each = each * of_token, .of_token = of_token}));
    first += rows;
  }
  return parts.size() == 1 ? parts.front() : cat(parts, 0);
}

}  // namespace wick::models
