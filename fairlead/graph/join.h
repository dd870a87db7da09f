// Several programs of one model in one graph: the sizes of the inputs decide which of them runs.
//
// A model that goes another way at some size (one token to decode, a long input) is one program on
// each side. Joined, they are the branches of nested higher_order.cond nodes in a graph with the
// inputs and outputs they share; their constants are in it once.
//
//   pass %0 "x": float32[batch, 1]  and  %0 "x": float32[batch, sequence], sequence at least 2
//   to get  %0 "x": float32[batch, sequence]: the first program where sequence is 1, else the
//   second
//
//  1. A program takes the sizes that it has as numbers, and those within the bounds of its symbols.
//  2. A dimension keeps its expression where that is right for every program; else it is a symbol.
//  3. Where several programs take a call, the first runs; where none does, fairlead.require stops.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fairlead/graph/bounds.h"
#include "fairlead/graph/graph.h"

namespace fairlead {

struct JoinPart {
  const Graph* graph = nullptr;
  std::vector<SizeBounds> bounds = {};
};

// What a dimension of an input is called where no program has a name for it.
using DimName =
    std::function<std::string(const std::string& input, std::size_t axis, std::size_t rank)>;

// Throws Error(kDiverged) where the programs differ in names, types or ranks of inputs or outputs.
// The parts' pools may get more expressions; constants stay borrowed from where the parts have
// them.
[[nodiscard]] Graph join(std::span<const JoinPart> parts, const DimName& name = {});

}  // namespace fairlead
