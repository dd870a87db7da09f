// Finds and takes apart the rows of the generated table.
#include "fairlead/pt2/schemas.h"

#include <charconv>

namespace fairlead::pt2 {

const SchemaRow* find_schema(std::string_view name) {
  static const std::unordered_map<std::string_view, const SchemaRow*> index = [] {
    std::unordered_map<std::string_view, const SchemaRow*> map;
    for (const SchemaRow& row : schema_rows()) map.emplace(row.name, &row);
    return map;
  }();
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

std::vector<Param> params_of(const SchemaRow& row) {
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

Arg default_arg(std::string_view text, ExprPool& pool) {
  Arg arg;
  if (text == "None") return arg;
  if (text == "True" || text == "False") {
    arg.kind = ArgKind::kBool;
    arg.number = text == "True" ? 1 : 0;
    return arg;
  }
  if (text.starts_with('[')) {
    arg.kind = ArgKind::kList;
    text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      arg.items.push_back(default_arg(text.substr(0, end), pool));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return arg;
  }
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end) {
    arg.kind = ArgKind::kInt;
    arg.expr = pool.constant(whole);
    return arg;
  }
  if (std::from_chars(text.data(), end, arg.number).ptr == end) {
    arg.kind = ArgKind::kFloat;
    return arg;
  }
  arg.kind = ArgKind::kString;
  arg.text = text;
  return arg;
}

}  // namespace fairlead::pt2
