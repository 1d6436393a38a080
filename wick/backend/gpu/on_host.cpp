#include "wick/backend/gpu/on_host.h"

#include <algorithm>
#include <atomic>

namespace wick::gpu {
namespace {

std::atomic<int64_t> calls = 0;

}  // namespace

int64_t on_host_calls() { return calls.load(std::memory_order_relaxed); }

OnHost::OnHost(GpuBackend& backend) : backend_(backend) {
  calls.fetch_add(1, std::memory_order_relaxed);
}

View OnHost::copy_of(const ConstView& view) {
  copies_.emplace_back();
  if (view.data == nullptr || view.layout.elems() == 0) return {nullptr, view.dtype, view.layout};
  int64_t first = view.layout.offset(), last = first;
  for (int d = 0; d < view.layout.rank(); ++d) {
    const int64_t reach = view.layout.stride(d) * (view.layout.shape()[d] - 1);
    (reach < 0 ? first : last) += reach;
  }
  const auto elem_bytes = static_cast<int64_t>(info(view.dtype).block_bytes);
  Copy& copy = copies_.back();
  copy.bytes = static_cast<size_t>((last - first + 1) * elem_bytes);
  copy.host = std::make_unique_for_overwrite<std::byte[]>(copy.bytes);
  // The memory is only read unless `goes_back` is set, and only out() sets it.
  copy.device =
      const_cast<std::byte*>(static_cast<const std::byte*>(view.data)) + first * elem_bytes;
  backend_.download(copy.host.get(), copy.device, copy.bytes);
  return {copy.host.get(), view.dtype,
          Layout(view.layout.shape(), view.layout.strides(), view.layout.offset() - first)};
}

View OnHost::out(const View& view) {
  const View copy = copy_of(view);
  copies_.back().goes_back = true;
  return copy;
}

void OnHost::finish() {
  for (const Copy& copy : copies_) {
    if (copy.goes_back && copy.bytes != 0) {
      backend_.upload(copy.device, copy.host.get(), copy.bytes);
    }
  }
}

}  // namespace wick::gpu
