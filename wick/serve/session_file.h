#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wick/io/gguf.h"
#include "wick/nn/kv_cache.h"
#include "wick/text/sampler.h"

// Files of sessions: GGUF files of general.type "session". A tensor of the cache is stored as its
// bytes, in words of i32, so that files hold caches of every type; session.cache.layout tells their
// shapes. The last tensor, session.checksum, is the Checksum of all bytes before it. Numbers have
// the machine's byte order, which GGUF says is little-endian.
namespace wick::serve {

/// What continues the draws of a sampler.
struct SamplerState {
  text::SamplerOptions options;
  uint64_t draws = 0;
  float surprise_limit = 0;
};

/// A session without its cache and logits.
struct SavedSession {
  std::string digest, model;  ///< model_digest() and the name of the model's file
  std::string cache_type;
  int64_t length = 0;  ///< positions in the cache
  std::vector<int32_t> tokens;
  std::vector<float> adapter_scales;
  std::optional<SamplerState> sampler = {};        ///< nothing if nothing was generated
  std::string text;                                ///< of the caller
  std::shared_ptr<const io::Gguf> file = nullptr;  ///< read_session(): the rest of it
};

/// Writes a session, whose cache has one sequence, to a file that appears complete or not at all.
/// `logits` may be undefined. Errors: the file can't be written.
void write_session(const std::string& path, const SavedSession& session, const nn::KvCache& cache,
                   const Tensor& logits);

/// Reads the metadata of a session, and checks the checksum of the whole file. Errors: the file
/// isn't one, is damaged, or is of another version; a value is missing, has another type or is out
/// of range.
SavedSession read_session(const std::string& path);

/// Fills an empty cache from a session. Errors: the session's cache has another layout; the cache
/// has no room; out of memory; the file changed.
void restore_cache(const SavedSession& session, nn::KvCache& cache);

/// The logits, f32 [1, vocabulary] on the host; undefined if the session has none. Errors: they
/// have another size.
Tensor restored_logits(const SavedSession& session, int64_t vocabulary);

}  // namespace wick::serve
