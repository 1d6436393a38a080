#include "wick/backend/gpu/spatial/library_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>

#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/precision.h"

namespace wick::gpu {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

/// x, w and y of a convolution. The result is one of them.
struct Operands {
  std::array<ConstView, 3> views;
  size_t result;
};

Operands operands_of(ConvForm form, const View& result, const ConstView& first,
                     const ConstView& second) {
  switch (form) {
    case ConvForm::forward:
      return {{first, second, result}, 2};
    case ConvForm::input:
      return {{result, second, first}, 0};
    case ConvForm::weight:
      break;
  }
  return {{first, result, second}, 1};
}

/// Whether an operand is dense and aligned as libraries require.
bool is_dense(const ConstView& view, bool channels_last) {
  constexpr uintptr_t kAlignment = 16;
  const Shape& shape = view.layout.shape();
  const std::array<int64_t, 4> strides = dense_strides(shape, channels_last);
  for (int d = 0; d < 4; ++d) {
    if (shape[d] > 1 && view.layout.stride(d) != strides[static_cast<size_t>(d)]) return false;
  }
  const void* const data = advance(view.data, view.dtype, view.layout.offset());
  return reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
}

/// A format of the library's operands, and the operands that must be copied to have it.
struct Format {
  bool channels_last = false;
  std::array<bool, 3> copied{};
  int64_t copied_elems = 0;

  Format(const Operands& operands, bool last) : channels_last(last) {
    for (size_t i = 0; i < 3; ++i) {
      copied[i] = !is_dense(operands.views[i], last);
      if (copied[i]) copied_elems += operands.views[i].layout.elems();
    }
  }
  int64_t bits() const { return copied[0] | copied[1] << 1 | copied[2] << 2; }
};

/// A convolution with the formats in which the library may compute it.
class LibraryJob {
 public:
  LibraryJob(GpuBackend& backend, ConvolutionLibrary& library, ConvForm form,
             const Operands& operands, const ConvParams& params)
      : backend_(backend),
        library_(library),
        operands_(operands),
        formats_{Format(operands, false), Format(operands, true)} {
    call_.form = form;
    call_.dtype = operands.views[0].dtype;
    call_.fast = call_.dtype == DType::f32 && precision() == Precision::fast;
    call_.params = params;
    ConvOperand* const in_call[] = {&call_.x, &call_.w, &call_.y};
    for (size_t i = 0; i < 3; ++i) in_call[i]->shape = operands.views[i].layout.shape();
  }

  ConvChoices::Key key() const {
    return {key_of(call_), formats_[0].bits() | formats_[1].bits() << 3};
  }

  bool takes(bool channels_last, int algorithm = 0) const {
    ConvCall call = call_;
    call.channels_last = channels_last;
    call.algorithm = algorithm;
    return library_.takes(backend_.gpu(), call);
  }

  /// Computes the result in the format with the fewest copies that the library takes.
  bool run_any() {
    // Matrix units read 16-bit operands with the channels innermost.
    const bool halves = call_.dtype != DType::f32;
    const bool last = formats_[1].copied_elems < formats_[0].copied_elems ||
                      (formats_[1].copied_elems == formats_[0].copied_elems && halves);
    return run(last) || run(!last);
  }

  /// Computes the result. False if the library can't, or if there is no memory for copies and the
  /// workspace; the result then has any contents.
  bool run(bool channels_last, int algorithm = 0) {
    if (!takes(channels_last, algorithm)) return false;
    try {
      return copy_and_run(formats_[channels_last ? 1 : 0], algorithm);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      return false;
    }
  }

 private:
  bool copy_and_run(const Format& format, int algorithm) {
    ConvCall call = call_;
    call.channels_last = format.channels_last;
    call.algorithm = algorithm;
    ConvOperand* const in_call[] = {&call.x, &call.w, &call.y};
    std::array<std::optional<Scratch>, 3> copies;
    std::array<View, 3> dense;
    for (size_t i = 0; i < 3; ++i) {
      const ConstView& view = operands_.views[i];
      if (!format.copied[i]) {
        in_call[i]->data = const_cast<void*>(advance(view.data, view.dtype, view.layout.offset()));
        continue;
      }
      const Shape& shape = view.layout.shape();
      const int64_t bytes = shape.elems() * info(view.dtype).block_bytes;
      copies[i].emplace(backend_.gpu(), static_cast<size_t>(bytes));
      Layout::Strides strides{};
      const auto four = dense_strides(shape, format.channels_last);
      std::copy(four.begin(), four.end(), strides.begin());
      dense[i] = {copies[i]->data(), view.dtype, Layout(shape, strides, 0)};
      in_call[i]->data = dense[i].data;
      if (i != operands_.result) backend_.copy(dense[i], view);
    }
    if (!library_.convolve(backend_.gpu(), call)) return false;
    const size_t r = operands_.result;
    if (format.copied[r]) {
      const ConstView& result = operands_.views[r];
      backend_.copy({const_cast<void*>(result.data), result.dtype, result.layout}, dense[r]);
    }
    return true;
  }

  GpuBackend& backend_;
  ConvolutionLibrary& library_;
  const Operands operands_;
  const Format formats_[2];
  ConvCall call_;  ///< without addresses, in the first format
};

/// Measures the device's time of work on the main stream.
class Stopwatch {
 public:
  explicit Stopwatch(Gpu& gpu) : gpu_(gpu) {
    for (void*& event : events_) gpu.check(gpu.driver.api.event_create(&event, 0), "an event");
  }
  ~Stopwatch() {
    for (void* event : events_) {
      if (event != nullptr) gpu_.driver.api.event_destroy(event);
    }
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// The milliseconds of one launch among `launches`; infinity if one fails.
  float time(const std::function<bool()>& work, int launches) {
    const Api& api = gpu_.driver.api;
    gpu_.check(api.event_record(events_[0], gpu_.stream()), "measuring");
    for (int i = 0; i < launches; ++i) {
      if (!work()) return kNever;
    }
    gpu_.check(api.event_record(events_[1], gpu_.stream()), "measuring");
    gpu_.check(api.event_synchronize(events_[1]), "measuring");
    float milliseconds = 0;
    gpu_.check(api.event_elapsed(&milliseconds, events_[0], events_[1]), "measuring");
    return milliseconds / static_cast<float>(launches);
  }

 private:
  Gpu& gpu_;
  void* events_[2] = {};
};

struct Measurement {
  ConvChoice choice;
  bool complete;  ///< everything that the library takes was measured: there was memory for it
};

/// wick's kernels, and the library's algorithms in each format.
std::vector<ConvChoice> candidates(const LibraryJob& job) {
  std::vector<ConvChoice> all = {{}};
  for (const bool last : {false, true}) {
    for (int i = 0; job.takes(last, i); ++i) all.push_back({true, last, i});
  }
  return all;
}

/// Runs each implementation some times and chooses the fastest.
Measurement measure(Gpu& gpu, LibraryJob& job, const std::function<void()>& own) {
  constexpr int kRounds = 3, kMostLaunches = 8;
  constexpr float kEnough = 0.5f;  // milliseconds of a round
  constexpr float kHopeless = 3;   // times the best
  std::vector<TimedConv> all;
  std::vector<std::function<bool()>> work;
  for (const ConvChoice& choice : candidates(job)) {
    all.push_back({choice});
    work.push_back([&, choice] {
      if (choice.library) return job.run(choice.channels_last, choice.algorithm);
      own();
      return true;
    });
  }
  Stopwatch stopwatch(gpu);
  float best = kNever;
  bool complete = true;
  // The first run of an implementation loads its kernels.
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].milliseconds = work[i]() ? stopwatch.time(work[i], 1) : kNever;
    best = std::min(best, all[i].milliseconds);
    const ConvChoice& choice = all[i].choice;
    complete = complete && (all[i].milliseconds != kNever ||
                            !job.takes(choice.channels_last, choice.algorithm));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      float& time = all[i].milliseconds;
      if (time == kNever || time > kHopeless * best) continue;
      const float launches = std::clamp<float>(kEnough / std::max(time, 1e-3f), 1, kMostLaunches);
      time = std::min(time, stopwatch.time(work[i], static_cast<int>(launches)));
      best = std::min(best, time);
    }
  }
  return {fastest(all), complete};
}

/// The choices of a device. They are never destroyed, like the library.
ConvChoices& choices_of(const Gpu& gpu, const ConvolutionLibrary& library) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<DeviceKind, int>, std::unique_ptr<ConvChoices>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<ConvChoices>& choices = (*all)[{gpu.device.kind, gpu.device.index}];
  if (choices == nullptr) {
    std::string context = fmt::format("{}\n{}\n{}\n{} {}", gpu.info.name, gpu.info.architecture,
                                      gpu.compiled_for(), library.name, library.version());
    choices = std::make_unique<ConvChoices>(std::move(context), KernelCache::standard());
  }
  return *choices;
}

}  // namespace

ConvChoice fastest(const std::vector<TimedConv>& all) {
  constexpr float kClearly = 0.95f;
  const TimedConv& own = all.front();
  const auto best = std::min_element(
      all.begin(), all.end(),
      [](const TimedConv& a, const TimedConv& b) { return a.milliseconds < b.milliseconds; });
  return best->milliseconds >= kClearly * own.milliseconds ? own.choice : best->choice;
}

bool may_use_conv_library(const Gpu& gpu, DType dtype) {
  const bool known = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  return known && conv_library_use() != ConvLibraryUse::own &&
         ConvolutionLibrary::of(gpu.device.kind) != nullptr &&
         environment_choice("WICK_REPRODUCIBLE") != "1";
}

bool convolve_by_library(GpuBackend& backend, ConvForm form, const View& result,
                         const ConstView& first, const ConstView& second, const ConvParams& params,
                         const std::function<void()>& own) {
  Gpu& gpu = backend.gpu();
  if (!may_use_conv_library(gpu, result.dtype)) return false;
  ConvolutionLibrary& library = *ConvolutionLibrary::of(gpu.device.kind);
  LibraryJob job(backend, library, form, operands_of(form, result, first, second), params);
  if (conv_library_use() == ConvLibraryUse::library) return job.run_any();

  ConvChoices& choices = choices_of(gpu, library);
  const ConvChoices::Key key = job.key();
  std::optional<ConvChoice> choice = choices.find(key);
  if (!choice) {
    if (gpu.captures()) return false;
    const bool taken = job.takes(false) || job.takes(true);
    // Another installation of the library may take the shape.
    const Measurement found = taken ? measure(gpu, job, own) : Measurement{{}, false};
    choice = found.choice;
    choices.store(key, found.choice, found.complete);
  }
  return choice->library && job.run(choice->channels_last, choice->algorithm);
}

}  // namespace wick::gpu
