// NumPy's functions of one number or two, np.ceil(n / 8), which would take it by its value.
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>

#include "carriers_impl.h"

namespace fairlead::python::carriers {
namespace {

struct OfTwo {
  const char* name;
  PyObject* (*compute)(PyObject*, PyObject*);
};

PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }

constexpr OfTwo kOfTwo[] = {
    {"add", PyNumber_Add},
    {"subtract", PyNumber_Subtract},
    {"multiply", PyNumber_Multiply},
    {"divide", PyNumber_TrueDivide},  // as np.true_divide calls itself
    {"true_divide", PyNumber_TrueDivide},
    {"floor_divide", PyNumber_FloorDivide},
    {"remainder", PyNumber_Remainder},
    {"power", power},
};

struct Rounding {
  const char* name;
  CarryKind kind;
};

constexpr Rounding kRoundings[] = {
    {"ceil", CarryKind::kCeil},
    {"floor", CarryKind::kFloor},
    {"trunc", CarryKind::kTrunc},
    {"rint", CarryKind::kRound},
};

struct OfReal {
  const char* name;
  CarryKind kind;
  double (*compute)(double);
};

constexpr OfReal kOfReal[] = {
    {"sqrt", CarryKind::kSqrt, std::sqrt},
    {"log", CarryKind::kLog, std::log},
    {"log2", CarryKind::kLog2, std::log2},
    {"exp", CarryKind::kExp, std::exp},
};

// A carrier as it is, a number as Python's own; null, without an error, for what is none.
nb::object number_of(PyObject* object) {
  if (is_carrier(object)) return nb::borrow(object);
  if (PyFloat_Check(object)) return nb::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(object)));
  if (PyLong_Check(object)) return nb::borrow(object);
  if (!PyIndex_Check(object)) return {};
  PyObject* index = PyNumber_Index(object);  // one of NumPy's; an array of several is refused
  PyErr_Clear();
  return index == nullptr ? nb::object() : nb::steal(index);
}

// NumPy gives a float, whatever it rounds.
PyObject* to_real(PyObject* integer) {
  if (integer == nullptr) return nullptr;
  PyObject* plain = PyFloat_FromDouble(PyLong_AsDouble(integer));
  PyObject* made = carry_binary(plain, CarryKind::kToReal, integer, nullptr);
  Py_DECREF(integer);
  return made;
}

PyObject* of_one(const char* name, PyObject* number) {
  for (const Rounding& row : kRoundings) {
    if (std::strcmp(row.name, name) == 0) return to_real(rounded(number, row.kind));
  }
  for (const OfReal& row : kOfReal) {
    if (std::strcmp(row.name, name) != 0) continue;
    const double value = PyFloat_AsDouble(number);
    return carry_binary(PyFloat_FromDouble(row.compute(value)), row.kind, number, nullptr);
  }
  return nullptr;
}

// The same with numbers that remember nothing.
PyObject* plainly(PyObject* ufunc, PyObject* method, PyObject* args, PyObject* names) {
  note_forgotten();
  nb::list plain;
  for (Py_ssize_t k = 2; k < PyTuple_GET_SIZE(args); ++k) {
    forget(PyTuple_GET_ITEM(args, k));
    plain.append(nb::steal(without_memory(PyTuple_GET_ITEM(args, k))));
  }
  const nb::object function = nb::steal(PyObject_GetAttr(ufunc, method));
  if (!function.is_valid()) return nullptr;
  const nb::object given = nb::steal(PyList_AsTuple(plain.ptr()));
  return PyObject_Call(function.ptr(), given.ptr(), names);
}

}  // namespace

PyObject* without_memory(PyObject* object) {
  if (is_int(object)) return PyLong_FromLongLong(PyLong_AsLongLong(object));
  if (is_float(object)) return PyFloat_FromDouble(PyFloat_AS_DOUBLE(object));
  Py_INCREF(object);
  return object;
}

// __array__(self, dtype=None, copy=None): an array remembers nothing.
PyObject* array_of(PyObject* self, PyObject* args, PyObject*) {
  note_forgotten();
  forget(self);
  const nb::object plain = nb::steal(without_memory(self));
  const nb::object numpy = nb::steal(PyImport_ImportModule("numpy"));
  if (!plain.is_valid() || !numpy.is_valid()) return nullptr;
  PyObject* type = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
  return PyObject_CallMethod(numpy.ptr(), "asarray", "OO", plain.ptr(), type);
}

// __array_ufunc__(self, ufunc, method, *inputs, **names)
PyObject* array_function(PyObject*, PyObject* args, PyObject* names) {
  if (PyTuple_GET_SIZE(args) < 3) Py_RETURN_NOTIMPLEMENTED;
  PyObject *ufunc = PyTuple_GET_ITEM(args, 0), *method = PyTuple_GET_ITEM(args, 1);
  const Py_ssize_t count = PyTuple_GET_SIZE(args) - 2;
  const nb::object name = nb::steal(PyObject_GetAttrString(ufunc, "__name__"));
  const char* text = name.is_valid() ? PyUnicode_AsUTF8(name.ptr()) : nullptr;
  const bool call = PyUnicode_CompareWithASCIIString(method, "__call__") == 0;
  const bool named = names != nullptr && PyDict_GET_SIZE(names) > 0;
  if (text == nullptr || !call || named || count > 2) return plainly(ufunc, method, args, names);
  const nb::object a = number_of(PyTuple_GET_ITEM(args, 2));
  if (a.is_valid() && count == 1) {
    PyObject* made = of_one(text, a.ptr());
    if (made != nullptr || PyErr_Occurred() != nullptr) return made;
  }
  const nb::object b = count == 2 ? number_of(PyTuple_GET_ITEM(args, 3)) : nb::object();
  for (const OfTwo& row : kOfTwo) {
    if (a.is_valid() && b.is_valid() && std::strcmp(row.name, text) == 0) {
      return row.compute(a.ptr(), b.ptr());
    }
  }
  return plainly(ufunc, method, args, names);
}

// np.ceil(n / 8).astype(int): as the result of NumPy's function would be.
PyObject* array_type(PyObject* self, PyObject* type) {
  const nb::object dtype = nb::module_::import_("numpy").attr("dtype")(nb::borrow(type));
  const std::string kind = nb::cast<std::string>(dtype.attr("kind"));
  if (kind == "i" || kind == "u") return rounded(self, CarryKind::kTrunc);
  if (kind == "f" && is_float(self)) {
    Py_INCREF(self);
    return self;
  }
  const nb::object plain = nb::steal(without_memory(self));
  return nb::module_::import_("numpy").attr("asarray")(plain).attr("astype")(dtype).release().ptr();
}

}  // namespace fairlead::python::carriers
