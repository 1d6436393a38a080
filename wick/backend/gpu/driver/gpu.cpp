#include "wick/backend/gpu/driver/gpu.h"

#include <fmt/format.h>

#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

Driver& driver_of(Device device) {
  Driver* driver = Driver::of(device.kind);
  if (driver == nullptr) {
    throw Error(ErrorKind::runtime, "device", "no such device here", device.str(),
                Driver::missing(device.kind));
  }
  if (device.index < 0 || device.index >= driver->device_count()) {
    const int count = driver->device_count();
    throw Error(ErrorKind::runtime, "device", "no such device here", device.str(),
                fmt::format("there {} {} of that kind", count == 1 ? "is" : "are", count));
  }
  return *driver;
}

/// The capture of the calling thread; `gpu` is null if it captures nothing.
struct CaptureState {
  const Gpu* gpu = nullptr;
  void* stream = nullptr;
  std::vector<uint32_t>* notes = nullptr;
  std::vector<std::shared_ptr<const void>>* kept = nullptr;
  bool* refused = nullptr;
};
thread_local CaptureState capture_state;

/// Every capture in progress holds it shared; a thread that waits for a whole device holds it
/// exclusively. It is never destroyed, because Gpu::quiesce() may also run when the process ends:
/// tensors over other libraries' memory call it before they give that memory back.
std::shared_mutex& captures_mutex() {
  static auto* const mutex = new std::shared_mutex;
  return *mutex;
}

}  // namespace

Gpu::Gpu(Device which)
    : device(which),
      driver(driver_of(which)),
      info(driver.info(which.index)),
      pool(driver, which, info.bytes, environment_choice("WICK_GPU_POOL") == "exact"),
      staging(driver, which),
      peers(*this),
      code_(which, info) {
  enter();
  constexpr unsigned kNonBlocking = 1;
  check(driver.api.stream_create(&stream_, kNonBlocking), "creating a stream");
  make_fault_line();
  void* zeros = nullptr;
  check(driver.api.mem_alloc(&zeros, kZeros * sizeof(uint32_t)), "allocating memory");
  check(driver.api.set_bytes(zeros, 0, kZeros * sizeof(uint32_t), stream_), "clearing memory");
  zeros_ = static_cast<uint32_t*>(zeros);
}

Gpu::~Gpu() {
  for (const auto& slots : slots_) delete[] slots.load(std::memory_order_relaxed);
  if (!driver.try_enter(device.index)) return;
  driver.api.stream_synchronize(stream_);
  driver.api.mem_free(fault_line_);
  driver.api.mem_free(zeros_);
  driver.api.host_free(fault_);
  for (const auto& [file, module] : modules_) driver.api.module_unload(module.handle);
  driver.api.stream_destroy(stream_);
}

uint32_t Gpu::read_features() const {
  const std::lock_guard lock(mutex_);
  return load_features();
}

uint32_t Gpu::load_features() const {
  const uint32_t word = features_of(code_.image("features"));
  check_waves(word, info.wave);
  features_.store(word, std::memory_order_relaxed);
  return word;
}

Gpu::Module& Gpu::module(std::string_view file) {
  const auto at = modules_.find(file);
  if (at != modules_.end()) return at->second;
  if (features_.load(std::memory_order_relaxed) == kNotRead) load_features();
  const std::string image = code_.image(file);
  Module module;
  const int code = with_room([&] { return driver.api.module_load(&module.handle, image.data()); });
  if (driver.is_refused_image(code)) {
    throw Error(ErrorKind::runtime, device.str(), "the driver refuses a kernel's image",
                fmt::format("{}.gpu for {}: {}", file, code_.architecture(), driver.text(code)),
                fmt::format("driver {} may be too old: install a newer one, or set "
                            "WICK_GPU_IMAGES=off to compile kernels here",
                            driver.version()));
  }
  check(code, fmt::format("loading {}.gpu for {}", file, code_.architecture()));
  ++loaded_;
  return modules_.emplace(file, std::move(module)).first->second;
}

void* Gpu::function(std::string_view file, std::string_view kernel, unsigned shared_bytes) {
  std::lock_guard lock(mutex_);
  Module& in = module(file);
  auto at = in.functions.find(kernel);
  if (at == in.functions.end()) {
    const std::string name(kernel);
    Function function;
    check(driver.api.module_function(&function.handle, in.handle, name.c_str()),
          fmt::format("finding {} in {}.gpu", kernel, file));
    at = in.functions.emplace(name, function).first;
  }
  Function& function = at->second;
  if (shared_bytes > function.allowed_shared_bytes) {
    check(driver.allow_shared(function.handle, static_cast<int>(shared_bytes)),
          fmt::format("asking for {} bytes of shared memory for {}", shared_bytes, kernel));
    function.allowed_shared_bytes = shared_bytes;
  }
  return function.handle;
}

bool Gpu::has_used(std::string_view file, std::string_view kernel) const {
  const std::lock_guard lock(mutex_);
  const auto at = modules_.find(file);
  return at != modules_.end() && at->second.functions.contains(kernel);
}

KernelSlot* Gpu::slots_of(const KernelFamilyBase& family) {
  auto made = std::make_unique<KernelSlot[]>(family.count);
  KernelSlot* slots = nullptr;
  // Another thread may have stored its table first; then that one is used.
  if (slots_[family.number()].compare_exchange_strong(slots, made.get(),
                                                      std::memory_order_acq_rel)) {
    slots = made.release();
  }
  return slots;
}

void* Gpu::resolve(const KernelFamilyBase& family, unsigned index, unsigned shared_bytes,
                   KernelSlot& slot) {
  const KernelName name = family.name(index);
  void* const found = function(name.file, name.kernel, shared_bytes);
  // The limit is stored only after the driver has raised it, and it never decreases, because other
  // threads launch with the limit that they read.
  unsigned allowed = slot.allowed_shared_bytes.load(std::memory_order_relaxed);
  while (allowed < shared_bytes && !slot.allowed_shared_bytes.compare_exchange_weak(
                                       allowed, shared_bytes, std::memory_order_release)) {
  }
  slot.function.store(found, std::memory_order_release);
  return found;
}

void Gpu::launch(const KernelFamilyBase& family, unsigned index, const Grid& grid,
                 const void* args) {
  enter();
  if (index >= family.count) {  // the family's constructor hasn't run
    throw Error(ErrorKind::runtime, "gpu", "a kernel is launched before wick is initialised",
                device.str(), "compute after main() has begun");
  }
  KernelSlot* const slots = slots_[family.number()].load(std::memory_order_acquire);
  KernelSlot& slot = (slots != nullptr ? slots : slots_of(family))[index];
  void* handle = slot.function.load(std::memory_order_acquire);
  if (handle == nullptr ||
      grid.shared_bytes > slot.allowed_shared_bytes.load(std::memory_order_acquire)) {
    handle = resolve(family, index, grid.shared_bytes, slot);
  }
  void* arguments[] = {const_cast<void*>(args)};
  const auto& [x, y, z] = grid.blocks;
  const LaunchWishes wishes{.pdl = grid.pdl && has(Feature::cluster), .cluster = grid.cluster};
  const int code = wishes.pdl || wishes.cluster > 1
                       ? driver.launch_with(wishes, handle, grid.blocks, grid.threads,
                                            grid.shared_bytes, stream(), arguments)
                       : driver.api.launch(handle, x, y, z, grid.threads, 1, 1, grid.shared_bytes,
                                           stream(), arguments, nullptr);
  if (code == 0) return;  // formatting the text would cost a tenth of a launch
  check(code, fmt::format("launching {} ({}x{}x{} blocks of {})", family.name(index).kernel, x, y,
                          z, grid.threads));
}

void Gpu::synchronize() {
  if (captures()) refuse_to_capture("waiting for the device can't be recorded");
  enter();
  check(driver.api.stream_synchronize(stream()), "waiting for the device");
  check_faults();
}

void Gpu::quiesce() const noexcept {
  if (!driver.try_enter(device.index)) return;
  // Waiting for the whole device invalidates the captures of all threads, and drivers may refuse
  // it. While a thread captures, this function therefore waits for one stream only.
  const bool captures_itself = capture_state.gpu != nullptr;
  std::unique_lock alone(captures_mutex(), std::defer_lock);
  const bool may_wait_for_all = !captures_itself && alone.try_lock();
  if (!may_wait_for_all || driver.api.device_synchronize() != 0) {
    driver.api.stream_synchronize(stream_);
  }
}

// ---- Faults ----

void Gpu::make_fault_line() {
  constexpr unsigned kMapped = 2;  // devices may write to it
  void *host = nullptr, *line = nullptr;
  check(driver.api.host_alloc(&host, sizeof(Fault), kMapped), "allocating pinned memory");
  fault_ = static_cast<Fault*>(host);
  *fault_ = {};
  check(driver.api.mem_alloc(&line, sizeof(FaultLine)), "allocating memory");
  fault_line_ = static_cast<FaultLine*>(line);
  const FaultLine empty = {0, fault_};
  staging.upload(fault_line_, &empty, sizeof empty, stream_);
}

uint32_t Gpu::note(std::string_view op, const ConstView& x, const ConstView& ids, int64_t limit) {
  std::lock_guard lock(notes_mutex_);
  if (capture_state.gpu == this) {
    uint32_t at = static_cast<uint32_t>(captured_notes_.size());
    if (free_notes_.empty()) {
      free_notes_.reserve(captured_notes_.size() + 1);  // so that forget_notes needs no memory
      captured_notes_.emplace_back();
    } else {
      at = free_notes_.back();
      free_notes_.pop_back();
    }
    capture_state.notes->push_back(at);
    captured_notes_[at] = {kCaptured + at, op, x, ids, limit};
    return kCaptured + at;
  }
  notes_.resize(kNotes);
  const uint32_t number = next_note_;
  next_note_ = (number + 1) % kCaptured;
  notes_[number % kNotes] = {number, op, x, ids, limit};
  return number;
}

void Gpu::forget_notes(const std::vector<uint32_t>& notes) noexcept {
  std::lock_guard lock(notes_mutex_);
  free_notes_.insert(free_notes_.end(), notes.begin(), notes.end());
}

const Gpu::Note* Gpu::find_note(uint32_t number) const {
  if (number >= kCaptured) return &captured_notes_.at(number - kCaptured);
  const Note& note = notes_.at(number % kNotes);
  return note.number == number ? &note : nullptr;
}

void Gpu::check_faults() {
  if (fault_->kind == kNoFault) return;
  std::lock_guard lock(notes_mutex_);
  const Fault fault = *fault_;
  *fault_ = {};
  check(driver.api.set_bytes(&fault_line_->taken, 0, sizeof fault_line_->taken, stream_),
        "clearing a fault");
  const Note* const found = find_note(fault.note);
  if (found == nullptr) {
    throw Error(ErrorKind::runtime, device.str(), "an op was given what it can't take",
                fmt::format("value {}", fault.value),
                fmt::format("{} others followed: wait more often to see which", kNotes));
  }
  const Note note = *found;
  const auto describe = [&](const ConstView& v) {
    return fmt::format("{}{}@{}", name(v.dtype), v.layout.shape().str(), device.str());
  };
  if (fault.kind == kDividedByZero) {
    throw Error(note.op, "integer division by zero",
                fmt::format("{} / {}", describe(note.x), describe(note.ids)));
  }
  if (fault.kind == kBadLogit) {
    throw fault.value < 0
        ? Error(note.op, "every logit is -inf", describe(note.x))
        : Error(note.op, "bad logit", fmt::format("{}, token {}", describe(note.x), fault.value),
                "need finite numbers or -inf");
  }
  if (fault.kind == kHistoryFull) {
    throw Error(ErrorKind::runtime, note.op, "the history is full", fmt::format("{}", fault.value));
  }
  if (fault.kind == kNotNext) {
    throw Error(ErrorKind::index, note.op, "a position that doesn't follow",
                fmt::format("{}", fault.value));
  }
  if (fault.kind == kPageTwice) {
    throw Error(ErrorKind::index, note.op, "two sequences write to one page",
                fmt::format("{}", fault.value));
  }
  if (fault.kind == kSlotTwice) {
    throw Error(ErrorKind::index, note.op, "two sequences have one slot",
                fmt::format("{}", fault.value));
  }
  throw Error(ErrorKind::index, note.op, "id out of range",
              fmt::format("id {}, x {}, ids {}", fault.value, describe(note.x), describe(note.ids)),
              fmt::format("need 0 <= id < {}", note.limit));
}

// ---- Graphs ----

void* Gpu::stream() const { return capture_state.gpu == this ? capture_state.stream : stream_; }

void Gpu::keep(const std::shared_ptr<const void>& object) const {
  if (capture_state.gpu == this) capture_state.kept->push_back(object);
}

void Gpu::refuse_to_capture_copies() const {
  if (captures()) refuse_to_capture("a copy to or from the host can't be recorded");
}

void Gpu::refuse_to_capture(std::string_view what) const {
  *capture_state.refused = true;
  throw Error(ErrorKind::runtime, "record", what, device.str(), "do it before or afterwards");
}

Gpu::Capture::Capture(Gpu& gpu) : gpu_(gpu), arena_(gpu.pool.make_arena()) {
  if (capture_state.gpu != nullptr) {
    throw Error(ErrorKind::runtime, "record", "this thread is capturing already");
  }
  constexpr unsigned kNonBlocking = 1;
  constexpr int kRelaxed = 2;  // other threads may go on working
  open_captures_ = std::shared_lock(captures_mutex());
  gpu_.enter();
  gpu_.check(gpu_.driver.api.stream_create(&stream_, kNonBlocking), "creating a stream");
  if (const int code = gpu_.driver.api.capture_begin(stream_, kRelaxed)) {
    gpu_.driver.api.stream_destroy(stream_);
    gpu_.check(code, "starting to record");
  }
  open_ = true;
  capture_state = {&gpu_, stream_, &notes_, &kept_, &refused_};
  gpu_.pool.use(arena_);
}

Gpu::Capture::~Capture() {
  capture_state = {};
  gpu_.pool.use(nullptr);
  if (open_) {  // an exception was thrown
    void* graph = nullptr;
    if (gpu_.driver.api.capture_end(stream_, &graph) == 0 && graph != nullptr) {
      gpu_.driver.api.graph_destroy(graph);
    }
  }
  gpu_.driver.api.stream_destroy(stream_);
  gpu_.forget_notes(notes_);  // unless the graph has taken them
}

void* Gpu::Capture::finish() {
  void *graph = nullptr, *exec = nullptr;
  open_ = false;
  gpu_.check(gpu_.driver.api.capture_end(stream_, &graph), "ending a capture");
  const int code =
      gpu_.with_room([&] { return gpu_.driver.api.graph_instantiate(&exec, graph, 0); });
  gpu_.driver.api.graph_destroy(graph);
  gpu_.check(code, "making a graph");
  return exec;
}

}  // namespace wick::gpu
