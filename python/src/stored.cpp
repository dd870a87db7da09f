// Bindings of matrices as quantised checkpoints store them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "fairlead/files/mapped_file.h"
#include "fairlead/quant/gguf_header.h"
#include "fairlead/quant/keep.h"

namespace nb = nanobind;

namespace fairlead::python {

using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::numpy, nb::ro, nb::c_contig>;

std::span<const std::byte> bytes_of(const Bytes& array) {
  return {reinterpret_cast<const std::byte*>(array.data()), array.nbytes()};
}

struct Matrix {
  quant::StoredMatrix matrix;
  std::vector<Bytes> held = {};  // what it borrows from
};

Matrix of_gguf(const std::string& name, const std::string& type, std::int64_t rows,
               std::int64_t columns, const Bytes& data) {
  return {quant::gguf_matrix(name, type, rows, columns, bytes_of(data)), {data}};
}

Matrix of_groups(const std::string& name, const std::string& format, std::int64_t rows,
                 std::int64_t columns, std::int64_t group, const Bytes& integers,
                 const Bytes& scales, const std::string& scale_dtype,
                 const std::optional<Bytes>& zeros) {
  const Dtype dtype = scale_dtype == "float32"    ? Dtype::kFloat32
                      : scale_dtype == "bfloat16" ? Dtype::kBfloat16
                                                  : Dtype::kFloat16;
  Matrix made = {quant::grouped_matrix(name, format, rows, columns, group, bytes_of(integers),
                                       {bytes_of(scales), dtype},
                                       zeros ? bytes_of(*zeros) : std::span<const std::byte>()),
                 {integers, scales}};
  if (zeros) made.held.push_back(*zeros);
  return made;
}

nb::object values(const Matrix& m) {
  const auto count = static_cast<std::size_t>(m.matrix.rows * m.matrix.columns);
  auto* data = new float[count];
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  {
    nb::gil_scoped_release release;
    quant::StoredRow row(m.matrix);
    for (std::int64_t r = 0; r < m.matrix.rows; ++r) {
      m.matrix.format->take(m.matrix, r, row);
      row.values(m.matrix, data + r * m.matrix.columns);
    }
  }
  return nb::cast(nb::ndarray<nb::numpy, float>(
      data, {static_cast<std::size_t>(m.matrix.rows), static_cast<std::size_t>(m.matrix.columns)},
      owner));
}

}  // namespace

void init_stored(nb::module_& m) {
  nb::class_<Matrix>(m, "StoredMatrix", "A matrix of a quantised checkpoint, as it is there.")
      .def_static("of_gguf", &of_gguf, "name"_a, "type"_a, "rows"_a, "columns"_a, "data"_a)
      .def_static("of_groups", &of_groups, "name"_a, "format"_a, "rows"_a, "columns"_a, "group"_a,
                  "integers"_a, "scales"_a, "scale_dtype"_a, "zeros"_a.none())
      .def_prop_ro("name", [](const Matrix& s) { return s.matrix.name; })
      .def("values", &values, "The floats that it stands for.");
  nb::class_<quant::StoredRows>(m, "StoredRows",
                                "Rows of a quantised checkpoint, found by what they stand for.")
      .def(
          "__init__",
          [](quant::StoredRows* made, const std::vector<const Matrix*>& matrices,
             unsigned threads) {
            std::vector<quant::StoredMatrix> given;
            for (const Matrix* each : matrices) given.push_back(each->matrix);
            nb::gil_scoped_release release;
            new (made) quant::StoredRows(std::move(given), threads);
          },
          nb::keep_alive<1, 2>(), "matrices"_a, "threads"_a,
          "matrices: a list of StoredMatrix, read as long as this is.");
  m.def(
      "check_gguf_header",
      [](const std::string& path) {
        const MappedFile file(path, "export", "Check that it can be read.");
        quant::check_gguf_header(file.bytes(), path);
      },
      "path"_a, "Whether what the head of a GGUF file says of itself fits into the file.");
  m.def(
      "stored_formats",
      [] {
        std::vector<std::string> names;
        for (const auto& format : quant::gguf_formats()) names.emplace_back(format.name);
        return names;
      },
      "Types of GGUF whose weights a file can hold as they are.");
}

}  // namespace fairlead::python
