// hipBLASLt's part for tests on the software AMD GPU, as stand_in_rocblas.cpp. Written from the
// hipBLASLt API reference.

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "tests/backend/stand_in_matrix.h"

#define STAND_IN extern "C" __attribute__((visibility("default"))) int

namespace {

using stand_in::complain;
using stand_in::Matrices;
using stand_in::Type;

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidValue = 3,
  kNotSupported = 7,
};
constexpr int kNone = 111, kTranspose = 112, kCompute32 = 2;

struct Layout {
  Type type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Product {
  int32_t operations[2] = {kNone, kNone};
};
struct Preference {
  uint64_t workspace_bytes = 0;
};

std::mutex mutex;
std::map<void*, int> handles;  // the device of each
std::map<void*, Layout> layouts;
std::map<void*, Product> products;
std::map<void*, Preference> preferences;

/// What an algorithm says: that it was chosen here, and for which product.
struct Algorithm {
  char mark[8];
  const void* handle;
  uint64_t workspace_bytes;
};
constexpr char kMark[8] = {'c', 'h', 'o', 's', 'e', 'n', '!', '\n'};

bool type_of(int number, Type& type) {
  type = number == 0 ? Type::f32 : number == 2 ? Type::f16 : Type::bf16;
  return number == 0 || number == 2 || number == 14;
}

template <class Map>
int make(Map& map, void** out, const char* function, typename Map::mapped_type value) {
  if (out == nullptr) return complain(kInvalidValue, function, "null");
  std::lock_guard lock(mutex);
  *out = std::malloc(1);
  map[*out] = value;
  return kSuccess;
}
template <class Map>
int destroy(Map& map, void* object, const char* function) {
  std::lock_guard lock(mutex);
  if (map.erase(object) == 0) {
    return complain(kInvalidValue, function, "what isn't there or was destroyed");
  }
  std::free(object);
  return kSuccess;
}
template <class Map, class Set>
int set(Map& map, void* object, const void* value, const char* function, const Set& act) {
  std::lock_guard lock(mutex);
  const auto at = map.find(object);
  if (at == map.end() || value == nullptr) return complain(kInvalidValue, function, "null or gone");
  return act(at->second) ? kSuccess : complain(kInvalidValue, function, "attribute, size or value");
}
template <class T>
bool take(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return false;
  std::memcpy(&to, value, sizeof(T));
  return true;
}

/// The four layouts of a product, whether they fit it, and what it is.
struct Problem {
  const Layout *a, *b, *c, *d;
  bool transpose_a, transpose_b;
  int64_t k;
};
bool find_problem(void* product, void* a, void* b, void* c, void* d, Problem& p,
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
  p.transpose_a = at->second.operations[0] == kTranspose;
  p.transpose_b = at->second.operations[1] == kTranspose;
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

}  // namespace

STAND_IN hipblasLtCreate(void** handle) {
  return make(handles, handle, "Create", stand_in::current_device());
}
STAND_IN hipblasLtDestroy(void* handle) { return destroy(handles, handle, "Destroy"); }
STAND_IN hipblasLtGetVersion(void* handle, int* version) {
  std::lock_guard lock(mutex);
  if (!handles.contains(handle) || version == nullptr) {
    return complain(kNotInitialized, "GetVersion", "null or gone");
  }
  *version = 1002;  // 0.10.2
  return kSuccess;
}

STAND_IN hipblasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t cols,
                                     int64_t ld) {
  Layout made{};
  made.batch = 1;
  if (!type_of(type, made.type)) return complain(kInvalidValue, "MatrixLayoutCreate", "type");
  if (rows == 0 || cols == 0 || ld < static_cast<int64_t>(rows)) {
    return complain(kInvalidValue, "MatrixLayoutCreate",
                    "a leading dimension is less than the rows");
  }
  made.rows = rows;
  made.cols = cols;
  made.ld = ld;
  return make(layouts, layout, "MatrixLayoutCreate", made);
}
STAND_IN hipblasLtMatrixLayoutDestroy(void* layout) {
  return destroy(layouts, layout, "MatrixLayoutDestroy");
}
STAND_IN hipblasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value,
                                           size_t bytes) {
  return set(layouts, layout, value, "MatrixLayoutSetAttribute", [&](Layout& l) {
    if (attribute == 0) return take(l.batch, value, bytes) && l.batch >= 1;
    return attribute == 1 && take(l.stride, value, bytes) && l.stride >= 0;
  });
}

STAND_IN hipblasLtMatmulDescCreate(void** product, int compute, int scale_type) {
  if (compute != kCompute32 || scale_type != 0) {
    return complain(kInvalidValue, "MatmulDescCreate", "the compute type isn't f32");
  }
  return make(products, product, "MatmulDescCreate", Product{});
}
STAND_IN hipblasLtMatmulDescDestroy(void* product) {
  return destroy(products, product, "MatmulDescDestroy");
}
STAND_IN hipblasLtMatmulDescSetAttribute(void* product, int attribute, const void* value,
                                         size_t bytes) {
  return set(products, product, value, "MatmulDescSetAttribute", [&](Product& p) {
    if (attribute != 0 && attribute != 1) return false;
    int32_t& operation = p.operations[attribute];
    return take(operation, value, bytes) && (operation == kNone || operation == kTranspose);
  });
}

STAND_IN hipblasLtMatmulPreferenceCreate(void** preference) {
  return make(preferences, preference, "MatmulPreferenceCreate", Preference{});
}
STAND_IN hipblasLtMatmulPreferenceDestroy(void* preference) {
  return destroy(preferences, preference, "MatmulPreferenceDestroy");
}
STAND_IN hipblasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* value,
                                               size_t bytes) {
  return set(preferences, preference, value, "MatmulPreferenceSetAttribute", [&](Preference& p) {
    return attribute == 1 && take(p.workspace_bytes, value, bytes);
  });
}

STAND_IN hipblasLtMatmulAlgoGetHeuristic(void* handle, void* product, void* a, void* b, void* c,
                                         void* d, void* preference, int wanted, void* results,
                                         int* found) {
  constexpr const char* kName = "MatmulAlgoGetHeuristic";
  std::lock_guard lock(mutex);
  Problem p;
  if (!handles.contains(handle)) return complain(kNotInitialized, kName, "null or gone");
  if (!preferences.contains(preference) || results == nullptr || found == nullptr || wanted < 1 ||
      !find_problem(product, a, b, c, d, p, kName)) {
    return complain(kInvalidValue, kName, "arguments");
  }
  // Products that it has no kernel for: those of 13 columns, so that somebody asks what follows.
  *found = p.d->cols == 13 ? 0 : 1;
  if (*found == 0) return kNotSupported;
  Algorithm chosen = {};
  std::memcpy(chosen.mark, kMark, sizeof kMark);
  chosen.handle = handle;
  chosen.workspace_bytes = preferences.at(preference).workspace_bytes;
  std::memcpy(results, &chosen, sizeof chosen);
  return kSuccess;
}

STAND_IN hipblasLtMatmul(void* handle, void* product, const void* alpha, const void* a,
                         void* layout_a, const void* b, void* layout_b, const void* beta,
                         const void* c, void* layout_c, void* d, void* layout_d,
                         const void* algorithm, void* workspace, size_t workspace_bytes,
                         void* stream) {
  constexpr const char* kName = "Matmul";
  std::lock_guard lock(mutex);
  const auto at = handles.find(handle);
  if (at == handles.end()) return complain(kNotInitialized, kName, "null or gone");
  if (at->second != stand_in::current_device()) {
    return complain(kInvalidValue, kName, "the handle is another device's");
  }
  Problem p;
  if (alpha == nullptr || beta == nullptr || a == nullptr || b == nullptr || c == nullptr ||
      d == nullptr || algorithm == nullptr) {
    return complain(kInvalidValue, kName, "a pointer is null");
  }
  if (!find_problem(product, layout_a, layout_b, layout_c, layout_d, p, kName)) {
    return kInvalidValue;
  }
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  if (std::memcmp(chosen.mark, kMark, sizeof kMark) != 0 || chosen.handle != handle) {
    return complain(kInvalidValue, kName, "an algorithm that wasn't chosen with this handle");
  }
  if (workspace_bytes < chosen.workspace_bytes || (workspace == nullptr && workspace_bytes != 0)) {
    return complain(kInvalidValue, kName, "the workspace is smaller than was promised");
  }
  // Its ends are written, as a kernel may do.
  const std::string scratch(std::min<size_t>(workspace_bytes, 4096), '\x5a');
  char* const end = static_cast<char*>(workspace) + workspace_bytes;
  if (stand_in::runtime().synchronize(stream) != 0 ||
      stand_in::to_device(workspace, scratch.data(), scratch.size()) != 0 ||
      stand_in::to_device(end - scratch.size(), scratch.data(), scratch.size()) != 0) {
    return complain(kInvalidValue, kName, "the workspace isn't on the device");
  }
  if (*static_cast<const float*>(beta) != 0) {
    return complain(kNotSupported, kName, "the stand-in wants beta = 0");
  }
  const auto matrices = [](const void* data, const Layout& l) {
    return Matrices{data, l.type,  static_cast<int64_t>(l.rows), static_cast<int64_t>(l.cols),
                    l.ld, l.stride};
  };
  const bool done = stand_in::multiply(stream, p.d->batch, p.k, *static_cast<const float*>(alpha),
                                       matrices(a, *p.a), p.transpose_a, matrices(b, *p.b),
                                       p.transpose_b, matrices(d, *p.d));
  return done ? kSuccess : complain(kInvalidValue, kName, "not all of a matrix is on the device");
}
