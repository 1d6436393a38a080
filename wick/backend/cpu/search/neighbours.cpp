#include "wick/backend/cpu/search/neighbours.h"

#include <algorithm>
#include <span>
#include <vector>

#include "wick/base/error.h"
#include "wick/math/quants.h"

namespace wick::cpu {
namespace {

/// What Neighbours refers to.
struct Tables {
  std::vector<float> levels;
  std::vector<int16_t> entry_of;
  std::vector<uint32_t> near;
};

/// How a codebook stores its entries.
struct Form {
  int values, bits;
  std::span<const float> levels;  // of the codes
};
template <class Levels>
Form form_of() {
  return {Levels::kGroup, Levels::kBits, Levels::kValues};
}

int code_at(uint32_t codes, int i, int bits) {
  return static_cast<int>(codes >> bits * i & ((1u << bits) - 1));
}

/// The codes of a group's number, in the fields of an entry.
uint32_t codes_of(int number, const Form& form) {
  const int base = static_cast<int>(form.levels.size());
  uint32_t codes = 0;
  for (int i = 0; i < form.values; ++i, number /= base) {
    codes |= static_cast<uint32_t>(number % base) << form.bits * i;
  }
  return codes;
}

/// Σ (difference of codes)² to every possible half of an entry, the first half for `half` = 0.
std::vector<int> half_distances(uint32_t codes, int half, const Form& form) {
  const int count = form.values / 2;
  std::vector<int> distances(size_t{1} << form.bits * count, 0);
  for (size_t other = 0; other < distances.size(); ++other) {
    for (int i = 0; i < count; ++i) {
      const int difference = code_at(codes, half * count + i, form.bits) -
                             code_at(static_cast<uint32_t>(other), i, form.bits);
      distances[other] += difference * difference;
    }
  }
  return distances;
}

/// Appends the kNear entries of the smallest distances, in the order of distances, then of entries.
void append_nearest(std::span<const int> distances, std::span<const uint16_t> entries,
                    Tables& found) {
  const int largest = *std::max_element(distances.begin(), distances.end());
  // Counting sort: first[d] is the place of the next entry at distance d.
  std::vector<int> first(static_cast<size_t>(largest) + 2, 0);
  for (const int d : distances) ++first[static_cast<size_t>(d) + 1];
  for (size_t d = 1; d < first.size(); ++d) first[d] += first[d - 1];
  const size_t begin = found.near.size();
  found.near.resize(begin + Neighbours::kNear);
  for (size_t i = 0; i < distances.size(); ++i) {
    const int at = first[static_cast<size_t>(distances[i])]++;
    if (at >= Neighbours::kNear) continue;
    found.near[begin + static_cast<size_t>(at)] = static_cast<uint32_t>(i) << 16 | entries[i];
  }
}

template <int n>
Tables make(const math::detail::Codebook<n>& book, const Form& form) {
  Tables found;
  for (const uint16_t entry : book.entries) {
    for (int i = 0; i < form.values; ++i) {
      found.levels.push_back(form.levels[static_cast<size_t>(code_at(entry, i, form.bits))]);
    }
  }
  int numbers = 1;
  for (int i = 0; i < form.values; ++i) numbers *= static_cast<int>(form.levels.size());
  const int half_bits = form.bits * form.values / 2;
  const uint32_t low_half = (1u << half_bits) - 1;
  std::vector<int> distances(n);
  for (int number = 0; number < numbers; ++number) {
    const uint32_t codes = codes_of(number, form);
    const auto low = half_distances(codes, 0, form), high = half_distances(codes, 1, form);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t entry = book.entries[i];
      distances[i] = low[entry & low_half] + high[entry >> half_bits];
    }
    const auto exact = std::find(distances.begin(), distances.end(), 0);
    found.entry_of.push_back(
        exact == distances.end() ? int16_t{-1} : static_cast<int16_t>(exact - distances.begin()));
    append_nearest(distances, book.entries, found);
  }
  return found;
}

const Tables& tables_of(DType dtype) {
  switch (dtype) {
    case DType::iq2_xxs: {
      static const Tables found = make(math::kEights256, form_of<TwoBitLevels>());
      return found;
    }
    case DType::iq2_xs: {
      static const Tables found = make(math::kEights512, form_of<TwoBitLevels>());
      return found;
    }
    case DType::iq2_s: {
      static const Tables found = make(math::kEights1024, form_of<TwoBitLevels>());
      return found;
    }
    case DType::iq1_s:
    case DType::iq1_m: {
      static const Tables found = make(math::kEights2048, form_of<OneBitLevels>());
      return found;
    }
    case DType::iq3_xxs: {
      static const Tables found = make(math::kFours256, form_of<ThreeBitLevels>());
      return found;
    }
    case DType::iq3_s: {
      static const Tables found = make(math::kFours512, form_of<OddThreeBitLevels>());
      return found;
    }
    default:
      throw Error(ErrorKind::type, "quantize", "no codebook for this dtype", name(dtype));
  }
}

}  // namespace

Neighbours neighbours_of(DType dtype) {
  const Tables& found = tables_of(dtype);
  return {found.levels.data(), found.entry_of.data(), found.near.data()};
}

}  // namespace wick::cpu
