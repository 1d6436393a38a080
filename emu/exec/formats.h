#pragma once

// Moves elements between memory and registers. Each format has a fast path for 16 lanes with
// consecutive elements, one for lanes that all read the same element, and one for a single lane.
// Kernels communicate through aligned elements of 64 and 128 bits, such as a value and its flag.
// Other host threads never see a part of such an element: each one is moved once, by one
// instruction of the host, and the aligned 16 bytes that such an instruction moves are atomic on
// every host with AVX.

#include <cstring>
#include <type_traits>
#include <utility>

#include "emu/exec/values.h"

namespace emu {
namespace {

inline constexpr int kChunk = 16;
using Chunk = uint32_t __attribute__((ext_vector_type(kChunk)));

/// Returns whether none of 16 comparison results is true.
template <class V>
EMU_INLINE bool none(V truth) {
  using Bools = bool __attribute__((ext_vector_type(kChunk)));
  return bits_as<uint16_t>(__builtin_convertvector(truth != 0, Bools)) == 0;
}

/// An element of N dwords in memory, which the host reads and writes as a whole if N isn't 3.
template <int N>
struct Element32 {
  uint32_t dword[N];

  EMU_INLINE Element32 read(const char* from) {
    Element32 element;
    if constexpr (N == 2 || N == 4) {
      const Whole whole = *reinterpret_cast<const volatile Whole*>(from);
      std::memcpy(&element, &whole, sizeof element);
    } else {
      std::memcpy(&element, from, sizeof element);
    }
    return element;
  }
  EMU_INLINE void write(char* to, const Element32& element) {
    if constexpr (N == 2 || N == 4) {
      Whole whole;
      std::memcpy(&whole, &element, sizeof whole);
      *reinterpret_cast<volatile Whole*>(to) = whole;
    } else {
      std::memcpy(to, &element, sizeof element);
    }
  }

 private:
  typedef uint32_t Vector __attribute__((ext_vector_type(4)));
  using Word = std::conditional_t<N == 2, uint64_t, Vector>;
  typedef Word Whole __attribute__((aligned(1), may_alias));
};

/// Some dwords that the host moves by one instruction.
using Piece = uint32_t __attribute__((ext_vector_type(8)));
typedef Piece UnalignedPiece __attribute__((aligned(1), may_alias));

template <class V, int... I>
EMU_INLINE auto join(V low, V high, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(low, high, I...);
}

/// Reads N dwords, each of them once. The compiler may load the bytes of a plain copy several
/// times, once for each of its uses, and would then mix two values of an element.
template <int N>
EMU_INLINE auto read_whole(const char* from) {
  if constexpr (N == 8) {
    return Piece(*reinterpret_cast<const volatile UnalignedPiece*>(from));
  } else {
    return join(read_whole<N / 2>(from), read_whole<N / 2>(from + 2 * N),
                std::make_integer_sequence<int, N>());
  }
}

EMU_INLINE void write_whole(char* to, Piece piece) {
  *reinterpret_cast<volatile UnalignedPiece*>(to) = piece;
}

/// N dwords per lane, in N registers.
template <int N>
struct Dwords {
  static constexpr int kBytes = 4 * N, kRegisters = N;
  using Clearing = Dwords;
  using Block = uint32_t __attribute__((ext_vector_type(kChunk * N)));

  template <int kFirst, int... I>
  EMU_INLINE Chunk every(Block block, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(block, block, (kFirst + I * N)...);
  }

  /// Loads 16 lanes. `to` is these lanes' place in the first register; registers are 128 bytes
  /// apart.
  EMU_INLINE void load_chunk(const char* from, char* to) {
    if constexpr (N == 1) {
      std::memcpy(to, from, 64);
    } else {
      Block block;
      if constexpr (N == 3) {
        std::memcpy(&block, from, 64 * N);
      } else {
        block = read_whole<kChunk * N>(from);
      }
      constexpr std::make_integer_sequence<int, kChunk> kAll;
      put(to, 0, every<0>(block, kAll));
      put(to, 1, every<1>(block, kAll));
      if constexpr (N > 2) put(to, 2, every<2>(block, kAll));
      if constexpr (N > 3) put(to, 3, every<3>(block, kAll));
    }
  }
  EMU_INLINE void store_chunk(char* to, const char* from) {
    if constexpr (N == 1) {
      std::memcpy(to, from, 64);
    } else if constexpr (N == 2) {
      const Chunk a = get(from, 0), b = get(from, 1);
      write_whole(to, __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19));
      write_whole(to + 32, __builtin_shufflevector(a, b, 4, 20, 5, 21, 6, 22, 7, 23));
      write_whole(to + 64, __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27));
      write_whole(to + 96, __builtin_shufflevector(a, b, 12, 28, 13, 29, 14, 30, 15, 31));
    } else {
      for (int lane = 0; lane < kChunk; ++lane) store_lane(to + lane * kBytes, from + 4 * lane);
    }
  }
  EMU_INLINE void load_uniform(const char* from, char* to) {
    const auto element = Element32<N>::read(from);
    for (int i = 0; i < N; ++i) put(to, i, static_cast<Chunk>(element.dword[i]));
  }
  EMU_INLINE void load_lane(const char* from, char* to) {
    const auto element = Element32<N>::read(from);
    for (int i = 0; i < N; ++i) std::memcpy(to + 128 * i, &element.dword[i], 4);
  }
  EMU_INLINE void store_lane(char* to, const char* from) {
    Element32<N> element;
    for (int i = 0; i < N; ++i) std::memcpy(&element.dword[i], from + 128 * i, 4);
    Element32<N>::write(to, element);
  }
  EMU_INLINE void zero_lane(char* to) {
    for (int i = 0; i < N; ++i) std::memset(to + 128 * i, 0, 4);
  }

 private:
  EMU_INLINE void put(char* to, int i, Chunk value) {
    std::memcpy(to + 128 * i, &value, sizeof value);
  }
  EMU_INLINE Chunk get(const char* from, int i) {
    Chunk value;
    std::memcpy(&value, from + 128 * i, sizeof value);
    return value;
  }
};

/// One element smaller than a dword. kPart names the bits of the register that it fills: all of
/// them (0), the lower half (1) or the upper half (2). Loads into a half preserve the other half,
/// or clear it (3, 4).
template <class T, int kPart>
struct Small {
  static constexpr int kBytes = sizeof(T), kRegisters = 1;
  /// The format of the same load where it clears the other half.
  using Clearing = Small<T, kPart == 1 || kPart == 2 ? kPart + 2 : kPart>;
  using Block = T __attribute__((ext_vector_type(kChunk)));
  using Wide = int32_t __attribute__((ext_vector_type(kChunk)));

  /// Returns the register's new value; the half that isn't written comes from `old`.
  template <class V>
  EMU_INLINE V placed(V value, V old) {
    if constexpr (kPart == 0) return value;
    if constexpr (kPart == 3) return value & 0xffff;
    if constexpr (kPart == 4) return value << 16;
    if constexpr (kPart == 1) return (value & 0xffff) | (old & 0xffff0000u);
    if constexpr (kPart == 2) return value << 16 | (old & 0xffff);
  }
  EMU_INLINE void load_chunk(const char* from, char* to) {
    Block block;
    std::memcpy(&block, from, sizeof block);
    Chunk old;
    std::memcpy(&old, to, sizeof old);
    const Chunk value = placed(bits_as<Chunk>(__builtin_convertvector(block, Wide)), old);
    std::memcpy(to, &value, sizeof value);
  }
  EMU_INLINE void store_chunk(char* to, const char* from) {
    Chunk value;
    std::memcpy(&value, from, sizeof value);
    static_assert(kPart <= 2);
    if (kPart == 2) value >>= 16;
    const Block block = __builtin_convertvector(value, Block);
    std::memcpy(to, &block, sizeof block);
  }
  EMU_INLINE void load_uniform(const char* from, char* to) {
    for (int lane = 0; lane < kChunk; ++lane) load_lane(from, to + 4 * lane);
  }
  EMU_INLINE void load_lane(const char* from, char* to) {
    T element;
    std::memcpy(&element, from, sizeof element);
    uint32_t old;
    std::memcpy(&old, to, 4);
    const uint32_t value = placed(static_cast<uint32_t>(static_cast<int32_t>(element)), old);
    std::memcpy(to, &value, 4);
  }
  EMU_INLINE void store_lane(char* to, const char* from) {
    std::memcpy(to, from + (kPart == 2 ? 2 : 0), sizeof(T));
  }
  EMU_INLINE void zero_lane(char* to) {
    const T zero = 0;
    load_lane(reinterpret_cast<const char*>(&zero), to);
  }
};

}  // namespace
}  // namespace emu
