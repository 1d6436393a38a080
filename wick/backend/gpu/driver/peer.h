#pragma once

// Copies between GPUs: directly where the devices reach each other and copy correctly, otherwise
// through the host's pinned memory.
//
// Some machines report that their devices reach each other, and then lose or corrupt copied data
// (because of an IOMMU or a PCIe bridge in between). So the first copy of each pair of devices is a
// test pattern, which is read back. A pair that fails is never used directly.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "wick/base/device.h"

namespace wick::gpu {

class Gpu;

class Peers {
 public:
  /// `own`: the destination GPU.
  explicit Peers(Gpu& own);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Copies after the work that both devices have so far; their later work waits for the copy.
  /// Errors: the calling thread captures work of one of them.
  void copy(void* to, Gpu& from_gpu, const void* from, size_t bytes);

  /// How copies from a GPU are made. The first call tests the pair.
  struct Way {
    bool direct = false;
    std::string reason;  ///< why copies aren't direct
  };
  Way way(Gpu& from_gpu);

 private:
  struct Link;

  Link& link(Gpu& from_gpu);
  Way test(Link& link, Gpu& from_gpu);
  bool copies_right(Link& link, Gpu& from_gpu);
  void copy_directly(Link& link, void* to, Gpu& from_gpu, const void* from, size_t bytes);
  void copy_staged(void* to, Gpu& from_gpu, const void* from, size_t bytes);

  Gpu& own_;
  std::mutex mutex_;   // guards links_ and its elements
  std::mutex staged_;  // held at both ends of a staged copy
  std::map<std::pair<DeviceKind, int>, std::unique_ptr<Link>> links_;  // by source device
};

}  // namespace wick::gpu
