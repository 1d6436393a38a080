#pragma once

#include "wick/op/op.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Checks of operands, made before a backend is called. `as` names the function in errors where it
// isn't the row's name.

/// Errors: undefined, or a dtype that the op's row doesn't name.
void check_operand(Op op, const Tensor& x, const char* as = nullptr);
/// Errors: two operands of different dtypes or devices.
void check_same(Op op, const Tensor& a, const Tensor& b, const char* as = nullptr);
/// Bytes of a dense tensor. Errors: the last dim isn't whole blocks, too many elements or bytes.
size_t storage_bytes(const Shape& shape, DType dtype);
/// Errors: an undefined tensor, tensors on different devices.
void check_device(const char* op, const Tensor& a, const Tensor& b);
/// Errors: a target whose storage is a mapped file's, or shared with another tensor.
/// Errors: a call that writes in place would have to be recorded for x.
void check_no_gradient(const char* op, const Tensor& x);
/// Before a function writes to target in place, which is counted. A leaf may be shared: what its
/// uses recorded is checked by backward(). `owners`: tensors of the call that share its storage.
/// Errors: a gradient is wanted, target is mapped, or others share its storage.
void check_writable(const char* op, const Tensor& target, long owners = 1);

}  // namespace wick
