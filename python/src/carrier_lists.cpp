// Lists of numbers that a model read from a tensor, t.tolist(), and functions that keep their
// results by their arguments.
//
// How long such a list is may be a size. What Python asks of the whole of it is asked of the tensor
// instead: max(t.tolist()) is t.max().item(), a number that remembers at every length. Of the
// others the run keeps those up to the last that was used.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "carriers_impl.h"

namespace fairlead::python {

using namespace nb::literals;

namespace carriers {
namespace {

struct KnownList {
  nb::object list;
  nb::object tensor;
  std::int64_t version = 0;  // of the tensor: what is written into it later is not in the list
  CarryId op = kNoCarry;
  bool asked = false;
  // l[first::step], of a list that was read whole
  nb::object slice = {};
  Py_ssize_t first = 0, step = 1, count = -1;
};

constexpr std::size_t kMostLists = 64;

std::vector<KnownList>& known_lists() {
  static std::vector<KnownList> known;
  return known;
}

std::int64_t version_of(nb::handle tensor) {
  const nb::object version = nb::steal(PyObject_GetAttrString(tensor.ptr(), "_version"));
  if (!version.is_valid()) {
    PyErr_Clear();
    return -1;
  }
  return nb::cast<std::int64_t>(version);
}

// The list, where it still is what was read.
KnownList* find_list(PyObject* list) {
  if (sink == nullptr || !PyList_CheckExact(list)) return nullptr;
  const auto found = std::find_if(known_lists().begin(), known_lists().end(),
                                  [&](const KnownList& k) { return k.list.ptr() == list; });
  if (found == known_lists().end() || found->version != version_of(found->tensor)) return nullptr;
  const Run& run = sink->run();
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); ++k) {
    const CarryId node = carried_node(PyList_GET_ITEM(list, k));
    if (node == kNoCarry || run.carried[node].kind != CarryKind::kRead ||
        run.carried[node].a != found->op || run.carried[node].b != found->first + k * found->step) {
      return nullptr;
    }
  }
  const auto& read = run.ops[static_cast<std::size_t>(found->op)];
  const Py_ssize_t count = found->count >= 0 ? found->count : run.items[read.results].i;
  const bool whole =
      run.items[read.results].kind == ItemKind::kList && count == PyList_GET_SIZE(list);
  return whole && PyList_GET_SIZE(list) > 0 ? &*found : nullptr;
}

bool all_of(PyObject* list, bool (*is)(PyObject*)) {
  PyObject** const first = PySequence_Fast_ITEMS(list);
  return std::all_of(first, first + PySequence_Fast_GET_SIZE(list), is);
}

bool is_whole(PyObject* list) { return all_of(list, is_int); }

// Python and PyTorch order them alike.
bool has_order(PyObject* list) {
  return is_whole(list) || all_of(list, [](PyObject* each) {
           return is_float(each) && !std::isnan(PyFloat_AS_DOUBLE(each));
         });
}

// The tensor that a list, or a part of one, was read from; null where it is not to be had.
nb::object tensor_of(KnownList& known) {
  known.asked = true;
  if (!known.slice.is_valid()) return known.tensor;
  nb::object part = nb::steal(PyObject_GetItem(known.tensor.ptr(), known.slice.ptr()));
  if (!part.is_valid()) PyErr_Clear();
  return part;
}

nb::object called(const nb::object& object, const char* method) {
  if (!object.is_valid()) return object;
  nb::object made = nb::steal(PyObject_CallMethod(object.ptr(), method, nullptr));
  if (!made.is_valid()) PyErr_Clear();
  return made;
}

PyObject* released(nb::object object) { return object.release().ptr(); }

// What the tensor answers, as a number that remembers; null where it does not.
PyObject* ask_tensor(KnownList& known, const char* method) {
  const bool floats = is_float(PyList_GET_ITEM(known.list.ptr(), 0));
  nb::object tensor = tensor_of(known);
  if (std::string_view(method) == "sum" && floats) tensor = called(tensor, "double");
  return released(called(called(tensor, method), "item"));
}

bool is_number(PyObject* object) {
  return (PyLong_Check(object) && !PyBool_Check(object)) || PyFloat_Check(object);
}

// Which elements are equal to the value; null where that is not to be said.
nb::object equal_to(PyObject* list, PyObject* value) {
  if (sink == nullptr || known_lists().empty() || !is_number(value)) return {};
  KnownList* known = find_list(list);
  if (known == nullptr || !has_order(list)) return {};
  nb::object tensor = tensor_of(*known);
  if (is_float(PyList_GET_ITEM(list, 0))) tensor = called(tensor, "double");
  if (!tensor.is_valid()) return {};
  nb::object same = nb::steal(PyObject_RichCompare(tensor.ptr(), value, Py_EQ));
  if (!same.is_valid()) PyErr_Clear();
  return same;
}

}  // namespace

void forget_lists() { known_lists().clear(); }

}  // namespace carriers

using namespace carriers;

void note_list(nb::handle list, nb::handle tensor) {
  if (sink == nullptr || !PyList_CheckExact(list.ptr()) || known_lists().size() >= kMostLists) {
    return;
  }
  const std::int64_t version = version_of(tensor);
  if (version < 0 || PyList_GET_SIZE(list.ptr()) == 0) return;
  const CarryId node = carried_node(PyList_GET_ITEM(list.ptr(), 0));
  if (node == kNoCarry || sink->run().carried[node].kind != CarryKind::kRead) return;
  known_lists().push_back(
      {nb::borrow(list), nb::borrow(tensor), version, sink->run().carried[node].a});
}

nb::object read_from(nb::handle list) {
  KnownList* known = find_list(list.ptr());
  return known == nullptr ? nb::none() : nb::object(tensor_of(*known));
}

namespace carriers {

// max, min or sum of a list of integers alone, or of floats.
PyObject* list_answer(PyObject* list, const char* method) {
  KnownList* known = find_list(list);
  return known == nullptr || !has_order(list) ? nullptr : ask_tensor(*known, method);
}

int list_contains(PyObject* list, PyObject* value) {
  const nb::object any = called(equal_to(list, value), "any");
  const int answer = any.is_valid() ? PyObject_IsTrue(any.ptr()) : -1;
  if (answer < 0) PyErr_Clear();
  return answer;
}

PyObject* list_count(PyObject* list, PyObject* value) {
  return released(called(called(equal_to(list, value), "sum"), "item"));
}

// Null too where there is none: Python says so.
PyObject* list_index(PyObject* list, PyObject* value) {
  const nb::object same = equal_to(list, value);
  const nb::object any = called(same, "any");
  if (!any.is_valid() || PyObject_IsTrue(any.ptr()) != 1) {
    PyErr_Clear();
    return nullptr;
  }
  return released(called(called(called(same, "int"), "argmax"), "item"));
}

// A part of a list that was read is one, too.
void note_part(PyObject* list, PyObject* key, PyObject* part) {
  if (sink == nullptr || known_lists().empty() || known_lists().size() >= kMostLists) return;
  const auto* slice = reinterpret_cast<PySliceObject*>(key);
  for (PyObject* bound : {slice->start, slice->stop, slice->step}) {
    if (bound != Py_None && !PyLong_Check(bound)) return;
  }
  const KnownList* known = find_list(list);
  Py_ssize_t first = 0, last = 0, step = 0;
  if (known == nullptr || known->slice.is_valid() ||
      PySlice_Unpack(key, &first, &last, &step) < 0) {
    PyErr_Clear();
    return;
  }
  const Py_ssize_t count = PySlice_AdjustIndices(PyList_GET_SIZE(list), &first, &last, step);
  if (step < 1 || count != PyList_GET_SIZE(part)) return;
  KnownList made{nb::borrow(part), known->tensor, known->version, known->op};
  made.slice = nb::borrow(key);
  made.first = first;
  made.step = step;
  made.count = count;
  known_lists().push_back(std::move(made));
}

PyObject* list_length(PyObject* list) {
  KnownList* known = find_list(list);
  if (known == nullptr || known->slice.is_valid()) return nullptr;
  const CarryId node = sink->dim(known->tensor.ptr(), 0);
  if (node == kNoCarry) return nullptr;
  known->asked = true;
  return carry(PyLong_FromSsize_t(PyList_GET_SIZE(list)), sink->run().carried[node]);
}

// From the end: which number that is follows from the length. Others are found by their number.
PyObject* list_item(PyObject* list, PyObject* key) {
  if (known_lists().empty() || !PyLong_CheckExact(key)) return nullptr;
  const Py_ssize_t at = PyLong_AsSsize_t(key);
  if (at >= 0 || at < -PyList_GET_SIZE(list)) {
    PyErr_Clear();
    return nullptr;
  }
  KnownList* known = find_list(list);
  const nb::object tensor = known == nullptr ? nb::object() : tensor_of(*known);
  if (!tensor.is_valid()) return nullptr;
  const nb::object made = nb::steal(PyObject_GetItem(tensor.ptr(), key));
  if (!made.is_valid()) PyErr_Clear();
  return released(called(made, "item"));
}

// sorted(t.tolist()) in either direction.
PyObject* list_sorted(PyObject* list, bool downwards) {
  KnownList* known = find_list(list);
  if (known == nullptr || !has_order(list)) return nullptr;
  const nb::object tensor = tensor_of(*known);
  if (!tensor.is_valid()) return nullptr;
  nb::object made = tensor.attr("sort")("descending"_a = downwards);
  return nb::object(made[0].attr("tolist")()).release().ptr();
}

}  // namespace carriers

void keep_used_numbers(Run& run) {
  if (known_lists().empty()) return;
  std::vector<bool> used(run.carried.size());
  const auto use = [&](CarryId id) {
    if (id != kNoCarry) used[static_cast<std::size_t>(id)] = true;
  };
  for (const Carry& node : run.carried) {
    if (node.kind <= CarryKind::kRead) continue;  // what they refer to is no node
    use(node.a);
    use(node.b);
  }
  for (const Guard& guard : run.guards) {
    use(guard.left);
    use(guard.right);
  }
  for (const Item& item : run.items) use(item.carried);
  for (const CarryId id : run.call_numbers) use(id);
  for (const CarryId id : run.ranges) use(id);
  for (const KnownList& known : known_lists()) {
    std::int64_t kept = 0;
    for (std::size_t k = 0; k < run.carried.size(); ++k) {
      const Carry& node = run.carried[k];
      if (used[k] && node.kind == CarryKind::kRead && node.a == known.op) {
        kept = std::max<std::int64_t>(kept, node.b + 1);
      }
    }
    OpRecord& record = run.ops[static_cast<std::size_t>(known.op)];
    if ((kept == 0 && !known.asked) || run.items[record.results].kind != ItemKind::kList) continue;
    run.items[record.results].i = kept;
    record.result_count = 1 + static_cast<std::uint32_t>(kept);
  }
}

}  // namespace fairlead::python
