// Answers of guards, and what they are as expressions and as words.
#include "fairlead/trace/guard.h"

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

}  // namespace

std::optional<bool> answer_at(const ExprPool& pool, const ProgramGuard& guard,
                              const std::vector<std::int64_t>& values) {
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

std::string words_of(const ExprPool& pool, const ProgramGuard& guard) {
  if (guard.right == nullptr) return pool.to_string(guard.left) + " as a key";
  constexpr const char* kSigns[] = {" < ", " <= ", " == ", " != ", " > ", " >= "};
  const Compare held = guard.outcome ? guard.compare : opposite(guard.compare);
  return pool.to_string(guard.left) + kSigns[static_cast<std::size_t>(held)] +
         pool.to_string(guard.right);
}

}  // namespace fairlead
