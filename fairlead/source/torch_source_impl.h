// The writer of torch sources, shared by this folder's files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/source/torch_source.h"

namespace fairlead {

// A constant that is a permuted or cut named one: written as an operator on that one, so that the
// weights are in the program once.
struct ConstantView {
  std::size_t base = 0;            // index into Graph::constants
  std::vector<std::int64_t> perm;  // empty: a slice of the first dimension
  std::int64_t start = 0;
};
// By index into Graph::constants; those that are missing have bytes of their own.
[[nodiscard]] std::map<std::size_t, ConstantView> views_of_named(const Graph& graph);

class TorchWriter {
 public:
  TorchWriter(const Graph& graph, const TorchOperators& operators,
              const std::vector<ValueId>& targets);
  [[nodiscard]] TorchSource write();

 private:
  void add_inputs();
  void add_constants();
  void hold(std::size_t constant);
  // `v` can be used from here on: its sizes, and the symbols that are born with it.
  void made(ValueId v);
  void add_symbol(SymbolId id);
  void add_node(const Node& node);
  void add_writes();

  void line(std::string_view text);
  [[nodiscard]] std::string call(const Node& node);
  [[nodiscard]] std::string argument(const Arg& arg, std::string_view type);
  [[nodiscard]] std::string indices(const Arg& list);
  // An expression in Python; what is not a number or a name gets a name first.
  [[nodiscard]] std::string size(Expr e);
  [[nodiscard]] std::string operation(Expr e);

  // torch_layout.cpp: operators that read memory, and tensors made of sizes.
  [[nodiscard]] std::string tensor_of_sizes(const Node& node);
  [[nodiscard]] std::string as_strided(const Node& node, bool scatter);
  [[nodiscard]] std::vector<std::int64_t> memory_order(const Node& node, std::size_t own) const;

  const Graph& graph_;
  const ExprPool& pool_;
  const TorchOperators& operators_;
  const std::vector<ValueId>& targets_;
  std::unordered_map<std::string, std::size_t> numbers_;  // operator -> its number in the text
  TorchSource source_;
  std::string text_;
  std::unordered_map<ValueId, std::string> names_;
  std::unordered_map<Expr, std::string> sizes_;                     // named expressions
  std::unordered_map<Expr, std::pair<ValueId, std::size_t>> dims_;  // where a size can be read
  std::unordered_map<ValueId, std::vector<SymbolId>> born_;         // symbols by their source
  std::vector<bool> is_size_;                                       // by SymbolId
};

}  // namespace fairlead
