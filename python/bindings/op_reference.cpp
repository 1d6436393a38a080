#include "python/bindings/op_reference.h"

#include <unordered_set>
#include <utility>

#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

/// All references that hold an op. The GIL guards it.
std::unordered_set<OpReference*>& references() {
  static auto* const all = new std::unordered_set<OpReference*>;
  return *all;
}

}  // namespace

OpReference::OpReference(nb::object op) : op_(std::move(op)) { references().insert(this); }

OpReference::~OpReference() {
  bool freed = false;
  with_gil_if_alive([&] {
    references().erase(this);
    op_.reset();
    freed = true;
  });
  if (!freed) op_.release();
}

const nb::object& OpReference::get() const {
  if (!op_.is_valid()) {
    throw Error(ErrorKind::runtime, "custom op", "called while the interpreter ends");
  }
  return op_;
}

bool can_traverse_ops() { return threads_without_gil == 0 && !references().empty(); }

int traverse_ops(const std::vector<const CustomBody*>& ops, visitproc visit, void* arg) {
  for (const CustomBody* op : ops) {
    const auto* const python = dynamic_cast<const HasOpReference*>(op);
    if (python != nullptr) Py_VISIT(python->op_reference().ptr());
  }
  return 0;
}

void release_ops() {
  std::vector<nb::object> ops;  // destroyed last: that may run any code
  for (OpReference* reference : references()) ops.push_back(std::move(reference->op_));
  references().clear();
}

void release_ops_with(nb::module_& m) {
  static int sentinel;  // a capsule needs an address
  m.attr("_op_references") = nb::capsule(&sentinel, [](void*) noexcept { release_ops(); });
}

}  // namespace wick::python
