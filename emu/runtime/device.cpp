#include "emu/runtime/device.h"

#include <algorithm>

namespace emu {

Device::Device(int ordinal, const Architecture& architecture, size_t bytes)
    : ordinal(ordinal),
      architecture(architecture),
      target(*parse_target(architecture.full_name)),
      bytes(bytes) {}

StreamPtr Device::create_stream(unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(this, flags, priority);
  std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return stream;
}

StreamPtr Device::null_stream() {
  std::lock_guard lock(mutex_);
  if (null_ == nullptr) {
    null_ = std::make_shared<Stream>(this, 0u, 0);
    null_->null_stream = true;
    streams_.push_back(null_);
  }
  return null_;
}

StreamPtr Device::null_stream_if_used() {
  std::lock_guard lock(mutex_);
  return null_;
}

std::vector<StreamPtr> Device::streams() {
  std::lock_guard lock(mutex_);
  // A destroyed stream is kept until its work is done, because the null stream waits for it.
  std::erase_if(streams_, [](const StreamPtr& s) { return s.use_count() == 1 && s->idle(); });
  return streams_;
}

void Device::drop_stream(const Stream* stream) {
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [&](const StreamPtr& s) { return s.get() == stream && s->idle(); });
}

void Device::wait() {
  for (const StreamPtr& stream : streams()) stream->wait();
}

hipError_t Device::synchronize() {
  hipError_t first = hipSuccess;
  for (const StreamPtr& stream : streams()) {
    stream->wait();
    const hipError_t error = stream->take_error();
    if (first == hipSuccess) first = error;
  }
  return first;
}

}  // namespace emu
