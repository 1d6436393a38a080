#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// A graph of kernels. It keeps the memory that they use.
class GpuRecording final : public Recording {
 public:
  GpuRecording(Gpu& gpu, void* graph, std::shared_ptr<Pool::Arena> arena,
               std::vector<uint32_t> notes)
      : gpu_(gpu), graph_(graph), arena_(std::move(arena)), notes_(std::move(notes)) {}
  ~GpuRecording() override {
    gpu_.driver.enter(gpu_.device.index);
    gpu_.driver.api.stream_synchronize(gpu_.main_stream());  // it may be running
    gpu_.driver.api.graph_exec_destroy(graph_);
    gpu_.forget_notes(notes_);
  }
  void replay() override {
    gpu_.enter();
    gpu_.check(gpu_.driver.api.graph_launch(graph_, gpu_.main_stream()), "launching a graph");
  }

 private:
  Gpu& gpu_;
  void* graph_;
  std::shared_ptr<Pool::Arena> arena_;
  std::vector<uint32_t> notes_;
};

class GpuReadback final : public Readback {
 public:
  GpuReadback(Gpu& gpu, const void* from, size_t bytes)
      : gpu_(gpu), bytes_(bytes), copy_(gpu.staging.start(from, bytes, gpu.stream())) {}
  ~GpuReadback() override { gpu_.staging.release(copy_); }
  void finish(void* to_host) override {
    gpu_.enter();
    gpu_.staging.finish(copy_, to_host, bytes_);
    if (gpu_.has_fault()) gpu_.synchronize();  // throws
  }

 private:
  Gpu& gpu_;
  size_t bytes_;
  Staging::Copy* copy_;
};

}  // namespace

GpuBackend& backend_of(Device device) {
  static std::mutex mutex;
  // Never destroyed: tensors with static storage may outlive any order of destruction.
  static auto* const backends = new std::map<std::pair<DeviceKind, int>, GpuBackend*>;
  std::lock_guard lock(mutex);
  GpuBackend*& backend = (*backends)[{device.kind, device.index}];
  if (backend == nullptr) backend = new GpuBackend(device);
  return *backend;
}

GpuBackend::~GpuBackend() = default;

std::string GpuBackend::description() const {
  return fmt::format("{}, {}, {:.1f} GiB", gpu_.info.name, gpu_.info.architecture,
                     static_cast<double>(gpu_.info.bytes) / 0x1p30);
}

void* GpuBackend::alloc(size_t bytes) {
  gpu_.enter();
  return gpu_.pool.take(bytes);
}

void GpuBackend::free(void* data, size_t) noexcept { gpu_.pool.give(data); }

void GpuBackend::upload(void* to_device, const void* from_host, size_t bytes) {
  gpu_.enter();
  gpu_.staging.upload(to_device, from_host, bytes, gpu_.stream());
}

void GpuBackend::download(void* to_host, const void* from_device, size_t bytes) {
  gpu_.enter();
  gpu_.staging.download(to_host, from_device, bytes, gpu_.stream());
  gpu_.check_faults();
}

std::unique_ptr<Readback> GpuBackend::start_readback(const void* from_device, size_t bytes) {
  gpu_.enter();
  return std::make_unique<GpuReadback>(gpu_, from_device, bytes);
}

void GpuBackend::synchronize() { gpu_.synchronize(); }

std::unique_ptr<wick::Recording> GpuBackend::record(const std::function<void()>& work) {
  Gpu::Recorder recorder(gpu_);
  work();
  void* const graph = recorder.finish();
  return std::make_unique<GpuRecording>(gpu_, graph, recorder.arena(), recorder.take_notes());
}

MemoryInfo GpuBackend::memory_info() const { return gpu_.pool.info(); }

void GpuBackend::trim() {
  gpu_.enter();
  gpu_.pool.trim();
}

}  // namespace wick::gpu
