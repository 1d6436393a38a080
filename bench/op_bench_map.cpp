// Rows of elementwise ops.

#include <fmt/format.h>

#include "bench/op_bench.h"

namespace wick::bench {

void add_map(std::vector<OpRow>& rows) {
  const Shape flat{1 << 24};
  for (DType dtype : {DType::f32, DType::bf16}) {
    const auto bytes = static_cast<double>(bytes_of(dtype, flat.elems()));
    for (Op op : {Op::exp, Op::silu, Op::tanh}) {
      rows.push_back({std::string(name(op)), dtype, "16M", Limit::copy, 2 * bytes, [=] {
                        const Tensor x = random_tensor(flat, dtype), y = Tensor::empty(flat, dtype);
                        return [=] { backend(Device()).unary(op, y.mutable_view(), x.view()); };
                      }});
    }
    rows.push_back(
        {"add", dtype, "16M", Limit::copy, 3 * bytes, [=] {
           const Tensor a = random_tensor(flat, dtype, 1), b = random_tensor(flat, dtype, 2),
                        y = Tensor::empty(flat, dtype);
           return [=] { backend(Device()).binary(Op::add, y.mutable_view(), a.view(), b.view()); };
         }});
  }
  rows.push_back({"add_element", DType::f32, "1", Limit::none, 0, [] {
                    const Tensor a = random_tensor({1}, DType::f32, 1),
                                 b = random_tensor({1}, DType::f32, 2);
                    return [=] { add(a, b); };
                  }});
}

}  // namespace wick::bench
