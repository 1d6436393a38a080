// fill, iota, cast and index_select; copy is in copy.cpp.

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/index/ids.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/map/scalar.h"

namespace wick::gpu {
namespace {

/// A value again and again. Kernels of smaller units take its first bytes.
struct alignas(16) Unit {
  std::array<char, 16> bytes{};

  Unit(Scalar value, DType dtype) {
    with_storage_type(dtype, [&](auto zero) {
      const auto element = convert<decltype(zero)>(value);
      for (size_t i = 0; i < bytes.size(); i += sizeof element) {
        std::memcpy(bytes.data() + i, &element, sizeof element);
      }
    });
  }
};

/// The parts of a dense run before and behind what is a multiple of 16 bytes at a multiple of 16;
/// everything else is one part.
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
  const Unit unit(value, out.dtype);
  const Operand whole(out);
  for_each_aligned(collapse_for_map<1>({&out.layout}), whole, [&](const CollapsedDims<1>& part) {
    const auto [collapsed, to] = in_units<1>(part, {whole});
    const int64_t bytes = to[0].bytes;
    const std::string kernel = fmt::format("fill_{}", bytes);
    collapsed.for_each_piece([&, &to = to](const StridedIndex<1>& strided, const auto& start) {
      const Grid grid = spread(gpu_, strided.elems, copy_unroll(static_cast<uint32_t>(bytes)));
      gpu_.launch("copy", kernel, grid, to[0].at(start[0]), strided, unit);
    });
  });
}

void GpuBackend::iota(const View& out, Scalar start, Scalar step) {
  struct Sequence {
    uint64_t first;
    int64_t start, step;
    double real_start, real_step;
    uint64_t whole;
  } sequence{0, start.i, step.i, start.f, step.f, start.is_integer && step.is_integer ? 1u : 0u};
  const Operand to(out);
  const int64_t pack = 16 / to.bytes;
  for_each_aligned(collapse<1>({&out.layout}), to, [&](const CollapsedDims<1>& part) {
    const bool packs = part.dims.size() == 1 && part.elems % pack == 0 &&
                       access_of(part, 0, to, 0).vectors_of(pack);
    part.for_each_piece([&](const StridedIndex<1>& strided, const auto& at) {
      if (packs) {
        const auto count = static_cast<uint32_t>(strided.elems / pack);
        gpu_.launch("iota", fmt::format("iota_vectorized_{}", name(out.dtype)),
                    spread(gpu_, count, 1), to.at(at[0]), count, sequence);
      } else {
        gpu_.launch("iota", fmt::format("iota_{}", name(out.dtype)),
                    spread(gpu_, strided.elems, kMapEach), to.at(at[0]), strided, sequence);
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
  const std::string_view file = from_bytes == 8   ? "cast_from_long"
                                : from_bytes == 4 ? "cast_from_words"
                                : in.dtype == DType::f16 || in.dtype == DType::bf16
                                    ? "cast_from_halves"
                                    : "cast_from_short";
  const auto packed = pack<2>(collapsed, operands, map_vec(to_bytes, from_bytes), false);
  if (packed.fits) {
    const std::string kernel = fmt::format("cast_{}_{}", name(in.dtype), name(out.dtype));
    int64_t done = 0;
    packed.collapsed.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
      done += strided.elems;
      const uint32_t rest = done == packed.collapsed.elems ? packed.rest : 0;
      gpu_.launch(file, kernel, spread(gpu_, strided.elems, map_unroll(to_bytes, from_bytes)),
                  operands[0].at(start[0]), operands[1].at(start[1]), strided, rest);
    });
    return;
  }
  const std::string kernel = fmt::format("cast_scalar_{}", name(in.dtype));
  for_each_tiled(collapsed, [&](const CollapsedDims<2>& part) {
    part.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
      gpu_.launch(file, kernel, spread(gpu_, strided.elems, kMapEach), operands[0].at(start[0]),
                  operands[1].at(start[1]), strided, static_cast<uint32_t>(out.dtype));
    });
  });
}

}  // namespace wick::gpu
