// Elementwise functions: kernels/map.h.

#include <fmt/format.h>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/map_ops.h"
#include "wick/backend/gpu/map_space.h"
#include "wick/backend/gpu/scalar.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// The file that has a dtype's kernels.
const std::string& file_of(DType dtype) {
  static const auto files = [] {
    std::array<std::string, kDTypeCount> all;
    for (size_t d = 0; d < all.size(); ++d) {
      const auto one = static_cast<DType>(d);
      all[d] = is_integer(one) ? "map_integers" : fmt::format("map_{}", name(one));
    }
    return all;
  }();
  return files[static_cast<size_t>(dtype)];
}

/// An op's kernel for a dtype. Made once: formatting would be a tenth of what a launch costs.
const std::string& kernel_of(Op op, DType dtype) {
  static const auto kernels = [] {
    std::array<std::array<std::string, kDTypeCount>, static_cast<size_t>(kOpCount)> all;
    for (size_t o = 0; o < all.size(); ++o) {
      for (size_t d = 0; d < all[o].size(); ++d) {
        all[o][d] = fmt::format("{}_{}", name(static_cast<Op>(o)), name(static_cast<DType>(d)));
      }
    }
    return all;
  }();
  return kernels[static_cast<size_t>(op)][static_cast<size_t>(dtype)];
}

UnaryRow unary_row(Op op) {
  switch (op) {
#define WICK_UNARY(name, ...) \
  case Op::name:              \
    return UnaryRow::name;
#include "wick/op/ops.def"
    default:
      throw Error(name(op), "isn't of one operand");
  }
}
BinaryRow binary_row(Op op) {
  switch (op) {
#define WICK_BINARY(name, ...) \
  case Op::name:               \
    return BinaryRow::name;
#include "wick/op/ops.def"
    default:
      throw Error(name(op), "isn't of two operands");
  }
}

void check_dtype(Op op, DType dtype) {
  if (!info(op).dtypes.contains(dtype)) {
    throw Error(name(op), "dtype isn't supported", name(dtype));
  }
}

/// Launches `packs` over packs, with the elements left over, or `singles`: each with the nest and
/// pointers to the operands.
template <uint32_t N, class Packs, class Singles>
void map(const std::array<const Layout*, N>& layouts, const std::array<Operand, N>& operands,
         Gpu& gpu, Packs&& packs, Singles&& singles) {
  const Space<N> space = map_space<N>(layouts);
  if (space.elems == 0) return;
  const auto bytes = static_cast<uint32_t>(operands[0].bytes);
  const auto at = [&](const std::array<int64_t, N>& start) {
    std::array<void*, N> data;
    for (size_t k = 0; k < N; ++k) data[k] = operands[k].at(start[k]);
    return data;
  };
  const auto packed = pack<N>(space, operands, map_pack(bytes, bytes), N > 2);
  if (packed.fits) {
    int64_t done = 0;
    packed.space.for_each_piece([&](const Nest<N>& nest, const std::array<int64_t, N>& start) {
      done += nest.elems;
      const uint32_t rest = done == packed.space.elems ? packed.rest : 0;
      packs(spread(gpu, nest.elems, map_unroll(bytes, bytes)), nest, at(start), rest,
            packed.repeated);
    });
    return;
  }
  for_each_tiled(space, [&](const Space<N>& part) {
    part.for_each_piece([&](const Nest<N>& nest, const std::array<int64_t, N>& start) {
      singles(spread(gpu, nest.elems, kMapEach), nest, at(start));
    });
  });
}

}  // namespace

void GpuBackend::unary(Op op, const View& out, const ConstView& in) {
  check_dtype(op, out.dtype);
  const std::string& file = file_of(out.dtype);
  map<2>(
      {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
      [&](const Grid& grid, const Nest<2>& nest, const auto& data, uint32_t rest, uint32_t) {
        gpu_.launch(file, kernel_of(op, out.dtype), grid, data[0], data[1], nest, rest);
      },
      [&](const Grid& grid, const Nest<2>& nest, const auto& data) {
        gpu_.launch(file, fmt::format("unary_singles_{}", name(out.dtype)), grid, data[0], data[1],
                    nest, unary_row(op));
      });
}

void GpuBackend::binary(Op op, const View& out, const ConstView& a, const ConstView& b) {
  check_dtype(op, out.dtype);
  const std::string& file = file_of(out.dtype);
  struct Divisions {
    FaultLine* line;
    uint64_t note;
  } divisions{gpu_.fault_line(), 0};
  if (op == Op::div && is_integer(out.dtype)) divisions.note = gpu_.note(name(op), a, b, 0);
  map<3>(
      {&out.layout, &a.layout, &b.layout}, {Operand(out), Operand(a), Operand(b)}, gpu_,
      [&](const Grid& grid, const Nest<3>& nest, const auto& data, uint32_t rest,
          uint32_t repeated) {
        gpu_.launch(file, kernel_of(op, out.dtype), grid, data[0], data[1], data[2], nest, rest,
                    repeated, divisions);
      },
      [&](const Grid& grid, const Nest<3>& nest, const auto& data) {
        gpu_.launch(file, fmt::format("binary_singles_{}", name(out.dtype)), grid, data[0], data[1],
                    data[2], nest, binary_row(op), divisions);
      });
}

void GpuBackend::affine(const View& out, const ConstView& in, Scalar mul, Scalar add) {
  const std::string& file = file_of(out.dtype);
  with_compute_type(out.dtype, [&](auto zero) {
    using C = decltype(zero);
    struct Affine {
      C by, plus;
    };
    const Affine f{convert<C>(mul), convert<C>(add)};
    map<2>(
        {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
        [&](const Grid& grid, const Nest<2>& nest, const auto& data, uint32_t rest, uint32_t) {
          gpu_.launch(file, fmt::format("affine_{}", name(out.dtype)), grid, data[0], data[1], nest,
                      rest, f);
        },
        [&](const Grid& grid, const Nest<2>& nest, const auto& data) {
          gpu_.launch(file, fmt::format("affine_singles_{}", name(out.dtype)), grid, data[0],
                      data[1], nest, f);
        });
  });
}

}  // namespace wick::gpu
