// Assigns a case to each row; a static assertion checks that none is missing.

#include "tests/soak/soak.h"

namespace wick::soak {
namespace {

using Run = void (*)(Case&, Op);

template <void (*kRun)(Case&)>
void plain(Case& c, Op) {
  kRun(c);
}

struct Table {
  Run run[kOpCount] = {};
};

constexpr Table make_table() {
  Table t;
  const auto set = [&](Run run, auto... ops) { ((t.run[static_cast<int>(ops)] = run), ...); };
#define WICK_UNARY(name, ...) set(&unary_case, Op::name);
#define WICK_UNARY_WITH(name, ...) set(&unary_with_case, Op::name);
#define WICK_TEST(name, ...) set(&test_case, Op::name);
#define WICK_BINARY(name, ...) set(&binary_case, Op::name);
#define WICK_COMPARE(name, ...) set(&compare_case, Op::name);
#define WICK_REDUCE(name, ...) set(&reduce_case, Op::name);
#define WICK_ARG(name, ...) set(&arg_case, Op::name);
#include "wick/op/ops.def"
  set(&plain<fill_case>, Op::fill);
  set(&plain<iota_case>, Op::iota);
  set(&plain<copy_case>, Op::copy);
  set(&plain<cast_case>, Op::cast);
  set(&plain<joined_case>, Op::cat);
  set(&plain<padded_case>, Op::pad);
  set(&plain<rolled_case>, Op::roll);
  set(&plain<repeated_case>, Op::repeat);
  set(&triangle_case, Op::tril, Op::triu);
  set(&plain<where_case>, Op::where);
  set(&random_case, Op::uniform, Op::normal);
  set(&reduce_case, Op::var, Op::logsumexp, Op::any, Op::all);
  set(&plain<index_select_case>, Op::index_select);
  set(&plain<gather_case>, Op::gather);
  set(&scatter_case, Op::scatter, Op::scatter_add);
  set(&plain<index_add_case>, Op::index_add);
  set(&plain<one_hot_case>, Op::one_hot);
  set(&sort_case, Op::sort, Op::argsort, Op::topk);
  set(&scan_case, Op::cumsum, Op::cumprod);
  set(&plain<matmul_case>, Op::matmul);
  set(&plain<einsum_case>, Op::einsum);
  set(&quantize_case, Op::quantize, Op::dequantize);
  set(&plain<linear_case>, Op::linear);
  set(&conv_case, Op::conv1d, Op::conv2d, Op::conv_transpose1d, Op::conv_transpose2d);
  set(&pool_case, Op::max_pool1d, Op::max_pool2d, Op::avg_pool1d, Op::avg_pool2d);
  set(&upsample_case, Op::upsample_nearest1d, Op::upsample_nearest2d, Op::upsample_bilinear2d);
  set(&softmax_case, Op::softmax, Op::log_softmax);
  set(&row_norm_case, Op::rms_norm, Op::layer_norm);
  set(&channel_norm_case, Op::group_norm, Op::batch_norm);
  set(&softmax_grad_case, Op::softmax_grad, Op::log_softmax_grad);
  set(&plain<norm_grad_case>, Op::norm_grad);
  set(&plain<norm_sums_case>, Op::norm_sums);
  set(&rope_case, Op::rope, Op::rope_interleaved);
  set(&plain<attention_case>, Op::attention);
  set(&plain<store_case>, Op::store_in_pages);
  set(&recurrence_case, Op::causal_conv, Op::ssm_scan, Op::gated_delta_scan);
  return t;
}

constexpr Table kTable = make_table();

constexpr bool complete() {
  for (const Run run : kTable.run) {
    if (run == nullptr) return false;
  }
  return true;
}
static_assert(complete(), "a row of ops.def has no case in the soak: add one to make_table()");

}  // namespace

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    rows.push_back(
        {std::string(name(op)), [op](Case& c) { kTable.run[static_cast<int>(op)](c, op); }});
  }
  rows.push_back({"slice_set", written_case});
  rows.push_back({"attention_of_lengths", lengths_case});
  rows.push_back({"attention_of_pages", pages_case});
  rows.push_back({"conv2d_weight", conv_weight_case});
  rows.push_back({"grouped_linear", grouped_linear_case});
  rows.push_back({"wrong_calls", wrong_call_case});
  return rows;
}

}  // namespace wick::soak
