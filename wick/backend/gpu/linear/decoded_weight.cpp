#include "wick/backend/gpu/linear/decoded_weight.h"

#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {
namespace {

const KernelFamily<DecodedArgs, DType> kDecodedFew("decoded", "decoded_few_{}");
const KernelFamily<DecodedArgs, DType> kDecodedMany("decoded", "decoded_many_{}");
const KernelFamily<GroupedDecodedArgs, DType> kDecodedGrouped("decoded", "decoded_grouped_{}");

struct DecodedWeight final : PreparedWeight {
  DecodedWeight(Gpu& gpu, size_t size) : memory(gpu, size) {}
  Scratch memory;
};

}  // namespace

std::unique_ptr<PreparedWeight> prepare_decoded(GpuBackend& backend,
                                                std::span<const ConstView> parts) {
  const DType dtype = parts.front().dtype;
  const int64_t k = parts.front().layout.shape()[1], row_bytes = bytes_of(dtype, k);
  int64_t n = 0;
  for (const ConstView& part : parts) n += part.layout.shape()[0];
  const auto bytes = static_cast<size_t>(n * row_bytes);
  backend.gpu().enter();
  // + 1: the size may be 0.
  auto weight = std::make_unique<DecodedWeight>(backend.gpu(), bytes + 1);
  weight->dtype = dtype;
  weight->n = n;
  weight->k = k;
  weight->bytes = bytes;
  auto* to = weight->memory.data<char>();
  for (const ConstView& part : parts) {
    const Layout& rows = part.layout;
    const Shape shape{rows.shape()[0], row_bytes};
    const Layout in_bytes(shape, {bytes_of(dtype, rows.stride(0)), 1},
                          bytes_of(dtype, rows.offset()));
    backend.copy({to, DType::u8, Layout::contiguous(shape)}, {part.data, DType::u8, in_bytes});
    to += shape.elems();
  }
  // A prepared weight is complete before any kernel that uses it starts.
  backend.gpu().synchronize();
  return weight;
}

void linear_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                    const ConstView* residual) {
  if (out.layout.elems() == 0) return;
  const auto& w = static_cast<const DecodedWeight&>(weight);
  const int64_t columns = out.layout.elems() / w.n;
  // Tiles are faster if there are more columns than a thread block of decoded_few takes.
  const bool few = columns <= int64_t{kDecodedFewColumns};
  const auto thread_blocks = [](int64_t all, uint32_t each) {
    return static_cast<unsigned>(divide_up(all, int64_t{each}));
  };
  Grid grid;
  grid.threads = kDecodedThreads;
  grid.pdl = true;
  grid.blocks[0] = thread_blocks(w.n, few ? kDecodedFewRows : kDecodedSide);
  grid.blocks[1] = thread_blocks(columns, few ? kDecodedFewColumns : kDecodedSide);
  (few ? kDecodedFew : kDecodedMany)(w.dtype).launch(
      gpu, grid,
      {linear_out(out, residual), w.memory.data(),
       static_cast<const float*>(x.data) + x.layout.offset(), static_cast<uint32_t>(w.n),
       static_cast<uint32_t>(w.k), static_cast<uint32_t>(columns)});
}

const void* decoded_weight_data(const PreparedWeight& weight) {
  return static_cast<const DecodedWeight&>(weight).memory.data();
}

void grouped_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                     const ExpertLaunches& launches) {
  const View rows{
      out.data, out.dtype,
      Layout::contiguous({out.layout.elems() / weight.n, weight.n}, out.layout.offset())};
  const LinearOut to = linear_out(rows, nullptr);
  launches.for_each([&](const Experts& experts, unsigned pairs) {
    Grid grid{{static_cast<unsigned>(divide_up(weight.n, int64_t{kDecodedFewRows})), pairs, 1}};
    grid.threads = kDecodedThreads;
    grid.pdl = true;
    kDecodedGrouped(weight.dtype)
        .launch(gpu, grid,
                {to, experts, static_cast<const float*>(x.data) + x.layout.offset(),
                 static_cast<uint32_t>(weight.n), static_cast<uint32_t>(weight.k)});
  });
}

}  // namespace wick::gpu
