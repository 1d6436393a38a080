#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace wick::text {

/// GGUF's `tokenizer.ggml.token_type`.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

/// Writes the bytes that `spelled` stands for in GPT-2's alphabet, which gives each of the 256
/// bytes a printable character, to `out` (room for spelled.size()); returns their number, or `npos`
/// where a character is outside the alphabet.
std::size_t decode_alphabet(std::string_view spelled, char* out);

std::uint64_t hash_bytes(const char* data, std::size_t size);

/// The vocabulary: the bytes of every token in one block, and a hash index over those that merges
/// may build.
class TokenTable {
 public:
  static constexpr std::int32_t kNone = -1;

  /// `types` is empty (all normal) or as long as `tokens`; the views need not outlive the call.
  TokenTable(std::span<const std::string_view> tokens, std::vector<TokenType> types);

  std::size_t size() const { return types_.size(); }
  TokenType type(std::int32_t id) const { return types_[static_cast<std::size_t>(id)]; }
  void set_type(std::int32_t id, TokenType type) { types_[static_cast<std::size_t>(id)] = type; }

  std::string_view bytes(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return {arena_.get() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

  /// The token of one byte, or `kNone`.
  std::int32_t byte_token(unsigned char byte) const { return byte_tokens_[byte]; }

  /// The mergeable token with these bytes, the lowest id of several; `kNone` if there is none.
  std::int32_t find(std::string_view token) const {
    return find(token, hash_bytes(token.data(), token.size()));
  }
  std::int32_t find(std::string_view token, std::uint64_t hash) const;
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

 private:
  struct Slot {
    std::uint32_t tag;  // high half of the hash
    std::int32_t id;    // kNone: empty
  };
  void insert(std::int32_t id, std::uint64_t hash);

  std::vector<TokenType> types_;
  std::vector<std::uint32_t> offsets_;  // size() + 1
  std::unique_ptr<char[]> arena_;
  std::vector<Slot> slots_;
  std::uint64_t mask_ = 0;
  std::int32_t byte_tokens_[256];
};

}  // namespace wick::text
