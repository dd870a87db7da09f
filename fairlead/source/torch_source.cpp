// Statements and expressions.
//
// Rules
//  1. A size that is a dimension of a value made before is read from that value: torch then has its
//     own expression for it, and need not prove that ours is the same.
//  2. What inputs have in common (one symbol in two places, sums, multiples) is stated by
//     torch._check at the top.
//  3. view is written as reshape: memory may lie differently where writes became functional.
#include "fairlead/source/torch_source.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "fairlead/base/error.h"
#include "fairlead/source/torch_source_impl.h"

namespace fairlead {
namespace {

// Operators under the name that is called: rule 3.
OpName called(const OpName& op) { return op.has(Trait::kViewsMemory) ? OpName(Op::reshape) : op; }

// How many arguments of a node its operator takes; the recorder adds strides to as_strided, and
// reshape takes two.
std::size_t taken(const OpName& op, std::size_t given) {
  return op == Op::reshape ? std::min<std::size_t>(given, 2) : given;
}

// Whether argument `k` holds indices, among which bytes are masks.
bool takes_masks(const OpName& op, std::size_t k) { return k == 1 && op.has(Trait::kIndexes); }

std::string python_float(double number) {
  if (std::isnan(number)) return "float('nan')";
  if (std::isinf(number)) return number > 0 ? "float('inf')" : "float('-inf')";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string python_string(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "'";
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

std::string numbered(const char* stem, std::size_t number) { return stem + std::to_string(number); }

}  // namespace

std::vector<std::string> operators_of(const Graph& graph) {
  std::vector<std::string> names;
  std::unordered_map<std::string, bool> seen;
  const auto add = [&](std::string_view op) {
    if (seen.emplace(op, true).second) names.emplace_back(op);
  };
  for (const Node& node : graph.nodes) {
    if (node.op == Op::fairlead_tensor || node.op.has(Trait::kIdentity)) continue;
    add(called(node.op));
  }
  return names;
}

TorchSource torch_source(const Graph& graph, const TorchOperators& operators,
                         const std::vector<ValueId>& targets) {
  return TorchWriter(graph, operators, targets).write();
}

TorchWriter::TorchWriter(const Graph& graph, const TorchOperators& operators,
                         const std::vector<ValueId>& targets)
    : graph_(graph),
      pool_(*graph.pool),
      operators_(operators),
      targets_(targets),
      is_size_(graph.pool->symbols().size(), false) {
  for (const std::string& name : operators_of(graph)) numbers_.emplace(name, numbers_.size());
  for (std::size_t id = 0; id < graph.symbol_sources.size(); ++id) {
    const ValueId source = graph.symbol_sources[id].value;
    if (source != kNoValue) born_[source].push_back(static_cast<SymbolId>(id));
  }
  for (const Value& value : graph.values) {
    for (const Expr e : value.shape) {
      if (e->kind == ExprKind::kSymbol) is_size_[static_cast<std::size_t>(e->value)] = true;
    }
  }
}

TorchSource TorchWriter::write() {
  add_inputs();
  add_constants();
  for (const Node& node : graph_.nodes) add_node(node);
  add_writes();
  std::vector<std::string> outputs;
  for (std::size_t k = 0; k < graph_.output_names.size(); ++k) {
    outputs.push_back(names_.at(graph_.outputs[k]));
  }
  line("return [" + joined(outputs, ", ") + "]");
  std::vector<std::string> held;
  for (std::size_t k = 0; k < source_.held.size(); ++k) held.push_back(numbered("c", k));
  source_.text = "def forward(inputs, held):\n    [" + joined(held, ", ") + "] = held\n" + text_;
  return std::move(source_);
}

void TorchWriter::line(std::string_view text) {
  text_ += "    ";
  text_ += text;
  text_ += '\n';
}

void TorchWriter::add_inputs() {
  std::vector<std::string> inputs;
  for (std::size_t k = 0; k < graph_.inputs.size(); ++k) {
    inputs.push_back(numbered("i", k));
    names_[graph_.inputs[k]] = inputs.back();
  }
  line("[" + joined(inputs, ", ") + "] = inputs");
  for (const ValueId v : graph_.inputs) {
    const auto born = born_.find(v);
    if (born == born_.end()) continue;
    for (const SymbolId id : born->second) {
      if (pool_.symbols()[id].kind == SymbolKind::kSize) add_symbol(id);
    }
  }
  for (const ValueId v : graph_.inputs) {
    const std::vector<Expr>& shape = graph_.values[v].shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const Expr e = shape[axis];
      if (is_const(e)) continue;
      const std::string here = names_[v] + ".size(" + std::to_string(axis) + ")";
      bool is_source = false;
      if (e->kind == ExprKind::kSymbol) {
        const SymbolSource& source = graph_.symbol_sources[static_cast<std::size_t>(e->value)];
        is_source = source.value == v && source.axis == static_cast<int>(axis);
      }
      if (!is_source) line("torch._check(" + here + " == " + operation(e) + ")");
    }
  }
  for (const ValueId v : graph_.inputs) made(v);
}

void TorchWriter::add_constants() {
  // Only what is used: the graph also keeps constants that folding made superfluous.
  std::vector<bool> used(graph_.values.size(), false);
  const auto use = [&](const auto& self, const Arg& arg) -> void {
    if (arg.value != kNoValue) used[static_cast<std::size_t>(arg.value)] = true;
    for (const Arg& item : arg.items) self(self, item);
  };
  for (const Node& node : graph_.nodes) {
    for (const Arg& arg : node.args) use(use, arg);
  }
  for (const ValueId v : graph_.outputs) used[static_cast<std::size_t>(v)] = true;
  for (const ValueId v : targets_) used[static_cast<std::size_t>(v)] = true;
  for (const SymbolSource& source : graph_.symbol_sources) {
    if (source.value != kNoValue) used[static_cast<std::size_t>(source.value)] = true;
  }
  const auto views = views_of_named(graph_);
  for (std::size_t k = 0; k < graph_.constants.size(); ++k) {
    const Constant& constant = graph_.constants[k];
    if (!used[static_cast<std::size_t>(constant.value)]) continue;
    const auto view = views.find(k);
    if (view == views.end()) {
      hold(k);
    } else {
      const ConstantView& how = view->second;
      hold(how.base);
      const std::string base = names_.at(graph_.constants[how.base].value);
      const std::string name = numbered("v", static_cast<std::size_t>(constant.value));
      std::string text = name + " = ";
      if (how.perm.empty()) {
        text += "torch.ops.aten.slice.Tensor(" + base + ", 0, " + std::to_string(how.start) + ", " +
                std::to_string(how.start + constant.dims[0]) + ")";
      } else {
        std::vector<std::string> perm;
        for (const std::int64_t d : how.perm) perm.push_back(std::to_string(d));
        text += "torch.ops.aten.permute.default(" + base + ", [" + joined(perm, ", ") + "])";
      }
      line(text);
      names_[constant.value] = name;
    }
    made(constant.value);
  }
}

void TorchWriter::hold(std::size_t constant) {
  const ValueId v = graph_.constants[constant].value;
  if (names_.contains(v)) return;
  names_[v] = numbered("c", source_.held.size());
  source_.held.push_back(constant);
}

void TorchWriter::made(ValueId v) {
  const std::vector<Expr>& shape = graph_.values[v].shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_const(shape[axis])) dims_.try_emplace(shape[axis], v, axis);
  }
  const auto born = born_.find(v);
  if (born == born_.end()) return;
  for (const SymbolId id : born->second) add_symbol(id);
}

void TorchWriter::add_symbol(SymbolId id) {
  const SymbolSource& source = graph_.symbol_sources[id];
  const Expr symbol = graph_.pool->symbol(pool_.symbols()[id].name);
  if (sizes_.contains(symbol)) return;
  const std::string name = numbered("s", id);
  const std::string& from = names_.at(source.value);
  const std::string axis = std::to_string(source.axis);
  const SymbolKind kind = pool_.symbols()[id].kind;
  if (kind == SymbolKind::kRead || kind == SymbolKind::kReadReal) {
    line(name + " = " + from + ".reshape(-1).select(0, " + axis + ").item()");
    if (is_size_[id]) line("torch._check(" + name + " >= 0)");
  } else {
    line(name + " = " + from + ".size(" + axis + ")" +
         (source.divisor == 1 ? "" : " // " + std::to_string(source.divisor)));
  }
  sizes_[symbol] = name;
}

// ---- expressions --------------------------------------------------------------------------------

std::string TorchWriter::size(Expr e) {
  if (is_const(e)) return std::to_string(e->value);
  if (const auto it = sizes_.find(e); it != sizes_.end()) return it->second;
  std::string text;
  if (const auto it = dims_.find(e); it != dims_.end()) {
    text = names_.at(it->second.first) + ".size(" + std::to_string(it->second.second) + ")";
  } else {
    text = operation(e);
  }
  const std::string name = numbered("e", sizes_.size());
  line(name + " = " + text);
  sizes_[e] = name;
  return name;
}

std::string TorchWriter::operation(Expr e) {
  std::vector<std::string> parts;
  switch (e->kind) {
    case ExprKind::kConst:
      return std::to_string(e->value);
    case ExprKind::kSymbol:
      FAIRLEAD_CHECK(sizes_.contains(e),
                     "a symbol is used before its source is there: " + pool_.to_string(e));
      return sizes_.at(e);
    case ExprKind::kMul:
      if (e->value != 1) parts.push_back(std::to_string(e->value));
      for (const Expr a : e->args) parts.push_back(size(a));
      return joined(parts, " * ");
    case ExprKind::kAdd:
      for (const Expr a : e->args) parts.push_back(size(a));
      return joined(parts, " + ");
    case ExprKind::kFloorDiv:
      return size(e->args[0]) + " // " + size(e->args[1]);
    case ExprKind::kMod:
      return size(e->args[0]) + " % " + size(e->args[1]);
    case ExprKind::kMax:
    case ExprKind::kMin: {
      std::string text = size(e->args[0]);
      const std::string function = e->kind == ExprKind::kMax ? "torch.sym_max(" : "torch.sym_min(";
      for (std::size_t k = 1; k < e->args.size(); ++k) {
        text = function + text + ", " + size(e->args[k]) + ")";
      }
      return text;
    }
    case ExprKind::kLess:
      return "torch.sym_ite(" + size(e->args[0]) + " < " + size(e->args[1]) + ", 1, 0)";
    case ExprKind::kSame:
      return "torch.sym_ite(" + size(e->args[0]) + " == " + size(e->args[1]) + ", 1, 0)";
    case ExprKind::kWhere:
      return "torch.sym_ite(" + size(e->args[0]) + " != 0, " + size(e->args[1]) + ", " +
             size(e->args[2]) + ")";
    case ExprKind::kBitLength:
      return "(" + size(e->args[0]) + ").bit_length()";
    case ExprKind::kPower2:
      return "2 ** " + size(e->args[0]);
    case ExprKind::kTrunc:
      return "math.trunc(" + size(e->args[0]) + ")";
    case ExprKind::kFloor:
      return "math.floor(" + size(e->args[0]) + ")";
    case ExprKind::kCeil:
      return "math.ceil(" + size(e->args[0]) + ")";
    case ExprKind::kRound:
      return "round(" + size(e->args[0]) + ")";
    case ExprKind::kReal:
      return python_float(std::bit_cast<double>(e->value));
    case ExprKind::kToReal:
      return "torch.sym_float(" + size(e->args[0]) + ")";
    case ExprKind::kRealAdd:
      return size(e->args[0]) + " + " + size(e->args[1]);
    case ExprKind::kRealSub:
      return size(e->args[0]) + " - " + size(e->args[1]);
    case ExprKind::kRealMul:
      return size(e->args[0]) + " * " + size(e->args[1]);
    case ExprKind::kRealDiv:
      return size(e->args[0]) + " / " + size(e->args[1]);
    case ExprKind::kRealPow:
      return size(e->args[0]) + " ** " + size(e->args[1]);
    case ExprKind::kRealFloorDiv:
      return size(e->args[0]) + " // " + size(e->args[1]);
    case ExprKind::kRealMod:
      return size(e->args[0]) + " % " + size(e->args[1]);
    case ExprKind::kSqrt:
      return "torch.sym_sqrt(" + size(e->args[0]) + ")";
    case ExprKind::kLog:
      return "torch._sym_log2(" + size(e->args[0]) + ") * 0.6931471805599453";
    case ExprKind::kLog2:
      return "torch._sym_log2(" + size(e->args[0]) + ")";
    case ExprKind::kExp:
      return "2.718281828459045 ** " + size(e->args[0]);
  }
  return {};
}

std::string TorchWriter::argument(const Arg& arg, std::string_view type) {
  switch (arg.kind) {
    case ArgKind::kNone:
      return "None";
    case ArgKind::kValue:
      return names_.at(arg.value);
    case ArgKind::kInt:
      return size(arg.expr);
    case ArgKind::kFloat: {
      const std::string number = python_float(arg.number);
      if (arg.expr == nullptr) return number;
      std::string base =
          pool_.is_real(arg.expr) ? size(arg.expr) : "torch.sym_float(" + size(arg.expr) + ")";
      if (arg.power != 1) base += " ** " + python_float(arg.power);
      return arg.number == 1 ? base : number + " * " + base;
    }
    case ArgKind::kBool:
      return arg.number != 0 ? "True" : "False";
    case ArgKind::kString:
      if (type.find("Generator") != std::string_view::npos) return "None";
      if (type.find("Device") != std::string_view::npos)
        return "torch.device(" + python_string(arg.text) + ")";
      if (arg.text.starts_with("torch.") && type != "str") return arg.text;
      return python_string(arg.text);
    case ArgKind::kDtype:
      return "torch." + std::string(dtype_name(arg.dtype));
    case ArgKind::kList: {
      std::vector<std::string> parts;
      for (const Arg& item : arg.items) parts.push_back(argument(item, type));
      return "[" + joined(parts, ", ") + "]";
    }
  }
  return {};
}

// ---- statements ---------------------------------------------------------------------------------

std::string TorchWriter::call(const Node& node) {
  const OpName op = called(node.op);
  const std::string name = op.str();
  const auto known = operators_.find(name);
  FAIRLEAD_CHECK(known != operators_.end(), "the schema of " + name + " was not given");
  const std::vector<TorchOperator::Param>& params = known->second.params;
  const std::size_t count = taken(op, node.args.size());
  if (count > params.size()) {
    throw Error(ErrorCode::kUnsupported,
                "[torch_source] Expected at most " + std::to_string(params.size()) +
                    " arguments for " + name + ", got " + std::to_string(count) + " (in " +
                    std::string(node.module) + " at " + std::string(node.source) + ").");
  }
  std::vector<std::string> args;
  for (std::size_t k = 0; k < count; ++k) {
    const bool masks = takes_masks(op, k);
    const std::string text = masks ? indices(node.args[k]) : argument(node.args[k], params[k].type);
    if (!params[k].keyword_only) {
      args.push_back(text);
    } else if (text != "None" || !params[k].has_default) {
      args.push_back(params[k].name + "=" + text);
    }
  }
  return numbered("op", numbers_.at(name)) + "(" + joined(args, ", ") + ")";
}

// torch.export refuses masks of bytes, which are indexed as if they were of bools.
std::string TorchWriter::indices(const Arg& list) {
  std::vector<std::string> parts;
  for (const Arg& item : list.items) {
    const bool bytes =
        item.kind == ArgKind::kValue && graph_.values[item.value].dtype == Dtype::kUint8;
    parts.push_back(argument(item, "") + (bytes ? ".to(torch.bool)" : ""));
  }
  return "[" + joined(parts, ", ") + "]";
}

void TorchWriter::add_node(const Node& node) {
  std::vector<std::string> results;
  for (const ValueId v : node.outputs) {
    results.push_back(v == kNoValue ? "_" : numbered("v", static_cast<std::size_t>(v)));
  }
  if (results.empty()) return;
  if (node.op.has(Trait::kIdentity)) {
    names_[node.outputs[0]] = names_.at(node.args[0].value);
    made(node.outputs[0]);
    return;
  }
  std::string text;
  bool many = results.size() > 1;
  if (node.op == Op::fairlead_tensor) {
    text = tensor_of_sizes(node);
  } else if (node.op.has(Trait::kStrided)) {
    text = as_strided(node, node.op == Op::as_strided_scatter);
  } else {
    text = call(node);
    many = operators_.at(called(node.op).str()).many;
  }
  line((many ? "[" + joined(results, ", ") + "]" : results[0]) + " = " + text);
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.outputs[k] == kNoValue) continue;
    names_[node.outputs[k]] = results[k];
    made(node.outputs[k]);
  }
}

void TorchWriter::add_writes() {
  for (std::size_t k = 0; k < targets_.size(); ++k) {
    const ValueId value = graph_.outputs.at(graph_.output_names.size() + k);
    line(names_.at(targets_[k]) + ".copy_(" + names_.at(value) + ")");
  }
}

}  // namespace fairlead
