#pragma once

// Random calls of public functions, compared with a reference in long double: code that all
// families of cases share. A case chooses shapes, dtypes, layouts and values, calls a function,
// computes the expected result from the operands' elements, and compares. The reference shares no
// code with the kernels.

#include <any>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/parity/formats.h"
#include "tests/parity/harness.h"
#include "wick/op/op.h"
#include "wick/tensor/tensor.h"

namespace wick::soak {

using parity::Random;
using Real = long double;
using Int = __int128;

/// Elements in row-major order. long double represents every element of every dtype exactly.
struct Array {
  DType dtype;
  Shape shape;
  std::vector<Real> v;

  Array(DType d, const Shape& s) : dtype(d), shape(s), v(static_cast<size_t>(s.elems())) {}
  Real& operator[](int64_t i) { return v[static_cast<size_t>(i)]; }
  Real operator[](int64_t i) const { return v[static_cast<size_t>(i)]; }
  int64_t elems() const { return shape.elems(); }
  /// Returns the row-major position of an index.
  int64_t at(std::initializer_list<int64_t> index) const;
  Real operator()(std::initializer_list<int64_t> index) const { return (*this)[at(index)]; }
};

/// A tensor with some layout, and its elements.
struct Operand {
  Tensor x;
  Array a;
};

enum class Values : uint8_t {
  ordinary,  ///< normal distribution around 0; small integers for integer dtypes
  special,   ///< those, infinities, NaN, zeros of both signs, denormals, extremes; any integers
  positive,  ///< between 0.25 and 4
};

/// The permitted error of a result: `ulps` of the exact value in the result's dtype, plus
/// `slack[i]` (0 if empty).
struct Bound {
  Real ulps = 0;
  std::vector<Real> slack = {};
};

/// A wrong result.
class Wrong : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Receives the operands and the results of a case. With a stage, a case can run several times:
/// with the same calls and shapes, because these depend on Case::random alone, and with other
/// values of the operands.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Whether the calls compute. If not, they are only recorded, and results have no values.
  virtual bool computes() const = 0;
  /// The generator of the operands' values.
  virtual Random& values() = 0;
  /// Returns the tensor of an operand whose storage has these bytes.
  virtual Tensor operand(DType dtype, const Layout& layout,
                         const std::vector<std::byte>& storage) = 0;
  virtual void result(const Tensor& got) = 0;
  /// Returns make() in the first run and its value in later ones. It also restores `random`.
  virtual std::any once(Random& random, const std::function<std::any()>& make) = 0;
};

class Case {
 public:
  Case(Device on, uint64_t seed, int64_t elems) : random(seed), device(on), most_elems(elems) {}

  Random random;
  Device device;
  int64_t most_elems;  ///< limit of one operand
  std::string what;    ///< the operands so far, for messages
  int plant = 0;       ///< 1: the next result gets one wrong element, to test the soak
  Stage* stage = nullptr;
  /// Whether the CPU and GPUs may give different bits although the row's class promises equal ones:
  /// calls in a form of class bound.
  bool is_bound = false;

  int64_t below(int64_t n) { return random.below(n); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }
  DType dtype(DTypeSet set);
  DType float_dtype() { return dtype(dtypes::kFloats); }
  DType id_dtype() { return dtype(dtypes::kIds); }
  /// Returns 1 to `most`: small sizes, and those around powers of two and the kernels' thresholds.
  int64_t size(int64_t most);
  /// Returns a shape of at most most_elems elements. If permitted, one in 20 is empty.
  Shape shape(int least_rank, int most_rank, bool may_be_empty = true);
  /// Returns a shape that broadcasts to this one.
  Shape broadcasting(const Shape& shape);

  /// Returns random elements with a random layout: dense, permuted, reversed, strided, broadcast,
  /// overlapping, with any offset. The bytes between the elements are all ones (NaN or -1).
  Operand operand(DType dtype, const Shape& shape, Values values = Values::ordinary);
  /// Returns an operand with the given elements, which the dtype must represent.
  Operand operand(const Array& elements);
  /// Returns ids in [0, limit). `padding`: some ids are the largest value of an unsigned dtype.
  Operand ids(DType dtype, const Shape& shape, int64_t limit, bool padding = false);

  /// Compares a result with its exact values.
  void expect(const Tensor& got, const Array& exact, const Bound& bound = {});
  /// Names a result that the case compares itself. Returns whether it has values.
  bool result(const Tensor& got) {
    if (stage != nullptr) stage->result(got);
    return stage == nullptr || stage->computes();
  }
  /// Returns the elements of a result that is an intermediate value of the case; zeros if the calls
  /// don't compute.
  Array elements(const Tensor& x);
  /// Returns make(). With a stage, later runs of the case get the value of the first one: for
  /// weights, whose preparation reads values, and for tensors of host data.
  template <class T>
  T once(const std::function<T()>& make) {
    if (stage == nullptr) return make();
    return std::any_cast<T>(stage->once(random, [&] { return std::any(make()); }));
  }
  /// Expects a wick::Error that begins with `op:`, immediately or at the next synchronization.
  void expect_error(std::string_view op, const std::function<void()>& call);
  void note(const std::string& text) { what += " " + text; }
  [[noreturn]] void fail(const std::string& text) const { throw Wrong(what + ": " + text); }
  /// Throws if a call has changed one of its operands.
  void check_operands() const;

 private:
  Random& values() { return stage != nullptr ? stage->values() : random; }
  struct Placed {
    Layout layout;
    int64_t storage_elems;
  };
  Placed place(const Shape& shape);
  Operand placed(DType dtype, const Shape& shape, const std::function<uint64_t(int64_t)>& bits);

  struct Kept {
    Tensor x;
    std::vector<std::byte> bytes;
  };
  std::vector<Kept> kept_;
};

/// Returns an integer as its dtype wraps it.
Real wrap(DType dtype, Int value);
/// Returns a number rounded to a float dtype; other dtypes leave it unchanged.
Real rounded(DType dtype, Real value);
/// The relative error of one step in the dtype's compute type, with a margin of 2.
inline Real step(DType dtype) { return dtype == DType::f64 ? 0x1p-52L : 0x1p-23L; }
/// Returns the tensor's elements.
Array read(const Tensor& x);
/// Calls visit(index) for every index of a shape in row-major order.
void for_each_index(const Shape& shape, const std::function<void(std::span<const int64_t>)>& visit);
/// Returns the row-major position of an index in `shape`, whose dims of size 1 broadcast.
int64_t broadcast_at(const Shape& shape, std::span<const int64_t> index);

/// A case of a row of ops.def, or of a function without a row.
struct Row {
  std::string name;
  std::function<void(Case&)> run;
};
/// Returns the rows of ops.def by op number; none is empty.
std::vector<Row> all_rows();

/// A case of one function, and a case that is given its op.
using FunctionCase = void(Case&);
using OpCase = void(Case&, Op);

// The cases of the rows of ops.def, by the file that defines them. rows.cpp assigns them to ops.
// map_cases.cpp
OpCase unary_case, unary_with_case, binary_case, compare_case, test_case, random_case;
FunctionCase where_case, fill_case, iota_case, cast_case;
// reduce_cases.cpp
OpCase reduce_case, arg_case, softmax_case, row_norm_case, channel_norm_case, rope_case, sort_case,
    scan_case;
// norm_grad_cases.cpp
OpCase softmax_grad_case;
FunctionCase norm_grad_case, norm_sums_case;
// index_cases.cpp
OpCase scatter_case, triangle_case;
FunctionCase index_select_case, gather_case, index_add_case, one_hot_case, copy_case;
FunctionCase joined_case, padded_case, rolled_case, repeated_case;
// linear_cases.cpp
OpCase quantize_case;
FunctionCase matmul_case, einsum_case, linear_case;
// spatial_cases.cpp
OpCase conv_case, pool_case, upsample_case;
// attention_cases.cpp
FunctionCase attention_case, store_case;
// recurrence_cases.cpp
OpCase recurrence_case;

// Cases of functions without a row.
FunctionCase written_case, wrong_call_case;  // index_cases.cpp
FunctionCase grouped_linear_case;            // linear_cases.cpp
FunctionCase conv_weight_case;               // spatial_cases.cpp
FunctionCase lengths_case, pages_case;       // attention_cases.cpp

}  // namespace wick::soak
