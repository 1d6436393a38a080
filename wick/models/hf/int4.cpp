#include "wick/models/hf/int4.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "wick/base/error.h"
#include "wick/models/hf/elements.h"
#include "wick/models/hf/naming.h"
#include "wick/tensor/ops.h"

namespace wick::models::hf {
namespace {

constexpr unsigned kMiddle = 8;  // the code of 0 in q4_0

/// AWQ's order of the eight codes of a word.
unsigned awq_shift(int64_t i) {
  constexpr unsigned kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};
  return 4 * kPlaces[i % kInt4PerWord];
}

std::vector<uint32_t> words_of(const Stored& stored) {
  const Tensor words = stored.file->tensor(*stored.tensor);
  const auto* data = static_cast<const std::byte*>(words.view().data);
  std::vector<uint32_t> result(static_cast<size_t>(words.elems()));
  if (!result.empty()) std::memcpy(result.data(), data, result.size() * sizeof(uint32_t));
  return result;
}

/// A weight's codes u8 [n, k], zeros [groups, n], factors [groups, n] and the group of each input.
struct Unpacked {
  int64_t n = 0, k = 0;
  Tensor codes;
  std::vector<uint8_t> zeros;
  std::vector<float> factors;
  std::vector<uint32_t> groups;
};

Unpacked unpack(const Int4Config& config, const Int4Tensors& tensors) {
  Unpacked out;
  const Shape shape = int4_shape(config, tensors);
  out.n = shape[0], out.k = shape[1];
  const bool gptq = config.method == Int4Config::Method::gptq;
  const std::vector<uint32_t> words = words_of(tensors.codes), zeros = words_of(tensors.zeros);
  out.codes = Tensor::empty(shape, DType::u8);
  auto* codes = static_cast<uint8_t*>(out.codes.mutable_view().data);
  const int64_t row_words = out.n / kInt4PerWord;
  for (int64_t i = 0; i < out.k; ++i) {
    for (int64_t j = 0; j < out.n; ++j) {
      const uint32_t word = words[static_cast<size_t>(gptq ? i / kInt4PerWord * out.n + j
                                                           : i * row_words + j / kInt4PerWord)];
      const unsigned shift = gptq ? static_cast<unsigned>(4 * (i % kInt4PerWord)) : awq_shift(j);
      codes[j * out.k + i] = static_cast<uint8_t>(word >> shift & 15u);
    }
  }
  const int64_t groups = int4_groups(config, out.k);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < out.n; ++j) {
      const uint32_t word = zeros[static_cast<size_t>(g * row_words + j / kInt4PerWord)];
      const unsigned shift = gptq ? static_cast<unsigned>(4 * (j % kInt4PerWord)) : awq_shift(j);
      const unsigned zero = word >> shift & 15u;
      out.zeros.push_back(static_cast<uint8_t>(zero + (config.adds_one ? 1 : 0)));
    }
  }
  out.factors =
      tensors.scales.file->tensor(*tensors.scales.tensor).to(DType::f32).to_vector<float>();
  if (tensors.order.tensor != nullptr) {
    out.groups = words_of(tensors.order);
  } else {
    const int64_t each = config.group == 0 ? out.k : config.group;
    for (int64_t i = 0; i < out.k; ++i) out.groups.push_back(static_cast<uint32_t>(i / each));
  }
  for (const uint32_t group : out.groups) {
    if (group < static_cast<uint32_t>(groups)) continue;
    wrong_tensor(tensors.order, "group doesn't exist", fmt::format("{} of {}", group, groups));
  }
  return out;
}

/// f16 [n, k]
Tensor f16_of(const Unpacked& w) {
  const auto* codes = static_cast<const uint8_t*>(w.codes.view().data);
  Tensor result = Tensor::empty({w.n, w.k}, DType::f16);
  auto* out = static_cast<std::byte*>(result.mutable_view().data);
  std::vector<float> row(static_cast<size_t>(w.k));
  for (int64_t j = 0; j < w.n; ++j) {
    for (int64_t i = 0; i < w.k; ++i) {
      const auto at = static_cast<size_t>(w.groups[static_cast<size_t>(i)] * w.n + j);
      const int code = codes[j * w.k + i] - w.zeros[at];
      row[static_cast<size_t>(i)] = w.factors[at] * static_cast<float>(code);
    }
    const Tensor rounded = Tensor::from(row, {w.k}).to(DType::f16);
    const auto bytes = static_cast<size_t>(bytes_of(DType::f16, w.k));
    std::memcpy(out, rounded.view().data, bytes);
    out += bytes;
  }
  return result;
}

/// Errors: zeros aren't 8, or groups aren't neighbouring inputs.
void require_symmetric(const Int4Config& config, const Int4Tensors& tensors, const Unpacked& w) {
  if (std::any_of(w.zeros.begin(), w.zeros.end(), [](uint8_t zero) { return zero != kMiddle; })) {
    wrong_tensor(tensors.zeros, "zeros contradict the configuration", "sym is true");
  }
  const int64_t each = config.group == 0 ? w.k : config.group;
  for (int64_t i = 0; i < w.k; ++i) {
    if (w.groups[static_cast<size_t>(i)] == static_cast<uint32_t>(i / each)) continue;
    wrong_tensor(tensors.order, "groups contradict the configuration", "desc_act is false");
  }
}

/// Blocks of q4_0: a factor, then the codes of elements j (low bits) and j + 16.
Tensor blocks_of(const Int4Config& config, const Unpacked& w, Form form, const Sizes& sizes) {
  const int64_t blocks = w.k / kInt4Block, each = config.group == 0 ? w.k : config.group;
  std::vector<float> factors;
  for (int64_t j = 0; j < w.n; ++j) {
    for (int64_t b = 0; b < blocks; ++b) {
      factors.push_back(w.factors[static_cast<size_t>(b * kInt4Block / each * w.n + j)]);
    }
  }
  const Tensor all = Tensor::from(factors, {w.n, blocks}).to(DType::f16);
  const FormView of_codes = view_of(form, {w.n, w.k}, sizes).value();
  const FormView of_factors = view_of(form, {w.n, blocks}, sizes).value();
  const Tensor codes = elements_of(w.codes, of_codes), ds = elements_of(all, of_factors);
  const auto* c = static_cast<const uint8_t*>(codes.view().data);
  const auto* d = static_cast<const std::byte*>(ds.view().data);
  Tensor result = Tensor::empty(of_codes.shape, DType::q4_0);
  auto* out = static_cast<uint8_t*>(result.mutable_view().data);
  for (int64_t b = 0; b < ds.elems(); ++b, c += kInt4Block, d += 2) {
    std::memcpy(out, d, 2);
    out += 2;
    for (int64_t i = 0; i < kInt4Block / 2; ++i) {
      *out++ = static_cast<uint8_t>(c[i] | c[i + kInt4Block / 2] << 4);
    }
  }
  return result;
}

}  // namespace

Tensor int4_weight(const Int4Config& config, const Int4Tensors& tensors, Form form,
                   const Sizes& sizes) {
  const Unpacked w = unpack(config, tensors);
  if (int4_dtype(config, tensors, {w.n, w.k}, form) == DType::q4_0) {
    require_symmetric(config, tensors, w);
    return blocks_of(config, w, form, sizes);
  }
  const FormView view = view_of(form, {w.n, w.k}, sizes).value();
  return elements_of(f16_of(w), view).reshape(view.shape);
}

}  // namespace wick::models::hf
