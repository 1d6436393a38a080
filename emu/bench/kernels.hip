// Kernels whose speed bench.cpp measures.

#define WG __attribute__((global))

extern "C" WG void add(const float* a, const float* b, float* c, int n) {
  const int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
                __builtin_amdgcn_workitem_id_x();
  if (i < n) c[i] = a[i] + b[i];
}

// Each work-item computes one element of c directly from global memory.
extern "C" WG void gemm(const float* a, const float* b, float* c, int n) {
  const int col = __builtin_amdgcn_workgroup_id_x() * 16 + __builtin_amdgcn_workitem_id_x();
  const int row = __builtin_amdgcn_workgroup_id_y() * 16 + __builtin_amdgcn_workitem_id_y();
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = __builtin_fmaf(a[row * n + k], b[k * n + col], sum);
  c[row * n + col] = sum;
}

// Computes the same matrix product with tiles in LDS.
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

// Some 2000 instructions, for measuring the time to load a kernel: see load_time().
#define STEP(i) x = __builtin_fmaf(x, y, i##.5f); y = y > x ? y - i##.25f : x * y; \
  if (n == i) z += x; z ^= z << (i & 7);
#define STEPS(i) STEP(i##0) STEP(i##1) STEP(i##2) STEP(i##3) STEP(i##4) STEP(i##5) STEP(i##6) STEP(i##7)
extern "C" WG void long_one(float* out, int n) {
  const int i = __builtin_amdgcn_workitem_id_x();
  float x = out[i], y = x + 1;
  int z = n;
  STEPS(1) STEPS(2) STEPS(3) STEPS(4) STEPS(5) STEPS(6) STEPS(7)
  STEPS(11) STEPS(12) STEPS(13) STEPS(14) STEPS(15) STEPS(16) STEPS(17)
  STEPS(21) STEPS(22) STEPS(23) STEPS(24) STEPS(25) STEPS(26) STEPS(27)
  STEPS(31) STEPS(32) STEPS(33) STEPS(34) STEPS(35) STEPS(36) STEPS(37)
  STEPS(41) STEPS(42) STEPS(43) STEPS(44) STEPS(45) STEPS(46) STEPS(47)
  out[i] = x + y + static_cast<float>(z);
}

// Only arithmetic: the upper bound of the interpreter's speed.
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
