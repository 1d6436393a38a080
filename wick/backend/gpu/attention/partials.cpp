#include "wick/backend/gpu/attention/partials.h"

#include "wick/backend/gpu/driver/kernel.h"

namespace wick::gpu {
namespace {

const KernelFamily<CombineArgs> kAttentionCombine("attention", "attention_combine");

}  // namespace

void combine(Gpu& gpu, const AttentionCall& c, const Partials& partials) {
  kAttentionCombine().launch(gpu, combine_grid(c), {c, partials.get()});
}

}  // namespace wick::gpu
