// What the rest of the library calls in builds without backends for GPUs (WICK_GPU=OFF): there are
// no drivers, compilers and libraries.

#include "wick/backend/gpu/attention/attention.h"
#include "wick/backend/gpu/compile/code.h"
#include "wick/backend/gpu/compile/compiler.h"
#include "wick/backend/gpu/compile/images.h"
#include "wick/backend/gpu/driver/driver.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/gpu/linear/prepared_size.h"
#include "wick/backend/gpu/spatial/convolution_library.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

constexpr const char* kAbsent = "wick was built without backends for GPUs";

}  // namespace

GpuBackend& backend_of(Device device) {
  throw Error(ErrorKind::runtime, "device", "no such device here", device.str(), kAbsent);
}

Driver* Driver::of(DeviceKind) { return nullptr; }
std::string Driver::missing(DeviceKind) { return kAbsent; }
// The class's type information, which UBSan reads, is compiled with these. There is no driver to
// call.
int Driver::launch_with(const LaunchWishes&, void*, const unsigned (&)[3], unsigned, unsigned,
                        void*, void**) const {
  throw Error(ErrorKind::runtime, "launch", kAbsent);
}
bool Driver::make_copy_map(CopyMap&, const CopyBoxes&) const { return false; }

AttentionStaging attention_staging = AttentionStaging::where_copies_run_alone;

const Compiler* Compiler::of(DeviceKind) { return nullptr; }
std::string Compiler::missing(DeviceKind) { return kAbsent; }

size_t prepared_size(DeviceKind, DType, int64_t, int64_t) {
  throw Error(ErrorKind::runtime, "device", "no such device here", {}, kAbsent);
}

const std::vector<std::unique_ptr<MatrixLibrary>>& MatrixLibrary::of(DeviceKind) {
  static const auto* const none = new std::vector<std::unique_ptr<MatrixLibrary>>;
  return *none;
}
const std::vector<MatrixLibrary::Missing>& MatrixLibrary::missing(DeviceKind) {
  static const std::vector<Missing> none;
  return none;
}

ConvolutionLibrary* ConvolutionLibrary::of(DeviceKind) { return nullptr; }
ConvolutionLibrary::Missing ConvolutionLibrary::missing(DeviceKind) { return {}; }

bool images_allowed() { return false; }
bool has_images(std::string_view, std::string&) { return false; }

}  // namespace wick::gpu
