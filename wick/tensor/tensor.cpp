#include "wick/tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wick/backend/backend.h"
#include "wick/tensor/ops.h"

namespace wick {

namespace {

/// Whether every element lies inside `bytes` of storage, and whole blocks where they are blocks.
bool lies_inside(const Layout& layout, DType dtype, size_t bytes) {
  const int64_t block = info(dtype).block_elems;
  if (layout.elems() == 0) return true;
  __int128 first = layout.offset(), last = layout.offset();
  for (int d = 0; d < layout.rank(); ++d) {
    const __int128 reach = static_cast<__int128>(layout.stride(d)) * (layout.shape()[d] - 1);
    (reach < 0 ? first : last) += reach;
  }
  if (block > 1) {
    const int inner = layout.rank() - 1;
    if (inner < 0 || layout.stride(inner) != 1 || layout.shape()[inner] % block != 0) return false;
    for (int d = 0; d < inner; ++d) {
      if (layout.shape()[d] > 1 && layout.stride(d) % block != 0) return false;
    }
    if (layout.offset() % block != 0) return false;
  }
  return first >= 0 && (last / block + 1) * info(dtype).block_bytes <= static_cast<__int128>(bytes);
}

}  // namespace

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, const Layout& layout)
    : storage_(std::move(storage)), dtype_(dtype), layout_(layout) {
  if (storage_ == nullptr) fail_undefined();
  if (!lies_inside(layout, dtype, storage_->bytes())) {
    throw Error("tensor", "layout outside the storage",
                fmt::format("{}, offset {}, storage of {} bytes", str(), layout.offset(),
                            storage_->bytes()));
  }
}

void Tensor::fail_undefined() {
  throw Error("tensor", "undefined", "", "it was never given a value");
}

Tensor Tensor::with(const Layout& layout) const {
  require_defined();
  Tensor view = *this;
  view.layout_ = layout;
  return view;
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  const int64_t block = wick::info(dtype).block_elems;
  if (block > 1 && (shape.rank() == 0 || shape.back() % block != 0)) {
    throw Error("empty", "the last dimension isn't whole blocks",
                fmt::format("{}{}", name(dtype), shape.str()),
                fmt::format("need a multiple of {}", block));
  }
  const Shape checked(shape.dims());  // sizes may have been multiplied up by an op: refuse overflow
  const __int128 bytes = static_cast<__int128>(checked.elems() / block) * info(dtype).block_bytes;
  if (bytes > (__int128{1} << 62)) {
    throw Error("empty", "too many bytes", fmt::format("{}{}", name(dtype), shape.str()));
  }
  return Tensor(Storage::allocate(device, static_cast<size_t>(bytes)), dtype,
                Layout::contiguous(shape));
}

Tensor Tensor::full(const Shape& shape, Scalar value, DType dtype, Device device) {
  Tensor out = empty(shape, dtype, device);
  out.require_real("full");
  backend(device).fill(out.mutable_view(), value);
  return out;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  return full(shape, 0, dtype, device);
}

Tensor Tensor::ones(const Shape& shape, DType dtype, Device device) {
  return full(shape, 1, dtype, device);
}

Tensor Tensor::arange(Scalar start, int64_t count, Scalar step, DType dtype, Device device) {
  Tensor out = empty({count}, dtype, device);
  out.require_real("arange");
  backend(device).iota(out.mutable_view(), start, step);
  return out;
}

Tensor Tensor::from_bytes(const void* data, size_t count, DType dtype, const Shape& shape,
                          Device device) {
  if (static_cast<int64_t>(count) != shape.elems()) {
    throw Error("from", "element counts differ",
                fmt::format("{} values, shape {}", count, shape.str()),
                fmt::format("{} != {}", count, shape.elems()));
  }
  Tensor out = empty(shape, dtype, device);
  backend(device).upload(out.storage_->data(), data, out.storage_->bytes());
  return out;
}

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  return fmt::format("{}{}@{}", name(dtype_), shape().str(), device().str());
}

void Tensor::require_real(const char* op) const {
  if (!defined()) throw Error(op, "undefined tensor");
  if (is_block(dtype_)) {
    throw Error(op, "not for a block dtype", str(), "dequantize it first");
  }
}

Tensor Tensor::narrow(int dim, int64_t start, int64_t length) const {
  if (!defined()) throw Error("narrow", "undefined tensor");
  if (is_block(dtype_) && resolve_dim("narrow", dim, rank()) == rank() - 1) require_real("narrow");
  return with(layout_.narrow(dim, start, length));
}

Tensor Tensor::slice(int dim, int64_t start, int64_t stop, int64_t step) const {
  if (!defined()) throw Error("slice", "undefined tensor");
  if (is_block(dtype_) && resolve_dim("slice", dim, rank()) == rank() - 1) require_real("slice");
  return with(layout_.slice(dim, start, stop, step));
}

Tensor Tensor::transpose(int dim_a, int dim_b) const {
  require_real("transpose");
  return with(layout_.transpose(dim_a, dim_b));
}

Tensor Tensor::permute(std::span<const int> order) const {
  require_real("permute");
  return with(layout_.permute(order));
}

Tensor Tensor::broadcast_to(const Shape& shape) const {
  require_real("broadcast_to");
  return with(layout_.broadcast_to(shape));
}

Tensor Tensor::squeeze(int dim) const {
  require_real("squeeze");
  return with(layout_.squeeze(dim));
}

Tensor Tensor::unsqueeze(int dim) const {
  require_real("unsqueeze");
  return with(layout_.unsqueeze(dim));
}

std::vector<Tensor> Tensor::split(std::span<const int64_t> sizes, int dim) const {
  const int d = resolve_dim("split", dim, rank());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(narrow(d, start, size));
    start += size;
  }
  if (start != shape()[d]) {
    throw Error("split", "sizes don't add up", fmt::format("{}, dim {}", str(), d),
                fmt::format("{} != {}", start, shape()[d]));
  }
  return parts;
}

std::vector<Tensor> Tensor::chunk(int64_t count, int dim) const {
  const int d = resolve_dim("chunk", dim, rank());
  if (count < 1) throw Error("chunk", "count below 1", fmt::format("{}", count));
  const int64_t total = shape()[d];
  const int64_t piece = std::max<int64_t>(1, total / count + (total % count != 0 ? 1 : 0));
  std::vector<Tensor> parts;
  for (int64_t start = 0; start < total || parts.empty(); start += piece) {
    parts.push_back(narrow(d, start, std::min(piece, total - start)));
  }
  return parts;
}

Tensor Tensor::reshape(const Shape& to) const {
  require_real("reshape");
  if (std::optional<Layout> view = layout_.reshape(to)) return with(*view);
  return contiguous().reshape(to);
}

Tensor Tensor::flatten(int first_dim, int last_dim) const {
  if (rank() == 0) return reshape({1});
  const int first = resolve_dim("flatten", first_dim, rank());
  const int last = resolve_dim("flatten", last_dim, rank());
  if (first > last) {
    throw Error("flatten", "dimensions out of order",
                fmt::format("{}, {} to {}", str(), first, last));
  }
  std::vector<int64_t> dims;
  int64_t merged = 1;
  for (int d = 0; d < rank(); ++d) {
    if (d < first || d > last) {
      dims.push_back(shape()[d]);
      continue;
    }
    merged *= shape()[d];
    if (d == last) dims.push_back(merged);
  }
  return reshape(Shape(dims));
}

Tensor Tensor::contiguous() const { return layout().is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  require_real("clone");
  Tensor out = empty(shape(), dtype_, device());
  backend(device()).copy(out.mutable_view(), view());
  return out;
}

Tensor Tensor::to(DType dtype) const {
  return defined() && dtype == dtype_ ? *this : cast(*this, dtype);
}

Tensor Tensor::to(Device device) const {
  if (!defined() || device == this->device()) return *this;
  if (is_block(dtype_) && !layout_.is_contiguous()) {
    throw Error("to", "blocks in rows that aren't neighbours", str(), "take the whole tensor");
  }
  const Tensor dense = contiguous();
  Tensor out = empty(shape(), dtype_, device);
  const auto bytes = static_cast<size_t>(bytes_of(dtype_, elems()));
  const char* const from =
      static_cast<const char*>(dense.storage_->data()) + bytes_of(dtype_, dense.layout_.offset());
  backend(device).copy_from(out.storage_->data(), backend(this->device()), from, bytes);
  return out;
}

void Tensor::require_copyable(DType dtype) const {
  if (dtype != this->dtype()) {
    throw Error(
        "to_vector", "another dtype", str(),
        fmt::format("asked for {}; convert first with to(DType::{})", name(dtype), name(dtype)));
  }
  // A broadcast tensor may have more elements than any memory holds.
  const size_t most = backend(Device::cpu()).memory_info().total_bytes;
  if (static_cast<__int128>(elems()) * info(dtype).block_bytes > static_cast<__int128>(most)) {
    throw Error("to_vector", "out of memory", str());
  }
}

void Tensor::copy_to_host(void* to) const {
  const Tensor dense = contiguous();
  Backend& b = backend(device());
  const auto offset = static_cast<size_t>(bytes_of(dtype_, dense.layout_.offset()));
  b.download(to, static_cast<const char*>(dense.storage_->data()) + offset,
             static_cast<size_t>(bytes_of(dtype_, elems())));
}

void Tensor::require_one_element() const {
  if (elems() != 1) throw Error("item", "not one element", str());
}

int64_t rows_in_cache(Device device) { return backend(device).rows_in_cache(); }

}  // namespace wick
