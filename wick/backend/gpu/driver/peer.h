#pragma once

// Copies from other GPUs' memory to a GPU's: by the devices themselves where they can reach each
// other and do it right, else through the host's pinned memory.
//
// Some machines say that their devices reach each other and then lose or mix up what is copied
// (an IOMMU or a PCIe bridge in between). So the first copy of a pair is of a pattern, which is
// read back; a pair that fails is never trusted again.

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
  /// `own`: the GPU that is copied to.
  explicit Peers(Gpu& own);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Copies behind the work that both devices have so far; later work of either waits for it.
  /// Errors: the calling thread records one of them.
  void copy(void* to, Gpu& from_gpu, const void* from, size_t bytes);

  /// How copies from a GPU go; tested if that wasn't done yet.
  struct Way {
    bool direct = false;
    std::string reason;  ///< why they don't go directly
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
  std::mutex mutex_;   // of links_ and what is in them
  std::mutex staged_;  // held at both ends of a copy by way of the host
  std::map<std::pair<DeviceKind, int>, std::unique_ptr<Link>> links_;  // by where from
};

}  // namespace wick::gpu
