// Binds the rows of ops.def whose Python functions are generated from their declarations.
#include "python/bindings/rows.h"

#include <deque>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

// Rows that are bound by hand; the comments give the reason or the functions.
#define WICK_BY_HAND_fill ,                 // full, zeros, ones
#define WICK_BY_HAND_iota ,                 // arange
#define WICK_BY_HAND_copy ,                 // clone
#define WICK_BY_HAND_clamp ,                // a bound may be None
#define WICK_BY_HAND_where ,                // operands may be numbers
#define WICK_BY_HAND_var ,                  // unbiased as an alternative to correction
#define WICK_BY_HAND_uniform ,              // requires_grad
#define WICK_BY_HAND_normal ,               // requires_grad
#define WICK_BY_HAND_matmul ,               // vector operands
#define WICK_BY_HAND_einsum ,               // any number of operands
#define WICK_BY_HAND_linear ,               // weight may be a Weight or a tensor; fused steps
#define WICK_BY_HAND_conv1d ,               // padding="same"
#define WICK_BY_HAND_conv2d ,               // padding="same"
#define WICK_BY_HAND_upsample_nearest1d ,   // size or scale factors
#define WICK_BY_HAND_upsample_nearest2d ,   // size or scale factors
#define WICK_BY_HAND_upsample_bilinear2d ,  // size or scale factors

// WICK_BIND_UNLESS(probe, name) binds a row unless its probe is a comma.
#define WICK_SECOND(a, b, ...) b
#define WICK_CHOOSE(...) WICK_SECOND(__VA_ARGS__)
#define WICK_SKIP(name)
#define WICK_BIND(name) bind_row<Op::name>(ops, &wick::name);
#define WICK_BIND_UNLESS(probe, name) WICK_CHOOSE(probe WICK_SKIP, WICK_BIND, ~)(name)

namespace wick::python {

const char* kept_text(std::string_view text) {
  static auto* const texts = new std::deque<std::string>();
  return texts->emplace_back(text).c_str();
}

nb::object default_value(std::string_view text) {
  if (text == "True" || text == "False") return nb::bool_(text == "True");
  if (text.front() == '"') return nb::str(text.data() + 1, text.size() - 2);
  const std::string number(text);
  const bool is_whole = number.find_first_of(".e") == std::string::npos;
  return is_whole ? nb::object(nb::int_(std::stoll(number)))
                  : nb::object(nb::float_(std::stod(number)));
}

std::array<int64_t, 2> two(IntsArg arg, const char* op, std::string_view name) {
  const std::string what = fmt::format("{}: {}", op, name);
  const std::vector<int64_t> values = arg.get(what);
  if (values.size() == 1) return {values[0], values[0]};
  if (values.size() == 2) return {values[0], values[1]};
  throw nb::type_error(fmt::format("{}: need one int or two", what).c_str());
}

int64_t one(IntsArg arg, const char* op, std::string_view name) {
  const std::string what = fmt::format("{}: {}", op, name);
  const std::vector<int64_t> values = arg.get(what);
  if (values.size() != 1) throw nb::type_error(fmt::format("{}: need one int", what).c_str());
  return values[0];
}

void bind_rows_of_arguments(OpBinder& ops) {
#define WICK_OP(name, ...) WICK_BIND_UNLESS(WICK_BY_HAND_##name, name)
#define WICK_UNARY_WITH(name, ...) WICK_BIND_UNLESS(WICK_BY_HAND_##name, name)
#include "wick/op/ops.def"
}

}  // namespace wick::python
