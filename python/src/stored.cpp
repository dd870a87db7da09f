// Bindings of matrices as quantised checkpoints store them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/mapped_file.h"
#include "fairlead/quant/gguf_header.h"
#include "fairlead/quant/keep.h"
#include "fairlead/weights/weight_folder.h"

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

nb::object values(const DecodedTensor& tensor, std::int64_t rows, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(rows * columns);
  auto* data = new float[count];
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  {
    nb::gil_scoped_release release;
    tensor.decode(0, {data, count});
  }
  return nb::cast(nb::ndarray<nb::numpy, float>(
      data, {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)}, owner));
}

struct Codes {
  CodeBlocks blocks;
  std::vector<Bytes> held = {};
};

Codes codes_of(const Bytes& codes, const std::vector<float>& table, std::int64_t rows,
               std::int64_t columns, const Bytes& scales, const std::string& scale_dtype,
               std::int64_t block_rows, std::int64_t block_columns) {
  const std::optional<Dtype> dtype = parse_dtype(scale_dtype);
  FAIRLEAD_CHECK(dtype, "a dtype that is not in the table: " + scale_dtype);
  CodeBlocks blocks{bytes_of(codes), table.size() == 16 ? 4 : 8, table,      rows,
                    columns,         {bytes_of(scales), *dtype}, block_rows, block_columns};
  const TableTensor checked(blocks);
  return {std::move(blocks), {codes, scales}};
}

// What they read stays there with the folder, and not with objects of Python's, which hold the
// folder.
std::size_t add_matrix(WeightFolder& folder, const std::string& name,
                       const std::vector<std::int64_t>& dims, const Matrix& given) {
  quant::StoredMatrix matrix = given.matrix;
  for (auto* const bytes : {&matrix.data, &matrix.scales.data, &matrix.zeros}) {
    *bytes = folder.kept(*bytes);
  }
  return folder.add_decoded(name, dims, std::make_shared<quant::DecodedMatrix>(std::move(matrix)));
}

std::size_t add_codes(WeightFolder& folder, const std::string& name,
                      const std::vector<std::int64_t>& dims, const Codes& given) {
  CodeBlocks blocks = given.blocks;
  blocks.codes = folder.kept(blocks.codes);
  blocks.scales.data = folder.kept(blocks.scales.data);
  return folder.add_decoded(name, dims, std::make_shared<TableTensor>(std::move(blocks)));
}

}  // namespace

void init_stored(nb::module_& m) {
  nb::class_<Matrix>(m, "StoredMatrix", "A matrix of a quantised checkpoint, as it is there.")
      .def_static("of_gguf", &of_gguf, "name"_a, "type"_a, "rows"_a, "columns"_a, "data"_a)
      .def_static("of_groups", &of_groups, "name"_a, "format"_a, "rows"_a, "columns"_a, "group"_a,
                  "integers"_a, "scales"_a, "scale_dtype"_a, "zeros"_a.none())
      .def_prop_ro("name", [](const Matrix& s) { return s.matrix.name; })
      .def_prop_ro("rows", [](const Matrix& s) { return s.matrix.rows; })
      .def_prop_ro("columns", [](const Matrix& s) { return s.matrix.columns; })
      .def(
          "values",
          [](const Matrix& s) {
            return values(quant::DecodedMatrix(s.matrix), s.matrix.rows, s.matrix.columns);
          },
          "The floats that it stands for.");
  nb::class_<Codes>(m, "StoredCodes",
                    "Codes of 4 or 8 bits that stand for numbers of a table, times scales.")
      .def_static("of", &codes_of, "codes"_a, "table"_a, "rows"_a, "columns"_a, "scales"_a,
                  "scale_dtype"_a, "block_rows"_a, "block_columns"_a,
                  "Scales of uint8 are exponents of two, above -127.")
      .def(
          "values",
          [](const Codes& s) {
            return values(TableTensor(s.blocks), s.blocks.rows, s.blocks.columns);
          },
          "The floats that they stand for.");
  m.def("add_decoded", &add_matrix, "folder"_a, "name"_a, "dims"_a, "tensor"_a,
        "One more tensor of a folder, that is computed when it is read; its number.");
  m.def("add_decoded", &add_codes, "folder"_a, "name"_a, "dims"_a, "tensor"_a);
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
