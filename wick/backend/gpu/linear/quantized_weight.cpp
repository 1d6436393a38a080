#include "wick/backend/gpu/linear/quantized_weight.h"

#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

const KernelFamily<RepackArgs, DType> kRepack("repack", "repack_{}");

}  // namespace

size_t quantized_bytes(DeviceKind kind, DType dtype, int64_t n, int64_t k) {
  const size_t row_group = size_t{unit_bytes(unit_format(dtype).unit, kind == DeviceKind::hip)} *
                           static_cast<size_t>(divide_up(k, int64_t{kChunkBlocks} * 32));
  return row_group * static_cast<size_t>(divide_up(n, int64_t{kUnitRows}));
}

std::unique_ptr<PreparedWeight> prepare_quantized(Gpu& gpu, std::span<const ConstView> parts) {
  const DType dtype = parts.front().dtype;
  const UnitPieces unit = unit_format(dtype).unit;
  const uint32_t pieces = unit.quants + unit.scales;
  gpu.enter();
  auto weight = std::make_unique<QuantizedWeight>(gpu);
  weight->dtype = dtype;
  weight->k = parts.front().layout.shape()[1];
  for (const ConstView& part : parts) weight->n += part.layout.shape()[0];
  const uint32_t chunks = weight->chunks();
  const size_t row_group_bytes =
      size_t{unit_bytes(unit, gpu.device.kind == DeviceKind::hip)} * chunks;
  weight->bytes = quantized_bytes(gpu.device.kind, dtype, weight->n, weight->k);
  weight->units = gpu.pool.take(weight->bytes);
  auto* const units = static_cast<char*>(weight->units);
  if (weight->n % kUnitRows != 0 && row_group_bytes != 0) {
    // Rows past the last are zeros; exponents are those of ordinary scales.
    const uint8_t fill = unit_format(dtype).exponents ? kPaddingExponent : 0;
    gpu.check(gpu.driver.api.set_bytes(units + weight->bytes - row_group_bytes, fill,
                                       row_group_bytes, gpu.stream()),
              "clearing memory");
  }

  uint32_t first = 0;
  for (const ConstView& part : parts) {
    const auto rows = static_cast<uint32_t>(part.layout.shape()[0]);
    if (rows == 0 || chunks == 0) continue;
    const uint64_t row_groups = (first + rows - 1) / kUnitRows - first / kUnitRows + 1;
    const uint64_t threads = row_groups * chunks * kUnitRows * pieces;
    const Grid grid{
        .blocks = {static_cast<unsigned>((threads + kRepackThreads - 1) / kRepackThreads), 1, 1},
        .threads = kRepackThreads};
    const auto* in = static_cast<const char*>(part.data) + bytes_of(dtype, part.layout.offset());
    kRepack(dtype).launch(gpu, grid,
                          {weight->units, in, first, rows, chunks, weight->blocks(),
                           bytes_of(dtype, part.layout.stride(0))});
    first += rows;
  }
  gpu.synchronize();  // with PDL, kernels read weights before they wait for previous kernels
  return weight;
}

}  // namespace wick::gpu
