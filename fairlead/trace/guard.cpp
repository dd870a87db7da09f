// Answers of guards, and what they are as expressions and as words.
#include "fairlead/trace/guard.h"

#include <map>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

Compare opposite(Compare compare) {
  switch (compare) {
    case Compare::kLess:
      return Compare::kGreaterEqual;
    case Compare::kLessEqual:
      return Compare::kGreater;
    case Compare::kEqual:
      return Compare::kNotEqual;
    case Compare::kNotEqual:
      return Compare::kEqual;
    case Compare::kGreater:
      return Compare::kLessEqual;
    case Compare::kGreaterEqual:
      return Compare::kLess;
    case Compare::kKey:
    case Compare::kCount:
      break;
  }
  return compare;
}

// form >= number, or form <= number
struct Bound {
  Expr form;
  bool lower;
  std::int64_t number;
};

// What a guard that holds says about what stands in it beside a number; nullopt for equalities.
std::optional<Bound> bound_of(ExprPool& pool, const ProgramGuard& guard) {
  if (guard.right == nullptr || pool.is_real(guard.left) || pool.is_real(guard.right)) {
    return std::nullopt;
  }
  const Compare held = guard.outcome ? guard.compare : opposite(guard.compare);
  const bool less = held == Compare::kLess || held == Compare::kLessEqual;
  const bool more = held == Compare::kGreater || held == Compare::kGreaterEqual;
  if (!less && !more) return std::nullopt;
  const bool strict = held == Compare::kLess || held == Compare::kGreater;
  try {
    const Expr difference = pool.sub(guard.left, guard.right);
    std::int64_t number = 0;
    if (difference->kind == ExprKind::kAdd && is_const(difference->args.back())) {
      number = difference->args.back()->value;
    }
    const Expr form = pool.sub(difference, pool.constant(number));
    // form + number >= 0, or <= 0, or by one more
    return Bound{form, more, -number + (strict ? (more ? 1 : -1) : 0)};
  } catch (const Error&) {  // an overflow
    return std::nullopt;
  }
}

}  // namespace

std::optional<bool> answer_at(const ExprPool& pool, const ProgramGuard& guard,
                              const std::vector<std::int64_t>& values) {
  if (guard.right == nullptr) return std::nullopt;  // a key
  try {
    return answer(guard.compare, pool.number(guard.left, values), pool.number(guard.right, values));
  } catch (const Error&) {  // a division by 0, an overflow
    return std::nullopt;
  }
}

Expr holds(ExprPool& pool, const ProgramGuard& guard) {
  if (guard.right == nullptr) return nullptr;
  const auto no = [&](Expr flag) { return pool.sub(pool.constant(1), flag); };
  switch (guard.outcome ? guard.compare : opposite(guard.compare)) {
    case Compare::kLess:
      return pool.less(guard.left, guard.right);
    case Compare::kLessEqual:
      return no(pool.less(guard.right, guard.left));
    case Compare::kEqual:
      return pool.same(guard.left, guard.right);
    case Compare::kNotEqual:
      return no(pool.same(guard.left, guard.right));
    case Compare::kGreater:
      return pool.less(guard.right, guard.left);
    case Compare::kGreaterEqual:
      return no(pool.less(guard.left, guard.right));
    case Compare::kKey:
    case Compare::kCount:
      break;
  }
  return nullptr;
}

Expr all_hold(ExprPool& pool, std::span<const ProgramGuard> guards) {
  Expr all = nullptr;
  for (const ProgramGuard& guard : guards) {
    const Expr held = holds(pool, guard);
    all = all == nullptr ? held : pool.min(all, held);
  }
  return all;
}

namespace {

Compare held(const ProgramGuard& guard) {
  return guard.outcome ? guard.compare : opposite(guard.compare);
}

void put_form(const ExprPool& pool, Expr e, std::string& form) {
  const bool symbol = e->kind == ExprKind::kSymbol;
  const auto number =
      symbol ? static_cast<std::int64_t>(pool.symbols()[static_cast<SymbolId>(e->value)].kind)
             : e->value;
  form += '(' + std::to_string(static_cast<int>(e->kind)) + ' ' + std::to_string(number);
  for (const Expr arg : e->args) put_form(pool, arg, form);
  form += ')';
}

}  // namespace

std::string words_of(const ExprPool& pool, const ProgramGuard& guard) {
  if (guard.right == nullptr) return pool.to_string(guard.left) + " as a key";
  constexpr const char* kSigns[] = {" < ", " <= ", " == ", " != ", " > ", " >= "};
  return pool.to_string(guard.left) + kSigns[static_cast<std::size_t>(held(guard))] +
         pool.to_string(guard.right);
}

std::string form_of(const ExprPool& pool, const ProgramGuard& guard) {
  std::string form;
  put_form(pool, guard.left, form);
  if (guard.right == nullptr) return form;
  form += std::to_string(static_cast<int>(held(guard)));
  put_form(pool, guard.right, form);
  return form;
}

std::vector<std::size_t> not_implied(ExprPool& pool, const std::vector<ProgramGuard>& guards) {
  std::vector<std::optional<Bound>> bounds;
  for (const ProgramGuard& guard : guards) bounds.push_back(bound_of(pool, guard));
  // The tightest of each form; where several say the same the first, or the last guard of all.
  std::map<std::pair<Expr, bool>, std::size_t> tightest;
  for (std::size_t k = 0; k < guards.size(); ++k) {
    if (!bounds[k]) continue;
    std::size_t& best = tightest.try_emplace({bounds[k]->form, bounds[k]->lower}, k).first->second;
    const std::int64_t gain = bounds[k]->lower ? bounds[k]->number - bounds[best]->number
                                               : bounds[best]->number - bounds[k]->number;
    if (gain > 0 || (gain == 0 && k + 1 == guards.size())) best = k;
  }
  std::vector<std::size_t> kept;
  for (std::size_t k = 0; k < guards.size(); ++k) {
    const bool last = k + 1 == guards.size();
    if (last || !bounds[k] || tightest.at({bounds[k]->form, bounds[k]->lower}) == k) {
      kept.push_back(k);
    }
  }
  return kept;
}

}  // namespace fairlead
