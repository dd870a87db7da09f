// Storage made functional: views follow the base they were cut from, writes make new versions of
// it.
//
// Rules
//  1. Every run value is a root (its own storage) or a view: one view operator applied to its
//  parent.
//  2. A root has a current SSA value and a version. A write makes a new SSA value and a new
//  version.
//  3. Reading a view whose version is behind its root's applies its view operator again.
//  4. Writing a view scatters the new content into its parent, up to the root.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/trace/run.h"

namespace fairlead {

class Functional {
 public:
  explicit Functional(Graph& graph, std::size_t value_count = 0)
      : graph_(graph), states_(value_count) {}

  [[nodiscard]] bool defined(RunValue v) const {
    return static_cast<std::size_t>(v) < states_.size() && states_[v].ssa != kNoValue;
  }
  // A value with storage of its own.
  void define_root(RunValue v, ValueId ssa);
  // A view of `parent`: result number `position` of node `node` of the graph.
  void define_view(RunValue v, RunValue parent, std::size_t node, std::size_t position);
  // The SSA value that holds v's content now; may append nodes.
  [[nodiscard]] ValueId read(RunValue v);
  // v's content becomes `updated`; throws Error(kUnsupported) where the view cannot be written
  // through.
  void write(RunValue v, ValueId updated);
  [[nodiscard]] bool written(RunValue v) const { return states_[root_of(v)].version > 0; }

 private:
  struct State {
    ValueId ssa = kNoValue;
    std::uint32_t version = 0;  // of the root when `ssa` was made
    RunValue parent = kNoRunValue;
    std::size_t node = 0;
    std::size_t position = 0;
  };
  [[nodiscard]] RunValue root_of(RunValue v) const;
  void reserve(RunValue v);

  Graph& graph_;
  std::vector<State> states_;
};

}  // namespace fairlead
