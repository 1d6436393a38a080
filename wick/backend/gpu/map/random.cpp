// Random numbers: kernels/map/random.gpu.

#include <array>
#include <string_view>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/map/random_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {
namespace {

enum class Distribution : uint32_t { uniform, normal };
constexpr auto kernel_labels(Distribution) {
  return std::array{std::string_view("uniform"), std::string_view("normal")};
}

const KernelFamily<RandomArgs, Distribution, DType> kRandom("random", "random_{}_{}");
const KernelFamily<RandomScalarArgs, Distribution, DType> kRandomScalar("random",
                                                                        "random_scalar_{}_{}");

/// Numbers from the counter `first` on; parameters are rounded to the compute type A.
template <class A>
Draws draws_of(bool normal, uint64_t seed, uint64_t first, Scalar a, Scalar b) {
  const auto low = static_cast<A>(a.f), high = static_cast<A>(b.f);
  return {seed, first, Number::of(low), Number::of(normal ? high : high - low)};
}

}  // namespace

void GpuBackend::random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a, Scalar b) {
  const bool normal = op == Op::normal;
  const auto distribution = normal ? Distribution::normal : Distribution::uniform;
  Draws draws = out.dtype == DType::f64 ? draws_of<double>(normal, seed, first, a, b)
                                        : draws_of<float>(normal, seed, first, a, b);
  const int64_t numbers = out.dtype == DType::f64 ? 2 : 4;  // of a counter
  const Operand to(out);
  const int64_t vec = 16 / to.bytes;
  const CollapsedDims<1> dims = collapse<1>({&out.layout});
  const auto packed = pack<1>(dims, {to}, vec, false);
  int64_t done = 0;  // vectors or elements, in row-major order
  if (packed.fits) {
    const auto bytes = static_cast<uint32_t>(to.bytes);
    packed.collapsed.for_each_piece([&](const StridedIndex<1>& strided, const auto& at) {
      draws.first = first + static_cast<uint64_t>(done * vec / numbers);
      done += strided.elems;
      const uint32_t rest = done == packed.collapsed.elems ? packed.rest : 0;
      kRandom(distribution, out.dtype)
          .launch(gpu_, spread(gpu_, strided.elems, map_unroll(bytes, bytes)),
                  {to.at(at[0]), strided, rest, draws});
    });
    return;
  }
  dims.for_each_piece([&](const StridedIndex<1>& strided, const auto& at) {
    draws.first = first + static_cast<uint64_t>(done / numbers);
    const int64_t skip = done % numbers;
    done += strided.elems;
    kRandomScalar(distribution, out.dtype)
        .launch(gpu_, spread(gpu_, divide_up(skip + strided.elems, numbers), 1),
                {to.at(at[0]), strided, static_cast<uint32_t>(skip), draws});
  });
}

}  // namespace wick::gpu
