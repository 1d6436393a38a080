// Norms, rotary embedding and attention.
#include <nanobind/stl/variant.h>

#include <cmath>

#include "python/bindings/ops.h"
#include "wick/tensor/ops.h"

namespace wick::python {
namespace {

using namespace nb::literals;

Tensor attention_lengths(const Tensor& q, const Tensor& k, const Tensor& v, IntsArg query_starts,
                         IntsArg key_starts, std::optional<float> scale, bool causal,
                         int64_t window, float soft_cap, MaybeTensor slopes, MaybeTensor sinks) {
  const AttentionOptions options{scale, causal, window, soft_cap};
  const std::vector<int64_t> queries = query_starts.get("attention_of_lengths: query_starts"),
                             keys = key_starts.get("attention_of_lengths: key_starts");
  const Tensor slope = slopes.get(), sink = sinks.get();
  return unlocked(
      [&] { return attention_of_lengths(q, k, v, queries, keys, options, slope, sink); }, q, k);
}

/// Accepts lengths as a tensor on the device or as numbers.
Tensor lengths_on(Device device, const std::variant<Tensor, IntsArg>& lengths) {
  if (const Tensor* const there = std::get_if<Tensor>(&lengths)) return *there;
  std::vector<uint32_t> words;
  for (const int64_t length : std::get<IntsArg>(lengths).get("attention_of_pages: lengths")) {
    if (length < 0 || length > int64_t{UINT32_MAX}) {
      throw Error(ErrorKind::index, "attention_of_pages", "a length out of range",
                  std::to_string(length));
    }
    words.push_back(static_cast<uint32_t>(length));
  }
  return Tensor::from<uint32_t>(words, {static_cast<int64_t>(words.size())}, device);
}

Tensor attention_pages(const Tensor& q, const Tensor& key_pages, const Tensor& value_pages,
                       const Tensor& tables, const std::variant<Tensor, IntsArg>& lengths,
                       std::optional<float> scale, bool causal, int64_t window, float soft_cap,
                       MaybeTensor slopes, MaybeTensor sinks) {
  const AttentionOptions options{scale, causal, window, soft_cap};
  const Tensor counts = lengths_on(q.device(), lengths), slope = slopes.get(), sink = sinks.get();
  return unlocked(
      [&] {
        return attention_of_pages(q, key_pages, value_pages, tables, counts, options, slope, sink);
      },
      q, key_pages);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_itself(const Tensor& x, MaybeTensor weight,
                                                     MaybeTensor bias, float eps) {
  const Tensor w = weight.get(), b = bias.get();
  BatchNorm result = unlocked([&] { return batch_norm_of_batch(x, w, b, eps); }, x);
  return {std::move(result.y), std::move(result.mean), std::move(result.variance)};
}

void bind_norms(OpBinder& ops) {
  ops.add_as(Op::batch_norm, "batch_norm_of_batch", &batch_norm_itself,
             "Computes mean and variance of the batch itself and returns them, too.", "x"_a,
             "weight"_a = nb::none(), "bias"_a = nb::none(), "eps"_a = 1e-5);
}

void bind_attention(OpBinder& ops) {
  ops.add_as(Op::attention, "attention_of_lengths", &attention_lengths,
             "Attention of concatenated sequences: q [t, h, d], k [s, g, d], v [s, g, e] -> [t, "
             "h, e]. Sequence i has the queries query_starts[i] to query_starts[i + 1] and the "
             "keys key_starts[i] to key_starts[i + 1].",
             "q"_a, "k"_a, "v"_a, "query_starts"_a, "key_starts"_a, "scale"_a = nb::none(),
             "causal"_a = false, "window"_a = 0, "soft_cap"_a = 0.0f, "slopes"_a = nb::none(),
             "sinks"_a = nb::none());
  ops.add_as(Op::attention, "attention_of_pages", &attention_pages,
             "Attention over keys and values in pages [p, g, size, d]: q [b, h, m, d], tables "
             "[b, n] of page numbers; lengths: the number of keys of each sequence, as ints or "
             "as uint32 [b] on the device.",
             "q"_a, "key_pages"_a, "value_pages"_a, "tables"_a, "lengths"_a, "scale"_a = nb::none(),
             "causal"_a = false, "window"_a = 0, "soft_cap"_a = 0.0f, "slopes"_a = nb::none(),
             "sinks"_a = nb::none());
}

}  // namespace

void bind_norm_ops(OpBinder& ops) {
  bind_norms(ops);
  ops.add(Op::rope, "rope_of_tokens", &rope_of_tokens,
          "x [.., t, h, d], in which heads follow "
          "tokens.",
          "x"_a, "cos"_a, "sin"_a, "interleaved"_a = false);
  bind_attention(ops);
}

}  // namespace wick::python
