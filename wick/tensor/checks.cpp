#include "wick/tensor/checks.h"

#include <fmt/format.h>

#include <string>

#include "wick/base/error.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

/// The hint of a dtype error for a bool operand: which dtypes to convert to.
std::string cast_of_bool(Op op) {
  std::string names;
  for (const DType dtype : {DType::i64, DType::f32}) {
    if (!info(op).dtypes.contains(dtype)) continue;
    names +=
        fmt::format("{}{}", names.empty() ? ": convert it first, as to " : " or ", name(dtype));
  }
  return names;
}

}  // namespace

void check_operand(Op op, const Tensor& x, const char* as) {
  const std::string_view op_name = as != nullptr ? as : name(op);
  if (!x.defined()) throw Error(op_name, "undefined tensor");
  if (info(op).dtypes.contains(x.dtype())) return;
  std::string supported;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (info(op).dtypes.contains(dtype)) supported += fmt::format(" {}", name(dtype));
  }
  throw Error(ErrorKind::type, op_name, "unsupported dtype", x.str(),
              "takes" + supported +
                  (is_block(x.dtype())           ? ": dequantize it first"
                   : x.dtype() == DType::boolean ? cast_of_bool(op)
                                                 : ""));
}

size_t storage_bytes(const Shape& shape, DType dtype) {
  const int64_t block = info(dtype).block_elems;
  if (block > 1 && (shape.rank() == 0 || shape.back() % block != 0)) {
    throw Error("empty", "the last dimension isn't whole blocks",
                fmt::format("{}{}", name(dtype), shape.str()),
                fmt::format("need a multiple of {}", block));
  }
  int64_t bytes = info(dtype).block_bytes;
  bool fits = true;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool inner = d + 1 == shape.rank();
    const int64_t count = block > 1 && inner ? shape[d] / block : shape[d];
    fits = fits && !__builtin_mul_overflow(bytes, count, &bytes);
  }
  if (!fits || bytes > INT64_C(1) << 62) {
    const Shape checked(shape.dims());  // throws if there are too many elements, unless a size is 0
    if (checked.elems() == 0) return 0;
    throw Error("empty", "too many bytes", fmt::format("{}{}", name(dtype), shape.str()));
  }
  return static_cast<size_t>(bytes);
}

void check_device(const char* op, const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) throw Error(op, "undefined tensor");
  if (a.device() == b.device()) return;
  throw Error(op, "devices differ", fmt::format("lhs {}, rhs {}", a.str(), b.str()),
              "move one of them");
}

void check_no_gradient(const char* op, const Tensor& x) {
  if (tape::is_wanted(x)) tape::refuse(op, x, "detach the source, or use cat or where");
}

void check_writable(const char* op, const Tensor& target, long owners) {
  if (tape::is_wanted(target)) {
    throw Error(ErrorKind::runtime, op, "target needs a gradient", target.str(),
                "write under no_grad, or to a detached clone");
  }
  if (!target.storage()->writable()) {
    throw Error(ErrorKind::runtime, op, "target is read-only", target.str(),
                "it maps a file, or another library's memory: clone it first");
  }
  const bool is_leaf = target.node() != nullptr && target.node()->rule == nullptr;
  if (!is_leaf && target.storage().use_count() != owners) {
    throw Error(ErrorKind::runtime, op, "target's storage is shared", target.str(),
                "other tensors would change under their owners: clone it first");
  }
  target.storage()->count_write();
}

void check_same(Op op, const Tensor& a, const Tensor& b, const char* as) {
  const char* op_name = as != nullptr ? as : name(op).data();
  check_device(op_name, a, b);
  if (a.dtype() == b.dtype()) return;
  throw Error(ErrorKind::type, op_name, "dtypes differ",
              fmt::format("lhs {}, rhs {}", a.str(), b.str()),
              fmt::format("dtypes aren't promoted: convert one, e.g. rhs to {}", name(a.dtype())));
}

}  // namespace wick
