#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/models/metadata.h"
#include "wick/nn/layers.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// Pairs of elements that the file's weights rotate together.
enum class RopeStyle : uint8_t {
  interleaved,  ///< elements 2i and 2i + 1
  neox,         ///< elements i and i + r/2 of the r rotated elements
};

/// The activation of an MLP.
enum class Activation : uint8_t {
  silu,
  gelu,          ///< GELU by the tanh formula
  gelu_erf,      ///< GELU by the error function
  relu_squared,  ///< max(x, 0)²
  clamped_swiglu,  ///< gpt-oss: gate · sigmoid(1.702 · gate) · (up + 1), gate and up clamped to ±7
};

/// How the rows of a sequence become one embedding.
enum class Pooling : uint8_t { mean, first, last };

/// Norms of queries and keys.
enum class QkNorm : uint8_t {
  none,
  heads,   ///< of each head
  rows,    ///< of all heads of a row together
  scaled,  ///< RMS norm of each head without weights (Llama 4)
};

/// What a layer does in the place of attention.
enum class Mixer : uint8_t {
  attention,
  short_conv,            ///< a gated convolution over few rows (LFM2)
  mamba2,                ///< Mamba-2's state space
  attention_and_mamba2,  ///< both, side by side, whose results are added (Falcon-H1)
  delta_net,             ///< the gated delta rule (Qwen3-Next)
};

/// How the experts of a layer are chosen and weighted.
enum class Gating : uint8_t {
  softmax,            ///< scores are the softmax of the router's logits
  sigmoid,            ///< scores are the sigmoid of the logits
  softmax_of_chosen,  ///< experts are chosen by logits; weights are the softmax of the chosen ones
};

/// A mixture of experts in place of an MLP.
struct ExpertsConfig {
  int64_t count = 0, used = 0;  ///< experts of a layer, and experts that a row goes through
  int64_t intermediate = 0;     ///< width of an expert
  int64_t shared = 0;           ///< width of the MLP that all rows go through; 0: none
  Gating gating = Gating::softmax;
  bool normalize = false;  ///< weights of the chosen experts are divided by their sum
  float scale = 1;         ///< factor of the weights
  int64_t groups = 1;      ///< experts come from the `groups_used` best of these groups
  int64_t groups_used = 1;
  bool weigh_inputs = false;  ///< weights multiply the experts' inputs instead of their outputs
  bool beside_mlp = false;    ///< rows go through the layer's MLP, too, with norms of its own
};

/// What queries are multiplied by at position p: 1 + scale · log(floor((p + offset) / length) + 1).
struct TemperatureConfig {
  float scale = 0;  ///< 0: none
  int64_t length = 1;
  float offset = 0;
};

/// Sizes of attention with latent keys and values (DeepSeek-V2).
struct LatentConfig {
  int64_t query_rank = 0;  ///< rank of the queries' projection; 0: one matrix
  int64_t rank = 0;        ///< elements of a latent vector
  int64_t rotated = 0;     ///< rotated elements of a head
};

/// Sizes of mixers with recurrent states.
struct RecurrentConfig {
  int64_t taps = 0;    ///< rows that the convolution reads
  int64_t inner = 0;   ///< elements of all heads
  int64_t heads = 0;   ///< heads of the values
  int64_t groups = 0;  ///< heads of the keys and queries, which heads of the values share
  int64_t state = 0;   ///< elements of a key and of a query
};

/// Sizes and variants of one layer.
struct LayerConfig {
  static constexpr int kNoRope = -1, kOwnCache = -1;

  Mixer mixer = Mixer::attention;
  int64_t heads = 0, kv_heads = 0;
  int64_t key_size = 0;    ///< elements of a query head and of a key head
  int64_t value_size = 0;  ///< elements of a value head
  int64_t window = 0;      ///< keys that a query sees, itself included; 0: all
  bool chunked = false;    ///< a query sees the keys of its chunk only, see DecoderConfig::chunk
  int rope = 0;            ///< index in DecoderConfig::ropes
  QkNorm qk_norm = QkNorm::none;
  bool temperature = false;  ///< queries are multiplied by DecoderConfig::temperature
  int64_t intermediate = 0;  ///< width of the MLP; 0: none
  bool experts = false;      ///< experts in place of the MLP
  int cache_of = kOwnCache;  ///< the earlier layer whose keys and values this one reads
};

/// Sizes and variants of a decoder.
struct WICK_API DecoderConfig {
  int64_t hidden = 0, vocabulary = 0, context = 0;
  int64_t chunk = 0;  ///< positions of a chunk, whole pages of the cache; 0: no layer is chunked
  std::vector<LayerConfig> layers = {};
  nn::NormKind norm = nn::NormKind::rms;
  float norm_eps = 0;
  /// Norms before and after attention and MLP. Without mlp_norm, a parallel layer's MLP reads what
  /// its attention reads.
  bool attention_norm = true, attention_post_norm = false, mlp_norm = true, mlp_post_norm = false;
  std::string_view mlp_norm_name = "ffn_norm";  ///< the tensor of the norm before the MLP
  std::string_view attention_post_norm_name = "post_attention_norm";
  std::string_view mlp_post_norm_name = "post_ffw_norm";
  bool post_norm = false;  ///< norms after attention and MLP apply to the sums with their inputs
  bool first_norm = true;  ///< the first layer has attention_norm, too
  bool embedding_norm = false, output_norm = true;  ///< norms of the embeddings and of the result
  bool token_types = false;  ///< the first row of a table of token types is added to the embeddings
  bool causal = true;        ///< a row sees no later rows; windows of other models are symmetric
  bool makes_logits = true;  ///< false: the file has no output matrix, and the table isn't one
  Pooling pooling = Pooling::last;
  std::string_view output_norm_name = "output_norm";
  bool parallel = false;  ///< the MLP reads the layer's input instead of the attention's result
  Activation activation = Activation::silu;
  bool gated = true;               ///< the MLP multiplies two projections
  bool learned_positions = false;  ///< a table of positions is added to the embeddings
  float embedding_scale = 1;       ///< factor of the embeddings
  float residual_scale = 1;        ///< factor of what attention and MLP add
  float attention_scale = 0;       ///< factor of q·k
  float attention_soft_cap = 0;    ///< > 0: scores become cap · tanh(score / cap)
  float logit_scale = 1;           ///< factor of the logits
  float logit_soft_cap = 0;        ///< > 0: logits become cap · tanh(logit / cap)
  RopeStyle rope_style = RopeStyle::interleaved;
  std::vector<nn::RopeOptions> ropes = {};  ///< angles; layers choose one
  bool norm_after_rope = false;             ///< queries and keys are rotated before their norm
  bool value_norm = false;                  ///< values have an RMS norm without weights
  bool query_gates = false;      ///< heads are multiplied by sigmoids of gates beside the queries
  bool attention_sinks = false;  ///< each head has a score without a key
  /// The file must have biases for queries, keys and values. If false, biases are optional.
  bool qkv_biases = false;
  TemperatureConfig temperature = {};
  LatentConfig latent = {};
  RecurrentConfig recurrent = {};
  int64_t per_layer_size = 0;  ///< elements of each layer's own embeddings; 0: none
  ExpertsConfig experts = {};

  bool is_latent() const { return latent.rank > 0; }
};

/// The configuration of a Llama with the metadata's sizes: RMS norms, interleaved rope, silu, and
/// the same window, or none, for all layers. Errors: those of Metadata; the sizes contradict each
/// other.
WICK_API DecoderConfig llama_config(const Metadata& metadata);

/// llama_config for models in which layers may have no heads and no MLP. Without heads there is no
/// rope.
WICK_API DecoderConfig hybrid_config(const Metadata& metadata);

/// Reads the sizes of Mamba-2 and of the gated delta rule. Errors: those of Metadata; the sizes
/// contradict each other.
WICK_API void read_recurrent(DecoderConfig& config, const Metadata& metadata);

/// llama_config with layer norms.
WICK_API DecoderConfig layer_norm_config(const Metadata& metadata);

/// Gives a window to all layers except every `period`th one. Errors: those of Metadata.
WICK_API void alternate_windows(DecoderConfig& config, const Metadata& metadata, int64_t period,
                                int64_t window);

/// Makes a configuration one of an encoder, whose rows see all others, with the metadata's pooling
/// or the mean. Errors: those of Metadata; the pooling isn't supported.
WICK_API void make_encoder(DecoderConfig& config, const Metadata& metadata);

/// Reads the sizes of experts, for the layers that have them: by default all if the file has
/// experts, except the leading dense ones. If it has no width of experts, they have that of
/// `config` or, if that is 0, the MLP's. Errors: those of Metadata; there are fewer experts than a
/// row goes through.
WICK_API void read_experts(DecoderConfig& config, const Metadata& metadata);

}  // namespace wick::models
