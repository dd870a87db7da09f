// A matcher of patterns and a rewriter of nodes: what a fusion is written with.
//
//   enum : std::size_t { kX, kY };
//   const Pattern pattern = call(Op::add_Tensor, {call(Op::neg, {any(kX)}), any(kY)}).commutes();
//   return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) {
//     const auto found = rewriter.match(pattern, node);
//     if (!found) return false;
//     rewriter.become(node, Op::sub_Tensor, {found->arg(kY), found->arg(kX)});
//     return true;
//   });
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

inline constexpr std::size_t kMostSlots = 8;

// What an argument looks like: anything, a number, or what an operator makes of other arguments.
struct Pattern {
  enum class Kind : std::uint8_t { kAny, kNumber, kCall, kEither };
  Kind kind = Kind::kAny;
  std::size_t slot = kMostSlots;  // where the argument, or the node of a call, is put
  double number = 0;
  Op op = {};
  std::vector<Pattern> parts;  // arguments of a call, the first so many; or the choices
  bool swaps = false;          // the first two arguments stand in either order

  [[nodiscard]] Pattern commutes() && {
    swaps = true;
    return std::move(*this);
  }
  [[nodiscard]] Pattern as(std::size_t at) && {
    slot = at;
    return std::move(*this);
  }
};

// Any argument; named a second time, the same value or the same number.
[[nodiscard]] Pattern any(std::size_t slot);
[[nodiscard]] Pattern number(double value);  // an integer or a float that is constant
[[nodiscard]] Pattern call(Op op, std::vector<Pattern> args);
[[nodiscard]] Pattern either(Pattern a, Pattern b);

// What the slots of a pattern hold. Valid until a node is changed.
class Match {
 public:
  [[nodiscard]] bool has(std::size_t slot) const { return args_.at(slot) != nullptr; }
  [[nodiscard]] const Arg& arg(std::size_t slot) const { return *args_.at(slot); }
  [[nodiscard]] const Node& node(std::size_t slot) const { return *nodes_.at(slot); }

 private:
  friend class Rewriter;
  std::array<const Arg*, kMostSlots> args_{};
  std::array<const Node*, kMostSlots> nodes_{};
};

// Over every block of a graph. Who makes a value and how often it is read is current after every
// change that is made through it; both cost nothing to ask. Nodes stay where they are until it
// ends; then those that were erased go.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  using Visit = std::function<bool(Rewriter& rewriter, Node& node)>;
  // Calls `visit` for every node in the order of execution, bodies after the node they belong to;
  // it says whether it changed something. Returns how often it did.
  std::size_t each(const Visit& visit);
  // For rewrites that look at a block as a whole.
  using VisitBlock = std::function<std::size_t(Rewriter& rewriter, std::vector<Node>& nodes)>;
  std::size_t each_block(const VisitBlock& visit);

  [[nodiscard]] std::optional<Match> match(const Pattern& pattern, const Node& node) const;

  // nullptr for inputs, constants and what a body is given.
  [[nodiscard]] const Node* producer(ValueId id) const { return producers_[id]; }
  [[nodiscard]] Node* producer(ValueId id) { return producers_[id]; }
  // Reads by arguments, outputs and symbols.
  [[nodiscard]] std::size_t uses(ValueId id) const { return uses_[id]; }

  // Another operator and other arguments, for the same results.
  void become(Node& node, OpName op, std::vector<Arg> args);
  // The same with other results, which nobody else makes any more.
  void become(Node& node, OpName op, std::vector<Arg> args, std::vector<ValueId> outputs);
  // The node's results are made elsewhere, or nowhere.
  void erase(Node& node);
  // Erases what makes the value and is read by nobody, and so on with what it read itself.
  void sweep(ValueId id);

  // A constant that the graph did not have.
  [[nodiscard]] ValueId add_constant(Dtype dtype, Constant constant, std::string name);

  [[nodiscard]] Graph& graph() { return graph_; }

 private:
  [[nodiscard]] bool fits(const Pattern& pattern, const Arg& arg, Match& found) const;
  [[nodiscard]] bool fits(const Pattern& pattern, const Node& node, Match& found) const;
  void count(std::vector<Node>& nodes);
  void count(const Arg& arg, int by);
  std::size_t visit_blocks(std::vector<Node>& nodes, const VisitBlock& visit);

  Graph& graph_;
  std::vector<Node*> producers_;  // by value
  std::vector<std::size_t> uses_;
};

}  // namespace fairlead
