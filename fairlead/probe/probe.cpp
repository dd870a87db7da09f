// The stages of probing in order, and what they share: groups of places, trials, moves.
#include "fairlead/probe/probe.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "fairlead/base/error.h"
#include "fairlead/probe/names.h"
#include "fairlead/probe/probe_impl.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {

Task<ProbeResult> Prober::run() {
  make_groups();
  const TrialResult example = co_await attempt(base_, -1);
  if (!example.ok()) {
    const std::string cause = "the model raised " + example.reason;
    throw Error(ErrorCode::kInvalidInput,
                "[export] Expected an example call that the model accepts, but " + cause +
                    ". Check the inputs against the model's forward.",
                {}, cause);
  }
  constexpr std::size_t kLong = 20'000;
  example_ = example.seconds;
  long_ = example.operators >= kLong;
  constexpr std::size_t kShort = 4;
  short_ = example.operators <= kShort;
  first_ = reference_ = example.run;
  keep(base_, example.run);
  exploring_ =
      std::none_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.required; });
  co_await leave_ones();
  for (std::size_t g = 0; g < groups_.size(); ++g) co_await explore(g);
  for (std::size_t g = 0; g < groups_.size(); ++g) co_await split(g);
  exploring_ = false;
  drop_runs_of_fixed();
  const bool confirmed = co_await confirm();
  const auto lost = [&](bool Group::*moved) {
    return std::any_of(groups_.begin(), groups_.end(),
                       [&](const Group& group) { return group.*moved && !group.dynamic; });
  };
  const bool shrunk = lost(&Group::shrunk), served = lost(&Group::served);
  // Its own size is the one that counts: every run has to have it. And what brief runs did not see
  // is found by whole ones.
  if (!confirmed || shrunk || served) {
    Prober again(request_, trial_, foresight_, std::move(answers_), trials_);
    again.may_be_brief_ = may_be_brief_ && confirmed;
    again.may_shrink_ = may_shrink_ && !shrunk;
    again.may_be_served_ = may_be_served_ && !served;
    ProbeResult found = co_await again.run();
    co_return found;
  }
  refuse_unmet();
  co_return finish();
}

void Prober::make_groups() {
  std::map<std::string, std::size_t> index;
  for (std::size_t leaf = 0; leaf < base_.size(); ++leaf) {
    for (std::size_t axis = 0; axis < base_[leaf].size(); ++axis) {
      const DimRequest& asked = request_.leaves[leaf].requests[axis];
      taken_.insert(base_[leaf][axis]);
      std::string key;
      if (asked.kind == DimRequest::Kind::kStatic) {
        fixed_sizes_.insert(base_[leaf][axis]);
        continue;
      }
      if (!asked.name.empty()) {
        key = "name " + asked.name;
      } else {
        for (const Sizes& call : request_.calls) key += std::to_string(call[leaf][axis]) + " ";
        const bool one = base_[leaf][axis] <= 1;
        if (one) key += "axis " + std::to_string(axis);
      }
      const auto [it, fresh] = index.try_emplace(key, groups_.size());
      if (fresh) {
        Group group;
        group.base = base_[leaf][axis];
        groups_.push_back(std::move(group));
      }
      Group& group = groups_[it->second];
      group.places.push_back({leaf, axis});
      if (!asked.name.empty()) {
        group.name = asked.name;
        group.pinned = true;
        if (group.base != base_[leaf][axis]) {
          throw Error(ErrorCode::kInvalidInput,
                      "[export] Expected every dimension named '" + asked.name +
                          "' to have one size, got " + std::to_string(group.base) + " and " +
                          std::to_string(base_[leaf][axis]) + " (axis " + std::to_string(axis) +
                          " of " + request_.leaves[leaf].name + "). Give them different names.");
        }
      }
      group.required = group.required || asked.kind == DimRequest::Kind::kDynamic;
      group.min = std::max(group.min, asked.min);
      group.max = std::min(group.max, asked.max);
    }
  }
  for (const Group& group : groups_) {
    if (group.min <= group.max) continue;
    throw Error(ErrorCode::kInvalidInput,
                "[export] Expected bounds that leave a size, got min " + std::to_string(group.min) +
                    " and max " + std::to_string(group.max) + " (" + where(group) + ").");
  }
  // Dimensions that several arguments share come first: they are the likeliest to vary.
  std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
    return (a.places[0].axis == 0) > (b.places[0].axis == 0);
  });
}

std::string Prober::where(const Group& group) const {
  return "axis " + std::to_string(group.places[0].axis) + " of " +
         request_.leaves[group.places[0].leaf].name;
}

// Units: places of one kind of leaf at one axis.
std::vector<std::vector<Place>> Prober::units(const Group& group) const {
  std::map<std::string, std::vector<Place>> by_unit;
  std::vector<std::string> order;
  for (const Place& p : group.places) {
    const std::string key =
        without_numbers(request_.leaves[p.leaf].name) + ":" + std::to_string(p.axis);
    auto [it, fresh] = by_unit.try_emplace(key);
    if (fresh) order.push_back(key);
    it->second.push_back(p);
  }
  std::vector<std::vector<Place>> list;
  for (const std::string& key : order) list.push_back(by_unit[key]);
  return list;
}

// Places by axis: a batch and a head count of the same size, told apart.
std::vector<std::vector<Place>> Prober::by_axis(const std::vector<Place>& places) {
  std::map<std::size_t, std::vector<Place>> axes;
  for (const Place& p : places) axes[p.axis].push_back(p);
  std::vector<std::vector<Place>> list;
  for (auto& [axis, group] : axes) list.push_back(std::move(group));
  return list;
}

std::vector<std::vector<Place>> Prober::by_leaf(const std::vector<Place>& places) {
  std::map<std::size_t, std::vector<Place>> leaves;
  for (const Place& p : places) leaves[p.leaf].push_back(p);
  std::vector<std::vector<Place>> list;
  for (auto& [leaf, group] : leaves) list.push_back(std::move(group));
  return list;
}

std::vector<std::vector<Place>> Prober::by_axis_and_rank(const std::vector<Place>& places) const {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Place>> alike;
  for (const Place& p : places) alike[{p.axis, base_[p.leaf].size()}].push_back(p);
  std::vector<std::vector<Place>> list;
  for (auto& [key, group] : alike) list.push_back(std::move(group));
  return list;
}

bool Prober::contains(const std::vector<Place>& places, const Place& p) {
  return std::any_of(places.begin(), places.end(),
                     [&](const Place& q) { return p.leaf == q.leaf && p.axis == q.axis; });
}

Task<TrialResult> Prober::attempt(const Sizes& sizes, int reference, bool brief) {
  // What was tried once has the same answer again.
  if (exploring_ && late() && !answers_.contains({reference, sizes})) {
    TrialResult none;
    none.untried = true;
    none.reason = "not tried, because trying other sizes took too long";
    co_return none;
  }
  const auto known = answers_.find({reference, sizes});
  if (known != answers_.end()) co_return known->second;
  ++trials_;
  const TrialResult result = co_await trial_(sizes, reference, brief && may_be_brief_);
  spent_ += result.seconds;
  were_brief_ = were_brief_ || result.enough;
  if (!result.enough) answers_.emplace(std::pair(reference, sizes), result);
  co_return result;
}

// A run parted at these sizes: whether a group has others at which the questions that the model
// asks about sizes would have the answers they have at the base (every second size, every seventh).
// Then they are those: further from the base if there are, and sizes that nothing else has had.
// Where no other has the same answers, the program ends there. Only of a short program, which may
// stand twice in a file: a longer one that leaves out what would do nothing (padding to a multiple)
// is one program from another example on.
Task<bool> Prober::foresees(Sizes& sizes, const Group& group) {
  constexpr std::int64_t kFurthest = 64;
  const std::int64_t size = size_in(sizes, group);
  if (foresight_ == nullptr || !short_ || group.unit > 1 || size == group.base) co_return false;
  const std::int64_t way = size > group.base ? 1 : -1;
  std::set<std::int64_t> beside;  // what other groups have there
  for (const Group& other : groups_) {
    if (&other != &group) beside.insert(size_in(sizes, other));
  }
  std::vector<Sizes> candidates = {sizes};
  const auto add = [&](std::int64_t from, std::int64_t step, const std::set<std::int64_t>& not_of) {
    for (std::int64_t k = 1; k <= kFurthest; ++k) {
      const std::int64_t other = from + step * k;
      if (other < 2 || !allowed(group, other) || not_of.contains(other)) continue;
      candidates.push_back(sizes);
      put(candidates.back(), group, other);
      settle(candidates.back());
    }
  };
  add(size, way, taken_);
  add(size, way, beside);
  add(group.base, -way, taken_);
  add(group.base, -way, beside);
  const int first = co_await (*foresight_)(candidates, reference_);
  if (first <= 0) co_return false;  // 0: something else than a question about sizes decides
  sizes = candidates[static_cast<std::size_t>(first)];
  co_return true;
}

// Not by the clock alone: a model that is slow at its own sizes is given more time.
bool Prober::late() const { return spent_ - 100 * example_ > request_.patience; }

void Prober::keep(const Sizes& sizes, int run) {
  if (std::none_of(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.run == run; })) {
    kept_.push_back({sizes, run});
  }
}

void Prober::put(Sizes& sizes, const Group& group, std::int64_t size) {
  for (const Place& p : group.places) sizes[p.leaf][p.axis] = size;
}

std::int64_t Prober::size_in(const Sizes& sizes, const Group& group) const {
  return sizes[group.places[0].leaf][group.places[0].axis];
}

// Sums follow their parts.
void Prober::settle(Sizes& sizes) const {
  for (const Group& group : groups_) {
    if (group.sum_of[0] < 0) continue;
    put(sizes, group, sum_in(sizes, group));
  }
}

std::int64_t Prober::sum_in(const Sizes& sizes, const Group& sum) const {
  std::int64_t total = size_in(sizes, groups_[sum.sum_of[0]]) + sum.sum_more;
  if (sum.sum_of[1] >= 0) total += size_in(sizes, groups_[sum.sum_of[1]]);
  return total;
}

bool Prober::allowed(const Group& group, std::int64_t size) const {
  return size >= std::max<std::int64_t>(group.min, 1) && size <= group.max &&
         size % group.unit == 0;
}

std::int64_t Prober::up(const Group& group, std::int64_t from) {
  if (group.unit > 1) return from + group.unit;
  // Within narrow bounds there may be no size left that tells more.
  const std::int64_t size = prime_above(from + step(from), taken_);
  return size > group.max && from < group.max ? group.max : size;
}

std::int64_t Prober::down(const Group& group, std::int64_t from) {
  if (group.unit > 1) return from - group.unit;
  return prime_below(from, taken_);
}

Task<bool> Prober::moves(Group& group, std::int64_t size, std::string& reason, bool brief) {
  if (size <= 0 || !allowed(group, size)) co_return false;
  Sizes sizes = base_;
  put(sizes, group, size);
  settle(sizes);
  TrialResult result = co_await attempt(sizes, reference_, brief);
  bool foreseen = result.parted;
  if (foreseen) foreseen = co_await foresees(sizes, group);
  if (foreseen) result = co_await attempt(sizes, reference_, brief);
  if (!result.ok()) {
    // What the model itself says about a size is worth more than where the programs parted.
    if (reason.empty()) {
      reason = result.reason;
      said_ = why_of(result);
    }
    parted_ = result.parted;
    co_return false;
  }
  if (!result.enough) keep(sizes, result.run);
  taken_.insert(size_in(sizes, group));
  visible_ = visible_ || result.visible;
  co_return true;
}

Task<bool> Prober::moves_either_way(Group& group, std::string& reason) {
  parted_ = false;
  if (co_await moves(group, up(group, group.base), reason, true)) co_return true;
  // A model that refuses larger sizes has a limit, and below it one program. One that executes
  // other operators there branches on the size: smaller sizes prove nothing, and the file could not
  // refuse.
  if (parted_) co_return false;
  std::string second = "the first counts";
  if (co_await moves(group, down(group, group.base), second)) {
    group.only_down = true;
    co_return true;
  }
  co_return false;
}

FixedDim::Why Prober::why_of(const TrialResult& result) {
  if (result.untried) return FixedDim::Why::kUntried;
  return result.parted ? FixedDim::Why::kBranches : FixedDim::Why::kRefused;
}

void Prober::refuse_unmet() const {
  for (const Group& group : groups_) {
    if (group.required && !group.dynamic) {
      const Place& place = group.places.front();
      ErrorDetail dimension{
          "dimension",
          {{"leaf", std::to_string(place.leaf)}, {"axis", std::to_string(place.axis)}},
          {}};
      const std::string cause = "at other sizes than " + std::to_string(group.base) +
                                " the model " +
                                (group.reason.empty() ? "does not run" : "gives: " + group.reason);
      throw Error(ErrorCode::kDiverged,
                  "[export] Expected " + where(group) +
                      " to be dynamic as dynamic_shapes asks, but " + cause +
                      ". Mark it static, or change the model there.",
                  {std::move(dimension)}, cause);
    }
  }
}

ProbeResult probe(const ProbeRequest& request, const Trial& trial) {
  FAIRLEAD_CHECK(!request.calls.empty(), "no call to probe from");
  const AskTrial asked = [&](const Sizes& sizes, int reference, bool) -> Task<TrialResult> {
    const auto start = std::chrono::steady_clock::now();
    TrialResult result = trial(sizes, reference);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    result.seconds = took.count();
    co_return result;
  };
  Task<ProbeResult> task = probing(request, asked);
  task.start();  // nobody is waited for
  return task.result();
}

Task<ProbeResult> probing(const ProbeRequest& request, const AskTrial& trial,
                          const AskForesight* foresight) {
  FAIRLEAD_CHECK(!request.calls.empty(), "no call to probe from");
  Prober prober(request, trial, foresight);
  ProbeResult found = co_await prober.run();
  co_return found;
}

}  // namespace fairlead
