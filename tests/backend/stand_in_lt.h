#pragma once

// The library of products by descriptors that NVIDIA and AMD have in the same form: what its
// documentation forbids is refused with a complaint, all else is computed by plain loops. A
// vendor's stand-in gives the numbers and exports the functions: WICK_STAND_IN_LT.

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "tests/backend/stand_in_matrix.h"

namespace stand_in {

/// A vendor's numbers.
struct LtNumbers {
  int invalid_value, not_initialized, not_supported;  // statuses
  int compute_f32, no_transpose, transpose;
  int batch_count, batch_stride;          // attributes of layouts
  int transpose_first, transpose_second;  // of products
  int workspace_bytes;                    // of preferences
  int alignments;                         // the first of four; -1: there are none
};
extern const LtNumbers kLt;

struct Layout {
  Type type = Type::f32;
  uint64_t rows = 0, cols = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Gemm {
  int32_t operations[2] = {kLt.no_transpose, kLt.no_transpose};
};
struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
/// What an algorithm says: that it was chosen here, and what was promised then.
struct Algorithm {
  char mark[8];
  const void* handle;
  Preference promised;
};
constexpr char kMark[8] = {'c', 'h', 'o', 's', 'e', 'n', '!', '\n'};

inline std::mutex lt_mutex;
inline std::map<void*, int> lt_handles;  // the device of each
inline std::map<void*, Layout> layouts;
inline std::map<void*, Gemm> products;
inline std::map<void*, Preference> preferences;

inline bool lt_type(int number, Type& type) {
  type = number == 0 ? Type::f32 : number == 2 ? Type::f16 : Type::bf16;
  return number == 0 || number == 2 || number == 14;
}

template <class Map>
int make(Map& map, void** out, const char* function, typename Map::mapped_type value) {
  if (out == nullptr) return complain(kLt.invalid_value, function, "null");
  std::lock_guard lock(lt_mutex);
  *out = std::malloc(1);
  map[*out] = value;
  return 0;
}
template <class Map>
int destroy(Map& map, void* object, const char* function) {
  std::lock_guard lock(lt_mutex);
  if (map.erase(object) == 0) {
    return complain(kLt.invalid_value, function, "what isn't there or was destroyed");
  }
  std::free(object);
  return 0;
}
template <class Map, class Set>
int set(Map& map, void* object, const void* value, const char* function, const Set& act) {
  std::lock_guard lock(lt_mutex);
  const auto at = map.find(object);
  if (at == map.end() || value == nullptr) {
    return complain(kLt.invalid_value, function, "null or gone");
  }
  return act(at->second) ? 0 : complain(kLt.invalid_value, function, "attribute, size or value");
}
template <class T>
bool take(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return false;
  std::memcpy(&to, value, sizeof(T));
  return true;
}

inline int layout_create(void** layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  Layout made;
  if (!lt_type(type, made.type)) return complain(kLt.invalid_value, "layout", "type");
  if (rows == 0 || cols == 0 || ld < static_cast<int64_t>(rows)) {
    return complain(kLt.invalid_value, "layout", "a leading dimension is less than the rows");
  }
  made.rows = rows;
  made.cols = cols;
  made.ld = ld;
  return make(layouts, layout, "layout", made);
}
inline int layout_set(void* layout, int attribute, const void* value, size_t bytes) {
  return set(layouts, layout, value, "attribute of a layout", [&](Layout& l) {
    if (attribute == kLt.batch_count) return take(l.batch, value, bytes) && l.batch >= 1;
    return attribute == kLt.batch_stride && take(l.stride, value, bytes) && l.stride >= 0;
  });
}
inline int product_create(void** product, int compute, int scale_type) {
  if (compute != kLt.compute_f32 || scale_type != 0) {
    return complain(kLt.invalid_value, "product", "the compute type isn't f32");
  }
  return make(products, product, "product", Gemm{});
}
inline int product_set(void* product, int attribute, const void* value, size_t bytes) {
  return set(products, product, value, "attribute of a product", [&](Gemm& p) {
    if (attribute != kLt.transpose_first && attribute != kLt.transpose_second) return false;
    int32_t& operation = p.operations[attribute == kLt.transpose_second];
    return take(operation, value, bytes) &&
           (operation == kLt.no_transpose || operation == kLt.transpose);
  });
}
inline int preference_set(void* preference, int attribute, const void* value, size_t bytes) {
  return set(preferences, preference, value, "attribute of a preference", [&](Preference& p) {
    if (attribute == kLt.workspace_bytes) return take(p.workspace_bytes, value, bytes);
    const int which = attribute - kLt.alignments;
    if (kLt.alignments < 0 || which < 0 || which > 3) return false;
    uint32_t& alignment = p.alignments[which];
    return take(alignment, value, bytes) && alignment != 0 && (alignment & (alignment - 1)) == 0;
  });
}

/// The four layouts of a product, whether they fit it, and what it is.
struct Problem {
  const Layout *a, *b, *c, *d;
  bool transpose_a, transpose_b;
  int64_t k;
};
inline bool find_problem(void* product, void* a, void* b, void* c, void* d, Problem& p,
                         const char* function) {
  const auto at = products.find(product);
  const auto layout = [](void* object) {
    const auto found = layouts.find(object);
    return found == layouts.end() ? nullptr : &found->second;
  };
  p = {layout(a), layout(b), layout(c), layout(d), false, false, 0};
  if (at == products.end() || p.a == nullptr || p.b == nullptr || p.c == nullptr ||
      p.d == nullptr) {
    complain(0, function, "a description or layout that isn't there");
    return false;
  }
  p.transpose_a = at->second.operations[0] == kLt.transpose;
  p.transpose_b = at->second.operations[1] == kLt.transpose;
  const uint64_t m = p.transpose_a ? p.a->cols : p.a->rows;
  const uint64_t k = p.transpose_a ? p.a->rows : p.a->cols;
  const uint64_t n = p.transpose_b ? p.b->rows : p.b->cols;
  p.k = static_cast<int64_t>(k);
  const bool sizes = k == (p.transpose_b ? p.b->cols : p.b->rows) && p.d->rows == m &&
                     p.d->cols == n && p.c->rows == m && p.c->cols == n;
  const bool batches =
      p.a->batch == p.b->batch && p.a->batch == p.c->batch && p.a->batch == p.d->batch;
  const bool types = p.a->type == p.b->type && p.a->type == p.c->type && p.a->type == p.d->type;
  if (!sizes) complain(0, function, "sizes that don't fit each other");
  if (!batches) complain(0, function, "batches that don't fit each other");
  if (!types) complain(0, function, "types that don't fit each other");
  return sizes && batches && types;
}

inline int choose(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference,
                  int wanted, void* results, int* found) {
  constexpr const char* kName = "choosing an algorithm";
  std::lock_guard lock(lt_mutex);
  Problem p;
  if (!lt_handles.contains(handle)) return complain(kLt.not_initialized, kName, "null or gone");
  if (!preferences.contains(preference) || results == nullptr || found == nullptr || wanted < 1 ||
      !find_problem(product, a, b, c, d, p, kName)) {
    return complain(kLt.invalid_value, kName, "arguments");
  }
  // Products that it has no kernel for: those of 13 columns, so that somebody asks what follows.
  *found = p.d->cols == 13 ? 0 : 1;
  if (*found == 0) return kLt.not_supported;
  Algorithm chosen = {};
  std::memcpy(chosen.mark, kMark, sizeof kMark);
  chosen.handle = handle;
  chosen.promised = preferences.at(preference);
  std::memcpy(results, &chosen, sizeof chosen);
  return 0;
}

/// Whether an algorithm was chosen with this handle, and what was promised then is kept.
inline bool fits(const void* algorithm, const void* handle, const void* const (&data)[4],
                 void* workspace, size_t workspace_bytes, const char* function) {
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  if (std::memcmp(chosen.mark, kMark, sizeof kMark) != 0 || chosen.handle != handle) {
    complain(0, function, "an algorithm that wasn't chosen with this handle");
    return false;
  }
  if (workspace_bytes < chosen.promised.workspace_bytes ||
      (workspace == nullptr && workspace_bytes != 0)) {
    complain(0, function, "the workspace is smaller than was promised");
    return false;
  }
  for (int i = 0; i < 4 && kLt.alignments >= 0; ++i) {
    if (reinterpret_cast<uintptr_t>(data[i]) % chosen.promised.alignments[i] == 0) continue;
    complain(0, function, "a matrix is aligned to less than was promised");
    return false;
  }
  return true;
}

inline int multiply_by_plan(void* handle, void* product, const void* alpha, const void* a,
                            void* layout_a, const void* b, void* layout_b, const void* beta,
                            const void* c, void* layout_c, void* d, void* layout_d,
                            const void* algorithm, void* workspace, size_t workspace_bytes,
                            void* stream) {
  constexpr const char* kName = "product";
  std::lock_guard lock(lt_mutex);
  const auto at = lt_handles.find(handle);
  if (at == lt_handles.end()) return complain(kLt.not_initialized, kName, "null or gone");
  if (at->second != current_device()) {
    return complain(kLt.invalid_value, kName, "the handle is another device's");
  }
  if (alpha == nullptr || beta == nullptr || a == nullptr || b == nullptr || c == nullptr ||
      d == nullptr || algorithm == nullptr) {
    return complain(kLt.invalid_value, kName, "a pointer is null");
  }
  Problem p;
  if (!find_problem(product, layout_a, layout_b, layout_c, layout_d, p, kName) ||
      !fits(algorithm, handle, {a, b, c, d}, workspace, workspace_bytes, kName)) {
    return kLt.invalid_value;
  }
  // Its ends are written, as a kernel may do.
  const std::string scratch(std::min<size_t>(workspace_bytes, 4096), '\x5a');
  char* const end = static_cast<char*>(workspace) + workspace_bytes;
  if (!to_device(workspace, scratch.data(), scratch.size(), stream) ||
      !to_device(end - scratch.size(), scratch.data(), scratch.size(), stream)) {
    return complain(kLt.invalid_value, kName, "the workspace isn't on the device");
  }
  if (*static_cast<const float*>(beta) != 0) {
    return complain(kLt.not_supported, kName, "the stand-in wants beta = 0");
  }
  const auto matrices = [](const void* data, const Layout& l) {
    return Matrices{data, l.type,  static_cast<int64_t>(l.rows), static_cast<int64_t>(l.cols),
                    l.ld, l.stride};
  };
  const bool done =
      multiply(stream, p.d->batch, p.k, *static_cast<const float*>(alpha), matrices(a, *p.a),
               p.transpose_a, matrices(b, *p.b), p.transpose_b, matrices(d, *p.d));
  return done ? 0 : complain(kLt.invalid_value, kName, "not all of a matrix is on the device");
}

}  // namespace stand_in

#define WICK_STAND_IN extern "C" __attribute__((visibility("default"))) int

/// The functions of a vendor, whose names begin in one way.
#define WICK_STAND_IN_LT(prefix)                                                                   \
  WICK_STAND_IN prefix##Create(void** handle) {                                                    \
    return stand_in::make(stand_in::lt_handles, handle, "Create", stand_in::current_device());     \
  }                                                                                                \
  WICK_STAND_IN prefix##Destroy(void* handle) {                                                    \
    return stand_in::destroy(stand_in::lt_handles, handle, "Destroy");                             \
  }                                                                                                \
  WICK_STAND_IN prefix##MatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t cols,  \
                                           int64_t ld) {                                           \
    return stand_in::layout_create(layout, type, rows, cols, ld);                                  \
  }                                                                                                \
  WICK_STAND_IN prefix##MatrixLayoutDestroy(void* layout) {                                        \
    return stand_in::destroy(stand_in::layouts, layout, "MatrixLayoutDestroy");                    \
  }                                                                                                \
  WICK_STAND_IN prefix##MatrixLayoutSetAttribute(void* layout, int attribute, const void* value,   \
                                                 size_t bytes) {                                   \
    return stand_in::layout_set(layout, attribute, value, bytes);                                  \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulDescCreate(void** product, int compute, int scale_type) {            \
    return stand_in::product_create(product, compute, scale_type);                                 \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulDescDestroy(void* product) {                                         \
    return stand_in::destroy(stand_in::products, product, "MatmulDescDestroy");                    \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulDescSetAttribute(void* product, int attribute, const void* value,    \
                                               size_t bytes) {                                     \
    return stand_in::product_set(product, attribute, value, bytes);                                \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulPreferenceCreate(void** preference) {                                \
    return stand_in::make(stand_in::preferences, preference, "MatmulPreferenceCreate", {});        \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulPreferenceDestroy(void* preference) {                                \
    return stand_in::destroy(stand_in::preferences, preference, "MatmulPreferenceDestroy");        \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulPreferenceSetAttribute(void* preference, int attribute,              \
                                                     const void* value, size_t bytes) {            \
    return stand_in::preference_set(preference, attribute, value, bytes);                          \
  }                                                                                                \
  WICK_STAND_IN prefix##MatmulAlgoGetHeuristic(void* handle, void* product, void* a, void* b,      \
                                               void* c, void* d, void* preference, int wanted,     \
                                               void* results, int* found) {                        \
    return stand_in::choose(handle, product, a, b, c, d, preference, wanted, results, found);      \
  }                                                                                                \
  WICK_STAND_IN prefix##Matmul(                                                                    \
      void* handle, void* product, const void* alpha, const void* a, void* layout_a,               \
      const void* b, void* layout_b, const void* beta, const void* c, void* layout_c, void* d,     \
      void* layout_d, const void* algorithm, void* workspace, size_t bytes, void* stream) {        \
    return stand_in::multiply_by_plan(handle, product, alpha, a, layout_a, b, layout_b, beta, c,   \
                                      layout_c, d, layout_d, algorithm, workspace, bytes, stream); \
  }
