// ROCm SMI for a machine whose GPUs have no sensors: rocblas-bench, hipblaslt-bench and RCCL don't start without this
// library, and AMD's own looks for the driver. Functions that read a sensor say that it isn't supported.

#include <stdint.h>
#include <stdlib.h>

enum { kDone = 0, kBadArgument = 1, kNotSupported = 2 };

static uint32_t devices(void) {
  const char* count = getenv("WICK_EMU_SMI_DEVICES");
  return count == NULL ? 1 : (uint32_t)atoi(count);
}

struct Version {
  uint32_t major, minor, patch;
  const char* build;
};

int rsmi_init(uint64_t flags) { return flags == 0 ? kDone : kNotSupported; }
int rsmi_shut_down(void) { return kDone; }

int rsmi_num_monitor_devices(uint32_t* count) {
  *count = devices();
  return kDone;
}

// The emulator's device n is at bus n + 1.
int rsmi_dev_pci_id_get(uint32_t device, uint64_t* id) {
  if (device >= devices()) return kBadArgument;
  *id = (uint64_t)(device + 1) << 8;
  return kDone;
}

int rsmi_version_get(struct Version* version) {
  *version = (struct Version){7, 0, 0, "none"};
  return kDone;
}

int rsmi_status_string(int status, const char** text) {
  *text = status == kDone ? "done" : status == kBadArgument ? "bad argument" : "not supported";
  return kDone;
}

// Links between devices: one hop of PCIe.
int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t* hops, int* type) {
  if (from >= devices() || to >= devices()) return kBadArgument;
  *hops = 1;
  *type = 1;
  return kDone;
}

int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t* weight) {
  if (from >= devices() || to >= devices()) return kBadArgument;
  *weight = 40;
  return kDone;
}

#define NOT_SUPPORTED(name) int name(void) { return kNotSupported; }
NOT_SUPPORTED(rsmi_dev_gpu_clk_freq_get)
NOT_SUPPORTED(rsmi_dev_gpu_metrics_info_get)
NOT_SUPPORTED(rsmi_dev_metrics_xcd_counter_get)
NOT_SUPPORTED(rsmi_minmax_bandwidth_get)
