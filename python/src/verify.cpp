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

// Compares memory at two addresses: tensors and runtime values lend theirs without a copy.
Comparison compare(const std::string& dtype, std::uintptr_t expected, std::uintptr_t got,
                   std::size_t count, const std::vector<double>& thresholds) {
  const auto parsed = parse_dtype(dtype);
  if (!parsed)
    throw Error(ErrorCode::kInvalidInput, "[compare] Expected a dtype, got '" + dtype + "'.");
  const std::size_t bytes = count * dtype_size(*parsed);
  const std::span a(reinterpret_cast<const std::byte*>(expected), bytes);
  const std::span b(reinterpret_cast<const std::byte*>(got), bytes);
  nb::gil_scoped_release release;
  return compare_buffers(*parsed, a, b, thresholds);
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
}

}  // namespace fairlead::python
