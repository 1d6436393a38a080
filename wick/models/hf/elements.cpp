#include "wick/models/hf/elements.h"

#include <cstring>
#include <vector>

#include "wick/tensor/ops.h"

namespace wick::models::hf {

Tensor dense_copy(const Tensor& x) {
  if (!x.layout().is_contiguous()) return x.contiguous();
  Tensor copy = Tensor::empty(x.shape(), x.dtype());
  const auto* from =
      static_cast<const std::byte*>(x.view().data) + bytes_of(x.dtype(), x.layout().offset());
  const auto bytes = static_cast<size_t>(bytes_of(x.dtype(), x.elems()));
  if (bytes > 0) std::memcpy(copy.mutable_view().data, from, bytes);
  return copy;
}

Tensor elements_of(const Tensor& dense, const FormView& view) {
  Tensor first = dense_copy(Tensor(dense.storage(), dense.dtype(), view.layout));
  if (view.more.empty()) return first;
  std::vector<Tensor> pieces = {first.reshape({first.elems()})};
  for (const Layout& layout : view.more) {
    const Tensor next = dense_copy(Tensor(dense.storage(), dense.dtype(), layout));
    pieces.push_back(next.reshape({next.elems()}));
  }
  return cat(pieces, 0);
}

}  // namespace wick::models::hf
