// A stand-in for cuBLASLt, for tests with the stand-in for NVIDIA's driver. Written from the
// documentation of the cuBLAS library.

#include "tests/backend/stand_in_lt.h"

const stand_in::RuntimeNames stand_in::kRuntime = {"WICK_CUDA_LIBRARY", "cuStreamSynchronize",
                                                   "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
                                                   nullptr};
const stand_in::LtNumbers stand_in::kLt = {.invalid_value = 7,
                                           .not_initialized = 1,
                                           .not_supported = 15,
                                           .compute_f32 = 68,
                                           .no_transpose = 0,
                                           .transpose = 1,
                                           .batch_count = 5,
                                           .batch_stride = 6,
                                           .transpose_first = 3,
                                           .transpose_second = 4,
                                           .workspace_bytes = 1,
                                           .alignments = 5};

WICK_STAND_IN_LT(cublasLt)

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() { return 130'100; }
