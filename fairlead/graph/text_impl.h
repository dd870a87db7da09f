// The text of graphs: its grammar and its words, for the writer and the reader.
//
//   line     = symbol | input | constant | node | body | output | "#" anything | nothing
//   symbol   = "symbol" name ":" ("size" | "data" | "read") ["=" value "[" number "]" ["//"
//   number]] input    = "input" typed constant = "constant" typed ["strides" "[" number,* "]"] node
//   = ("()" | result ("," result)*) "=" ["random"] op "(" arg,* ")" ["in" string] ["at" string]
//   result   = typed | "None"
//   output   = "output" string "=" value
//   body     = after its node: "body", ("parameter" typed)*, node*, "result" value,*, "end"
//   typed    = value [string] ":" dtype "[" expression,* "]"
//   value    = "%" number
//   arg      = value | expression | float ["*(" expression ")" ["^" float]] | "True" | "False" |
//   "None"
//            | dtype | string | "[" arg,* "]"
//
// A float has a point, an exponent, or is inf or nan. An expression that begins with a word that
// means something else here stands in parentheses.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "fairlead/graph/graph.h"

namespace fairlead {

inline constexpr std::array<std::pair<std::string_view, SymbolKind>, 4> kSymbolKinds = {{
    {"size", SymbolKind::kSize},
    {"data", SymbolKind::kData},
    {"read", SymbolKind::kRead},
    {"number", SymbolKind::kReadReal},
}};

[[nodiscard]] inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Letters of operator names, keywords and plain symbol names.
[[nodiscard]] inline bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

[[nodiscard]] inline std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && in_word(text[end])) ++end;
  return text.substr(at, end - at);
}

[[nodiscard]] inline bool is_plain(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && name[0] != '.' && word_at(name, 0) == name;
}

// Words that an argument may begin with and that are no symbols.
[[nodiscard]] inline bool is_reserved(std::string_view word) {
  return word == "None" || word == "True" || word == "False" || word == "inf" || word == "nan" ||
         parse_dtype(word).has_value();
}

}  // namespace fairlead
