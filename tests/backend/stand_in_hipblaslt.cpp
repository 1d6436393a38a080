// A stand-in for hipBLASLt, for tests on the software AMD GPU. Written from the hipBLASLt API
// reference.

#include "tests/backend/stand_in_lt.h"

const stand_in::RuntimeNames stand_in::kRuntime = {"WICK_HIP_LIBRARY", "hipStreamSynchronize",
                                                   "hipMemcpyDtoHAsync", "hipMemcpyHtoDAsync",
                                                   "hipGetDevice"};
const stand_in::LtNumbers stand_in::kLt = {.invalid_value = 3,
                                           .not_initialized = 1,
                                           .not_supported = 7,
                                           .compute_f32 = 2,
                                           .no_transpose = 111,
                                           .transpose = 112,
                                           .batch_count = 0,
                                           .batch_stride = 1,
                                           .transpose_first = 0,
                                           .transpose_second = 1,
                                           .workspace_bytes = 1,
                                           .alignments = -1};

WICK_STAND_IN_LT(hipblasLt)

WICK_STAND_IN hipblasLtGetVersion(void* handle, int* version) {
  if (!stand_in::lt_handles.contains(handle) || version == nullptr) {
    return stand_in::complain(stand_in::kLt.not_initialized, "GetVersion", "null or gone");
  }
  *version = 1002;  // version 0.10.2
  return 0;
}
