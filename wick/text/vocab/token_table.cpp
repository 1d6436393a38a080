#include "wick/text/vocab/token_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

// GPT-2's alphabet: bytes that are printable in Latin-1 map to themselves, the others to U+0100 and
// up in order. The table is indexed by code point; 0xffff: outside the alphabet.
constexpr size_t kAlphabetEnd = 0x144;
constexpr std::array<uint16_t, kAlphabetEnd> make_alphabet() {
  std::array<uint16_t, kAlphabetEnd> bytes{};
  for (auto& b : bytes) b = 0xffff;
  size_t next = 0x100;
  for (size_t b = 0; b < 256; ++b) {
    const bool prints =
        (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
    bytes[prints ? b : next++] = static_cast<uint16_t>(b);
  }
  return bytes;
}
constexpr std::array<uint16_t, kAlphabetEnd> kAlphabet = make_alphabet();

bool is_mergeable(TokenType type) { return type == TokenType::normal; }

/// Writes a piece to `out`, which has room for it, with spaces for U+2581; returns the number of
/// bytes.
size_t decode_piece(std::string_view piece, char* out) {
  constexpr std::string_view kMark = "\xe2\x96\x81";
  const char* const begin = out;
  while (!piece.empty()) {
    const size_t mark = std::min(piece.find(kMark), piece.size());
    out = std::copy_n(piece.data(), mark, out);
    if (mark == piece.size()) break;
    *out++ = ' ';
    piece.remove_prefix(mark + kMark.size());
  }
  return static_cast<size_t>(out - begin);
}

}  // namespace

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

size_t decode_alphabet(std::string_view spelled, char* out) {
  const char* const begin = out;
  const char* p = spelled.data();
  const char* const end = p + spelled.size();
  while (p != end) {
    const auto lead = static_cast<unsigned char>(*p);
    if (lead > 0x20 && lead < 0x7f) {
      *out++ = *p++;
      continue;
    }
    if (lead < 0xc2 || lead > 0xc5 || end - p < 2) return std::string_view::npos;
    const auto trail = static_cast<unsigned char>(p[1]);
    if ((trail & 0xc0) != 0x80) return std::string_view::npos;
    const size_t point = (static_cast<size_t>(lead & 0x1f) << 6) | (trail & 0x3f);
    if (point >= kAlphabetEnd || kAlphabet[point] == 0xffff) return std::string_view::npos;
    *out++ = static_cast<char>(kAlphabet[point]);
    p += 2;
  }
  return static_cast<size_t>(out - begin);
}

void encode_alphabet(std::string_view bytes, std::string& out) {
  static const std::array<uint16_t, 256> kPoints = [] {
    std::array<uint16_t, 256> points{};
    for (size_t point = 0; point < kAlphabetEnd; ++point) {
      if (kAlphabet[point] != 0xffff) points[kAlphabet[point]] = static_cast<uint16_t>(point);
    }
    return points;
  }();
  for (const char byte : bytes) {
    append_utf8(out, kPoints[static_cast<unsigned char>(byte)]);
  }
}

TokenTable::TokenTable(std::span<const std::string_view> tokens, std::vector<TokenType> types,
                       Spelling spelling)
    : types_(std::move(types)) {
  if (types_.empty()) types_.assign(tokens.size(), TokenType::normal);
  size_t total = 0;
  for (const std::string_view token : tokens) total += token.size();
  if (total > std::numeric_limits<uint32_t>::max()) {
    throw Error("tokenizer", "the vocabulary is too large", fmt::format("{} bytes", total),
                "need less than 4 GiB");
  }
  offsets_.resize(tokens.size() + 1);
  arena_ = std::make_unique_for_overwrite<char[]>(total + 1);
  const size_t capacity = std::bit_ceil(2 * tokens.size() + 2);
  slots_.assign(capacity, Slot{0, kNone});
  mask_ = capacity - 1;
  for (auto& id : byte_tokens_) id = kNone;

  std::array<int32_t, 256> fallback;
  fallback.fill(kNone);
  uint32_t end = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    const auto id = static_cast<int32_t>(i);
    char* const out = arena_.get() + end;
    size_t length = std::string_view::npos;
    if (spelling == Spelling::raw) {
      // The token keeps its own bytes.
    } else if (spelling == Spelling::sentence_piece &&
               (is_mergeable(types_[i]) || types_[i] == TokenType::user_defined)) {
      if (find_invalid_utf8(token) != std::string_view::npos) {
        throw Error("tokenizer", "a token is not UTF-8",
                    fmt::format("token {} '{}'", i, printable(token, 60)));
      }
      length = decode_piece(token, out);
    } else if (is_mergeable(types_[i])) {
      length = decode_alphabet(token, out);
      // A token outside the alphabet (padding, tokens added after training) keeps its own bytes and
      // is never built by merges.
      if (length == std::string_view::npos) {
        if (find_invalid_utf8(token) != std::string_view::npos) {
          throw Error("tokenizer", "a token is not UTF-8",
                      fmt::format("token {} '{}'", i, printable(token, 60)));
        }
        types_[i] = TokenType::unused;
      }
    } else if (types_[i] == TokenType::byte) {
      const int byte = byte_of_token(token);
      if (byte >= 0) {
        out[0] = static_cast<char>(byte);
        length = 1;
        if (fallback[static_cast<size_t>(byte)] == kNone) {
          fallback[static_cast<size_t>(byte)] = id;
        }
      }
    }
    if (length == std::string_view::npos) {
      length = token.size();
      if (length > 0) std::memcpy(out, token.data(), length);
    }
    offsets_[i] = end;
    end += static_cast<uint32_t>(length);
    offsets_[i + 1] = end;
  }

  // A second pass, in blocks whose index slots are prefetched.
  constexpr size_t kBlock = 32;
  uint64_t hashes[kBlock];
  for (size_t first = 0; first < tokens.size(); first += kBlock) {
    const size_t count = std::min(kBlock, tokens.size() - first);
    for (size_t j = 0; j < count; ++j) {
      const std::string_view token = bytes(static_cast<int32_t>(first + j));
      hashes[j] = hash(token);
      prefetch(hashes[j]);
    }
    for (size_t j = 0; j < count; ++j) {
      const auto id = static_cast<int32_t>(first + j);
      if (is_mergeable(type(id)) && !bytes(id).empty()) insert(id, hashes[j]);
    }
  }
  for (size_t b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    byte_tokens_[b] = find({&byte, 1});
    if (byte_tokens_[b] == kNone) byte_tokens_[b] = fallback[b];
  }
}

void TokenTable::insert(int32_t id, uint64_t hash) {
  const uint32_t tag = tag_of(hash);
  for (uint64_t i = hash & mask_;; i = (i + 1) & mask_) {
    Slot& slot = slots_[i];
    if (slot.id == kNone) {
      slot = {tag, id};
      return;
    }
    if (slot.tag == tag && bytes(slot.id) == bytes(id)) return;  // the lowest id keeps the slot
  }
}

int32_t TokenTable::find(std::string_view token, uint64_t hash) const {
  const uint32_t tag = tag_of(hash);
  for (uint64_t i = hash & mask_;; i = (i + 1) & mask_) {
    const Slot& slot = slots_[i];
    if (slot.id == kNone) return kNone;
    if (slot.tag == tag && bytes(slot.id) == token) return slot.id;
  }
}

}  // namespace wick::text
