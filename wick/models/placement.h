#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/dtype.h"
#include "wick/base/export.h"
#include "wick/io/model_file.h"
#include "wick/nn/kv_cache.h"

namespace wick::models {

struct DecoderConfig;

/// How a model is split between GPUs and the CPU. The last layers and the logits are on GPUs, the
/// first layers on the CPU. The embeddings are on the first layer's device. The expert weights of a
/// layer may be on the CPU while the rest of the layer is on a GPU. A model whose device is the CPU
/// isn't split.
struct SplitOptions {
  /// As many layers on GPUs as fit, or as few layers' experts on the CPU as needed.
  static constexpr int64_t kAuto = -1;
  static constexpr int64_t kAll = INT64_MAX;

  int64_t gpu_layers =
      kAll;                 ///< layers on GPUs: a number, of which no more than all count, or kAuto
  int64_t cpu_experts = 0;  ///< the first layers whose experts are on the CPU: a number, or kAuto
  /// GPUs besides LoadOptions::device. Each gets consecutive layers, in proportion to its free
  /// memory.
  std::vector<Device> more_devices = {};

  // Sizes of the sessions that kAuto leaves memory for.
  int64_t context = 0;  ///< positions of the cache; 0: as many as the model was trained for
  DType cache_dtype = DType::f16;
  int64_t sequences = 1;
  int64_t batch = 512;  ///< rows of a step
};

/// Parses a number of layers of the option `name`: a number, "auto" or "all". Errors: anything
/// else, a negative number.
WICK_API int64_t parse_layers(std::string_view name, std::string_view text);

/// The devices of a model's parts.
struct Placement {
  std::vector<Device> layers;   ///< of each layer; the embeddings are on the first layer's device,
                                ///< the logits on the last one's
  std::vector<Device> experts;  ///< of each layer's expert weights
};

/// The parts of a model that a placement is made for.
struct PlacementInput {
  const io::ModelFile& file;
  const DecoderConfig& config;
  std::span<const nn::KvLayer> cache;  ///< what the cache stores for each layer
  Device device;                       ///< the first GPU, or the CPU
  uint64_t adapter_bytes = 0;          ///< bytes of the adapters' files
};

/// Chooses the devices. Layers that share a cache stay together, so fewer layers may be on GPUs
/// than asked for. Errors: a number is out of range; the further devices aren't GPUs, or one is
/// given twice; a device doesn't exist.
WICK_API Placement place(const PlacementInput& input, const SplitOptions& options);

/// Where the layers are, with the bytes of their weights and of their cache, in one line:
/// "cuda:0: 24 of 32 layers, 5.1 GiB; cpu: 8 layers and the experts of 4, 3.0 GiB".
WICK_API std::string summary(const PlacementInput& input, const SplitOptions& options,
                             const Placement& placement);

}  // namespace wick::models
