// Chooses the devices of a model's layers from the sizes of its tensors and of its cache.
#include "wick/models/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/models/decoder_config.h"
#include "wick/tensor/memory.h"

namespace wick::models {
namespace {

/// The bytes of a layer on a device.
struct LayerBytes {
  double weights = 0, experts = 0, cache = 0;
};

/// The bytes of a model's parts on one kind of device.
struct ModelBytes {
  std::vector<LayerBytes> layers;
  double embedding = 0, head = 0;
  double step = 0;  // temporaries of a step, and tables of positions
};

bool is_expert_weight(const io::GgufTensor& t) {
  return t.shape.rank() == 3 && t.name.find("_exps.") != std::string_view::npos;
}

/// The bytes of a tensor that is packed for a device. Vectors become f32.
double packed(const io::GgufTensor& t, Device device) {
  const int rank = t.shape.rank();
  if (!t.dtype || rank == 0) return static_cast<double>(t.bytes);
  if (rank == 1) return static_cast<double>(t.shape.elems()) * 4.0;
  const int64_t k = t.shape[rank - 1], n = t.shape[rank - 2];
  const int64_t matrices = rank == 3 ? t.shape[0] : 1;
  return static_cast<double>(packed_bytes(*t.dtype, n, k, device)) * static_cast<double>(matrices);
}

double cache_bytes(const nn::KvLayer& layer, int64_t positions, const SplitOptions& options) {
  double states = 0;
  for (const Shape& state : layer.states) states += static_cast<double>(state.elems()) * 4.0;
  const auto each = static_cast<double>(layer.heads * (layer.key_size + layer.value_size));
  return each * static_cast<double>(positions) * bytes_per_element(options.cache_dtype) +
         states * static_cast<double>(options.sequences);
}

/// About how many bytes a step of `options.batch` rows needs besides weights and cache: several
/// tensors of a layer's widest rows, the logits, and the tables of positions.
double step_bytes(const DecoderConfig& config, const SplitOptions& options, int64_t context) {
  int64_t widest = 0, rotated = 0;
  for (const LayerConfig& layer : config.layers) {
    const int64_t heads =
        layer.heads * (layer.key_size + layer.value_size) + 2 * layer.kv_heads * layer.key_size;
    const int64_t used =
        layer.experts ? config.experts.used * config.experts.intermediate : layer.intermediate;
    widest = std::max(widest, 6 * config.hidden + 2 * heads + 4 * used);
  }
  widest += config.recurrent.inner * 6;
  for (const nn::RopeOptions& rope : config.ropes) rotated += rope.dims;
  const double rows = static_cast<double>(std::min(options.batch, context) + options.sequences);
  const double logits = static_cast<double>(config.vocabulary * (options.sequences + 2));
  return 4.0 * (rows * static_cast<double>(widest) + 2.0 * logits +
                2.0 * static_cast<double>(context) * static_cast<double>(rotated));
}

ModelBytes bytes_on(const PlacementInput& input, const SplitOptions& options, Device device) {
  const size_t layers = input.config.layers.size();
  const int64_t context = options.context > 0 ? options.context : input.config.context;
  ModelBytes bytes;
  bytes.layers.resize(layers);
  const bool tied = input.file.find_tensor("output.weight") == nullptr;
  for (const io::GgufTensor& t : input.file.tensors()) {
    const std::optional<int64_t> layer = io::layer_of(t.name);
    if (layer && *layer < static_cast<int64_t>(layers)) {
      LayerBytes& of = bytes.layers[static_cast<size_t>(*layer)];
      (is_expert_weight(t) ? of.experts : of.weights) += packed(t, device);
    } else if (t.name.starts_with("output")) {
      bytes.head += packed(t, device);
    } else {
      bytes.embedding += static_cast<double>(t.bytes);
      if (tied && t.name == "token_embd.weight") bytes.head += packed(t, device);
    }
  }
  for (size_t i = 0; i < layers; ++i) {
    bytes.layers[i].cache = cache_bytes(input.cache[i], context * options.sequences, options);
    // Factors are converted to f32.
    bytes.layers[i].weights +=
        2.0 * static_cast<double>(input.adapter_bytes) / static_cast<double>(layers);
  }
  bytes.step = step_bytes(input.config, options, context);
  return bytes;
}

/// The memory of a device that a model may take: what is free, less a margin for code of kernels,
/// recorded graphs and the rounding of sizes.
double capacity_of(Device device) {
  const MemoryStats stats = memory_stats(device);
  const size_t limit =
      stats.limit_bytes > stats.in_use_bytes ? stats.limit_bytes - stats.in_use_bytes : size_t{0};
  const auto free = static_cast<double>(std::min(limit, stats.free_bytes + stats.cached_bytes));
  return free - std::min(free / 32.0, 0x1p29);
}

/// Makes placements and tells whether they fit.
class Planner {
 public:
  Planner(const PlacementInput& input, const SplitOptions& options,
          const std::vector<Device>& devices)
      : config_(input.config), devices_(devices) {
    for (const Device device : devices) {
      bytes_.push_back(bytes_on(input, options, device));
      capacity_.push_back(capacity_of(device));
    }
    for (const LayerBytes& layer : bytes_.front().layers) {
      has_experts_ = has_experts_ || layer.experts > 0;
    }
  }

  bool has_experts() const { return has_experts_; }

  /// A placement with at most `gpu_layers` layers on GPUs, and the experts of the first
  /// `cpu_experts` layers on the CPU. `fits` tells whether the GPUs have the memory.
  Placement make(int64_t gpu_layers, int64_t cpu_experts, bool& fits) const {
    const size_t all = config_.layers.size();
    size_t first =
        all - static_cast<size_t>(std::min<int64_t>(gpu_layers, static_cast<int64_t>(all)));
    while (!can_begin(first)) ++first;
    Placement placement;
    placement.layers.assign(first, Device::cpu());
    std::vector<double> used(devices_.size(), 0.0);
    const auto taken = [&](size_t layer, size_t device) {
      const LayerBytes& of = bytes_[device].layers[layer];
      const bool experts = static_cast<int64_t>(layer) >= cpu_experts;
      return of.weights + of.cache + (experts ? of.experts : 0.0);
    };
    double total = bytes_.front().head + (first == 0 ? bytes_.front().embedding : 0.0);
    for (size_t i = first; i < all; ++i) total += taken(i, 0);
    double capacity = 0;
    for (const double each : capacity_) capacity += std::max(each, 0.0);
    size_t device = 0;
    if (first == 0) used.front() += bytes_.front().embedding;
    for (size_t i = first; i < all; ++i) {
      const double share = total * std::max(capacity_[device], 0.0) / std::max(capacity, 1.0);
      const bool is_full = used[device] + taken(i, device) / 2 > share;
      if (is_full && device + 1 < devices_.size() && can_begin(i) && i > first) ++device;
      used[device] += taken(i, device);
      placement.layers.push_back(devices_[device]);
    }
    if (first < all) used[device] += bytes_[device].head;
    for (size_t i = 0; i < all; ++i) {
      const bool on_cpu = static_cast<int64_t>(i) < cpu_experts && config_.layers[i].experts;
      placement.experts.push_back(on_cpu ? Device::cpu() : placement.layers[i]);
    }
    fits = true;
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (used[d] > 0.0) fits = fits && used[d] + bytes_[d].step <= capacity_[d];
    }
    return placement;
  }

 private:
  /// Whether a device may begin at a layer: later layers don't read the cache of earlier ones.
  bool can_begin(size_t layer) const {
    for (size_t i = layer; i < config_.layers.size(); ++i) {
      const int of = config_.layers[i].cache_of;
      if (of != LayerConfig::kOwnCache && static_cast<size_t>(of) < layer) return false;
    }
    return true;
  }

  const DecoderConfig& config_;
  std::vector<Device> devices_;
  std::vector<ModelBytes> bytes_;  // on each device
  std::vector<double> capacity_;
  bool has_experts_ = false;
};

void check(const PlacementInput& input, const SplitOptions& options) {
  const auto in_range = [](std::string_view name, int64_t n) {
    if (n >= SplitOptions::kAuto) return;
    throw Error(name, "out of range", fmt::format("{}", n), "need at least 0, or auto");
  };
  in_range("gpu layers", options.gpu_layers);
  in_range("cpu experts", options.cpu_experts);
  if (options.context < 0 || options.sequences < 1 || options.batch < 1) {
    throw Error("load", "sizes of sessions out of range",
                fmt::format("context {}, {} sequences, batch {}", options.context,
                            options.sequences, options.batch));
  }
  std::vector<Device> seen = {input.device};
  for (const Device device : options.more_devices) {
    if (device.kind == DeviceKind::cpu || input.device.kind == DeviceKind::cpu) {
      throw Error("device", "a list of devices with the CPU", "",
                  "list GPUs; layers that they have no room for are on the CPU anyway");
    }
    if (std::find(seen.begin(), seen.end(), device) != seen.end()) {
      throw Error("device", "given twice", device.str());
    }
    seen.push_back(device);
  }
}

std::string size_text(double bytes) {
  if (bytes >= 0.95 * 0x1p30) return fmt::format("{:.1f} GiB", bytes / 0x1p30);
  return fmt::format("{:.1f} MiB", bytes / 0x1p20);
}

std::string layers_text(size_t count) {
  return fmt::format("{} layer{}", count, count == 1 ? "" : "s");
}

}  // namespace

int64_t parse_layers(std::string_view name, std::string_view text) {
  if (text == "auto") return SplitOptions::kAuto;
  if (text == "all") return SplitOptions::kAll;
  int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (stop != end || text.empty() || error == std::errc::invalid_argument) {
    throw Error(name, "not a number of layers", fmt::format("'{}'", printable(text, 40)),
                "need a number, auto or all");
  }
  if (error == std::errc::result_out_of_range || count < 0) {
    throw Error(name, "out of range", printable(text, 40), "need at least 0, auto or all");
  }
  return count;
}

Placement place(const PlacementInput& input, const SplitOptions& options) {
  check(input, options);
  const auto all = static_cast<int64_t>(input.config.layers.size());
  const std::vector<Device> everywhere(static_cast<size_t>(all), input.device);
  const bool asks_for_all = options.gpu_layers >= all && options.cpu_experts == 0;
  if (input.device.kind == DeviceKind::cpu || (asks_for_all && options.more_devices.empty())) {
    return {everywhere, everywhere};
  }
  std::vector<Device> devices = {input.device};
  devices.insert(devices.end(), options.more_devices.begin(), options.more_devices.end());
  const Planner planner(input, options, devices);
  const bool any_layers = options.gpu_layers == SplitOptions::kAuto;
  const bool any_experts = options.cpu_experts == SplitOptions::kAuto;
  const int64_t layers = any_layers ? all : options.gpu_layers;
  int64_t experts = any_experts ? 0 : options.cpu_experts;
  bool fits = false;
  Placement placement = planner.make(layers, experts, fits);
  if (any_experts && planner.has_experts()) {
    while (!fits && experts < all) placement = planner.make(layers, ++experts, fits);
  }
  if (any_layers) {
    for (int64_t fewer = all - 1; !fits && fewer >= 0; --fewer) {
      placement = planner.make(fewer, experts, fits);
    }
  }
  return placement;
}

std::string summary(const PlacementInput& input, const SplitOptions& options,
                    const Placement& placement) {
  std::vector<Device> devices;
  for (const auto* list : {&placement.layers, &placement.experts}) {
    for (const Device device : *list) {
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
        devices.push_back(device);
      }
    }
  }
  std::stable_sort(devices.begin(), devices.end(), [](Device a, Device b) {
    return a.kind != DeviceKind::cpu && b.kind == DeviceKind::cpu;
  });
  std::string text;
  for (const Device device : devices) {
    const ModelBytes bytes = bytes_on(input, options, device);
    double used = 0;
    size_t layers = 0, experts = 0;
    for (size_t i = 0; i < placement.layers.size(); ++i) {
      const LayerBytes& of = bytes.layers[i];
      const bool holds = placement.layers[i] == device;
      if (holds) ++layers, used += of.weights + of.cache;
      if (placement.experts[i] == device) used += of.experts;
      if (!holds && placement.experts[i] == device) ++experts;
    }
    if (placement.layers.front() == device) used += bytes.embedding;
    if (placement.layers.back() == device) used += bytes.head;
    std::string what;
    if (text.empty()) {
      what = fmt::format("{} of {}", layers, layers_text(placement.layers.size()));
    } else if (layers > 0) {
      what = layers_text(layers);
    }
    if (experts > 0) {
      what += what.empty() ? fmt::format("the experts of {}", layers_text(experts))
                           : fmt::format(" and the experts of {}", experts);
    }
    text +=
        fmt::format("{}{}: {}, {}", text.empty() ? "" : "; ", device.str(), what, size_text(used));
  }
  return text;
}

}  // namespace wick::models
