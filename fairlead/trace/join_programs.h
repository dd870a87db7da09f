// Several programs of one model as one, with what is assumed of all of them; see graph/join.h.
#pragma once

#include <span>
#include <vector>

#include "fairlead/graph/bounds.h"
#include "fairlead/trace/program.h"

namespace fairlead {

struct ProgramPart {
  const Program* program = nullptr;
  std::vector<SizeBounds> bounds = {};  // of its own symbols
};

// An answer that one program assumes and another has otherwise is not assumed of the whole, where
// each asks it once at that line. Throws as `join` does.
[[nodiscard]] Program join_programs(std::span<const ProgramPart> parts);

}  // namespace fairlead
