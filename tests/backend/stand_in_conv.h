#pragma once

// Shared code of the stand-ins for cuDNN and MIOpen: descriptors, their consistency, and
// convolutions by plain loops. A vendor's stand-in checks the order of its calls.

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "tests/backend/stand_in_matrix.h"

namespace stand_in {

/// An image [n, c, h, w] or filters [o, c / groups, h, w].
struct Tensor {
  bool set = false;
  Type type = Type::f32;
  std::array<int64_t, 4> size{}, stride{};

  auto key() const { return std::tuple(type, size, stride); }
  int64_t elems() const { return size[0] * size[1] * size[2] * size[3]; }
  /// Whether the tensor has no gaps and this order of dims in memory, the innermost first.
  bool is_dense(const std::array<size_t, 4>& order) const {
    int64_t step = 1;
    for (const size_t d : order) {
      if (size[d] > 1 && stride[d] != step) return false;
      step *= size[d];
    }
    return true;
  }
};

struct Convolution {
  bool set = false;
  std::array<int64_t, 2> pad{}, stride{}, dilation{};
  int64_t groups = 1;
  /// Vendors' settings that change the results.
  std::array<int, 2> settings{};

  auto key() const { return std::tuple(pad, stride, dilation, groups, settings); }
};

/// conv2d, and its gradients with respect to x and w.
enum class Form { forward, input, weight };

/// A convolution y = conv2d(x, w) without addresses.
struct Problem {
  Form form = Form::forward;
  Tensor x, w, y;
  Convolution convolution;

  auto key() const { return std::tuple(form, x.key(), w.key(), y.key(), convolution.key()); }
};
using ProblemKey = decltype(Problem().key());

/// Whether the descriptors of a problem were set and fit each other. Complains if not.
inline bool is_consistent(const Problem& p, const char* function) {
  const auto bad = [&](const char* what) {
    complain(0, function, what);
    return false;
  };
  if (!p.x.set || !p.w.set || !p.y.set || !p.convolution.set) return bad("a descriptor isn't set");
  if (p.x.type != p.w.type || p.x.type != p.y.type) return bad("types that don't fit each other");
  constexpr std::array<size_t, 4> kFirst = {3, 2, 1, 0}, kLast = {1, 3, 2, 0};
  bool first = true, last = true;
  for (const Tensor* t : {&p.x, &p.w, &p.y}) {
    first = first && t->is_dense(kFirst);
    last = last && t->is_dense(kLast);
    for (const int64_t size : t->size) {
      if (size < 1) return bad("a size isn't positive");
    }
  }
  if (!first && !last) return bad("operands aren't dense in one format");
  const Convolution& c = p.convolution;
  if (c.groups < 1 || p.w.size[0] % c.groups != 0) return bad("groups don't divide the channels");
  if (p.x.size[1] != p.w.size[1] * c.groups || p.y.size[1] != p.w.size[0] ||
      p.x.size[0] != p.y.size[0]) {
    return bad("sizes that don't fit each other");
  }
  for (size_t i = 0; i < 2; ++i) {
    if (c.pad[i] < 0 || c.stride[i] < 1 || c.dilation[i] < 1) return bad("pads or strides");
    const int64_t reach = c.dilation[i] * (p.w.size[2 + i] - 1) + 1;
    const int64_t room = p.x.size[2 + i] + 2 * c.pad[i] - reach;
    if (room < 0 || p.y.size[2 + i] != room / c.stride[i] + 1) return bad("the output's size");
  }
  return true;
}

/// While a graph runs, stand-ins can't call the runtime. They then access the memory of the
/// software device directly, which the host can do.
inline bool in_graph = false;

/// The elements of a tensor in device memory, in row-major order of [n, c, h, w]. Returns false
/// unless all of it is in device memory.
inline bool fetch(const Tensor& t, const void* data, std::vector<double>& out, void* stream) {
  std::vector<char> bytes(static_cast<size_t>(t.elems()) * size_of(t.type));
  if (in_graph) {
    std::memcpy(bytes.data(), data, bytes.size());
  } else if (!to_host(bytes.data(), data, bytes.size(), stream)) {
    return false;
  }
  out.clear();
  for (int64_t i = 0; i < t.elems(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t d = 4; d-- > 0; rest /= t.size[d]) at += rest % t.size[d] * t.stride[d];
    out.push_back(read(t.type, bytes.data() + static_cast<size_t>(at) * size_of(t.type)));
  }
  return true;
}
inline bool put(const Tensor& t, void* data, const std::vector<double>& from, void* stream) {
  std::vector<char> bytes(static_cast<size_t>(t.elems()) * size_of(t.type));
  for (int64_t i = 0; i < t.elems(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t d = 4; d-- > 0; rest /= t.size[d]) at += rest % t.size[d] * t.stride[d];
    write(t.type, bytes.data() + static_cast<size_t>(at) * size_of(t.type),
          static_cast<float>(from[static_cast<size_t>(i)]));
  }
  if (!in_graph) return to_device(data, bytes.data(), bytes.size(), stream);
  std::memcpy(data, bytes.data(), bytes.size());
  return true;
}

/// Computes a problem after all work on the stream. `change` is applied to each element that is
/// read. Returns false unless all operands are in device memory.
template <class Change>
bool convolve(const Problem& p, void* x_data, void* w_data, void* y_data, void* stream,
              const Change& change) {
  std::vector<double> x, w, y;
  const auto get = [&](const Tensor& t, const void* data, std::vector<double>& out, bool result) {
    if (result) {
      out.assign(static_cast<size_t>(t.elems()), 0);
      return true;
    }
    if (!fetch(t, data, out, stream)) return false;
    for (double& value : out) value = change(value);
    return true;
  };
  if (!get(p.x, x_data, x, p.form == Form::input) || !get(p.w, w_data, w, p.form == Form::weight) ||
      !get(p.y, y_data, y, p.form == Form::forward)) {
    return false;
  }
  const Convolution& c = p.convolution;
  const auto& xs = p.x.size;
  const auto& ws = p.w.size;
  const auto& ys = p.y.size;
  const int64_t per_group = ws[0] / c.groups;
  for (int64_t n = 0; n < ys[0]; ++n) {
    for (int64_t o = 0; o < ys[1]; ++o) {
      for (int64_t i = 0; i < ys[2]; ++i) {
        for (int64_t j = 0; j < ys[3]; ++j) {
          double& out = y[static_cast<size_t>(((n * ys[1] + o) * ys[2] + i) * ys[3] + j)];
          for (int64_t k = 0; k < ws[1] * ws[2] * ws[3]; ++k) {
            const int64_t channel = o / per_group * ws[1] + k / (ws[2] * ws[3]);
            const int64_t row = i * c.stride[0] - c.pad[0] + k / ws[3] % ws[2] * c.dilation[0];
            const int64_t col = j * c.stride[1] - c.pad[1] + k % ws[3] * c.dilation[1];
            if (row < 0 || row >= xs[2] || col < 0 || col >= xs[3]) continue;
            double& in =
                x[static_cast<size_t>(((n * xs[1] + channel) * xs[2] + row) * xs[3] + col)];
            double& weight = w[static_cast<size_t>(o * ws[1] * ws[2] * ws[3] + k)];
            if (p.form == Form::forward) out += in * weight;
            if (p.form == Form::input) in += out * weight;
            if (p.form == Form::weight) weight += out * in;
          }
        }
      }
    }
  }
  if (p.form == Form::forward) return put(p.y, y_data, y, stream);
  return p.form == Form::input ? put(p.x, x_data, x, stream) : put(p.w, w_data, w, stream);
}

/// Whether kernels can load 16 bytes at once from the beginning of each operand.
inline bool are_aligned(const void* a, const void* b, const void* c) {
  return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
          reinterpret_cast<uintptr_t>(c)) %
             16 ==
         0;
}

/// Writes to both ends of a workspace, as kernels may. Returns false unless it is on the device.
inline bool use_workspace(void* workspace, size_t bytes, void* stream) {
  const std::string scratch(std::min<size_t>(bytes, 4096), '\x5a');
  char* const end = static_cast<char*>(workspace) + bytes;
  return to_device(workspace, scratch.data(), scratch.size(), stream) &&
         to_device(end - scratch.size(), scratch.data(), scratch.size(), stream);
}

/// A float whose last `bits` bits are cut off.
inline double shortened(double value, int bits) {
  auto x = static_cast<float>(value);
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  word &= ~uint32_t{0} << bits;
  std::memcpy(&x, &word, sizeof x);
  return x;
}

// Objects by handle. `conv_mutex` protects them.
inline std::mutex conv_mutex;
inline std::map<void*, Tensor> tensors;
inline std::map<void*, Convolution> convolutions;
/// Convolutions that were computed so far; tests read the number.
inline int computed = 0;
/// Shapes for which a caller has asked for algorithms so far.
inline int asked = 0;

template <class Map>
int make_object(Map& map, void** out, int bad, const char* function) {
  if (out == nullptr) return complain(bad, function, "null");
  std::lock_guard lock(conv_mutex);
  *out = std::malloc(1);
  map[*out] = {};
  return 0;
}
template <class Map>
int destroy_object(Map& map, void* object, int bad, const char* function) {
  std::lock_guard lock(conv_mutex);
  if (map.erase(object) == 0) {
    return complain(bad, function, "what isn't there or was destroyed");
  }
  std::free(object);
  return 0;
}
/// Calls act(object) for an object that exists. act returns whether it was given valid arguments.
template <class Map, class Act>
int set_object(Map& map, void* object, int bad, const char* function, const Act& act) {
  std::lock_guard lock(conv_mutex);
  const auto at = map.find(object);
  if (at == map.end()) return complain(bad, function, "a descriptor that isn't there");
  return act(at->second) ? 0 : complain(bad, function, "arguments");
}

/// Finds the descriptors of a problem. Complains if one doesn't exist or they don't fit.
inline bool find_problem(Form form, void* x, void* w, void* y, void* convolution, Problem& p,
                         const char* function) {
  for (void* tensor : {x, w, y}) {
    if (tensors.contains(tensor)) continue;
    complain(0, function, "a descriptor that isn't there");
    return false;
  }
  if (!convolutions.contains(convolution)) {
    complain(0, function, "a convolution that isn't there");
    return false;
  }
  p = {form, tensors.at(x), tensors.at(w), tensors.at(y), convolutions.at(convolution)};
  return is_consistent(p, function);
}

}  // namespace stand_in

#define WICK_STAND_IN extern "C" __attribute__((visibility("default")))
WICK_STAND_IN int stand_in_convolutions() {
  std::lock_guard lock(stand_in::conv_mutex);
  return stand_in::computed;
}
WICK_STAND_IN int stand_in_asked() {
  std::lock_guard lock(stand_in::conv_mutex);
  return stand_in::asked;
}
