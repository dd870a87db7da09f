// The state of the carriers, their nodes and questions. Runs inside every model, so it must neither
// raise nor slow down.
#include "carriers.h"

#include <algorithm>

#include "carriers_impl.h"

namespace fairlead::python {
namespace carriers {

CarrySink* sink = nullptr;
PyTypeObject* int_type = nullptr;
PyTypeObject* float_type = nullptr;
newfunc plain_int_new = nullptr;
newfunc plain_float_new = nullptr;
PyNumberMethods plain_floats;
richcmpfunc plain_float_compare = nullptr;

namespace {

// A model that computes with sizes millions of times goes on with plain numbers.
constexpr std::size_t kMostNodes = 1 << 20;
constexpr std::size_t kMostGuards = 1 << 17;

Tag& tag_of(PyObject* o) {
  return *reinterpret_cast<Tag*>(reinterpret_cast<char*>(o) + (is_int(o) ? kIntTag : kFloatTag));
}
}  // namespace

CarryId add_node(const Carry& node) {
  std::vector<Carry>& table = sink->run().carried;
  if (table.size() >= kMostNodes) return kNoCarry;
  table.push_back(node);
  return static_cast<CarryId>(table.size() - 1);
}

bool add_guard(Compare compare, CarryId left, CarryId right, bool outcome) {
  if (left == kNoCarry || (right == kNoCarry && compare != Compare::kKey)) return outcome;
  Run& run = sink->run();
  if (!sink->asks || run.guards.size() >= kMostGuards) return outcome;
  Guard guard;
  guard.compare = compare;
  guard.outcome = outcome;
  guard.left = left;
  guard.right = right;
  guard.op = static_cast<std::uint32_t>(run.ops.size());
  guard.source = sink->source_line();
  guard.module = sink->module();
  guard.outcome = sink->answer(guard);
  run.guards.push_back(guard);
  return guard.outcome;
}

void note_forgotten() {
  if (sink == nullptr) return;
  Run& run = sink->run();
  run.forgot_at = std::min(run.forgot_at, run.ops.size());
}

void ask_which(CarryId node, bool told) {
  note_forgotten();
  const Carry& mine = sink->run().carried[node];
  if (mine.real) return;
  Carry number;
  number.i = mine.i;
  const std::size_t known = sink->run().guards.size();
  add_guard(Compare::kCount, node, add_node(number), true);
  if (sink->run().guards.size() > known) sink->run().guards.back().told = told;
}

void forget(PyObject* object) {
  if (sink == nullptr) return;
  if (const CarryId node = carried_node(object); node != kNoCarry) return ask_which(node);
  if (!PyTuple_Check(object) && !PyList_Check(object)) return;
  constexpr Py_ssize_t kMost = 16;
  const Py_ssize_t count = std::min(kMost, PySequence_Fast_GET_SIZE(object));
  for (Py_ssize_t k = 0; k < count; ++k) {
    const CarryId node = carried_node(PySequence_Fast_GET_ITEM(object, k));
    if (node != kNoCarry) ask_which(node);
  }
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

}  // namespace carriers

using namespace carriers;

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

void ask_flag(const Carry& node) {
  if (sink == nullptr) return;
  const CarryId flag = add_node(node);
  if (flag != kNoCarry) add_guard(Compare::kNotEqual, flag, add_node({}), node.i != 0);
}

void watch(CarrySink* next) {
  const bool was = sink != nullptr, on = next != nullptr;
  sink = next;
  forget_ranges();
  forget_lists();
  if (was == on) return;
  watch_floats(on);
  watch_doors(on);
}

void init_carriers(nb::module_& m) {
  m.def(
      "watch_builtins", [](bool on) { watch_functions(on && sink != nullptr); }, nb::arg("on"),
      "Whether `len` and its like are watched while a run is recorded: not while a module is "
      "imported, which may keep them.");
  m.def("read_from", &read_from, nb::arg("list"),
        "The tensor that a list of numbers was read from, or None.");
  m.def("note_list", &note_list, nb::arg("list"), nb::arg("tensor"),
        "A list of numbers that was read from this tensor.");
  plain_int_new = PyLong_Type.tp_new;
  plain_float_new = PyFloat_Type.tp_new;
  plain_floats = *PyFloat_Type.tp_as_number;
  plain_float_compare = PyFloat_Type.tp_richcompare;
  find_doors();
  make_types();
  m.attr("SizeInt") = nb::borrow(reinterpret_cast<PyObject*>(int_type));
  m.attr("SizeFloat") = nb::borrow(reinterpret_cast<PyObject*>(float_type));
}

}  // namespace fairlead::python
