// Fusions: passes for one runtime, which replace a structure of operators by one operator that only
// it has, and keep account of what they did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/passes/target.h"

namespace fairlead {

// What became of one kind of fusion in a program.
struct FusionRow {
  std::string kind;                            // the operator that it writes: "MultiHeadAttention"
  std::size_t count = 0;                       // how often it was done
  std::map<std::string, std::size_t> refused;  // why it was not, and how often
};

// A size that a fused operator does not take, though the model does: the file stops there.
struct FusionRequirement {
  std::string kind;
  Requirement required;
};  // where it goes by values, `holds` says at which sizes it holds for all of them

class FusionLog {
 public:
  FusionLog() = default;
  explicit FusionLog(const Target& target)
      : left_out_(target.left_out.begin(), target.left_out.end()), padding_(target.padding) {}

  // Whether this kind is to be done at all.
  [[nodiscard]] bool wants(std::string_view kind) const { return !left_out_.contains(kind); }
  // Whether rows of a prompt may begin at different positions.
  [[nodiscard]] bool padding() const { return padding_; }
  void fused(std::string_view kind) { ++row(kind).count; }
  void refused(std::string_view kind, std::string_view why) {
    ++row(kind).refused[std::string(why)];
  }
  // What an operator asks of sizes or values: the file stops elsewhere. Said once.
  void require(std::string_view kind, const Requirement& required);
  // Kinds whose requirements do not hold at these sizes, by SymbolId.
  [[nodiscard]] std::vector<std::string> refused_at(const ExprPool& pool,
                                                    std::span<const std::int64_t> sizes) const;

  [[nodiscard]] const std::vector<FusionRow>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<FusionRequirement>& requirements() const { return requirements_; }

 private:
  FusionRow& row(std::string_view kind);

  std::set<std::string, std::less<>> left_out_;
  bool padding_ = true;
  std::vector<FusionRow> rows_;  // in the order of their first mention
  std::vector<FusionRequirement> requirements_;
};

struct Fusion {
  std::string_view name;
  std::string_view ensures;
  std::size_t (*run)(Graph& graph, FusionLog& log);
  int since;  // the first version of ONNX Runtime, 1.x, whose kernels take what is written
};

// In the order they run: later ones take in what earlier ones made. Every one takes a checked graph
// and leaves a checked one.
[[nodiscard]] std::span<const Fusion> fusions();

}  // namespace fairlead
