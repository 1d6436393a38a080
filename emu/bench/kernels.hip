// Kernels whose speed is measured: see bench.cpp.

#define WG __attribute__((global))

extern "C" WG void add(const float* a, const float* b, float* c, int n) {
  const int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
                __builtin_amdgcn_workitem_id_x();
  if (i < n) c[i] = a[i] + b[i];
}

// One element of c an item, straight from memory.
extern "C" WG void gemm(const float* a, const float* b, float* c, int n) {
  const int col = __builtin_amdgcn_workgroup_id_x() * 16 + __builtin_amdgcn_workitem_id_x();
  const int row = __builtin_amdgcn_workgroup_id_y() * 16 + __builtin_amdgcn_workitem_id_y();
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = __builtin_fmaf(a[row * n + k], b[k * n + col], sum);
  c[row * n + col] = sum;
}

// The same with tiles in LDS.
extern "C" WG void gemm_lds(const float* a, const float* b, float* c, int n) {
  static __attribute__((shared)) float x[16][16], y[16][16];
  const int tx = __builtin_amdgcn_workitem_id_x(), ty = __builtin_amdgcn_workitem_id_y();
  const int col = __builtin_amdgcn_workgroup_id_x() * 16 + tx;
  const int row = __builtin_amdgcn_workgroup_id_y() * 16 + ty;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    x[ty][tx] = a[row * n + k + tx];
    y[ty][tx] = b[(k + ty) * n + col];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    for (int i = 0; i < 16; ++i) sum = __builtin_fmaf(x[ty][i], y[i][tx], sum);
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  c[row * n + col] = sum;
}

// Arithmetic alone: what the interpreter can do at best.
extern "C" WG void polynomial(float* y, int n) {
  const int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
                __builtin_amdgcn_workitem_id_x();
  float x = y[i], s = 0;
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int j = 0; j < 16; ++j) s = __builtin_fmaf(s, x, 0.5f + static_cast<float>(j));
  }
  y[i] = s;
}
