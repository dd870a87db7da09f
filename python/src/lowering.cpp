// Bindings of the builder, for lowerings of one's own written in Python.
#include "fairlead/onnx/lowering.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>

#include "fairlead/base/error.h"

namespace nb = nanobind;

namespace fairlead::python {

using namespace nb::literals;
using onnx::Lowering;
using onnx::Val;

namespace {

// A tensor of the ONNX graph that is being built. `b` is the builder it belongs to.
struct Handle {
  Lowering* b = nullptr;
  Val v;
};

// The builder as a lowering sees it; emptied when the lowering returns, so that none outlives its
// graph.
struct Builder {
  Lowering* b = nullptr;
  Lowering& get() const {
    if (b == nullptr) {
      throw Error(ErrorCode::kInvalidInput,
                  "[lower] Expected a builder in use, got one whose lowering has returned.");
    }
    return *b;
  }
};

std::map<std::string, nb::object, std::less<>>& functions() {
  static auto* table =
      new std::map<std::string, nb::object, std::less<>>();  // outlives the interpreter
  return *table;
}

Dtype dtype_named(const std::string& name) {
  const auto dtype = parse_dtype(name);
  if (!dtype)
    throw Error(ErrorCode::kInvalidInput,
                "[lower] Expected a dtype like float32, got " + name + ".");
  return *dtype;
}

std::optional<Dtype> dtype_named(const std::optional<std::string>& name) {
  return name ? std::optional(dtype_named(*name)) : std::nullopt;
}

nb::object handle(Lowering& b, Val v) { return v.present() ? nb::cast(Handle{&b, v}) : nb::none(); }

nb::object size(Lowering& b, Expr e) {
  if (is_const(e)) return nb::int_(e->value);
  return nb::str(b.pool().to_string(e).c_str());
}

nb::list sizes(Lowering& b, const std::vector<Expr>& shape) {
  nb::list list;
  for (const Expr e : shape) list.append(size(b, e));
  return list;
}

Val array(Lowering& b, nb::ndarray<nb::numpy, nb::ro, nb::c_contig> a) {
  const auto bits = a.dtype().bits;
  std::string name;
  switch (static_cast<nb::dlpack::dtype_code>(a.dtype().code)) {
    case nb::dlpack::dtype_code::Bool:
      name = "bool";
      break;
    case nb::dlpack::dtype_code::Int:
      name = "int" + std::to_string(bits);
      break;
    case nb::dlpack::dtype_code::UInt:
      name = "uint" + std::to_string(bits);
      break;
    default:
      name = "float" + std::to_string(bits);
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(a.nbytes());
  if (!bytes->empty()) std::memcpy(bytes->data(), a.data(), bytes->size());
  onnx::TensorData data;
  data.dtype = dtype_named(name);
  for (std::size_t k = 0; k < a.ndim(); ++k)
    data.dims.push_back(static_cast<std::int64_t>(a.shape(k)));
  data.owned = bytes;
  return b.constant(std::move(data));
}

// A tensor, None for an input left out, a number (of the dtype of the first tensor), or whole
// numbers.
Val input(Lowering& b, nb::handle h, Dtype numbers) {
  if (h.is_none()) return {};
  if (nb::isinstance<Handle>(h)) return nb::cast<Handle>(h).v;
  if (nb::isinstance<nb::bool_>(h) || nb::isinstance<nb::int_>(h) ||
      nb::isinstance<nb::float_>(h)) {
    return b.scalar(nb::cast<double>(h), numbers);
  }
  if (nb::isinstance<nb::list>(h) || nb::isinstance<nb::tuple>(h)) {
    return b.ints(nb::cast<std::vector<std::int64_t>>(h));
  }
  return array(b, nb::cast<nb::ndarray<nb::numpy, nb::ro, nb::c_contig>>(h));
}

onnx::Attribute attribute(const std::string& name, nb::handle h) {
  if (nb::isinstance<nb::bool_>(h)) return onnx::attr(name, nb::cast<bool>(h));
  if (nb::isinstance<nb::int_>(h)) return onnx::attr(name, nb::cast<std::int64_t>(h));
  if (nb::isinstance<nb::float_>(h))
    return onnx::attr(name, static_cast<float>(nb::cast<double>(h)));
  if (nb::isinstance<nb::str>(h))
    return onnx::attr(name, std::string_view(nb::cast<std::string>(h)));
  const nb::sequence items = nb::cast<nb::sequence>(h);
  if (nb::len(items) > 0 && nb::isinstance<nb::float_>(items[0])) {
    return {name, nb::cast<std::vector<float>>(h)};
  }
  if (nb::len(items) > 0 && nb::isinstance<nb::str>(items[0])) {
    return {name, nb::cast<std::vector<std::string>>(h)};
  }
  return onnx::attr(name, nb::cast<std::vector<std::int64_t>>(h));
}

nb::object op(const Builder& self, const std::string& type, const nb::args& args,
              const nb::kwargs& kwargs) {
  Lowering& b = self.get();
  Dtype numbers = Dtype::kFloat32;
  for (const nb::handle h : args) {
    if (nb::isinstance<Handle>(h)) {
      numbers = b.dtype_of(nb::cast<Handle>(h).v);
      break;
    }
  }
  onnx::Inputs inputs;
  for (const nb::handle h : args) inputs.push_back(input(b, h, numbers));
  onnx::Attributes attributes;
  std::optional<Dtype> dtype;
  std::optional<std::vector<std::string>> dtypes;
  std::string domain;
  for (const auto& [key, value] : kwargs) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "dtype_") {
      dtype = dtype_named(nb::cast<std::string>(value));
    } else if (name == "dtypes_") {
      dtypes = nb::cast<std::vector<std::string>>(value);
    } else if (name == "domain_") {
      domain = nb::cast<std::string>(value);
    } else if (!value.is_none()) {
      attributes.push_back(attribute(name, value));
    }
  }
  if (!dtypes) return handle(b, b.op(type, inputs, std::move(attributes), dtype, domain));
  std::vector<Dtype> parsed;
  for (const std::string& name : *dtypes) parsed.push_back(dtype_named(name));
  nb::list list;
  for (const Val v : b.ops(type, inputs, parsed, std::move(attributes), domain))
    list.append(handle(b, v));
  return list;
}

// The lowering of every operator registered from Python: looks up its function by the operator's
// name.
void lower_in_python(Lowering& b) {
  nb::gil_scoped_acquire gil;
  const nb::object builder = nb::cast(Builder{&b});
  struct Empty {
    const nb::object& builder;
    ~Empty() { nb::cast<Builder&>(builder).b = nullptr; }
  } empty{builder};
  functions().at(b.node().op.str())(builder);
}

}  // namespace

void init_lowering(nb::module_& m) {
  using S = std::size_t;
  nb::class_<Handle>(m, "GraphTensor", "A tensor of the ONNX graph under construction.")
      .def_prop_ro("dtype",
                   [](const Handle& h) { return std::string(dtype_name(h.b->dtype_of(h.v))); });
  nb::class_<Builder>(m, "Builder",
                      "Builds the ONNX nodes of one operator; see docs/custom_operators.md.")
      .def_prop_ro("operator", [](const Builder& s) { return s.get().node().op.str(); })
      .def_prop_ro("opset", [](const Builder& s) { return s.get().opset(); })
      .def(
          "has", [](const Builder& s, S i) { return s.get().has(i); }, "i"_a)
      .def(
          "is_tensor", [](const Builder& s, S i) { return s.get().is_tensor(i); }, "i"_a)
      .def(
          "input",
          [](const Builder& s, S i, std::optional<std::string> dtype) {
            const auto d = dtype_named(dtype);
            return handle(s.get(), d ? s.get().in(i, *d) : s.get().in(i));
          },
          "i"_a, "dtype"_a = nb::none(), "Argument i as a tensor; a number becomes a 0-d one.",
          nb::sig("def input(self, i: int, dtype: str | None = None) -> typing.Any"))
      .def(
          "inputs",
          [](const Builder& s, S i) {
            nb::list list;
            for (const Val v : s.get().ins(i)) list.append(handle(s.get(), v));
            return list;
          },
          "i"_a, "A list of tensors.", nb::sig("def inputs(self, i: int) -> list[GraphTensor]"))
      .def(
          "dtype", [](const Builder& s, S i) { return std::string(dtype_name(s.get().dtype(i))); },
          "i"_a)
      .def(
          "rank", [](const Builder& s, S i) { return s.get().rank(i); }, "i"_a)
      .def(
          "shape", [](const Builder& s, S i) { return sizes(s.get(), s.get().shape(i)); }, "i"_a,
          "Sizes: ints, and texts where they vary.",
          nb::sig("def shape(self, i: int) -> list[int | str]"))
      .def(
          "shape_tensor",
          [](const Builder& s, S i) {
            return handle(s.get(), s.get().shape_tensor(s.get().shape(i)));
          },
          "i"_a, "The shape of argument i as an int64 tensor.",
          nb::sig("def shape_tensor(self, i: int) -> GraphTensor"))
      .def(
          "dim",
          [](const Builder& s, S i, int axis) {
            const auto& shape = s.get().shape(i);
            const auto at = axis < 0 ? axis + static_cast<int>(shape.size()) : axis;
            return handle(s.get(), s.get().dim(shape.at(static_cast<S>(at))));
          },
          "i"_a, "axis"_a, "One size of argument i as an int64 tensor of one element.",
          nb::sig("def dim(self, i: int, axis: int) -> GraphTensor"))
      .def(
          "integer", [](const Builder& s, S i) { return s.get().constant_int(i); }, "i"_a)
      .def(
          "integers",
          [](const Builder& s, S i) { return std::vector<std::int64_t>(s.get().constant_ints(i)); },
          "i"_a)
      .def(
          "number",
          [](const Builder& s, S i, double otherwise) { return s.get().number(i, otherwise); },
          "i"_a, "otherwise"_a = 0.0)
      .def(
          "flag", [](const Builder& s, S i, bool otherwise) { return s.get().flag(i, otherwise); },
          "i"_a, "otherwise"_a = false)
      .def(
          "text", [](const Builder& s, S i) { return std::string(s.get().text(i)); }, "i"_a)
      .def(
          "axis", [](const Builder& s, S i) { return s.get().axis(i); }, "i"_a,
          "Argument i as an axis of argument 0, made non-negative.")
      .def_prop_ro("result_count", [](const Builder& s) { return s.get().result_count(); })
      .def(
          "result_dtype",
          [](const Builder& s, S k) { return std::string(dtype_name(s.get().out_dtype(k))); },
          "k"_a = 0)
      .def(
          "result_shape",
          [](const Builder& s, S k) { return sizes(s.get(), s.get().out_shape(k)); }, "k"_a = 0,
          nb::sig("def result_shape(self, k: int = 0) -> list[int | str]"))
      .def(
          "result_shape_tensor",
          [](const Builder& s, S k) {
            return handle(s.get(), s.get().shape_tensor(s.get().out_shape(k)));
          },
          "k"_a = 0, nb::sig("def result_shape_tensor(self, k: int = 0) -> GraphTensor"))
      .def(
          "result", [](const Builder& s, const Handle& v, S k) { s.get().result(k, v.v); },
          "tensor"_a, "k"_a = 0, "Sets result k; it is cast to the dtype that was observed.",
          nb::sig("def result(self, tensor: GraphTensor, k: int = 0) -> None"))
      .def("op", &op, "type"_a, "inputs"_a, "attributes"_a,
           "Adds a node and gives its result. dtype_ says the result's dtype where it is not the "
           "first input's, "
           "dtypes_ asks for several results, domain_ names another operator set.",
           nb::sig("def op(self, type: str, *inputs: typing.Any, **attributes: typing.Any) -> "
                   "typing.Any"))
      .def(
          "constant",
          [](const Builder& s, nb::ndarray<nb::numpy, nb::ro, nb::c_contig> a) {
            return handle(s.get(), array(s.get(), a));
          },
          "array"_a,
          nb::sig("def constant(self, array: numpy.typing.NDArray[typing.Any]) -> GraphTensor"))
      .def(
          "scalar",
          [](const Builder& s, double value, const std::string& dtype) {
            return handle(s.get(), s.get().scalar(value, dtype_named(dtype)));
          },
          "value"_a, "dtype"_a,
          nb::sig("def scalar(self, value: float, dtype: str) -> GraphTensor"))
      .def(
          "ints",
          [](const Builder& s, const std::vector<std::int64_t>& values) {
            return handle(s.get(), s.get().ints(values));
          },
          "values"_a,
          nb::sig("def ints(self, values: collections.abc.Sequence[int]) -> GraphTensor"))
      .def(
          "cast",
          [](const Builder& s, const Handle& v, const std::string& dtype) {
            return handle(s.get(), s.get().cast(v.v, dtype_named(dtype)));
          },
          "tensor"_a, "dtype"_a,
          nb::sig("def cast(self, tensor: GraphTensor, dtype: str) -> GraphTensor"))
      .def(
          "reduce",
          [](const Builder& s, const std::string& type, const Handle& v,
             const std::vector<std::int64_t>& axes,
             bool keepdim) { return handle(s.get(), s.get().reduce(type, v.v, axes, keepdim)); },
          "type"_a, "tensor"_a, "axes"_a, "keepdim"_a = false,
          nb::sig("def reduce(self, type: str, tensor: GraphTensor, axes: "
                  "collections.abc.Sequence[int], keepdim: bool = False) -> GraphTensor"))
      .def(
          "unsupported", [](const Builder& s, const std::string& why) { s.get().unsupported(why); },
          "why"_a);
  m.def(
      "register_lowering",
      [](const std::string& name, nb::callable function) {
        functions()[name] = function;
        onnx::register_op({name, lower_in_python, "registered", ""});
      },
      "name"_a, "function"_a);
  m.def(
      "unregister_lowering",
      [](const std::string& name) {
        functions().erase(name);
        onnx::unregister_op(name);
      },
      "name"_a);
}

}  // namespace fairlead::python
