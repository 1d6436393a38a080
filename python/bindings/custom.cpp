// Custom ops whose bodies are methods of Python objects. The classes and functions that users see
// are in wick/_custom.py.
#include "wick/tensor/custom.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <optional>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/op_reference.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

using namespace nb::literals;

/// The memory of a tensor as a writable buffer of bytes, from which NumPy makes the array that a
/// CPU body writes. It keeps the memory alive.
struct Memory {
  Tensor tensor;
  Py_ssize_t bytes;

  static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    const Memory& memory = *nb::inst_ptr<Memory>(self);
    return PyBuffer_FillInfo(view, self, memory.tensor.storage()->data(), memory.bytes, 0, flags);
  }
};

PyType_Slot memory_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&Memory::get_buffer)},
    {0, nullptr},
};

/// Elements in a GPU's memory, as GPU bodies see them.
struct GpuArray {
  CustomOutput elements;
  bool writes = false;
  uint64_t body = 0;  ///< the call of a body that it is valid for: Context::body()
};

nb::tuple ints(std::span<const int64_t> values) {
  nb::list list;
  for (const int64_t value : values) list.append(value);
  return nb::tuple(list);
}

nb::tuple strides_of(const CustomInput& x) {
  return ints({x.layout().strides().data(), static_cast<size_t>(x.rank())});
}

/// The GPU body's context. It is empty after the body has returned.
class Context {
 public:
  explicit Context(GpuContext& gpu) : gpu_(&gpu) {}
  GpuContext& get() const {
    if (gpu_ == nullptr) {
      throw Error(ErrorKind::runtime, "GpuContext", "used after the body of the op has returned");
    }
    return *gpu_;
  }
  void end() { gpu_ = nullptr; }
  /// The number of this call of a body; no other call has it.
  uint64_t body() const { return body_; }

 private:
  static uint64_t next() {
    static std::atomic<uint64_t> calls = 0;
    return ++calls;
  }

  GpuContext* gpu_;
  uint64_t body_ = next();
};

// ---- Arguments of launches ----

std::string text_or(nb::handle dtype) {
  const nb::object name = nb::getattr(dtype, "name", nb::none());
  return nb::isinstance<nb::str>(name) ? utf8_of(name, "launch: dtype") : "";
}

/// A Python number with the type of a dtype's name.
std::optional<KernelNumber> number_as(nb::handle value, std::string_view type) {
  const auto integer = [&](auto as) -> KernelNumber {
    const int64_t number = to_int(value, "launch");
    if (!std::in_range<decltype(as)>(number)) {
      throw std::overflow_error(fmt::format("launch: {} doesn't fit {}", number, type));
    }
    return static_cast<decltype(as)>(number);
  };
  if (type == "int32") return integer(int32_t{});
  if (type == "uint32") return integer(uint32_t{});
  if (type == "int64") return integer(int64_t{});
  if (type == "uint64") return integer(uint64_t{});
  if (type == "float32") return static_cast<float>(nb::cast<double>(nb::float_(value)));
  if (type == "float64") return nb::cast<double>(nb::float_(value));
  if (type == "bool") return nb::cast<bool>(nb::bool_(value));
  return std::nullopt;
}

/// A number argument: a bool, an int (64 bits), a float (32 bits), a NumPy number, or a pair of a
/// number and its dtype.
KernelNumber number_of(nb::handle value, const std::string& what) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::tuple>(value) && nb::len(value) == 2 && is_dtype(value[1])) {
    const DType dtype = nb::cast<const PyDType&>(value[1]).value;
    if (const auto number = number_as(nb::object(value[0]), python_name(dtype))) return *number;
  }
  if (const auto number = number_as(value, text_or(nb::getattr(value, "dtype", nb::none())))) {
    return *number;
  }
  if (nb::isinstance<nb::int_>(value)) return to_int(value, what);
  if (nb::isinstance<nb::float_>(value)) return static_cast<float>(nb::cast<double>(value));
  throw nb::type_error(fmt::format("{}: need an array of the body, a number, or a pair of a number "
                                   "and its dtype: not '{}'",
                                   what, type_text(value))
                           .c_str());
}

/// Errors: the value is no argument of a kernel; it is an array of another call of a body.
GpuArgument argument_of(const Context& context, const std::string& name, nb::handle value) {
  if (nb::isinstance<GpuArray>(value)) {
    const auto& array = nb::cast<const GpuArray&>(value);
    if (array.body != context.body()) {
      throw Error(ErrorKind::runtime, context.get().op(),
                  fmt::format("argument {}: an array of another call of a body", name),
                  array.elements.tensor().str(), "arrays are valid during the body that got them");
    }
    if (array.writes) return GpuArgument(name, array.elements);
    return GpuArgument(name, static_cast<const CustomInput&>(array.elements));
  }
  return std::visit([&](auto number) { return GpuArgument(name, number); },
                    number_of(value, "launch: argument " + name));
}

KernelConstant constant_of(const std::string& name, nb::handle value) {
  KernelConstant constant{name, int32_t{0}};
  if (is_dtype(value)) {
    constant.value = nb::cast<const PyDType&>(value).value;
  } else {
    std::visit([&](auto number) { constant.value = number; },
               number_of(value, "launch: constant " + name));
  }
  return constant;
}

void launch(const Context& context, const std::string& body, const KernelGrid& grid,
            const std::string& header, nb::handle constants, const nb::kwargs& arguments) {
  GpuContext& gpu = context.get();
  KernelText text{.body = body, .header = header};
  if (!constants.is_none()) {
    if (!nb::isinstance<nb::dict>(constants)) {
      throw nb::type_error(
          fmt::format("launch: constants: need a dict: not '{}'", type_text(constants)).c_str());
    }
    for (const auto& [name, value] : nb::borrow<nb::dict>(constants)) {
      text.constants.push_back(constant_of(utf8_of(name, "launch: name of a constant"), value));
    }
  }
  std::vector<GpuArgument> all;
  for (const auto& [name, value] : arguments) {
    all.push_back(argument_of(context, utf8_of(name, "launch: name of an argument"), value));
  }
  const ReleasedGil released;  // a first launch compiles the text
  gpu.launch(text, grid, all);
}

void launch_code(const Context& context, const KernelCode& code, const std::string& function,
                 const KernelGrid& grid, const nb::args& arguments) {
  GpuContext& gpu = context.get();
  std::vector<GpuArgument> all;
  for (const nb::handle value : arguments) {
    all.push_back(argument_of(context, fmt::format("{}", all.size()), value));
  }
  const ReleasedGil released;
  gpu.launch(code, function, grid, all);
}

std::array<int64_t, 3> three(nb::handle object, const char* what) {
  const std::vector<int64_t> given = IntsArg{object}.get(what);
  if (given.empty() || given.size() > 3) {
    throw nb::value_error(fmt::format("{}: need one to three sizes", what).c_str());
  }
  std::array<int64_t, 3> all = {1, 1, 1};
  std::copy(given.begin(), given.end(), all.begin());
  return all;
}

// ---- The op ----

/// Whether a Python op has a method or a text of this name.
bool has(const nb::object& op, const char* name) {
  const nb::object found = nb::getattr(op, name, nb::none());
  return !found.is_none();
}

std::string name_of(const nb::object& op) {
  const nb::object name = nb::getattr(op, "name", nb::none());
  if (nb::isinstance<nb::str>(name)) return utf8_of(name, "custom op: name");
  throw nb::type_error(
      fmt::format("custom op: {}: need the attribute `name`, a str", type_text(op)).c_str());
}

bool flag(const nb::object& op, const char* name) {
  return nb::cast<bool>(nb::bool_(nb::getattr(op, name, nb::bool_(false))));
}

/// Calls a method with arguments from a list.
nb::object call(const nb::object& op, const char* method, const nb::list& arguments) {
  return op.attr(method)(*arguments);
}

/// An array of NumPy over the elements that a CPU body writes.
nb::object writable_array(const CustomOutput& out) {
  const Tensor& x = out.tensor();
  const nb::object like = nb::cast(x).attr("numpy")();
  const Py_ssize_t item = info(x.dtype()).block_bytes;
  nb::list strides;
  for (int d = 0; d < x.rank(); ++d) strides.append(x.layout().stride(d) * item);
  const nb::object memory = nb::cast(Memory{x, static_cast<Py_ssize_t>(x.storage()->bytes())});
  return nb::module_::import_("numpy").attr("ndarray")(
      ints(x.shape().dims()), "dtype"_a = like.attr("dtype"), "buffer"_a = memory,
      "offset"_a = x.layout().offset() * item, "strides"_a = nb::tuple(strides));
}

void run_cpu_body(const CustomBody& body, const nb::object& op, const CustomArguments& arguments) {
  const nb::object out = writable_array(arguments.out);
  nb::list all;
  all.append(out);
  for (const CustomInput& x : arguments.in) all.append(nb::cast(x.tensor()).attr("numpy")());
  const nb::object given = call(op, "cpu", all);
  if (!given.is_none()) {
    // A body may also return the result.
    const nb::object numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(given);
    if (!array.attr("shape").equal(out.attr("shape"))) {
      throw Error(body.name(), "cpu returned an array of another shape",
                  nb::repr(array.attr("shape")).c_str(),
                  fmt::format("need {}", arguments.out.shape().str()));
    }
    numpy.attr("copyto")(out, array, "casting"_a = "same_kind");
  }
  out.attr("setflags")("write"_a = false);
}

/// The bodies of an op: Base is CustomOp or InplaceOp.
template <class Base>
class PythonBodies : public Base, public HasOpReference {
 public:
  explicit PythonBodies(const nb::object& op) : Base(name_of(op)), op_(op) {
    takes_strides_ = flag(op, "takes_strides");
    falls_back_ = flag(op, "cpu_fallback");
  }
  bool takes_strides() const override { return takes_strides_; }
  bool falls_back_to_cpu() const override { return falls_back_; }

  void run_cpu(const CustomArguments& arguments) const override {
    const HeldGil held;
    if (!has(op(), "cpu")) Base::no_body();
    run_cpu_body(*this, op(), arguments);
  }
  void run_cuda(GpuContext& gpu, const CustomArguments& a) const override { run(gpu, a, "cuda"); }
  void run_rocm(GpuContext& gpu, const CustomArguments& a) const override { run(gpu, a, "rocm"); }

  bool is_first_fallback() const override {
    const HeldGil held;
    return nb::cast<bool>(op().attr("_is_first_fallback")());
  }
  void warn(const std::string& message) const override {
    const HeldGil held;
    op().attr("_warn")(message);
  }

 protected:
  const nb::object& op() const { return op_.get(); }

 private:
  const OpReference& op_reference() const override { return op_; }
  void run(GpuContext& gpu, const CustomArguments& arguments, const char* vendor) const {
    const HeldGil held;
    const char* const method = has(op(), vendor)         ? vendor
                               : has(op(), "gpu")        ? "gpu"
                               : has(op(), "gpu_source") ? "_launch_source"
                                                         : nullptr;
    if (method == nullptr) Base::no_body();
    const Context body(gpu);
    const nb::object context = nb::cast(body);
    nb::list all;
    all.append(context);
    all.append(GpuArray{arguments.out, true, body.body()});
    for (const CustomInput& x : arguments.in) {
      all.append(GpuArray{CustomOutput(this->name(), x.tensor()), false, body.body()});
    }
    struct Ends {
      const nb::object& context;
      ~Ends() { nb::cast<Context&>(context).end(); }
    } ends{context};
    call(op(), method, all);
  }

  OpReference op_;
  bool takes_strides_ = false, falls_back_ = false;
};

nb::list without_gradients(const Operands& operands) {
  nb::list all;
  for (size_t i = 0; i < operands.size(); ++i) all.append(nb::cast(operands[i].detach()));
  return all;
}

class PythonOp final : public PythonBodies<CustomOp> {
 public:
  using PythonBodies::PythonBodies;

  ResultSpec infer(const Operands& operands) const override {
    const HeldGil held;
    const nb::object given = call(op(), "shape", without_gradients(operands));
    if (nb::isinstance<Tensor>(given)) return like(nb::cast<const Tensor&>(given));
    if (!nb::isinstance<nb::tuple>(given) || nb::len(given) != 2) {
      throw nb::type_error(fmt::format("{}: shape must return a tensor like the result, or a tuple "
                                       "(shape, dtype): not '{}'",
                                       name(), type_text(given))
                               .c_str());
    }
    const nb::object shape = given[0], dtype = given[1];
    return dense(DTypeArg{dtype}.get(), ShapeArg{shape}.get(name()));
  }

  std::vector<Tensor> vjp(std::span<const Tensor> operands, const Tensor& y,
                          const Tensor& grad) const override {
    const HeldGil held;
    if (!has(op(), "backward")) return CustomOp::vjp(operands, y, grad);
    nb::list all;
    for (const Tensor& x : operands) all.append(nb::cast(x));
    all.append(nb::cast(y));
    all.append(nb::cast(grad));
    const nb::object given = call(op(), "backward", all);
    std::vector<nb::object> gradients;
    if (nb::isinstance<nb::tuple>(given) || nb::isinstance<nb::list>(given)) {
      gradients = items_of(given);
    } else {
      gradients.push_back(given);
    }
    std::vector<Tensor> result;
    for (const nb::object& gradient : gradients) {
      if (gradient.is_none()) {
        result.emplace_back();
      } else if (nb::isinstance<Tensor>(gradient)) {
        result.push_back(nb::cast<Tensor>(gradient));
      } else {
        throw nb::type_error(fmt::format("{}: backward must return a tensor or None for each "
                                         "operand: not '{}'",
                                         name(), type_text(gradient))
                                 .c_str());
      }
    }
    return result;
  }
};

class PythonInplaceOp final : public PythonBodies<InplaceOp> {
 public:
  using PythonBodies::PythonBodies;
  void check_operands(const Operands& operands) const override {
    const HeldGil held;
    call(op(), "check", without_gradients(operands));
  }
};

/// References to the tensors of a list. The tensors aren't copied, because a copy would be another
/// owner of the elements that an in-place op writes.
std::vector<const Tensor*> tensors_of(nb::handle operands, const nb::object& op) {
  std::vector<const Tensor*> all;
  for (const nb::object& x : items_of(operands)) {  // the sequence keeps them alive
    if (!nb::isinstance<Tensor>(x)) {
      throw nb::type_error(
          fmt::format("{}: need a tensor: not '{}'", name_of(op), type_text(x)).c_str());
    }
    all.push_back(&nb::cast<const Tensor&>(x));
  }
  return all;
}

Tensor apply_python(const nb::object& op, const nb::tuple& operands, bool grad) {
  const std::vector<const Tensor*> tensors = tensors_of(operands, op);
  const auto body = std::make_shared<const PythonOp>(op);
  return grad ? apply_op(body, Operands(tensors)) : apply_op_no_grad(body, Operands(tensors));
}

void inplace_python(const nb::object& op, const nb::tuple& operands) {
  const std::vector<const Tensor*> tensors = tensors_of(operands, op);
  inplace_op(std::make_shared<const PythonInplaceOp>(op), Operands(tensors));
}

}  // namespace

void bind_custom(nb::module_& m) {
  release_ops_with(m);
  nb::class_<Memory>(m, "_Memory", nb::type_slots(memory_slots));

  nb::class_<KernelGrid>(m, "KernelGrid", "The launch geometry of a kernel.")
      .def(
          "__init__",
          [](KernelGrid* self, IntsArg blocks, IntsArg threads, int64_t shared_bytes) {
            new (self) KernelGrid{three(blocks.object, "KernelGrid: blocks"),
                                  three(threads.object, "KernelGrid: threads"), shared_bytes};
          },
          "blocks"_a, "threads"_a = 256, "shared_bytes"_a = 0,
          "blocks: blocks of the grid; threads: threads of a block: one to three sizes each. "
          "shared_bytes: dynamic shared memory of a block.")
      .def_static("over", &KernelGrid::over, "elems"_a, "threads"_a = 256,
                  "A grid with at least one thread for each of elems elements, along the first "
                  "axis.")
      .def_prop_ro(
          "blocks", [](const KernelGrid& g) { return ints(g.blocks); },
          nb::sig("def blocks(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "threads", [](const KernelGrid& g) { return ints(g.threads); },
          nb::sig("def threads(self) -> tuple[int, ...]"))
      .def_ro("shared_bytes", &KernelGrid::shared_bytes);

  nb::class_<KernelCode>(
      m, "KernelCode",
      "A code object with kernels: PTX or a cubin for NVIDIA, an ELF code object "
      "for AMD. Make it once, because its bytes are hashed.")
      .def(
          "__init__",
          [](KernelCode* self, const nb::bytes& code) {
            new (self) KernelCode(std::string(code.c_str(), code.size()));
          },
          "code"_a)
      .def_prop_ro("digest", &KernelCode::digest);

  nb::class_<GpuArray>(m, "GpuArray",
                       "Elements in a GPU's memory, as the GPU body of a custom op sees them.")
      .def_prop_ro(
          "data_ptr",
          [](const GpuArray& x) { return reinterpret_cast<uintptr_t>(x.elements.address()); },
          "The address of the first element.")
      .def_prop_ro(
          "shape", [](const GpuArray& x) { return ints(x.elements.shape().dims()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const GpuArray& x) { return strides_of(x.elements); },
          nb::sig("def strides(self) -> tuple[int, ...]"),
          "Distances of adjacent elements along each dim, in elements.")
      .def_prop_ro(
          "dtype", [](const GpuArray& x) { return dtype_object(x.elements.dtype()); },
          nb::sig("def dtype(self) -> DType"))
      .def_prop_ro(
          "size", [](const GpuArray& x) { return x.elements.elems(); }, "The number of elements.");

  nb::class_<Context>(m, "GpuContext",
                      "What the GPU body of a custom op works with. It is valid during the body.")
      .def_prop_ro("device", [](const Context& c) { return c.get().device().str(); })
      .def_prop_ro(
          "stream", [](const Context& c) { return reinterpret_cast<uintptr_t>(c.get().stream()); },
          "The driver's handle of the stream of the op's work, as an address. Other libraries "
          "submit their work there and don't wait for it.")
      .def_prop_ro("multiprocessors",
                   [](const Context& c) { return c.get().limits().multiprocessors; })
      .def_prop_ro(
          "shared_bytes", [](const Context& c) { return c.get().limits().shared_bytes; },
          "The most shared memory of a thread block.")
      .def(
          "scratch",
          [](const Context& c, int64_t count, DTypeArg dtype) {
            const DType type = dtype.get();
            const Tensor x = Tensor::empty({count}, type, c.get().device());
            return GpuArray{CustomOutput("scratch", x), true, c.body()};
          },
          "count"_a, "dtype"_a, "Uninitialised memory for count elements from the device's pool.")
      .def("launch", &launch, "body"_a, "grid"_a, nb::kw_only(), "header"_a = "",
           "constants"_a = nb::none(), "arguments"_a,
           nb::sig("def launch(self, body: str, grid: KernelGrid, *, header: str = '', constants: "
                   "dict[str, typing.Any] | None = None, **arguments: typing.Any) -> None"),
           "Launches a kernel that is given as the text of its body. The keyword arguments are the "
           "kernel's arguments: arrays of the body, and numbers (a float is a float32, an int an "
           "int64). Constants are constexpr in the text: numbers and dtypes.\nErrors: the text "
           "doesn't compile; there is no run-time compiler; the grid exceeds a limit.")
      .def("launch_code", &launch_code, "code"_a, "function"_a, "grid"_a, "arguments"_a,
           nb::sig("def launch_code(self, code: KernelCode, function: str, grid: KernelGrid, "
                   "*arguments: typing.Any) -> None"),
           "Launches a kernel of a code object. Arrays are passed as the address of the first "
           "element, numbers as int64 or float32, or as (number, dtype).\nErrors: the driver "
           "rejects the code; there is no such kernel; the arguments have another size than the "
           "kernel's; the grid exceeds a limit.");

  m.def("_apply_op", &apply_python, "op"_a, "operands"_a, "grad"_a,
        nb::sig("def _apply_op(op: object, operands: tuple[Tensor, ...], grad: bool) -> Tensor"));
  m.def("_inplace_op", &inplace_python, "op"_a, "operands"_a,
        nb::sig("def _inplace_op(op: object, operands: tuple[Tensor, ...]) -> None"));
}

}  // namespace wick::python
