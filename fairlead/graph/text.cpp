// Writes graphs as text.
#include <array>
#include <charconv>
#include <cmath>

#include "fairlead/base/error.h"
#include "fairlead/graph/graph.h"
#include "fairlead/graph/text_impl.h"

namespace fairlead {
namespace {

[[nodiscard]] std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += c;
    }
  }
  return result + '"';
}

[[nodiscard]] std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph), pool_(*graph.pool) {}

  [[nodiscard]] std::string write() {
    for (std::size_t id = 0; id < pool_.symbols().size(); ++id) write_symbol(id);
    for (const ValueId id : graph_.inputs) {
      text_ += "input ";
      write_typed(id);
      text_ += '\n';
    }
    for (const Constant& constant : graph_.constants) write_constant(constant);
    for (const Node& node : graph_.nodes) write_node(node, 0);
    for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
      std::string_view name;
      if (k < graph_.output_names.size()) name = graph_.output_names[k];
      text_ += "output " + quoted(name) + " = " + value(graph_.outputs[k]) + '\n';
    }
    for (const Requirement& asked : graph_.requirements) {
      text_ += "require " + quoted(asked.words) + " = " + pool_.to_string(asked.holds) + '\n';
    }
    return std::move(text_);
  }

 private:
  [[nodiscard]] static std::string value(ValueId id) {
    std::string text(1, '%');
    text += std::to_string(id);
    return text;
  }

  template <typename List, typename Write>
  void write_list(const List& list, Write write) {
    bool first = true;
    for (const auto& item : list) {
      if (!first) text_ += ", ";
      first = false;
      write(item);
    }
  }

  void write_symbol(std::size_t id) {
    const Symbol& symbol = pool_.symbols()[id];
    text_ += "symbol " + (is_plain(symbol.name) ? symbol.name : "`" + symbol.name + "`") + ": ";
    for (const auto& [word, kind] : kSymbolKinds) {
      if (kind == symbol.kind) text_ += word;
    }
    if (id < graph_.symbol_sources.size() && graph_.symbol_sources[id].value != kNoValue) {
      const SymbolSource& source = graph_.symbol_sources[id];
      text_ += " = " + value(source.value) + "[" + std::to_string(source.axis) + "]";
      if (source.divisor != 1) text_ += " // " + std::to_string(source.divisor);
    }
    text_ += '\n';
  }

  void write_head(ValueId id) {
    const Value& v = graph_.values[id];
    text_ += value(id);
    if (!v.name.empty()) {
      text_ += ' ';
      text_ += quoted(v.name);
    }
    text_ += ": ";
    text_ += dtype_name(v.dtype);
  }

  void write_typed(ValueId id) {
    write_head(id);
    text_ += '[';
    write_list(graph_.values[id].shape, [&](Expr e) { text_ += pool_.to_string(e); });
    text_ += ']';
  }

  void write_constant(const Constant& constant) {
    const auto write = [&](std::int64_t number) { text_ += std::to_string(number); };
    text_ += "constant ";
    write_head(constant.value);
    text_ += '[';
    write_list(constant.dims, write);
    text_ += ']';
    if (!constant.strides.empty()) {
      text_ += " strides [";
      write_list(constant.strides, write);
      text_ += ']';
    }
    text_ += '\n';
  }

  void write_node(const Node& node, std::size_t depth) {
    indent(depth);
    if (node.outputs.empty()) text_ += "()";
    write_list(node.outputs, [&](ValueId id) {
      if (id == kNoValue) {
        text_ += "None";
      } else {
        write_typed(id);
      }
    });
    text_ += " = ";
    if (node.random) text_ += "random ";
    text_ += is_plain(node.op) ? node.op.str() : quoted(node.op);
    text_ += '(';
    write_list(node.args, [&](const Arg& arg) { write_arg(arg); });
    text_ += ')';
    if (!node.module.empty()) text_ += " in " + quoted(node.module);
    if (!node.source.empty()) text_ += " at " + quoted(node.source);
    text_ += '\n';
    for (const Body& body : node.bodies) write_body(body, depth + 1);
  }

  void indent(std::size_t depth) { text_.append(2 * depth, ' '); }

  void write_body(const Body& body, std::size_t depth) {
    indent(depth);
    text_ += "body\n";
    for (const ValueId id : body.inputs) {
      indent(depth + 1);
      text_ += "parameter ";
      write_typed(id);
      text_ += '\n';
    }
    for (const Node& node : body.nodes) write_node(node, depth + 1);
    indent(depth + 1);
    text_ += "result ";
    write_list(body.outputs, [&](ValueId id) { text_ += value(id); });
    text_ += '\n';
    indent(depth);
    text_ += "end\n";
  }

  void write_arg(const Arg& arg) {
    switch (arg.kind) {
      case ArgKind::kNone:
        text_ += "None";
        return;
      case ArgKind::kValue:
        text_ += value(arg.value);
        return;
      case ArgKind::kInt: {
        const std::string expression = pool_.to_string(arg.expr);
        const std::size_t sign = expression.starts_with('-') ? 1 : 0;
        const bool clashes = is_reserved(word_at(expression, sign));
        text_ += clashes ? "(" + expression + ")" : expression;
        return;
      }
      case ArgKind::kFloat:
        text_ += float_text(arg.number);
        if (arg.expr == nullptr) return;
        text_ += "*(" + pool_.to_string(arg.expr) + ")";
        if (arg.power == 1) return;
        text_ += '^';
        text_ += float_text(arg.power);
        return;
      case ArgKind::kBool:
        text_ += arg.number != 0 ? "True" : "False";
        return;
      case ArgKind::kString:
        text_ += quoted(arg.text);
        return;
      case ArgKind::kDtype:
        text_ += dtype_name(arg.dtype);
        return;
      case ArgKind::kList:
        text_ += '[';
        write_list(arg.items, [&](const Arg& item) { write_arg(item); });
        text_ += ']';
        return;
    }
    FAIRLEAD_CHECK(false, "an argument of no kind");
  }

  const Graph& graph_;
  const ExprPool& pool_;
  std::string text_;
};

}  // namespace

std::string to_text(const Graph& graph) { return Writer(graph).write(); }

}  // namespace fairlead
