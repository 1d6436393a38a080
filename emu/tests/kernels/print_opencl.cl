// A kernel whose printf records have OpenCL's layout.

int printf(__constant const char* format, ...);

/// The compiler calls this function for each printf().
__attribute__((weak)) __global char* __printf_alloc(uint bytes) {
  __global uint* buffer =
      (__global uint*)((__constant ulong*)__builtin_amdgcn_implicitarg_ptr())[9];
  const uint used = __opencl_atomic_fetch_add((__global atomic_uint*)buffer, bytes,
                                              memory_order_relaxed, memory_scope_device);
  return (__global char*)(buffer + 2) + used;
}

__kernel void say(int from, float4 vector) {
  printf("item: %d %.2f %s %v4hlf %ld\t100%%\n", from + (int)__builtin_amdgcn_workitem_id_x(), 1.5f,
         "literal", vector, 5000000000L);
}
