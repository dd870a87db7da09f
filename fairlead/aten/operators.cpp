// Puts the table together and finds its rows.
#include "fairlead/aten/operators.h"

#include <algorithm>
#include <unordered_map>

#include "fairlead/aten/operators_impl.h"

namespace fairlead {
namespace {

// Those that graphs hold stand first: their places are the values of Op.
std::vector<Operator> join() {
  std::vector<Operator> rows;
  const auto add = [&](std::span<const OperatorRow> from) {
    for (const OperatorRow& each : from) {
      Operator& row = rows.emplace_back();
      row.name = each.name;
      row.functional = each.functional;
      row.writes = each.writes;
      row.alias = each.alias;
      row.random = each.random;
      row.params = each.params;
      row.kinds = each.kinds;
    }
  };
  add(operator_rows());
  for (const OwnOperator& each : own_operators()) {
    Operator& row = rows.emplace_back();
    row.name = each.name;
    row.control = each.control;
  }
  add(writing_rows());
  annotate(rows);
  return rows;
}

}  // namespace

std::span<const Operator> operators() {
  static const std::vector<Operator> rows = join();
  return rows;
}

const Operator* find_operator(std::string_view name) {
  static const std::unordered_map<std::string_view, const Operator*> index = [] {
    std::unordered_map<std::string_view, const Operator*> map;
    for (const Operator& row : operators()) map.emplace(row.name, &row);
    return map;
  }();
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

std::vector<Param> params_of(const Operator& row) {
  std::vector<Param> params;
  std::string_view rest = row.params;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 2, rest.size()));
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
      params.push_back({text, false, {}});
    } else {
      params.push_back({text.substr(0, equals), true, text.substr(equals + 1)});
    }
  }
  return params;
}

OpName::OpName(std::string_view name) : row_(find_operator(name)) {
  if (row_ == nullptr && !name.empty()) own_ = std::make_shared<const std::string>(name);
}

}  // namespace fairlead
