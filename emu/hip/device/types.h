#pragma once

// Integers of fixed width, traits, vectors of one to four elements with their operators, and dim3.

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long long longlong;
typedef unsigned long long ulonglong;
typedef _Float16 __2f16 __attribute__((ext_vector_type(2)));
typedef short __2i16 __attribute__((ext_vector_type(2)));

/// The arguments of HIP's fences.
typedef unsigned __cl_mem_fence_flags;
enum __memory_order {
  __memory_order_relaxed = __ATOMIC_RELAXED,
  __memory_order_acquire = __ATOMIC_ACQUIRE,
  __memory_order_release = __ATOMIC_RELEASE,
  __memory_order_acq_rel = __ATOMIC_ACQ_REL,
  __memory_order_seq_cst = __ATOMIC_SEQ_CST
};
enum __memory_scope {
  __memory_scope_work_item,
  __memory_scope_work_group,
  __memory_scope_device,
  __memory_scope_all_svm_devices,
  __memory_scope_sub_group
};

#define WICK_BOTH __host__ __device__ inline constexpr

namespace __hip_internal {
template <bool kCondition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <class T, T kValue>
struct integral_constant {
  static constexpr T value = kValue;
  typedef T value_type;
  WICK_BOTH operator T() const { return kValue; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class T, class U>
struct is_same : integral_constant<bool, __is_same(T, U)> {};
template <class T>
struct is_integral : integral_constant<bool, __is_integral(T)> {};
template <class T>
struct is_floating_point
    : integral_constant<bool, __is_floating_point(T) || __is_same(T, _Float16)> {};
template <class T>
struct is_arithmetic : integral_constant<bool, __is_integral(T) || is_floating_point<T>::value> {};
template <class T>
struct is_signed : integral_constant<bool, __is_signed(T)> {};
template <class T>
struct remove_reference {
  typedef __remove_reference_t(T) type;
};
template <class T>
struct remove_cv {
  typedef __remove_cv(T) type;
};
template <bool kCondition, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
}  // namespace __hip_internal

namespace std {
using ::ptrdiff_t;
using ::size_t;
using namespace __hip_internal;
template <bool kCondition, class T = void>
using enable_if_t = typename enable_if<kCondition, T>::type;
template <bool kCondition, class T, class F>
using conditional_t = typename conditional<kCondition, T, F>::type;
template <class T, class U>
inline constexpr bool is_same_v = is_same<T, U>::value;
template <class T>
inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
WICK_BOTH typename remove_reference<T>::type&& move(T&& value) {
  return static_cast<typename remove_reference<T>::type&&>(value);
}
template <class T>
WICK_BOTH T&& forward(typename remove_reference<T>::type& value) {
  return static_cast<T&&>(value);
}
}  // namespace std

template <class T, unsigned kCount>
struct HIP_vector_base;
template <class T>
struct HIP_vector_base<T, 1> {
  T x;
};
template <class T>
struct alignas(2 * sizeof(T)) HIP_vector_base<T, 2> {
  T x, y;
};
template <class T>
struct HIP_vector_base<T, 3> {
  T x, y, z;
};
template <class T>
struct alignas(4 * sizeof(T)) HIP_vector_base<T, 4> {
  T x, y, z, w;
};

template <class T, unsigned kCount>
struct HIP_vector_type : HIP_vector_base<T, kCount> {
  typedef T value_type;
  HIP_vector_type() = default;
  /// Every element has the same value.
  template <class U, class = typename __hip_internal::enable_if<
                         (kCount > 1) && __hip_internal::is_arithmetic<U>::value>::type>
  WICK_BOTH explicit HIP_vector_type(U value) : HIP_vector_base<T, kCount>{} {
    for (unsigned i = 0; i < kCount; ++i) (*this)[i] = static_cast<T>(value);
  }
  template <class... Values,
            class = typename __hip_internal::enable_if<sizeof...(Values) == kCount>::type>
  WICK_BOTH HIP_vector_type(Values... values)
      : HIP_vector_base<T, kCount>{static_cast<T>(values)...} {}

  WICK_BOTH T& operator[](unsigned i) {
    if constexpr (kCount > 1) {
      if (i == 1) return this->y;
    }
    if constexpr (kCount > 2) {
      if (i == 2) return this->z;
    }
    if constexpr (kCount > 3) {
      if (i == 3) return this->w;
    }
    return this->x;
  }
  WICK_BOTH const T& operator[](unsigned i) const { return const_cast<HIP_vector_type&>(*this)[i]; }
};

#define WICK_VECTOR_OPERATOR(sign)                                                                 \
  template <class T, unsigned kCount>                                                              \
  WICK_BOTH HIP_vector_type<T, kCount>& operator sign##=(HIP_vector_type<T, kCount>& a,            \
                                                         const HIP_vector_type<T, kCount>& b) {    \
    for (unsigned i = 0; i < kCount; ++i) a[i] = static_cast<T>(a[i] sign b[i]);                   \
    return a;                                                                                      \
  }                                                                                                \
  template <class T, unsigned kCount, class U,                                                     \
            class =                                                                                \
                typename __hip_internal::enable_if<__hip_internal::is_arithmetic<U>::value>::type> \
  WICK_BOTH HIP_vector_type<T, kCount>& operator sign##=(HIP_vector_type<T, kCount>& a, U b) {     \
    return a sign## = HIP_vector_type<T, kCount>(b);                                               \
  }                                                                                                \
  template <class T, unsigned kCount>                                                              \
  WICK_BOTH HIP_vector_type<T, kCount> operator sign(HIP_vector_type<T, kCount> a,                 \
                                                     const HIP_vector_type<T, kCount>& b) {        \
    return a sign## = b;                                                                           \
  }                                                                                                \
  template <class T, unsigned kCount, class U,                                                     \
            class =                                                                                \
                typename __hip_internal::enable_if<__hip_internal::is_arithmetic<U>::value>::type> \
  WICK_BOTH HIP_vector_type<T, kCount> operator sign(HIP_vector_type<T, kCount> a, U b) {          \
    return a sign## = b;                                                                           \
  }                                                                                                \
  template <class T, unsigned kCount, class U,                                                     \
            class =                                                                                \
                typename __hip_internal::enable_if<__hip_internal::is_arithmetic<U>::value>::type> \
  WICK_BOTH HIP_vector_type<T, kCount> operator sign(U a, const HIP_vector_type<T, kCount>& b) {   \
    HIP_vector_type<T, kCount> result(b);                                                          \
    for (unsigned i = 0; i < kCount; ++i) result[i] = static_cast<T>(static_cast<T>(a) sign b[i]); \
    return result;                                                                                 \
  }
WICK_VECTOR_OPERATOR(+)
WICK_VECTOR_OPERATOR(-)
WICK_VECTOR_OPERATOR(*)
WICK_VECTOR_OPERATOR(/)
WICK_VECTOR_OPERATOR(%)
WICK_VECTOR_OPERATOR(&)
WICK_VECTOR_OPERATOR(|)
WICK_VECTOR_OPERATOR(^)
WICK_VECTOR_OPERATOR(<<)
WICK_VECTOR_OPERATOR(>>)
#undef WICK_VECTOR_OPERATOR

#define WICK_VECTOR_UNARY(sign)                                                      \
  template <class T, unsigned kCount>                                                \
  WICK_BOTH HIP_vector_type<T, kCount> operator sign(HIP_vector_type<T, kCount> a) { \
    for (unsigned i = 0; i < kCount; ++i) a[i] = static_cast<T>(sign a[i]);          \
    return a;                                                                        \
  }
WICK_VECTOR_UNARY(-)
WICK_VECTOR_UNARY(+)
WICK_VECTOR_UNARY(~)
#undef WICK_VECTOR_UNARY

#define WICK_VECTOR_STEP(sign)                                                             \
  template <class T, unsigned kCount>                                                      \
  WICK_BOTH HIP_vector_type<T, kCount>& operator sign(HIP_vector_type<T, kCount>& a) {     \
    for (unsigned i = 0; i < kCount; ++i) sign a[i];                                       \
    return a;                                                                              \
  }                                                                                        \
  template <class T, unsigned kCount>                                                      \
  WICK_BOTH HIP_vector_type<T, kCount> operator sign(HIP_vector_type<T, kCount>& a, int) { \
    const HIP_vector_type<T, kCount> before = a;                                           \
    sign a;                                                                                \
    return before;                                                                         \
  }
WICK_VECTOR_STEP(++)
WICK_VECTOR_STEP(--)
#undef WICK_VECTOR_STEP

template <class T, unsigned kCount>
WICK_BOTH bool operator==(const HIP_vector_type<T, kCount>& a,
                          const HIP_vector_type<T, kCount>& b) {
  for (unsigned i = 0; i < kCount; ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}
template <class T, unsigned kCount>
WICK_BOTH bool operator!=(const HIP_vector_type<T, kCount>& a,
                          const HIP_vector_type<T, kCount>& b) {
  return !(a == b);
}

#define WICK_VECTOR(T, name)                                                   \
  typedef HIP_vector_type<T, 1> name##1;                                       \
  typedef HIP_vector_type<T, 2> name##2;                                       \
  typedef HIP_vector_type<T, 3> name##3;                                       \
  typedef HIP_vector_type<T, 4> name##4;                                       \
  WICK_BOTH name##1 make_##name##1(T x) { return name##1(x); }                 \
  WICK_BOTH name##2 make_##name##2(T x, T y) { return name##2(x, y); }         \
  WICK_BOTH name##3 make_##name##3(T x, T y, T z) { return name##3(x, y, z); } \
  WICK_BOTH name##4 make_##name##4(T x, T y, T z, T w) { return name##4(x, y, z, w); }
WICK_VECTOR(signed char, char)
WICK_VECTOR(unsigned char, uchar)
WICK_VECTOR(short, short)
WICK_VECTOR(unsigned short, ushort)
WICK_VECTOR(int, int)
WICK_VECTOR(unsigned int, uint)
WICK_VECTOR(long, long)
WICK_VECTOR(unsigned long, ulong)
WICK_VECTOR(long long, longlong)
WICK_VECTOR(unsigned long long, ulonglong)
WICK_VECTOR(float, float)
WICK_VECTOR(double, double)
#undef WICK_VECTOR

struct dim3 {
  uint32_t x, y, z;
  WICK_BOTH dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};
