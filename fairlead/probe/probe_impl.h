// The prober: its groups and stages. Several sources serve it, one per concern.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/base/task.h"
#include "fairlead/probe/probe.h"

namespace fairlead {

struct Group {
  std::vector<Place> places;
  std::int64_t base = 0;  // size in the base call
  std::int64_t unit = 1;  // the size is a multiple of it
  std::string name;       // the user's
  bool required = false;
  bool pinned = false;  // the user said what belongs together: not split
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
  bool dynamic = false;
  bool only_down = false;    // larger sizes are refused
  bool other_above = false;  // larger sizes execute another program
  bool other_below = false;  // sizes below `min` do
  std::string below;         // what the model raised below `min`
  bool shrunk = false;       // the base was larger
  bool served = false;       // the base is where another program is, which serves the example's
  FixedDim::Why why = FixedDim::Why::kRefused;
  std::string reason;         // why it is fixed
  int sum_of[2] = {-1, -1};   // it is the sum of these groups; the second may be absent
  std::int64_t sum_more = 0;  // plus this
};

class Prober {
 public:
  Prober(const ProbeRequest& request, const AskTrial& trial, const AskForesight* foresight)
      : request_(request), trial_(trial), foresight_(foresight), base_(request.calls.front()) {}

  Task<ProbeResult> run();

 private:
  using Answers = std::map<std::pair<int, Sizes>, TrialResult>;

  // Once more with what was answered before, at the sizes of the example.
  Prober(const ProbeRequest& request, const AskTrial& trial, const AskForesight* foresight,
         Answers answers, std::size_t trials)
      : request_(request),
        trial_(trial),
        foresight_(foresight),
        base_(request.calls.front()),
        trials_(trials),
        answers_(std::move(answers)) {}

  struct Kept {
    Sizes sizes;
    int run;
  };

  // That `places` of group `sum` are as large as a group and group `other` together.
  struct SumGuess {
    std::size_t sum;
    int other;
    std::vector<Place> places;
  };

  enum class Free {
    kNo,
    kAlone,
    kWithSums,  // the sums of its group are its own
  };

  // ---- groups, trials and moves ---------------------------------------------------------------

  void make_groups();
  [[nodiscard]] std::string where(const Group& group) const;
  [[nodiscard]] std::vector<std::vector<Place>> units(const Group& group) const;
  [[nodiscard]] static std::vector<std::vector<Place>> by_axis(const std::vector<Place>& places);
  [[nodiscard]] static std::vector<std::vector<Place>> by_leaf(const std::vector<Place>& places);
  [[nodiscard]] std::vector<std::vector<Place>> by_axis_and_rank(
      const std::vector<Place>& places) const;
  static bool contains(const std::vector<Place>& places, const Place& p);
  // A brief one may end like the reference after some hundred operators, and has no run then.
  Task<TrialResult> attempt(const Sizes& sizes, int reference, bool brief = false);
  Task<bool> foresees(Sizes& sizes, const Group& group);
  [[nodiscard]] bool late() const;
  static void put(Sizes& sizes, const Group& group, std::int64_t size);
  [[nodiscard]] std::int64_t size_in(const Sizes& sizes, const Group& group) const;
  void settle(Sizes& sizes) const;
  [[nodiscard]] std::int64_t sum_in(const Sizes& sizes, const Group& sum) const;
  [[nodiscard]] bool allowed(const Group& group, std::int64_t size) const;
  std::int64_t up(const Group& group, std::int64_t from);
  std::int64_t down(const Group& group, std::int64_t from);
  Task<bool> moves(Group& group, std::int64_t size, std::string& reason, bool brief = false);
  Task<bool> moves_visibly(Group& group, std::int64_t size, bool of_one, bool brief);
  Task<bool> moves_either_way(Group& group, std::string& reason);
  static FixedDim::Why why_of(const TrialResult& result);
  void refuse_unmet() const;
  void keep(const Sizes& sizes, int run);
  // Large sizes move by a share of themselves: (samples - 8) // 4 cannot be told from its
  // neighbours by sizes that are close together.
  static std::int64_t step(std::int64_t size) { return size / 12; }

  // ---- stages 1 and 2: one group at a time ----------------------------------------------------

  Task<void> leave_ones();
  Task<bool> leave_one(std::size_t g, bool own_program, std::string& refusal);
  Task<void> explore(std::size_t g);
  Task<bool> explore_whole(std::size_t g, std::string& reason);
  Task<bool> serves_base(std::size_t g);
  Task<bool> explore_parts(std::size_t g, bool in_multiples);
  Task<bool> explore_multiples(std::size_t g);
  Task<std::int64_t> runs_in_multiples(Group& group);
  Task<bool> explore_range(std::size_t g);
  Task<bool> explore_smaller(std::size_t g);
  Task<bool> shrinks(Group& group);
  Task<void> shrink_base(std::size_t g);

  // ---- sums -----------------------------------------------------------------------------------

  [[nodiscard]] std::vector<SumGuess> sums_with(std::size_t g) const;
  [[nodiscard]] std::vector<SumGuess> sums_with_fixed(std::size_t g) const;
  void suppose(const SumGuess& guess, std::size_t g);
  void take_back(const SumGuess& guess);
  void set_sum(std::size_t s, int a, int b);
  void clear_sum(std::size_t s);
  [[nodiscard]] bool in_sum(std::size_t g) const;
  Task<bool> explore_sums(std::size_t g, bool upward);
  Task<bool> follows(Group& group, bool upward);
  void drop_runs_that_break(std::size_t s);
  Task<void> split_sum(std::size_t s);

  // ---- stage 3: splitting ---------------------------------------------------------------------

  Task<Free> free_alone(std::size_t g, const std::vector<Place>& places);
  Task<void> split(std::size_t g);
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> asked_of(
      const std::vector<Place>& places) const;
  Task<bool> separate(std::size_t g, const std::vector<Place>& places);
  void drop_runs_of_fixed();

  // ---- stage 4: all at once -------------------------------------------------------------------

  [[nodiscard]] std::vector<std::size_t> free_groups() const;
  std::int64_t setting(const Group& group, std::size_t k, const std::set<std::int64_t>& used);
  // False where brief runs promised too much.
  Task<bool> confirm();
  Task<void> find_culprit(const Sizes& target, const TrialResult& failed);
  bool keep_above(Group& group, std::int64_t failed, const TrialResult& result);

  // ---- the answer -----------------------------------------------------------------------------

  ProbeResult finish();

  const ProbeRequest& request_;
  const AskTrial& trial_;
  const AskForesight* foresight_;  // null: nothing is foreseen
  Sizes base_;
  int reference_ = -1;  // the run at the base
  int first_ = -1;      // the run of this program nearest to the example
  std::vector<Group> groups_;
  std::set<std::int64_t> taken_;
  std::set<std::int64_t> fixed_sizes_;  // of dimensions that are not asked about
  std::vector<Kept> kept_;
  std::size_t trials_ = 0;
  bool moved_base_ = false;
  bool parted_ = false;  // the last trial that failed ran another program
  bool visible_ = false;
  FixedDim::Why said_ = FixedDim::Why::kRefused;  // of the last reason that was kept
  bool supposed_rest_ = false;                    // the last supposed sum left a rest behind
  bool may_shrink_ = true;
  bool may_be_served_ = true;
  bool may_be_brief_ = true;
  bool were_brief_ = false;
  bool exploring_ = false;
  double spent_ = 0;    // seconds, on trials
  double example_ = 0;  // on that of the example
  bool short_ = false;  // the example's run is: its program may stand twice
  bool long_ = false;   // the example's run is: whole runs are saved where others tell the same
  Answers answers_;
};

}  // namespace fairlead
