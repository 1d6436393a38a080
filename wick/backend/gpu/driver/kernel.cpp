#include "wick/backend/gpu/driver/kernel.h"

#include <fmt/format.h>

#include <cstdlib>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

// Families are constructed before main or while a library is loaded, by one thread at a time.
constinit const KernelFamilyBase* newest = nullptr;
constinit unsigned families = 0;

}  // namespace

KernelFamilyBase::KernelFamilyBase(unsigned kernels, size_t bytes) noexcept
    : count(kernels), argument_bytes(bytes), number_(families++), next_(newest) {
  if (number_ >= kMostFamilies) std::abort();  // raise kMostFamilies
  newest = this;
}

const KernelFamilyBase* KernelFamilyBase::all() { return newest; }

std::string kernel_text(std::string_view pattern, const std::string* labels, size_t count) {
  std::string text;
  size_t next = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{') {
      text += pattern[at];
      continue;
    }
    const bool chosen = pattern[at + 1] != '}';
    const size_t label = chosen ? static_cast<size_t>(pattern[at + 1] - '0') : next++;
    at += chosen ? 2 : 1;
    if (label < count) text += labels[label];
  }
  return text;
}

void fail_no_kernel_for(int64_t number) {
  throw Error(ErrorKind::runtime, "gpu", "no kernel of a family is for this number",
              fmt::format("{}", number));
}

void launch_kernel(Gpu& gpu, const KernelFamilyBase& family, unsigned index, const Grid& grid,
                   const void* args) {
  gpu.launch(family, index, grid, args);
}

}  // namespace wick::gpu
