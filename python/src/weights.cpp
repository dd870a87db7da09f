// Bindings of checkpoints whose weights stay where they are.
#include "fairlead/weights/weight_folder.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "fairlead/base/error.h"
#include "fairlead/onnx/check_references.h"
#include "fairlead/onnx/data_files.h"
#include "fairlead/weights/convert.h"
#include "fairlead/weights/fetched_weights.h"
#include "fairlead/weights/place_file.h"
#include "fairlead/weights/placed_weights.h"

namespace nb = nanobind;

namespace fairlead::python {

using namespace nb::literals;

namespace {

// The bytes as an array that keeps its owner.
nb::object array_of(std::span<const std::byte> bytes, nb::handle owner) {
  auto* const data = const_cast<std::byte*>(bytes.data());
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(data, {bytes.size()}, owner));
}

// The names of the tensors; all of them are of types that PyTorch has.
std::vector<std::string> tensor_names(const WeightFolder& folder) {
  std::vector<std::string> names;
  names.reserve(folder.tensors().size());
  for (const WeightFolder::Tensor& each : folder.tensors()) {
    if (!each.stored.dtype) {
      throw Error(ErrorCode::kInvalidInput,
                  "[export] Expected weights of types that PyTorch has, got " +
                      std::string(each.stored.type) + " for " + each.stored.name + " in '" +
                      folder.folder() + "'. Export without in_place.");
    }
    names.push_back(each.stored.name);
  }
  return names;
}

Dtype dtype_of(const std::string& name) {
  const std::optional<Dtype> found = parse_dtype(name);
  FAIRLEAD_CHECK(found, "a dtype that is not in the table: " + name);
  return *found;
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  FAIRLEAD_CHECK(axis >= 0 && static_cast<std::size_t>(axis) < rank, "an axis that is not there");
  return static_cast<std::size_t>(axis);
}

// (start, sizes, dtype, bytes): the elements of a block, read.
nb::tuple block_of(const StoredBlocks& blocks, const WeightFolder& folder, std::size_t number) {
  const StoredPart part = blocks.part(folder, number);
  auto* const read = new std::vector<std::byte>(read_part(folder, part));
  const nb::capsule owner(read,
                          [](void* p) noexcept { delete static_cast<std::vector<std::byte>*>(p); });
  return nb::make_tuple(blocks.start(number), part.dims, std::string(dtype_name(part.dtype)),
                        array_of(*read, owner));
}

StoredBlocks joined(const nb::sequence& tensors, std::int64_t axis) {
  std::vector<const StoredBlocks*> given;
  for (const nb::handle each : tensors) given.push_back(nb::cast<const StoredBlocks*>(each));
  FAIRLEAD_CHECK(!given.empty(), "no tensor to join");
  return StoredBlocks::joined(given, axis_of(axis, given.front()->dims().size()));
}

nb::tuple add_placed(PlacedWeights& placed, const StoredBlocks& blocks, const std::string& dtype) {
  const PlacedWeights::Place found = placed.add(blocks, dtype_of(dtype));
  constexpr const char* kWords[] = {"empty", "mapped", "joined", "other"};
  return nb::make_tuple(kWords[static_cast<std::size_t>(found.way)], found.file, found.offset,
                        found.bytes);
}

std::pair<std::int64_t, std::int64_t> add_converted(PlacedWeights& placed, ConvertedFile& file,
                                                    const StoredBlocks& blocks,
                                                    const std::string& dtype) {
  const Dtype wanted = dtype_of(dtype);
  nb::gil_scoped_release release;
  const ConvertedFile::Added added = file.add(wanted, blocks);
  placed.add_converted(blocks, wanted, added.begin, added.bytes, added.hash);
  return {added.begin, added.bytes};
}

// An object of Python's that somebody without its lock lets go.
struct Kept {
  explicit Kept(nb::object kept) : object(std::move(kept)) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    const nb::gil_scoped_acquire acquire;
    object.reset();
  }
  nb::object object;
};

void give_back_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
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
          [](WeightFolder* made, const std::filesystem::path& folder, const std::string& file) {
            nb::gil_scoped_release release;
            new (made) WeightFolder(folder.string(), file);
          },
          "folder"_a, "file"_a = "")
      .def_prop_ro("names", &WeightFolder::names, "Of the files in the folder.")
      .def("tensor_names", &tensor_names, "Of the tensors, all of types that PyTorch has.")
      .def(
          "blocks",
          [](const WeightFolder& s, std::size_t number) { return StoredBlocks::of(s, number); },
          "number"_a, "A tensor as it is.")
      .def(
          "dtype",
          [](const WeightFolder& s, std::size_t number) {
            return std::string(dtype_name(s.tensors().at(number).stored.dtype.value()));
          },
          "number"_a)
      .def(
          "place",
          [](const WeightFolder& s, std::size_t number) {
            const WeightFolder::Tensor& each = s.tensors().at(number);
            return std::tuple(each.stored.dims, each.file, each.stored.begin);
          },
          "number"_a, "(sizes, file, first byte) of a tensor.")
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
  nb::class_<WeightFile>(m, "WeightFile", "A file of weights, mapped and not read.")
      .def(
          "__init__",
          [](WeightFile* made, const std::filesystem::path& path) {
            new (made) WeightFile(path.string());
          },
          "path"_a)
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
      .def("close", &ConvertedFile::close, nb::call_guard<nb::gil_scoped_release>(),
           "Whole after this; gives the hash of its bytes.");
  nb::class_<FetchedWeights>(
      m, "FetchedWeights",
      "Weights that are elsewhere: addresses, with bytes behind them while somebody needs them.")
      .def(
          "__init__",
          [](FetchedWeights* made, const std::vector<std::int64_t>& sizes, nb::object fetch) {
            const auto kept = std::make_shared<Kept>(std::move(fetch));
            new (made) FetchedWeights(
                sizes, [kept](std::size_t number, std::int64_t offset, std::span<std::byte> into) {
                  const nb::gil_scoped_acquire acquire;
                  kept->object(number, offset, array_of(into, nb::none()));  // not a copy
                });
          },
          "sizes"_a, "fetch"_a,
          nb::sig("def __init__(self, sizes: collections.abc.Sequence[int], fetch: "
                  "collections.abc.Callable[[int, int, typing.Any], None]) -> None"))
      .def("offset", &FetchedWeights::offset, "number"_a, "Where a tensor is in the memory.")
      .def_prop_ro(
          "memory",
          [](nb::handle self) {
            return array_of(nb::cast<const FetchedWeights&>(self).memory(), self);
          },
          nb::sig("def memory(self) -> typing.Any"))
      .def_prop_ro("touched", &FetchedWeights::touched,
                   "Whether somebody took addresses for numbers.")
      .def("fill_all", nb::overload_cast<>(&FetchedWeights::fill),
           nb::call_guard<nb::gil_scoped_release>(), "All of them, which stay.")
      .def("fill", nb::overload_cast<std::size_t>(&FetchedWeights::fill), "number"_a,
           nb::call_guard<nb::gil_scoped_release>(), "One of them, until they are forgotten.")
      .def("forget", &FetchedWeights::forget);
  m.def("give_back_memory", &give_back_memory,
        "What was freed goes back to the system, where that can be asked for.");
  m.def("check_data", &onnx::check_data, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
        "The bytes of the files beside a model whose names are hashes of their content; an error "
        "where a file has another.");
  m.def("place_file", &place, "from_"_a, "to"_a, "link"_a = false, "progress"_a = nb::none(),
        "A file under another name: 'shared' blocks, 'linked', or copied by the 'kernel' or "
        "'copied'.",
        nb::sig("def place_file(from_: str | os.PathLike[str], to: str | os.PathLike[str], link: "
                "bool = False, progress: collections.abc.Callable[[int], None] | None = None) -> "
                "str"));
  nb::class_<StoredBlocks>(
      m, "StoredBlocks",
      "A tensor that consists of parts of a checkpoint's, none of which is read.")
      .def_prop_ro("dims", &StoredBlocks::dims)
      .def_prop_ro("count", &StoredBlocks::count, "Of its parts.")
      .def(
          "name",
          [](const StoredBlocks& s, const WeightFolder& folder, std::size_t number) {
            return folder.tensors().at(s.tensor(number)).stored.name;
          },
          "folder"_a, "number"_a, "The tensor that a part is of.")
      .def("block", &block_of, "folder"_a, "number"_a,
           "(start, sizes, dtype, bytes) of a part, which is read.",
           nb::sig("def block(self, folder: WeightFolder, number: int) -> tuple[list[int], "
                   "list[int], str, typing.Any]"))
      .def(
          "cut",
          [](const StoredBlocks& s, std::int64_t axis, std::int64_t low, std::int64_t high) {
            return s.cut(axis_of(axis, s.dims().size()), low, high);
          },
          "axis"_a, "low"_a, "high"_a)
      .def(
          "without",
          [](const StoredBlocks& s, std::int64_t axis) {
            return s.without(axis_of(axis, s.dims().size()));
          },
          "axis"_a, "Without an axis of one element.")
      .def(
          "with_one",
          [](const StoredBlocks& s, std::int64_t axis) {
            return s.with(axis_of(axis, s.dims().size() + 1));
          },
          "axis"_a, "With one more axis, of one element.")
      .def(
          "permuted",
          [](const StoredBlocks& s, const std::vector<std::size_t>& order) {
            return s.permuted(order);
          },
          "order"_a)
      .def("viewed", &StoredBlocks::viewed, "dims"_a,
           "Other sizes for the same elements; None where they cannot be counted so.")
      .def_static("joined", &joined, "tensors"_a, "axis"_a, "One after the other along an axis.",
                  nb::sig("def joined(tensors: collections.abc.Sequence[StoredBlocks], axis: int) "
                          "-> StoredBlocks"));
  nb::class_<PlacedWeights>(m, "PlacedWeights",
                            "What of a model lies where in the files of its checkpoint.")
      .def(nb::init<std::shared_ptr<const WeightFolder>>(), "folder"_a)
      .def("add", &add_placed, "blocks"_a, "dtype"_a,
           "('empty' | 'mapped' | 'joined' | 'other', file, offset, bytes) of a parameter.",
           nb::sig("def add(self, blocks: StoredBlocks, dtype: str) -> tuple[str, int, int, int]"))
      .def("add_converted", &add_converted, "file"_a, "blocks"_a, "dtype"_a,
           "(first byte, bytes) of a parameter that is appended to a file of converted ones.")
      .def("reserve", &PlacedWeights::reserve, "Addresses for those that are joined.")
      .def_prop_ro(
          "memory",
          [](nb::handle self) -> nb::object {
            const auto* const reserved = nb::cast<const PlacedWeights&>(self).reserved();
            return reserved == nullptr ? nb::none() : array_of(reserved->bytes(), self);
          },
          "Of those that are joined; None where there are none.",
          nb::sig("def memory(self) -> typing.Any"))
      .def_prop_ro(
          "touched",
          [](const PlacedWeights& s) { return s.reserved() != nullptr && s.reserved()->touched(); },
          "Whether somebody took addresses for numbers.")
      .def("is_joined", &PlacedWeights::is_joined, "at"_a)
      .def("fill", nb::overload_cast<std::int64_t>(&PlacedWeights::fill, nb::const_), "at"_a,
           nb::call_guard<nb::gil_scoped_release>(), "The bytes of the one that begins there.")
      .def("fill_all", nb::overload_cast<>(&PlacedWeights::fill, nb::const_),
           nb::call_guard<nb::gil_scoped_release>())
      .def("forget", &PlacedWeights::forget, "Whatever was filled is gone.")
      .def_prop_ro("used", &PlacedWeights::used, "Files of the checkpoint that are referred to.")
      .def(
          "check",
          [](const PlacedWeights& s, const std::filesystem::path& path,
             const std::filesystem::path& folder, const std::string& converted, bool bytes_too) {
            const auto found =
                onnx::check_references(path.string(), s, folder.string(), converted, bytes_too);
            return std::tuple(found.references, found.compared, found.bytes);
          },
          "path"_a, "folder"_a, "converted"_a, "bytes_too"_a,
          nb::call_guard<nb::gil_scoped_release>(),
          "(references, compared by their hashes, bytes of those) of a written model.");
}

}  // namespace fairlead::python
