// Runs that were given the answers of another run: `if pad > 0: x = F.pad(x, (0, pad))`.
//
// A model that leaves out what would do nothing executes another program there. Where it is told
// that it need not, and the two runs differ in operators that hand on what they are given, the
// program that executes them is right on both sides of the question.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "fairlead/trace/run.h"

namespace fairlead {

// Answers by line, operators so far, and which time it was asked there.
class AnswersByTurn {
 public:
  void add(const Guard& guard);
  void begin_again() { asked_.clear(); }
  // What was answered when this was asked; nullopt where it was not.
  [[nodiscard]] std::optional<bool> next(const Guard& guard);

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  [[nodiscard]] Key turn(const Guard& guard);

  std::map<Key, bool> known_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> asked_;
};

// The answers of a run to the questions of some lines, asked again in the same order.
class Answers {
 public:
  Answers() = default;
  // `lines`: string ids of sources.
  Answers(const Run& run, const std::vector<std::uint32_t>& lines);

  [[nodiscard]] bool empty() const { return lines_.empty(); }
  // The answer in place of `guard.outcome`, which is given where the run was not asked this.
  [[nodiscard]] bool answer(const Guard& guard);

 private:
  [[nodiscard]] bool is_given(const Guard& guard) const;

  std::vector<std::uint32_t> lines_;
  AnswersByTurn given_;
};

// The line of the question that made a run execute another operator at `op` than the reference; 0
// where none did.
[[nodiscard]] std::uint32_t deciding_line(const Run& reference, const Run& run, std::size_t op);

// Whether two runs on the same inputs compute the same, because they are the same operators with
// the same numbers but for those that hand on what they are given.
[[nodiscard]] bool same_but_neutral(const Vocabulary& vocabulary, const Run& a, const Run& b);

}  // namespace fairlead
