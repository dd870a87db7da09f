// Joins programs: the inputs they share, then one body each, then the conditions that choose.
#include "fairlead/graph/join.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/symbol/copy.h"

namespace fairlead {
namespace {

std::string without_digits(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) text += c;
  }
  return text;
}

bool contiguous(const Constant& constant) {
  std::int64_t step = 1;
  for (std::size_t k = constant.strides.size(); k-- > 0;) {
    if (constant.dims[k] != 1 && constant.strides[k] != step) return false;
    step *= constant.dims[k];
  }
  return true;
}

constexpr std::size_t kLongestName = 400;  // of a node: runtimes quote it

// One program while it is copied.
struct Part {
  const Graph* graph;
  const std::vector<SizeBounds>* bounds;
  std::vector<Expr> seen;     // by symbol of the joined graph: what it is here, in this pool
  std::vector<Expr> symbols;  // by symbol of this pool: what it is in the joined graph
  std::vector<Expr> fixed;    // by symbol of the joined graph: `seen` in the joined pool
  std::unordered_map<ValueId, ValueId> values = {};
  std::vector<Node> before = {};       // what its condition is computed by
  std::set<const Node*> hoisted = {};  // the nodes that those are copies of
  Body body = {};
  Expr takes = nullptr;    // 0 or 1
  std::string words = {};  // "sequence is at least 2"
};

// What a node before the branches computes, to be found again.
struct Hoisted {
  OpName op;
  CheckedList<Arg> args;
  CheckedList<ValueId> outputs;
};

class Joiner {
 public:
  Joiner(std::span<const JoinPart> parts, const DimName& name) : dim_name_(name) {
    for (const JoinPart& part : parts) {
      parts_.push_back({part.graph, &part.bounds, {}, {}, {}});
    }
    // The program in which most sizes vary lends names and expressions.
    const auto sizes = [](const Part& part) {
      const auto& all = part.graph->pool->symbols();
      return std::count_if(all.begin(), all.end(),
                           [](const Symbol& s) { return s.kind == SymbolKind::kSize; });
    };
    lead_ = static_cast<std::size_t>(
        std::max_element(parts_.begin(), parts_.end(),
                         [&](const Part& a, const Part& b) { return sizes(a) < sizes(b); }) -
        parts_.begin());
  }

  Graph run() {
    compare_ends();
    make_inputs();
    for (Part& part : parts_) map_symbols(part);
    for (Part& part : parts_) copy_body(part);
    for (Part& part : parts_) find_condition(part);
    add_branches();
    out_.joined = true;
    check(out_);
    return std::move(out_);
  }

 private:
  [[nodiscard]] ExprPool& pool() { return *out_.pool; }
  [[nodiscard]] const Part& lead() const { return parts_[lead_]; }
  [[nodiscard]] static const Value& input(const Part& part, std::size_t k) {
    return part.graph->values[part.graph->inputs[k]];
  }
  [[nodiscard]] static const Value& output(const Part& part, std::size_t k) {
    return part.graph->values[part.graph->outputs[k]];
  }

  void compare_ends() const {
    const auto same = [](const Value& a, const Value& b) {
      return a.dtype == b.dtype && a.shape.size() == b.shape.size();
    };
    const auto refuse = [](const std::string& what) {
      throw Error(ErrorCode::kDiverged,
                  "[join] Expected programs with the same inputs and outputs, got " + what + ".");
    };
    const Graph& first = *lead().graph;
    for (const Part& part : parts_) {
      const Graph& graph = *part.graph;
      if (graph.inputs.size() != first.inputs.size()) refuse("another number of inputs");
      if (graph.outputs.size() != first.outputs.size() ||
          graph.output_names != first.output_names) {
        refuse("other outputs");
      }
      for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
        if (!same(input(part, k), input(lead(), k)) ||
            input(part, k).name != input(lead(), k).name) {
          refuse("another type or rank of input " + input(lead(), k).name);
        }
      }
      for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
        if (!same(output(part, k), output(lead(), k))) {
          refuse("another type or rank of output '" + first.output_names[k] + "'");
        }
      }
    }
  }

  // ---- symbols --------------------------------------------------------------------------------

  // A symbol of this name, or of one like it.
  Expr new_symbol(std::string name, SymbolKind kind, SymbolSource source) {
    std::replace(name.begin(), name.end(), '.', '_');
    std::string unique = name;
    for (int k = 1; !names_.insert(unique).second; ++k) unique = name + "_" + std::to_string(k);
    const Expr symbol = pool().symbol(unique, kind);
    out_.symbol_sources.resize(pool().symbols().size());
    out_.symbol_sources[symbol->value] = source;
    for (Part& part : parts_) part.seen.resize(pool().symbols().size(), nullptr);
    return symbol;
  }

  // A symbol read from an input of the joined graph.
  Expr new_size(std::string name, std::size_t k, int axis, std::int64_t divisor) {
    const Expr symbol =
        new_symbol(std::move(name), SymbolKind::kSize, {out_.inputs[k], axis, divisor});
    for (Part& part : parts_) part.seen[symbol->value] = size_in(part, k, axis, divisor);
    return symbol;
  }

  // The size of an input's dimension in a program, divided; null where that leaves a rest.
  static Expr size_in(const Part& part, std::size_t k, int axis, std::int64_t divisor) {
    const Expr size = input(part, k).shape[axis];
    if (divisor == 1) return size;
    ExprPool& pool = *part.graph->pool;
    const Expr times = pool.constant(divisor);
    const Expr quotient = pool.floordiv(size, times);
    return pool.mul(quotient, times) == size ? quotient : nullptr;
  }

  // Whether a size of an input, as the joined graph says it, is what this program says.
  bool agrees(const Part& part, std::size_t k, std::size_t axis, Expr joined) {
    return ExprCopier(*part.graph->pool, part.seen)(joined) == input(part, k).shape[axis];
  }

  void make_inputs() {
    const Graph& first = *lead().graph;
    for (std::size_t k = 0; k < first.inputs.size(); ++k) {
      const Value& value = input(lead(), k);
      out_.inputs.push_back(out_.add_value(value.dtype, {}, value.name));
    }
    // The leading program's symbols, under their names.
    std::vector<Expr> symbols(first.pool->symbols().size(), nullptr);
    for (std::size_t s = 0; s < first.symbol_sources.size(); ++s) {
      const SymbolSource& source = first.symbol_sources[s];
      const Symbol& symbol = first.pool->symbols()[s];
      if (source.value == kNoValue || symbol.kind != SymbolKind::kSize) continue;
      const std::size_t k = input_index(first, source.value);
      symbols[s] = new_size(symbol.name, k, source.axis, source.divisor);
    }
    ExprCopier copy(pool(), symbols);
    // Dimensions of like inputs whose sizes are alike in every program are one symbol.
    std::map<std::tuple<std::string, std::size_t, std::vector<Expr>>, Expr> alike;
    const auto joined_size = [&](std::size_t k, std::size_t axis) {
      const Expr size = copy(input(lead(), k).shape[axis]);
      const auto agree = [&](const Part& part) {
        return size != nullptr && agrees(part, k, axis, size);
      };
      if (std::all_of(parts_.begin(), parts_.end(), agree)) return size;
      std::vector<Expr> sizes;
      for (const Part& part : parts_) sizes.push_back(input(part, k).shape[axis]);
      const std::string& name = out_.values[out_.inputs[k]].name;
      const auto [it, fresh] =
          alike.try_emplace({without_digits(name), axis, std::move(sizes)}, nullptr);
      if (fresh && !numbers(k, axis)) it->second = known_size(k, axis);
      if (it->second == nullptr) {
        it->second = new_size(dim_name(k, axis), k, static_cast<int>(axis), 1);
      }
      return it->second;
    };
    // Numbers first: what they become may be part of a sum.
    for (const bool first : {true, false}) {
      for (std::size_t k = 0; k < out_.inputs.size(); ++k) {
        auto& shape = out_.values[out_.inputs[k]].shape;
        shape.resize(input(lead(), k).shape.size(), nullptr);
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
          if (numbers(k, axis) == first) shape[axis] = joined_size(k, axis);
        }
      }
    }
  }

  // Whether every program has a number there: equal to another by chance, maybe, and therefore a
  // condition of its own.
  [[nodiscard]] bool numbers(std::size_t k, std::size_t axis) const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](const Part& part) { return is_const(input(part, k).shape[axis]); });
  }

  // A symbol or the sum of two that a dimension is in every program (a mask as long as past and new
  // tokens, where one program has those fixed). Null where there is none, and where every program
  // has a number: that may be so by chance, and is a condition of its own.
  Expr known_size(std::size_t k, std::size_t axis) {
    if (std::all_of(parts_.begin(), parts_.end(),
                    [&](const Part& part) { return is_const(input(part, k).shape[axis]); })) {
      return nullptr;
    }
    const auto right = [&](Expr e) {
      return std::all_of(parts_.begin(), parts_.end(),
                         [&](const Part& part) { return agrees(part, k, axis, e); });
    };
    std::vector<Expr> sizes;
    for (std::size_t s = 0; s < pool().symbols().size(); ++s) {
      sizes.push_back(pool().symbol(pool().symbols()[s].name));
    }
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      if (right(sizes[a])) return sizes[a];
      for (std::size_t b = 0; b < a; ++b) {
        if (const Expr e = pool().add(sizes[a], sizes[b]); right(e)) return e;
      }
    }
    return nullptr;
  }

  // A program's name for a dimension that another has fixed; else its input and axis.
  [[nodiscard]] std::string dim_name(std::size_t k, std::size_t axis) const {
    for (const Part& part : parts_) {
      const Expr size = input(part, k).shape[axis];
      if (size->kind != ExprKind::kSymbol) continue;
      const std::string& name = part.graph->pool->symbols()[size->value].name;
      if (!names_.contains(name)) return name;
    }
    const Value& value = input(lead(), k);
    if (dim_name_) return dim_name_(value.name, axis, value.shape.size());
    return value.name + "_dim_" + std::to_string(axis);
  }

  static std::size_t input_index(const Graph& graph, ValueId value) {
    const auto it = std::find(graph.inputs.begin(), graph.inputs.end(), value);
    FAIRLEAD_CHECK(it != graph.inputs.end(), "a size is not read from an input");
    return static_cast<std::size_t>(it - graph.inputs.begin());
  }

  // What a program reads from a dimension is the joined graph's symbol for it, or one of its own.
  // Sources of sizes that data decides are known when the nodes are copied.
  void map_symbols(Part& part) {
    const Graph& graph = *part.graph;
    part.symbols.resize(graph.pool->symbols().size(), nullptr);
    for (std::size_t s = 0; s < part.symbols.size(); ++s) {
      const Symbol& symbol = graph.pool->symbols()[s];
      const SymbolSource source =
          s < graph.symbol_sources.size() ? graph.symbol_sources[s] : SymbolSource{};
      if (symbol.kind != SymbolKind::kSize || source.value == kNoValue) {
        part.symbols[s] = new_symbol(symbol.name, symbol.kind, {});
        continue;
      }
      const std::size_t k = input_index(graph, source.value);
      const Expr here = graph.pool->symbol(symbol.name);
      const auto same = std::find(part.seen.begin(), part.seen.end(), here);
      const Expr joined = out_.values[out_.inputs[k]].shape[source.axis];
      if (source.divisor == 1 && joined->kind == ExprKind::kSymbol) {
        part.symbols[s] = joined;
      } else if (same != part.seen.end()) {
        part.symbols[s] = pool().symbol(
            pool().symbols()[static_cast<std::size_t>(same - part.seen.begin())].name);
      } else {
        part.symbols[s] = new_size(symbol.name, k, source.axis, source.divisor);
      }
    }
  }

  // ---- bodies ---------------------------------------------------------------------------------

  void copy_body(Part& part) {
    const Graph& graph = *part.graph;
    ExprCopier copy(pool(), part.symbols);
    for (const Expr e : part.seen) part.fixed.push_back(e == nullptr ? nullptr : copy(e));
    for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
      part.values[graph.inputs[k]] = own_input(part, k, copy);
    }
    for (const Constant& constant : graph.constants) {
      part.values[constant.value] = shared_constant(graph, constant, copy);
    }
    hoist_reads(part, copy);
    copy_nodes(part, graph.nodes, part.body.nodes, copy);
    for (const ValueId id : graph.outputs) part.body.outputs.push_back(part.values.at(id));
    for (std::size_t s = 0; s < graph.symbol_sources.size(); ++s) {
      const SymbolSource& source = graph.symbol_sources[s];
      SymbolSource& own = out_.symbol_sources[part.symbols[s]->value];
      if (own.value != kNoValue || source.value == kNoValue) continue;
      // What dead code made is in no shape that is left.
      const auto it = part.values.find(source.value);
      if (it != part.values.end()) own = {it->second, source.axis, source.divisor};
    }
  }

  // Inside a branch an input has the sizes that the branch is for.
  ValueId own_input(Part& part, std::size_t k, ExprCopier& copy) {
    const ValueId joined = out_.inputs[k];
    std::vector<Expr> shape;
    for (const Expr e : input(part, k).shape) shape.push_back(copy(e));
    if (shape == out_.values[joined].shape) return joined;
    Node node;
    node.op = Op::alias;
    node.args = {value_arg(joined)};
    node.outputs = {out_.add_value(out_.values[joined].dtype, std::move(shape))};
    part.body.nodes.push_back(std::move(node));
    return part.body.nodes.back().outputs[0];
  }

  // Programs share weights; what each computed from weights alone may be equal.
  ValueId shared_constant(const Graph& graph, const Constant& constant, ExprCopier& copy) {
    const Value& value = graph.values[constant.value];
    const auto equal = [&](const Constant& other) {
      if (out_.values[other.value].dtype != value.dtype) return false;
      if (other.data == constant.data) return true;
      if (!contiguous(constant)) return false;
      if (out_.values[other.value].name != value.name) return false;
      std::size_t bytes = dtype_size(value.dtype);
      for (const std::int64_t d : constant.dims) bytes *= static_cast<std::size_t>(d);
      return bytes == 0 || std::memcmp(other.data, constant.data, bytes) == 0;
    };
    auto& likely = constants_[{constant.dims, constant.strides}];
    for (const std::size_t k : likely) {
      if (equal(out_.constants[k])) return out_.constants[k].value;
    }
    std::vector<Expr> shape;
    for (const Expr e : value.shape) shape.push_back(copy(e));
    Constant added = constant;
    added.value = out_.add_value(value.dtype, std::move(shape), value.name);
    likely.push_back(out_.constants.size());
    out_.add_constant(std::move(added));
    return out_.constants.back().value;
  }

  ValueId copy_value(Part& part, ValueId id, ExprCopier& copy) {
    if (id == kNoValue) return kNoValue;
    const Value& value = part.graph->values[id];
    std::vector<Expr> shape;
    for (const Expr e : value.shape) shape.push_back(copy(e));
    return part.values[id] = out_.add_value(value.dtype, std::move(shape), value.name);
  }

  Arg copy_arg(const Part& part, const Arg& arg, ExprCopier& copy) {
    Arg made = arg;
    if (arg.value != kNoValue) made.value = part.values.at(arg.value);
    if (arg.expr != nullptr) made.expr = copy(arg.expr);
    for (std::size_t k = 0; k < arg.items.size(); ++k) {
      made.items[k] = copy_arg(part, arg.items[k], copy);
    }
    return made;
  }

  // What a program asks of values decides whether it runs: it is computed before, and the program
  // goes on with it. What an earlier one has computed for that is not computed again.
  void hoist_reads(Part& part, ExprCopier& copy) {
    const Graph& graph = *part.graph;
    std::set<ValueId> needed;
    for (const Requirement& asked : graph.requirements) {
      for (const SymbolId s : graph.pool->symbols_of(asked.holds)) {
        if (graph.pool->symbols()[s].kind == SymbolKind::kSize) continue;
        if (s < graph.symbol_sources.size()) needed.insert(graph.symbol_sources[s].value);
      }
    }
    if (needed.empty()) return;
    std::vector<const Node*> slice;
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      const bool used = std::any_of(node->outputs.begin(), node->outputs.end(),
                                    [&](ValueId id) { return needed.contains(id); });
      if (!used) continue;
      if (node->random || !node->bodies.empty())
        refuse_values("what decides is in a loop or drawn");
      for (const Arg& arg : node->args) add_values(arg, needed);
      slice.push_back(&*node);
    }
    std::unordered_map<ValueId, ValueId> outside = part.values;
    for (std::size_t k = 0; k < graph.inputs.size(); ++k) outside[graph.inputs[k]] = out_.inputs[k];
    std::swap(outside, part.values);
    for (auto node = slice.rbegin(); node != slice.rend(); ++node) {
      const std::size_t before = out_.values.size();
      std::vector<Node> made;
      copy_nodes(part, {**node}, made, copy);
      // Of an earlier program; those that take the same values are few.
      std::set<ValueId> taken;
      for (const Arg& arg : made[0].args) add_values(arg, taken);
      std::vector<Hoisted>& likely = computed_[taken];
      const auto same = std::find_if(likely.begin(), likely.end(), [&](const Hoisted& other) {
        return other.op == made[0].op && same_args(other.args, made[0].args) &&
               other.outputs.size() == made[0].outputs.size();
      });
      if (same == likely.end()) {
        likely.push_back({made[0].op, made[0].args, made[0].outputs});
        part.before.push_back(std::move(made[0]));
      } else {
        for (std::size_t k = 0; k < same->outputs.size(); ++k) {
          part.values[(*node)->outputs[k]] = same->outputs[k];
        }
        out_.values.resize(before);
      }
      for (const ValueId id : (*node)->outputs) outside[id] = part.values.at(id);
      part.hoisted.insert(*node);
    }
    std::swap(outside, part.values);
  }

  [[noreturn]] static void refuse_values(const std::string& why) {
    throw Error(ErrorCode::kDiverged,
                "[join] Expected programs that go by one question about values, but " + why + ".",
                {}, why);
  }

  static void add_values(const Arg& arg, std::set<ValueId>& values) {
    if (arg.value != kNoValue) values.insert(arg.value);
    for (const Arg& item : arg.items) add_values(item, values);
  }

  static bool same_args(const CheckedList<Arg>& a, const CheckedList<Arg>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Arg& x, const Arg& y) {
      return x.kind == y.kind && x.dtype == y.dtype && x.value == y.value && x.expr == y.expr &&
             x.number == y.number && x.power == y.power && x.text == y.text &&
             same_args(x.items, y.items);
    });
  }

  void copy_nodes(Part& part, const std::vector<Node>& from, std::vector<Node>& to,
                  ExprCopier& copy) {
    for (const Node& node : from) {
      if (part.hoisted.contains(&node)) continue;
      Node made;
      made.op = node.op;
      made.module = out_.keep(node.module);
      made.source = out_.keep(node.source);
      made.random = node.random;
      for (const Arg& arg : node.args) made.args.push_back(copy_arg(part, arg, copy));
      for (const Body& body : node.bodies) {
        Body inner;
        for (const ValueId id : body.inputs) inner.inputs.push_back(copy_value(part, id, copy));
        copy_nodes(part, body.nodes, inner.nodes, copy);
        for (const ValueId id : body.outputs) inner.outputs.push_back(part.values.at(id));
        made.bodies.push_back(std::move(inner));
      }
      for (const ValueId id : node.outputs) made.outputs.push_back(copy_value(part, id, copy));
      to.push_back(std::move(made));
    }
  }

  // ---- conditions -----------------------------------------------------------------------------

  void require(Part& part, Expr flag, const std::string& words) {
    part.takes = part.takes == nullptr ? flag : pool().min(part.takes, flag);
    part.words += (part.words.empty() ? "" : " and ") + words;
  }

  // 1 where e is 1 or more, else 0
  Expr positive(Expr e) {
    return pool().max(pool().min(e, pool().constant(1)), pool().constant(0));
  }

  void find_condition(Part& part) {
    const auto number = [&](std::int64_t value) { return pool().constant(value); };
    for (const Expr symbol : input_symbols()) {
      // A number, or what other sizes say where the program has no symbol of its own for it.
      const Expr size = part.fixed[symbol->value];
      if (size == nullptr || size == symbol) continue;
      const Expr off = pool().max(pool().sub(symbol, size), pool().sub(size, symbol));
      require(part, pool().sub(number(1), pool().min(off, number(1))),
              pool().symbols()[symbol->value].name + " is " + pool().to_string(size));
    }
    for (const SizeBounds& bounds : *part.bounds) {
      const Expr here = part.graph->pool->symbol(bounds.symbol);
      if (static_cast<std::size_t>(here->value) >= part.symbols.size()) continue;
      const Expr symbol = part.symbols[here->value];
      const std::string& name = pool().symbols()[symbol->value].name;
      if (bounds.min > 1) {
        require(part, positive(pool().sub(symbol, number(bounds.min - 1))),
                name + " is at least " + std::to_string(bounds.min));
      }
      if (bounds.max < INT64_MAX) {
        require(part, positive(pool().sub(number(bounds.max + 1), symbol)),
                name + " is at most " + std::to_string(bounds.max));
      }
    }
    for (std::size_t s = 0; s < part.graph->symbol_sources.size(); ++s) {
      const SymbolSource& source = part.graph->symbol_sources[s];
      if (source.value == kNoValue || source.divisor == 1 ||
          part.graph->pool->symbols()[s].kind != SymbolKind::kSize) {
        continue;
      }
      const std::size_t k = input_index(*part.graph, source.value);
      const Expr size = out_.values[out_.inputs[k]].shape[source.axis];
      const Expr rest = pool().mod(size, number(source.divisor));
      if (is_const(rest)) continue;
      require(part, pool().same(rest, number(0)),
              pool().to_string(size) + " is a multiple of " + std::to_string(source.divisor));
    }
    ExprCopier copy(pool(), part.symbols);
    for (const Requirement& asked : part.graph->requirements) {
      if (const Expr flag = copy(asked.holds); flag != nullptr) require(part, flag, asked.words);
    }
    if (part.takes == nullptr) require(part, number(1), "any size");
  }

  // In the order of the inputs, each once.
  std::vector<Expr> input_symbols() {
    std::vector<Expr> found;
    for (const ValueId id : out_.inputs) {
      for (const Expr e : out_.values[id].shape) {
        for (const SymbolId s : pool().symbols_of(e)) {
          const Expr symbol = pool().symbol(pool().symbols()[s].name);
          if (std::find(found.begin(), found.end(), symbol) == found.end()) found.push_back(symbol);
        }
      }
    }
    return found;
  }

  // A size of an output: a program's expression where it is right for all, else a symbol.
  Expr output_size(std::size_t k, std::size_t axis, ValueId joined) {
    const auto right = [&](Expr e) {
      const auto here = pool().symbols_of(e);
      const bool sizes = std::all_of(here.begin(), here.end(), [&](SymbolId s) {
        return pool().symbols()[s].kind == SymbolKind::kSize;
      });
      return sizes && std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) {
               std::vector<Expr> fixed = part.fixed;
               fixed.resize(pool().symbols().size(), nullptr);
               return ExprCopier(pool(), fixed)(e) == output_in(part, k, axis);
             });
    };
    const Expr leading = output_in(lead(), k, axis);
    if (right(leading)) return leading;
    for (const Part& part : parts_) {
      if (right(output_in(part, k, axis))) return output_in(part, k, axis);
    }
    // Every program has a number there: it may be the size of an input, or two together.
    const std::vector<Expr> sizes = input_symbols();
    for (const Expr e : sizes) {
      if (right(e)) return e;
    }
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      for (std::size_t b = a + 1; b < sizes.size(); ++b) {
        if (const Expr e = pool().add(sizes[a], sizes[b]); right(e)) return e;
      }
    }
    const std::string name = lead().graph->output_names[k] + "_dim_" + std::to_string(axis);
    return new_symbol(name, SymbolKind::kData, {joined, static_cast<int>(axis), 1});
  }

  // In the joined graph's symbols.
  [[nodiscard]] Expr output_in(const Part& part, std::size_t k, std::size_t axis) const {
    return out_.values[part.body.outputs[k]].shape[axis];
  }

  // Nested, each program in the rest of the one before it. Sizes that none takes stop the first
  // choice; values that none takes stop the last one, where the conditions of both are known.
  void add_branches() {
    out_.output_names = lead().graph->output_names;
    const bool by_values = std::any_of(parts_.begin(), parts_.end(),
                                       [](const Part& part) { return !part.before.empty(); });
    const std::size_t last = parts_.size() - 1, stops = by_values ? last - 1 : 0;
    Expr taken = pool().constant(0);
    std::string words;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (p >= stops) taken = pool().max(taken, parts_[p].takes);
      words += (words.empty() ? "" : ", or ") + parts_[p].words;
    }
    Body rest = std::move(parts_.back().body);
    // output_size still asks for every program's own results.
    parts_.back().body.outputs = rest.outputs;
    for (std::size_t p = last; p-- > 0;) {
      Body body = std::move(parts_[p].body);
      parts_[p].body.outputs = body.outputs;
      Body level;
      const auto compute = [&](Part& part) {
        for (Node& node : part.before) level.nodes.push_back(std::move(node));
      };
      compute(parts_[p]);
      if (p + 1 == last) compute(parts_[last]);
      Node node;
      node.op = Op::higher_order_cond;
      node.args = {int_arg(parts_[p].takes)};
      for (std::size_t k = 0; k < out_.output_names.size(); ++k) {
        node.outputs.push_back(out_.add_value(output(lead(), k).dtype, {}));
      }
      if (p == stops) {
        Node guard;
        guard.op = Op::fairlead_require;
        Arg said;
        said.kind = ArgKind::kString;
        said.text = words.size() <= kLongestName ? words : words.substr(0, kLongestName) + "...";
        guard.args = {int_arg(taken), node.args[0], said};
        guard.outputs = {out_.add_value(Dtype::kInt64, {})};
        node.args[0] = value_arg(guard.outputs[0]);
        level.nodes.push_back(std::move(guard));
      }
      conds_.push_back(node.outputs);
      node.bodies.push_back(std::move(body));
      node.bodies.push_back(std::move(rest));
      level.outputs = node.outputs;
      level.nodes.push_back(std::move(node));
      rest = std::move(level);
    }
    out_.outputs = rest.outputs;
    for (Node& node : rest.nodes) out_.nodes.push_back(std::move(node));
    for (std::size_t k = 0; k < out_.outputs.size(); ++k) {
      std::vector<Expr> shape;
      for (std::size_t axis = 0; axis < output(lead(), k).shape.size(); ++axis) {
        shape.push_back(output_size(k, axis, out_.outputs[k]));
      }
      for (const auto& made : conds_) out_.values[made[k]].shape = shape;
    }
  }

  const DimName& dim_name_;
  std::vector<Part> parts_;
  std::size_t lead_ = 0;
  Graph out_;
  std::set<std::string> names_;
  std::vector<std::vector<ValueId>> conds_;
  std::map<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>,
           std::vector<std::size_t>>
      constants_;  // by dims and strides: places in out_.constants
  std::map<std::set<ValueId>, std::vector<Hoisted>> computed_;  // by the values that they take
};

}  // namespace

Graph join(std::span<const JoinPart> parts, const DimName& name) {
  FAIRLEAD_CHECK(parts.size() > 1, "one program is not joined");
  return Joiner(parts, name).run();
}

}  // namespace fairlead
