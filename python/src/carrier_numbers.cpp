// The two types: what their operators, comparisons and methods remember, and float's own operators
// with one of them.
#include <cmath>
#include <vector>

#include "carriers_impl.h"

namespace fairlead::python::carriers {
namespace {

using Binary = binaryfunc PyNumberMethods::*;

PyObject* compute(PyObject* a, PyObject* b, Binary slot) {
  const bool integers = PyLong_Check(a) && PyLong_Check(b);
  const bool numbers =
      (PyLong_Check(a) || PyFloat_Check(a)) && (PyLong_Check(b) || PyFloat_Check(b));
  const binaryfunc function = integers  ? PyLong_Type.tp_as_number->*slot
                              : numbers ? plain_floats.*slot
                                        : nullptr;
  if (function == nullptr) Py_RETURN_NOTIMPLEMENTED;
  return function(a, b);
}

template <CarryKind kKind, Binary kSlot>
PyObject* binary(PyObject* a, PyObject* b) {
  return carry_binary(compute(a, b, kSlot), kKind, a, b);
}

template <Binary kSlot>
PyObject* forgetful(PyObject* a, PyObject* b) {
  forget(a);
  forget(b);
  return compute(a, b, kSlot);
}

// [0] * n is as long as n says, and does not remember it.
PyObject* multiplied(PyObject* a, PyObject* b) {
  PyObject* made = binary<CarryKind::kMul, &PyNumberMethods::nb_multiply>(a, b);
  if (made == Py_NotImplemented) {
    if (PyUnicode_Check(a) || PyBytes_Check(a) || PyTuple_Check(a) || PyList_Check(a)) forget(b);
    if (PyUnicode_Check(b) || PyBytes_Check(b) || PyTuple_Check(b) || PyList_Check(b)) forget(a);
  }
  return made;
}

PyObject* both_of_division(PyObject* a, PyObject* b) {
  PyObject* pair = compute(a, b, &PyNumberMethods::nb_divmod);
  if (pair == nullptr || !PyTuple_Check(pair)) return pair;
  PyObject* quotient = PyTuple_GET_ITEM(pair, 0);
  PyObject* rest = PyTuple_GET_ITEM(pair, 1);
  Py_INCREF(quotient);
  Py_INCREF(rest);
  Py_DECREF(pair);
  quotient = carry_binary(quotient, CarryKind::kFloorDiv, a, b);
  rest = carry_binary(rest, CarryKind::kMod, a, b);
  PyObject* made = PyTuple_Pack(2, quotient, rest);
  Py_DECREF(quotient);
  Py_DECREF(rest);
  return made;
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  const bool integers = PyLong_Check(a) && PyLong_Check(b);
  const bool numbers =
      (PyLong_Check(a) || PyFloat_Check(a)) && (PyLong_Check(b) || PyFloat_Check(b));
  if (!numbers || (modulus != Py_None && !integers)) Py_RETURN_NOTIMPLEMENTED;
  // With a negative exponent int asks float, whose slot leads back here.
  int beyond = 0;
  const long exponent = integers ? PyLong_AsLongAndOverflow(b, &beyond) : 0;
  const bool below = modulus == Py_None && (beyond < 0 || (beyond == 0 && exponent < 0));
  const PyNumberMethods& methods = integers && !below ? *PyLong_Type.tp_as_number : plain_floats;
  PyObject* plain = methods.nb_power(a, b, modulus);
  if (modulus == Py_None) return carry_binary(plain, CarryKind::kPow, a, b);
  for (PyObject* number : {a, b, modulus}) forget(number);
  return plain;
}

const PyNumberMethods* methods_of(PyObject* self) {
  return is_int(self) ? PyLong_Type.tp_as_number : &plain_floats;
}

PyObject* negative(PyObject* self) {
  return carry_binary(methods_of(self)->nb_negative(self), CarryKind::kNeg, self, nullptr);
}

PyObject* absolute(PyObject* self) {
  return carry_binary(methods_of(self)->nb_absolute(self), CarryKind::kAbs, self, nullptr);
}

PyObject* inverted(PyObject* self) {
  PyObject* less = negative(self);
  PyObject* one = PyLong_FromLong(1);
  PyObject* made = less == nullptr || one == nullptr
                       ? nullptr
                       : binary<CarryKind::kSub, &PyNumberMethods::nb_subtract>(less, one);
  Py_XDECREF(less);
  Py_XDECREF(one);
  return made;
}

PyObject* positive(PyObject* self) {
  Py_INCREF(self);
  return self;
}

int truth(PyObject* self) {
  const int outcome = methods_of(self)->nb_bool(self);
  const CarryId node = sink == nullptr ? kNoCarry : carried_node(self);
  if (node != kNoCarry && outcome >= 0) {
    Carry zero;
    return add_guard(Compare::kNotEqual, node, add_node(zero), outcome != 0) ? 1 : 0;
  }
  return outcome;
}

void ask_about(CarryId node, PyObject* constant, int depth) {
  if (PyLong_CheckExact(constant)) {
    const CarryId other = node_of(constant);
    if (other == kNoCarry) return;
    const Carry& mine = sink->run().carried[node];
    const bool equal = !mine.real && mine.i == sink->run().carried[other].i;
    add_guard(Compare::kEqual, node, other, equal);
  } else if (depth < 2 && PyTuple_Check(constant)) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constant); ++k) {
      ask_about(node, PyTuple_GET_ITEM(constant, k), depth + 1);
    }
  } else if (depth < 2 && PyFrozenSet_Check(constant)) {
    PyObject* each = PyObject_GetIter(constant);
    while (PyObject* item = each == nullptr ? nullptr : PyIter_Next(each)) {
      ask_about(node, item, depth + 1);
      Py_DECREF(item);
    }
    Py_XDECREF(each);
  }
}

// `self.cache[n]`, `n in {37, 41}`: which numbers would have been found is not asked aloud. The
// numbers that stand in the source of the function that asks are likely among them.
Py_hash_t hash(PyObject* self) {
  const CarryId node = sink == nullptr ? kNoCarry : carried_node(self);
  if (node != kNoCarry) {
    add_guard(Compare::kKey, node, kNoCarry, true);
    note_forgotten();
    PyFrameObject* frame = PyEval_GetFrame();
    if (frame != nullptr) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      ask_about(node, code->co_consts, 0);
      Py_DECREF(code);
    }
  }
  return is_int(self) ? PyLong_Type.tp_hash(self) : PyFloat_Type.tp_hash(self);
}

constexpr Compare kCompares[] = {Compare::kLess,     Compare::kLessEqual, Compare::kEqual,
                                 Compare::kNotEqual, Compare::kGreater,   Compare::kGreaterEqual};

PyObject* compare(PyObject* a, PyObject* b, int op) {
  PyObject* outcome = nullptr;
  if (PyLong_Check(a) && PyLong_Check(b)) {
    outcome = PyLong_Type.tp_richcompare(a, b, op);
  } else if (PyFloat_Check(a) && (PyLong_Check(b) || PyFloat_Check(b))) {
    outcome = plain_float_compare(a, b, op);
  } else if (PyLong_Check(a) && PyFloat_Check(b)) {
    constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
    outcome = plain_float_compare(b, a, kSwapped[op]);
  } else {
    Py_RETURN_NOTIMPLEMENTED;
  }
  if (outcome == nullptr || sink == nullptr || outcome == Py_NotImplemented) return outcome;
  if (carried_node(a) != kNoCarry || carried_node(b) != kNoCarry) {
    const bool answer = add_guard(kCompares[op], node_of(a), node_of(b), outcome == Py_True);
    Py_DECREF(outcome);
    outcome = PyBool_FromLong(answer ? 1 : 0);
  }
  return outcome;
}

// 0.3 * n asks float first, which would forget: it is asked in vain where n remembers.
template <binaryfunc kOurs, Binary kSlot>
PyObject* float_binary(PyObject* a, PyObject* b) {
  return is_carrier(a) || is_carrier(b) ? kOurs(a, b) : (plain_floats.*kSlot)(a, b);
}

PyObject* float_power(PyObject* a, PyObject* b, PyObject* modulus) {
  return is_carrier(a) || is_carrier(b) ? power(a, b, modulus)
                                        : plain_floats.nb_power(a, b, modulus);
}

PyObject* float_compare(PyObject* a, PyObject* b, int op) {
  return is_carrier(a) || is_carrier(b) ? compare(a, b, op) : plain_float_compare(a, b, op);
}
PyObject* method_floor(PyObject* self, PyObject*) { return rounded(self, CarryKind::kFloor); }
PyObject* method_ceil(PyObject* self, PyObject*) { return rounded(self, CarryKind::kCeil); }
PyObject* method_trunc(PyObject* self, PyObject*) { return rounded(self, CarryKind::kTrunc); }

PyObject* method_round(PyObject* self, PyObject* args) {
  PyObject* digits = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &digits)) return nullptr;
  if (digits == Py_None) return rounded(self, CarryKind::kRound);
  note_forgotten();
  PyObject* plain = without_memory(self);
  PyObject* result = PyObject_CallMethod(plain, "__round__", "O", digits);
  Py_DECREF(plain);
  return result;
}

PyObject* method_bit_length(PyObject* self, PyObject*) {
  PyObject* plain = without_memory(self);
  PyObject* result = PyObject_CallMethod(plain, "bit_length", nullptr);
  Py_DECREF(plain);
  return carry_binary(result, CarryKind::kBitLength, self, nullptr);
}

// (n / 2).is_integer() is a question about n.
PyObject* method_is_integer(PyObject* self, PyObject*) {
  PyObject* whole = rounded(self, CarryKind::kFloor);
  if (whole == nullptr) return nullptr;
  PyObject* outcome = compare(self, whole, Py_EQ);
  Py_DECREF(whole);
  return outcome;
}

PyObject* method_copy(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

PyObject* itself(PyObject* self, void*) { return method_copy(self, nullptr); }

// Those that have no expression.
PyObject* method_bit_count(PyObject* self, PyObject*) {
  forget(self);
  PyObject* plain = without_memory(self);
  PyObject* result = PyObject_CallMethod(plain, "bit_count", nullptr);
  Py_DECREF(plain);
  return result;
}

PyObject* method_ratio(PyObject* self, PyObject*) {
  forget(self);
  PyObject* plain = without_memory(self);
  PyObject* result = PyObject_CallMethod(plain, "as_integer_ratio", nullptr);
  Py_DECREF(plain);
  return result;
}

// str(n) may be the name of what comes next.
PyObject* text(PyObject* self) {
  if (const CarryId node = carried_node(self); node != kNoCarry) ask_which(node);
  return is_int(self) ? PyLong_Type.tp_repr(self) : PyFloat_Type.tp_repr(self);
}

PyObject* method_format(PyObject* self, PyObject* spec) {
  if (const CarryId node = carried_node(self); node != kNoCarry) ask_which(node, true);
  PyObject* plain = without_memory(self);
  PyObject* result = plain == nullptr ? nullptr : PyObject_Format(plain, spec);
  Py_XDECREF(plain);
  return result;
}

// What is pickled is the number alone.
PyObject* method_reduce(PyObject* self, PyObject*) {
  PyObject* plain = without_memory(self);
  PyObject* type = reinterpret_cast<PyObject*>(is_int(self) ? &PyLong_Type : &PyFloat_Type);
  return Py_BuildValue("(O(N))", type, plain);
}

const PyCFunction kArrayFunction =
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_function));

const PyCFunction kArrayOf = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_of));

// Fractions ask for it. `real` stays the plain number: it is how our own code asks nothing.
PyGetSetDef kIntParts[] = {
    {"numerator", itself, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef kFloatParts[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef kIntMethods[] = {
    {"bit_count", method_bit_count, METH_NOARGS, nullptr},
    {"conjugate", method_copy, METH_NOARGS, nullptr},
    {"as_integer_ratio", method_ratio, METH_NOARGS, nullptr},
    {"__array__", kArrayOf, METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__floor__", method_floor, METH_NOARGS, nullptr},
    {"__ceil__", method_ceil, METH_NOARGS, nullptr},
    {"__trunc__", method_trunc, METH_NOARGS, nullptr},
    {"__round__", method_round, METH_VARARGS, nullptr},
    {"bit_length", method_bit_length, METH_NOARGS, nullptr},
    {"__format__", method_format, METH_O, nullptr},
    {"__copy__", method_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", method_copy, METH_O, nullptr},
    {"__reduce__", method_reduce, METH_NOARGS, nullptr},
    {"__array_ufunc__", kArrayFunction, METH_VARARGS | METH_KEYWORDS, nullptr},
    {"astype", array_type, METH_O, nullptr},
    {"item", method_copy, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef kFloatMethods[] = {
    {"conjugate", method_copy, METH_NOARGS, nullptr},
    {"as_integer_ratio", method_ratio, METH_NOARGS, nullptr},
    {"__array__", kArrayOf, METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__floor__", method_floor, METH_NOARGS, nullptr},
    {"__ceil__", method_ceil, METH_NOARGS, nullptr},
    {"__trunc__", method_trunc, METH_NOARGS, nullptr},
    {"__round__", method_round, METH_VARARGS, nullptr},
    {"is_integer", method_is_integer, METH_NOARGS, nullptr},
    {"__format__", method_format, METH_O, nullptr},
    {"__copy__", method_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", method_copy, METH_O, nullptr},
    {"__reduce__", method_reduce, METH_NOARGS, nullptr},
    {"__array_ufunc__", kArrayFunction, METH_VARARGS | METH_KEYWORDS, nullptr},
    {"astype", array_type, METH_O, nullptr},
    {"item", method_copy, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

template <typename Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* make_type(const char* name, Py_ssize_t size, PyTypeObject* base, PyMethodDef* methods,
                        const char* doc) {
  using N = PyNumberMethods;
  std::vector<PyType_Slot> slots = {
      {Py_tp_doc, const_cast<char*>(doc)},
      {Py_tp_methods, methods},
      {Py_tp_getset, base == &PyLong_Type ? kIntParts : kFloatParts},
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_hash, slot(hash)},
      {Py_tp_repr, slot(text)},
      {Py_tp_str, slot(text)},
      {Py_nb_add, slot(binary<CarryKind::kAdd, &N::nb_add>)},
      {Py_nb_subtract, slot(binary<CarryKind::kSub, &N::nb_subtract>)},
      {Py_nb_multiply, slot(multiplied)},
      {Py_nb_remainder, slot(binary<CarryKind::kMod, &N::nb_remainder>)},
      {Py_nb_floor_divide, slot(binary<CarryKind::kFloorDiv, &N::nb_floor_divide>)},
      {Py_nb_true_divide, slot(binary<CarryKind::kDiv, &N::nb_true_divide>)},
      {Py_nb_divmod, slot(both_of_division)},
      {Py_nb_power, slot(power)},
      {Py_nb_negative, slot(negative)},
      {Py_nb_positive, slot(positive)},
      {Py_nb_absolute, slot(absolute)},
      {Py_nb_bool, slot(truth)},
  };
  if (base == &PyLong_Type) {
    slots.push_back({Py_nb_lshift, slot(binary<CarryKind::kShiftLeft, &N::nb_lshift>)});
    slots.push_back({Py_nb_rshift, slot(binary<CarryKind::kShiftRight, &N::nb_rshift>)});
    slots.push_back({Py_nb_and, slot(binary<CarryKind::kAnd, &N::nb_and>)});
    slots.push_back({Py_nb_invert, slot(inverted)});
    slots.push_back({Py_nb_or, slot(forgetful<&N::nb_or>)});
    slots.push_back({Py_nb_xor, slot(forgetful<&N::nb_xor>)});
  }
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, static_cast<int>(size), 0, Py_TPFLAGS_DEFAULT, slots.data()};
  PyObject* bases = PyTuple_Pack(1, base);
  PyObject* type = PyType_FromSpecWithBases(&spec, bases);
  Py_DECREF(bases);
  if (type == nullptr) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

PyObject* rounded(PyObject* self, CarryKind kind) {
  if (is_int(self)) {
    Py_INCREF(self);
    return self;
  }
  const double value = PyFloat_AS_DOUBLE(self);
  const double whole = kind == CarryKind::kFloor   ? std::floor(value)
                       : kind == CarryKind::kCeil  ? std::ceil(value)
                       : kind == CarryKind::kTrunc ? std::trunc(value)
                                                   : std::nearbyint(value);
  return carry_binary(PyLong_FromDouble(whole), kind, self, nullptr);
}

void watch_floats(bool on) {
  using N = PyNumberMethods;
  N& slots = *PyFloat_Type.tp_as_number;
  if (!on) {
    slots = plain_floats;
    PyFloat_Type.tp_richcompare = plain_float_compare;
    return;
  }
  slots.nb_add = float_binary<binary<CarryKind::kAdd, &N::nb_add>, &N::nb_add>;
  slots.nb_subtract = float_binary<binary<CarryKind::kSub, &N::nb_subtract>, &N::nb_subtract>;
  slots.nb_multiply = float_binary<binary<CarryKind::kMul, &N::nb_multiply>, &N::nb_multiply>;
  slots.nb_true_divide =
      float_binary<binary<CarryKind::kDiv, &N::nb_true_divide>, &N::nb_true_divide>;
  slots.nb_floor_divide =
      float_binary<binary<CarryKind::kFloorDiv, &N::nb_floor_divide>, &N::nb_floor_divide>;
  slots.nb_remainder = float_binary<binary<CarryKind::kMod, &N::nb_remainder>, &N::nb_remainder>;
  slots.nb_divmod = float_binary<both_of_division, &N::nb_divmod>;
  slots.nb_power = float_power;
  PyFloat_Type.tp_richcompare = float_compare;
}
void make_types() {
  int_type = make_type("fairlead._core.SizeInt", kIntTag + sizeof(Tag), &PyLong_Type, kIntMethods,
                       "An int that remembers the sizes it was computed from.");
  float_type = make_type("fairlead._core.SizeFloat", kFloatTag + sizeof(Tag), &PyFloat_Type,
                         kFloatMethods, "A float that remembers the sizes it was computed from.");
}

}  // namespace fairlead::python::carriers
