// Bindings of the comparison of results.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "fairlead/base/error.h"
#include "fairlead/verify/compare.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

Dtype dtype_of(const std::string& name) {
  const auto parsed = parse_dtype(name);
  if (!parsed)
    throw Error(ErrorCode::kInvalidInput, "[compare] Expected a dtype, got '" + name + "'.");
  return *parsed;
}

// Compares memory at two addresses: tensors and runtime values lend theirs without a copy.
Comparison compare(const std::string& dtype, std::uintptr_t expected, std::uintptr_t got,
                   std::size_t count, const std::vector<double>& thresholds) {
  const Dtype parsed = dtype_of(dtype);
  const std::size_t bytes = count * dtype_size(parsed);
  const std::span a(reinterpret_cast<const std::byte*>(expected), bytes);
  const std::span b(reinterpret_cast<const std::byte*>(got), bytes);
  nb::gil_scoped_release release;
  return compare_buffers(parsed, a, b, thresholds);
}

TiedElements tied(const std::string& dtype, std::uintptr_t expected, std::uintptr_t got,
                  const std::vector<std::uintptr_t>& others, std::size_t count, double limit,
                  std::int64_t most) {
  const Dtype parsed = dtype_of(dtype);
  const auto bytes = [&](std::uintptr_t at) {
    return std::span(reinterpret_cast<const std::byte*>(at), count * dtype_size(parsed));
  };
  std::vector<std::span<const std::byte>> own;
  own.reserve(others.size());
  for (const std::uintptr_t other : others) own.push_back(bytes(other));
  nb::gil_scoped_release release;
  return tied_elements(parsed, bytes(expected), bytes(got), own, limit, most);
}

}  // namespace

void init_verify(nb::module_& m) {
  nb::class_<Comparison>(m, "Comparison", "How far two tensors are apart.")
      .def_ro("count", &Comparison::count)
      .def_ro("max_abs", &Comparison::max_abs)
      .def_ro("scale", &Comparison::scale)
      .def_ro("max_scaled", &Comparison::max_scaled)
      .def_ro("max_rel", &Comparison::max_rel)
      .def_ro("sum_abs", &Comparison::sum_abs)
      .def_ro("nan_mismatch", &Comparison::nan_mismatch)
      .def_ro("inf_mismatch", &Comparison::inf_mismatch)
      .def_ro("differing", &Comparison::differing)
      .def_ro("worst_index", &Comparison::worst_index)
      .def_ro("over", &Comparison::over);
  m.def("compare", &compare, "dtype"_a, "expected"_a, "got"_a, "count"_a,
        "thresholds"_a = std::vector<double>{});
  nb::class_<TiedElements>(m, "TiedElements", "Where a result is apart from eager's.")
      .def_ro("count", &TiedElements::count)
      .def_ro("apart", &TiedElements::apart)
      .def_ro("ratio", &TiedElements::ratio)
      .def_ro("moved", &TiedElements::moved);
  m.def("tied_elements", &tied, "dtype"_a, "expected"_a, "got"_a, "others"_a, "count"_a, "limit"_a,
        "most"_a);
}

}  // namespace fairlead::python
