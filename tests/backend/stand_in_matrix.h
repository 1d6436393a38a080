#pragma once

// Shared code of the stand-ins for matrix libraries: access to device memory through the runtime
// that the test uses, matrix products by plain loops, and complaints. A complaint is a line
// "stand-in: …" on stderr. It fails every test that doesn't expect it.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "wick/math/half.h"

namespace stand_in {

/// The runtime functions that the stand-ins need. The environment variable in RuntimeNames names
/// the library.
struct Runtime {
  int (*synchronize)(void* stream);
  int (*to_host)(void* to, const void* from, size_t bytes, void* stream);
  int (*to_device)(void* to, const void* from, size_t bytes, void* stream);
  int (*device)(int* device);  ///< null if there is only one device
};
struct RuntimeNames {
  const char *variable, *synchronize, *to_host, *to_device, *device;
};
/// Each stand-in defines the names for its runtime.
extern const RuntimeNames kRuntime;

inline const Runtime& runtime() {
  static const Runtime found = [] {
    const char* path = std::getenv(kRuntime.variable);
    void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
    if (library == nullptr) {
      std::fprintf(stderr, "stand-in: %s names no runtime\n", kRuntime.variable);
      std::abort();
    }
    Runtime r = {};
    const auto find = [&](auto& function, const char* name) {
      if (name == nullptr) return;
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) std::abort();
    };
    find(r.synchronize, kRuntime.synchronize);
    find(r.to_host, kRuntime.to_host);
    find(r.to_device, kRuntime.to_device);
    find(r.device, kRuntime.device);
    return r;
  }();
  return found;
}

inline int current_device() {
  int device = 0;
  if (runtime().device != nullptr) runtime().device(&device);
  return device;
}

inline int complain(int code, const char* function, const char* what) {
  std::fprintf(stderr, "stand-in: %s: %s\n", function, what);
  return code;
}

/// Copies after all work on the stream, and waits.
inline bool to_host(void* to, const void* from, size_t bytes, void* stream) {
  return runtime().to_host(to, from, bytes, stream) == 0 && runtime().synchronize(stream) == 0;
}
inline bool to_device(void* to, const void* from, size_t bytes, void* stream) {
  return runtime().to_device(to, from, bytes, stream) == 0 && runtime().synchronize(stream) == 0;
}

enum class Type { f16, f32, bf16 };
inline size_t size_of(Type type) { return type == Type::f32 ? 4 : 2; }

inline float read(Type type, const char* at) {
  if (type == Type::f32) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == Type::f16 ? wick::math::to_f32(wick::math::f16{bits})
                           : wick::math::to_f32(wick::math::bf16{bits});
}
inline void write(Type type, char* at, float x) {
  if (type == Type::f32) {
    std::memcpy(at, &x, sizeof x);
    return;
  }
  const uint16_t bits = type == Type::f16 ? wick::math::from_f32<wick::math::f16>(x).bits
                                          : wick::math::from_f32<wick::math::bf16>(x).bits;
  std::memcpy(at, &bits, sizeof bits);
}

/// Column-major matrices in device memory.
struct Matrices {
  const void* data;
  Type type;
  int64_t rows, cols, ld, stride;

  /// Returns the address of a column.
  char* column(int64_t batch, int64_t col) const {
    const auto at = static_cast<size_t>(batch * stride + col * ld) * size_of(type);
    return const_cast<char*>(static_cast<const char*>(data)) + at;
  }
  /// Copies one matrix to dense floats. Returns false unless all of it is in device memory.
  bool fetch(int64_t batch, std::vector<float>& out, void* stream) const {
    out.clear();
    std::vector<char> bytes(static_cast<size_t>(rows) * size_of(type));
    for (int64_t col = 0; col < cols; ++col) {
      if (!to_host(bytes.data(), column(batch, col), bytes.size(), stream)) return false;
      for (int64_t row = 0; row < rows; ++row) {
        out.push_back(read(type, bytes.data() + static_cast<size_t>(row) * size_of(type)));
      }
    }
    return true;
  }
  bool put(int64_t batch, const std::vector<float>& from, void* stream) const {
    std::vector<char> bytes(static_cast<size_t>(rows) * size_of(type));
    for (int64_t col = 0; col < cols; ++col) {
      for (int64_t row = 0; row < rows; ++row) {
        write(type, bytes.data() + static_cast<size_t>(row) * size_of(type),
              from[static_cast<size_t>(col * rows + row)]);
      }
      if (!to_device(column(batch, col), bytes.data(), bytes.size(), stream)) return false;
    }
    return true;
  }
};

/// Computes d = alpha · op(a) · op(b), with beta = 0, after all work on the stream. Returns false
/// if an operand isn't in device memory.
inline bool multiply(void* stream, int64_t batches, int64_t k, float alpha, const Matrices& a,
                     bool transpose_a, const Matrices& b, bool transpose_b, const Matrices& d) {
  std::vector<float> x, y, z;
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (!a.fetch(batch, x, stream) || !b.fetch(batch, y, stream)) return false;
    z.assign(static_cast<size_t>(d.rows * d.cols), 0.0f);
    for (int64_t col = 0; col < d.cols; ++col) {
      for (int64_t row = 0; row < d.rows; ++row) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          const int64_t at_a = transpose_a ? row * a.rows + i : i * a.rows + row;
          const int64_t at_b = transpose_b ? i * b.rows + col : col * b.rows + i;
          sum += x[static_cast<size_t>(at_a)] * y[static_cast<size_t>(at_b)];
        }
        z[static_cast<size_t>(col * d.rows + row)] = alpha * sum;
      }
    }
    if (!d.put(batch, z, stream)) return false;
  }
  return true;
}

}  // namespace stand_in
