// The products of matrices that ggml's ROCm build asks of hipBLAS, computed on the host: a stand-in
// for machines without AMD's libraries, for small models on the emulator. Column-major, as BLAS.
// Sums are in double precision. What isn't needed ends the process.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipStreamSynchronize(void *stream);

enum { kToHost = 2, kToDevice = 1 };            // hipMemcpyKind
enum { kNone = 111, kTransposed = 112 };        // hipblasOperation_t
enum { kHalf = 150, kFloat = 151, kBf16 = 168 };  // hipblasDatatype_t
static void *streams[64];

static void refuse(const char *what, long value) {
  fprintf(stderr, "hipblas stand-in: %s %ld isn't known\n", what, value);
  abort();
}
#define REFUSE(name)                                \
  int name(void) {                                  \
    fputs(#name " is only a stand-in\n", stderr);   \
    abort();                                        \
  }
REFUSE(hipblasSgemmBatched)
REFUSE(hipblasStrsmBatched)

int hipblasCreate(void **handle) {
  static int made;
  if (made >= 64) refuse("handle", made);
  *handle = &streams[made++];
  return 0;
}
int hipblasDestroy(void *handle) { return handle == NULL; }
int hipblasSetStream(void *handle, void *stream) {
  *(void **)handle = stream;
  return 0;
}

static double value(const void *from, int type, int64_t i) {
  if (type == kHalf) return (double)((const _Float16 *)from)[i];
  if (type == kFloat) return ((const float *)from)[i];
  const uint32_t bits = (uint32_t)((const uint16_t *)from)[i] << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static int64_t bytes_of(int type) {
  if (type != kHalf && type != kFloat && type != kBf16) refuse("dtype", type);
  return type == kFloat ? 4 : 2;
}

/// A matrix on the device, copied.
static void *fetch(const void *device, int type, int64_t columns, int64_t step) {
  const size_t bytes = (size_t)(columns * step * bytes_of(type));
  void *host = malloc(bytes);
  if (host == NULL || hipMemcpy(host, device, bytes, kToHost) != 0) refuse("copy of bytes", (long)bytes);
  return host;
}

static void multiply(int a_op, int b_op, int m, int n, int k, double alpha, const void *a, int a_type,
                     int lda, const void *b, int b_type, int ldb, double beta, void *c, int c_type,
                     int ldc) {
  if ((a_op != kNone && a_op != kTransposed) || (b_op != kNone && b_op != kTransposed)) {
    refuse("operation", a_op);
  }
  void *x = fetch(a, a_type, a_op == kNone ? k : m, lda);
  void *y = fetch(b, b_type, b_op == kNone ? n : k, ldb);
  void *z = fetch(c, c_type, n, ldc);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0.0;
      for (int64_t l = 0; l < k; ++l) {
        sum += value(x, a_type, a_op == kNone ? l * lda + i : i * lda + l) *
               value(y, b_type, b_op == kNone ? j * ldb + l : l * ldb + j);
      }
      const int64_t at = j * ldc + i;
      const double result = alpha * sum + (beta != 0.0 ? beta * value(z, c_type, at) : 0.0);
      if (c_type == kFloat) {
        ((float *)z)[at] = (float)result;
      } else if (c_type == kHalf) {
        ((_Float16 *)z)[at] = (_Float16)(float)result;
      } else {
        refuse("dtype of a result", c_type);
      }
    }
  }
  if (hipMemcpy(c, z, (size_t)(n * (int64_t)ldc * bytes_of(c_type)), kToDevice) != 0) refuse("copy", 0);
  free(x), free(y), free(z);
}

/// alpha and beta have the dtype that the product is computed in.
static double scalar(const void *from, int compute) {
  return value(from, compute == kHalf ? kHalf : kFloat, 0);
}

int hipblasGemmEx(void *handle, int a_op, int b_op, int m, int n, int k, const void *alpha,
                  const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                  const void *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
  (void)algorithm;
  hipStreamSynchronize(*(void **)handle);
  multiply(a_op, b_op, m, n, k, scalar(alpha, compute), a, a_type, lda, b, b_type, ldb,
           scalar(beta, compute), c, c_type, ldc);
  return 0;
}

int hipblasGemmStridedBatchedEx(void *handle, int a_op, int b_op, int m, int n, int k,
                                const void *alpha, const void *a, int a_type, int lda,
                                int64_t a_step, const void *b, int b_type, int ldb, int64_t b_step,
                                const void *beta, void *c, int c_type, int ldc, int64_t c_step,
                                int count, int compute, int algorithm) {
  (void)algorithm;
  hipStreamSynchronize(*(void **)handle);
  for (int64_t i = 0; i < count; ++i) {
    multiply(a_op, b_op, m, n, k, scalar(alpha, compute),
             (const char *)a + i * a_step * bytes_of(a_type), a_type, lda,
             (const char *)b + i * b_step * bytes_of(b_type), b_type, ldb, scalar(beta, compute),
             (char *)c + i * c_step * bytes_of(c_type), c_type, ldc);
  }
  return 0;
}

int hipblasGemmBatchedEx(void *handle, int a_op, int b_op, int m, int n, int k, const void *alpha,
                         const void *const *a, int a_type, int lda, const void *const *b, int b_type,
                         int ldb, const void *beta, void *const *c, int c_type, int ldc, int count,
                         int compute, int algorithm) {
  (void)algorithm;
  hipStreamSynchronize(*(void **)handle);
  const size_t bytes = (size_t)count * sizeof(void *);
  const void **as = malloc(bytes), **bs = malloc(bytes);
  void **cs = malloc(bytes);
  if (hipMemcpy(as, a, bytes, kToHost) || hipMemcpy(bs, b, bytes, kToHost) ||
      hipMemcpy(cs, c, bytes, kToHost)) {
    refuse("copy of bytes", (long)bytes);
  }
  for (int i = 0; i < count; ++i) {
    multiply(a_op, b_op, m, n, k, scalar(alpha, compute), as[i], a_type, lda, bs[i], b_type, ldb,
             scalar(beta, compute), cs[i], c_type, ldc);
  }
  free(as), free(bs), free(cs);
  return 0;
}

int hipblasSgemm(void *handle, int a_op, int b_op, int m, int n, int k, const float *alpha,
                 const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                 int ldc) {
  hipStreamSynchronize(*(void **)handle);
  multiply(a_op, b_op, m, n, k, *alpha, a, kFloat, lda, b, kFloat, ldb, *beta, c, kFloat, ldc);
  return 0;
}

int hipblasSgemmStridedBatched(void *handle, int a_op, int b_op, int m, int n, int k,
                               const float *alpha, const float *a, int lda, long long a_step,
                               const float *b, int ldb, long long b_step, const float *beta,
                               float *c, int ldc, long long c_step, int count) {
  hipStreamSynchronize(*(void **)handle);
  for (long long i = 0; i < count; ++i) {
    multiply(a_op, b_op, m, n, k, *alpha, a + i * a_step, kFloat, lda, b + i * b_step, kFloat, ldb,
             *beta, c + i * c_step, kFloat, ldc);
  }
  return 0;
}
