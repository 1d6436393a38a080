#include "wick/backend/gpu/spatial/convolution_library.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/trace/trace.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

/// The most shapes that a device keeps. A model has some tens.
constexpr size_t kMostShapes = 4096;

/// Never destroyed, like drivers.
struct Found {
  std::unique_ptr<ConvolutionLibrary> library;
  ConvolutionLibrary::Missing missing;
};

const Found* open(const KnownConvolutionLibrary& known) {
  auto* found = new Found;
  found->missing.name = known.name;
  found->library = known.open(found->missing.reason);
  return found;
}

const Found& found(DeviceKind kind) {
  static const Found none;
  if (kind == DeviceKind::cuda) {
    static const Found* const cuda = open(cuda_convolution_library());
    return *cuda;
  }
  if (kind == DeviceKind::hip) {
    static const Found* const hip = open(hip_convolution_library());
    return *hip;
  }
  return none;
}

/// Whether all sizes, and the elements of each operand, fit the 32 bits that libraries require.
bool fits(const ConvCall& call) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const Shape* shape : {&call.x.shape, &call.w.shape, &call.y.shape}) {
    const int64_t elems = shape->elems();
    if (elems == 0 || elems > kMost) return false;
  }
  const ConvParams& p = call.params;
  for (size_t i = 0; i < 2; ++i) {
    for (const int64_t value : {p.stride[i], p.padding[i], p.dilation[i]}) {
      if (value < 0 || value > kMost) return false;
    }
  }
  return true;
}

/// Whether y has the size that libraries compute from the other operands.
bool has_usual_size(const ConvCall& call) {
  const Shape &x = call.x.shape, &w = call.w.shape, &y = call.y.shape;
  const ConvParams& p = call.params;
  for (int i = 0; i < 2; ++i) {
    const int64_t reach = p.dilation[i] * (w[2 + i] - 1) + 1;
    const int64_t room = x[2 + i] + 2 * p.padding[i] - reach;
    if (room < 0 || y[2 + i] != room / p.stride[i] + 1) return false;
  }
  return x[0] == y[0] && x[1] == w[1] * p.groups && y[1] == w[0] && w[0] % p.groups == 0;
}

}  // namespace

ConvKey key_of(const ConvCall& call) {
  ConvKey key = {static_cast<int64_t>(call.form), static_cast<int64_t>(call.dtype),
                 call.channels_last ? 1 : 0};
  size_t at = 3;
  for (const Shape* shape : {&call.x.shape, &call.w.shape, &call.y.shape}) {
    for (int d = 0; d < 4; ++d) key[at++] = (*shape)[d];
  }
  const ConvParams& p = call.params;
  for (size_t i = 0; i < 2; ++i) {
    for (const int64_t value : {p.stride[i], p.padding[i], p.dilation[i]}) key[at++] = value;
  }
  key[at++] = p.groups;
  key[at] = call.fast ? 1 : 0;
  return key;
}

std::array<int64_t, 4> dense_strides(const Shape& shape, bool channels_last) {
  const int64_t c = shape[1], h = shape[2], w = shape[3];
  if (channels_last) return {c * h * w, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

ConvLibraryUse conv_library_use() {
  const std::string_view wanted = environment_choice("WICK_GPU_CONV");
  return wanted == "own"       ? ConvLibraryUse::own
         : wanted == "library" ? ConvLibraryUse::library
                               : ConvLibraryUse::automatic;
}

ConvolutionLibrary* ConvolutionLibrary::of(DeviceKind kind) { return found(kind).library.get(); }

ConvolutionLibrary::Missing ConvolutionLibrary::missing(DeviceKind kind) {
  return found(kind).missing;
}

ConvolutionLibrary::State& ConvolutionLibrary::state_of(const Gpu& gpu) {
  const auto [at, added] = devices_.try_emplace(gpu.device.index);
  State& state = at->second;
  if (added) {
    std::string reason;
    gpu.enter();
    state.library = prepare(gpu, reason);
    if (state.library == nullptr) {
      std::fputs(
          fmt::format("wick: {}: {} isn't used: {}\n", gpu.device.str(), name, reason).c_str(),
          stderr);
    }
  }
  return state;
}

ConvolutionLibrary::Plan* ConvolutionLibrary::find_plan(const Gpu& gpu, State& state,
                                                        const ConvCall& call) {
  if (state.library == nullptr) return nullptr;
  const ConvKey key = key_of(call);
  auto at = state.shapes.find(key);
  if (at == state.shapes.end()) {
    if (gpu.captures()) return nullptr;
    if (state.shapes.size() >= kMostShapes) state.shapes.clear();
    gpu.enter();
    at = state.shapes.emplace(key, ShapePlans{state.library->algorithms(call), {}}).first;
  }
  auto& [others, plans] = at->second;
  if (call.algorithm < 0 || call.algorithm >= kMostAlgorithms) return nullptr;
  while (call.algorithm >= std::ssize(plans)) {
    if (others == nullptr || gpu.captures()) return nullptr;
    gpu.enter();
    std::unique_ptr<Plan> plan = others->next();
    if (plan == nullptr) {
      others.reset();
    } else {
      plans.push_back(std::move(plan));
    }
  }
  Plan* const plan = plans[static_cast<size_t>(call.algorithm)].get();
  return plan->failed || (gpu.captures() && !plan->has_run) ? nullptr : plan;
}

bool ConvolutionLibrary::takes(Gpu& gpu, const ConvCall& call) {
  const bool dtype =
      call.dtype == DType::f32 || call.dtype == DType::f16 || call.dtype == DType::bf16;
  if (gpu.device.kind != kind_ || !dtype || !fits(call) || !has_usual_size(call)) return false;
  std::lock_guard lock(mutex_);
  if (gpu.captures() && !devices_.contains(gpu.device.index)) return false;
  return find_plan(gpu, state_of(gpu), call) != nullptr;
}

bool ConvolutionLibrary::convolve(Gpu& gpu, const ConvCall& call) {
  if (!takes(gpu, call)) return false;
  std::lock_guard lock(mutex_);
  State& state = state_of(gpu);
  Plan* const plan = find_plan(gpu, state, call);
  if (plan == nullptr) return false;
  gpu.enter();
  const Scratch workspace(gpu, std::max<size_t>(plan->workspace_bytes, 1));
  const auto run = [&] {
    OnDevice& on_device = *state.library;
    if (gpu.captures()) {
      if (const int status = on_device.set_stream(gpu.stream())) return status;
    }
    int status =
        on_device.run(*plan, call, plan->workspace_bytes == 0 ? nullptr : workspace.data());
    // The stream of a capture is destroyed at its end.
    if (gpu.captures()) {
      const int restored = on_device.set_stream(gpu.main_stream());
      if (status == 0) status = restored;
    }
    return status;
  };
  int status = 0;
  if (tracing()) {
    constexpr const char* kForms[] = {"forward", "input", "weight"};
    const std::string arguments =
        fmt::format(R"("form":"{}","x":"{}","w":"{}","channels_last":{},"algorithm":{})",
                    kForms[static_cast<int>(call.form)], call.x.shape.str(), call.w.shape.str(),
                    call.channels_last, call.algorithm);
    status = trace_work(kind_, gpu.stream(), "library", name, arguments, run);
  } else {
    status = run();
  }
  if (status == 0) {
    plan->has_run = true;
    return true;
  }
  plan->failed = true;
  if (!state.reported) {
    state.reported = true;
    std::fputs(fmt::format("wick: {}: {} failed, so wick's kernels compute a convolution: {}\n",
                           gpu.device.str(), name, state.library->text(status))
                   .c_str(),
               stderr);
  }
  return false;
}

void ConvolutionLibrary::release(Device device) {
  std::lock_guard lock(mutex_);
  devices_.erase(device.index);
}

}  // namespace wick::gpu
