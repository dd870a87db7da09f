// The contract of an imported program in words.
#include "fairlead/pt2/import.h"

namespace fairlead::pt2 {
namespace {

std::string type_text(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  std::string text(dtype_name(value.dtype));
  text += '[';
  for (std::size_t k = 0; k < value.shape.size(); ++k) {
    text += (k > 0 ? ", " : "") + graph.pool->to_string(value.shape[k]);
  }
  return text + ']';
}

}  // namespace

std::string contract(const Imported& imported) {
  const Graph& graph = imported.program.graph;
  std::string text = "Symbols\n";
  if (imported.symbols.empty()) text += "  none: every dimension is fixed\n";
  for (const ImportedSymbol& s : imported.symbols) {
    const SymbolSource& source = graph.symbol_sources[s.id];
    text += "  " + s.name;
    if (source.value != kNoValue) {
      text +=
          ": from axis " + std::to_string(source.axis) + " of " + graph.values[source.value].name;
    }
    text += "; allowed " + std::to_string(s.min) + " to " +
            (s.max == INT64_MAX ? "any" : std::to_string(s.max)) + '\n';
  }
  text += "Inputs\n";
  for (const ValueId id : graph.inputs) {
    text += "  " + graph.values[id].name + ": " + type_text(graph, id) + '\n';
  }
  text += "Outputs\n";
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    text += "  " + graph.output_names[k] + ": " + type_text(graph, graph.outputs[k]) + '\n';
  }
  for (const std::string& name : imported.program.written_inputs) {
    text += "Written by the model: " + name + '\n';
  }
  text += "Note: from a program that torch.export " + imported.torch_version + " made";
  return text;
}

}  // namespace fairlead::pt2
