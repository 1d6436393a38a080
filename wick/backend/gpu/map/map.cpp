// Elementwise functions: kernels/map/map.h, where.gpu.

#include <fmt/format.h>

#include <limits>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/map/map_ops.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/map/scalar.h"
#include "wick/base/error.h"
#include "wick/math/arithmetic.h"

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

/// A row's number among those of its kind.
template <class Row>
Row row_of(Op op);
#define WICK_ROW_CASE(Row, name) \
  case Op::name:                 \
    return Row::name;
template <>
UnaryRow row_of(Op op) {
  switch (op) {
#define WICK_UNARY(name, ...) WICK_ROW_CASE(UnaryRow, name)
#include "wick/op/ops.def"
    default:
      throw Error(name(op), "isn't of one operand");
  }
}
template <>
UnaryWithRow row_of(Op op) {
  switch (op) {
#define WICK_UNARY_WITH(name, ...) WICK_ROW_CASE(UnaryWithRow, name)
#include "wick/op/ops.def"
    default:
      throw Error(name(op), "isn't of one operand and numbers");
  }
}
template <>
TestRow row_of(Op op) {
  switch (op) {
#define WICK_TEST(name, ...) WICK_ROW_CASE(TestRow, name)
#include "wick/op/ops.def"
    default:
      throw Error(name(op), "isn't a test");
  }
}
template <>
BinaryRow row_of(Op op) {
  switch (op) {
#define WICK_BINARY(name, ...) WICK_ROW_CASE(BinaryRow, name)
#include "wick/op/ops.def"
    default:
      throw Error(name(op), "isn't of two operands");
  }
}
/// Whether a row has kernels over packs.
bool has_packs(Op op) {
  switch (op) {
#define WICK_RARE_ROW false
#define WICK_HAS_PACKS(name) \
  case Op::name:             \
    return WICK_IF_RARE(name, true);
#define WICK_UNARY(name, ...) WICK_HAS_PACKS(name)
#define WICK_UNARY_WITH(name, ...) WICK_HAS_PACKS(name)
#define WICK_BINARY(name, ...) WICK_HAS_PACKS(name)
#include "wick/op/ops.def"
#undef WICK_RARE_ROW
    default:
      return true;
  }
}

/// What a row of comparisons says of every pair, as its function does.
Truth truth_of(Op op) {
  Truth truth;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (double a : {-1.0, 0.0, 1.0, 2.0, kNan}) {
    for (double b : {-1.0, 0.0, 1.0, 2.0, kNan}) {
      const auto holds = [&] {
        switch (op) {
#define WICK_COMPARE(name, ...) \
  case Op::name:                \
    return math::name(a, b);
#include "wick/op/ops.def"
          default:
            throw Error(name(op), "isn't a comparison");
        }
      };
      if (holds()) truth.bits |= 1u << Truth::index(a, b);
    }
  }
  return truth;
}

void check_dtype(Op op, DType dtype) {
  if (!info(op).dtypes.contains(dtype)) {
    throw Error(ErrorKind::type, name(op), "dtype isn't supported", name(dtype));
  }
}

/// Launches `packs` over packs, with the elements left over, or `singles`: each with the nest and
/// pointers to the operands.
template <uint32_t N, class Packs, class Scalar>
void map(Op op, const std::array<const Layout*, N>& layouts, const std::array<Operand, N>& operands,
         Gpu& gpu, Packs&& packs, Scalar&& scalar) {
  const CollapsedDims<N> collapsed = collapse_for_map<N>(layouts);
  if (collapsed.elems == 0) return;
  const auto bytes = static_cast<uint32_t>(operands[0].bytes);
  const auto in_bytes = static_cast<uint32_t>(operands[1].bytes);
  const auto at = [&](const std::array<int64_t, N>& start) {
    std::array<void*, N> data;
    for (size_t k = 0; k < N; ++k) data[k] = operands[k].at(start[k]);
    return data;
  };
  const auto packed = has_packs(op) ? pack<N>(collapsed, operands, map_vec(bytes, in_bytes), N > 2)
                                    : PackedDims<N>();
  if (packed.fits) {
    int64_t done = 0;
    packed.collapsed.for_each_piece(
        [&](const StridedIndex<N>& strided, const std::array<int64_t, N>& start) {
          done += strided.elems;
          const uint32_t rest = done == packed.collapsed.elems ? packed.rest : 0;
          packs(spread(gpu, strided.elems, map_unroll(bytes, in_bytes)), strided, at(start), rest,
                packed.repeated);
        });
    return;
  }
  for_each_tiled(collapsed, [&](const CollapsedDims<N>& part) {
    part.for_each_piece([&](const StridedIndex<N>& strided, const std::array<int64_t, N>& start) {
      scalar(spread(gpu, strided.elems, kMapEach), strided, at(start));
    });
  });
}

}  // namespace

void GpuBackend::unary(Op op, const View& out, const ConstView& in) {
  check_dtype(op, out.dtype);
  const std::string& file = file_of(out.dtype);
  map<2>(
      op, {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data, uint32_t rest,
          uint32_t) {
        gpu_.launch(file, kernel_of(op, out.dtype), grid, data[0], data[1], strided, rest);
      },
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data) {
        gpu_.launch(file, fmt::format("unary_scalar_{}", name(out.dtype)), grid, data[0], data[1],
                    strided, row_of<UnaryRow>(op));
      });
}

void GpuBackend::unary_with(Op op, const View& out, const ConstView& in, Scalar p, Scalar q) {
  check_dtype(op, out.dtype);
  const std::string& file = file_of(out.dtype);
  with_compute_type(out.dtype, [&](auto zero) {
    using C = decltype(zero);
    struct Numbers {
      C p, q;
    };
    const Numbers numbers{convert<C>(p), convert<C>(q)};
    map<2>(
        op, {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
        [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data, uint32_t rest,
            uint32_t) {
          gpu_.launch(file, kernel_of(op, out.dtype), grid, data[0], data[1], strided, rest,
                      numbers);
        },
        [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data) {
          gpu_.launch(file, fmt::format("unary_with_scalar_{}", name(out.dtype)), grid, data[0],
                      data[1], strided, row_of<UnaryWithRow>(op), numbers);
        });
  });
}

void GpuBackend::test(Op op, const View& out, const ConstView& in) {
  check_dtype(op, in.dtype);
  const std::string& file = file_of(in.dtype);
  map<2>(
      op, {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data, uint32_t rest,
          uint32_t) {
        gpu_.launch(file, fmt::format("test_{}", name(in.dtype)), grid, data[0], data[1], strided,
                    rest, row_of<TestRow>(op));
      },
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data) {
        gpu_.launch(file, fmt::format("test_scalar_{}", name(in.dtype)), grid, data[0], data[1],
                    strided, row_of<TestRow>(op));
      });
}

void GpuBackend::binary(Op op, const View& out, const ConstView& a, const ConstView& b) {
  check_dtype(op, out.dtype);
  const std::string& file = file_of(out.dtype);
  struct Divisions {
    FaultLine* line;
    uint64_t note;
  } divisions{gpu_.fault_line(), 0};
  if ((op == Op::div || op == Op::rem) && is_integer(out.dtype)) {
    divisions.note = gpu_.note(name(op), a, b, 0);
  }
  map<3>(
      op, {&out.layout, &a.layout, &b.layout}, {Operand(out), Operand(a), Operand(b)}, gpu_,
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data, uint32_t rest,
          uint32_t repeated) {
        gpu_.launch(file, kernel_of(op, out.dtype), grid, data[0], data[1], data[2], strided, rest,
                    repeated, divisions);
      },
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data) {
        gpu_.launch(file, fmt::format("binary_scalar_{}", name(out.dtype)), grid, data[0], data[1],
                    data[2], strided, row_of<BinaryRow>(op), divisions);
      });
}

void GpuBackend::compare(Op op, const View& out, const ConstView& a, const ConstView& b) {
  check_dtype(op, a.dtype);
  const std::string& file = file_of(a.dtype);
  const Truth truth = truth_of(op);
  map<3>(
      op, {&out.layout, &a.layout, &b.layout}, {Operand(out), Operand(a), Operand(b)}, gpu_,
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data, uint32_t rest,
          uint32_t repeated) {
        gpu_.launch(file, fmt::format("compare_{}", name(a.dtype)), grid, data[0], data[1], data[2],
                    strided, rest, repeated, truth);
      },
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data) {
        gpu_.launch(file, fmt::format("compare_scalar_{}", name(a.dtype)), grid, data[0], data[1],
                    data[2], strided, truth);
      });
}

void GpuBackend::where(const View& out, const ConstView& condition, const ConstView& a,
                       const ConstView& b) {
  check_dtype(Op::where, out.dtype);
  if (!dtypes::kConditions.contains(condition.dtype)) {
    throw Error(ErrorKind::type, "where", "condition of this dtype", name(condition.dtype));
  }
  const std::array operands{Operand(out), Operand(condition), Operand(a), Operand(b)};
  const std::string sizes = fmt::format("{}_{}", operands[0].bytes, operands[1].bytes);
  map<4>(
      Op::where, {&out.layout, &condition.layout, &a.layout, &b.layout}, operands, gpu_,
      [&](const Grid& grid, const StridedIndex<4>& strided, const auto& data, uint32_t rest,
          uint32_t repeated) {
        gpu_.launch("where", "where_" + sizes, grid, data[0], data[1], data[2], data[3], strided,
                    rest, repeated);
      },
      [&](const Grid& grid, const StridedIndex<4>& strided, const auto& data) {
        gpu_.launch("where", "where_scalar_" + sizes, grid, data[0], data[1], data[2], data[3],
                    strided);
      });
}

}  // namespace wick::gpu
