// A vector whose elements are looked up with a check: what is numbered by a file cannot lead beyond
// its end.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace fairlead {

// Throws LookupError; the callers that know the node add its name.
[[noreturn]] void fail_lookup(std::size_t index, std::size_t size);

template <typename T>
class CheckedList : public std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::Base;
  CheckedList() = default;
  CheckedList(Base list) : Base(std::move(list)) {}  // NOLINT: a list is a list

  [[nodiscard]] T& operator[](std::size_t index) {
    if (index >= Base::size()) fail_lookup(index, Base::size());
    return Base::operator[](index);
  }
  [[nodiscard]] const T& operator[](std::size_t index) const {
    if (index >= Base::size()) fail_lookup(index, Base::size());
    return Base::operator[](index);
  }
  [[nodiscard]] T& at(std::size_t index) { return (*this)[index]; }
  [[nodiscard]] const T& at(std::size_t index) const { return (*this)[index]; }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] T& back() { return (*this)[Base::size() - 1]; }
  [[nodiscard]] const T& back() const { return (*this)[Base::size() - 1]; }
};

}  // namespace fairlead
