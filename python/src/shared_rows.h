// Rows of a table as Python tuples, of which equal ones are one object: a call of thousands of
// inputs has few different shapes, and every list or tuple is an object that Python's collector
// looks at.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <vector>

namespace fairlead::python {

// item(T) -> what stands in the tuple for it
template <typename T, typename F>
nanobind::list shared_rows(const std::vector<std::vector<T>>& rows, F&& item) {
  std::map<std::vector<T>, nanobind::object> made;
  nanobind::list all;
  for (const std::vector<T>& row : rows) {
    const auto [it, fresh] = made.try_emplace(row);
    if (fresh) {
      nanobind::list items;
      for (const T& each : row) items.append(item(each));
      it->second = nanobind::tuple(items);
    }
    all.append(it->second);
  }
  return all;
}

inline nanobind::list as_tuples(const std::vector<std::vector<std::int64_t>>& sizes) {
  return shared_rows(sizes, [](std::int64_t n) { return nanobind::int_(n); });
}

}  // namespace fairlead::python
