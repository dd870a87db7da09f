// Maps the core's error codes to Python exceptions, all of them subclasses of
// fairlead.FairleadError; and what is said where there is no exception any more.
#include <nanobind/nanobind.h>

#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "fairlead/base/error.h"
#include "fairlead/base/last_words.h"
#include "python/src/text.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// LastWords for as long as a block of Python.
struct WordsInBlock {
  std::string line;
  int status = 1;
  std::unique_ptr<LastWords> words;
};

struct Class {
  ErrorCode code;
  const char* name;
  const char* doc;
  PyObject* type;
};

Class classes[] = {
    {ErrorCode::kInvalidInput, "InvalidInput", "What was given cannot be used.", nullptr},
    {ErrorCode::kUnsupported, "Unsupported", "An operator or form that the target cannot express.",
     nullptr},
    {ErrorCode::kDiverged, "Diverged",
     "The model executed other operators at other sizes or values.", nullptr},
    {ErrorCode::kUnsolved, "Unsolved", "A number that no expression of the sizes explains.",
     nullptr},
    {ErrorCode::kDiscrepancy, "Discrepancy", "The file does not compute what eager computes.",
     nullptr},
    {ErrorCode::kIo, "WriteError", "A file could not be read or written.", nullptr},
    {ErrorCode::kParse, "ParseError", "Text or bytes that are not in the format they claim.",
     nullptr},
    {ErrorCode::kInternal, "InternalError", "A fault in Fairlead itself.", nullptr},
};

// One dict per detail; "values" are by run.
nb::list details_of(const Error& e) {
  nb::list list;
  for (const ErrorDetail& detail : e.details()) {
    nb::dict row;
    row["kind"] = text(detail.kind);
    for (const auto& [name, value] : detail.fields) row[text(name)] = text(value);
    nb::list values;
    for (const std::string& value : detail.values) values.append(text(value));
    row["values"] = values;
    list.append(row);
  }
  return list;
}

void raise(PyObject* type, const Error& e) {
  nb::object error = nb::borrow(type)(text(e.what()));
  error.attr("details") = details_of(e);
  error.attr("cause") = text(e.cause());
  PyErr_SetObject(type, error.ptr());
}

}  // namespace

void init_errors(nb::module_& m) {
  PyObject* base = PyErr_NewExceptionWithDoc(
      "fairlead.FairleadError", "Every error that Fairlead raises.", PyExc_RuntimeError, nullptr);
  m.attr("FairleadError") = nb::handle(base);
  // What a report shows beside the sentence; the core and the pipeline say more where they know
  // more.
  nb::handle(base).attr("details") = nb::make_tuple();
  nb::handle(base).attr("facts") = nb::none();
  // What happened, as part of another sentence (error.h).
  nb::handle(base).attr("cause") = "";
  for (Class& c : classes) {
    const std::string full = std::string("fairlead.") + c.name;
    c.type = PyErr_NewExceptionWithDoc(full.c_str(), c.doc, base, nullptr);
    m.attr(c.name) = nb::handle(c.type);
  }
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      for (const Class& c : classes) {
        if (c.code == e.code()) raise(c.type, e);
      }
    }
  });
  nb::class_<WordsInBlock>(m, "LastWords",
                           "with LastWords(line, status): a fault that ends the process says this, "
                           "its name in place of {}.")
      .def(
          "__init__",
          [](WordsInBlock* made, std::string line, int status) {
            new (made) WordsInBlock{std::move(line), status, nullptr};
          },
          "line"_a, "status"_a)
      .def("__enter__",
           [](WordsInBlock& w) { w.words = std::make_unique<LastWords>(w.line, w.status); })
      .def(
          "__exit__", [](WordsInBlock& w, nb::handle, nb::handle, nb::handle) { w.words.reset(); },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

}  // namespace fairlead::python
