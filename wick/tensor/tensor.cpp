#include "wick/tensor/tensor.h"

#include <fmt/format.h>

#include <utility>

#include "wick/backend/backend.h"
#include "wick/tensor/call.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"

namespace wick {

namespace {

/// Whether the last dim is dense and a multiple of the block, and the other strides and the offset
/// are multiples of the block.
bool is_whole_blocks(const Layout& layout, int64_t block) {
  const int inner = layout.rank() - 1;
  if (inner < 0 || layout.stride(inner) != 1 || layout.shape()[inner] % block != 0) return false;
  for (int d = 0; d < inner; ++d) {
    if (layout.shape()[d] > 1 && layout.stride(d) % block != 0) return false;
  }
  return layout.offset() % block == 0;
}

/// Whether every element lies inside `bytes` of storage; a block dtype must consist of whole
/// blocks.
bool lies_inside(const Layout& layout, DType dtype, size_t bytes) {
  if (layout.elems() == 0) return true;
  const int64_t block = info(dtype).block_elems;
  if (block > 1 && !is_whole_blocks(layout, block)) return false;
  int64_t first = layout.offset(), last = layout.offset();
  for (int d = 0; d < layout.rank(); ++d) {
    int64_t reach;
    if (__builtin_mul_overflow(layout.stride(d), layout.shape()[d] - 1, &reach)) return false;
    int64_t& end = reach < 0 ? first : last;
    if (__builtin_add_overflow(end, reach, &end)) return false;
  }
  const auto blocks = static_cast<int64_t>(bytes / static_cast<size_t>(info(dtype).block_bytes));
  return first >= 0 && (block > 1 ? last / block : last) < blocks;
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

void Tensor::fail_undefined() { throw Error("tensor", "undefined", "", "no value was assigned"); }

Tensor Tensor::with(const Layout& layout) const {
  require_defined();
  Tensor view;
  view.storage_ = storage_;
  view.dtype_ = dtype_;
  view.layout_ = layout;
  return view;
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  return Tensor(result_storage(device, storage_bytes(shape, dtype)), dtype,
                Layout::contiguous(shape));
}

Tensor Tensor::full(const Shape& shape, Scalar value, DType dtype, Device device) {
  Tensor out = empty(shape, dtype, device);
  out.require_real("full");
  apply_into({Op::fill, {}, Numbers{value}}, out);
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
  if (dtype == DType::boolean) {
    throw Error(ErrorKind::type, "arange", "unsupported dtype", name(dtype),
                "make integers and convert them");
  }
  apply_into({Op::iota, {}, Numbers{start, step}}, out);
  return out;
}

Tensor Tensor::from_bytes(const void* data, size_t count, DType dtype, const Shape& shape,
                          Device device) {
  if (static_cast<int64_t>(count) != shape.elems()) {
    throw Error("from", "element counts differ",
                fmt::format("{} values, shape {}", count, shape.str()),
                fmt::format("{} != {}", count, shape.elems()));
  }
  // Allocates memory even while a function is traced: the tensor is a constant of the graph.
  Tensor out(Storage::allocate(device, storage_bytes(shape, dtype)), dtype,
             Layout::contiguous(shape));
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
    throw Error(ErrorKind::type, op, "not for a block dtype", str(), "dequantize it first");
  }
}

void Tensor::require_values(std::string_view op) const {
  if (!defined()) throw Error(op, "undefined tensor");
  if (!storage_->is_traced()) return;
  throw Error(ErrorKind::runtime, op, "values are read while a function is traced", str(),
              "a traced function can't depend on values: read them outside of it, or choose "
              "elements by where");
}

void Tensor::require_copyable(DType dtype) const {
  if (defined()) require_values("to_vector");
  if (dtype != this->dtype() && !(this->dtype() == DType::boolean && dtype == DType::u8)) {
    throw Error(ErrorKind::type, "to_vector", "wrong dtype", str(),
                fmt::format("asked for {}; convert to {} first", name(dtype), name(dtype)));
  }
  // A broadcast tensor may have more elements than fit in memory.
  const size_t most = backend(Device::cpu()).memory_info().total_bytes;
  if (static_cast<__int128>(elems()) * info(dtype).block_bytes > static_cast<__int128>(most)) {
    throw Error(ErrorKind::memory, "to_vector", "out of memory", str());
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
  if (defined()) require_values("item");
  if (elems() != 1) throw Error("item", "not one element", str(), "need exactly one");
}

int64_t rows_in_cache(Device device) { return backend(device).rows_in_cache(); }

}  // namespace wick
