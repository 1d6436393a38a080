#pragma once

// Vendors' convolution libraries, loaded at run time like their drivers. They are optional: if one
// is missing, or has no algorithm for a convolution, wick's kernels are used.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// A library's words for a status, or its number if there are none.
inline std::string status_text(const char* words, int status) {
  return words == nullptr ? "status " + std::to_string(status) : words;
}
/// Libraries take sizes as int. Larger operands are declined before (convolution_library.cpp).
inline int int_of(int64_t size) { return static_cast<int>(size); }

/// conv2d or one of its gradients, by which operand is the result: y, x or w.
enum class ConvForm : uint8_t { forward, input, weight };

/// An image [b, c, h, w] or filters [o, c / groups, h, w] in device memory.
struct ConvOperand {
  Shape shape;
  void* data = nullptr;  ///< a multiple of 16 bytes; not used for plans
};

/// A convolution y = conv2d(x, w), or one of its gradients. Operands are dense: with
/// `channels_last`, the channels are the innermost dim of images and of filters in memory.
struct ConvCall {
  ConvForm form = ConvForm::forward;
  DType dtype = DType::f32;  ///< f32, f16 or bf16; computed in f32
  bool fast = false;         ///< operands of f32 may be rounded to TF32
  bool channels_last = false;
  int algorithm = 0;  ///< the n-th of the library's algorithms, ordered by their estimated time
  ConvOperand x, w, y;
  ConvParams params;

  const ConvOperand& result() const {
    return form == ConvForm::forward ? y : form == ConvForm::input ? x : w;
  }
};

/// Everything that a ConvCall contains besides addresses and the algorithm.
using ConvKey = std::array<int64_t, 23>;
ConvKey key_of(const ConvCall& call);

/// The strides of a dense operand, in elements.
std::array<int64_t, 4> dense_strides(const Shape& shape, bool channels_last);

/// WICK_GPU_CONV: `own` always uses wick's kernels, `auto` the library where it was measured to be
/// faster, `library` wherever it can compute the convolution.
enum class ConvLibraryUse : uint8_t { own, automatic, library };
/// Errors: the variable has another value.
ConvLibraryUse conv_library_use();

class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  ConvolutionLibrary(const ConvolutionLibrary&) = delete;
  ConvolutionLibrary& operator=(const ConvolutionLibrary&) = delete;

  /// A vendor's library; null if it can't be loaded. The first call loads it.
  static ConvolutionLibrary* of(DeviceKind kind);
  struct Missing {
    std::string name, reason;
  };
  /// The library's name, and why it couldn't be loaded.
  static Missing missing(DeviceKind kind);

  /// For example "MIOpen".
  const std::string name;
  /// The file that was loaded.
  const std::string library;
  /// For example "9.19.0".
  virtual std::string version() const = 0;

  /// Whether the library computes a convolution by this algorithm. Addresses don't matter. The
  /// first call for a shape chooses and compiles the algorithm. While the calling thread captures a
  /// graph, only shapes that were computed before are accepted, because a first run may load
  /// modules. A device that the library can't use is reported once on stderr.
  bool takes(Gpu& gpu, const ConvCall& call);
  /// Launches a convolution on gpu.stream(). The workspace is from the device's pool. Returns false
  /// if the library doesn't take the convolution, or if it fails, which is reported once per device
  /// on stderr; the result may then have any contents. Errors: out of memory.
  bool convolve(Gpu& gpu, const ConvCall& call);
  /// Frees the library's state on a device. Its work must have completed.
  void release(Device device);

  /// The largest workspace of an algorithm.
  static constexpr size_t kMostWorkspace = size_t{256} << 20;
  /// The most algorithms of a shape.
  static constexpr int kMostAlgorithms = 6;

 protected:
  ConvolutionLibrary(DeviceKind kind, std::string what, std::string file)
      : name(std::move(what)), library(std::move(file)), kind_(kind) {}

  /// An algorithm for a shape.
  struct Plan {
    virtual ~Plan() = default;
    size_t workspace_bytes = 0;
    bool has_run = false;
    bool failed = false;
  };
  /// The algorithms for a shape whose errors are within the class of convolutions, and which give
  /// the same bits each time, ordered by their estimated time.
  class Algorithms {
   public:
    virtual ~Algorithms() = default;
    /// Prepares the next one, which may compile it. Null if there is none left.
    virtual std::unique_ptr<Plan> next() = 0;
  };
  /// The library's state on a device.
  class OnDevice {
   public:
    virtual ~OnDevice() = default;
    /// The algorithms for a call's shape. Null if the library doesn't know the shape.
    virtual std::unique_ptr<Algorithms> algorithms(const ConvCall& call) = 0;
    /// Sets the stream of launches. Returns the library's status; 0 is success.
    virtual int set_stream(void* stream) = 0;
    /// Launches a convolution. Returns the library's status.
    virtual int run(const Plan& plan, const ConvCall& call, void* workspace) = 0;
    /// The library's text for a status.
    virtual std::string text(int status) const = 0;
  };
  Driver& driver() const { return *Driver::of(kind_); }

 private:
  /// Prepares a device, which is the calling thread's current one, for launches on its main stream.
  /// Null, with a reason, if the library can't be used on it.
  virtual std::unique_ptr<OnDevice> prepare(const Gpu& gpu, std::string& reason) = 0;

  /// The algorithms of a shape that were asked for, and what prepares the others.
  struct ShapePlans {
    std::unique_ptr<Algorithms> others;  ///< null if there are no others
    std::vector<std::unique_ptr<Plan>> plans;
  };
  struct State {
    std::unique_ptr<OnDevice> library;
    std::map<ConvKey, ShapePlans> shapes;
    bool reported = false;
  };
  State& state_of(const Gpu& gpu);
  /// The plan of a call; null if the library doesn't take it.
  Plan* find_plan(const Gpu& gpu, State& state, const ConvCall& call);

  const DeviceKind kind_;
  std::mutex mutex_;
  std::map<int, State> devices_;
};

/// A library that may be installed. `open` returns null, with a reason in `trace`, if it isn't.
struct KnownConvolutionLibrary {
  const char* name;
  std::unique_ptr<ConvolutionLibrary> (*open)(std::string& trace);
};
KnownConvolutionLibrary cuda_convolution_library();
KnownConvolutionLibrary hip_convolution_library();

}  // namespace wick::gpu
