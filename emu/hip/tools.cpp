// What profilers and debuggers ask of the runtime, conversions of half-precision numbers that old
// programs link against, and functions under their names of both ABIs.

#include <atomic>
#include <cstring>

#include "emu/hip/api.h"

using namespace emu;
using namespace emu::hip;

namespace {

std::atomic<void*> tracer{nullptr};

}  // namespace

// A tracer's callback is kept, but the emulator doesn't report its calls to it.
EMU_API void hipRegisterTracerCallback(void* callback) { tracer = callback; }

EMU_API const char* hipApiName(uint32_t) { return "unknown"; }

EMU_API const char* hipGetCmdName(unsigned kind) {
  return kind == 0 ? "InternalMarker" : "Unknown command kind";
}

// AMD's runtime contains a header for hiprtc, compiled in advance. The emulator's hiprtc needs
// none.
EMU_API void __hipGetPCH(const char** header, unsigned* bytes) {
  if (header != nullptr) *header = nullptr;
  if (bytes != nullptr) *bytes = 0;
}

EMU_API const char* amd_dbgapi_get_build_name() { return ""; }
EMU_API const char* amd_dbgapi_get_git_hash() { return ""; }
EMU_API size_t amd_dbgapi_get_build_id() { return 0; }

EMU_API unsigned short __gnu_f2h_ieee(float value) {
  const auto half = static_cast<_Float16>(value);
  unsigned short bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

EMU_API float __gnu_h2f_ieee(unsigned short bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return half;
}

EMU_API hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000* properties, int ordinal) {
  return hipGetDeviceProperties(properties, ordinal);
}

EMU_API hipError_t hipChooseDeviceR0000(int* ordinal, const hipDeviceProp_tR0000* wanted) {
  return hipChooseDevice(ordinal, wanted);
}
