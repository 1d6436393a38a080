#pragma once

// The fixture of the tests of fused calls.

#include <span>
#include <vector>

#include "tests/graph/graph_tests.h"
#include "wick/graph/executable.h"
#include "wick/graph/fuse.h"

namespace wick::test {

class FuseOnDevices : public OnDevices {
 protected:
  /// Returns the ops of a function's graph after fusing, in order. Also runs it, and expects the
  /// same bits.
  std::vector<Op> ops(const graph::Function& function, const std::vector<Tensor>& arguments) {
    graph::Trace trace = graph::trace(function, arguments);
    graph::fuse(trace.graph);
    std::vector<Op> names;
    for (const graph::Node& node : trace.graph.nodes) names.push_back(node.op);
    graph::Executable executable(std::move(trace.graph));
    for (int call = 0; call < 3; ++call) {
      expect_same(executable.run(arguments), function(arguments), "fused");
    }
    return names;
  }
  Weight weight(int64_t n, int64_t k, DType dtype) {
    const Tensor matrix = x({n, k}, 77);
    return is_block(dtype) ? Weight(quantize(matrix, dtype)) : Weight(matrix.to(dtype));
  }
};

}  // namespace wick::test
