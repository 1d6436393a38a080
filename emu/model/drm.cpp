// What ROCr asks of libdrm.so.2 and libdrm_amdgpu.so.1, for GPUs of a topology folder: their
// identity. Buffers of other processes and drivers don't exist, so functions of buffers give
// ENOTSUP. The names and layouts are facts of libdrm's interface (amdgpu.h).

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emu/model/topology.h"

namespace {

constexpr int kFirstRenderMinor = 128;
constexpr int kDescriptor = 1 << 20;  // beyond descriptors that the process can have

struct Device {
  emu::model::GpuNode node;
  std::string name;
};

/// The beginning of struct amdgpu_gpu_info, whose size depends on the version of libdrm.
struct GpuInfo {
  uint32_t device_id, revision, external_revision, family;
  uint32_t others[60];
};

}  // namespace

#define WICK_EXPORT extern "C" __attribute__((visibility("default")))

WICK_EXPORT int drmOpenRender(int minor) { return kDescriptor + minor - kFirstRenderMinor; }
WICK_EXPORT int drmClose(int) { return 0; }
WICK_EXPORT int drmCommandWriteRead(int, unsigned long, void*, unsigned long) { return -ENOTSUP; }

WICK_EXPORT int amdgpu_device_initialize(int descriptor, uint32_t* major, uint32_t* minor,
                                         void** device) {
  const char* folder = std::getenv("HSA_MODEL_TOPOLOGY");
  const auto node = emu::model::gpu_node(folder == nullptr ? "" : folder, descriptor - kDescriptor);
  if (!node) return -ENODEV;
  *major = 3;
  *minor = 60;
  *device = new Device{*node, node->product.empty() ? node->architecture : node->product};
  return 0;
}

WICK_EXPORT int amdgpu_device_deinitialize(void* device) {
  delete static_cast<Device*>(device);
  return 0;
}

WICK_EXPORT const char* amdgpu_get_marketing_name(void* device) {
  return static_cast<Device*>(device)->name.c_str();
}

WICK_EXPORT int amdgpu_query_gpu_info(void* device, GpuInfo* info) {
  const emu::model::GpuNode& node = static_cast<Device*>(device)->node;
  *info = GpuInfo{node.device_id, 0, 0, node.family, {}};
  return 0;
}

WICK_EXPORT int amdgpu_bo_cpu_map() { return -ENOTSUP; }
WICK_EXPORT int amdgpu_bo_export() { return -ENOTSUP; }
WICK_EXPORT int amdgpu_bo_free() { return -ENOTSUP; }
WICK_EXPORT int amdgpu_bo_import() { return -ENOTSUP; }
WICK_EXPORT int amdgpu_bo_query_info() { return -ENOTSUP; }
WICK_EXPORT int amdgpu_bo_set_metadata() { return -ENOTSUP; }
WICK_EXPORT int amdgpu_bo_va_op() { return -ENOTSUP; }
