// Functions that keep their results by their arguments, wherever a loaded module holds them.
#include <nanobind/nanobind.h>

#include <unordered_set>

namespace nb = nanobind;

namespace fairlead::python {
namespace {

using namespace nb::literals;

// Objects of exactly `type` among the values of a module's names, and of the classes there.
class Search {
 public:
  explicit Search(PyTypeObject* type) : type_(type) {}

  void look(PyObject* dict, bool classes) {
    PyObject *name = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &name, &value) != 0) {
      if (Py_TYPE(value) == type_) {
        if (seen_.insert(value).second) found_.append(nb::handle(value));
      } else if (classes && PyType_Check(value) && seen_.insert(value).second) {
        PyObject* const own = reinterpret_cast<PyTypeObject*>(value)->tp_dict;
        if (own != nullptr) look(own, false);
      }
    }
  }

  [[nodiscard]] nb::list found() const { return found_; }

 private:
  PyTypeObject* type_;
  std::unordered_set<PyObject*> seen_;
  nb::list found_;
};

}  // namespace

void init_cached_functions(nb::module_& m) {
  m.def(
      "held_by_modules",
      [](nb::list modules, nb::handle type) {
        Search search(reinterpret_cast<PyTypeObject*>(type.ptr()));
        for (nb::handle module : modules) {
          if (PyModule_Check(module.ptr())) search.look(PyModule_GetDict(module.ptr()), true);
        }
        return search.found();
      },
      "modules"_a, "type"_a,
      "Objects of a type among the names of modules and of the classes there, each once.");
}

}  // namespace fairlead::python
