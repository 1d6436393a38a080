#include "wick/nn/layers.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/tensor/fused.h"

namespace wick::nn {
namespace {

/// Concatenates the biases of a group; a matrix without a bias gets zeros.
Tensor joined_bias(std::span<const Tensor> biases, std::span<const int64_t> sizes, Device device) {
  bool any = false;
  for (const Tensor& bias : biases) any = any || bias.defined();
  if (!any) return {};
  std::vector<Tensor> parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool present = i < biases.size() && biases[i].defined();
    if (present && !(biases[i].shape() == Shape{sizes[i]})) {
      throw Error("projections", "bias has the wrong size", biases[i].str(),
                  fmt::format("need [{}]", sizes[i]));
    }
    parts.push_back(present ? biases[i].to(device).to(DType::f32)
                            : Tensor::zeros({sizes[i]}, DType::f32, device));
  }
  return cat(parts, 0);
}

/// linear of x [t, k], in which each sequence's rows get the bits that they have alone. Adjacent
/// runs of sequences with at most rows_alike() rows are computed together, as single rows.
Tensor product_of_runs(const Tensor& x, const Weight& weight, std::span<const RowRun> runs) {
  const int64_t alike = weight.rows_alike();
  int64_t all = 0;
  for (const RowRun& run : runs) all += run.rows;
  if (all != x.size(0)) {
    throw Error("linear", "runs don't cover the rows", fmt::format("{} rows of {}", all, x.str()),
                "need a run for each row");
  }
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (size_t i = 0; i < runs.size();) {
    auto [rows, each] = runs[i++];
    if (each <= alike) {
      each = 1;
      while (i < runs.size() && runs[i].each <= alike) rows += runs[i++].rows;
    }
    parts.push_back(linear(x.narrow(0, first, rows), weight, FusedLinear{.each = each}));
    first += rows;
  }
  return parts.size() == 1 ? parts.front() : cat(parts, 0);
}

}  // namespace

Tensor Norm::operator()(const Tensor& x) const {
  if (kind_ == NormKind::rms) {
    if (!weight_.defined() || weight_.rank() == 1) return rms_norm(x, weight_, eps_);
    return rms_norm(x, Tensor::ones({weight_.size(1)}, DType::f32, x.device()), eps_) * weight_;
  }
  if (weight_.rank() == 1) return layer_norm(x, weight_, bias_, eps_);
  return layer_norm(x, {}, {}, eps_) * weight_;
}

Projections::Projections(std::span<const Tensor> matrices, std::span<const Tensor> biases,
                         Device device, bool release) {
  for (size_t begin = 0; begin < matrices.size();) {
    size_t end = begin + 1;
    while (end < matrices.size() && matrices[end].dtype() == matrices[begin].dtype()) ++end;
    const std::span<const Tensor> group = matrices.subspan(begin, end - begin);
    std::vector<int64_t> sizes;
    for (const Tensor& m : group) sizes.push_back(m.size(0));
    const auto group_biases = begin < biases.size()
                                  ? biases.subspan(begin, std::min(end, biases.size()) - begin)
                                  : std::span<const Tensor>{};
    Tensor bias = joined_bias(group_biases, sizes, device);
    groups_.push_back({Weight(group, device, release), std::move(bias), std::move(sizes)});
    begin = end;
  }
}

std::vector<Tensor> Projections::products(const Tensor& x, std::span<const RowRun> runs) const {
  std::vector<Tensor> outputs;
  for (const Group& group : groups_) {
    const bool any_order = runs.empty() || group.weight.rows_alike() == INT64_MAX;
    Tensor y = any_order ? linear(x, group.weight) : product_of_runs(x, group.weight, runs);
    if (group.bias.defined()) y = y + group.bias.to(y.dtype());
    outputs.push_back(std::move(y));
  }
  return outputs;
}

std::vector<Tensor> Projections::operator()(const Tensor& x, std::span<const RowRun> runs) const {
  const std::vector<Tensor> products = this->products(x, runs);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < groups_.size(); ++i) {
    int64_t start = 0;
    for (int64_t size : groups_[i].sizes) {
      const bool whole = groups_[i].sizes.size() == 1;
      outputs.push_back(whole ? products[i] : products[i].narrow(-1, start, size));
      start += size;
    }
  }
  return outputs;
}

Tensor Projections::joined(const Tensor& x, std::span<const RowRun> runs) const {
  const std::vector<Tensor> products = this->products(x, runs);
  return products.size() == 1 ? products.front() : cat(products, -1);
}

}  // namespace wick::nn
