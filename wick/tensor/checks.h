#pragma once

#include "wick/op/op.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Checks of operands that run before a backend is called. `as` is the name in error messages if it
// differs from the row's name.

/// The view of an optional operand; an absent one has null data.
inline ConstView view_of(const Tensor& t) { return t.defined() ? t.view() : ConstView{}; }
/// Errors: x is undefined, or has a dtype that the op's row doesn't list.
void check_operand(Op op, const Tensor& x, const char* as = nullptr);
/// Errors: the operands have different dtypes or devices.
void check_same(Op op, const Tensor& a, const Tensor& b, const char* as = nullptr);
/// Returns the bytes of a dense tensor. Errors: the last dim isn't a multiple of the block size;
/// there are too many elements or bytes.
size_t storage_bytes(const Shape& shape, DType dtype);
/// Errors: a tensor is undefined, or the tensors are on different devices.
void check_device(const char* op, const Tensor& a, const Tensor& b);
/// Errors: a call that writes in place would have to be recorded for x.
void check_no_gradient(const char* op, const Tensor& x);
/// Must be called before a function writes to `target` in place; counts the write. A leaf's storage
/// may be shared, because backward() detects writes to recorded operands. `owners`: the number of
/// the call's tensors that share target's storage. Errors: target needs a gradient, target is
/// mapped, or other tensors share its storage.
void check_writable(const char* op, const Tensor& target, long owners = 1);

}  // namespace wick
