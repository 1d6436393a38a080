#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <type_traits>

namespace wick {

/// A parameter that accepts one value, a braced list or a container of values. It refers to its
/// argument, so it is only valid during the call.
template <class T>
class ListOf {
 public:
  ListOf() = default;
  ListOf(T one) : one_(one), count_(1) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  ListOf(std::initializer_list<T> values) : data_(values.begin()), count_(values.size()) {}
#pragma GCC diagnostic pop
  template <std::ranges::contiguous_range Range>
    requires std::same_as<std::ranges::range_value_t<Range>, T> &&
                 (!std::same_as<std::remove_cvref_t<Range>, ListOf>)
  ListOf(const Range& values)
      : data_(std::ranges::data(values)), count_(std::ranges::size(values)) {}

  size_t size() const { return count_; }
  const T* begin() const { return data_ != nullptr ? data_ : &one_; }
  const T* end() const { return begin() + count_; }
  const T& operator[](size_t i) const { return begin()[i]; }

 private:
  const T* data_ = nullptr;
  T one_{};
  size_t count_ = 0;
};

}  // namespace wick
