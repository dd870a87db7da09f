// The doors through which a number would lose its memory: int(), float(), range(), len(), math, and
// items of lists.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "carriers_impl.h"

namespace fairlead::python::carriers {
namespace {

vectorcallfunc plain_int_call = nullptr;
vectorcallfunc plain_float_call = nullptr;
vectorcallfunc plain_range_call = nullptr;
binaryfunc plain_list_item = nullptr;
binaryfunc plain_tuple_item = nullptr;
using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
objobjproc plain_list_contains = nullptr;
PyMethodDef *count_of_lists = nullptr, *index_of_lists = nullptr;  // null: not watched
PyCFunction plain_list_count = nullptr;
FastCall plain_list_index = nullptr;
ternaryfunc plain_cached_call = nullptr;
PyTypeObject* cached_type = nullptr;  // of functools.lru_cache

constexpr std::size_t kMostRangesNoted = 1 << 14;

// Functions of modules that are watched, too: what they are otherwise, and what they are meanwhile.
struct Door {
  const char* module;
  const char* name;
  PyMethodDef method;
  PyObject* dict = nullptr;
  PyObject* plain = nullptr;
  PyObject* watched = nullptr;
};
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
  if (sink != nullptr && PyList_CheckExact(self)) {
    if (PyObject* known = list_item(self, key); known != nullptr) return known;
  }
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
  PyObject* found = (*kPlain)(self, key);
  if (found != nullptr && PyList_CheckExact(self) && PySlice_Check(key))
    note_part(self, key, found);
  return found;
}

int contains(PyObject* self, PyObject* value) {
  const int known = list_contains(self, value);
  return known >= 0 ? known : plain_list_contains(self, value);
}

PyObject* count(PyObject* self, PyObject* value) {
  PyObject* known = list_count(self, value);
  return known != nullptr ? known : plain_list_count(self, value);
}

PyObject* index_of(PyObject* self, PyObject* const* args, Py_ssize_t given) {
  PyObject* known = given == 1 ? list_index(self, args[0]) : nullptr;
  return known != nullptr ? known : plain_list_index(self, args, given);
}

// The table entry of a method of lists, where it is called as it has been so far.
PyMethodDef* method_of_lists(const char* name, int kind) {
  const nb::object found =
      nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), name));
  if (!found.is_valid() || Py_TYPE(found.ptr()) != &PyMethodDescr_Type) {
    PyErr_Clear();
    return nullptr;
  }
  PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(found.ptr())->d_method;
  return method->ml_flags == kind ? method : nullptr;
}

void find_list_methods() {
  plain_list_contains = PyList_Type.tp_as_sequence->sq_contains;
  count_of_lists = method_of_lists("count", METH_O);
  if (count_of_lists != nullptr) plain_list_count = count_of_lists->ml_meth;
  index_of_lists = method_of_lists("index", METH_FASTCALL);
  if (index_of_lists != nullptr) {
    plain_list_index =
        reinterpret_cast<FastCall>(reinterpret_cast<void (*)()>(index_of_lists->ml_meth));
  }
}

void watch_list_methods(bool on) {
  PyList_Type.tp_as_sequence->sq_contains = on ? contains : plain_list_contains;
  if (count_of_lists != nullptr) count_of_lists->ml_meth = on ? count : plain_list_count;
  if (index_of_lists != nullptr) {
    index_of_lists->ml_meth = reinterpret_cast<PyCFunction>(
        reinterpret_cast<void (*)()>(on ? index_of : plain_list_index));
  }
}

void watch_items(bool on) {
  PyList_Type.tp_as_mapping->mp_subscript = on ? item<&plain_list_item> : plain_list_item;
  PyTuple_Type.tp_as_mapping->mp_subscript = on ? item<&plain_tuple_item> : plain_tuple_item;
}
// The read that a call to int(tensor) or float(tensor) made; kNoCarry where it made none.
CarryId read_since(std::size_t ops) {
  const Run& run = sink->run();
  if (run.ops.size() == ops || run.ops.back().result_count != 1) return kNoCarry;
  const Item& item = run.items[run.ops.back().results];
  if (item.kind != ItemKind::kInt && item.kind != ItemKind::kFloat &&
      item.kind != ItemKind::kBool) {
    return kNoCarry;
  }
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
  if (is_float(argument)) {
    Py_INCREF(argument);
    return argument;
  }
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
  if (sink != nullptr && PyList_CheckExact(object)) {
    PyObject* length = list_length(object);
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
  for (Py_ssize_t k = 0; PyTuple_GET_SIZE(args) != 1 && k < PyTuple_GET_SIZE(args); ++k) {
    forget(PyTuple_GET_ITEM(args, k));  // to another base
  }
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
// Those whose results have no expression, of this one.
PyObject* forgetful(PyObject* plain, PyObject* args, PyObject* names) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); ++k) forget(PyTuple_GET_ITEM(args, k));
  return PyObject_Call(plain, args, names);
}

// math.isnan(v), isinf and isfinite ask about a number as comparisons do: one whose magnitude is
// neither below infinity nor infinity is none. The answers are those below, there, and for none.
PyObject* asked_of_infinity(const char* name, PyObject* v, const bool (&answers)[3]) {
  if (!is_float(v) || carried_node(v) == kNoCarry) {
    return PyObject_CallOneArg(door_of(name)->plain, v);
  }
  const nb::object number = nb::steal(PyNumber_Absolute(v));
  const nb::object most = nb::steal(PyFloat_FromDouble(HUGE_VAL));
  if (!number.is_valid() || !most.is_valid()) return nullptr;
  const bool below = PyObject_RichCompareBool(number.ptr(), most.ptr(), Py_LT) == 1;
  if (below || answers[1] == answers[2]) return PyBool_FromLong(answers[below ? 0 : 2] ? 1 : 0);
  const bool at = PyObject_RichCompareBool(number.ptr(), most.ptr(), Py_EQ) == 1;
  return PyBool_FromLong(answers[at ? 1 : 2] ? 1 : 0);
}
PyObject* math_isnan(PyObject*, PyObject* v) {
  return asked_of_infinity("isnan", v, {false, false, true});
}
PyObject* math_isinf(PyObject*, PyObject* v) {
  return asked_of_infinity("isinf", v, {false, true, false});
}
PyObject* math_isfinite(PyObject*, PyObject* v) {
  return asked_of_infinity("isfinite", v, {true, false, false});
}

// math.isclose(a, b): |a - b| <= rel_tol * max(|a|, |b|), or <= abs_tol.
PyObject* math_isclose(PyObject*, PyObject* args, PyObject* names) {
  PyObject* plain = door_of("isclose")->plain;
  const bool two = PyTuple_GET_SIZE(args) == 2;
  PyObject* a = two ? PyTuple_GET_ITEM(args, 0) : nullptr;
  PyObject* b = two ? PyTuple_GET_ITEM(args, 1) : nullptr;
  if (!two || (carried_node(a) == kNoCarry && carried_node(b) == kNoCarry)) {
    return PyObject_Call(plain, args, names);
  }
  const auto named = [&](const char* name, double value) {
    PyObject* given = names == nullptr ? nullptr : PyDict_GetItemString(names, name);
    return given == nullptr ? nb::steal(PyFloat_FromDouble(value)) : nb::borrow<nb::object>(given);
  };
  const nb::object share = named("rel_tol", 1e-9), most = named("abs_tol", 0.0);
  const nb::object way = nb::steal(PyNumber_Subtract(a, b));
  if (!way.is_valid()) return nullptr;
  const nb::object distance = nb::steal(PyNumber_Absolute(way.ptr()));
  if (!distance.is_valid()) return nullptr;
  if (PyObject_RichCompareBool(distance.ptr(), most.ptr(), Py_LE) == 1) Py_RETURN_TRUE;
  for (PyObject* side : {a, b}) {
    const nb::object scaled = nb::steal(PyNumber_Multiply(side, share.ptr()));
    if (!scaled.is_valid()) return nullptr;
    const nb::object limit = nb::steal(PyNumber_Absolute(scaled.ptr()));
    if (!limit.is_valid()) return nullptr;
    if (PyObject_RichCompareBool(distance.ptr(), limit.ptr(), Py_LE) == 1) Py_RETURN_TRUE;
  }
  Py_RETURN_FALSE;
}

// operator.index(n) is n.
PyObject* index(PyObject*, PyObject* object) {
  if (!is_int(object)) return PyObject_CallOneArg(door_of("index")->plain, object);
  Py_INCREF(object);
  return object;
}

// Of a list of numbers that were read, without a key.
template <std::size_t kDoor>
PyObject* of_list(PyObject*, PyObject* args, PyObject* names) {
  if (sink != nullptr && names == nullptr && PyTuple_GET_SIZE(args) == 1) {
    PyObject* found = list_answer(PyTuple_GET_ITEM(args, 0), doors[kDoor].name);
    if (found != nullptr) return found;
  }
  return PyObject_Call(doors[kDoor].plain, args, names);
}

PyObject* sorted(PyObject*, PyObject* args, PyObject* names) {
  PyObject* reverse = names == nullptr ? nullptr : PyDict_GetItemString(names, "reverse");
  const Py_ssize_t known = reverse == nullptr ? 0 : 1;
  if (sink != nullptr && PyTuple_GET_SIZE(args) == 1 &&
      (names == nullptr || PyDict_GET_SIZE(names) == known) &&
      (reverse == nullptr || PyBool_Check(reverse))) {
    PyObject* found = list_sorted(PyTuple_GET_ITEM(args, 0), reverse == Py_True);
    if (found != nullptr) return found;
  }
  return PyObject_Call(door_of("sorted")->plain, args, names);
}

// A function that keeps its results computes them anew of numbers that remember: what it has kept
// is of another run, and forgets where it comes from.
bool has_carrier(PyObject* value, int depth) {
  if (is_carrier(value)) return true;
  if (depth > 2 || !PyTuple_Check(value)) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(value); ++k) {
    if (has_carrier(PyTuple_GET_ITEM(value, k), depth + 1)) return true;
  }
  return false;
}

PyObject* cached_call(PyObject* self, PyObject* args, PyObject* names) {
  bool remembers = sink != nullptr && has_carrier(args, 0);
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (!remembers && sink != nullptr && names != nullptr &&
         PyDict_Next(names, &at, &name, &value) != 0) {
    remembers = has_carrier(value, 0);
  }
  if (remembers) {
    const nb::object function = nb::steal(PyObject_GetAttrString(self, "__wrapped__"));
    if (function.is_valid()) return PyObject_Call(function.ptr(), args, names);
    PyErr_Clear();
  }
  return plain_cached_call(self, args, names);
}

constexpr int kNamed = METH_VARARGS | METH_KEYWORDS;
template <PyObject* (*kFunction)(PyObject*, PyObject*, PyObject*)>
PyCFunction named() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kFunction));
}

Door doors[] = {
    {"builtins", "max", {"max", named<of_list<0>>(), kNamed, "The largest."}},
    {"builtins", "min", {"min", named<of_list<1>>(), kNamed, "The smallest."}},
    {"builtins", "sum", {"sum", named<of_list<2>>(), kNamed, "The sum."}},
    {"builtins", "any", {"any", named<of_list<3>>(), kNamed, "Whether one of them is true."}},
    {"builtins", "all", {"all", named<of_list<4>>(), kNamed, "Whether all of them are true."}},
    {"math", "isnan", {"isnan", math_isnan, METH_O, "Check if x is a NaN."}},
    {"math", "isinf", {"isinf", math_isinf, METH_O, "Check if x is an infinity."}},
    {"math", "isfinite", {"isfinite", math_isfinite, METH_O, "Check if x is a number."}},
    {"math", "isclose", {"isclose", named<math_isclose>(), kNamed, "Whether they are close."}},
    {"operator", "index", {"index", index, METH_O, "Same as a.__index__()."}},
    {"builtins", "sorted", {"sorted", named<sorted>(), kNamed, "A new sorted list."}},
    {"math", "log2", {"log2", math_log2, METH_VARARGS, "Return the base 2 logarithm of x."}},
    {"math", "exp", {"exp", math_exp, METH_VARARGS, "Return e raised to the power of x."}},
    {"math", "pow", {"pow", math_pow, METH_VARARGS, "Return x**y."}},
    {"builtins", "len", {"len", len, METH_O, "Return the number of items in a container."}},
    {"math", "sqrt", {"sqrt", math_sqrt, METH_VARARGS, "Return the square root of x."}},
    {"math", "isqrt", {"isqrt", math_isqrt, METH_VARARGS, "Return the integer square root."}},
    {"math", "log", {"log", math_log, METH_VARARGS, "Return the logarithm of x."}},
};

// Of math, these ask the number itself, or compute with its own operators.
constexpr const char* kFaithful[] = {"ceil", "floor", "trunc", "prod"};
constexpr const char* kForgetfulBuiltins[] = {"bin", "hex", "oct", "chr"};

// All functions that are not in the table and keep no memory; they live as long as the module.
std::vector<Door>& forgetful_doors() {
  static auto* list = new std::vector<Door>();
  return *list;
}

Door* door_of(const char* name) {
  for (Door& door : doors) {
    if (std::strcmp(door.name, name) == 0) return &door;
  }
  return nullptr;
}

}  // namespace

void forget_ranges() { made_ranges().clear(); }

void watch_functions(bool on) {
  const auto watch = [&](const Door& door) {
    // Whoever has replaced it meanwhile keeps what they put there.
    PyObject* current = PyDict_GetItemString(door.dict, door.name);
    if (current == (on ? door.plain : door.watched)) {
      PyDict_SetItemString(door.dict, door.name, on ? door.watched : door.plain);
    }
  };
  for (const Door& door : doors) watch(door);
  for (const Door& door : forgetful_doors()) watch(door);
}

void watch_doors(bool on) {
  PyLong_Type.tp_new = on ? int_new : plain_int_new;
  PyFloat_Type.tp_new = on ? float_new : plain_float_new;
  if (plain_int_call != nullptr) PyLong_Type.tp_vectorcall = on ? int_call : plain_int_call;
  if (plain_float_call != nullptr) PyFloat_Type.tp_vectorcall = on ? float_call : plain_float_call;
  if (plain_range_call != nullptr) PyRange_Type.tp_vectorcall = on ? range_call : plain_range_call;
  if (plain_cached_call != nullptr) cached_type->tp_call = on ? cached_call : plain_cached_call;
  watch_items(on);
  watch_list_methods(on);
  watch_functions(on);
}

void find_doors() {
  plain_int_call = PyLong_Type.tp_vectorcall;
  plain_float_call = PyFloat_Type.tp_vectorcall;
  plain_range_call = PyRange_Type.tp_vectorcall;
  plain_list_item = PyList_Type.tp_as_mapping->mp_subscript;
  plain_tuple_item = PyTuple_Type.tp_as_mapping->mp_subscript;
  find_list_methods();
  const nb::object cached = nb::module_::import_("functools").attr("_lru_cache_wrapper");
  if (PyType_Check(cached.ptr())) {  // in Python it would be a function
    cached_type = reinterpret_cast<PyTypeObject*>(cached.inc_ref().ptr());
    plain_cached_call = cached_type->tp_call;
  }
  for (Door& door : doors) {
    door.dict = PyModule_GetDict(nb::module_::import_(door.module).release().ptr());
    door.plain = PyDict_GetItemString(door.dict, door.name);
    Py_INCREF(door.plain);
    door.watched = PyCFunction_New(&door.method, nullptr);
  }
  const auto add = [](PyObject* dict, const char* name, PyObject* plain) {
    auto* method = new PyMethodDef{name, named<forgetful>(), kNamed, nullptr};
    forgetful_doors().push_back(
        {"", name, *method, dict, Py_NewRef(plain), PyCFunction_New(method, plain)});
  };
  PyObject* math = PyModule_GetDict(nb::module_::import_("math").release().ptr());
  PyObject *name = nullptr, *function = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(math, &at, &name, &function) != 0;) {
    const char* text = PyUnicode_AsUTF8(name);
    const auto is_it = [&](const char* faithful) { return std::strcmp(faithful, text) == 0; };
    if (!PyCFunction_Check(function) || door_of(text) != nullptr ||
        std::any_of(std::begin(kFaithful), std::end(kFaithful), is_it)) {
      continue;
    }
    add(math, text, function);
  }
  PyObject* builtins = PyModule_GetDict(nb::module_::import_("builtins").release().ptr());
  for (const char* text : kForgetfulBuiltins) {
    add(builtins, text, PyDict_GetItemString(builtins, text));
  }
}

}  // namespace fairlead::python::carriers
