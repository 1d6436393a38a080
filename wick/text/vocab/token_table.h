#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/keyed_hash.h"

namespace wick::text {

/// Token types with the numbers of GGUF's `tokenizer.ggml.token_type`.
enum class TokenType : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// How a vocabulary spells the bytes of its normal tokens.
enum class Spelling : uint8_t {
  gpt2_alphabet,   ///< each byte as a printable character
  sentence_piece,  ///< the bytes themselves, with U+2581 for a space
  raw,             ///< the bytes themselves
};

/// Decodes `spelled`, a string in GPT-2's alphabet, which maps each of the 256 bytes to a printable
/// character. Writes the bytes to `out`, which must have room for spelled.size() bytes, and returns
/// their number, or `npos` if a character is outside the alphabet.
size_t decode_alphabet(std::string_view spelled, char* out);

/// Appends the spelling of `bytes` in GPT-2's alphabet to `out`.
void encode_alphabet(std::string_view bytes, std::string& out);

/// The byte that a token in SentencePiece's spelling stands for, such as <0x0A>, which some
/// byte-level vocabularies use, too; -1 if the token isn't spelled so.
int byte_of_token(std::string_view token);

/// The bytes of every token in one block of memory, and a hash index of the tokens that merges may
/// produce.
class TokenTable {
 public:
  static constexpr int32_t kNone = -1;

  /// `types` is empty (all tokens are normal) or as long as `tokens`. The views are only used
  /// during the call.
  TokenTable(std::span<const std::string_view> tokens, std::vector<TokenType> types,
             Spelling spelling = Spelling::gpt2_alphabet);

  size_t size() const { return types_.size(); }
  TokenType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
  void set_type(int32_t id, TokenType type) { types_[static_cast<size_t>(id)] = type; }

  std::string_view bytes(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    return {arena_.get() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

  /// The token of a single byte, or `kNone`.
  int32_t byte_token(unsigned char byte) const { return byte_tokens_[byte]; }

  /// The mergeable token with these bytes, the lowest id of several; `kNone` if there is none.
  int32_t find(std::string_view token) const { return find(token, hash(token)); }
  int32_t find(std::string_view token, uint64_t hash) const;
  /// The hash that find() and prefetch() take. Its key is drawn at random in each process.
  uint64_t hash(std::string_view token) const { return hash_.hash(token.data(), token.size()); }
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

 private:
  struct Slot {
    uint32_t tag;  // the 32 highest bits of the hash
    int32_t id;    // kNone: the slot is empty
  };
  void insert(int32_t id, uint64_t hash);

  std::vector<TokenType> types_;
  std::vector<uint32_t> offsets_;  // size() + 1 entries
  std::unique_ptr<char[]> arena_;
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 29); }

  KeyedHash hash_;
  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  int32_t byte_tokens_[256];
};

/// The bytes that have a token of their own.
inline std::bitset<256> bytes_with_tokens(const TokenTable& tokens) {
  std::bitset<256> found;
  for (size_t byte = 0; byte < found.size(); ++byte) {
    found[byte] = tokens.byte_token(static_cast<unsigned char>(byte)) != TokenTable::kNone;
  }
  return found;
}

/// Bytes of well-formed UTF-8.
inline std::bitset<256> utf8_bytes() {
  std::bitset<256> found;
  for (size_t byte = 0; byte < 0xf5; ++byte) found[byte] = byte != 0xc0 && byte != 0xc1;
  return found;
}

/// `bytes` without those of characters of which another byte may be missing.
inline std::bitset<256> of_whole_characters(std::bitset<256> bytes) {
  if ((bytes & utf8_bytes()) == utf8_bytes()) return bytes;
  for (size_t byte = 0x80; byte < bytes.size(); ++byte) bytes[byte] = false;
  return bytes;
}

}  // namespace wick::text
