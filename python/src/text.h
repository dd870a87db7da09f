// Text of a file as a Python string: bytes that are no UTF-8 are shown as \xNN, and never an error.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace fairlead::python {

inline nanobind::object text(const std::string& s) {
  return nanobind::steal(
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "backslashreplace"));
}

}  // namespace fairlead::python
