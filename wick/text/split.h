#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace wick::text {

/// How a family of byte-level BPE vocabularies splits text into words before merging.
struct PreTokenizer {
  std::string_view name;  // the family: smollm, gpt-2, llama-bpe or qwen2
  const char* pattern;    // PCRE2 syntax; it matches at every position of any text
  bool whole_word_first;  // a word that is a token isn't built by merges
};

/// Returns the family of a GGUF `tokenizer.ggml.pre` name. Errors: the name is unknown; the message
/// lists the families.
PreTokenizer find_pre_tokenizer(std::string_view name);

/// A compiled split pattern. Several threads may call const methods at once.
class Splitter {
 public:
  explicit Splitter(const PreTokenizer& pre);

  /// One pass over a text, with PCRE2's match data.
  class Cursor {
   public:
    Cursor(const Splitter& splitter, std::string_view text);
    /// Returns the next word; empty at the end. Every byte of `text`, which must be well-formed
    /// UTF-8, is in one word.
    std::string_view next();

   private:
    struct FreeMatch {
      void operator()(void* match) const;
    };
    const void* code_;
    bool jit_;
    std::string_view text_;
    size_t pos_ = 0;
    std::unique_ptr<void, FreeMatch> match_;
  };

 private:
  struct FreeCode {
    void operator()(void* code) const;
  };
  std::unique_ptr<void, FreeCode> code_;
  bool jit_ = false;
};

}  // namespace wick::text
