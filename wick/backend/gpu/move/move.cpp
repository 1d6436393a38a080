// fill, iota and cast; copy is in copy.cpp, index_select in index/index_select.cpp.

#include <array>
#include <cstring>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/move/move_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/map/scalar.h"

namespace wick::gpu {
namespace {

const KernelFamily<FillArgs, OneOf<1, 2, 4, 8, 16>> kFill("copy", "fill_{}");
const KernelFamily<IotaArgs, DType> kIota("iota", "iota_{}");
const KernelFamily<IotaVectorizedArgs, DType> kIotaVectorized("iota", "iota_vectorized_{}");

/// The file with the casts from a dtype.
std::string_view cast_file(DType from) {
  const int32_t bytes = info(from).block_bytes;
  return bytes == 8                                  ? "cast_from_long"
         : bytes == 4                                ? "cast_from_words"
         : from == DType::f16 || from == DType::bf16 ? "cast_from_halves"
                                                     : "cast_from_short";
}
const KernelFamily<CastArgs, DType, DType> kCast([](DType from, DType) { return cast_file(from); },
                                                 "cast_{}_{}");
const KernelFamily<CastScalarArgs, DType> kCastScalar(&cast_file, "cast_scalar_{}");

/// A value repeated over 16 bytes. Kernels of smaller units read its first bytes.
void repeat(Scalar value, DType dtype, uint32_t (&words)[4]) {
  with_storage_type(dtype, [&](auto zero) {
    const auto element = convert<decltype(zero)>(value);
    for (size_t i = 0; i < sizeof words; i += sizeof element) {
      std::memcpy(reinterpret_cast<char*>(words) + i, &element, sizeof element);
    }
  });
}

/// Splits a dense run into an aligned part, whose address and size are multiples of 16 bytes, and
/// the parts before and behind it. Everything else is one part.
template <class Body>
void for_each_aligned(const CollapsedDims<1>& collapsed, const Operand& operand, Body&& body) {
  const int64_t units = 16 / operand.bytes;
  if (collapsed.dims.size() != 1 || collapsed.dims[0].stride[0] != 1 ||
      collapsed.elems < 4 * units) {
    return body(collapsed);
  }
  int64_t head = 0;
  while (!Access(operand.data, operand.bytes, collapsed.start[0] + head).begins_at(16)) ++head;
  const auto [first, rest] = split(collapsed, 0, head);
  const auto [middle, last] = split(rest, 0, rest.elems / units * units);
  body(first);
  body(middle);
  body(last);
}

}  // namespace

void GpuBackend::fill(const View& out, Scalar value) {
  FillArgs args{};
  repeat(value, out.dtype, args.value);
  const Operand whole(out);
  for_each_aligned(collapse_for_map<1>({&out.layout}), whole, [&](const CollapsedDims<1>& part) {
    const auto [collapsed, to] = in_units<1>(part, {whole});
    const int64_t bytes = to[0].bytes;
    collapsed.for_each_piece([&, &to = to](const StridedIndex<1>& strided, const auto& start) {
      const Grid grid = spread(gpu_, strided.elems, copy_unroll(static_cast<uint32_t>(bytes)));
      args.out = to[0].at(start[0]);
      args.strided = strided;
      kFill(bytes).launch(gpu_, grid, args);
    });
  });
}

void GpuBackend::iota(const View& out, Scalar start, Scalar step) {
  Sequence sequence{0,
                    static_cast<uint64_t>(start.i),
                    static_cast<uint64_t>(step.i),
                    start.f,
                    step.f,
                    start.is_integer && step.is_integer ? 1u : 0u};
  const Operand to(out);
  const int64_t pack = 16 / to.bytes;
  for_each_aligned(collapse<1>({&out.layout}), to, [&](const CollapsedDims<1>& part) {
    const bool packs = part.dims.size() == 1 && part.elems % pack == 0 &&
                       access_of(part, 0, to, 0).vectors_of(pack);
    part.for_each_piece([&](const StridedIndex<1>& strided, const auto& at) {
      if (packs) {
        const auto count = static_cast<uint32_t>(strided.elems / pack);
        kIotaVectorized(out.dtype).launch(gpu_, spread(gpu_, count, 1),
                                          {to.at(at[0]), count, sequence});
      } else {
        kIota(out.dtype).launch(gpu_, spread(gpu_, strided.elems, kMapEach),
                                {to.at(at[0]), strided, sequence});
      }
      sequence.first += strided.elems;
    });
  });
}

void GpuBackend::cast(const View& out, const ConstView& in) {
  if (out.dtype == in.dtype) return copy(out, in);
  const CollapsedDims<2> collapsed = collapse_for_map<2>({&out.layout, &in.layout});
  if (collapsed.elems == 0) return;
  const std::array operands{Operand(out), Operand(in)};
  const auto to_bytes = static_cast<uint32_t>(operands[0].bytes);
  const auto from_bytes = static_cast<uint32_t>(operands[1].bytes);
  const auto packed = pack<2>(collapsed, operands, map_vec(to_bytes, from_bytes), false);
  if (packed.fits) {
    int64_t done = 0;
    packed.collapsed.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
      done += strided.elems;
      const uint32_t rest = done == packed.collapsed.elems ? packed.rest : 0;
      kCast(in.dtype, out.dtype)
          .launch(gpu_, spread(gpu_, strided.elems, map_unroll(to_bytes, from_bytes)),
                  {operands[0].at(start[0]), operands[1].at(start[1]), strided, rest});
    });
    return;
  }
  for_each_tiled(collapsed, [&](const CollapsedDims<2>& part) {
    part.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
      kCastScalar(in.dtype).launch(gpu_, spread(gpu_, strided.elems, kMapEach),
                                   {operands[0].at(start[0]), operands[1].at(start[1]), strided,
                                    static_cast<uint32_t>(out.dtype)});
    });
  });
}

}  // namespace wick::gpu
