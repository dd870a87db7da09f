// The stages of probing, as listed in the header.
#include "fairlead/probe/probe.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "fairlead/base/error.h"
#include "fairlead/probe/names.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {
namespace {

struct Place {
  std::size_t leaf;
  std::size_t axis;
};

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
  bool only_down = false;     // larger sizes are refused
  std::string reason;         // why it is fixed
  int sum_of[2] = {-1, -1};   // it is the sum of these groups; the second may be absent
  std::int64_t sum_more = 0;  // plus this
};

class Prober {
 public:
  Prober(const ProbeRequest& request, const Trial& trial) : request_(request), trial_(trial) {
    base_ = request.calls.front();
  }

  ProbeResult run() {
    make_groups();
    TrialResult example = attempt(base_, -1);
    if (!example.ok()) {
      throw Error(
          ErrorCode::kInvalidInput,
          "[export] Expected an example call that the model accepts, but the model raised " +
              example.reason + ". Check the inputs against the model's forward.");
    }
    reference_ = example.run;
    keep(base_, example.run);
    leave_ones();
    for (std::size_t g = 0; g < groups_.size(); ++g) explore(g);
    for (std::size_t g = 0; g < groups_.size(); ++g) split(g);
    confirm();
    refuse_unmet();
    return finish();
  }

 private:
  // ---- groups -----------------------------------------------------------------------------------

  void make_groups() {
    std::map<std::string, std::size_t> index;
    for (std::size_t leaf = 0; leaf < base_.size(); ++leaf) {
      for (std::size_t axis = 0; axis < base_[leaf].size(); ++axis) {
        const DimRequest& asked = request_.leaves[leaf].requests[axis];
        taken_.insert(base_[leaf][axis]);
        std::string key;
        if (asked.kind == DimRequest::Kind::kStatic) {
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
      throw Error(ErrorCode::kInvalidInput, "[export] Expected bounds that leave a size, got min " +
                                                std::to_string(group.min) + " and max " +
                                                std::to_string(group.max) + " (" + where(group) +
                                                ").");
    }
    // Dimensions that several arguments share come first: they are the likeliest to vary.
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
      return (a.places[0].axis == 0) > (b.places[0].axis == 0);
    });
  }

  [[nodiscard]] std::string where(const Group& group) const {
    return "axis " + std::to_string(group.places[0].axis) + " of " +
           request_.leaves[group.places[0].leaf].name;
  }

  // ---- trials
  // -------------------------------------------------------------------------------------

  TrialResult attempt(const Sizes& sizes, int reference) {
    // What was refused once is refused again.
    if (const auto it = refused_.find({reference, sizes}); it != refused_.end()) return it->second;
    ++trials_;
    TrialResult result = trial_(sizes, reference);
    if (!result.ok()) refused_.emplace(std::pair(reference, sizes), result);
    return result;
  }

  void keep(const Sizes& sizes, int run) { kept_.push_back({sizes, run}); }

  static void put(Sizes& sizes, const Group& group, std::int64_t size) {
    for (const Place& p : group.places) sizes[p.leaf][p.axis] = size;
  }

  [[nodiscard]] std::int64_t size_in(const Sizes& sizes, const Group& group) const {
    return sizes[group.places[0].leaf][group.places[0].axis];
  }

  // Sums follow their parts.
  void settle(Sizes& sizes) const {
    for (const Group& group : groups_) {
      if (group.sum_of[0] < 0) continue;
      put(sizes, group, sum_in(sizes, group));
    }
  }

  [[nodiscard]] std::int64_t sum_in(const Sizes& sizes, const Group& sum) const {
    std::int64_t total = size_in(sizes, groups_[sum.sum_of[0]]) + sum.sum_more;
    if (sum.sum_of[1] >= 0) total += size_in(sizes, groups_[sum.sum_of[1]]);
    return total;
  }

  [[nodiscard]] bool allowed(const Group& group, std::int64_t size) const {
    return size >= std::max<std::int64_t>(group.min, 1) && size <= group.max &&
           size % group.unit == 0;
  }

  std::int64_t up(const Group& group, std::int64_t from) {
    if (group.unit > 1) return from + group.unit;
    return prime_above(from + step(from), taken_);
  }

  // Large sizes move by a share of themselves: (samples - 8) // 4 cannot be told from its
  // neighbours by sizes that are close together.
  static std::int64_t step(std::int64_t size) { return size / 12; }

  std::int64_t down(const Group& group, std::int64_t from) {
    if (group.unit > 1) return from - group.unit;
    return prime_below(from, taken_);
  }

  // ---- stage 1b: sizes of one
  // ------------------------------------------------------------------------

  // At a size of 1 a model may take another path (one token to decode, broadcasting). Where a
  // dimension of 1 can be larger, the program there is the one that counts. In order: alone, with a
  // sum that it is part of, both as the program of the example; then the same with a program of its
  // own.
  void leave_ones() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].base > 1) continue;
      if (groups_[g].base == 0) {
        groups_[g].reason = "its size is 0";
        continue;
      }
      std::string refusal;
      bool left = false;
      for (const bool own : {false, true}) {
        const auto sums = sums_with(g);
        left = left || (!own && leave_one(g, own, refusal));
        for (const auto& [s, t] : sums) {
          if (left) break;
          set_sum(s, static_cast<int>(g), t);
          left = leave_one(g, own, refusal);
          if (left) {
            groups_[s].dynamic = true;
          } else {
            clear_sum(s);
          }
        }
        left = left || (own && leave_one(g, own, refusal));
        if (left) break;
      }
      if (!left) groups_[g].reason = refusal.empty() ? "its size is 1" : refusal;
    }
  }

  bool leave_one(std::size_t g, bool own_program, std::string& refusal) {
    Group& group = groups_[g];
    for (const std::int64_t size : {3, 2}) {
      if (!allowed(group, size)) continue;
      Sizes sizes = base_;
      put(sizes, group, size);
      settle(sizes);
      const TrialResult result = attempt(sizes, own_program ? -1 : reference_);
      if (!result.ok()) {
        if (refusal.empty()) refusal = result.reason;
        continue;
      }
      Sizes other = sizes;
      put(other, group, size + 3);
      settle(other);
      const TrialResult again = attempt(other, result.run);
      if (!again.ok()) {
        if (refusal.empty()) refusal = again.reason;
        continue;
      }
      base_ = sizes;
      for (Group& each : groups_) each.base = size_in(base_, each);
      if (own_program) {
        reference_ = result.run;
        kept_.clear();  // earlier runs are another program
        moved_base_ = true;
      }
      keep(sizes, result.run);
      keep(other, again.run);
      return true;
    }
    return false;
  }

  // ---- stage 2: one group at a time
  // -----------------------------------------------------------------

  bool moves(Group& group, std::int64_t size, std::string& reason) {
    if (size <= 0 || !allowed(group, size)) return false;
    Sizes sizes = base_;
    put(sizes, group, size);
    settle(sizes);
    const TrialResult result = attempt(sizes, reference_);
    if (!result.ok()) {
      // What the model itself says about a size is worth more than where the programs parted.
      if (reason.empty()) reason = result.reason;
      parted_ = result.parted;
      return false;
    }
    keep(sizes, result.run);
    taken_.insert(size);
    visible_ = visible_ || result.visible;
    return true;
  }

  bool moves_either_way(Group& group, std::string& reason) {
    parted_ = false;
    if (moves(group, up(group, group.base), reason)) return true;
    // A model that refuses larger sizes has a limit, and below it one program. One that executes
    // other operators there branches on the size: smaller sizes prove nothing, and the file could
    // not refuse.
    if (parted_) return false;
    std::string second;
    if (moves(group, down(group, group.base), second)) {
      group.only_down = true;
      return true;
    }
    return false;
  }

  void explore(std::size_t g) {
    if (groups_[g].base <= 1 || groups_[g].sum_of[0] >= 0) return;
    std::string reason;
    if (explore_whole(g, reason) || explore_parts(g) || explore_multiples(g)) return;
    groups_[g].reason = reason;
  }

  bool explore_whole(std::size_t g, std::string& reason) {
    const bool moved = moves_either_way(groups_[g], reason) || explore_sums(g);
    groups_[g].dynamic = moved;
    return moved;
  }

  // Groups s and t such that s is as large as g and t together; t is -1 where the rest is no group.
  [[nodiscard]] std::vector<std::pair<std::size_t, int>> sums_with(std::size_t g) const {
    std::vector<std::pair<std::size_t, int>> list;
    for (std::size_t s = 0; s < groups_.size(); ++s) {
      if (s == g || groups_[s].sum_of[0] >= 0 || groups_[s].base <= groups_[g].base) continue;
      for (std::size_t t = 0; t < groups_.size(); ++t) {
        if (t == g || t == s || groups_[t].sum_of[0] >= 0) continue;
        if (groups_[s].base == groups_[g].base + groups_[t].base)
          list.emplace_back(s, static_cast<int>(t));
      }
    }
    return list;
  }

  void set_sum(std::size_t s, int a, int b) {
    groups_[s].sum_of[0] = a;
    groups_[s].sum_of[1] = b;
    groups_[s].sum_more = groups_[s].base - groups_[a].base - (b >= 0 ? groups_[b].base : 0);
  }

  void clear_sum(std::size_t s) {
    groups_[s].sum_of[0] = groups_[s].sum_of[1] = -1;
    groups_[s].sum_more = 0;
  }

  bool explore_sums(std::size_t g) {
    std::string ignored;
    // A sum that is known already, whose other part turned out to be this group and not its
    // namesake.
    for (Group& sum : groups_) {
      if (sum.sum_of[0] < 0) continue;
      for (int& part : sum.sum_of) {
        if (part < 0 || part == static_cast<int>(g) || groups_[part].dynamic) continue;
        if (groups_[part].base != groups_[g].base) continue;
        const int before = part;
        part = static_cast<int>(g);
        if (moves_either_way(groups_[g], ignored)) return true;
        part = before;
      }
    }
    for (const auto& [s, t] : sums_with(g)) {
      const std::size_t mark = kept_.size();
      const bool was_dynamic = groups_[s].dynamic;
      set_sum(s, static_cast<int>(g), t);
      // A part that moved alone before must move with the sum as well.
      if (moves_either_way(groups_[g], ignored) &&
          (t < 0 || !groups_[t].dynamic || moves_either_way(groups_[t], ignored))) {
        groups_[s].dynamic = true;
        drop_runs_that_break(s);
        return true;
      }
      kept_.resize(mark);
      clear_sum(s);
      groups_[s].dynamic = was_dynamic;
    }
    return false;
  }

  // Runs in which the sum did not hold say nothing about the symbols that remain.
  void drop_runs_that_break(std::size_t s) {
    std::erase_if(kept_, [&](const Kept& kept) {
      return size_in(kept.sizes, groups_[s]) != sum_in(kept.sizes, groups_[s]);
    });
  }

  // Units: places of one kind of leaf at one axis.
  [[nodiscard]] std::vector<std::vector<Place>> units(const Group& group) const {
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
  [[nodiscard]] static std::vector<std::vector<Place>> by_axis(const std::vector<Place>& places) {
    std::map<std::size_t, std::vector<Place>> axes;
    for (const Place& p : places) axes[p.axis].push_back(p);
    std::vector<std::vector<Place>> list;
    for (auto& [axis, group] : axes) list.push_back(std::move(group));
    return list;
  }

  bool explore_parts(std::size_t g) {
    if (groups_[g].pinned || groups_[g].places.size() < 2) return false;
    for (const auto& parts : {by_axis(groups_[g].places), units(groups_[g])}) {
      if (parts.size() < 2) continue;
      const std::vector<Group> before = groups_;
      const std::size_t mark = kept_.size();
      std::vector<std::size_t> made;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        Group part = before[g];
        part.places = parts[k];
        if (k == 0) {
          groups_[g] = part;
          made.push_back(g);
        } else {
          made.push_back(groups_.size());
          groups_.push_back(part);
        }
      }
      bool any = false;
      for (const std::size_t part : made) {
        std::string reason;
        if (explore_whole(part, reason)) {
          any = true;
        } else {
          groups_[part].reason = reason;
        }
      }
      if (any) return true;
      groups_ = before;
      kept_.resize(mark);
    }
    return false;
  }

  bool explore_multiples(std::size_t g) {
    Group& group = groups_[g];
    if (group.base < 2) return false;
    for (const std::int64_t unit : {group.base, group.base / 2, group.base / 4}) {
      if (unit < 2 || group.base % unit != 0) continue;
      group.unit = unit;
      std::string ignored;
      const std::size_t mark = kept_.size();
      if (moves(group, group.base + unit, ignored) &&
          moves(group, group.base + 2 * unit, ignored)) {
        group.dynamic = true;
        return true;
      }
      kept_.resize(mark);
      group.unit = 1;
    }
    return false;
  }

  // ---- stage 3: splitting
  // ------------------------------------------------------------------------------

  // A part is free when it may be larger than the rest and also smaller: a mask that is too long
  // may go unnoticed, one that is too short does not.
  bool free_alone(const Group& whole, const std::vector<Place>& places) {
    Group part = whole;
    part.places = places;
    Group rest = whole;
    std::erase_if(rest.places, [&](const Place& p) { return contains(places, p); });
    std::string ignored;
    const std::size_t before = kept_.size();
    const std::int64_t size = whole.unit > 1    ? whole.base + whole.unit
                              : whole.only_down ? down(whole, whole.base)
                                                : whole.base + 1 + step(whole.base);
    // A part that no operator looks at (an input that is ignored) stays with its like.
    const auto moves_visibly = [&](Group& group) {
      visible_ = false;
      return moves(group, size, ignored) && visible_;
    };
    // The rest first: what is too short is refused early, what is too long runs to the end.
    if (moves_visibly(rest) && moves_visibly(part)) return true;
    kept_.resize(before);
    return false;
  }

  static bool contains(const std::vector<Place>& places, const Place& p) {
    return std::any_of(places.begin(), places.end(),
                       [&](const Place& q) { return p.leaf == q.leaf && p.axis == q.axis; });
  }

  void split(std::size_t g) {
    if (!groups_[g].dynamic || groups_[g].pinned || groups_[g].sum_of[0] >= 0) return;
    auto parts = units(groups_[g]);
    if (parts.size() < 2) return;
    bool changed = true;
    while (changed && parts.size() > 1) {
      changed = false;
      for (std::size_t k = 0; k < parts.size() && parts.size() > 1; ++k) {
        if (!free_alone(groups_[g], parts[k])) continue;
        separate(g, parts[k]);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(k));
        changed = true;
        break;
      }
      if (changed || parts.size() < 4 || parts.size() > 6) continue;
      for (std::size_t a = 0; a < parts.size() && !changed; ++a) {
        for (std::size_t b = a + 1; b < parts.size() && !changed; ++b) {
          std::vector<Place> pair = parts[a];
          pair.insert(pair.end(), parts[b].begin(), parts[b].end());
          if (!free_alone(groups_[g], pair)) continue;
          separate(g, pair);
          parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(b));
          parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(a));
          changed = true;
        }
      }
    }
  }

  void separate(std::size_t g, const std::vector<Place>& places) {
    Group part = groups_[g];
    part.places = places;
    std::erase_if(groups_[g].places, [&](const Place& p) { return contains(places, p); });
    groups_.push_back(std::move(part));
  }

  // ---- stage 4: all at once
  // -----------------------------------------------------------------------------

  [[nodiscard]] std::vector<std::size_t> free_groups() const {
    std::vector<std::size_t> list;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].dynamic && groups_[g].sum_of[0] < 0) list.push_back(g);
    }
    return list;
  }

  // Setting k of a group: primes above, then an even number, so that halves are told from ceilings.
  std::int64_t setting(const Group& group, std::size_t k, const std::set<std::int64_t>& used) {
    if (group.unit > 1) {
      const std::int64_t size = group.base + group.unit * static_cast<std::int64_t>(k + 1);
      return allowed(group, size) ? size : group.base;
    }
    std::set<std::int64_t> avoid = used;
    std::int64_t size = group.base;
    if (group.only_down) {
      for (std::size_t i = 0; i <= k && size > 2; ++i) {
        const std::int64_t lower = prime_below(size, avoid);
        if (lower < 2) break;
        size = lower;
      }
    } else if (k % 3 == 2) {
      size = std::max<std::int64_t>(4, group.base - group.base % 2);
      size += 2 * step(group.base);
      while (avoid.contains(size) || size == group.base) size += 2;
    } else {
      for (std::size_t i = 0; i <= k; ++i) {
        size = prime_above(size + step(group.base), avoid);
        avoid.insert(size);
      }
    }
    return std::clamp(size, std::max<std::int64_t>(1, group.min), group.max);
  }

  void confirm() {
    // Every symbol has been at three sizes by then; more would be told apart by nothing new.
    const std::size_t settings = kept_.size() >= 4 ? 2 : 3;
    for (std::size_t n = 0; n < settings; ++n) {
      const std::size_t k = n == 0 ? 0 : n + (settings == 2 ? 1 : 0);  // the last one even
      std::set<std::int64_t> used;
      Sizes sizes = base_;
      for (const std::size_t g : free_groups()) {
        const std::int64_t size = setting(groups_[g], k, used);
        used.insert(size);
        put(sizes, groups_[g], size);
      }
      settle(sizes);
      if (sizes == base_) return;
      const TrialResult result = attempt(sizes, reference_);
      if (result.ok()) {
        keep(sizes, result.run);
      } else {
        find_culprit(sizes, result.reason);
      }
    }
  }

  // The groups are moved to the failing setting one after the other; the one that breaks it is
  // fixed, or, where it broke at a larger size only, kept to smaller ones.
  void find_culprit(const Sizes& target, const std::string& reason) {
    Sizes sizes = base_;
    for (const std::size_t g : free_groups()) {
      Group& group = groups_[g];
      const std::int64_t before = size_in(sizes, group);
      put(sizes, group, size_in(target, group));
      settle(sizes);
      const TrialResult result = attempt(sizes, reference_);
      if (result.ok()) {
        keep(sizes, result.run);
        continue;
      }
      put(sizes, group, before);
      settle(sizes);
      group.dynamic = false;
      group.reason = result.reason.empty() ? reason : result.reason;
      // Every run in which it moved is of no use any more.
      std::erase_if(kept_,
                    [&](const Kept& kept) { return size_in(kept.sizes, group) != group.base; });
    }
  }

  void refuse_unmet() const {
    for (const Group& group : groups_) {
      if (group.required && !group.dynamic) {
        throw Error(ErrorCode::kDiverged,
                    "[export] Expected " + where(group) +
                        " to be dynamic as dynamic_shapes asks, but at "
                        "other sizes than " +
                        std::to_string(group.base) + " the model " +
                        (group.reason.empty() ? "does not run" : "gives: " + group.reason) +
                        ". Mark it static, or change the model there.");
      }
    }
  }

  // ---- the answer
  // ---------------------------------------------------------------------------------------

  ProbeResult finish() {
    ProbeResult result;
    result.pool = std::make_shared<ExprPool>();
    result.trials = trials_;
    result.base_parted = moved_base_;
    std::map<std::string, int> names;
    std::vector<Expr> symbol_of(groups_.size(), nullptr);
    std::vector<std::size_t> owner;  // symbol -> group
    std::vector<std::size_t> order = free_groups();
    for (const std::size_t g : order) {
      const Group& group = groups_[g];
      std::string name = group.name;
      if (name.empty()) {
        const Place p = group.places[0];
        name = symbol_name(request_.leaves[p.leaf].name, p.axis, base_[p.leaf].size());
      }
      const int count = names[name]++;
      if (count > 0) name += "_" + std::to_string(count);
      const Expr symbol = result.pool->symbol(name);
      symbol_of[g] =
          group.unit > 1 ? result.pool->mul(symbol, result.pool->constant(group.unit)) : symbol;
      owner.push_back(g);
      ProbedSymbol probed;
      probed.name = name;
      probed.min = std::max<std::int64_t>(1, group.min / group.unit);
      const std::int64_t limit = group.only_down ? std::min(group.max, group.base) : group.max;
      probed.max = limit == INT64_MAX ? INT64_MAX : limit / group.unit;
      std::set<std::int64_t> tried;
      for (const Kept& kept : kept_) tried.insert(size_in(kept.sizes, group) / group.unit);
      probed.tried.assign(tried.begin(), tried.end());
      result.symbols.push_back(std::move(probed));
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if (group.sum_of[0] < 0) continue;
      // A part that is fixed counts with its size.
      const auto part = [&](int k) {
        if (group.sum_of[k] < 0) return result.pool->constant(0);
        const Expr e = symbol_of[group.sum_of[k]];
        return e != nullptr ? e : result.pool->constant(groups_[group.sum_of[k]].base);
      };
      symbol_of[g] = result.pool->add(result.pool->add(part(0), part(1)),
                                      result.pool->constant(group.sum_more));
    }
    for (std::size_t leaf = 0; leaf < base_.size(); ++leaf) {
      std::vector<Expr> shape;
      for (std::size_t axis = 0; axis < base_[leaf].size(); ++axis) {
        shape.push_back(result.pool->constant(base_[leaf][axis]));
      }
      result.shapes.push_back(std::move(shape));
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const Place& p : groups_[g].places) {
        if (symbol_of[g] != nullptr) {
          result.shapes[p.leaf][p.axis] = symbol_of[g];
        } else {
          result.fixed.push_back({p.leaf, p.axis, base_[p.leaf][p.axis], groups_[g].reason});
        }
      }
    }
    for (std::size_t leaf = 0; leaf < base_.size(); ++leaf) {
      for (std::size_t axis = 0; axis < base_[leaf].size(); ++axis) {
        if (request_.leaves[leaf].requests[axis].kind == DimRequest::Kind::kStatic) {
          result.fixed.push_back({leaf, axis, base_[leaf][axis], "dynamic_shapes says so"});
        }
      }
    }
    std::stable_sort(result.fixed.begin(), result.fixed.end(),
                     [](const FixedDim& a, const FixedDim& b) {
                       return a.leaf != b.leaf ? a.leaf < b.leaf : a.axis < b.axis;
                     });
    for (const Kept& kept : kept_) {
      ProbedRun run{kept.run, {}};
      for (const std::size_t g : owner) {
        run.values.push_back(size_in(kept.sizes, groups_[g]) / groups_[g].unit);
      }
      if (kept.run == reference_) {
        result.runs.insert(result.runs.begin(), std::move(run));
      } else {
        result.runs.push_back(std::move(run));
      }
    }
    return result;
  }

  struct Kept {
    Sizes sizes;
    int run;
  };

  const ProbeRequest& request_;
  const Trial& trial_;
  Sizes base_;
  int reference_ = -1;
  std::vector<Group> groups_;
  std::set<std::int64_t> taken_;
  std::vector<Kept> kept_;
  std::size_t trials_ = 0;
  bool moved_base_ = false;
  bool parted_ = false;  // the last trial that failed ran another program
  bool visible_ = false;
  std::map<std::pair<int, Sizes>, TrialResult> refused_;
};

}  // namespace

ProbeResult probe(const ProbeRequest& request, const Trial& trial) {
  FAIRLEAD_CHECK(!request.calls.empty(), "no call to probe from");
  return Prober(request, trial).run();
}

}  // namespace fairlead
