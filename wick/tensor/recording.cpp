#include "wick/tensor/recording.h"

#include <fmt/format.h>

namespace wick {

std::unique_ptr<DeviceGraph> record(Device device, const std::function<void()>& work) {
  return backend(device).record(work);
}

void overwrite(const Tensor& target, std::span<const uint32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  if (target.dtype() != DType::u32 || target.elems() != count || !target.layout().is_contiguous() ||
      !target.storage()->writable()) {
    throw Error("overwrite", "the target doesn't fit", target.str(),
                fmt::format("need a dense u32 tensor of {} elements", count));
  }
  const View out = target.mutable_view();
  backend(target.device())
      .upload(static_cast<uint32_t*>(out.data) + out.layout.offset(), values.data(),
              values.size_bytes());
}

void overwrite(const Tensor& target, const Tensor& values) {
  if (target.dtype() != values.dtype() || !(target.shape() == values.shape()) ||
      !target.layout().is_contiguous() || !target.storage()->writable()) {
    throw Error("overwrite", "the target doesn't fit", target.str(),
                fmt::format("need a dense {}", values.str()));
  }
  const Tensor dense = values.contiguous();
  const View out = target.mutable_view();
  const ConstView in = dense.view();
  const auto at = [&](const auto& view) { return bytes_of(view.dtype, view.layout.offset()); };
  backend(target.device())
      .copy_from(static_cast<char*>(out.data) + at(out), backend(values.device()),
                 static_cast<const char*>(in.data) + at(in),
                 static_cast<size_t>(bytes_of(values.dtype(), values.elems())));
}

}  // namespace wick
