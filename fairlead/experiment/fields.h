// The fields of steps, answers and facts, one list each: transcripts write and read them by it, and
// the bindings show them by it. Enumerations are their names.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "fairlead/experiment/facts.h"
#include "fairlead/experiment/steps.h"

namespace fairlead {

template <typename T, typename M>
struct Field {
  const char* name;
  M T::*member;
};

template <typename T, typename M>
constexpr Field<T, M> field(const char* name, M T::*member) {
  return {name, member};
}

template <typename E>
struct EnumNames;  // ::names, in order

#define FAIRLEAD_NAMES(Enum, ...)                                                 \
  template <>                                                                     \
  struct EnumNames<Enum> {                                                        \
    static constexpr auto names = std::to_array<std::string_view>({__VA_ARGS__}); \
  }

// clang-format off
FAIRLEAD_NAMES(DimRequest::Kind, "auto", "static", "dynamic");
FAIRLEAD_NAMES(Role, "other", "cache", "tokens");
FAIRLEAD_NAMES(Input::Kind, "sizes", "call", "other", "checked", "next");
FAIRLEAD_NAMES(Check::Kind, "call", "values", "sizes");
FAIRLEAD_NAMES(Built::Kind, "size", "value", "key", "rival");
FAIRLEAD_NAMES(Check::How, "own", "integers", "traced");
FAIRLEAD_NAMES(Look::What, "operators", "rounded", "nudged", "tied", "repeated", "outside", "state");
FAIRLEAD_NAMES(Checked::Outcome, "equal", "differs", "failed", "stopped", "refused", "unable", "absent");
FAIRLEAD_NAMES(ErrorCode, "invalid input", "unsupported", "diverged", "unsolved", "discrepancy", "io", "parse", "internal");
FAIRLEAD_NAMES(Why, "none", "branches", "refused", "unsolved", "differs", "unsupported", "failed", "too large", "untried",
               "full", "ends", "outer", "decided", "guarded", "plain", "empty", "constant", "unchosen", "forgets",
               "outside", "unsteady", "overflows", "rounds", "jumps", "nothing", "traced", "integers", "package", "remembers");
FAIRLEAD_NAMES(FactKind, "fixed", "least", "most", "required", "doubtful", "solve for", "given up", "opened", "closed",
               "untaken", "plain", "forgets", "unfused", "unproven");
// clang-format on
#undef FAIRLEAD_NAMES

#define FAIRLEAD_FIELD(name) field(#name, &Here::name)
#define FAIRLEAD_FIELDS(Type, ...)       \
  constexpr auto fields(const Type*) {   \
    using Here = Type;                   \
    return std::make_tuple(__VA_ARGS__); \
  }                                      \
  static_assert(true)

// clang-format off
FAIRLEAD_FIELDS(Place, FAIRLEAD_FIELD(leaf), FAIRLEAD_FIELD(axis));
FAIRLEAD_FIELDS(DimRequest, FAIRLEAD_FIELD(kind), FAIRLEAD_FIELD(name), FAIRLEAD_FIELD(min), FAIRLEAD_FIELD(max));
FAIRLEAD_FIELDS(Leaf, FAIRLEAD_FIELD(name), FAIRLEAD_FIELD(requests));
FAIRLEAD_FIELDS(EmptyDim, FAIRLEAD_FIELD(leaf), FAIRLEAD_FIELD(axis), FAIRLEAD_FIELD(text));
FAIRLEAD_FIELDS(Request, FAIRLEAD_FIELD(leaves), FAIRLEAD_FIELD(empty), FAIRLEAD_FIELD(roles), FAIRLEAD_FIELD(calls), FAIRLEAD_FIELD(max_size),
                FAIRLEAD_FIELD(weight_bytes), FAIRLEAD_FIELD(bounded), FAIRLEAD_FIELD(strict), FAIRLEAD_FIELD(verify),
                FAIRLEAD_FIELD(several), FAIRLEAD_FIELD(cache), FAIRLEAD_FIELD(plain));
FAIRLEAD_FIELDS(Input, FAIRLEAD_FIELD(kind), FAIRLEAD_FIELD(sizes), FAIRLEAD_FIELD(number),
                FAIRLEAD_FIELD(of));
FAIRLEAD_FIELDS(Open, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(parent), FAIRLEAD_FIELD(input), FAIRLEAD_FIELD(plain), FAIRLEAD_FIELD(forgets));
FAIRLEAD_FIELDS(RunModel, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(input), FAIRLEAD_FIELD(reference),
                FAIRLEAD_FIELD(heavy), FAIRLEAD_FIELD(spare), FAIRLEAD_FIELD(brief));
FAIRLEAD_FIELDS(Foresee, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(run), FAIRLEAD_FIELD(sizes));
constexpr auto fields(const RunPlain*) { return std::make_tuple(); }
FAIRLEAD_FIELDS(NextCall, FAIRLEAD_FIELD(program));
FAIRLEAD_FIELDS(Build, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(runs), FAIRLEAD_FIELD(values), FAIRLEAD_FIELD(kept));
FAIRLEAD_FIELDS(Ask, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(ranges));
FAIRLEAD_FIELDS(Require, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(question));
FAIRLEAD_FIELDS(Emit, FAIRLEAD_FIELD(programs), FAIRLEAD_FIELD(without));
FAIRLEAD_FIELDS(Check, FAIRLEAD_FIELD(program), FAIRLEAD_FIELD(kind), FAIRLEAD_FIELD(how), FAIRLEAD_FIELD(number), FAIRLEAD_FIELD(part),
                FAIRLEAD_FIELD(values), FAIRLEAD_FIELD(seed), FAIRLEAD_FIELD(far));
FAIRLEAD_FIELDS(Look, FAIRLEAD_FIELD(what), FAIRLEAD_FIELD(at), FAIRLEAD_FIELD(output));
FAIRLEAD_FIELDS(Outside, FAIRLEAD_FIELD(what), FAIRLEAD_FIELD(place), FAIRLEAD_FIELD(source));
FAIRLEAD_FIELDS(Finding, FAIRLEAD_FIELD(number), FAIRLEAD_FIELD(code), FAIRLEAD_FIELD(why), FAIRLEAD_FIELD(by_values), FAIRLEAD_FIELD(output),
                FAIRLEAD_FIELD(text), FAIRLEAD_FIELD(at), FAIRLEAD_FIELD(before), FAIRLEAD_FIELD(now), FAIRLEAD_FIELD(outside));
constexpr auto fields(const Done*) { return std::make_tuple(); }
FAIRLEAD_FIELDS(Failed, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(finding), FAIRLEAD_FIELD(unknown));
FAIRLEAD_FIELDS(Problem, FAIRLEAD_FIELD(number), FAIRLEAD_FIELD(code), FAIRLEAD_FIELD(cause));
FAIRLEAD_FIELDS(CallFacts, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(found), FAIRLEAD_FIELD(sizes), FAIRLEAD_FIELD(words));
FAIRLEAD_FIELDS(Ran, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(run), FAIRLEAD_FIELD(parted), FAIRLEAD_FIELD(absent),
                FAIRLEAD_FIELD(visible), FAIRLEAD_FIELD(enough), FAIRLEAD_FIELD(untold), FAIRLEAD_FIELD(before), FAIRLEAD_FIELD(now), FAIRLEAD_FIELD(error), FAIRLEAD_FIELD(operators));
FAIRLEAD_FIELDS(Foreseen, FAIRLEAD_FIELD(first));
FAIRLEAD_FIELDS(Built::Question, FAIRLEAD_FIELD(words), FAIRLEAD_FIELD(source), FAIRLEAD_FIELD(kind), FAIRLEAD_FIELD(form));
FAIRLEAD_FIELDS(Built, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(fragile), FAIRLEAD_FIELD(reads), FAIRLEAD_FIELD(fitted),
                FAIRLEAD_FIELD(operators), FAIRLEAD_FIELD(questions), FAIRLEAD_FIELD(thin), FAIRLEAD_FIELD(unseen));
FAIRLEAD_FIELDS(Questions::Other, FAIRLEAD_FIELD(question), FAIRLEAD_FIELD(symbol), FAIRLEAD_FIELD(bound), FAIRLEAD_FIELD(by_values), FAIRLEAD_FIELD(spare), FAIRLEAD_FIELD(rest), FAIRLEAD_FIELD(key), FAIRLEAD_FIELD(family),
                FAIRLEAD_FIELD(setting));
FAIRLEAD_FIELDS(Questions, FAIRLEAD_FIELD(others));
FAIRLEAD_FIELDS(Met, FAIRLEAD_FIELD(met));
FAIRLEAD_FIELDS(Emitted, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(culprit), FAIRLEAD_FIELD(constants),
                FAIRLEAD_FIELD(largest), FAIRLEAD_FIELD(fused));
FAIRLEAD_FIELDS(Checked, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(outcome), FAIRLEAD_FIELD(number), FAIRLEAD_FIELD(parts), FAIRLEAD_FIELD(draws), FAIRLEAD_FIELD(changes),
                FAIRLEAD_FIELD(at), FAIRLEAD_FIELD(values), FAIRLEAD_FIELD(output), FAIRLEAD_FIELD(text), FAIRLEAD_FIELD(abs), FAIRLEAD_FIELD(scale),
                FAIRLEAD_FIELD(tolerance), FAIRLEAD_FIELD(inputs), FAIRLEAD_FIELD(least), FAIRLEAD_FIELD(most), FAIRLEAD_FIELD(told), FAIRLEAD_FIELD(not_finite),
                FAIRLEAD_FIELD(empty), FAIRLEAD_FIELD(guarded));
FAIRLEAD_FIELDS(Looked, FAIRLEAD_FIELD(problem), FAIRLEAD_FIELD(known), FAIRLEAD_FIELD(parted), FAIRLEAD_FIELD(generator), FAIRLEAD_FIELD(published), FAIRLEAD_FIELD(before), FAIRLEAD_FIELD(now),
                FAIRLEAD_FIELD(source), FAIRLEAD_FIELD(moved), FAIRLEAD_FIELD(ratio), FAIRLEAD_FIELD(text), FAIRLEAD_FIELD(outside));
FAIRLEAD_FIELDS(Evidence, FAIRLEAD_FIELD(why), FAIRLEAD_FIELD(before), FAIRLEAD_FIELD(now), FAIRLEAD_FIELD(text), FAIRLEAD_FIELD(at),
                FAIRLEAD_FIELD(key), FAIRLEAD_FIELD(source), FAIRLEAD_FIELD(symbol), FAIRLEAD_FIELD(differs), FAIRLEAD_FIELD(moves));
FAIRLEAD_FIELDS(Fact, FAIRLEAD_FIELD(of), FAIRLEAD_FIELD(place), FAIRLEAD_FIELD(kind), FAIRLEAD_FIELD(size),
                FAIRLEAD_FIELD(evidence), FAIRLEAD_FIELD(setting), FAIRLEAD_FIELD(taken));
// clang-format on
#undef FAIRLEAD_FIELDS
#undef FAIRLEAD_FIELD

// The names of steps and answers, in the order of their variants.
inline constexpr auto kStepNames =
    std::to_array<std::string_view>({"Open", "RunModel", "Foresee", "RunPlain", "NextCall", "Build",
                                     "Ask", "Require", "Emit", "Check", "Look", "Done", "Failed"});
inline constexpr auto kAnswerNames = std::to_array<std::string_view>(
    {"CallFacts", "Ran", "Foreseen", "Built", "Questions", "Met", "Emitted", "Checked", "Looked"});
static_assert(kStepNames.size() == std::variant_size_v<Step>);
static_assert(kAnswerNames.size() == std::variant_size_v<Answer>);

}  // namespace fairlead
