// Rows of ops that choose, order, draw and accumulate elements.

#include <fmt/format.h>

#include "bench/op_bench.h"

namespace wick::bench {

void add_index(std::vector<OpRow>& rows) {
  rows.push_back({"index_select", DType::f32, "32000x512,4096", Limit::copy,
                  2.0 * 4096 * 512 * sizeof(float), [] {
                    const Tensor x = random_tensor({32000, 512}, DType::f32),
                                 ids = random_ids({4096}, 32000, DType::i64),
                                 y = Tensor::empty({4096, 512}, DType::f32);
                    return [=] {
                      backend(Device()).index_select(y.mutable_view(), x.view(), ids.view(), 0);
                    };
                  }});
}

}  // namespace wick::bench
