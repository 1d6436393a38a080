// Views of tensors, and copies of their elements, with their gradient rules.
#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"
#include "wick/tensor/tensor.h"

namespace wick {
namespace {

using tape::Vjp;

Tensor put_slice(const Tensor& x, const Shape& shape, const SliceRange& r);

void slice_rule(const Vjp& v) { v.to_x(put_slice(v.grad(), v.x().shape(), v.get<SliceRange>())); }

/// Zeros of a shape with x copied into a slice.
Tensor put_slice(const Tensor& x, const Shape& shape, const SliceRange& r) {
  Tensor out = Tensor::zeros(shape, x.dtype(), x.device());
  apply_into({Op::copy, {&x}}, out.slice(r.dim, r.start, r.stop, r.step));
  if (tape::is_wanted(x)) {
    tape::record(
        out, "slice",
        [](const Vjp& v) {
          const auto& at = v.get<SliceRange>();
          v.to_x(v.grad().slice(at.dim, at.start, at.stop, at.step));
        },
        {x}, r);
  }
  return out;
}

/// The rule of views that keep the elements' order.
void reshape_rule(const Vjp& v) { v.to_x(v.grad().reshape(v.x().shape())); }

/// Records `out`, a view of x, for gradients if x needs one; returns it.
Tensor recorded(Tensor out, std::string_view name, tape::Rule rule, const Tensor& x,
                const Attributes& attributes = {}) {
  if (tape::is_wanted(x)) tape::record(out, name, rule, {x}, attributes);
  return out;
}

}  // namespace

Tensor Tensor::narrow(int dim, int64_t start, int64_t length) const {
  if (!defined()) throw Error("narrow", "undefined tensor");
  if (is_block(dtype_) && resolve_dim("narrow", dim, rank()) == rank() - 1) require_real("narrow");
  return recorded(with(layout_.narrow(dim, start, length)), "narrow", slice_rule, *this,
                  SliceRange{dim, start, start + length, 1});
}

Tensor Tensor::slice(int dim, int64_t start, int64_t stop, int64_t step) const {
  if (!defined()) throw Error("slice", "undefined tensor");
  if (is_block(dtype_) && resolve_dim("slice", dim, rank()) == rank() - 1) require_real("slice");
  return recorded(with(layout_.slice(dim, start, stop, step)), "slice", slice_rule, *this,
                  SliceRange{dim, start, stop, step});
}

Tensor Tensor::transpose(int dim_a, int dim_b) const {
  require_real("transpose");
  return recorded(
      with(layout_.transpose(dim_a, dim_b)), "transpose",
      [](const Vjp& v) {
        const auto& dims = v.get<DimOrder>().dims;
        v.to_x(v.grad().transpose(dims[0], dims[1]));
      },
      *this, DimOrder{{dim_a, dim_b}, 2});
}

Tensor Tensor::permute(std::span<const int> order) const {
  require_real("permute");
  Tensor out = with(layout_.permute(order));
  if (!tape::is_wanted(*this)) return out;
  DimOrder back{{}, rank()};
  for (size_t i = 0; i < order.size(); ++i) {
    back.dims[static_cast<size_t>(resolve_dim("permute", order[i], rank()))] = static_cast<int>(i);
  }
  return recorded(
      out, "permute",
      [](const Vjp& v) {
        const auto& [dims, count] = v.get<DimOrder>();
        v.to_x(v.grad().permute(std::span(dims.data(), static_cast<size_t>(count))));
      },
      *this, back);
}

Tensor Tensor::broadcast_to(const Shape& shape) const {
  require_real("broadcast_to");
  return recorded(
      with(layout_.broadcast_to(shape)), "broadcast_to", [](const Vjp& v) { v.to_x(v.grad()); },
      *this);
}

Tensor Tensor::squeeze(int dim) const {
  require_real("squeeze");
  return recorded(with(layout_.squeeze(dim)), "squeeze", reshape_rule, *this);
}

Tensor Tensor::unsqueeze(int dim) const {
  require_real("unsqueeze");
  return recorded(with(layout_.unsqueeze(dim)), "unsqueeze", reshape_rule, *this);
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
  if (std::optional<Layout> view = layout_.reshape(to)) {
    return recorded(with(*view), "reshape", reshape_rule, *this);
  }
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
  return apply({Op::copy, {this}});
}

Tensor Tensor::to(DType dtype) const {
  return defined() && dtype == dtype_ ? *this : cast(*this, dtype);
}

Tensor Tensor::to(Device device) const {
  if (!defined() || device == this->device()) return *this;
  if (is_block(dtype_) && !layout_.is_contiguous()) {
    throw Error("to", "the block tensor isn't contiguous", str(), "copy the whole tensor");
  }
  if (storage_->is_traced()) {
    throw Error(ErrorKind::runtime, "to", "moved to another device while a function is traced",
                str(), "move it before, or the result afterwards");
  }
  const WithRecorder run_here(nullptr);  // runs at once even while tracing, because x is a constant
  const Tensor dense = contiguous();
  Tensor out(Storage::allocate(device, storage_bytes(shape(), dtype_)), dtype_,
             Layout::contiguous(shape()));
  const auto bytes = static_cast<size_t>(bytes_of(dtype_, elems()));
  const char* const from =
      static_cast<const char*>(dense.storage_->data()) + bytes_of(dtype_, dense.layout_.offset());
  backend(device).copy_from(out.storage_->data(), backend(this->device()), from, bytes);
  return recorded(out, "to", [](const Vjp& v) { v.to_x(v.grad().to(v.x().device())); }, *this);
}

}  // namespace wick
