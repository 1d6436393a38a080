#pragma once

// Ops that users define: a name, a rule for shape and dtype, bodies for the CPU and for GPUs, and
// optionally a gradient. They run through apply() like wick's own ops, so they work in compiled
// functions, captured graphs, gradients and threads. docs/custom-ops.md is the guide.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "wick/backend/custom_kernel.h"
#include "wick/base/export.h"
#include "wick/tensor/call.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// The elements of an operand, as a body sees them: address, dtype, shape and strides.
class WICK_API CustomInput {
 public:
  CustomInput(std::string_view op, Tensor x) : op_(op), x_(std::move(x)) {}

  DType dtype() const { return x_.dtype(); }
  const Layout& layout() const { return x_.layout(); }
  const Shape& shape() const { return x_.shape(); }
  int rank() const { return x_.rank(); }
  /// The size of a dim; negative dims count from the end.
  int64_t size(int dim) const { return shape()[resolve_dim("size", dim, rank())]; }
  /// The distance of adjacent elements along a dim, in elements.
  int64_t stride(int dim) const { return layout().stride(resolve_dim("stride", dim, rank())); }
  int64_t elems() const { return x_.elems(); }
  /// The address of the first element, in the memory of the op's device.
  const void* address() const {
    return static_cast<const char*>(x_.storage()->data()) + bytes_of(dtype(), layout().offset());
  }
  /// The address of the first element, as elements of type T: uint16_t for 16-bit floats, uint8_t
  /// for 8-bit floats, bool and blocks. Errors: T isn't the dtype's type.
  template <class T>
  const T* data() const {
    require_type(holds<T>(dtype()));
    return static_cast<const T*>(address());
  }
  /// All elements in row-major order. Errors: T isn't the dtype's type; the elements aren't dense.
  template <class T>
  std::span<const T> values() const {
    require_dense();
    return {data<T>(), static_cast<size_t>(elems())};
  }
  ConstView view() const { return x_.view(); }
  /// The operand as a tensor, without a gradient.
  const Tensor& tensor() const { return x_; }

 protected:
  template <class T>
  static bool holds(DType dtype) {
    if constexpr (std::is_same_v<T, uint16_t>) {
      return dtype == DType::f16 || dtype == DType::bf16;
    } else if constexpr (std::is_same_v<T, uint8_t>) {
      return bytes_of(dtype, info(dtype).block_elems) == 1 || is_block(dtype);
    } else {
      return dtype == DTypeOf<T>::value;
    }
  }
  void require_type(bool holds) const {
    if (!holds) fail_type();
  }
  void require_dense() const {
    if (!layout().is_contiguous()) fail_dense();
  }

 private:
  [[noreturn]] void fail_type() const;
  [[noreturn]] void fail_dense() const;

  std::string_view op_;
  Tensor x_;
};

/// The elements that a body writes: those of the result, or of the tensor that an in-place op
/// changes.
class WICK_API CustomOutput : public CustomInput {
 public:
  using CustomInput::CustomInput;

  void* address() const { return const_cast<void*>(CustomInput::address()); }
  template <class T>
  T* data() const {
    require_type(holds<T>(dtype()));
    return static_cast<T*>(address());
  }
  template <class T>
  std::span<T> values() const {
    require_dense();
    return {data<T>(), static_cast<size_t>(elems())};
  }
  View view() const { return tensor().mutable_view(); }
};

/// An argument of a kernel, by the name that source text gives it: {"x", x} for elements, {"n", 5}
/// for a number, {"sums", pointer, count} for memory of GpuContext::scratch.
class WICK_API GpuArgument : public KernelArgument {
 public:
  GpuArgument(std::string name, const CustomInput& x) : KernelArgument(std::move(name), x.view()) {}
  GpuArgument(std::string name, const CustomOutput& x)
      : KernelArgument(std::move(name), x.view()) {}
  template <class T>
  requires(std::integral<T> || std::floating_point<T>) GpuArgument(std::string name, T number)
      : KernelArgument(std::move(name), number) {}
  template <class T>
  GpuArgument(std::string name, T* scratch, int64_t count)
      : KernelArgument(std::move(name),
                       View{scratch, DTypeOf<T>::value, Layout::contiguous({count})}) {}
};

/// What the GPU body of an op works with. It is valid during the body, on the body's thread:
/// elsewhere its functions raise an error, and so does the op, because a compiled function records
/// what the body's thread launches.
class WICK_API GpuContext {
 public:
  GpuContext(Backend& backend, std::string_view op) : backend_(backend), op_(op) {}
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;
  /// Errors: another thread used it.
  void finish() const;

  std::string_view op() const { return op_; }
  Device device() const;
  /// The stream of the op's work, as the driver's handle: code of the user's own submits its work
  /// there and doesn't wait for it. The device is the thread's current one.
  void* stream() const;
  /// The limits of a launch, and the number of multiprocessors.
  LaunchLimits limits() const;
  /// Uninitialised memory from the device's pool. It is freed when the body returns; work that is
  /// queued on stream() may still use it. Errors: out of memory.
  template <class T = std::byte>
  T* scratch(int64_t count) {
    return static_cast<T*>(take(count, sizeof(T)));
  }

  /// Launches a kernel that is given as the text of its body. It is compiled once for each
  /// combination of dtypes, ranks, constants and threads per block. Errors: the text doesn't
  /// compile; there is no run-time compiler; the grid exceeds a limit, which the message names.
  void launch(const KernelText& text, const KernelGrid& grid,
              std::span<const GpuArgument> arguments);
  void launch(const KernelText& text, const KernelGrid& grid,
              std::initializer_list<GpuArgument> arguments) {
    launch(text, grid, std::span(arguments.begin(), arguments.size()));
  }
  /// Launches the kernel `function` of a code object. Elements are passed as the address of the
  /// first, numbers as their C++ type. Errors: the driver rejects the code; there is no such
  /// kernel; the arguments have another size than the kernel's; the grid exceeds a limit.
  void launch(const KernelCode& code, std::string_view function, const KernelGrid& grid,
              std::span<const GpuArgument> arguments);
  void launch(const KernelCode& code, std::string_view function, const KernelGrid& grid,
              std::initializer_list<GpuArgument> arguments) {
    launch(code, function, grid, std::span(arguments.begin(), arguments.size()));
  }

 private:
  void* take(int64_t count, size_t bytes);
  void launch(KernelLaunch& what, std::span<const GpuArgument> arguments);
  void require_thread() const;
  [[noreturn]] void refuse_thread() const;

  const std::thread::id thread_ = std::this_thread::get_id();
  mutable std::atomic<bool> strange_thread_{false};  // a call was refused
  Backend& backend_;
  std::string_view op_;
  std::vector<std::pair<void*, size_t>> scratch_;
};

/// The operands of a call of a custom op and its result, for bodies.
struct CustomArguments {
  CustomOutput out;
  std::vector<CustomInput> in;
};

/// What custom ops and in-place ops have in common. A body may be called by any thread, and by
/// several at once. Bodies aren't called for results without elements.
class WICK_API CustomBody {
 public:
  /// Errors: the name isn't letters, digits, underscores and dots.
  explicit CustomBody(std::string name);
  virtual ~CustomBody();

  const std::string& name() const { return name_; }

  // The bodies of the generic form. The classes for one to three operands call cpu(), gpu(), cuda()
  // and rocm() with the operands one by one. A body that isn't overridden doesn't exist.
  virtual void run_cpu(const CustomArguments& arguments) const;
  /// For GPUs of both vendors.
  virtual void run_gpu(GpuContext& gpu, const CustomArguments& arguments) const;
  /// For NVIDIA GPUs; calls run_gpu() unless overridden.
  virtual void run_cuda(GpuContext& gpu, const CustomArguments& arguments) const;
  /// For AMD GPUs; calls run_gpu() unless overridden.
  virtual void run_rocm(GpuContext& gpu, const CustomArguments& arguments) const;

  /// Whether bodies take operands of any strides. Otherwise operands that aren't dense are copied
  /// first. The target of an in-place op keeps its strides.
  virtual bool takes_strides() const { return false; }
  /// Whether the CPU's body computes for GPUs without a body of their own. The operands are copied
  /// to the host and the result back. The first such call of an op warns: of a class and a name.
  virtual bool falls_back_to_cpu() const { return false; }
  /// Notes a call that falls back. Returns whether it is the first one of this op, or of an op that
  /// was forgotten, because at most 1024 are noted.
  virtual bool is_first_fallback() const;
  /// Receives that warning. By default it is printed to stderr.
  virtual void warn(const std::string& message) const;

 protected:
  CustomBody(const CustomBody&) = default;
  CustomBody& operator=(const CustomBody&) = default;
  /// What a body that doesn't exist does.
  [[noreturn]] static void no_body();

 private:
  struct NoBody {};
  friend struct CustomRun;

  std::string name_;
};

/// An op with any number of operands and one result, which is dense. CustomOp1 to CustomOp3 have
/// methods with the operands one by one.
class WICK_API CustomOp : public CustomBody {
 public:
  using CustomBody::CustomBody;

  /// The dtype and shape of the result: `return like(x)` or `return dense(DType::f32, {2, 3})`.
  /// Operands are in the order of the call. Errors: the operands aren't supported. Operands of a
  /// traced function have no values.
  virtual ResultSpec infer(const Operands& operands) const = 0;
  /// The gradients of the operands from the result y and its gradient, in the operands' shapes and
  /// dtypes; an undefined tensor is no gradient. Errors: the op has none, unless overridden.
  virtual std::vector<Tensor> vjp(std::span<const Tensor> operands, const Tensor& y,
                                  const Tensor& grad) const;
};

/// An op that writes to its first operand. It has no gradient.
class WICK_API InplaceOp : public CustomBody {
 public:
  using CustomBody::CustomBody;

  /// Checks shapes and dtypes of the operands; the first is written to. Errors: they aren't
  /// supported.
  virtual void check_operands(const Operands& operands) const = 0;
};

/// Runs an op. Errors: an operand is undefined; the operands are on several devices; those of
/// infer() and of the body; there is no body for the device. backward() raises an error if the op
/// has no gradient.
WICK_API Tensor apply_op(const std::shared_ptr<const CustomOp>& op, const Operands& operands);
/// Runs an op without recording the call for gradients. Errors: those of apply_op.
WICK_API Tensor apply_op_no_grad(const std::shared_ptr<const CustomOp>& op,
                                 const Operands& operands);
/// Runs an in-place op on the target, the first operand. Errors: those of apply_op; a gradient is
/// needed; the target's storage is shared with another tensor or maps a file; the target's elements
/// overlap; another operand shares the target's storage.
WICK_API void inplace_op(const std::shared_ptr<const InplaceOp>& op, const Operands& operands);

// The generic bodies of an op with a fixed number of operands.
// clang-format off
#define WICK_CUSTOM_FORWARD(...)                                                                 \
  void run_cpu(const CustomArguments& a) const final { cpu(__VA_ARGS__); }                       \
  void run_gpu(GpuContext& g, const CustomArguments& a) const final { gpu(g, __VA_ARGS__); }     \
  void run_cuda(GpuContext& g, const CustomArguments& a) const final { cuda(g, __VA_ARGS__); }   \
  void run_rocm(GpuContext& g, const CustomArguments& a) const final { rocm(g, __VA_ARGS__); }
// clang-format on

/// An op with one operand. shape() is mandatory; see CustomBody and CustomOp.
class WICK_API CustomOp1 : public CustomOp {
 public:
  using CustomOp::CustomOp;
  virtual ResultSpec shape(const Tensor& x) const = 0;
  virtual void cpu(const CustomOutput& y, const CustomInput& x) const;
  virtual void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& x) const;
  virtual void cuda(GpuContext& gpu, const CustomOutput& y, const CustomInput& x) const;
  virtual void rocm(GpuContext& gpu, const CustomOutput& y, const CustomInput& x) const;
  /// The gradient of x.
  virtual Tensor backward(const Tensor& x, const Tensor& y, const Tensor& grad) const;

  ResultSpec infer(const Operands& o) const final { return shape(o[0]); }
  std::vector<Tensor> vjp(std::span<const Tensor> o, const Tensor& y,
                          const Tensor& grad) const final {
    return {backward(o[0], y, grad)};
  }
  WICK_CUSTOM_FORWARD(a.out, a.in[0])
};

/// An op with two operands.
class WICK_API CustomOp2 : public CustomOp {
 public:
  using CustomOp::CustomOp;
  virtual ResultSpec shape(const Tensor& a, const Tensor& b) const = 0;
  virtual void cpu(const CustomOutput& y, const CustomInput& a, const CustomInput& b) const;
  virtual void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& a,
                   const CustomInput& b) const;
  virtual void cuda(GpuContext& gpu, const CustomOutput& y, const CustomInput& a,
                    const CustomInput& b) const;
  virtual void rocm(GpuContext& gpu, const CustomOutput& y, const CustomInput& a,
                    const CustomInput& b) const;
  /// The gradients of a and b.
  virtual std::vector<Tensor> backward(const Tensor& a, const Tensor& b, const Tensor& y,
                                       const Tensor& grad) const;

  ResultSpec infer(const Operands& o) const final { return shape(o[0], o[1]); }
  std::vector<Tensor> vjp(std::span<const Tensor> o, const Tensor& y,
                          const Tensor& grad) const final {
    return backward(o[0], o[1], y, grad);
  }
  WICK_CUSTOM_FORWARD(a.out, a.in[0], a.in[1])
};

/// An op with three operands.
class WICK_API CustomOp3 : public CustomOp {
 public:
  using CustomOp::CustomOp;
  virtual ResultSpec shape(const Tensor& a, const Tensor& b, const Tensor& c) const = 0;
  virtual void cpu(const CustomOutput& y, const CustomInput& a, const CustomInput& b,
                   const CustomInput& c) const;
  virtual void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& a,
                   const CustomInput& b, const CustomInput& c) const;
  virtual void cuda(GpuContext& gpu, const CustomOutput& y, const CustomInput& a,
                    const CustomInput& b, const CustomInput& c) const;
  virtual void rocm(GpuContext& gpu, const CustomOutput& y, const CustomInput& a,
                    const CustomInput& b, const CustomInput& c) const;
  /// The gradients of a, b and c.
  virtual std::vector<Tensor> backward(const Tensor& a, const Tensor& b, const Tensor& c,
                                       const Tensor& y, const Tensor& grad) const;

  ResultSpec infer(const Operands& o) const final { return shape(o[0], o[1], o[2]); }
  std::vector<Tensor> vjp(std::span<const Tensor> o, const Tensor& y,
                          const Tensor& grad) const final {
    return backward(o[0], o[1], o[2], y, grad);
  }
  WICK_CUSTOM_FORWARD(a.out, a.in[0], a.in[1], a.in[2])
};

/// An in-place op without further operands. check() is mandatory.
class WICK_API InplaceOp1 : public InplaceOp {
 public:
  using InplaceOp::InplaceOp;
  virtual void check(const Tensor& x) const = 0;
  virtual void cpu(const CustomOutput& x) const;
  virtual void gpu(GpuContext& gpu, const CustomOutput& x) const;
  virtual void cuda(GpuContext& gpu, const CustomOutput& x) const;
  virtual void rocm(GpuContext& gpu, const CustomOutput& x) const;

  void check_operands(const Operands& o) const final { check(o[0]); }
  WICK_CUSTOM_FORWARD(a.out)
};

/// An in-place op that also reads a.
class WICK_API InplaceOp2 : public InplaceOp {
 public:
  using InplaceOp::InplaceOp;
  virtual void check(const Tensor& x, const Tensor& a) const = 0;
  virtual void cpu(const CustomOutput& x, const CustomInput& a) const;
  virtual void gpu(GpuContext& gpu, const CustomOutput& x, const CustomInput& a) const;
  virtual void cuda(GpuContext& gpu, const CustomOutput& x, const CustomInput& a) const;
  virtual void rocm(GpuContext& gpu, const CustomOutput& x, const CustomInput& a) const;

  void check_operands(const Operands& o) const final { check(o[0], o[1]); }
  WICK_CUSTOM_FORWARD(a.out, a.in[0])
};

/// An in-place op that also reads a and b.
class WICK_API InplaceOp3 : public InplaceOp {
 public:
  using InplaceOp::InplaceOp;
  virtual void check(const Tensor& x, const Tensor& a, const Tensor& b) const = 0;
  virtual void cpu(const CustomOutput& x, const CustomInput& a, const CustomInput& b) const;
  virtual void gpu(GpuContext& gpu, const CustomOutput& x, const CustomInput& a,
                   const CustomInput& b) const;
  virtual void cuda(GpuContext& gpu, const CustomOutput& x, const CustomInput& a,
                    const CustomInput& b) const;
  virtual void rocm(GpuContext& gpu, const CustomOutput& x, const CustomInput& a,
                    const CustomInput& b) const;

  void check_operands(const Operands& o) const final { check(o[0], o[1], o[2]); }
  WICK_CUSTOM_FORWARD(a.out, a.in[0], a.in[1])
};

#undef WICK_CUSTOM_FORWARD

/// An op that a function takes by value or by shared_ptr: apply_op1(x, Softmax()).
template <class Op>
class OpArgument {
 public:
  template <std::derived_from<Op> F>
  OpArgument(F op) : op_(std::make_shared<const F>(std::move(op))) {}
  template <std::derived_from<Op> F>
  OpArgument(std::shared_ptr<F> op) : op_(std::move(op)) {}
  const std::shared_ptr<const Op>& get() const { return op_; }

 private:
  std::shared_ptr<const Op> op_;
};

inline Tensor apply_op1(const Tensor& x, const OpArgument<CustomOp1>& op) {
  return apply_op(op.get(), {&x});
}
inline Tensor apply_op2(const Tensor& a, const Tensor& b, const OpArgument<CustomOp2>& op) {
  return apply_op(op.get(), {&a, &b});
}
inline Tensor apply_op3(const Tensor& a, const Tensor& b, const Tensor& c,
                        const OpArgument<CustomOp3>& op) {
  return apply_op(op.get(), {&a, &b, &c});
}

inline Tensor apply_op1_no_grad(const Tensor& x, const OpArgument<CustomOp1>& op) {
  return apply_op_no_grad(op.get(), {&x});
}
inline Tensor apply_op2_no_grad(const Tensor& a, const Tensor& b, const OpArgument<CustomOp2>& op) {
  return apply_op_no_grad(op.get(), {&a, &b});
}
inline Tensor apply_op3_no_grad(const Tensor& a, const Tensor& b, const Tensor& c,
                                const OpArgument<CustomOp3>& op) {
  return apply_op_no_grad(op.get(), {&a, &b, &c});
}

inline void inplace_op1(const Tensor& x, const OpArgument<InplaceOp1>& op) {
  inplace_op(op.get(), {&x});
}
inline void inplace_op2(const Tensor& x, const Tensor& a, const OpArgument<InplaceOp2>& op) {
  inplace_op(op.get(), {&x, &a});
}
inline void inplace_op3(const Tensor& x, const Tensor& a, const Tensor& b,
                        const OpArgument<InplaceOp3>& op) {
  inplace_op(op.get(), {&x, &a, &b});
}

}  // namespace wick
