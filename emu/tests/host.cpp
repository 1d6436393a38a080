// The host side of the corpus: runs the work-items of a workgroup as fibers.

#include <dlfcn.h>
#include <ucontext.h>

#include <bit>
#include <cstring>
#include <stdexcept>

#include "emu/tests/kernels.h"

namespace {

constexpr size_t kStack = 128 * 1024;

/// One workgroup runs at a time. Its work-items run in order, each up to the next barrier.
struct Group {
  std::vector<ucontext_t> contexts;
  std::vector<char> stacks;
  std::vector<bool> done;
  ucontext_t scheduler;
  unsigned item = 0, group = 0, items = 0, lanes = 32;
  std::vector<unsigned> values;
  std::vector<char> lds;
  void (*kernel)(const void*, void*, unsigned) = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  unsigned n = 0;
};

Group g;

void run_item() {
  g.kernel(g.in, g.out, g.n);
  g.done[g.item] = true;
  swapcontext(&g.contexts[g.item], &g.scheduler);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT unsigned emu_item() { return g.item; }
EXPORT unsigned emu_group() { return g.group; }
EXPORT unsigned emu_items() { return g.items; }
EXPORT unsigned emu_lanes() { return g.lanes; }
// The scheduler runs every work-item to its next barrier before it starts again with the first.
EXPORT void emu_barrier() { swapcontext(&g.contexts[g.item], &g.scheduler); }
EXPORT const unsigned* emu_exchange(unsigned value) {
  emu_barrier();
  g.values[g.item] = value;
  emu_barrier();
  return g.values.data();
}
EXPORT void* emu_lds() { return g.lds.data(); }

/// Compiled code calls this function to round to bf16, to nearest even. Some support libraries lack
/// it.
EXPORT __bf16 __truncsfbf2(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  bits = nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<__bf16>(static_cast<uint16_t>(bits >> 16));
}

namespace emu::test {

HostLibrary::HostLibrary(const std::string& path)
    : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw std::runtime_error(dlerror());
}

HostLibrary::~HostLibrary() { dlclose(handle_); }

std::vector<KernelOutput> HostLibrary::run(const std::string& kernel, const Problem& problem,
                                           const std::vector<KernelInput>& inputs, uint32_t lanes) {
  std::vector<KernelOutput> outputs(problem.groups * problem.block);
  void* symbol = dlsym(handle_, kernel.c_str());
  if (symbol == nullptr) throw std::runtime_error("no kernel " + kernel);
  if (void* flags = dlsym(handle_, "g_flags")) std::memset(flags, 0, 64 * 4);
  g.kernel = reinterpret_cast<void (*)(const void*, void*, unsigned)>(symbol);
  g.in = inputs.data();
  g.out = outputs.data();
  g.n = static_cast<unsigned>(outputs.size());
  g.items = problem.block;
  g.lanes = lanes;
  g.values.resize(problem.block);
  g.lds.assign(65536, 0);
  g.contexts.resize(problem.block);
  g.stacks.resize(problem.block * kStack);
  for (g.group = 0; g.group < problem.groups; ++g.group) {
    g.done.assign(problem.block, false);
    for (unsigned i = 0; i < problem.block; ++i) {
      getcontext(&g.contexts[i]);
      g.contexts[i].uc_stack.ss_sp = &g.stacks[i * kStack];
      g.contexts[i].uc_stack.ss_size = kStack;
      g.contexts[i].uc_link = nullptr;
      makecontext(&g.contexts[i], &run_item, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (unsigned i = 0; i < problem.block; ++i) {
        if (g.done[i]) continue;
        any = true;
        g.item = i;
        swapcontext(&g.scheduler, &g.contexts[i]);
      }
    }
  }
  return outputs;
}

}  // namespace emu::test
