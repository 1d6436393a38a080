#include "wick/backend/cpu/linear/weight.h"
#include "wick/base/error.h"

namespace wick::cpu {

std::unique_ptr<PreparedWeight> prepare_float(Isa, std::span<const ConstView>, bool) {
  throw Error("scaffold", "replaced by the kernels");
}

void linear_float(Isa, const View&, const ConstView&, const PreparedWeight&) {
  throw Error("scaffold", "replaced by the kernels");
}

}  // namespace wick::cpu
