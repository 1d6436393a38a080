// scatter and scatter_add: out[.., ids[.., i, ..], ..] = or += source[.., i, ..], in the order of
// i. Threads take rows along the dim, which are independent. If there are few long rows, each
// thread takes a share of the output's indices along the dim and reads all ids.

#include "wick/backend/cpu/index/scatter.h"

#include <algorithm>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/index/scatter_strip.h"

namespace wick::cpu {
namespace {

/// Calls body(strip, share) so that each element of the output gets its sources in order.
template <class F>
void for_each_share(const Strips& strips, uint64_t limit, F&& body) {
  const int threads = ThreadPool::global().threads();
  const int64_t elems = strips.units() * strips.row_length();
  if (threads == 1 || strips.units() >= threads || elems < kIndexGrain) {
    strips.for_each(false, [&](const Strip& s) { body(s, Share{0, limit}); });
    return;
  }
  const uint64_t each = limit / static_cast<uint64_t>(threads) + 1;
  ThreadPool::global().run(threads, [&](int part) {
    const uint64_t first = std::min(limit, static_cast<uint64_t>(part) * each);
    const Share share{first, std::min(limit - first, each)};
    strips.for_each_here([&](Strip s) {
      s.chosen += static_cast<int64_t>(first) * s.step;
      body(s, share);
    });
  });
}

/// Calls body with a number of a type whose elements are moved, or added, as those of the dtype
/// are.
template <class F>
void with_element_type(bool add, DType dtype, F&& body) {
  if (add && dtype == DType::f32) return body(float{});
  if (add && dtype == DType::f64) return body(double{});
  switch (info(dtype).block_bytes) {
    case 1:
      return body(math::u8{});
    case 2:
      return body(math::i16{});
    case 4:
      return body(math::u32{});
    default:
      return body(math::i64{});
  }
}

}  // namespace

void CpuBackend::scatter(Op op, const View& out, const ConstView& source, const ConstView& ids,
                         int dim) {
  check_ids(op, ids, out, dim);
  if (source.layout.elems() == 0 || out.layout.elems() == 0) return;
  const Strips strips(source, out, ids, dim);
  const bool add = op == Op::scatter_add;
  with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    const uint64_t limit = id_limit<Id>(out.layout.shape()[dim]);
    if (add && is_float(out.dtype) && out.dtype != DType::f32 && out.dtype != DType::f64) {
      for_each_share(strips, limit, [&](const Strip& s, Share share) {
        add_narrow(s, strips.along(), out.dtype, ids.dtype, share, isa_);
      });
      return;
    }
    with_element_type(add, out.dtype, [&](auto element) {
      using T = decltype(element);
      for_each_share(strips, limit, [&](const Strip& s, Share share) {
        add ? scatter_strip<T, Id, true>(s, share) : scatter_strip<T, Id, false>(s, share);
      });
    });
  });
}

}  // namespace wick::cpu
