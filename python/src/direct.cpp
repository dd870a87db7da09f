// Calls that are one operator: what the dispatcher would show of them is known before it is asked.
//
// A function of PyTorch that was seen to be one operator with the arguments of the call itself, and
// whose operator has neither parts nor another form for some values, is that operator whenever its
// arguments are of the same types: PyTorch chooses by types alone. Such a call need not go through
// the dispatch mode, which takes longer than all else about it. What is recorded is the same.
#include <algorithm>

#include "recorder.h"

namespace fairlead::python {

void Recorder::set_direct(nb::object one_operator, nb::object undispatched, nb::object modes,
                          nb::object level, nb::object parameter_type) {
  one_operator_ = std::move(one_operator);
  undispatched_ = std::move(undispatched);
  modes_ = std::move(modes);
  level_ = std::move(level);
  parameter_type_ = std::move(parameter_type);
}

// The types of a call's arguments, where all of them are simple: tensors of this run that are no
// numbers themselves (which may stand for one) and not complex (which may be read conjugated), and
// plain numbers.
bool Recorder::signature_of(PyObject* args, Signature& signature) const {
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (count == 0 || count > static_cast<Py_ssize_t>(signature.size())) return false;
  signature.fill(nullptr);
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* o = PyTuple_GET_ITEM(args, k);
    PyTypeObject* type = Py_TYPE(o);
    if (type == reinterpret_cast<PyTypeObject*>(tensor_type_.ptr()) ||
        type == reinterpret_cast<PyTypeObject*>(parameter_type_.ptr())) {
      const RunValue v = known_value(o);
      if (v == kNoRunValue || run_->values[v].rank == 0) return false;
      if (is_complex(run_->values[v].dtype)) return false;
      type = reinterpret_cast<PyTypeObject*>(tensor_type_.ptr());
    } else if (type != &PyLong_Type && type != &PyFloat_Type && type != &PyBool_Type &&
               o != Py_None) {
      return false;
    }
    signature[static_cast<std::size_t>(k)] = type;
  }
  return true;
}

// Whether the last operator has the name, the arguments and the result of the call, and nothing
// else.
bool Recorder::is_the_call(PyObject* args, PyObject* result) const {
  if (run_->ops.size() != call_ops_ + 1) return false;
  const OpRecord& record = run_->ops.back();
  const OpDef& def = vocabulary_.ops[record.op];
  const Op& op = ops_.at(last_op_.ptr());
  if (op.base != call_name_) return false;
  if (def.writes >= 0 || def.alias != Alias::kNever || record.result_count != 1) return false;
  const Item& made = run_->items[record.results];
  if (made.kind != ItemKind::kTensor || known_value(result) != made.i) return false;
  if (PyTuple_GET_SIZE(args) > static_cast<Py_ssize_t>(record.item_count)) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); ++k) {
    PyObject* o = PyTuple_GET_ITEM(args, k);
    // No argument before it is a list: items stand one by one.
    const Item& item = run_->items[record.items + static_cast<std::uint32_t>(k)];
    bool same = false;
    switch (item.kind) {
      case ItemKind::kNone:
        same = o == Py_None;
        break;
      case ItemKind::kTensor:
        same = known_value(o) == item.i;
        break;
      case ItemKind::kBool:
        same = PyBool_Check(o) && (o == Py_True) == (item.i != 0);
        break;
      case ItemKind::kInt:
        same = PyLong_CheckExact(o) && PyLong_AsLongLong(o) == item.i;
        break;
      case ItemKind::kFloat:
        same = PyFloat_CheckExact(o) && PyFloat_AS_DOUBLE(o) == item.f;
        break;
      default:
        break;
    }
    PyErr_Clear();
    if (!same) return false;
  }
  std::uint32_t at = record.items + static_cast<std::uint32_t>(PyTuple_GET_SIZE(args));
  for (std::size_t k = at - record.items; k < op.defaults.size(); ++k) {
    if (op.defaults[k].empty()) return false;  // given in another way
    for (const Item& item : op.defaults[k]) {
      const Item& found = run_->items[at++];
      if (found.kind != item.kind || found.i != item.i) return false;
    }
  }
  return at == record.items + record.item_count;
}

void Recorder::learn_call(nb::handle func, nb::handle args, nb::handle result) {
  constexpr std::size_t kMostForms = 8;
  if (!run_ || !carry_ || !one_operator_.is_valid()) return;
  if (!PyCFunction_Check(func.ptr()) && Py_TYPE(func.ptr()) != &PyMethodDescr_Type &&
      Py_TYPE(func.ptr()) != &PyWrapperDescr_Type) {
    return;  // a function in Python may do anything
  }
  Signature signature;
  if (!signature_of(args.ptr(), signature)) return;
  const auto it = direct_.find(func.ptr());
  if (it != direct_.end()) {
    const auto& forms = it->second.forms;
    const auto known = [&](const DirectForm& form) { return form.signature == signature; };
    if (forms.size() >= kMostForms || std::any_of(forms.begin(), forms.end(), known)) return;
  }
  DirectForm form;
  form.signature = signature;
  if (last_op_.is_valid() && is_the_call(args.ptr(), result.ptr()) &&
      nb::cast<bool>(one_operator_(last_op_))) {
    form.op = last_op_;
  }
  Direct& direct = direct_[func.ptr()];
  direct.func = nb::borrow(func);
  direct.forms.push_back(std::move(form));
}

nb::object Recorder::call_directly(nb::handle func, nb::handle args) {
  if (!run_ || !carry_) return nb::none();
  const auto it = direct_.find(func.ptr());
  if (it == direct_.end()) return nb::none();
  Signature signature;
  if (!signature_of(args.ptr(), signature)) return nb::none();
  const auto& forms = it->second.forms;
  const auto form = std::find_if(forms.begin(), forms.end(), [&](const DirectForm& each) {
    return each.signature == signature;
  });
  if (form == forms.end() || !form->op.is_valid()) return nb::none();
  // Modes of the model's own would be left out as well, and vmap makes more of an operator.
  if (nb::cast<int>(modes_()) != 1 || !level_().is_none()) return nb::none();
  const nb::object op = form->op;  // the table may grow while the function runs
  note_call(func, args, nb::none());
  const nb::object result = run_directly(func, args, op);
  add(op, args, nb::none(), result);
  return result;
}

nb::object Recorder::run_directly(nb::handle func, nb::handle args, const nb::object& op) {
  const nb::object guard = undispatched_();  // as long as it is there
  if (light_ != nullptr) {
    nb::object known = light_->look(op, args, nb::none());
    if (!known.is_none()) return known;
    if (light_->touches()) return light_call_(op, args, nb::none());
  }
  nb::object result = nb::steal(PyObject_Call(func.ptr(), args.ptr(), nullptr));
  if (!result.is_valid()) throw nb::python_error();  // which takes it before the guard is left
  return result;
}

void Recorder::set_light(nb::object calls, nb::object call) {
  light_ = calls.is_none() ? nullptr : nb::cast<LightCalls*>(calls);
  light_holder_ = std::move(calls);
  light_call_ = std::move(call);
}

}  // namespace fairlead::python
