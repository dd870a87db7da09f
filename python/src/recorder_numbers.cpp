// Numbers of a call that remember where they come from, and which argument of which operator they are.
#include <nanobind/stl/string.h>

#include <algorithm>

#include "recorder.h"

namespace fairlead::python {

CarryId Recorder::dim(PyObject* tensor, Py_ssize_t axis) {
  const RunValue v = known_value(tensor);
  if (v == kNoRunValue || run_->values[v].origin == Origin::kConstant) return kNoCarry;
  const auto rank = static_cast<Py_ssize_t>(run_->values[v].rank);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return kNoCarry;
  Carry node;
  node.kind = CarryKind::kDim;
  node.a = v;
  node.b = static_cast<CarryId>(axis);
  node.i = run_->dim(v, static_cast<int>(axis));
  run_->carried.push_back(node);
  return static_cast<CarryId>(run_->carried.size() - 1);
}

nb::object Recorder::shape_of(nb::handle tensor) {
  if (!run_ || !carry_) return nb::none();
  const RunValue v = known_value(tensor.ptr());
  if (v == kNoRunValue || run_->values[v].origin == Origin::kConstant) return nb::none();
  nb::object& made = shapes_[v];
  if (!made.is_valid()) {
    nb::list sizes;
    for (Py_ssize_t axis = 0; axis < run_->values[v].rank; ++axis) {
      const Carry node = run_->carried[dim(tensor.ptr(), axis)];
      sizes.append(nb::steal(carry(PyLong_FromLongLong(node.i), node)));
    }
    made = size_type_(sizes);
  }
  return made;
}

nb::object Recorder::size_of(nb::handle tensor, nb::handle axis) {
  if (!run_ || !carry_ || !PyLong_Check(axis.ptr())) return nb::none();
  const CarryId node = dim(tensor.ptr(), PyLong_AsSsize_t(axis.ptr()));
  if (node == kNoCarry) return nb::none();
  return nb::steal(carry(PyLong_FromLongLong(run_->carried[node].i), run_->carried[node]));
}

nb::object Recorder::count_of(nb::handle tensor) {
  nb::object shape = shape_of(tensor);
  if (shape.is_none()) return shape;
  nb::object product = nb::int_(1);
  for (nb::handle size : shape) {
    product = nb::steal(PyNumber_Multiply(product.ptr(), size.ptr()));
    if (!product.is_valid()) throw nb::python_error();
  }
  return product;
}

PyObject* Recorder::read_nested(PyObject* plain, CarryId op, CarryId& element) {
  if (PyList_Check(plain)) {
    PyObject* made = PyList_New(PyList_GET_SIZE(plain));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(plain); ++k) {
      PyList_SET_ITEM(made, k, read_nested(PyList_GET_ITEM(plain, k), op, element));
    }
    return made;
  }
  Py_INCREF(plain);
  if (PyBool_Check(plain)) return plain;
  Carry node;
  node.kind = CarryKind::kRead;
  node.a = op;
  node.b = element++;
  return carry(plain, node);
}

nb::object Recorder::read_result(nb::handle plain) {
  constexpr std::size_t kMostRead = 4096;  // a list of pixels is data
  if (!run_ || !carry_ || run_->ops.empty() || run_->ops.back().result_count > kMostRead) {
    return nb::borrow(plain);
  }
  if (!vocabulary_.ops[run_->ops.back().op].name.has(Trait::kReads)) return nb::borrow(plain);
  CarryId element = 0;
  return nb::steal(read_nested(plain.ptr(), static_cast<CarryId>(run_->ops.size() - 1), element));
}

void Recorder::note_numbers(PyObject* o, int depth) {
  constexpr std::uint32_t kMostNumbers = 64;
  if (call_count_ >= kMostNumbers) return;
  if (is_carrier(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) {
    const CarryId node = node_of(o);
    if (node == kNoCarry) return;
    run_->call_numbers.push_back(node);
    ++call_count_;
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    if (depth > 3) return;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
      note_numbers(PySequence_Fast_GET_ITEM(o, k), depth + 1);
    }
  } else if (PySlice_Check(o)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(o);
    for (PyObject* part : {slice->start, slice->stop, slice->step}) note_numbers(part, depth + 1);
  } else if (PyDict_Check(o)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &value) != 0) note_numbers(value, depth + 1);
  }
}

std::uint32_t Recorder::skip(std::uint32_t at) const {
  const Item& item = run_->items[at++];
  if (item.kind == ItemKind::kList) {
    for (std::int64_t k = 0; k < item.i; ++k) at = skip(at);
  }
  return at;
}

// Item `at`, as the call in Python gave it: the dispatcher made plain numbers of it.
std::uint32_t Recorder::bind(std::uint32_t at, PyObject* source) {
  Item& item = run_->items[at];
  if (item.kind == ItemKind::kInt && PyLong_Check(source) && !PyBool_Check(source)) {
    if (PyLong_AsLongLong(source) == item.i) item.carried = node_of(source);
    PyErr_Clear();
  } else if (item.kind == ItemKind::kFloat && (PyFloat_Check(source) || PyLong_Check(source))) {
    if (PyFloat_AsDouble(source) == item.f) item.carried = node_of(source);
    PyErr_Clear();
  } else if (item.kind == ItemKind::kList && (PyTuple_Check(source) || PyList_Check(source)) &&
             PySequence_Fast_GET_SIZE(source) == item.i) {
    const std::int64_t count = item.i;
    std::uint32_t inner = at + 1;
    for (std::int64_t k = 0; k < count; ++k) {
      inner = bind(inner, PySequence_Fast_GET_ITEM(source, k));
    }
    return inner;
  }
  return skip(at);
}

// The first operator of a call that has its name has its arguments too, in the same order; sizes
// may stand one by one (x.view(2, 3)).
void Recorder::bind_arguments(const Op& op, const OpRecord& record) {
  if (!call_args_.is_valid() || run_->ops.size() != call_ops_ || op.base != call_name_) return;
  const Py_ssize_t given = PyTuple_GET_SIZE(call_args_.ptr());
  std::uint32_t at = record.items;
  const std::uint32_t end = record.items + record.item_count;
  for (Py_ssize_t k = 0; at < end && static_cast<std::size_t>(k) < op.names.size(); ++k) {
    PyObject* source = nullptr;
    nb::object rest;
    if (k < given) {
      source = PyTuple_GET_ITEM(call_args_.ptr(), k);
      const Item& item = run_->items[at];
      if (item.kind == ItemKind::kList && PyLong_Check(source) && item.i == given - k) {
        rest = nb::steal(PyTuple_GetSlice(call_args_.ptr(), k, given));
        source = rest.ptr();
      }
    } else if (call_kwargs_.is_valid() && !call_kwargs_.is_none()) {
      source = PyDict_GetItem(call_kwargs_.ptr(), op.names[static_cast<std::size_t>(k)].ptr());
    }
    at = source == nullptr ? bind_default(at) : bind(at, source);
    if (rest.is_valid()) break;
  }
}

// An argument that the call did not give is its default: not one of the call's numbers that happens
// to be as large (the 1 by which t + k multiplies k, where k is 1).
std::uint32_t Recorder::bind_default(std::uint32_t at) {
  Item& item = run_->items[at];
  if (item.kind == ItemKind::kInt && item.carried == kNoCarry) {
    const auto begin = run_->call_numbers.begin() + call_first_;
    const bool mistakable = std::any_of(begin, begin + call_count_, [&](CarryId id) {
      return !run_->carried[id].real && run_->carried[id].i == item.i;
    });
    if (mistakable) item.carried = node_of(nb::int_(item.i).ptr());
  }
  return skip(at);
}

namespace {

// "add" of "__add__": the operators that have an argument which no sign in Python gives.
std::string operator_of(const std::string& name) {
  if (name == "__add__" || name == "__radd__") return "add";
  if (name == "__iadd__") return "add_";
  if (name == "__sub__") return "sub";
  if (name == "__isub__") return "sub_";
  return name;
}

}  // namespace

void Recorder::note_call(nb::handle func, nb::handle args, nb::handle kwargs) {
  if (!run_ || !carry_) return;
  auto [it, fresh] = function_names_.try_emplace(func.ptr());
  if (fresh) {
    it->second.first = nb::borrow(func);
    const nb::object name = nb::getattr(func, "__name__", nb::str(""));
    if (nb::isinstance<nb::str>(name)) it->second.second = nb::cast<std::string>(name);
    // "slice" of the operator slice.Tensor
    if (const auto dot = it->second.second.find('.'); dot != std::string::npos) {
      it->second.second.resize(dot);
    }
    it->second.second = operator_of(it->second.second);
  }
  call_name_ = it->second.second;
  call_args_ = nb::borrow(args);
  call_kwargs_ = nb::borrow(kwargs);
  call_ops_ = run_->ops.size();
  call_first_ = static_cast<std::uint32_t>(run_->call_numbers.size());
  call_count_ = 0;
  note_numbers(args.ptr(), 0);
  if (kwargs.is_valid() && !kwargs.is_none()) note_numbers(kwargs.ptr(), 0);
}

}  // namespace fairlead::python
