// A question that a model asked about its sizes, in the program's expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fairlead/symbol/expr.h"
#include "fairlead/trace/carried.h"

namespace fairlead {

// A question about sizes, or about values that were read.
struct ProgramGuard {
  Compare compare = Compare::kEqual;
  bool outcome = true;  // in every run, or in the first that asked it
  Expr left = nullptr;
  Expr right = nullptr;  // null where a size was used as a key
  std::string module = {};
  std::string source = {};
  // Not the model's question but ours: two expressions that are equal in every run, of which one is
  // right.
  bool rival = false;
  bool both = false;  // it had both answers: in some runs this, in some the other
};

// The answer at a setting; nullopt where it has no value there.
[[nodiscard]] std::optional<bool> answer_at(const ExprPool& pool, const ProgramGuard& guard,
                                            const std::vector<std::int64_t>& values);

// 1 where the guard has the answer that it had in the runs, else 0; null for a key.
[[nodiscard]] Expr holds(ExprPool& pool, const ProgramGuard& guard);
// The same for all of them at once; null for none. The least of the flags, since a product of a
// dozen would have thousands of terms.
[[nodiscard]] Expr all_hold(ExprPool& pool, std::span<const ProgramGuard> guards);
// "n < m", as it held: the opposite comparison where the answer was no.
[[nodiscard]] std::string words_of(const ExprPool& pool, const ProgramGuard& guard);
// A key that the same question with the same answer has in every program of a model, whatever the
// numbers of the symbols there.
[[nodiscard]] std::string form_of(const ExprPool& pool, const ProgramGuard& guard);

// Which of these guards, all held at once, the others do not imply: of n >= 4 and n - 4 >= 4 the
// last. The last guard is always among them, and stays the last.
[[nodiscard]] std::vector<std::size_t> not_implied(ExprPool& pool,
                                                   const std::vector<ProgramGuard>& guards);

}  // namespace fairlead
