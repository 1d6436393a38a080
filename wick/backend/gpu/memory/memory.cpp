#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/compile/code.h"
#include "wick/backend/gpu/compile/kernel_cache.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/gemm.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/backend/gpu/spatial/convolution_library.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// Checks environment variables early: an error before a model is loaded is better than one during
/// a run.
void check_environment() {
  images_allowed();
  library_use();
  conv_library_use();
  forced_main_loop();
  forced_gemm_path();
  ordered_attention();
  KernelCache::standard();
}

/// A captured graph of kernels. It keeps the memory that the kernels use.
class GpuGraph final : public DeviceGraph {
 public:
  GpuGraph(Gpu& gpu, void* graph, std::shared_ptr<Pool::Arena> arena, std::vector<uint32_t> notes,
           std::vector<std::shared_ptr<const void>> kept)
      : gpu_(gpu),
        graph_(graph),
        arena_(std::move(arena)),
        notes_(std::move(notes)),
        kept_(std::move(kept)) {}
  ~GpuGraph() override {
    if (!gpu_.driver.try_enter(gpu_.device.index)) return;
    gpu_.driver.api.stream_synchronize(gpu_.main_stream());  // the graph may be running
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
  std::vector<std::shared_ptr<const void>> kept_;  ///< modules of captured kernels
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
  // Never destroyed, because tensors with static storage may outlive any order of destruction.
  constexpr size_t kFirst = 16;
  static std::atomic<GpuBackend*> first[2][kFirst];  // found without a lock
  const auto index = static_cast<size_t>(device.index);
  std::atomic<GpuBackend*>* const quick =
      index < kFirst ? &first[device.kind == DeviceKind::cuda ? 0 : 1][index] : nullptr;
  if (quick != nullptr) {
    if (GpuBackend* const known = quick->load(std::memory_order_acquire)) return *known;
  }
  static std::mutex mutex;
  static auto* const backends = new std::map<std::pair<DeviceKind, int>, GpuBackend*>;
  std::lock_guard lock(mutex);
  GpuBackend*& backend = (*backends)[{device.kind, device.index}];
  if (backend == nullptr) {
    check_environment();
    backend = new GpuBackend(device);
  }
  if (quick != nullptr) quick->store(backend, std::memory_order_release);
  return *backend;
}

GpuBackend::~GpuBackend() = default;

std::string GpuBackend::description() const {
  return fmt::format("{}, {}, {:.1f} GiB", gpu_.info.name, gpu_.info.architecture,
                     static_cast<double>(gpu_.info.bytes) / 0x1p30);
}

void* GpuBackend::alloc(size_t bytes) {
  gpu_.driver.require_usable(gpu_.device.index);
  return gpu_.pool.take(bytes);
}

void GpuBackend::free(void* data, size_t) noexcept {
  // In a fork, other threads' locks may never be released.
  if (!Driver::forked()) gpu_.pool.give(data);
}

void GpuBackend::upload(void* to_device, const void* from_host, size_t bytes) {
  gpu_.enter();
  gpu_.refuse_to_capture_copies();
  gpu_.staging.upload(to_device, from_host, bytes, gpu_.stream());
}

void GpuBackend::download(void* to_host, const void* from_device, size_t bytes) {
  gpu_.enter();
  gpu_.refuse_to_capture_copies();
  gpu_.staging.download(to_host, from_device, bytes, gpu_.stream());
  gpu_.check_faults();
}

std::unique_ptr<Readback> GpuBackend::start_readback(const void* from_device, size_t bytes) {
  gpu_.enter();
  gpu_.refuse_to_capture_copies();
  return std::make_unique<GpuReadback>(gpu_, from_device, bytes);
}

void GpuBackend::copy_from(void* to, Backend& there, const void* from, size_t bytes) {
  if (there.device().kind == DeviceKind::cpu) return upload(to, from, bytes);
  gpu_.peers.copy(to, static_cast<GpuBackend&>(there).gpu_, from, bytes);
}

void GpuBackend::synchronize() { gpu_.synchronize(); }

void* GpuBackend::native_stream() {
  if (gpu_.captures()) {
    throw Error(ErrorKind::runtime, "native_stream", "a recording is being made", gpu_.device.str(),
                "take it before or afterwards");
  }
  return gpu_.stream();
}

std::unique_ptr<wick::DeviceGraph> GpuBackend::record(const std::function<void()>& work) {
  Gpu::Capture capture(gpu_);
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (...) {  // a custom op's body may have passed on the refusal as an exception of its own
    if (!capture.refused()) throw;
    throw Error(ErrorKind::runtime, "record",
                "the work waits for the device or copies to or from the host", gpu_.device.str(),
                "do it before or afterwards");
  }
  void* const graph = capture.finish();
  return std::make_unique<GpuGraph>(gpu_, graph, capture.arena(), capture.take_notes(),
                                    capture.take_kept());
}

MemoryInfo GpuBackend::memory_info() const { return gpu_.pool.info(); }

size_t GpuBackend::free_memory() const {
  gpu_.enter();
  size_t free = 0, total = 0;
  gpu_.check(gpu_.driver.api.mem_info(&free, &total), "asking for free memory");
  return free;
}

void GpuBackend::set_memory_limit(size_t bytes) {
  gpu_.enter();
  gpu_.pool.set_limit(bytes);
}

void GpuBackend::reset_peak_memory() { gpu_.pool.reset_peak(); }

void GpuBackend::trim() {
  gpu_.enter();
  gpu_.pool.trim();
}

}  // namespace wick::gpu
