// Control flow: branches become If, loops over a condition Loop, loops over a dimension Scan.
//
// The bodies of a node read values from outside by themselves, so only what changes from step to
// step is an input of the ONNX body.
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// A condition: a tensor of one element, or a flag that sizes decide (0 or 1).
Val condition(Lowering& b, Val v, std::size_t rank) {
  v = b.cast(v, Dtype::kBool);
  return rank == 0 ? v : b.op("Reshape", {v, b.ints({})});
}

Inputs cast_all(Lowering& b, Inputs values, const std::vector<Dtype>& dtypes) {
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = b.cast(values[k], dtypes.at(k));
  return values;
}

std::vector<Dtype> result_dtypes(Lowering& b) {
  std::vector<Dtype> dtypes;
  for (const ValueId id : b.node().outputs) {
    if (id == kNoValue) b.unsupported("expected only tensors as results");
    dtypes.push_back(part_dtype(b.graph().values[id].dtype));
  }
  return dtypes;
}

void set_results(Lowering& b, const Inputs& made) {
  for (std::size_t k = 0; k < made.size(); ++k) b.result(k, made[k]);
}

Attribute graph_attr(std::string_view name, std::shared_ptr<Graph> graph) {
  return {std::string(name), std::move(graph)};
}

// higher_order.cond(pred) with the bodies of both branches
void lower_cond(Lowering& b) {
  const std::vector<Dtype> dtypes = result_dtypes(b);
  const Val pred = condition(b, b.in(0), b.shape(0).size());
  const auto branch = [&](std::size_t k) {
    return b.body({}, [&](const Inputs&) {
      return cast_all(b, b.inline_body(b.node().bodies.at(k), {}), dtypes);
    });
  };
  const auto then_branch = branch(0);
  const auto else_branch = branch(1);
  set_results(
      b, b.ops("If", {pred}, dtypes,
               {graph_attr("then_branch", then_branch), graph_attr("else_branch", else_branch)}));
}

// higher_order.while_loop(carried) with the bodies of the condition and of the step
void lower_while_loop(Lowering& b) {
  const std::vector<Dtype> dtypes = result_dtypes(b);
  const Body& test = b.node().bodies.at(0);
  const Body& step = b.node().bodies.at(1);
  const auto goes_on = [&](const Inputs& carried) {
    const Inputs answer = b.inline_body(test, carried);
    return condition(b, answer.at(0), b.graph().values[test.outputs.at(0)].shape.size());
  };
  const Inputs start = cast_all(b, b.ins(0), dtypes);
  std::vector<TensorInfo> parameters = {{"", Dtype::kInt64, Shape{}}, {"", Dtype::kBool, Shape{}}};
  for (const Dtype d : dtypes) parameters.push_back({"", d, std::nullopt});
  const auto body = b.body(std::move(parameters), [&](const Inputs& in) {
    const Inputs carried = cast_all(b, b.inline_body(step, {in.begin() + 2, in.end()}), dtypes);
    Inputs out = {goes_on(carried)};
    out.insert(out.end(), carried.begin(), carried.end());
    return out;
  });
  Inputs inputs = {Val{}, goes_on(start)};
  inputs.insert(inputs.end(), start.begin(), start.end());
  set_results(b, b.ops("Loop", inputs, dtypes, {graph_attr("body", body)}));
}

// The step of a scan: states first, then one slice of each scanned tensor.
void lower_over(Lowering& b, const Inputs& states, const Inputs& scanned) {
  const std::vector<Dtype> dtypes = result_dtypes(b);
  const Body& step = b.node().bodies.at(0);
  std::vector<TensorInfo> parameters;
  Inputs inputs = states;
  for (std::size_t k = 0; k < states.size(); ++k) inputs[k] = b.cast(states[k], dtypes.at(k));
  inputs.insert(inputs.end(), scanned.begin(), scanned.end());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& value = b.graph().values[step.inputs.at(k)];
    Shape shape = value.shape;
    if (is_complex(value.dtype)) shape.push_back(b.expr(2));
    parameters.push_back({"", b.dtype_of(inputs[k]), std::move(shape)});
  }
  const auto body = b.body(std::move(parameters), [&](const Inputs& in) {
    return cast_all(b, b.inline_body(step, in), dtypes);
  });
  const auto count = static_cast<std::int64_t>(scanned.size());
  set_results(
      b, b.ops("Scan", inputs, dtypes, {attr("num_scan_inputs", count), graph_attr("body", body)}));
}

// higher_order.scan(init, xs), along the first dimension
void lower_scan(Lowering& b) { lower_over(b, b.ins(0), b.ins(1)); }

// higher_order.map_impl(xs), along the first dimension
void lower_map(Lowering& b) { lower_over(b, {}, b.ins(0)); }

// fairlead.require(holds, number, words): the number, where sizes hold; see graph/join.h
void lower_require(Lowering& b) {
  const Val zero = b.zero_where(b.integer(0), std::string(b.text(2)));
  b.result(b.op("Add", {b.size_scalar(b.integer(1)), zero}));
}

// fairlead.loop(steps, carried): the body's parameters are the number of the step and what is
// carried; what it collects comes behind that, joined along a new first dimension
void lower_loop(Lowering& b) {
  const std::vector<Dtype> dtypes = result_dtypes(b);
  const Body& step = b.node().bodies.at(0);
  Inputs inputs = {b.size_scalar(b.integer(0)), b.scalar(1, Dtype::kBool)};
  std::vector<TensorInfo> parameters = {{"", Dtype::kInt64, Shape{}}, {"", Dtype::kBool, Shape{}}};
  for (const Val v : b.ins(1)) {
    const Dtype d = dtypes.at(inputs.size() - 2);
    inputs.push_back(b.cast(v, d));
    parameters.push_back({"", d, std::nullopt});
  }
  const auto body = b.body(std::move(parameters), [&](const Inputs& in) {
    Inputs values = {in[0]};
    values.insert(values.end(), in.begin() + 2, in.end());
    Inputs out = {in[1]};
    for (const Val v : cast_all(b, b.inline_body(step, values), dtypes)) out.push_back(v);
    return out;
  });
  set_results(b, b.ops("Loop", inputs, dtypes, {graph_attr("body", body)}));
}

// clang-format off
constexpr OpRow kControlOps[] = {
    {"fairlead.loop",           lower_loop,       "Loop", "a Python loop whose number of steps follows from a size"},
    {"fairlead.require",        lower_require,    "Gather, Add", "sizes only"},
    {"higher_order.cond",       lower_cond,       "If",   ""},
    {"higher_order.map_impl",   lower_map,        "Scan", ""},
    {"higher_order.scan",       lower_scan,       "Scan", ""},
    {"higher_order.while_loop", lower_while_loop, "Loop", ""},
};
// clang-format on

}  // namespace

std::span<const OpRow> control_ops() { return kControlOps; }

}  // namespace fairlead::onnx
