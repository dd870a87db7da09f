// Bindings of checkpoints whose weights stay where they are.
#include "fairlead/weights/weight_folder.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <functional>
#include <optional>

#include "fairlead/base/error.h"

#include "fairlead/weights/convert.h"
#include "fairlead/weights/place_file.h"
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

nb::tuple tensor_of(const WeightFolder& folder, std::size_t number) {
  const WeightFolder::Tensor& each = folder.tensors().at(number);
  const StoredTensor& stored = each.stored;
  const nb::object dtype =
      stored.dtype ? nb::cast(std::string(dtype_name(*stored.dtype))) : nb::none();
  return nb::make_tuple(stored.name, stored.type, dtype, stored.dims, each.file, stored.begin,
                        stored.bytes);
}

using PartTuple = std::tuple<std::size_t, std::int64_t, std::string, std::vector<std::int64_t>,
                             std::vector<std::int64_t>>;

std::pair<std::int64_t, std::string> add_converted(ConvertedFile& file, const std::string& dtype,
                                                   const std::vector<PartTuple>& given) {
  std::vector<StoredPart> parts;
  for (const auto& [number, offset, type, dims, strides] : given) {
    parts.push_back({number, offset, parse_dtype(type).value(), dims, strides});
  }
  nb::gil_scoped_release release;
  ConvertedFile::Added added = file.add(parse_dtype(dtype).value(), parts);
  return {added.begin, std::move(added.hash)};
}

std::string place(const std::filesystem::path& from, const std::filesystem::path& to, bool link,
                  const nb::object& progress) {
  std::function<void(std::int64_t)> told;
  const nb::handle callable = progress;
  if (!progress.is_none()) {
    told = [callable](std::int64_t bytes) {
      const nb::gil_scoped_acquire acquire;
      callable(bytes);
    };
  }
  Placed how{};
  {
    nb::gil_scoped_release release;
    how = place_file(from.string(), to.string(), link, told);
  }
  constexpr const char* kWords[] = {"shared", "linked", "kernel", "copied"};
  return kWords[static_cast<std::size_t>(how)];
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
      .def_prop_ro(
          "count", [](const WeightFolder& s) { return s.tensors().size(); }, "Of its tensors.")
      .def("tensor", &tensor_of, "number"_a, "(name, type, dtype, sizes, file, first byte, bytes)",
           nb::sig("def tensor(self, number: int) -> tuple[str, str, str | None, list[int], int, "
                   "int, int]"))
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
          "file"_a, "offset"_a, "bytes"_a, "What was read of it need not stay in memory.")
      .def(
          "hash",
          [](const WeightFolder& s, std::size_t file, std::int64_t offset, std::int64_t bytes) {
            return s.file(file).hash(offset, bytes);
          },
          "file"_a, "offset"_a, "bytes"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Of bytes of a file, read a piece at a time.");
  nb::class_<WeightFile>(m, "WeightFile", "A file of weights, mapped and not read.")
      .def(
          "__init__",
          [](WeightFile* made, const std::filesystem::path& path) {
            new (made) WeightFile(path.string());
          },
          "path"_a)
      .def("hash", &WeightFile::hash, "offset"_a, "bytes"_a,
           nb::call_guard<nb::gil_scoped_release>(), "Of its bytes, read a piece at a time.")
      .def_prop_ro(
          "memory",
          [](nb::handle self) { return array_of(nb::cast<const WeightFile&>(self).bytes(), self); },
          nb::sig("def memory(self) -> typing.Any"));
  nb::class_<ConvertedFile>(m, "ConvertedFile",
                            "A file of weights that a checkpoint has in another dtype or order.")
      .def(
          "__init__",
          [](ConvertedFile* made, const WeightFolder& folder, const std::filesystem::path& path,
             const std::string& shown_as, unsigned threads) {
            new (made) ConvertedFile(folder, path.string(), shown_as, threads);
          },
          nb::keep_alive<1, 2>(), "folder"_a, "path"_a, "shown_as"_a, "threads"_a)
      .def("add", &add_converted, "dtype"_a, "parts"_a,
           "Appends parts (file, offset, dtype, sizes, strides); gives where they begin, "
           "and the hash of their bytes.")
      .def("close", &ConvertedFile::close, nb::call_guard<nb::gil_scoped_release>(),
           "Whole after this; gives the hash of its bytes.");
  m.def("place_file", &place, "from_"_a, "to"_a, "link"_a = false, "progress"_a = nb::none(),
        "A file under another name: 'shared' blocks, 'linked', or copied by the 'kernel' or "
        "'copied'.",
        nb::sig("def place_file(from_: str | os.PathLike[str], to: str | os.PathLike[str], link: "
                "bool = False, progress: collections.abc.Callable[[int], None] | None = None) -> "
                "str"));
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
      .def("forget", &ReservedMemory::forget, "Whatever was filled is gone.")
      .def(
          "fill",
          [](const ReservedMemory& s, std::int64_t at, const WeightFolder& folder, std::size_t file,
             std::int64_t offset, std::int64_t bytes) {
            const auto size = static_cast<std::int64_t>(s.bytes().size());
            FAIRLEAD_CHECK(at >= 0 && bytes >= 0 && at <= size - bytes, "more than is reserved");
            nb::gil_scoped_release release;
            folder.file(file).read(offset, s.bytes().subspan(static_cast<std::size_t>(at),
                                                             static_cast<std::size_t>(bytes)));
          },
          "at"_a, "folder"_a, "file"_a, "offset"_a, "bytes"_a);
}

}  // namespace fairlead::python
