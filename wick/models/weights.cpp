#include "wick/models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::models {

Weights Weights::operator/(std::string_view prefix) const {
  Weights inner = *this;
  inner.prefix_ += prefix;
  return inner;
}

bool Weights::contains(std::string_view name) const {
  return file_.find_tensor(prefix_ + std::string(name)) != nullptr;
}

int Weights::rank(std::string_view name) const {
  return file_.require_tensor(prefix_ + std::string(name)).shape.rank();
}

int64_t Weights::rows(std::string_view name) const {
  const Shape& shape = file_.require_tensor(prefix_ + std::string(name)).shape;
  return shape.rank() == 0 ? 1 : shape[0];
}

void Weights::wrong_shape(std::string_view name, std::string_view need) const {
  const io::GgufTensor& entry = file_.require_tensor(prefix_ + std::string(name));
  throw Error(file_.path(), "tensor has the wrong shape",
              fmt::format("{} {}", entry.name, entry.str()), fmt::format("need {}", need));
}

void Weights::missing(std::string_view names) const {
  throw Error(file_.path(), "tensor is missing", fmt::format("{}{}", prefix_, names));
}

const io::GgufTensor& Weights::require(std::string_view name, const Shape& shape) const {
  const io::GgufTensor& entry = file_.require_tensor(prefix_ + std::string(name));
  used_->names.emplace(entry.name);
  if (!(entry.shape == shape)) wrong_shape(name, shape.str());
  return entry;
}

Tensor Weights::get(std::string_view name, const Shape& shape) const {
  return file_.tensor(require(name, shape));
}

Tensor Weights::matrix(std::string_view name, int64_t n, int64_t k) const {
  return supported(name, get(name, {n, k}));
}

Tensor Weights::supported(std::string_view name, Tensor t) const {
  if (!dtypes::kWeights.contains(t.dtype())) {
    throw Error(ErrorKind::not_implemented, file_.path(), "weight type not supported",
                fmt::format("{}{} {}", prefix_, name, t.str()),
                "this version supports " + names(dtypes::kWeights, "and"));
  }
  return t;
}

std::vector<Tensor> Weights::matrices(std::string_view name, int64_t count, int64_t n,
                                      int64_t k) const {
  const io::GgufTensor& entry = require(name, {count, n, k});
  std::vector<Tensor> result;
  if (file_.parts(entry) == count) {
    for (int64_t i = 0; i < count; ++i) {
      result.push_back(supported(name, file_.part(entry, i).reshape({n, k})));
    }
    return result;
  }
  const Tensor all = supported(name, file_.tensor(entry));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = all.layout().offset() + i * n * k;
    result.emplace_back(all.storage(), all.dtype(), Layout::contiguous({n, k}, first));
  }
  return result;
}

Tensor Weights::vector(std::string_view name, int64_t n) const { return floats(name, {n}); }

Tensor Weights::floats(std::string_view name, const Shape& shape) const {
  const Tensor t = get(name, shape);
  if (is_float(t.dtype())) return t.to(DType::f32);
  if (is_block(t.dtype())) return dequantize(t);
  throw Error(ErrorKind::not_implemented, file_.path(), "tensor type not supported",
              fmt::format("{}{} {}", prefix_, name, t.str()), "need floats");
}

Tensor Weights::optional_vector(std::string_view name, int64_t n) const {
  return contains(name) ? vector(name, n) : Tensor();
}

Tensor Weights::optional_scale(std::string_view name) const {
  const std::string scale = fmt::format("{}.scale", name);
  // Gemma 4's files have a vector of another meaning with such a name.
  if (contains(scale) && (rank(scale) > 1 || rows(scale) != 1)) return {};
  return optional_scales(name, 1);
}

Tensor Weights::optional_scales(std::string_view name, int64_t count) const {
  const std::string input = fmt::format("{}.input_scale", name);
  if (contains(input)) require(input, {count});
  return optional_vector(fmt::format("{}.scale", name), count);
}

Tensor reordered(const Tensor& x, std::span<const int64_t> order) {
  if (order.empty() || !x.defined()) return x;
  // Copies bytes, because index_select would dequantise blocks.
  const Tensor dense = x.contiguous();
  const auto rows = static_cast<int64_t>(order.size());
  Tensor result = Tensor::empty(x.shape().with(0, rows), x.dtype());
  const auto row_bytes = static_cast<size_t>(bytes_of(x.dtype(), x.elems() / x.size(0)));
  const auto* from = static_cast<const std::byte*>(dense.view().data) +
                     bytes_of(x.dtype(), dense.layout().offset());
  auto* to = static_cast<std::byte*>(result.mutable_view().data);
  for (const int64_t row : order) {
    std::memcpy(to, from + static_cast<size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return result;
}

void Weights::ignore(std::string_view text) const { used_->ignored.emplace_back(text); }

void Weights::require_all_used() const {
  for (const io::GgufTensor& t : file_.tensors()) {
    if (!t.name.starts_with(prefix_) || used_->names.contains(t.name)) continue;
    const auto& ignored = used_->ignored;
    if (std::any_of(ignored.begin(), ignored.end(), [&](const std::string& text) {
          return t.name.find(text) != std::string::npos;
        })) {
      continue;
    }
    throw Error(ErrorKind::not_implemented, file_.path(), "tensor that this version doesn't use",
                fmt::format("{} {}", t.name, t.str()),
                "the model may be of a variant that isn't supported");
  }
}

int64_t Weights::parameters() const {
  // Unused tensors may claim any size, so the sum may exceed 64 bits.
  __int128 total = 0;
  for (const io::GgufTensor& t : file_.tensors()) total += t.shape.elems();
  return static_cast<int64_t>(std::min<__int128>(total, INT64_MAX));
}

}  // namespace wick::models
