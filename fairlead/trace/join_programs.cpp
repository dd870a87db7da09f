// Assumptions and written inputs of the parts, and their graphs joined.
#include "fairlead/trace/join_programs.h"

#include <algorithm>

#include "fairlead/graph/join.h"
#include "fairlead/probe/names.h"

namespace fairlead {
namespace {

bool same_question(const Assumption& a, const Assumption& b) {
  return a.answer && b.answer && a.source == b.source && a.module == b.module;
}

// Whether another program of the file is for the other answer.
bool is_answered_otherwise(const Assumption& assumed, const Program& program,
                           std::span<const ProgramPart> parts) {
  const auto alike = [&](const Assumption& a) { return same_question(assumed, a); };
  const auto& own = program.assumptions;
  if (std::count_if(own.begin(), own.end(), alike) != 1) return false;
  return std::any_of(parts.begin(), parts.end(), [&](const ProgramPart& part) {
    const auto& all = part.program->assumptions;
    return std::any_of(all.begin(), all.end(), [&](const Assumption& a) {
      return alike(a) && *a.answer != *assumed.answer;
    });
  });
}

}  // namespace

Program join_programs(std::span<const ProgramPart> parts) {
  Program joined;
  std::vector<JoinPart> graphs;
  for (const ProgramPart& part : parts) {
    const Program& program = *part.program;
    graphs.push_back({&program.graph, part.bounds});
    for (const Assumption& each : program.assumptions) {
      if (!is_answered_otherwise(each, program, parts)) joined.assumptions.push_back(each);
    }
    for (const std::string& name : program.written_inputs) {
      auto& written = joined.written_inputs;
      if (std::find(written.begin(), written.end(), name) == written.end()) written.push_back(name);
    }
    joined.ambiguous += program.ambiguous;
  }
  joined.graph = join(graphs, symbol_name);
  return joined;
}

}  // namespace fairlead
