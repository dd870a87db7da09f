// Sizes as tensors, and the forms that many lowerings share.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/graph/places.h"
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// ---- sizes
// ------------------------------------------------------------------------------------------

Val Lowering::symbol(SymbolId id) {
  const SymbolSource& source = graph_.symbol_sources.at(id);
  FAIRLEAD_CHECK(source.value != kNoValue,
                 "symbol " + graph_.pool->symbols()[id].name + " comes from nowhere");
  const Val v = value(source.value);
  const SymbolKind kind = graph_.pool->symbols()[id].kind;
  if (kind == SymbolKind::kRead || kind == SymbolKind::kReadReal) {
    const Dtype dtype = kind == SymbolKind::kRead ? Dtype::kInt64 : Dtype::kFloat64;
    const Val flat = op("Reshape", {cast(v, dtype), ints({-1})});
    if (graph_.values[source.value].shape.empty()) return flat;
    return op("Gather", {flat, ints({source.axis})}, {attr("axis", 0)});
  }
  const Val size = op("Shape", {v}, {attr("start", source.axis), attr("end", source.axis + 1)});
  return source.divisor == 1 ? size : op("Div", {size, ints({source.divisor})});
}

Val Lowering::dim(Expr e) {
  ExprPool& p = pool();
  switch (e->kind) {
    case ExprKind::kConst:
      return ints({e->value});
    case ExprKind::kSymbol:
      return symbol(static_cast<SymbolId>(e->value));
    case ExprKind::kAdd: {
      // A negative term is subtracted.
      Val sum = dim(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k) {
        const Expr term = e->args[k];
        const bool minus = (is_const(term) || term->kind == ExprKind::kMul) && term->value < 0;
        sum = op(minus ? "Sub" : "Add", {sum, dim(minus ? p.neg(term) : term)});
      }
      return sum;
    }
    case ExprKind::kMul: {
      // -((-a)//k) is ceil division.
      if (e->value == -1 && e->args.size() == 1 && e->args[0]->kind == ExprKind::kFloorDiv &&
          is_const(e->args[0]->args[1])) {
        const Expr k = e->args[0]->args[1];
        const Expr a = p.neg(e->args[0]->args[0]);
        if (k->value > 0 && !p.may_be_negative(a)) {
          return op("Div", {dim(p.add(a, p.constant(k->value - 1))), dim(k)});
        }
      }
      Val result = dim(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k)
        result = op("Mul", {result, dim(e->args[k])});
      return e->value == 1 ? result : op("Mul", {result, ints({e->value})});
    }
    case ExprKind::kFloorDiv: {
      const Val a = dim(e->args[0]);
      const Val b = divisor(e->args[1]);
      if (!p.may_be_negative(e->args[0]) && !p.may_be_negative(e->args[1])) {
        return op("Div", {a, b});
      }
      // Div rounds towards zero; Mod has the divisor's sign.
      return op("Div", {op("Sub", {a, op("Mod", {a, b})}), b});
    }
    case ExprKind::kMod:
      return op("Mod", {dim(e->args[0]), divisor(e->args[1])});
    case ExprKind::kMax:
    case ExprKind::kMin: {
      Inputs parts;
      for (const Expr part : e->args) parts.push_back(dim(part));
      return op(e->kind == ExprKind::kMax ? "Max" : "Min", parts);
    }
    case ExprKind::kLess:
    case ExprKind::kSame: {
      const bool reals = p.is_real(e->args[0]) || p.is_real(e->args[1]);
      const auto side = [&](Expr part) { return reals ? real(p.to_real(part)) : dim(part); };
      const Val a = side(e->args[0]), b = side(e->args[1]);
      return cast(op(e->kind == ExprKind::kLess ? "Less" : "Equal", {a, b}), Dtype::kInt64);
    }
    case ExprKind::kWhere:
      if (p.is_real(e)) return real(e);
      return op("Where", {cast(dim(e->args[0]), Dtype::kBool), dim(e->args[1]), dim(e->args[2])});
    case ExprKind::kBitLength: {
      // How many powers of two are not above it: exact, where a logarithm would round.
      std::vector<std::int64_t> powers;
      for (int k = 0; k < 63; ++k) powers.push_back(std::int64_t{1} << k);
      const Val reached = op("GreaterOrEqual", {op("Abs", {dim(e->args[0])}), ints(powers)});
      return op("ReduceSum", {cast(reached, Dtype::kInt64), ints({0})}, {attr("keepdims", 1)});
    }
    case ExprKind::kPower2: {
      std::vector<std::int64_t> powers;
      for (int k = 0; k < 63; ++k) powers.push_back(std::int64_t{1} << k);
      const Val power = dim(e->args[0]);
      const Val found = op("Gather", {ints(powers), op("Max", {power, ints({0})})});
      return op("Where", {op("Less", {power, ints({0})}), ints({0}), found});
    }
    case ExprKind::kTrunc:
      return cast(real(e->args[0]), Dtype::kInt64);
    case ExprKind::kFloor:
      return cast(op("Floor", {real(e->args[0])}), Dtype::kInt64);
    case ExprKind::kCeil:
      return cast(op("Ceil", {real(e->args[0])}), Dtype::kInt64);
    case ExprKind::kRound:
      return cast(op("Round", {real(e->args[0])}), Dtype::kInt64);
    default:
      return real(e);
  }
}

// A divisor that may be 0 on the side of a choice that is not taken ends the process there.
Val Lowering::divisor(Expr e) {
  const Val b = dim(e);
  if (least_value(pool(), e) >= 1) return b;
  return op("Where", {op("Equal", {b, ints({0})}), ints({1}), b});
}

Val Lowering::real(Expr e) {
  const auto doubles = [&](double value) { return unsqueeze(scalar(value, Dtype::kFloat64), {0}); };
  const auto all = [&](const char* name) {
    Inputs parts;
    for (const Expr part : e->args) parts.push_back(real(part));
    return op(name, parts);
  };
  switch (e->kind) {
    case ExprKind::kReal:
      return doubles(std::bit_cast<double>(e->value));
    case ExprKind::kSymbol:
      return symbol(static_cast<SymbolId>(e->value));
    case ExprKind::kToReal:
      return cast(dim(e->args[0]), Dtype::kFloat64);
    case ExprKind::kRealAdd:
      return all("Add");
    case ExprKind::kRealSub:
      return all("Sub");
    case ExprKind::kRealMul:
      return all("Mul");
    case ExprKind::kRealDiv:
      return all("Div");
    case ExprKind::kRealPow:
      return all("Pow");
    case ExprKind::kSqrt:
      return all("Sqrt");
    case ExprKind::kLog:
      return all("Log");
    case ExprKind::kExp:
      return all("Exp");
    case ExprKind::kLog2: {
      // A power of two has a whole logarithm, which the quotient of two would miss by its rounding.
      const Val found = op("Div", {op("Log", {real(e->args[0])}), doubles(std::log(2.0))});
      const Val near = op("Round", {found});
      const Val apart = op("Abs", {op("Sub", {found, near})});
      return op("Where", {op("Less", {apart, doubles(1e-12)}), near, found});
    }
    case ExprKind::kWhere:
      return op("Where", {cast(dim(e->args[0]), Dtype::kBool), real(e->args[1]), real(e->args[2])});
    default:
      FAIRLEAD_CHECK(false, "unknown kind of expression");
  }
}

namespace {

// What PyTorch makes of a number that does not fit: the bits that do.
double wrapped(std::int64_t value, Dtype dtype) {
  if (!is_integer(dtype) || dtype_size(dtype) == 8) return static_cast<double>(value);
  const std::size_t bits = 8 * dtype_size(dtype);
  const std::int64_t range = std::int64_t{1} << bits;
  const std::int64_t low = ((value % range) + range) % range;
  const bool negative = dtype_kind(dtype) == DtypeKind::kInt && low >= range / 2;
  return static_cast<double>(negative ? low - range : low);
}

}  // namespace

Val Lowering::size_scalar(Expr e, Dtype dtype) {
  if (is_const(e)) {
    if (dtype != Dtype::kInt64) return scalar(wrapped(e->value, dtype), dtype);
    auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(e->value));
    std::memcpy(bytes->data(), &e->value, sizeof(e->value));
    TensorData data;
    data.dtype = dtype;
    data.owned = bytes;
    return constant(std::move(data));
  }
  return cast(op("Squeeze", {dim(e), ints({0})}), dtype);
}

Val Lowering::shape_tensor(std::span<const Expr> shape) {
  Inputs parts;
  std::vector<std::int64_t> run;
  const auto flush = [&] {
    if (!run.empty()) parts.push_back(ints(run));
    run.clear();
  };
  for (const Expr e : shape) {
    if (is_const(e)) {
      run.push_back(e->value);
    } else {
      flush();
      parts.push_back(dim(e));
    }
  }
  flush();
  if (parts.empty()) return ints({});
  return concat(parts, 0);
}

// ---- common forms
// -------------------------------------------------------------------------------------

Val Lowering::cast(Val v, Dtype dtype) {
  if (!v.present() || dtype_of(v) == dtype) return v;
  return op("Cast", {v}, {attr("to", onnx_code(dtype))});
}

// Whether a size is 0 at some sizes of the inputs: a count, what a slice leaves. What windows leave
// (n//2) is not: eager refuses none of them.
static bool may_be_none(const ExprPool& pool, Expr e) {
  if (e->kind == ExprKind::kFloorDiv || e->kind == ExprKind::kConst) return false;
  if (e->kind != ExprKind::kMul) return least_value(pool, e) < 1;
  return std::any_of(e->args.begin(), e->args.end(), [&](Expr f) { return may_be_none(pool, f); });
}

Val Lowering::reshape(Val v, const Shape& from, const Shape& to) {
  if (from == to) return v;
  // 0 keeps the size at the same place, and one size may be left to be inferred. Neither is right
  // for an empty tensor when a constant size is 0, which stays a plain shape. A size that may be 0
  // is the one that is inferred: none follows from the others where their product is 0.
  std::vector<std::int64_t> target;
  int open = 0;
  bool zero = false;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (is_const(to[k])) {
      zero = zero || to[k]->value == 0;
      target.push_back(to[k]->value);
    } else if (k < from.size() && from[k] == to[k]) {
      target.push_back(0);
    } else {
      target.push_back(-1);
      ++open;
    }
  }
  std::vector<std::size_t> none;
  for (std::size_t k = 0; k < to.size() && open > 0; ++k) {
    if (may_be_none(pool(), to[k])) none.push_back(k);
  }
  if (none.size() == 1 && target[none[0]] == 0) {
    target[none[0]] = -1;
    ++open;
  }
  zero = zero || none.size() > 1;
  if (open <= 1 && !zero) return op("Reshape", {v, ints(target)});
  if (!zero) {
    // Among several open sizes the costliest to compute is inferred.
    std::size_t dearest = none.empty() ? 0 : none[0];
    std::size_t cost = 0;
    for (std::size_t k = 0; k < to.size() && none.empty(); ++k) {
      if (target[k] != -1) continue;
      const std::size_t size = pool().to_string(to[k]).size();
      if (size >= cost) {
        cost = size;
        dearest = k;
      }
    }
    Shape parts;
    for (std::size_t k = 0; k < to.size(); ++k) {
      parts.push_back(k == dearest || target[k] != -1 ? expr(target[k]) : to[k]);
    }
    return op("Reshape", {v, shape_tensor(parts)});
  }
  return op("Reshape", {v, shape_tensor(to)}, {attr("allowzero", 1)});
}

Val Lowering::expand(Val v, const Shape& from, const Shape& to) {
  if (from == to) return v;
  // Expand broadcasts both ways: a 1 keeps the size that is there.
  Shape target(to.size(), expr(1));
  const std::size_t shift = to.size() - from.size();
  bool changes = shift > 0;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (k >= shift && from[k - shift] == to[k]) continue;
    target[k] = to[k];
    changes = changes || !is_const(to[k], 1);
  }
  return changes ? op("Expand", {v, shape_tensor(target)}) : v;
}

Val Lowering::transpose(Val v, std::vector<std::int64_t> perm) {
  bool identity = true;
  for (std::size_t k = 0; k < perm.size(); ++k)
    identity = identity && perm[k] == static_cast<std::int64_t>(k);
  return identity ? v : op("Transpose", {v}, {attr("perm", std::move(perm))});
}

Val Lowering::unsqueeze(Val v, std::vector<std::int64_t> axes) {
  return op("Unsqueeze", {v, ints(axes)});
}

Val Lowering::squeeze(Val v, std::vector<std::int64_t> axes) {
  return op("Squeeze", {v, ints(axes)});
}

Val Lowering::slice(Val v, std::int64_t axis, Val start, Val end, std::int64_t step) {
  return op("Slice", {v, start, end, ints({axis}), ints({step})});
}

Val Lowering::concat(const Inputs& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : op("Concat", parts, {attr("axis", axis)});
}

Val Lowering::reduce(std::string_view type, Val v, std::vector<std::int64_t> axes, bool keepdim) {
  // From opset 18 on every reduction takes its axes as an input.
  return op(type, {v, ints(axes)}, {attr("keepdims", keepdim)});
}

Val Lowering::transposed_weight(std::size_t i) {
  const Arg& a = arg(i);
  const Constant* c = a.kind == ArgKind::kValue ? graph_.constant(a.value) : nullptr;
  if (c != nullptr && c->dims.size() == 2 && !plain_use_[c->data]) {
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

// ---- values and the model
// -----------------------------------------------------------------------------

Lowering::Lowering(const fairlead::Graph& graph, const LowerOptions& options)
    : graph_(graph),
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
  for (const std::string& name : graph.output_names) names_[name] = 1;  // reserved for the outputs
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
    const bool linear = node.op == "aten.linear.default";
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
                    std::to_string(id) + " (" + (node_ == nullptr ? "an output" : node_->op) +
                    ").");
  }
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

// What was first made inside (parts of a complex value, a joined one) is not seen outside.
Inputs Lowering::inline_body(const Body& body, const Inputs& inputs) {
  const fairlead::Node* outer = node_;
  const auto values = values_;
  const auto parts = parts_;
  for (std::size_t k = 0; k < body.inputs.size(); ++k) values_[body.inputs[k]] = inputs.at(k);
  for (const fairlead::Node& node : body.nodes) run(node, find_op(node.op)->lower);
  node_ = outer;
  Inputs results;
  for (const ValueId id : body.outputs) results.push_back(value(id));
  values_ = values;
  parts_ = parts;
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
  std::vector<Node> kept;
  for (auto it = model_.graph.nodes.rbegin(); it != model_.graph.nodes.rend(); ++it) {
    if (std::none_of(it->outputs.begin(), it->outputs.end(), [&](TensorId id) { return used[id]; }))
      continue;
    for (const TensorId id : it->inputs) {
      if (id != kAbsent) used[id] = true;
    }
    for (const Attribute& a : it->attributes) {
      if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&a.value)) use_all(**inner, used);
    }
    kept.push_back(std::move(*it));
  }
  std::reverse(kept.begin(), kept.end());
  model_.graph.nodes = std::move(kept);
  std::erase_if(model_.graph.initializers, [&](const Initializer& i) { return !used[i.tensor]; });
}

}  // namespace fairlead::onnx
