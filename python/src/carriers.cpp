// The two types and the doors. Runs inside every model, so it must neither raise nor slow down.
#include "carriers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fairlead::python {
namespace {

CarrySink* sink = nullptr;
PyTypeObject* int_type = nullptr;
PyTypeObject* float_type = nullptr;
newfunc plain_int_new = nullptr;
newfunc plain_float_new = nullptr;
vectorcallfunc plain_int_call = nullptr;
vectorcallfunc plain_float_call = nullptr;
vectorcallfunc plain_range_call = nullptr;
PyNumberMethods plain_floats;  // float's own, while ours stand in their place
binaryfunc plain_list_item = nullptr;
binaryfunc plain_tuple_item = nullptr;
richcmpfunc plain_float_compare = nullptr;

// Functions of modules that are watched, too: what they are otherwise, and what they are meanwhile.
struct Door {
  const char* module;
  const char* name;
  PyMethodDef method;
  PyObject* dict = nullptr;
  PyObject* plain = nullptr;
  PyObject* watched = nullptr;
};

// A model that computes with sizes millions of times goes on with plain numbers.
constexpr std::size_t kMostNodes = 1 << 20;
constexpr std::size_t kMostGuards = 1 << 17;
constexpr std::size_t kMostRangesNoted = 1 << 14;

struct Tag {
  CarryId node;
  std::uint32_t serial;
};

// An int is its header, 24 bytes, and digits of 30 bits: three hold what has 64 bits. The tag lies
// behind those.
constexpr Py_ssize_t kIntTag = 40;
constexpr Py_ssize_t kFloatTag = sizeof(PyFloatObject);

bool is_int(PyObject* o) { return Py_TYPE(o) == int_type; }
bool is_float(PyObject* o) { return Py_TYPE(o) == float_type; }

Tag& tag_of(PyObject* o) {
  return *reinterpret_cast<Tag*>(reinterpret_cast<char*>(o) + (is_int(o) ? kIntTag : kFloatTag));
}

CarryId add_node(const Carry& node) {
  std::vector<Carry>& table = sink->run().carried;
  if (table.size() >= kMostNodes) return kNoCarry;
  table.push_back(node);
  return static_cast<CarryId>(table.size() - 1);
}

void add_guard(Compare compare, CarryId left, CarryId right, bool outcome) {
  if (left == kNoCarry || (right == kNoCarry && compare != Compare::kKey)) return;
  Run& run = sink->run();
  if (!sink->asks || run.guards.size() >= kMostGuards) return;
  Guard guard;
  guard.compare = compare;
  guard.outcome = outcome;
  guard.left = left;
  guard.right = right;
  guard.op = static_cast<std::uint32_t>(run.ops.size());
  guard.source = sink->source_line();
  guard.module = sink->module();
  run.guards.push_back(guard);
}

// From here on a plain number may come from a size.
void note_forgotten() {
  if (sink == nullptr) return;
  Run& run = sink->run();
  run.forgot_at = std::min(run.forgot_at, run.ops.size());
}

PyObject* carry_binary(PyObject* plain, CarryKind kind, PyObject* a, PyObject* b) {
  if (plain == nullptr || plain == Py_NotImplemented || sink == nullptr) return plain;
  Carry node;
  node.kind = kind;
  node.a = node_of(a);
  node.b = b == nullptr ? kNoCarry : node_of(b);
  if (node.a == kNoCarry || (b != nullptr && node.b == kNoCarry)) return plain;
  return carry(plain, node);
}

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
  PyObject* plain = compute(a, b, kSlot);
  // Python's floor division and remainder of floats are not one rounding of the quotient.
  const bool floats = plain != nullptr && PyFloat_CheckExact(plain);
  if (floats && (kKind == CarryKind::kFloorDiv || kKind == CarryKind::kMod)) {
    note_forgotten();
    return plain;
  }
  return carry_binary(plain, kKind, a, b);
}

template <Binary kSlot>
PyObject* forgetful(PyObject* a, PyObject* b) {
  note_forgotten();
  return compute(a, b, kSlot);
}

PyObject* int_divmod(PyObject* a, PyObject* b) {
  PyObject* pair = compute(a, b, &PyNumberMethods::nb_divmod);
  if (pair == nullptr || !PyTuple_Check(pair) || PyFloat_Check(PyTuple_GET_ITEM(pair, 0))) {
    return pair;
  }
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
  const PyNumberMethods& methods = integers ? *PyLong_Type.tp_as_number : plain_floats;
  PyObject* plain = methods.nb_power(a, b, modulus);
  if (modulus == Py_None) return carry_binary(plain, CarryKind::kPow, a, b);
  note_forgotten();
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
    add_guard(Compare::kNotEqual, node, add_node(zero), outcome != 0);
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
    add_guard(kCompares[op], node_of(a), node_of(b), outcome == Py_True);
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
  slots.nb_power = float_power;
  PyFloat_Type.tp_richcompare = float_compare;
}

// What was asked may depend on which number it is exactly: it is another one, where it can be.
void ask_which(CarryId node) {
  note_forgotten();
  const Carry& mine = sink->run().carried[node];
  if (mine.real) return;
  Carry number;
  number.i = mine.i;
  add_guard(Compare::kCount, node, add_node(number), true);
}

// choices[n // 16] goes by the number: one question for each that would have led elsewhere.
void ask_place(CarryId node) {
  constexpr std::int64_t kMostPlaces = 48;
  const Carry& mine = sink->run().carried[node];
  if (mine.real) return;
  const std::int64_t place = mine.i, step = place < 0 ? -1 : 1;
  const auto ask = [&](std::int64_t other) {
    Carry number;
    number.i = other;
    add_guard(Compare::kEqual, node, add_node(number), other == place);
  };
  if (std::abs(place) <= kMostPlaces) {
    for (std::int64_t k = place < 0 ? -1 : 0; k != place; k += step) ask(k);
  }
  ask(place);
}

template <binaryfunc* kPlain>
PyObject* item(PyObject* self, PyObject* key) {
  if (sink != nullptr) {
    if (const CarryId node = carried_node(key); node != kNoCarry) {
      ask_place(node);
    } else if (PySlice_Check(key)) {
      const auto* slice = reinterpret_cast<PySliceObject*>(key);
      for (PyObject* part : {slice->start, slice->stop, slice->step}) {
        if (const CarryId bound = carried_node(part); bound != kNoCarry) ask_which(bound);
      }
    }
  }
  return (*kPlain)(self, key);
}

void watch_items(bool on) {
  PyList_Type.tp_as_mapping->mp_subscript = on ? item<&plain_list_item> : plain_list_item;
  PyTuple_Type.tp_as_mapping->mp_subscript = on ? item<&plain_tuple_item> : plain_tuple_item;
}

// ---- methods ------------------------------------------------------------------------------------

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

PyObject* method_floor(PyObject* self, PyObject*) { return rounded(self, CarryKind::kFloor); }
PyObject* method_ceil(PyObject* self, PyObject*) { return rounded(self, CarryKind::kCeil); }
PyObject* method_trunc(PyObject* self, PyObject*) { return rounded(self, CarryKind::kTrunc); }

PyObject* plain_of(PyObject* self) {
  return is_int(self) ? PyLong_FromLongLong(PyLong_AsLongLong(self))
                      : PyFloat_FromDouble(PyFloat_AS_DOUBLE(self));
}

PyObject* method_round(PyObject* self, PyObject* args) {
  PyObject* digits = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &digits)) return nullptr;
  if (digits == Py_None) return rounded(self, CarryKind::kRound);
  note_forgotten();
  PyObject* plain = plain_of(self);
  PyObject* result = PyObject_CallMethod(plain, "__round__", "O", digits);
  Py_DECREF(plain);
  return result;
}

PyObject* method_bit_length(PyObject* self, PyObject*) {
  PyObject* plain = plain_of(self);
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

// str(n) may be the name of what comes next.
PyObject* text(PyObject* self) {
  if (const CarryId node = carried_node(self); node != kNoCarry) ask_which(node);
  return is_int(self) ? PyLong_Type.tp_repr(self) : PyFloat_Type.tp_repr(self);
}

PyObject* method_format(PyObject* self, PyObject* spec) {
  if (const CarryId node = carried_node(self); node != kNoCarry) ask_which(node);
  PyObject* plain = plain_of(self);
  PyObject* result = plain == nullptr ? nullptr : PyObject_Format(plain, spec);
  Py_XDECREF(plain);
  return result;
}

// What is pickled is the number alone.
PyObject* method_reduce(PyObject* self, PyObject*) {
  PyObject* plain = plain_of(self);
  PyObject* type = reinterpret_cast<PyObject*>(is_int(self) ? &PyLong_Type : &PyFloat_Type);
  return Py_BuildValue("(O(N))", type, plain);
}

PyMethodDef kIntMethods[] = {
    {"__floor__", method_floor, METH_NOARGS, nullptr},
    {"__ceil__", method_ceil, METH_NOARGS, nullptr},
    {"__trunc__", method_trunc, METH_NOARGS, nullptr},
    {"__round__", method_round, METH_VARARGS, nullptr},
    {"bit_length", method_bit_length, METH_NOARGS, nullptr},
    {"__format__", method_format, METH_O, nullptr},
    {"__copy__", method_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", method_copy, METH_O, nullptr},
    {"__reduce__", method_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef kFloatMethods[] = {
    {"__floor__", method_floor, METH_NOARGS, nullptr},
    {"__ceil__", method_ceil, METH_NOARGS, nullptr},
    {"__trunc__", method_trunc, METH_NOARGS, nullptr},
    {"__round__", method_round, METH_VARARGS, nullptr},
    {"is_integer", method_is_integer, METH_NOARGS, nullptr},
    {"__format__", method_format, METH_O, nullptr},
    {"__copy__", method_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", method_copy, METH_O, nullptr},
    {"__reduce__", method_reduce, METH_NOARGS, nullptr},
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
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_hash, slot(hash)},
      {Py_tp_repr, slot(text)},
      {Py_tp_str, slot(text)},
      {Py_nb_add, slot(binary<CarryKind::kAdd, &N::nb_add>)},
      {Py_nb_subtract, slot(binary<CarryKind::kSub, &N::nb_subtract>)},
      {Py_nb_multiply, slot(binary<CarryKind::kMul, &N::nb_multiply>)},
      {Py_nb_remainder, slot(binary<CarryKind::kMod, &N::nb_remainder>)},
      {Py_nb_floor_divide, slot(binary<CarryKind::kFloorDiv, &N::nb_floor_divide>)},
      {Py_nb_true_divide, slot(binary<CarryKind::kDiv, &N::nb_true_divide>)},
      {Py_nb_divmod, slot(int_divmod)},
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

// ---- doors --------------------------------------------------------------------------------------

// The read that a call to int(tensor) or float(tensor) made; kNoCarry where it made none.
CarryId read_since(std::size_t ops) {
  const Run& run = sink->run();
  if (run.ops.size() == ops || run.ops.back().result_count != 1) return kNoCarry;
  const Item& item = run.items[run.ops.back().results];
  if (item.kind != ItemKind::kInt && item.kind != ItemKind::kFloat) return kNoCarry;
  Carry node;
  node.kind = CarryKind::kRead;
  node.real = item.kind == ItemKind::kFloat;
  node.a = static_cast<CarryId>(run.ops.size() - 1);
  node.b = 0;
  if (node.real) {
    node.f = item.f;
  } else {
    node.i = item.i;
  }
  return add_node(node);
}

template <typename Plain>
PyObject* watched_int(PyObject* argument, const Plain& plain) {
  if (sink == nullptr) return plain();
  if (is_carrier(argument)) return rounded(argument, CarryKind::kTrunc);
  if (PyLong_Check(argument) || PyFloat_Check(argument) || !sink->is_tensor(argument)) {
    return plain();
  }
  const std::size_t ops = sink->run().ops.size();
  PyObject* made = plain();
  if (made == nullptr || sink == nullptr) return made;
  const CarryId read = read_since(ops);
  if (read == kNoCarry) return made;
  Carry node = sink->run().carried[read];
  if (node.real) {
    node = {};
    node.kind = CarryKind::kTrunc;
    node.a = read;
  }
  return carry(made, node);
}

template <typename Plain>
PyObject* watched_float(PyObject* argument, const Plain& plain) {
  if (sink == nullptr) return plain();
  if (is_float(argument)) return method_copy(argument, nullptr);
  if (is_int(argument)) return carry_binary(plain(), CarryKind::kToReal, argument, nullptr);
  if (PyLong_Check(argument) || PyFloat_Check(argument) || !sink->is_tensor(argument)) {
    return plain();
  }
  const std::size_t ops = sink->run().ops.size();
  PyObject* made = plain();
  if (made == nullptr || sink == nullptr) return made;
  const CarryId read = read_since(ops);
  if (read == kNoCarry) return made;
  Carry node = sink->run().carried[read];
  if (!node.real) {
    node = {};
    node.kind = CarryKind::kToReal;
    node.a = read;
  }
  return carry(made, node);
}

PyObject* int_call(PyObject* type, PyObject* const* args, size_t count, PyObject* names) {
  const auto plain = [&] { return plain_int_call(type, args, count, names); };
  if (PyVectorcall_NARGS(count) != 1 || names != nullptr) return plain();
  return watched_int(args[0], plain);
}

PyObject* int_new(PyTypeObject* type, PyObject* args, PyObject* names) {
  const auto plain = [&] { return plain_int_new(type, args, names); };
  const bool one = type == &PyLong_Type && PyTuple_GET_SIZE(args) == 1 && names == nullptr;
  return one ? watched_int(PyTuple_GET_ITEM(args, 0), plain) : plain();
}

PyObject* float_call(PyObject* type, PyObject* const* args, size_t count, PyObject* names) {
  const auto plain = [&] { return plain_float_call(type, args, count, names); };
  if (PyVectorcall_NARGS(count) != 1 || names != nullptr) return plain();
  return watched_float(args[0], plain);
}

PyObject* float_new(PyTypeObject* type, PyObject* args, PyObject* names) {
  const auto plain = [&] { return plain_float_new(type, args, names); };
  const bool one = type == &PyFloat_Type && PyTuple_GET_SIZE(args) == 1 && names == nullptr;
  return one ? watched_float(PyTuple_GET_ITEM(args, 0), plain) : plain();
}

// The ranges of a run that were made of sizes, held so that none of them is another object later.
struct MadeRange {
  nb::object range;
  nb::object start, stop, step;
};
std::vector<MadeRange>& made_ranges() {
  static auto* list = new std::vector<MadeRange>();
  return *list;
}

// range(n) counts in plain numbers.
PyObject* range_call(PyObject* type, PyObject* const* args, size_t count, PyObject* names) {
  const Py_ssize_t given = PyVectorcall_NARGS(count);
  bool remembers = false;
  if (sink != nullptr && sink->run().ranges.size() < kMostRangesNoted) {
    sink->run().ranges.push_back(given == 1 ? node_of(args[0]) : kNoCarry);
  }
  for (Py_ssize_t k = 0; k < PyVectorcall_NARGS(count); ++k) {
    const CarryId node = carried_node(args[k]);
    if (node == kNoCarry) continue;
    remembers = true;
    note_forgotten();
    Carry count;
    count.i = sink->run().carried[node].i;
    add_guard(Compare::kCount, node, add_node(count), true);
  }
  PyObject* made = plain_range_call(type, args, count, names);
  constexpr std::size_t kMostRanges = 1000;
  if (made != nullptr && remembers && given <= 3 && made_ranges().size() < kMostRanges) {
    made_ranges().push_back({nb::borrow(made),
                             given > 1 ? nb::borrow(args[0]) : nb::object(nb::int_(0)),
                             nb::borrow(args[given > 1 ? 1 : 0]),
                             given > 2 ? nb::borrow(args[2]) : nb::object(nb::int_(1))});
  }
  return made;
}

// max(0, (stop - start + step - 1) // step) in numbers that remember; null where it cannot be said.
PyObject* range_length(PyObject* range) {
  for (const MadeRange& made : made_ranges()) {
    if (made.range.ptr() != range) continue;
    const Py_ssize_t step = PyLong_AsSsize_t(made.step.ptr());
    if (step < 1) return nullptr;
    nb::object way = nb::steal(PyNumber_Subtract(made.stop.ptr(), made.start.ptr()));
    way = nb::steal(PyNumber_Add(way.ptr(), nb::int_(step - 1).ptr()));
    way = nb::steal(PyNumber_FloorDivide(way.ptr(), made.step.ptr()));
    const nb::object zero = nb::int_(0);
    if (PyObject_RichCompareBool(way.ptr(), zero.ptr(), Py_LT) == 1) return nullptr;
    return way.release().ptr();
  }
  return nullptr;
}

PyObject* len(PyObject*, PyObject* object) {
  const Py_ssize_t size = PyObject_Size(object);
  if (size < 0) return nullptr;
  PyObject* plain = PyLong_FromSsize_t(size);
  if (sink != nullptr && PyRange_Check(object)) {
    PyObject* length = range_length(object);
    if (length == nullptr) return plain;
    Py_DECREF(plain);
    return length;
  }
  if (sink == nullptr || !sink->is_tensor(object)) return plain;
  const CarryId node = sink->dim(object, 0);
  return node == kNoCarry ? plain : carry(plain, sink->run().carried[node]);
}

Door* door_of(const char* name);
extern Door doors[];

// math.sqrt(n) and its kin take the number by its value.
template <CarryKind kKind>
PyObject* of_float(const char* name, PyObject* args) {
  PyObject* plain = PyObject_Call(door_of(name)->plain, args, nullptr);
  if (PyTuple_GET_SIZE(args) != 1 || carried_node(PyTuple_GET_ITEM(args, 0)) == kNoCarry) {
    return plain;
  }
  return carry_binary(plain, kKind, PyTuple_GET_ITEM(args, 0), nullptr);
}

PyObject* math_sqrt(PyObject*, PyObject* args) { return of_float<CarryKind::kSqrt>("sqrt", args); }
// floor(sqrt(n)) in doubles is exact where n has 52 bits.
PyObject* math_isqrt(PyObject*, PyObject* args) {
  PyObject* plain = PyObject_Call(door_of("isqrt")->plain, args, nullptr);
  PyObject* n = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (plain == nullptr || n == nullptr || carried_node(n) == kNoCarry || !PyLong_Check(n) ||
      PyLong_AsLongLong(n) >= (std::int64_t{1} << 52)) {
    return plain;
  }
  Carry root;
  root.kind = CarryKind::kSqrt;
  root.real = true;
  root.a = carried_node(n);
  root.f = std::sqrt(PyLong_AsDouble(n));
  Carry whole;
  whole.kind = CarryKind::kFloor;
  whole.a = add_node(root);
  return whole.a == kNoCarry ? plain : carry(plain, whole);
}
PyObject* math_log(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) != 1) note_forgotten();  // to another base
  return of_float<CarryKind::kLog>("log", args);
}
PyObject* math_log2(PyObject*, PyObject* args) { return of_float<CarryKind::kLog2>("log2", args); }
PyObject* math_exp(PyObject*, PyObject* args) { return of_float<CarryKind::kExp>("exp", args); }
PyObject* math_pow(PyObject*, PyObject* args) {
  PyObject* plain = PyObject_Call(door_of("pow")->plain, args, nullptr);
  if (plain == nullptr || PyTuple_GET_SIZE(args) != 2) return plain;
  PyObject *base = PyTuple_GET_ITEM(args, 0), *power = PyTuple_GET_ITEM(args, 1);
  if (!is_carrier(base) && !is_carrier(power)) return plain;
  return carry_binary(plain, CarryKind::kPow, base, power);
}
// Those whose results have no expression.
template <std::size_t kDoor>
PyObject* math_forgetful(PyObject*, PyObject* args) {
  note_forgotten();
  return PyObject_Call(doors[kDoor].plain, args, nullptr);
}

Door doors[] = {
    {"math", "gcd", {"gcd", math_forgetful<0>, METH_VARARGS, "Greatest Common Divisor."}},
    {"math", "lcm", {"lcm", math_forgetful<1>, METH_VARARGS, "Least Common Multiple."}},
    {"math", "log10", {"log10", math_forgetful<2>, METH_VARARGS, "Base 10 logarithm of x."}},
    {"math", "log1p", {"log1p", math_forgetful<3>, METH_VARARGS, "Logarithm of 1 + x."}},
    {"math", "fmod", {"fmod", math_forgetful<4>, METH_VARARGS, "Return fmod(x, y)."}},
    {"math", "factorial", {"factorial", math_forgetful<5>, METH_VARARGS, "Find x!."}},
    {"math", "comb", {"comb", math_forgetful<6>, METH_VARARGS, "Ways to choose k of n items."}},
    {"math", "sin", {"sin", math_forgetful<7>, METH_VARARGS, "Return the sine of x."}},
    {"math", "cos", {"cos", math_forgetful<8>, METH_VARARGS, "Return the cosine of x."}},
    {"math", "tanh", {"tanh", math_forgetful<9>, METH_VARARGS, "Return the hyperbolic tangent."}},
    {"math", "hypot", {"hypot", math_forgetful<10>, METH_VARARGS, "Euclidean distance."}},
    {"math", "log2", {"log2", math_log2, METH_VARARGS, "Return the base 2 logarithm of x."}},
    {"math", "exp", {"exp", math_exp, METH_VARARGS, "Return e raised to the power of x."}},
    {"math", "pow", {"pow", math_pow, METH_VARARGS, "Return x**y."}},
    {"builtins", "len", {"len", len, METH_O, "Return the number of items in a container."}},
    {"math", "sqrt", {"sqrt", math_sqrt, METH_VARARGS, "Return the square root of x."}},
    {"math", "isqrt", {"isqrt", math_isqrt, METH_VARARGS, "Return the integer square root."}},
    {"math", "log", {"log", math_log, METH_VARARGS, "Return the logarithm of x."}},
};

Door* door_of(const char* name) {
  for (Door& door : doors) {
    if (std::strcmp(door.name, name) == 0) return &door;
  }
  return nullptr;
}

}  // namespace

bool is_carrier(PyObject* object) { return is_int(object) || is_float(object); }

CarryId carried_node(PyObject* object) {
  if (sink == nullptr || !is_carrier(object)) return kNoCarry;
  const Tag& tag = tag_of(object);
  return tag.serial == sink->serial ? tag.node : kNoCarry;
}

CarryId node_of(PyObject* object) {
  if (sink == nullptr) return kNoCarry;
  if (const CarryId known = carried_node(object); known != kNoCarry) return known;
  Carry node;
  if (PyLong_Check(object)) {
    int overflow = 0;
    node.i = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return kNoCarry;
  } else if (PyFloat_Check(object)) {
    node.kind = CarryKind::kFloat;
    node.real = true;
    node.f = PyFloat_AS_DOUBLE(object);
  } else {
    return kNoCarry;
  }
  return add_node(node);
}

PyObject* carry(PyObject* plain, Carry node) {
  if (sink == nullptr || plain == nullptr) return plain;
  PyObject* made = nullptr;
  if (PyLong_CheckExact(plain)) {
    int overflow = 0;
    node.real = false;
    node.i = PyLong_AsLongLongAndOverflow(plain, &overflow);
    if (overflow != 0) return plain;
  } else if (PyFloat_CheckExact(plain)) {
    node.real = true;
    node.f = PyFloat_AS_DOUBLE(plain);
  } else {
    return plain;
  }
  const CarryId id = add_node(node);
  if (id == kNoCarry) return plain;
  PyObject* args = PyTuple_Pack(1, plain);
  if (args != nullptr) {
    made = node.real ? plain_float_new(float_type, args, nullptr)
                     : plain_int_new(int_type, args, nullptr);
    Py_DECREF(args);
  }
  if (made == nullptr) {
    PyErr_Clear();
    return plain;
  }
  tag_of(made) = {id, sink->serial};
  Py_DECREF(plain);
  return made;
}

namespace {

void set_doors(bool on) {
  for (const Door& door : doors) {
    // Whoever has replaced it meanwhile keeps what they put there.
    PyObject* current = PyDict_GetItemString(door.dict, door.name);
    if (current == (on ? door.plain : door.watched)) {
      PyDict_SetItemString(door.dict, door.name, on ? door.watched : door.plain);
    }
  }
}

}  // namespace

void watch(CarrySink* next) {
  const bool was = sink != nullptr;
  sink = next;
  made_ranges().clear();
  if (was == (next != nullptr)) return;
  const bool on = next != nullptr;
  PyLong_Type.tp_new = on ? int_new : plain_int_new;
  PyFloat_Type.tp_new = on ? float_new : plain_float_new;
  if (plain_int_call != nullptr) PyLong_Type.tp_vectorcall = on ? int_call : plain_int_call;
  if (plain_float_call != nullptr) PyFloat_Type.tp_vectorcall = on ? float_call : plain_float_call;
  watch_floats(on);
  watch_items(on);
  if (plain_range_call != nullptr) PyRange_Type.tp_vectorcall = on ? range_call : plain_range_call;
  set_doors(on);
}

void init_carriers(nb::module_& m) {
  m.def(
      "watch_builtins", [](bool on) { set_doors(on && sink != nullptr); }, nb::arg("on"),
      "Whether `len` and its like are watched while a run is recorded: not while a module is "
      "imported, which may keep them.");
  plain_int_new = PyLong_Type.tp_new;
  plain_float_new = PyFloat_Type.tp_new;
  plain_int_call = PyLong_Type.tp_vectorcall;
  plain_float_call = PyFloat_Type.tp_vectorcall;
  plain_floats = *PyFloat_Type.tp_as_number;
  plain_float_compare = PyFloat_Type.tp_richcompare;
  plain_range_call = PyRange_Type.tp_vectorcall;
  plain_list_item = PyList_Type.tp_as_mapping->mp_subscript;
  plain_tuple_item = PyTuple_Type.tp_as_mapping->mp_subscript;
  for (Door& door : doors) {
    door.dict = PyModule_GetDict(nb::module_::import_(door.module).release().ptr());
    door.plain = PyDict_GetItemString(door.dict, door.name);
    Py_INCREF(door.plain);
    door.watched = PyCFunction_New(&door.method, nullptr);
  }
  int_type = make_type("fairlead._core.SizeInt", kIntTag + sizeof(Tag), &PyLong_Type, kIntMethods,
                       "An int that remembers the sizes it was computed from.");
  float_type = make_type("fairlead._core.SizeFloat", kFloatTag + sizeof(Tag), &PyFloat_Type,
                         kFloatMethods, "A float that remembers the sizes it was computed from.");
  m.attr("SizeInt") = nb::borrow(reinterpret_cast<PyObject*>(int_type));
  m.attr("SizeFloat") = nb::borrow(reinterpret_cast<PyObject*>(float_type));
}

}  // namespace fairlead::python
