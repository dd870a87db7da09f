// Defaults as the table of operators writes them.
#include "fairlead/pt2/defaults.h"

#include <algorithm>
#include <charconv>

namespace fairlead::pt2 {

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
