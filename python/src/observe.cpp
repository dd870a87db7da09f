// Bindings of the observed calls: one crossing per call in, one per question out.
//
// A structure crosses as a list of tokens in post-order, and the list of its tensors:
//   ...            a tensor                     None, bool, int, float, str   themselves
//   (0, n)         tuple of the n before it     (1, n)                        list
//   (2, keys)      dict                         (3, keys, class)              dataclass or model
//   output (4, keys, class)  cache or registered class  (5, text)                    constant of
//   another type
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "fairlead/base/error.h"
#include "fairlead/observe/calls.h"
#include "fairlead/observe/infer.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

void push_container(TreeBuilder& builder, nb::tuple token) {
  const auto keys = [&] { return nb::cast<std::vector<std::string>>(token[1]); };
  switch (nb::cast<int>(token[0])) {
    case 0:
      return builder.tuple(nb::cast<std::uint32_t>(token[1]));
    case 1:
      return builder.list(nb::cast<std::uint32_t>(token[1]));
    case 2:
      return builder.dict(keys());
    case 3:
      return builder.record(nb::cast<std::string>(token[2]), keys());
    case 4:
      return builder.custom(nb::cast<std::string>(token[2]), keys());
    default:
      return builder.opaque(nb::cast<std::string>(token[1]));
  }
}

Tree read_tree(nb::list tokens) {
  TreeBuilder builder;
  for (nb::handle token : tokens) {
    PyObject* raw = token.ptr();
    if (raw == Py_Ellipsis) {
      builder.tensor();
    } else if (raw == Py_None) {
      builder.none();
    } else if (PyBool_Check(raw)) {
      builder.boolean(raw == Py_True);
    } else if (PyLong_CheckExact(raw)) {
      builder.integer(nb::cast<std::int64_t>(token));
    } else if (PyFloat_CheckExact(raw)) {
      builder.number(PyFloat_AS_DOUBLE(raw));
    } else if (PyUnicode_CheckExact(raw)) {
      builder.text(nb::cast<std::string>(token));
    } else {
      push_container(builder, nb::cast<nb::tuple>(token));
    }
  }
  return builder.finish();
}

std::vector<std::int64_t> read_ints(nb::handle sequence) {
  std::vector<std::int64_t> values;
  for (nb::handle value : sequence) values.push_back(nb::cast<std::int64_t>(value));
  return values;
}

// The calls, and what is needed to read facts off a tensor object without knowing its library.
class ObservedCalls {
 public:
  ObservedCalls(std::vector<std::string> order, nb::dict dtypes)
      : calls(std::move(order)), kept_(dtypes) {
    for (auto [dtype, name] : dtypes) {
      if (const auto parsed = parse_dtype(nb::cast<std::string>(name)))
        dtypes_.emplace(dtype.ptr(), *parsed);
    }
  }

  std::uint32_t add(nb::list tokens, nb::list tensors) {
    Tree tree = read_tree(tokens);
    for (nb::handle tensor : tensors) add_tensor(tensor);
    return calls.add_call(std::move(tree));
  }

  Calls calls;

 private:
  void add_tensor(nb::handle tensor) {
    const nb::object dtype = tensor.attr("dtype");
    const auto found = dtypes_.find(dtype.ptr());
    if (found == dtypes_.end()) {
      const std::string name = nb::cast<std::string>(nb::str(dtype));
      throw Error(ErrorCode::kInvalidInput,
                  "[observe] Expected a tensor of a known dtype, got " + name + ".");
    }
    const std::vector<std::int64_t> shape = read_ints(tensor.attr("shape"));
    const std::vector<std::int64_t> strides = read_ints(tensor.attr("stride")());
    const nb::object where = tensor.attr("device");
    const nb::str device(static_cast<nb::handle>(where));
    calls.add_tensor(found->second, shape, strides, device.c_str());
  }

  nb::dict kept_;  // holds the dtype objects whose addresses are the keys below
  std::unordered_map<PyObject*, Dtype> dtypes_;
};

nb::object nested(const Tree& tree, std::uint32_t node) {
  const TreeNode& at = tree.at(node);
  if (at.kind == NodeKind::kTensor) return nb::make_tuple("tensor", at.value);
  if (at.kind == NodeKind::kNone) return nb::make_tuple("none");
  if (is_constant(at.kind)) return nb::make_tuple("constant", to_text(tree, node));
  nb::list children, keys;
  const auto nodes = tree.children(node);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    keys.append(nb::cast(tree.key(node, i)));
    children.append(nested(tree, nodes[i]));
  }
  return nb::make_tuple(nb::cast(std::string(kind_name(at.kind))), keys, children,
                        nb::cast(std::string(tree.name(node))));
}

nb::list slot_rows(const Inference& inference) {
  nb::list rows;
  for (const Slot& slot : inference.slots) {
    nb::list varying;
    for (std::uint32_t axis = 0; axis < slot.rank; ++axis) {
      if (inference.dims[slot.dims + axis].varies) varying.append(axis);
    }
    rows.append(nb::make_tuple(nb::cast(slot.path), slot.rank, varying, slot.present,
                               slot.first_call, slot.last_call));
  }
  return rows;
}

nb::list group_rows(const Inference& inference) {
  nb::list rows;
  for (const DimGroup& group : inference.groups) {
    nb::list members;
    for (const std::uint32_t dim : group.dims) {
      members.append(nb::make_tuple(inference.dims[dim].slot, inference.dims[dim].axis));
    }
    rows.append(nb::make_tuple(members, nb::cast(group.sizes)));
  }
  return rows;
}

nb::list sum_rows(const Inference& inference) {
  nb::list rows;
  for (const DimSum& sum : inference.sums)
    rows.append(nb::make_tuple(sum.total, sum.first, sum.second));
  return rows;
}

// Sizes by dim of tensors that were not stored, at the slots they belong to.
std::vector<std::int64_t> sizes_at(const Inference& inference,
                                   const std::vector<std::int32_t>& slots, nb::list tensors) {
  std::vector<std::int64_t> sizes(inference.dims.size(), kMissing);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto shape = read_ints(nb::handle(tensors[i]).attr("shape"));
    const Slot& slot = inference.slots.at(static_cast<std::size_t>(slots[i]));
    if (shape.size() != slot.rank) {
      throw Error(ErrorCode::kInvalidInput,
                  "[infer_arguments] Expected " + std::to_string(slot.rank) + " dimensions for " +
                      slot.path + ", got " + std::to_string(shape.size()) + ".");
    }
    std::copy(shape.begin(), shape.end(), sizes.begin() + slot.dims);
  }
  return sizes;
}

}  // namespace

void init_observe(nb::module_& m) {
  nb::class_<Inference>(m, "Inference", "What the observed calls say together.")
      .def_prop_ro("tree", [](const Inference& i) { return nested(i.tree, i.tree.root()); })
      .def_prop_ro("text", [](const Inference& i) { return to_text(i.tree); })
      .def_prop_ro("slots", &slot_rows,
                   "Per tensor: path, rank, axes that vary, calls that have it, first, last.")
      .def_prop_ro("groups", &group_rows,
                   "Dims that move together: ([(slot, axis)], sizes per call).")
      .def_prop_ro("sums", &sum_rows, "Groups (total, first, second) with total == first + second.")
      .def_ro("fullest", &Inference::fullest, "The first call with the most tensors.")
      .def(
          "align", [](const Inference& i, nb::list tokens) { return align(i, read_tree(tokens)); },
          "tokens"_a);
  nb::class_<ObservedCalls>(m, "ObservedCalls",
                            "Calls as trees of tensor facts; see the file for the tokens.")
      .def(nb::init<std::vector<std::string>, nb::dict>(), "order"_a, "dtypes"_a)
      .def("add", &ObservedCalls::add, "tokens"_a, "tensors"_a)
      .def(
          "discard", [](ObservedCalls& o, std::uint32_t call) { o.calls.discard(call); }, "call"_a)
      .def("__len__", [](const ObservedCalls& o) { return o.calls.size(); })
      .def(
          "infer", [](const ObservedCalls& o) { return infer(o.calls); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("slots_of", [](const ObservedCalls& o, const Inference& i,
                          std::uint32_t call) { return i.slot_of.at(o.calls.structure(call)); })
      .def("fill", [](const ObservedCalls& o, const Inference& i,
                      std::uint32_t call) { return fill(o.calls, i, sizes_of(o.calls, i, call)); })
      .def("fill_for",
           [](const ObservedCalls& o, const Inference& i, const std::vector<std::int32_t>& slots,
              nb::list tensors) { return fill(o.calls, i, sizes_at(i, slots, tensors)); });
}

}  // namespace fairlead::python
