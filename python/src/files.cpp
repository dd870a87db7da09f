// Bindings of the files that get their names when they are whole.
#include <nanobind/nanobind.h>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "fairlead/files/output_file.h"
#include "fairlead/files/read_ahead.h"
#include "fairlead/files/staging.h"
#include "fairlead/onnx/data_files.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// The bytes of whatever has some, without a copy.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

Py_ssize_t write(OutputFile& file, nb::handle data) {
  const Buffer buffer(data);
  nb::gil_scoped_release release;
  file.write(buffer.bytes());
  return static_cast<Py_ssize_t>(buffer.bytes().size());
}

std::unique_ptr<OutputFile> open_in(const Staging& staging, const std::string& name) {
  return std::make_unique<OutputFile>(
      staging.folder() + "/" + (name.empty() ? staging.name() : name), staging.target(),
      OutputFile::Mode::kReplace, staging.function());
}

}  // namespace

void init_files(nb::module_& m) {
  const auto released = nb::call_guard<nb::gil_scoped_release>();
  nb::class_<OutputFile>(m, "OutputFile", "A file of a Staging that is being written.")
      .def("write", &write, "data"_a,
           nb::sig("def write(self, data: bytes | bytearray | memoryview) -> int"))
      .def("close", &OutputFile::close, released)
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__",
          [](OutputFile& file, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) file.close();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
  nb::class_<Staging>(
      m, "Staging",
      "A folder beside the final name of a file or a folder, in which it is made before it gets "
      "that "
      "name. What dead processes left there for the same name is removed; what is not committed is "
      "removed with this.")
      .def(nb::init<const std::string&, std::string>(), "target"_a, "function"_a = "export",
           released)
      .def_prop_ro(
          "folder", [](const Staging& s) { return s.folder(); }, "To be filled.")
      .def_prop_ro("path", &Staging::path, "The file in it that has the name of the target.")
      .def_prop_ro("target", [](const Staging& s) { return s.target(); })
      .def("open", &open_in, "name"_a = "", "A file of the folder, by default `path`.")
      .def("commit_file", &Staging::commit_file, released, "`path` gets the name of the target.")
      .def("commit_pair", &Staging::commit_pair, "second"_a, released,
           "`path` and a second file, which is found by its name alone, get their names.")
      .def("commit_model", &onnx::commit_model, "data"_a = "", released,
           "The ONNX model `path` and its data, a file of the folder, get their names.")
      .def("commit_folder", &onnx::commit_folder, released,
           "The folder gets the name of the target.")
      .def("commit_files", &onnx::commit_files, "names"_a, released,
           "Files of the folder go into that of the target, one after the other.")
      .def("discard", &Staging::discard, released);
  nb::class_<ReadAhead>(m, "ReadAhead", "A file brought into memory by a thread while this lives.")
      .def(nb::init<const std::string&>(), "path"_a, released)
      .def("wait", &ReadAhead::wait, released, "Until all of it was read; how many bytes.");
  m.def("is_data_name", &onnx::is_data_name, "name"_a, "model"_a = "",
        "Whether a file may be the data of a model; of any where none is given.");
  m.def(
      "write_file",
      [](const std::filesystem::path& path, nb::bytes content, const std::string& function) {
        const std::string bytes(content.c_str(), content.size());
        nb::gil_scoped_release release;
        write_file(path.string(), bytes, function);
      },
      "path"_a, "content"_a, "function"_a, "A small file, whole or not at all.");
}

}  // namespace fairlead::python
