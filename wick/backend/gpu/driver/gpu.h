#pragma once

// One GPU in use: its stream, its modules, and launches.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
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

/// How a kernel is spread over the device.
struct Grid {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = 256;     ///< of a thread block
  unsigned shared_bytes = 0;  ///< dynamic
  bool pdl = false;           ///< may start before the one in front has ended, where kernels wait
  unsigned cluster =
      1;  ///< neighbouring thread blocks that are parts of one: where it has(Feature::parts)
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

  /// The stream that the calling thread's work goes to: the device's one, or that of the graph
  /// it is making.
  void* stream() const;
  void* main_stream() const { return stream_; }
  /// Whether the calling thread makes a graph of this device's work.
  bool captures() const { return stream() != stream_; }
  /// Errors: the calling thread records this device's work. A copy to or from the host must not
  /// reach the stream that is captured: events of later copies would belong to the capture.
  void refuse_to_capture_copies() const;
  /// What the kernels in use were compiled for: "sm_90a", "ptx", "gfx11-generic".
  const std::string& compiled_for() const { return code_.architecture(); }
  /// Whether they can do something, as their image says. Errors: those of function().
  bool has(Feature feature) const {
    const uint32_t known = features_.load(std::memory_order_relaxed);
    return ((known != kNotRead ? known : read_features()) & bit(feature)) != 0;
  }
  /// How many modules were loaded so far.
  int modules_loaded() const { return loaded_; }
  /// Where their code comes from.
  const Code& code() const { return code_; }

  /// Makes this the calling thread's device.
  void enter() const { driver.enter(device.index); }
  /// Throws for a code that isn't 0; `what` was attempted: see Driver.
  void check(int code, std::string_view what) const { driver.check(code, device.index, what); }

  /// A kernel of a file in kernels/, e.g. ("map_f32", "silu_f32"). Its module is loaded at the
  /// first use. It may then be launched with so many bytes of dynamic shared memory. Launches find
  /// it by Kernel, which looks it up here once.
  void* function(std::string_view file, std::string_view kernel, unsigned shared_bytes = 0);
  /// Launches kernel `index` of a family on the stream, as Kernel::launch does.
  void launch(const KernelFamilyBase& family, unsigned index, const Grid& grid, const void* args);
  /// Waits for the device's work. Errors: what went wrong in it, see check_faults.
  void synchronize();
  /// Waits until the device does nothing, whoever gave it work; see Backend::quiesce.
  void quiesce() const noexcept;

  /// For kernels that look at what they are given: where they report, and a number by which an
  /// error finds the op and its operands.
  FaultLine* fault_line() const { return fault_line_; }
  uint32_t note(std::string_view op, const ConstView& x, const ConstView& ids, int64_t limit);
  /// Zeros in the device's memory, kZeros of them: thread blocks count each other in there and
  /// leave zeros behind.
  uint32_t* zeros() const { return zeros_; }
  static constexpr int64_t kZeros = 1 << 16;
  /// Whether a kernel has reported a fault, as far as one sees from here.
  bool has_fault() const { return static_cast<const volatile Fault*>(fault_)->kind != kNoFault; }
  /// Throws for a fault that a kernel has reported. The work up to there must have ended.
  void check_faults();

  /// While it lives, what the thread gives to this device is recorded, not done.
  class Capture {
   public:
    explicit Capture(Gpu& gpu);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    /// Ends the graph. The result belongs to the caller: graph_exec_destroy.
    void* finish();
    const std::shared_ptr<Pool::Arena>& arena() const { return arena_; }
    /// The notes of its kernels, to be kept as long as they may run: forget_notes.
    std::vector<uint32_t> take_notes() { return std::exchange(notes_, {}); }

   private:
    Gpu& gpu_;
    void* stream_ = nullptr;
    std::shared_ptr<Pool::Arena> arena_;
    std::vector<uint32_t> notes_;
    bool open_ = false;
  };
  /// Notes of a graph that won't be replayed any more.
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
    unsigned allowed_shared_bytes = 0;  // beside what is its own
  };
  struct Module {
    void* handle = nullptr;
    ByName<Function> functions;
  };

  /// Does what takes memory behind the pool's back: cached blocks make room where there is none.
  template <class F>
  int with_room(const F& call) {
    const int code = call();
    if (!driver.is_out_of_memory(code)) return code;
    pool.trim();
    return call();
  }
  /// Finds a kernel's function and lets it have the dynamic shared memory of a launch.
  void* resolve(const KernelFamilyBase& family, unsigned index, unsigned shared_bytes,
                KernelSlot& slot);
  Module& module(std::string_view file);

  /// What a kernel's fault is told with.
  struct Note {
    uint32_t number = 0;
    std::string_view op;
    ConstView x, ids;
    int64_t limit = 0;
  };
  static constexpr uint32_t kNotes = 1024, kCaptured = uint32_t{1} << 31;

  void make_fault_line();
  /// The note of that number; null where newer ones have taken its place.
  const Note* find_note(uint32_t number) const;

  mutable Code code_;  // unpacks and compiles what it is asked for
  static constexpr uint32_t kNotRead = ~0u;
  uint32_t read_features() const;
  mutable std::atomic<uint32_t> features_ =
      kNotRead;  // read when asked for: images are being unpacked
  void* stream_ = nullptr;
  mutable std::mutex mutex_;
  int loaded_ = 0;
  ByName<Module> modules_;
  std::unique_ptr<KernelSlot[]> slots_;  // of every family's kernels

  FaultLine* fault_line_ = nullptr;  // on the device
  Fault* fault_ = nullptr;           // on the host
  uint32_t* zeros_ = nullptr;
  std::mutex notes_mutex_;
  std::vector<Note> notes_;           // the newest, in a ring
  std::vector<Note> captured_notes_;  // of graphs, which may be replayed at any time
  std::vector<uint32_t> free_notes_;  // of those: numbers to be used again
  uint32_t next_note_ = 0;            // below kCaptured
};

}  // namespace wick::gpu
