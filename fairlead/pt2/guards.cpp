// Guards such as "L['x'].size()[0] == L['y'].size()[0]": which symbols are equal to others.
//
// 1. Every L[..].size()[k] is replaced by the input's size; a guard with anything else left is not
// used.
// 2. a == b gives a - b = 0; a <= b and b <= a together do too.
// 3. An equation with a symbol of coefficient 1 or -1 is solved for it.
#include <algorithm>
#include <set>

#include "fairlead/base/error.h"
#include "fairlead/pt2/import_impl.h"

namespace fairlead::pt2 {
namespace {

// L['past']['key_0'].size()[2] -> "past_key_0" and 2; nullopt where it is something else.
std::optional<Expr> size_at(std::string_view text, std::size_t& at, const Guards& guards) {
  std::string name;
  at += 1;
  while (at < text.size() && text[at] == '[') {
    const std::size_t end = text.find(']', at);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view key = text.substr(at + 1, end - at - 1);
    if (key.size() >= 2 && (key.front() == '\'' || key.front() == '"')) {
      key = key.substr(1, key.size() - 2);
    }
    name += (name.empty() ? "" : "_") + std::string(key);
    at = end + 1;
  }
  constexpr std::string_view kSize = ".size()[";
  if (!text.substr(at).starts_with(kSize)) return std::nullopt;
  at += kSize.size();
  std::size_t axis = 0;
  std::size_t digits = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && digits++ < 4) {
    axis = axis * 10 + static_cast<std::size_t>(text[at++] - '0');
  }
  if (digits == 0 || at == text.size() || text[at++] != ']') return std::nullopt;
  const auto it = guards.sizes.find(name);
  if (it == guards.sizes.end() || axis >= it->second.size()) return std::nullopt;
  return it->second[axis];
}

std::optional<Expr> side(std::string_view text, ExprPool& pool, const Guards& guards) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("L[")) {
      const auto size = size_at(text, at, guards);
      if (!size) return std::nullopt;
      plain += "(" + pool.to_string(*size) + ")";
    } else {
      plain += text[at++];
    }
  }
  const std::size_t known = pool.symbols().size();
  try {
    const Expr e = pool.parse(plain);
    if (pool.symbols().size() == known) return e;
  } catch (const Error&) {
    // A guard in words of its own: not needed to read the program.
  }
  return std::nullopt;
}

struct Relation {
  Expr difference;  // left - right
  bool equal;       // else: left <= right
};

std::optional<Relation> relation(std::string_view text, ExprPool& pool, const Guards& guards) {
  for (const std::string_view sign : {"==", "<=", ">="}) {
    const std::size_t at = text.find(sign);
    if (at == std::string_view::npos) continue;
    const auto left = side(text.substr(0, at), pool, guards);
    const auto right = side(text.substr(at + 2), pool, guards);
    if (!left || !right) return std::nullopt;
    const Expr difference = sign == ">=" ? pool.sub(*right, *left) : pool.sub(*left, *right);
    return Relation{difference, sign == "=="};
  }
  return std::nullopt;
}

bool has_minus(Expr e) {
  if (is_const(e) || e->kind == ExprKind::kMul) return e->value < 0;
  return e->kind == ExprKind::kAdd && std::any_of(e->args.begin(), e->args.end(), has_minus);
}

// The last symbol that `zero` gives as an expression of the others, if possible one without a
// minus: attention = past + sequence, not past = attention - sequence.
std::optional<std::pair<SymbolId, Expr>> solve_for_one(ExprPool& pool, Expr zero) {
  const std::vector<SymbolId> ids = pool.symbols_of(zero);
  for (const bool plain : {true, false}) {
    for (std::size_t k = ids.size(); k-- > 0;) {
      const Expr own = pool.symbol(pool.symbols()[ids[k]].name);
      for (const Expr answer : {pool.sub(own, zero), pool.add(own, zero)}) {
        const std::vector<SymbolId> inside = pool.symbols_of(answer);
        const bool free = std::find(inside.begin(), inside.end(), ids[k]) == inside.end();
        if (free && !(plain && has_minus(answer))) return std::pair(ids[k], answer);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Expr> solve_guards(ExprPool& pool, const Guards& guards, dom::object program) {
  std::vector<Expr> zeros;
  std::set<Expr> not_above;  // expressions that are at most 0
  dom::array texts;
  if (program["guards_code"].get(texts) == simdjson::SUCCESS) {
    for (const dom::element item : texts) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) continue;
      const auto found = relation(text, pool, guards);
      if (!found) continue;
      if (found->equal || not_above.contains(pool.neg(found->difference))) {
        zeros.push_back(found->difference);
      }
      not_above.insert(found->difference);
    }
  }
  std::vector<Expr> solved(pool.symbols().size(), nullptr);
  for (Expr zero : zeros) {
    zero = pool.substitute(zero, solved);
    const auto answer = solve_for_one(pool, zero);
    if (!answer) continue;
    std::vector<Expr> one(pool.symbols().size(), nullptr);
    one[answer->first] = answer->second;
    for (Expr& e : solved) {
      if (e != nullptr) e = pool.substitute(e, one);
    }
    solved[answer->first] = answer->second;
  }
  return solved;
}

}  // namespace fairlead::pt2
