#include "wick/tensor/checks.h"

#include <fmt/format.h>

#include <string>

#include "wick/backend/backend.h"
#include "wick/base/error.h"

namespace wick {

void check_operand(Op op, const Tensor& x, const char* as) {
  const std::string_view op_name = as != nullptr ? as : name(op);
  if (!x.defined()) throw Error(op_name, "undefined tensor");
  if (info(op).dtypes.contains(x.dtype())) return;
  std::string supported;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (info(op).dtypes.contains(dtype)) supported += fmt::format(" {}", name(dtype));
  }
  throw Error(ErrorKind::type, op_name, "not for this dtype", x.str(),
              "takes" + supported +
                  (is_block(x.dtype())           ? ": dequantize it first"
                   : x.dtype() == DType::boolean ? ": convert it first, as to u8 or f32"
                                                 : ""));
}

void convert_into(View out, DType dtype, const Tensor& in) {
  Backend& b = backend(in.device());
  if (dtype == in.dtype() || (in.dtype() == DType::boolean && dtype == stored(DType::boolean))) {
    b.copy(out, in.view());
  } else if (dtype == DType::boolean) {
    b.test(Op::to_bool, out, in.view());
  } else {
    b.cast(out, in.view());
  }
}

void check_device(const char* op, const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) throw Error(op, "undefined tensor");
  if (a.device() == b.device()) return;
  throw Error(op, "devices differ", fmt::format("lhs {}, rhs {}", a.str(), b.str()),
              "move one of them");
}

void check_sole_owner(const char* op, const Tensor& target) {
  if (!target.storage()->writable()) {
    throw Error(ErrorKind::runtime, op, "target is read-only", target.str(),
                "it maps a file, or another library's memory: clone it first");
  }
  if (target.storage().use_count() != 1) {
    throw Error(ErrorKind::runtime, op, "target's storage is shared", target.str(),
                "other tensors would change under their owners: clone it first");
  }
}

void check_same(Op op, const Tensor& a, const Tensor& b, const char* as) {
  const char* op_name = as != nullptr ? as : name(op).data();
  check_device(op_name, a, b);
  if (a.dtype() == b.dtype()) return;
  throw Error(ErrorKind::type, op_name, "dtypes differ",
              fmt::format("lhs {}, rhs {}", a.str(), b.str()),
              fmt::format("nothing is promoted: convert one, e.g. rhs to {}", name(a.dtype())));
}

}  // namespace wick
