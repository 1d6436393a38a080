#include "wick/serve/session_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "wick/base/block_pages.h"
#include "wick/base/checksum.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/gguf_writer.h"
#include "wick/tensor/call.h"

namespace wick::serve {
namespace {

constexpr uint32_t kVersion = 2;  // version 1 has no checksum
constexpr int64_t kPage = nn::KvCache::kPage, kWordBytes = 4;
constexpr const char* kLogits = "logits";
/// The last tensor: the checksum of all bytes of the file before it, and zeros. It fills a unit of
/// alignment, so that the file ends with it.
constexpr const char* kChecksum = "session.checksum";
using ChecksumWords = std::array<uint64_t, 4>;

int64_t pages_of(int64_t length) { return (length + kPage - 1) / kPage; }

/// A tensor of the cache, which holds pages or the states of sequences along its first dim.
struct Part {
  std::string name;
  Tensor whole;
  std::vector<int64_t> indices;  ///< of the first dim: what belongs to the session
  /// A page's bytes are rows of 256 positions. A position takes position_bytes[i % n] bytes of row
  /// i, where n is the size of the list. Empty: the states of a sequence.
  std::vector<int64_t> position_bytes = {};

  int64_t bytes_each() const {
    return bytes_of(whole.dtype(), whole.elems() / std::max<int64_t>(whole.size(0), 1));
  }
};

/// Part::position_bytes of keys or values.
std::vector<int64_t> position_bytes_of(const Tensor& pages, bool are_keys) {
  const auto blocks = BlockPages::of(pages.dtype(), pages.shape());
  if (!blocks) return {bytes_of(pages.dtype(), are_keys ? 1 : pages.size(3))};
  if (!blocks->by_element) return {blocks->step()};
  // A row of scales, and then a row of each byte of the quants.
  const int64_t quant_bytes = blocks->block_bytes() - BlockPages::kScaleBytes;
  std::vector<int64_t> bytes(static_cast<size_t>(1 + quant_bytes), 1);
  bytes.front() = BlockPages::kScaleBytes;
  return bytes;
}

/// The parts of a cache that hold a sequence. The cache must have pages.
std::vector<Part> parts_of(const nn::KvCache& cache, int64_t length) {
  std::vector<Part> parts;
  const std::span<const uint32_t> used = cache.pages().first(static_cast<size_t>(pages_of(length)));
  const std::vector<int64_t> pages(used.begin(), used.end());
  for (int64_t layer = 0; layer < cache.layers(); ++layer) {
    const auto add = [&](const std::string& name, const Tensor& whole, std::vector<int64_t> indices,
                         std::vector<int64_t> position_bytes) {
      parts.push_back({fmt::format("blk.{}.{}", layer, name), whole, std::move(indices),
                       std::move(position_bytes)});
    };
    const auto add_pages = [&](const std::string& name, const Tensor& whole, bool are_keys) {
      if (whole.defined()) add(name, whole, pages, position_bytes_of(whole, are_keys));
    };
    add_pages("keys", cache.keys(layer), true);
    add_pages("values", cache.values(layer), false);
    const std::span<const Tensor> states = cache.states(layer);
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].elems() > 0) add(fmt::format("state.{}", i), states[i], {0}, {});
    }
  }
  return parts;
}

/// What must be equal for a file's bytes to fit a cache: the name, dtype and sizes of each part, as
/// "blk.0.keys f16 2 16 256, blk.0.values f16 2 256 16".
std::string layout_of(const std::vector<Part>& parts) {
  std::string layout;
  for (const Part& part : parts) {
    layout +=
        fmt::format("{}{} {}", layout.empty() ? "" : ", ", part.name, name(part.whole.dtype()));
    for (int i = 1; i < part.whole.rank(); ++i) layout += fmt::format(" {}", part.whole.size(i));
  }
  return layout;
}

/// One index of a part on the host. Positions from `used` on become zeros, because their bytes are
/// those of other sequences, or uninitialised.
std::vector<std::byte> bytes_at(const Part& part, int64_t index, int64_t used) {
  const Tensor one = part.whole.narrow(0, index, 1).contiguous().to(Device::cpu());
  const auto count = static_cast<size_t>(part.bytes_each());
  std::vector<std::byte> bytes(count);
  std::memcpy(
      bytes.data(),
      static_cast<const std::byte*>(one.view().data) + bytes_of(one.dtype(), one.layout().offset()),
      count);
  if (part.position_bytes.empty() || used >= kPage) return bytes;
  const auto kept = static_cast<size_t>(used), all = static_cast<size_t>(kPage);
  for (size_t at = 0, row = 0; at < count; ++row) {
    const auto each = static_cast<size_t>(part.position_bytes[row % part.position_bytes.size()]);
    std::memset(bytes.data() + at + kept * each, 0, (all - kept) * each);
    at += all * each;
  }
  return bytes;
}

/// Calls visit(key, member) for the numbers of a sampler's state.
template <class State, class Visit>
void for_each_number(State& s, const Visit& visit) {
  for_each_option(s.options, visit);
  visit("draws", s.draws);
  visit("surprise_limit", s.surprise_limit);
}

std::string sampler_key(const char* name) { return fmt::format("session.sampler.{}", name); }

void write_sampler(io::GgufWriter& w, const SamplerState& state) {
  for_each_number(state, [&](const char* name, const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, float>) {
      w.set_f32(sampler_key(name), value);
    } else if constexpr (std::is_same_v<T, int>) {
      w.set_i32(sampler_key(name), value);
    } else {
      w.set_u64(sampler_key(name), value);
    }
  });
  const text::SamplerOptions& o = state.options;
  w.set_i32s(sampler_key("dry_breakers"), o.dry_breakers);
  std::vector<int32_t> ids, steps;
  std::vector<float> biases;
  for (const auto& [id, bias] : o.logit_bias) ids.push_back(id), biases.push_back(bias);
  for (const SamplerStep step : o.order) steps.push_back(static_cast<int32_t>(step));
  w.set_i32s(sampler_key("bias_tokens"), ids);
  w.set_f32s(sampler_key("biases"), biases);
  w.set_i32s(sampler_key("steps"), steps);
}

[[noreturn]] void invalid(const io::Gguf& file, std::string_view what, std::string_view detail = {},
                          std::string_view rule = {}) {
  throw Error(printable(file.path()), what, detail, rule);
}

std::optional<SamplerState> read_sampler(const io::Gguf& file) {
  if (!file.contains(sampler_key("temperature"))) return std::nullopt;
  SamplerState state;
  for_each_number(state, [&](const char* name, auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, float>) {
      value = file.get_f32(sampler_key(name));
    } else if constexpr (std::is_same_v<T, int>) {
      value = file.get_i32(sampler_key(name));
    } else {
      value = file.get_u64(sampler_key(name));
    }
  });
  text::SamplerOptions& o = state.options;
  o.dry_breakers = file.get_i32s(sampler_key("dry_breakers"));
  const std::vector<int32_t> ids = file.get_i32s(sampler_key("bias_tokens"));
  const std::vector<float> biases = file.get_f32s(sampler_key("biases"));
  if (ids.size() != biases.size()) invalid(file, "biases and their tokens differ in number");
  for (size_t i = 0; i < ids.size(); ++i) o.logit_bias.emplace_back(ids[i], biases[i]);
  o.order.clear();
  for (const int32_t step : file.get_i32s(sampler_key("steps"))) {
    if (step < 0 || step > static_cast<int32_t>(SamplerStep::temperature)) {
      invalid(file, "no such sampler step", fmt::format("{}", step));
    }
    o.order.push_back(static_cast<SamplerStep>(step));
  }
  try {
    text::Sampler checked(o);  // throws if an option is out of range
    checked.set_surprise_limit(state.surprise_limit);
  } catch (const Error& e) {
    invalid(file, e.what());
  }
  return state;
}

/// Errors: the file has a checksum that isn't that of its bytes.
void require_undamaged(const io::Gguf& file) {
  const io::GgufTensor* const tensor = file.find_tensor(kChecksum);
  if (tensor == nullptr) return;
  const std::span<const std::byte> bytes = file.bytes()->span();
  const auto at = static_cast<size_t>(tensor->offset);
  ChecksumWords stored{};
  bool fits = tensor->bytes == sizeof stored && bytes.size() == at + sizeof stored;
  if (fits) {
    std::memcpy(&stored, bytes.data() + at, sizeof stored);
    Checksum sum;
    sum.add(bytes.first(at));
    fits = stored == ChecksumWords{sum.value()};
  }
  file.require_unchanged("load");
  if (!fits) invalid(file, "the session file is damaged", "its checksum doesn't fit its bytes");
}

}  // namespace

void write_session(const std::string& path, const SavedSession& session, const nn::KvCache& cache,
                   const Tensor& logits) {
  io::GgufWriter w(path);
  w.keep_checksum();
  w.set_string("general.type", "session");
  w.set_u32("session.version", kVersion);
  w.set_string("session.model.digest", session.digest);
  w.set_string("session.model.name", session.model);
  w.set_string("session.cache.type", session.cache_type);
  w.set_i64("session.cache.length", session.length);
  w.set_i32s("session.tokens", session.tokens);
  w.set_f32s("session.adapter_scales", session.adapter_scales);
  w.set_string("session.text", session.text);
  if (session.sampler) write_sampler(w, *session.sampler);
  const std::vector<Part> parts =
      session.length > 0 ? parts_of(cache, session.length) : std::vector<Part>{};
  w.set_string("session.cache.layout", layout_of(parts));
  for (const Part& part : parts) {
    const auto count = static_cast<int64_t>(part.indices.size());
    w.add_tensor(part.name, DType::i32, {count, part.bytes_each() / kWordBytes});
  }
  Tensor on_host;
  if (logits.defined()) {
    on_host = logits.to(Device::cpu()).contiguous();
    w.add_tensor(kLogits, DType::f32, {on_host.elems()});
  }
  w.add_tensor(kChecksum, DType::i32, {static_cast<int64_t>(sizeof(ChecksumWords)) / kWordBytes});
  for (const Part& part : parts) {
    for (size_t i = 0; i < part.indices.size(); ++i) {
      const int64_t used = session.length - static_cast<int64_t>(i) * kPage;
      w.write(part.name, bytes_at(part, part.indices[i], used));
    }
  }
  if (on_host.defined()) {
    const std::vector<float> values = on_host.to_vector<float>();
    w.write(kLogits, std::as_bytes(std::span(values)));
  }
  const ChecksumWords checksum{w.checksum()};
  w.write(kChecksum, std::as_bytes(std::span(checksum)));
  w.finish();
}

SavedSession read_session(const std::string& path) {
  SavedSession session;
  session.file = io::Gguf::open(path);
  const io::Gguf& file = *session.file;
  require_undamaged(file);
  const std::string_view type = file.get_string("general.type", "model");
  if (type != "session") {
    invalid(file, "not a session", fmt::format("general.type = '{}'", printable(type)),
            "need a file that was saved as a session");
  }
  const uint32_t version = file.get_u32("session.version");
  if (version != kVersion) {
    throw Error(ErrorKind::not_implemented, printable(path), "session of another version",
                fmt::format("{}", version), fmt::format("this version of wick reads {}", kVersion));
  }
  if (file.find_tensor(kChecksum) == nullptr) {
    invalid(file, "the session file is damaged", "it has no checksum");
  }
  session.digest = file.get_string("session.model.digest");
  session.model = file.get_string("session.model.name");
  session.cache_type = file.get_string("session.cache.type");
  session.length = file.get_i64("session.cache.length");
  session.tokens = file.get_i32s("session.tokens");
  session.adapter_scales = file.get_f32s("session.adapter_scales");
  session.text = file.get_string("session.text");
  session.sampler = read_sampler(file);
  const auto tokens = static_cast<int64_t>(session.tokens.size());
  if (session.length < 0 || session.length > tokens) {
    invalid(file, "value out of range", fmt::format("session.cache.length = {}", session.length),
            fmt::format("there are {} tokens", tokens));
  }
  return session;
}

void restore_cache(const SavedSession& session, nn::KvCache& cache) {
  const io::Gguf& file = *session.file;
  if (session.length == 0) return;
  cache.reserve(session.length);
  const std::vector<Part> parts = parts_of(cache, session.length);
  const std::string layout = layout_of(parts);
  if (file.get_string("session.cache.layout") != layout) {
    invalid(file, "cache has another layout",
            printable(file.get_string("session.cache.layout"), 60),
            fmt::format("the model's is {}", printable(layout, 60)));
  }
  for (const Part& part : parts) {
    const io::GgufTensor& stored = file.require_tensor(part.name);
    const Shape need{static_cast<int64_t>(part.indices.size()), part.bytes_each() / kWordBytes};
    if (stored.dtype != DType::i32 || !(stored.shape == need)) {
      invalid(file, "tensor has the wrong size", stored.str(),
              fmt::format("need i32{}", need.str()));
    }
  }
  for (const Part& part : parts) {
    const std::span<const std::byte> bytes = file.data(file.require_tensor(part.name));
    const auto each = static_cast<size_t>(part.bytes_each());
    for (size_t i = 0; i < part.indices.size(); ++i) {
      const Tensor to = part.whole.narrow(0, part.indices[i], 1);
      const Tensor from = Tensor::empty(to.shape(), to.dtype());
      std::memcpy(from.mutable_view().data, bytes.data() + i * each, each);
      const Tensor there = from.to(to.device());
      apply_into({Op::cast, {&there}}, to);
    }
  }
  file.require_unchanged("load");
  cache.advance(session.length);
}

Tensor restored_logits(const SavedSession& session, int64_t vocabulary) {
  const io::GgufTensor* const stored = session.file->find_tensor(kLogits);
  if (stored == nullptr) return {};
  if (stored->dtype != DType::f32 || !(stored->shape == Shape{vocabulary})) {
    invalid(*session.file, "tensor has the wrong size", stored->str(),
            fmt::format("need f32[{}]", vocabulary));
  }
  const std::span<const std::byte> bytes = session.file->data(*stored);
  std::vector<float> values(static_cast<size_t>(vocabulary));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  session.file->require_unchanged("load");
  return Tensor::from(values, {1, vocabulary});
}

}  // namespace wick::serve
