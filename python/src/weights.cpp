// Bindings of checkpoints whose weights stay where they are.
#include "fairlead/weights/weight_folder.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>

#include "fairlead/weights/reserved_memory.h"

namespace nb = nanobind;

namespace fairlead::python {

using namespace nb::literals;

namespace {

// The bytes as an array that keeps its owner.
nb::object array_of(std::span<const std::byte> bytes, nb::handle owner) {
  auto* const data = const_cast<std::byte*>(bytes.data());
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(data, {bytes.size()}, owner));
}

nb::list tensors_of(const WeightFolder& folder) {
  nb::list rows;
  for (const WeightFolder::Tensor& each : folder.tensors()) {
    const StoredTensor& stored = each.stored;
    const nb::object dtype =
        stored.dtype ? nb::cast(std::string(dtype_name(*stored.dtype))) : nb::none();
    rows.append(nb::make_tuple(stored.name, stored.type, dtype, stored.dims, each.file,
                               stored.begin, stored.bytes));
  }
  return rows;
}

}  // namespace

void init_weights(nb::module_& m) {
  nb::class_<WeightFolder>(m, "WeightFolder",
                           "The safetensors files of a checkpoint folder, mapped and not read.")
      .def(
          "__init__",
          [](WeightFolder* made, const std::filesystem::path& folder) {
            nb::gil_scoped_release release;
            new (made) WeightFolder(folder.string());
          },
          "folder"_a)
      .def_prop_ro("names", &WeightFolder::names, "Of the files in the folder.")
      .def_prop_ro("tensors", &tensors_of, "(name, type, dtype, sizes, file, first byte, bytes)",
                   nb::sig("def tensors(self) -> list[tuple[str, str, str | None, list[int], int, "
                           "int, int]]"))
      .def(
          "memory",
          [](nb::handle self, std::size_t file) {
            return array_of(nb::cast<const WeightFolder&>(self).file(file).bytes(), self);
          },
          "file"_a, "The bytes of a file; what is written there never reaches the file.",
          nb::sig("def memory(self, file: int) -> typing.Any"))
      .def("check_unchanged", &WeightFolder::check_unchanged,
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "forget",
          [](const WeightFolder& s, std::size_t file, std::int64_t offset, std::int64_t bytes) {
            s.file(file).forget(offset, bytes);
          },
          "file"_a, "offset"_a, "bytes"_a, "What was read of it need not stay in memory.");
  nb::class_<ReservedMemory>(m, "ReservedMemory",
                             "Addresses with no memory behind them until somebody looks.")
      .def(nb::init<std::int64_t>(), "bytes"_a)
      .def_prop_ro(
          "memory",
          [](nb::handle self) {
            return array_of(nb::cast<const ReservedMemory&>(self).bytes(), self);
          },
          nb::sig("def memory(self) -> typing.Any"))
      .def_prop_ro("touched", &ReservedMemory::touched)
      .def(
          "fill",
          [](const ReservedMemory& s, std::int64_t at, const WeightFolder& folder, std::size_t file,
             std::int64_t offset, std::int64_t bytes) {
            nb::gil_scoped_release release;
            folder.file(file).read(offset, s.bytes().subspan(static_cast<std::size_t>(at),
                                                             static_cast<std::size_t>(bytes)));
          },
          "at"_a, "folder"_a, "file"_a, "offset"_a, "bytes"_a);
}

}  // namespace fairlead::python
