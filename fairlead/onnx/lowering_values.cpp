// Values of the graph as tensors of the model, node by node.
#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

Val Lowering::in(std::size_t i) {
  const Arg& a = arg(i);
  if (a.kind == ArgKind::kNone) return {};
  if (a.kind == ArgKind::kValue) return value(a.value);
  if (a.kind == ArgKind::kFloat) return arg_number(a, Dtype::kFloat32);
  if (a.kind == ArgKind::kBool) return arg_number(a, Dtype::kBool);
  return arg_number(a, Dtype::kInt64);
}

Val Lowering::in(std::size_t i, Dtype dtype) {
  const Arg& a = arg(i);
  if (a.kind == ArgKind::kNone) return {};
  return a.kind == ArgKind::kValue ? cast(value(a.value), dtype) : arg_number(a, dtype);
}

Inputs Lowering::ins(std::size_t i) {
  Inputs list;
  for (const Arg& item : arg(i).items) {
    list.push_back(item.kind == ArgKind::kValue ? value(item.value) : Val{});
  }
  return list;
}

bool Lowering::wants_order_of_equals() {
  if (!options_.order_of_equals) ++model_.plain_orders;
  return options_.order_of_equals;
}

bool Lowering::result_used(std::size_t k) const {
  return k < node_->outputs.size() && node_->outputs[k] != kNoValue && used_[node_->outputs[k]];
}

Val Lowering::transposed_weight(std::size_t i) {
  const Arg& a = arg(i);
  const Constant* c = a.kind == ArgKind::kValue ? graph_.constant(a.value) : nullptr;
  if (c != nullptr && c->dims.size() == 2 && !plain_use_[c->data]) {
    check_bytes(*c);
    TensorData data;
    data.dtype = graph_.values[a.value].dtype;
    data.dims = {c->dims[1], c->dims[0]};
    const std::vector<std::int64_t> strides =
        c->strides.empty() ? std::vector<std::int64_t>{c->dims[1], 1} : c->strides;
    data.strides = {strides[1], strides[0]};
    data.data = c->data;
    data.owned = c->owned;
    return constant(std::move(data), graph_.values[a.value].name);
  }
  return transpose(in(i), {1, 0});
}

Lowering::Lowering(const fairlead::Graph& graph, const LowerOptions& options)
    : Sizes(graph, options.runtime),
      options_(options),
      values_(graph.values.size()),
      used_(graph.values.size(), false) {
  model_.pool = graph.pool;
  model_.opset = options.opset;
  model_.graph.name = "model";
  for (const ValueId id : graph.inputs) {
    const fairlead::Value& v = graph.values[id];
    const TensorId tensor = new_tensor(part_dtype(v.dtype), unique(v.name));
    model_.tensors[tensor].shape = v.shape;
    if (is_complex(v.dtype)) model_.tensors[tensor].shape->push_back(expr(2));
    model_.graph.inputs.push_back(tensor);
    values_[id] = {tensor};
  }
  for (const std::string& name : graph.output_names) names_.insert(name_hash(name));  // theirs
  for_each_node(graph.nodes, [&](const fairlead::Node& node) {
    for (const Arg& a : node.args) {
      if (a.kind == ArgKind::kValue) used_[a.value] = true;
      for (const Arg& item : a.items) {
        if (item.kind == ArgKind::kValue) used_[item.value] = true;
      }
    }
    for (const Body& body : node.bodies) {
      for (const ValueId id : body.outputs) used_[id] = true;
    }
  });
  for (const ValueId id : graph.outputs) used_[id] = true;
  // A value may be there only to be counted or read; an input whose sizes are read is not used.
  for (std::size_t k = 0; k < graph.symbol_sources.size(); ++k) {
    const ValueId id = graph.symbol_sources[k].value;
    if (id != kNoValue && graph.pool->symbols()[k].kind != SymbolKind::kSize) used_[id] = true;
  }
  count_weight_uses();
  find_logarithms();
  find_shown();
}

// A weight that is read in its own orientation too (an embedding tied to the head) is stored once
// and transposed by a node; one that is only multiplied by is stored transposed.
void Lowering::count_weight_uses() {
  for (const Constant& c : graph_.constants) {
    plain_use_.emplace(c.data, options_.stored && options_.stored(c.data));
  }
  const auto mark = [&](const Arg& a) {
    if (a.kind != ArgKind::kValue) return;
    if (const Constant* c = graph_.constant(a.value)) plain_use_[c->data] = true;
  };
  for_each_node(graph_.nodes, [&](const fairlead::Node& node) {
    const bool linear = node.op == Op::linear;
    for (std::size_t k = 0; k < node.args.size(); ++k) {
      if (linear && k == 1) continue;
      mark(node.args[k]);
      for (const Arg& item : node.args[k].items) mark(item);
    }
    for (const Body& body : node.bodies) {
      for (const ValueId id : body.outputs) mark(value_arg(id));
    }
  });
  for (const ValueId id : graph_.outputs) {
    if (const Constant* c = graph_.constant(id)) plain_use_[c->data] = true;
  }
}

namespace {

// Those that tell a number close to 0, or to 1, from another one as close.
bool is_logarithm(const OpName& op) {
  constexpr Op kThese[] = {Op::binary_cross_entropy,
                           Op::log,
                           Op::log10,
                           Op::log1p,
                           Op::log2,
                           Op::logit,
                           Op::xlogy_Tensor,
                           Op::xlogy_Scalar_Self};
  return std::any_of(std::begin(kThese), std::end(kThese), [&](Op one) { return op == one; });
}

std::ptrdiff_t count_values(const fairlead::Node& node) {
  return std::count_if(node.args.begin(), node.args.end(),
                       [](const Arg& a) { return a.kind == ArgKind::kValue; });
}

}  // namespace

// Backwards, so that each node is looked at once: nodes stand behind what they use.
void Lowering::find_logarithms() {
  in_logarithm_.assign(graph_.values.size(), false);
  std::vector<const fairlead::Node*> nodes;
  for_each_node(graph_.nodes, [&](const fairlead::Node& node) { nodes.push_back(&node); });
  const auto mark = [&](const fairlead::Node& node) {
    for (const Arg& a : node.args) {
      if (a.kind == ArgKind::kValue) in_logarithm_[a.value] = true;
    }
  };
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const fairlead::Node& node = **it;
    const auto in_one = [&](ValueId id) { return id != kNoValue && in_logarithm_[id]; };
    // What has one tensor moves it, or adds it up.
    const bool passed_on = (node.op.has(Trait::kPointwise) || count_values(node) == 1) &&
                           std::any_of(node.outputs.begin(), node.outputs.end(), in_one);
    if (passed_on || is_logarithm(node.op)) mark(node);
  }
}

// Backwards from the outputs. What has several tensors and gives floats takes its integers for
// places, unless it computes with them element by element.
void Lowering::find_shown() {
  shown_.assign(graph_.values.size(), false);
  for (const ValueId id : graph_.outputs) shown_[id] = true;
  std::vector<const fairlead::Node*> nodes;
  for_each_node(graph_.nodes, [&](const fairlead::Node& node) {
    nodes.push_back(&node);
    for (const Body& body : node.bodies) {  // what goes on there is not followed
      for (const ValueId id : body.outputs) shown_[id] = true;
    }
  });
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const fairlead::Node& node = **it;
    bool any = !node.bodies.empty(), floats = true;
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      any = any || shown_[id];
      floats = floats && is_float(graph_.values[id].dtype);
    }
    if (!any) continue;
    const bool places =
        floats && node.bodies.empty() && !node.op.has(Trait::kPointwise) && count_values(node) > 1;
    const auto mark = [&](const Arg& a, bool listed) {
      if (a.kind != ArgKind::kValue) return;
      const bool place = (places || (floats && listed)) && !is_float(graph_.values[a.value].dtype);
      if (!place) shown_[a.value] = true;
    };
    for (const Arg& a : node.args) {
      mark(a, false);
      for (const Arg& item : a.items) mark(item, node.op.has(Trait::kIndexes));
    }
  }
}

bool Lowering::result_shown(std::size_t k) const {
  return k < node_->outputs.size() && node_->outputs[k] != kNoValue && shown_[node_->outputs[k]];
}

bool Lowering::result_in_logarithm() const {
  return !node_->outputs.empty() && in_logarithm_[node_->outputs[0]];
}

void Lowering::check_bytes(const Constant& c) {
  const bool empty = std::find(c.dims.begin(), c.dims.end(), 0) != c.dims.end();
  if (c.data != nullptr || c.owned != nullptr || empty) return;
  throw Error(ErrorCode::kInvalidInput,
              "[lower] Expected the bytes of constant %" + std::to_string(c.value) +
                  ", got none. A graph that was read from text has no weights: set them first.");
}

Val Lowering::value(ValueId id) {
  if (is_complex(graph_.values[id].dtype)) {
    if (part_ >= 0) return part_of(id, part_);
    if (!values_[id].present()) {
      const Val re = part_of(id, 0), im = part_of(id, 1);
      values_[id] = concat({unsqueeze(re, {-1}), unsqueeze(im, {-1})}, -1);
    }
    return values_[id];
  }
  Val& v = values_[id];
  if (v.present()) return v;
  const Constant* c = graph_.constant(id);
  // A size that is read from a tensor of a body which has ended.
  if (c == nullptr) {
    throw Error(ErrorCode::kInvalidInput,
                "[lower] Expected a value that is made before it is read, got %" +
                    std::to_string(id) + " (" + (node_ == nullptr ? "an output" : node_->op.str()) +
                    ").");
  }
  check_bytes(*c);
  TensorData data;
  data.dtype = graph_.values[id].dtype;
  data.dims = c->dims;
  data.strides = c->strides;
  data.data = c->data;
  data.owned = c->owned;
  v = constant(std::move(data), graph_.values[id].name);
  return v;
}

void Lowering::result(std::size_t k, Val v) {
  const ValueId id = node_->outputs.at(k);
  if (id == kNoValue) return;
  const fairlead::Value& observed = graph_.values[id];
  v = cast(v, part_dtype(observed.dtype));
  if (part_ >= 0 && is_complex(observed.dtype)) {
    parts_[id][static_cast<std::size_t>(part_)] = v;
    return;
  }
  values_[id] = v;
  TensorInfo& info = model_.tensors[v.id];
  if (!info.shape && !is_complex(observed.dtype) && !initializer_of_.contains(v.id)) {
    info.shape = observed.shape;
  }
}

namespace {

bool touches_complex(const fairlead::Node& node, const fairlead::Graph& graph) {
  const auto complex = [&](ValueId id) {
    return id != kNoValue && is_complex(graph.values[id].dtype);
  };
  const auto argument = [&](const Arg& a) {
    if (a.kind == ArgKind::kValue) return complex(a.value);
    return std::any_of(a.items.begin(), a.items.end(), [&](const Arg& item) {
      return item.kind == ArgKind::kValue && complex(item.value);
    });
  };
  return std::any_of(node.outputs.begin(), node.outputs.end(), complex) ||
         std::any_of(node.args.begin(), node.args.end(), argument);
}

}  // namespace

// What was first made inside (parts of a complex value, a joined one) is not seen outside. Nor is the
// shape that a tensor from outside has at the sizes of one branch: runtimes plan memory by it.
Inputs Lowering::inline_body(const Body& body, const Inputs& inputs) {
  const fairlead::Node* outer = node_;
  const auto values = values_;
  const auto parts = parts_;
  std::vector<TensorId> unshaped;
  for (const Val& v : values) {
    if (v.present() && !model_.tensors[v.id].shape) unshaped.push_back(v.id);
  }
  for (std::size_t k = 0; k < body.inputs.size(); ++k) values_[body.inputs[k]] = inputs.at(k);
  for (const fairlead::Node& node : body.nodes) run(node, find_op(node.op)->lower);
  node_ = outer;
  Inputs results;
  for (const ValueId id : body.outputs) results.push_back(value(id));
  values_ = values;
  parts_ = parts;
  for (const TensorId id : unshaped) model_.tensors[id].shape.reset();
  return results;
}

void Lowering::run(const fairlead::Node& node, LowerFn lower) {
  node_ = &node;
  const auto misfit = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidInput, "[lower] " + node.op + ": " + why + " (in " +
                                               std::string(node.module) + " at " +
                                               std::string(node.source) + ").");
  };
  try {
    touches_complex(node, graph_) ? lower_complex(*this, lower) : lower(*this);
  } catch (const LookupError&) {
    throw misfit("expected arguments and results that fit each other, got others");
  } catch (const std::bad_alloc&) {
    throw misfit("expected sizes that fit into memory, got larger ones");
  } catch (const std::logic_error&) {
    throw misfit("expected arguments and results that fit each other, got others");
  }
  for (const ValueId id : node.outputs) {
    if (id == kNoValue || !used_[id] || values_[id].present() || parts_.contains(id)) continue;
    unsupported("expected the results that it has, got " + std::to_string(node.outputs.size()));
  }
}

Model Lowering::finish() {
  node_ = nullptr;
  std::vector<bool> taken(model_.tensors.size(), false);
  for (const TensorId id : model_.graph.inputs) taken[id] = true;
  for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
    Val v = value(graph_.outputs[k]);
    taken.resize(model_.tensors.size(), false);
    if (taken[v.id] || initializer_of_.contains(v.id)) {
      v = fresh_op("Identity", {v}, {}, dtype_of(v));
      taken.resize(model_.tensors.size(), false);
    }
    taken[v.id] = true;
    model_.tensors[v.id].name = graph_.output_names[k];
    model_.tensors[v.id].shape = graph_.values[graph_.outputs[k]].shape;
    if (is_complex(graph_.values[graph_.outputs[k]].dtype))
      model_.tensors[v.id].shape->push_back(expr(2));
    model_.graph.outputs.push_back(v.id);
  }
  prune();
  return std::move(model_);
}

namespace {

void use_all(const Graph& graph, std::vector<bool>& used) {
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.inputs) {
      if (id != kAbsent) used[id] = true;
    }
    for (const Attribute& a : node.attributes) {
      if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&a.value)) use_all(**inner, used);
    }
  }
  for (const TensorId id : graph.outputs) used[id] = true;
}

}  // namespace

// A lowering may emit more than its results need: nodes and initializers that nothing reads go.
void Lowering::prune() {
  std::vector<bool> used(model_.tensors.size(), false);
  for (const TensorId id : model_.graph.outputs) used[id] = true;
  std::vector<bool> kept(model_.graph.nodes.size(), false);
  for (auto it = model_.graph.nodes.rbegin(); it != model_.graph.nodes.rend(); ++it) {
    if (std::none_of(it->outputs.begin(), it->outputs.end(), [&](TensorId id) { return used[id]; }))
      continue;
    kept[static_cast<std::size_t>(model_.graph.nodes.rend() - it) - 1] = true;
    for (const TensorId id : it->inputs) {
      if (id != kAbsent) used[id] = true;
    }
    for (const Attribute& a : it->attributes) {
      if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&a.value)) use_all(**inner, used);
    }
    // Operators of ONNX Runtime have results that some kernels do not make.
    if (!it->domain.empty()) {
      for (std::size_t k = 1; k + 1 < it->outputs.size(); ++k) {
        if (!used[it->outputs[k]] && used[it->outputs.back()]) it->outputs[k] = kAbsent;
      }
    }
  }
  std::size_t number = 0;
  std::erase_if(model_.graph.nodes, [&](const Node&) { return !kept[number++]; });
  std::erase_if(model_.graph.initializers, [&](const Initializer& i) { return !used[i.tensor]; });
}

}  // namespace fairlead::onnx
