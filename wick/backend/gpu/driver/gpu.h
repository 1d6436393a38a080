#pragma once

// A GPU in use: its stream, its modules and launches.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wick/backend/gpu/compile/code.h"
#include "wick/backend/gpu/compile/features.h"
#include "wick/backend/gpu/driver/driver.h"
#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/driver/peer.h"
#include "wick/backend/gpu/driver/staging.h"
#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/memory/pool.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// The launch configuration of a kernel.
struct Grid {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = 256;     ///< threads of a thread block
  unsigned shared_bytes = 0;  ///< dynamic shared memory
  bool pdl = false;           ///< programmatic dependent launch, where hardware supports it
  unsigned cluster = 1;       ///< thread blocks of a cluster; more than 1 needs Feature::cluster
};

class Gpu {
 public:
  /// Errors: no driver or no such device, no kernels for its architecture.
  explicit Gpu(Device device);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Device device;
  Driver& driver;
  const GpuInfo info;
  Pool pool;
  Staging staging;
  Peers peers;

  /// The stream that the calling thread's work goes to: the device's main stream, or the stream of
  /// the graph that the thread captures.
  void* stream() const;
  void* main_stream() const { return stream_; }
  /// Whether the calling thread captures this device's work into a graph.
  bool captures() const { return stream() != stream_; }
  /// Errors: the calling thread captures this device's work. A copy to or from the host must not
  /// reach the captured stream, because events of later copies would belong to the capture.
  void refuse_to_capture_copies() const;
  /// Throws, and notes it for the capture.
  [[noreturn]] void refuse_to_capture(std::string_view what) const;
  /// The architecture that the kernels in use were compiled for: "sm_90a", "ptx", "gfx11-generic".
  const std::string& compiled_for() const { return code_.architecture(); }
  /// Whether the kernels in use have a feature, as their image says. Errors: those of function().
  bool has(Feature feature) const {
    const uint32_t known = features_.load(std::memory_order_relaxed);
    return ((known != kNotRead ? known : read_features()) & bit(feature)) != 0;
  }
  /// Number of modules loaded so far.
  int modules_loaded() const { return loaded_; }
  /// The source of the kernels' code.
  const Code& code() const { return code_; }

  /// Makes this device the calling thread's current one.
  void enter() const { driver.enter(device.index); }
  /// Throws for a code that isn't 0; `what` names the attempted call: see Driver::check.
  void check(int code, std::string_view what) const { driver.check(code, device.index, what); }

  /// Calls a driver function that allocates memory itself. If memory is short, the pool's cached
  /// blocks are freed and the call is repeated.
  template <class F>
  int with_room(const F& call) {
    const int code = call();
    if (!driver.is_out_of_memory(code)) return code;
    pool.trim();
    return call();
  }

  /// A kernel of a file in kernels/, such as ("map_f32", "silu_f32"). The first use loads its
  /// module. The kernel may then be launched with `shared_bytes` of dynamic shared memory. Launches
  /// by Kernel call this once for each kernel.
  void* function(std::string_view file, std::string_view kernel, unsigned shared_bytes = 0);
  /// Whether function() has returned this kernel. Tests find out in this way which kernels ran.
  bool has_used(std::string_view file, std::string_view kernel) const;
  /// Launches kernel `index` of a family on stream(); `args` is the address of its argument struct.
  /// Kernel::launch calls it.
  void launch(const KernelFamilyBase& family, unsigned index, const Grid& grid, const void* args);
  /// Waits for the device's work. Errors: those of check_faults.
  void synchronize();
  /// Waits until all streams of the device are idle; while any thread captures a graph, only until
  /// the main stream is. See Backend::quiesce.
  void quiesce() const noexcept;

  /// For kernels that check their inputs: where they report faults, and a number by which an error
  /// finds the op and its operands.
  FaultLine* fault_line() const { return fault_line_; }
  uint32_t note(std::string_view op, const ConstView& x, const ConstView& ids, int64_t limit);
  /// kZeros zeros in device memory: arrival counters of thread blocks. Kernels reset them to zero.
  uint32_t* zeros() const { return zeros_; }
  static constexpr int64_t kZeros = 1 << 16;
  /// Whether a fault has reached the host so far.
  bool has_fault() const { return static_cast<const volatile Fault*>(fault_)->kind != kNoFault; }
  /// Throws for a fault that a kernel has reported. The work must have completed.
  void check_faults();

  /// While an object of this class lives, the calling thread's work on this device is captured into
  /// a graph instead of run.
  class Capture {
   public:
    explicit Capture(Gpu& gpu);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    /// Whether the work tried to wait for the device, or to copy to or from the host.
    bool refused() const { return refused_; }
    /// Ends the capture. The caller owns the result and frees it by graph_exec_destroy.
    void* finish();
    const std::shared_ptr<Pool::Arena>& arena() const { return arena_; }
    /// The notes of the captured kernels. The caller keeps them while the graph may run, then calls
    /// forget_notes.
    std::vector<uint32_t> take_notes() { return std::exchange(notes_, {}); }
    /// The objects that keep() was given. The caller keeps them as long as the graph.
    std::vector<std::shared_ptr<const void>> take_kept() { return std::exchange(kept_, {}); }

   private:
    Gpu& gpu_;
    void* stream_ = nullptr;
    std::shared_ptr<Pool::Arena> arena_;
    std::vector<uint32_t> notes_;
    std::vector<std::shared_ptr<const void>> kept_;
    std::shared_lock<std::shared_mutex> open_captures_;  ///< no thread waits for a whole device
    bool open_ = false, refused_ = false;
  };
  /// Keeps an object alive as long as the graph that the calling thread is capturing. Does nothing
  /// if the thread isn't capturing this device's work.
  void keep(const std::shared_ptr<const void>& object) const;
  /// Frees the notes of a graph that isn't replayed any more.
  void forget_notes(const std::vector<uint32_t>& notes) noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <class T>
  using ByName = std::unordered_map<std::string, T, Hash, std::equal_to<>>;
  struct Function {
    void* handle = nullptr;
    unsigned allowed_shared_bytes = 0;  // beyond the default
  };
  struct Module {
    void* handle = nullptr;
    ByName<Function> functions;
  };

  /// Finds a kernel's function and allows it `shared_bytes` of dynamic shared memory.
  void* resolve(const KernelFamilyBase& family, unsigned index, unsigned shared_bytes,
                KernelSlot& slot);
  Module& module(std::string_view file);

  /// What an error message needs to describe a kernel's fault.
  struct Note {
    uint32_t number = 0;
    std::string_view op;
    ConstView x, ids;
    int64_t limit = 0;
  };
  static constexpr uint32_t kNotes = 1024, kCaptured = uint32_t{1} << 31;

  void make_fault_line();
  /// The note with this number; null if newer notes have replaced it.
  const Note* find_note(uint32_t number) const;

  mutable Code code_;  // unpacks or compiles images on request
  static constexpr uint32_t kNotRead = ~0u;
  uint32_t read_features() const;
  /// Reads and checks the feature word; the caller holds the lock.
  uint32_t load_features() const;
  // Read on first use, because images are still being unpacked when the Gpu is made.
  mutable std::atomic<uint32_t> features_ = kNotRead;
  void* stream_ = nullptr;
  mutable std::mutex mutex_;
  int loaded_ = 0;
  ByName<Module> modules_;
  /// The slots of a family's kernels, made at the family's first launch.
  KernelSlot* slots_of(const KernelFamilyBase& family);
  std::array<std::atomic<KernelSlot*>, KernelFamilyBase::kMostFamilies> slots_{};

  FaultLine* fault_line_ = nullptr;  // on the device
  Fault* fault_ = nullptr;           // on the host
  uint32_t* zeros_ = nullptr;
  std::mutex notes_mutex_;
  std::vector<Note> notes_;           // the newest notes, a ring buffer
  std::vector<Note> captured_notes_;  // notes of graphs, which may be replayed at any time
  std::vector<uint32_t> free_notes_;  // unused indices of captured_notes_
  uint32_t next_note_ = 0;            // below kCaptured
};

}  // namespace wick::gpu
