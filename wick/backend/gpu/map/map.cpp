// Elementwise functions: kernels/map/map.h, where.gpu.

#include <limits>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/map/map_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/map/scalar.h"
#include "wick/base/error.h"
#include "wick/math/arithmetic.h"

namespace wick::gpu {

// The label of a row in kernel names is the op's name.
#define WICK_UNARY(name, ...) std::string_view(#name),
constexpr auto kernel_labels(UnaryRow) {
  return std::array{
#include "wick/op/ops.def"
  };
}
#define WICK_UNARY_WITH(name, ...) std::string_view(#name),
constexpr auto kernel_labels(UnaryWithRow) {
  return std::array{
#include "wick/op/ops.def"
  };
}
#define WICK_BINARY(name, ...) std::string_view(#name),
constexpr auto kernel_labels(BinaryRow) {
  return std::array{
#include "wick/op/ops.def"
  };
}

namespace {

/// The file with a dtype's kernels.
std::string_view file_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "map_f32";
    case DType::f16:
      return "map_f16";
    case DType::bf16:
      return "map_bf16";
    case DType::f8e4m3:
      return "map_f8e4m3";
    case DType::f64:
      return "map_f64";
    default:
      return "map_integers";
  }
}
template <class Row>
std::string_view file_of_row(Row, DType dtype) {
  return file_of(dtype);
}

const KernelFamily<UnaryArgs, UnaryRow, DType> kUnary(&file_of_row, "{}_{}");
const KernelFamily<UnaryWithArgs, UnaryWithRow, DType> kUnaryWith(&file_of_row, "{}_{}");
const KernelFamily<BinaryArgs, BinaryRow, DType> kBinary(&file_of_row, "{}_{}");
const KernelFamily<BinaryRowsArgs, DType> kBinaryRows(&file_of, "binary_rows_{}");
const KernelFamily<TestArgs, DType> kTest(&file_of, "test_{}");
const KernelFamily<CompareArgs, DType> kCompare(&file_of, "compare_{}");
const KernelFamily<UnaryScalarArgs, DType> kUnaryScalar(&file_of, "unary_scalar_{}");
const KernelFamily<UnaryWithScalarArgs, DType> kUnaryWithScalar(&file_of, "unary_with_scalar_{}");
const KernelFamily<BinaryScalarArgs, DType> kBinaryScalar(&file_of, "binary_scalar_{}");
const KernelFamily<TestScalarArgs, DType> kTestScalar(&file_of, "test_scalar_{}");
const KernelFamily<CompareScalarArgs, DType> kCompareScalar(&file_of, "compare_scalar_{}");

const KernelFamily<NumbersArgs> kNumbers("looked_up", "numbers_16");
const KernelFamily<LookUpArgs> kLookUp("looked_up", "look_up_16");

using ElementBytes = OneOf<1, 2, 4, 8>;
using ConditionBytes = OneOf<1, 4, 8>;
const KernelFamily<WhereArgs, ElementBytes, ConditionBytes> kWhere("where", "where_{}_{}");
const KernelFamily<WhereScalarArgs, ElementBytes, ConditionBytes> kWhereScalar(
    "where", "where_scalar_{}_{}");

/// The index of an op among the rows of its kind.
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
/// Whether a row has vectorized kernels.
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

/// The truth table of a comparison. It evaluates the op's function for every relation of two
/// numbers.
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

/// Launches `packs`, the vectorized kernel, which also takes the elements left over, or `scalar`.
/// Both get the grid, the strided index and pointers to the operands.
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

/// Functions of 16-bit floats whose kernels are limited by their arithmetic.
constexpr bool is_slow(Op op) {
  switch (op) {
    case Op::sin:
    case Op::cos:
    case Op::log1p:
    case Op::expm1:
    case Op::erf:
    case Op::normcdf:
    case Op::gelu_erf:
      return true;
    default:
      return false;
  }
}
/// Elements for which making a table of results pays.
constexpr int64_t kWorthATable = 8 << 20;

/// Computes a function of many 16-bit floats by looking up its results, where a multiprocessor has
/// shared memory for the table. Returns false if it did nothing. The table is made by `compute`,
/// the function's other kernels, so it has their bits.
template <class Compute>
bool looked_up(Gpu& gpu, Op op, const View& out, const ConstView& in, const Compute& compute) {
  const bool is_narrow = out.dtype == DType::f16 || out.dtype == DType::bf16;
  if (!is_narrow || !is_slow(op) || out.layout.elems() < kWorthATable ||
      gpu.info.shared_bytes < static_cast<int>(kLookedUpBytes)) {
    return false;
  }
  const CollapsedDims<2> dims = collapse_for_map<2>({&out.layout, &in.layout});
  const std::array operands{Operand(out), Operand(in)};
  const auto packed = pack<2>(dims, operands, 8, false);
  // A single dense dim whose vectors a u32 counts.
  if (!packed.fits || packed.collapsed.dims.size() != 1 || packed.collapsed.elems >> 30 != 0) {
    return false;
  }
  const Scratch numbers(gpu, kLookedUpBytes), results(gpu, kLookedUpBytes);
  const Layout all = Layout::contiguous(Shape{kLookedUpBytes / 2});
  Grid grid;
  grid.pdl = true;
  grid.threads = kMapThreads;
  grid.blocks[0] = kLookedUpBytes / 4 / kMapThreads;
  kNumbers().launch(gpu, grid, {numbers.data<uint32_t>()});
  compute(View{results.data(), out.dtype, all}, ConstView{numbers.data(), out.dtype, all});
  grid.threads = kLookUpThreads;
  grid.blocks[0] = static_cast<unsigned>(gpu.info.multiprocessors);
  grid.shared_bytes = kLookedUpBytes;
  kLookUp().launch(
      gpu, grid,
      {operands[0].at(packed.collapsed.start[0]), operands[1].at(packed.collapsed.start[1]),
       results.data(), static_cast<uint32_t>(packed.collapsed.elems), packed.rest});
  return true;
}

/// Launches binary_rows_DTYPE if one operand is a row, or a vector, of which the other one has
/// many. Otherwise returns false.
bool binary_of_row(Gpu& gpu, BinaryRow op, const View& out, const ConstView& a,
                   const ConstView& b) {
  constexpr int64_t kRowsEach = 16;  // of a thread
  constexpr unsigned kThreads = 64;
  const bool is_op = op == BinaryRow::add || op == BinaryRow::sub || op == BinaryRow::mul;
  if (gpu.device.kind != DeviceKind::hip || !is_op) return false;
  const CollapsedDims<3> dims = collapse_for_map<3>({&out.layout, &a.layout, &b.layout});
  if (dims.dims.size() != 2 || dims.elems >= int64_t{1} << 31) return false;
  const std::array operands{Operand(out), Operand(a), Operand(b)};
  const auto bytes = static_cast<uint32_t>(operands[0].bytes);
  const auto packed = pack<3>(dims, operands, map_vec(bytes, bytes), false);
  if (!packed.fits) return false;
  const auto& outer = packed.collapsed.dims[0];
  const bool row_first = outer.stride[1] == 0;
  if (row_first == (outer.stride[2] == 0)) return false;
  const int64_t vectors = packed.collapsed.dims[1].size;
  const int64_t threads = vectors * divide_up(outer.size, kRowsEach);
  // Fewer threads don't load enough at once.
  if (threads < 2 * int64_t{kThreads} * gpu.info.multiprocessors) return false;
  const size_t row = row_first ? 1 : 2, matrix = 3 - row;
  BinaryRowsArgs args{};
  const auto at = [&](size_t k) { return operands[k].at(packed.collapsed.start[k]); };
  args.out = at(0), args.matrix = at(matrix), args.row = at(row);
  args.vectors = Divider(static_cast<uint32_t>(vectors));
  args.rows = static_cast<uint32_t>(outer.size);
  args.each = static_cast<uint32_t>(kRowsEach);
  args.out_step = outer.stride[0], args.matrix_step = outer.stride[matrix];
  args.op = op;
  args.row_first = row_first ? 1 : 0;
  Grid grid;
  grid.threads = kThreads;
  grid.blocks[0] = static_cast<unsigned>(divide_up(threads, int64_t{kThreads}));
  kBinaryRows(out.dtype).launch(gpu, grid, args);
  return true;
}

}  // namespace

void GpuBackend::unary(Op op, const View& out, const ConstView& in) {
  check_dtype(op, out.dtype);
  if (looked_up(gpu_, op, out, in,
                [&](const View& to, const ConstView& from) { unary(op, to, from); })) {
    return;
  }
  const auto row = row_of<UnaryRow>(op);
  map<2>(
      op, {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data, uint32_t rest,
          uint32_t) {
        kUnary(row, out.dtype).launch(gpu_, grid, {data[0], data[1], strided, rest});
      },
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data) {
        kUnaryScalar(out.dtype).launch(gpu_, grid, {data[0], data[1], strided, row});
      });
}

void GpuBackend::unary_with(Op op, const View& out, const ConstView& in, Scalar p, Scalar q) {
  check_dtype(op, out.dtype);
  const auto row = row_of<UnaryWithRow>(op);
  Number first{}, second{};
  with_compute_type(out.dtype, [&](auto zero) {
    using C = decltype(zero);
    first = Number::of(convert<C>(p)), second = Number::of(convert<C>(q));
  });
  map<2>(
      op, {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data, uint32_t rest,
          uint32_t) {
        kUnaryWith(row, out.dtype)
            .launch(gpu_, grid, {data[0], data[1], strided, rest, first, second});
      },
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data) {
        kUnaryWithScalar(out.dtype).launch(gpu_, grid,
                                           {data[0], data[1], strided, row, first, second});
      });
}

void GpuBackend::test(Op op, const View& out, const ConstView& in) {
  check_dtype(op, in.dtype);
  const auto row = row_of<TestRow>(op);
  map<2>(
      op, {&out.layout, &in.layout}, {Operand(out), Operand(in)}, gpu_,
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data, uint32_t rest,
          uint32_t) {
        kTest(in.dtype).launch(gpu_, grid, {data[0], data[1], strided, rest, row});
      },
      [&](const Grid& grid, const StridedIndex<2>& strided, const auto& data) {
        kTestScalar(in.dtype).launch(gpu_, grid, {data[0], data[1], strided, row});
      });
}

void GpuBackend::binary(Op op, const View& out, const ConstView& a, const ConstView& b) {
  check_dtype(op, out.dtype);
  const auto row = row_of<BinaryRow>(op);
  Divisions divisions{gpu_.fault_line(), 0};
  if ((op == Op::div || op == Op::rem) && is_integer(out.dtype)) {
    divisions.note = gpu_.note(name(op), a, b, 0);
  }
  if (binary_of_row(gpu_, row, out, a, b)) return;
  map<3>(
      op, {&out.layout, &a.layout, &b.layout}, {Operand(out), Operand(a), Operand(b)}, gpu_,
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data, uint32_t rest,
          uint32_t repeated) {
        kBinary(row, out.dtype)
            .launch(gpu_, grid, {data[0], data[1], data[2], strided, rest, repeated, divisions});
      },
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data) {
        kBinaryScalar(out.dtype).launch(gpu_, grid,
                                        {data[0], data[1], data[2], strided, row, divisions});
      });
}

void GpuBackend::compare(Op op, const View& out, const ConstView& a, const ConstView& b) {
  check_dtype(op, a.dtype);
  const Truth truth = truth_of(op);
  map<3>(
      op, {&out.layout, &a.layout, &b.layout}, {Operand(out), Operand(a), Operand(b)}, gpu_,
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data, uint32_t rest,
          uint32_t repeated) {
        kCompare(a.dtype).launch(gpu_, grid,
                                 {data[0], data[1], data[2], strided, rest, repeated, truth});
      },
      [&](const Grid& grid, const StridedIndex<3>& strided, const auto& data) {
        kCompareScalar(a.dtype).launch(gpu_, grid, {data[0], data[1], data[2], strided, truth});
      });
}

void GpuBackend::where(const View& out, const ConstView& condition, const ConstView& a,
                       const ConstView& b) {
  check_dtype(Op::where, out.dtype);
  if (!dtypes::kConditions.contains(condition.dtype)) {
    throw Error(ErrorKind::type, "where", "condition of this dtype", name(condition.dtype));
  }
  const std::array operands{Operand(out), Operand(condition), Operand(a), Operand(b)};
  map<4>(
      Op::where, {&out.layout, &condition.layout, &a.layout, &b.layout}, operands, gpu_,
      [&](const Grid& grid, const StridedIndex<4>& strided, const auto& data, uint32_t rest,
          uint32_t repeated) {
        kWhere(operands[0].bytes, operands[1].bytes)
            .launch(gpu_, grid, {data[0], data[1], data[2], data[3], strided, rest, repeated});
      },
      [&](const Grid& grid, const StridedIndex<4>& strided, const auto& data) {
        kWhereScalar(operands[0].bytes, operands[1].bytes)
            .launch(gpu_, grid, {data[0], data[1], data[2], data[3], strided});
      });
}

}  // namespace wick::gpu
