// Keys of calls, in bytes: a tag and what decides the result, argument by argument.
#include "light_calls.h"

#include <cstdint>

namespace fairlead::python {

using namespace nb::literals;

namespace {

enum Tag : char { kNone, kBool, kInt, kFloat, kComplex, kText, kSingle, kDevice, kTensor, kList };

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

nb::object attribute(PyObject* object, PyObject* name) {
  nb::object found = nb::steal(PyObject_GetAttr(object, name));
  if (!found.is_valid()) throw nb::python_error();
  return found;
}

nb::object called(PyObject* object, PyObject* name) {
  nb::object found = nb::steal(PyObject_CallMethodNoArgs(object, name));
  if (!found.is_valid()) throw nb::python_error();
  return found;
}

}  // namespace

LightCalls::LightCalls(nb::list parameters, nb::object tensor_type, nb::object parameter_type,
                       nb::object device_type, nb::list singletons, nb::object empty_strided,
                       nb::object meta)
    : tensor_type_(std::move(tensor_type)),
      parameter_type_(std::move(parameter_type)),
      device_type_(std::move(device_type)),
      empty_strided_(std::move(empty_strided)),
      meta_(std::move(meta)),
      names_(nb::make_tuple("dtype", "device")) {
  for (nb::handle parameter : parameters) {
    parameters_.insert(parameter.ptr());
    holders_.push_back(nb::borrow(parameter));  // so that no address is used again
  }
  for (nb::handle type : singletons) {
    singletons_.insert(type.ptr());
    holders_.push_back(nb::borrow(type));
  }
}

bool LightCalls::is_tensor(PyTypeObject* type) const {
  return type == reinterpret_cast<PyTypeObject*>(tensor_type_.ptr()) ||
         type == reinterpret_cast<PyTypeObject*>(parameter_type_.ptr());
}

void LightCalls::describe_tensor(PyObject* tensor) {
  static PyObject* const shape_name = interned("shape");
  static PyObject* const stride_name = interned("stride");
  static PyObject* const dtype_name = interned("dtype");
  static PyObject* const meta_name = interned("is_meta");
  put(kTensor);
  const nb::object shape = attribute(tensor, shape_name);
  const nb::object stride = called(tensor, stride_name);
  const Py_ssize_t rank = PyTuple_GET_SIZE(shape.ptr());
  put(rank);
  for (Py_ssize_t k = 0; k < rank; ++k) {
    put(PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), k)));
    put(PyLong_AsLongLong(PyTuple_GET_ITEM(stride.ptr(), k)));
  }
  put(attribute(tensor, dtype_name).ptr());
  const bool meta = attribute(tensor, meta_name).ptr() == Py_True;
  put(meta);
  as_is_ = as_is_ && meta;
  touches_ = touches_ || meta || parameters_.contains(tensor);
}

bool LightCalls::describe_items(PyObject* sequence) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
  put(count);
  bool comparable = true;
  for (Py_ssize_t k = 0; k < count; ++k) {
    comparable = describe(PySequence_Fast_GET_ITEM(sequence, k)) && comparable;
  }
  return comparable;
}

// False for what cannot be compared; tensors in it are looked at all the same.
bool LightCalls::describe(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  if (is_tensor(type)) {
    describe_tensor(o);
  } else if (o == Py_None) {
    put(kNone);
  } else if (PyBool_Check(o)) {
    put(kBool);
    put(o == Py_True);
  } else if (PyLong_Check(o)) {  // sizes that remember, too: read so, they are not asked
    put(kInt);
    const long long value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    put(value);
  } else if (PyFloat_Check(o)) {
    put(kFloat);
    put(PyFloat_AS_DOUBLE(o));
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    put(kList);
    put(PyTuple_Check(o) != 0);
    return describe_items(o);
  } else if (PyUnicode_CheckExact(o)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    put(kText);
    put(size);
    key_.append(text, static_cast<std::size_t>(size));
  } else if (singletons_.contains(reinterpret_cast<PyObject*>(type))) {
    put(kSingle);
    put(o);
  } else if (type == reinterpret_cast<PyTypeObject*>(device_type_.ptr())) {
    as_is_ = false;
    put(kDevice);
    put(PyObject_Hash(o));
  } else if (PyComplex_CheckExact(o)) {
    put(kComplex);
    put(PyComplex_RealAsDouble(o));
    put(PyComplex_ImagAsDouble(o));
  } else if (PyDict_CheckExact(o)) {
    put(PyDict_GET_SIZE(o));
    PyObject *name = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    bool comparable = true;
    while (PyDict_Next(o, &at, &name, &value) != 0) {
      comparable = describe(name) && comparable;
      comparable = describe(value) && comparable;
    }
    return comparable;
  } else {
    return false;
  }
  return true;
}

nb::object LightCalls::made(const Form& form) const {
  PyObject* const args[] = {form.shape.ptr(), form.stride.ptr(), form.dtype.ptr(), meta_.ptr()};
  nb::object result = nb::steal(PyObject_Vectorcall(empty_strided_.ptr(), args, 2, names_.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

nb::object LightCalls::look(nb::handle func, nb::handle args, nb::handle kwargs) {
  key_.clear();
  touches_ = false;
  as_is_ = true;
  put(func.ptr());
  comparable_ = describe_items(args.ptr());
  if (kwargs.is_valid() && !kwargs.is_none() && PyDict_GET_SIZE(kwargs.ptr()) > 0) {
    comparable_ = describe(kwargs.ptr()) && comparable_;
  }
  if (!comparable_ || !touches_) return nb::none();
  const auto it = known_.find(key_);
  if (it == known_.end()) return nb::none();
  const Known& known = it->second;
  if (known.calls) {
    if (!as_is_) return nb::none();
    PyObject* const named = kwargs.is_valid() && !kwargs.is_none() ? kwargs.ptr() : nullptr;
    nb::object result = nb::steal(PyObject_Call(func.ptr(), args.ptr(), named));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  }
  if (known.list == nullptr) return made(known.results[0]);
  nb::list all;
  for (const Form& form : known.results) all.append(made(form));
  return known.list == &PyList_Type ? nb::object(all) : nb::object(nb::tuple(all));
}

void LightCalls::keep(nb::bytes key, nb::handle func, nb::handle out) {
  Known known;
  known.func = nb::borrow(func);
  const auto add = [&](nb::handle tensor) {
    known.results.push_back({tensor.attr("shape"), tensor.attr("stride")(), tensor.attr("dtype")});
  };
  if (out.is_none()) {
    known.calls = true;
  } else if (is_tensor(Py_TYPE(out.ptr()))) {
    add(out);
  } else {
    known.list = Py_TYPE(out.ptr());
    for (nb::handle each : out) add(each);
  }
  known_.emplace(std::string(key.c_str(), key.size()), std::move(known));
}

void init_light_calls(nb::module_& m) {
  nb::class_<LightCalls>(m, "LightCalls", "Calls of a run without weights, by their arguments.")
      .def(nb::init<nb::list, nb::object, nb::object, nb::object, nb::list, nb::object,
                    nb::object>(),
           "parameters"_a, "tensor_type"_a, "parameter_type"_a, "device_type"_a, "singletons"_a,
           "empty_strided"_a, "meta"_a)
      .def("look", &LightCalls::look, nb::arg(), nb::arg(), nb::arg().none())
      .def_prop_ro("touches", &LightCalls::touches)
      .def_prop_ro("key", &LightCalls::key)
      .def("keep", &LightCalls::keep, nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace fairlead::python
