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

}  // namespace wick
