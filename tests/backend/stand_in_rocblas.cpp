// A stand-in for rocBLAS, for tests on the software AMD GPU. It rejects what the documentation
// forbids and prints a complaint; everything else is computed by plain loops. Written from the
// rocBLAS API reference.

#include <map>
#include <mutex>

#include "tests/backend/stand_in_matrix.h"

#define STAND_IN extern "C" __attribute__((visibility("default")))

const stand_in::RuntimeNames stand_in::kRuntime = {"WICK_HIP_LIBRARY", "hipStreamSynchronize",
                                                   "hipMemcpyDtoHAsync", "hipMemcpyHtoDAsync",
                                                   "hipGetDevice"};

namespace {

using stand_in::complain;
using stand_in::Matrices;
using stand_in::Type;

enum Status : int {
  kSuccess = 0,
  kInvalidHandle = 1,
  kNotImplemented = 2,
  kInvalidPointer = 3,
  kInvalidSize = 4,
  kInternalError = 6,
  kInvalidValue = 11,
};
constexpr int kNone = 111, kTranspose = 112;

struct Handle {
  int device = -1;
  bool has_stream = false;
  void* stream = nullptr;
  int pointer_mode = 0, atomics_mode = 1;
};

std::mutex mutex;
std::map<void*, Handle> handles;

template <class Do>
int with(void* handle, const char* function, const Do& act) {
  std::lock_guard lock(mutex);
  const auto at = handles.find(handle);
  if (at == handles.end()) {
    return complain(kInvalidHandle, function, "a handle that isn't there or was destroyed");
  }
  return act(at->second);
}

bool type_of(int number, Type& type) {
  type = number == 150 ? Type::f16 : number == 151 ? Type::f32 : Type::bf16;
  return number == 150 || number == 151 || number == 168;
}

/// Returns whether the leading dimension is at least the number of stored rows.
bool good_ld(int ld, int rows) { return ld >= 1 && ld >= rows; }

}  // namespace

STAND_IN int rocblas_create_handle(void** handle) {
  if (handle == nullptr) return complain(kInvalidHandle, "create_handle", "null");
  std::lock_guard lock(mutex);
  *handle = std::malloc(1);
  handles[*handle].device = stand_in::current_device();
  return kSuccess;
}
STAND_IN int rocblas_destroy_handle(void* handle) {
  return with(handle, "destroy_handle", [&](Handle&) {
    handles.erase(handle);
    std::free(handle);
    return kSuccess;
  });
}
STAND_IN int rocblas_set_stream(void* handle, void* stream) {
  return with(handle, "set_stream", [&](Handle& h) {
    h.stream = stream;
    h.has_stream = true;
    return kSuccess;
  });
}
STAND_IN int rocblas_set_pointer_mode(void* handle, int mode) {
  return with(handle, "set_pointer_mode", [&](Handle& h) -> int {
    if (mode != 0 && mode != 1) return complain(kInvalidValue, "set_pointer_mode", "no such mode");
    h.pointer_mode = mode;
    return kSuccess;
  });
}
STAND_IN int rocblas_set_atomics_mode(void* handle, int mode) {
  return with(handle, "set_atomics_mode", [&](Handle& h) -> int {
    if (mode != 0 && mode != 1) return complain(kInvalidValue, "set_atomics_mode", "no such mode");
    h.atomics_mode = mode;
    return kSuccess;
  });
}
STAND_IN int rocblas_get_version_string(char* text, size_t bytes) {
  constexpr char kVersion[] = "4.2.1.12345-standin";
  if (text == nullptr) return complain(kInvalidPointer, "get_version_string", "null");
  if (bytes < sizeof kVersion) return kInvalidSize;
  std::memcpy(text, kVersion, sizeof kVersion);
  return kSuccess;
}
STAND_IN const char* rocblas_status_to_string(int status) {
  return status == kSuccess ? "rocblas_status_success" : "rocblas_status of the stand-in";
}

STAND_IN int rocblas_gemm_strided_batched_ex(void* handle, int op_a, int op_b, int m, int n, int k,
                                             const void* alpha, const void* a, int a_type, int lda,
                                             int64_t stride_a, const void* b, int b_type, int ldb,
                                             int64_t stride_b, const void* beta, const void* c,
                                             int c_type, int ldc, int64_t stride_c, void* d,
                                             int d_type, int ldd, int64_t stride_d, int batch,
                                             int compute_type, int algorithm, int32_t solution,
                                             uint32_t flags) {
  constexpr const char* kName = "gemm_strided_batched_ex";
  return with(handle, kName, [&](Handle& h) -> int {
    if (h.device != stand_in::current_device()) {
      return complain(kInvalidHandle, kName, "the handle is another device's");
    }
    if (!h.has_stream) return complain(kInternalError, kName, "no stream was set");
    if (h.pointer_mode != 0) return complain(kInvalidPointer, kName, "scalars aren't on the host");
    if ((op_a != kNone && op_a != kTranspose) || (op_b != kNone && op_b != kTranspose)) {
      return complain(kInvalidValue, kName, "no such operation");
    }
    Type type;
    if (!type_of(a_type, type) || b_type != a_type || c_type != a_type || d_type != a_type) {
      return complain(kNotImplemented, kName, "types");
    }
    if (compute_type != 151) return complain(kNotImplemented, kName, "the compute type isn't f32");
    if (algorithm != 0 || solution != 0 || flags != 0) {
      return complain(kInvalidValue, kName, "algorithm, solution or flags");
    }
    if (m < 0 || n < 0 || k < 0 || batch < 0) return complain(kInvalidSize, kName, "sizes");
    if (!good_ld(lda, op_a == kNone ? m : k) || !good_ld(ldb, op_b == kNone ? k : n) ||
        !good_ld(ldc, m) || !good_ld(ldd, m)) {
      return complain(kInvalidSize, kName, "a leading dimension is less than the rows");
    }
    if (m == 0 || n == 0 || batch == 0) return kSuccess;
    if (a == nullptr || b == nullptr || c == nullptr || d == nullptr || alpha == nullptr ||
        beta == nullptr) {
      return complain(kInvalidPointer, kName, "a pointer is null");
    }
    if (c == d && (ldc != ldd || stride_c != stride_d)) {
      return complain(kInvalidValue, kName, "c is d, but laid out in another way");
    }
    if (*static_cast<const float*>(beta) != 0) {
      return complain(kNotImplemented, kName, "the stand-in wants beta = 0");
    }
    const Matrices first{a, type, op_a == kNone ? m : k, op_a == kNone ? k : m, lda, stride_a};
    const Matrices second{b, type, op_b == kNone ? k : n, op_b == kNone ? n : k, ldb, stride_b};
    const bool done = stand_in::multiply(h.stream, batch, k, *static_cast<const float*>(alpha),
                                         first, op_a == kTranspose, second, op_b == kTranspose,
                                         Matrices{d, type, m, n, ldd, stride_d});
    return done ? kSuccess
                : complain(kInvalidPointer, kName, "not all of a matrix is on the device");
  });
}
