// Functions by operator: those of a family's rows, looked up by the row of a node.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "fairlead/aten/operators.h"
#include "fairlead/base/error.h"

namespace fairlead {

template <typename Rule>
struct RuleRow {
  std::string_view op;  // "aten.select.int"
  Rule rule;
};

template <typename Rule>
class RuleTable {
 public:
  RuleTable(std::initializer_list<std::span<const RuleRow<Rule>>> families)
      : rules_(operators().size(), Rule{}) {
    for (const auto& family : families) {
      for (const RuleRow<Rule>& row : family) add(row);
    }
  }

  // Nothing (a null pointer) where there is none.
  [[nodiscard]] Rule of(const OpName& op) const {
    return op.row() == nullptr ? Rule{} : rules_[place(*op.row())];
  }

 private:
  void add(const RuleRow<Rule>& row) {
    const Operator* op = find_operator(row.op);
    FAIRLEAD_CHECK(op != nullptr, "no operator is called " + std::string(row.op));
    FAIRLEAD_CHECK(rules_[place(*op)] == Rule{}, "two rules for " + std::string(row.op));
    rules_[place(*op)] = row.rule;
  }
  static std::size_t place(const Operator& row) {
    return static_cast<std::size_t>(&row - operators().data());
  }

  std::vector<Rule> rules_;
};

}  // namespace fairlead
