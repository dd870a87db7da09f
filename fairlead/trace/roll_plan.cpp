// What every argument of a loop's body is, by looking at all steps of all runs.
#include "fairlead/trace/roll_impl.h"

namespace fairlead::rolling {
namespace {

class Planner {
 public:
  Planner(const std::vector<RunView>& views, const std::vector<LoopPlaces>& loops)
      : views_(views), loops_(loops), plans_(loops.size()) {}

  Plan plan() {
    find_read_lists();
    for (std::size_t k = 0; k < loops_.size(); ++k) plan_body(k);
    for (const RunView& view : views_) find_escapes(view);
    for (std::size_t k = 0; k < loops_.size(); ++k) add_up_grown(k);
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      for (const RunView& view : views_) check_writes(k, view);
    }
    return {std::move(plans_), std::move(unread_), std::move(apart_), std::move(repeated_)};
  }

 private:
  struct Seen {
    std::size_t run;
    std::size_t step;
    RunValue v;
  };

  void plan_body(std::size_t k) {
    const LoopPlaces& loop = loops_[k];
    LoopPlan& plan = plans_[k];
    plan.uses.resize(loop.period);
    for (std::size_t offset = 0; offset < loop.period; ++offset) {
      const OpRecord& model = views_[0].run.ops[loop.starts[0] + offset];
      const std::uint32_t arguments = model.item_count;
      const bool unread = gives_lists(k, offset);
      if (unread) plan.unread.insert(offset);
      const std::uint32_t count = arguments + (unread ? 0 : model.result_count);
      for (std::uint32_t item = 0; item < count; ++item) {
        std::vector<Seen> seen;
        for (std::size_t r = 0; r < views_.size(); ++r) {
          const Run& run = views_[r].run;
          for (std::size_t step = 0; step < loop.counts[r]; ++step) {
            const OpRecord& record = run.ops[loop.starts[r] + step * loop.period + offset];
            if (record.item_count != arguments ||
                (!unread && record.result_count != model.result_count)) {
              throw NotRolled{};  // a list that grows from step to step
            }
            const Item& found = run.items[item < arguments ? record.items + item
                                                           : record.results + item - arguments];
            if (found.kind != ItemKind::kTensor) continue;
            seen.push_back({r, step, static_cast<RunValue>(found.i)});
          }
        }
        plan.uses[offset].push_back(seen.empty() ? Use{Role::kLocal, 0} : role_of(k, seen));
      }
    }
  }

  // Whether an operator of the body reads lists of numbers that are not equally long, in other steps
  // or runs: for t in rows.tolist(), within a loop over something else.
  [[nodiscard]] bool gives_lists(std::size_t k, std::size_t offset) const {
    const LoopPlaces& loop = loops_[k];
    if (views_[0].def(loop.starts[0] + offset).name != Op::fairlead_tolist) return false;
    const std::uint32_t results = views_[0].run.ops[loop.starts[0] + offset].result_count;
    for (std::size_t r = 0; r < views_.size(); ++r) {
      for (std::size_t step = 0; step < loop.counts[r]; ++step) {
        const std::size_t op = loop.starts[r] + step * loop.period + offset;
        if (views_[r].run.ops[op].result_count != results) return true;
      }
    }
    return false;
  }

  Use role_of(std::size_t k, const std::vector<Seen>& seen) {
    std::size_t local = 0, before = 0, own = 0;
    std::set<Slot> slots;
    for (const Seen& s : seen) {
      const RunView& view = views_[s.run];
      const Place made = view.made_at(s.v);
      if (made.loop == k) {
        if (made.step == s.step) {
          ++local;
        } else if (made.step + 1 == s.step) {
          ++before;
        } else {
          throw NotRolled{};
        }
        slots.insert(view.slot(s.v));
      } else if (view.own(s.v, {k, s.step, 0})) {
        ++own;
      }
    }
    if (slots.size() > 1) throw NotRolled{};
    if (local == seen.size()) return {Role::kLocal, 0};
    if (local > 0) throw NotRolled{};
    LoopPlan& plan = plans_[k];
    if (before > 0) {
      Carried carried{*slots.begin(), Values(views_.size(), kNoRunValue)};
      for (const Seen& s : seen) {
        if (s.step == 0) carried.start[s.run] = s.v;
        if ((views_[s.run].made_at(s.v).loop == k) != (s.step > 0)) throw NotRolled{};
      }
      return {Role::kCarried, index_of(plan.carried, carried)};
    }
    if (own == seen.size()) return {Role::kOwn, 0};
    Values one(views_.size(), kNoRunValue);
    for (const Seen& s : seen) {
      if (s.step == 0) one[s.run] = s.v;
      if (one[s.run] != s.v) return taken(k, seen);
    }
    return {Role::kInvariant, index_of(plan.invariants, one)};
  }

  // for x in tensor: another value in each step, all made by one operator or one loop before.
  Use taken(std::size_t k, const std::vector<Seen>& seen) {
    Taken found;
    std::set<std::ptrdiff_t> before, behind;  // how many parts lie on either side, less the step
    std::size_t shorter = k;                  // the loop whose steps may be too short
    for (const Seen& s : seen) {
      const RunView& view = views_[s.run];
      const Place made = view.made_at(s.v);
      Taken now = found;
      now.of.assign(views_.size(), kNoRunValue);
      std::size_t part = made.step, parts = 0;
      if (made.loop != kMain) {
        parts = loops_[made.loop].counts[s.run];
        if (parts > loops_[k].counts[s.run]) shorter = made.loop;
        now.of.clear();
        now.loop = made.loop;
        now.slot = view.slot(s.v);
      } else {
        const std::int32_t producer = view.run.values[s.v].producer;
        if (producer < 0) throw NotRolled{};
        const auto op = static_cast<std::size_t>(producer);
        const OpName& name = view.def(op).name;
        const bool split = name == Op::split_with_sizes || name == Op::split_Tensor;
        if (!split && name != Op::unbind_int) throw NotRolled{};
        const OpRecord& record = view.run.ops[op];
        part = view.result_number(s.v) - 1;  // a list comes first among the results
        parts = static_cast<std::size_t>(view.run.items[record.results].i);
        if (!found.of.empty()) now.of = found.of;
        now.of[s.run] = view.argument(op, 0);
        if (split) {
          now.splits.resize(views_.size());
          now.splits[s.run] = op;
        }
        const Item& dim = view.run.items[record.items + record.item_count - 1];
        now.dim = dim.kind == ItemKind::kInt ? dim.i : 0;
        const int rank = view.run.values[now.of[s.run]].rank;
        if (now.dim < 0) now.dim += rank;
      }
      const auto step = static_cast<std::ptrdiff_t>(s.step);
      before.insert(static_cast<std::ptrdiff_t>(part) - step);
      behind.insert(static_cast<std::ptrdiff_t>(parts - part) - 1 - step);
      const bool first = &s == &seen.front();
      if (!first && (now.loop != found.loop || now.dim != found.dim || now.slot != found.slot ||
                     now.of.empty() != found.of.empty())) {
        throw NotRolled{};
      }
      if (!first && s.step > 0 && now.of != found.of) throw NotRolled{};
      found = now;
    }
    found.reversed = before.size() > 1;
    const std::set<std::ptrdiff_t>& side = found.reversed ? behind : before;
    if (side.size() > 1 || *side.begin() < 0) throw NotRolled{shorter};
    found.shift = static_cast<std::size_t>(*side.begin());
    if (found.loop != kMain) (void)index_of(plans_[found.loop].collected, found.slot);
    if (!found.splits.empty() && found.shift == 0 && !found.reversed) find_sizes(k, found);
    return {Role::kTaken, index_of(plans_[k].taken, found)};
  }

  // Lists of numbers that are as long as a loop has steps, in every run.
  void find_read_lists() {
    std::vector<std::vector<std::size_t>> mains(views_.size());
    for (std::size_t r = 0; r < views_.size(); ++r) {
      for (std::size_t op = 0; op < views_[r].run.ops.size(); ++op) {
        if (views_[r].place(op).loop == kMain) mains[r].push_back(op);
      }
      if (mains[r].size() != mains[0].size()) throw NotRolled{};
    }
    apart_.resize(views_.size());
    repeated_.resize(views_.size());
    for (std::size_t m = 0; m < mains[0].size(); ++m) {
      if (views_[0].def(mains[0][m]).name.has(Trait::kTakesApart)) find_apart(mains, m);
      if (views_[0].joins(mains[0][m])) find_repeated(mains, m);
      if (views_[0].def(mains[0][m]).name != Op::fairlead_tolist) continue;
      ReadList list;
      std::vector<std::size_t> counts;
      for (std::size_t r = 0; r < views_.size(); ++r) {
        const Run& run = views_[r].run;
        list.ops.push_back(mains[r][m]);
        list.of.push_back(views_[r].argument(mains[r][m], 0));
        counts.push_back(static_cast<std::size_t>(run.items[run.ops[mains[r][m]].results].i));
      }
      const bool elastic = std::any_of(counts.begin(), counts.end(),
                                       [&](std::size_t count) { return count != counts[0]; });
      if (!elastic) continue;
      bool stepped = false;
      for (std::size_t k = 0; k < loops_.size(); ++k) {
        const bool before = list.ops[0] < loops_[k].starts[0];
        if (!before || loops_[k].counts != counts) continue;
        plans_[k].reads.push_back(list);
        stepped = true;
      }
      if (!stepped) unread_.push_back(std::move(list));
    }
  }

  // Whether an operator gives another number of parts in other runs.
  void find_apart(const std::vector<std::vector<std::size_t>>& mains, std::size_t m) {
    std::set<std::int64_t> counts;
    for (std::size_t r = 0; r < views_.size(); ++r) {
      const Run& run = views_[r].run;
      const OpRecord& record = run.ops[mains[r][m]];
      const bool list =
          record.result_count > 0 && run.items[record.results].kind == ItemKind::kList;
      counts.insert(list ? run.items[record.results].i : -1);
    }
    if (counts.size() < 2) return;
    for (std::size_t r = 0; r < views_.size(); ++r) apart_[r].insert(mains[r][m]);
  }

  // torch.stack([grid] * x.shape[0])
  void find_repeated(const std::vector<std::vector<std::size_t>>& mains, std::size_t m) {
    std::set<std::int64_t> counts;
    for (std::size_t r = 0; r < views_.size(); ++r) {
      const Run& run = views_[r].run;
      const Item* list = &run.items[run.ops[mains[r][m]].items];
      if (list->kind != ItemKind::kList || list->i < 1) return;
      for (std::int64_t k = 1; k <= list->i; ++k) {
        if (list[k].kind != ItemKind::kTensor || list[k].i != list[1].i) return;
      }
      counts.insert(list->i);
    }
    if (counts.size() < 2) return;
    for (std::size_t r = 0; r < views_.size(); ++r) repeated_[r].insert(mains[r][m]);
  }

  // The list that a split took its sizes from: where a part begins is known from it, too.
  void find_sizes(std::size_t k, const Taken& taken) {
    LoopPlan& plan = plans_[k];
    for (std::size_t i = 0; i < plan.reads.size(); ++i) {
      bool same = true;
      for (std::size_t r = 0; r < views_.size() && same; ++r) {
        const Run& run = views_[r].run;
        const std::uint32_t sizes = run.ops[taken.splits[r]].items + 1;
        if (run.items[sizes].kind != ItemKind::kList) return;  // parts of one size
        for (std::size_t step = 0; step < loops_[k].counts[r] && same; ++step) {
          const std::vector<Item> entry = views_[r].entry(plan.reads[i].ops[r], step);
          same = entry.size() == 1 &&
                 entry[0].i == run.items[sizes + 1 + static_cast<std::uint32_t>(step)].i;
        }
      }
      if (!same) continue;
      (void)index_of(plan.offsets, i);
      return;
    }
  }

  // What is read behind a loop, or by another loop.
  void find_escapes(const RunView& view) {
    const std::size_t number = static_cast<std::size_t>(&view - views_.data());
    const auto last = [&](RunValue v) {
      if (v == kNoRunValue) return;
      const Place made = view.made_at(v);
      if (made.loop == kMain) return;
      const bool is_last = made.step + 1 == loops_[made.loop].counts[number];
      if (!is_last && made.step > 0) throw NotRolled{};
      LoopPlan& plan = plans_[made.loop];
      (is_last ? plan.last : plan.first).insert(view.slot(v));
    };
    for (std::size_t op = 0; op < view.run.ops.size(); ++op) {
      if (view.place(op).loop != kMain) continue;
      view.each_tensor(op, [&](std::uint32_t k, RunValue v, std::int64_t left) -> std::size_t {
        if (const std::size_t parts = view.parts_at(op, k, left).count; parts > 0) return parts;
        const std::uint32_t at = view.run.ops[op].items + k;
        const std::size_t count = left > 0 ? collected_at(view, loops_, number, at, left).count : 0;
        if (count == 0) {
          last(v);
          return 1;
        }
        collect(view, op, v);
        return count;
      });
    }
    for (const RunValue v : view.run.outputs) last(v);
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      for (const Values& each : plans_[k].invariants) last(each[number]);
      for (const Carried& each : plans_[k].carried) last(each.start[number]);
      for (const Taken& each : plans_[k].taken) {
        if (!each.of.empty()) last(each.of[number]);
      }
      for (const ReadList& each : plans_[k].reads) last(each.of[number]);
    }
  }

  void collect(const RunView& view, std::size_t op, RunValue v) {
    const std::size_t k = view.made_at(v).loop;
    const Slot slot = view.slot(v);
    if (!grows(k, slot)) {
      (void)index_of(plans_[k].collected, slot);
      return;
    }
    const OpRecord& record = view.run.ops[op];
    const Item& item = view.run.items[record.items + record.item_count - 1];
    if (view.def(op).name != Op::cat || item.kind != ItemKind::kInt) throw NotRolled{};
    const std::int64_t dim = item.i < 0 ? item.i + view.run.values[v].rank : item.i;
    if (plans_[k].grown.try_emplace(slot, dim).first->second != dim) throw NotRolled{};
  }

  // What grows has the same size along other dims in every step.
  void add_up_grown(std::size_t k) {
    LoopPlan& plan = plans_[k];
    for (const auto& [slot, dim] : plan.grown) {
      auto& by_run = plan.grown_before[slot];
      for (std::size_t r = 0; r < views_.size(); ++r) {
        const Run& run = views_[r].run;
        const RunValue first = made(k, r, 0, slot);
        std::vector<std::int64_t>& before = by_run.emplace_back(1, 0);
        for (std::size_t step = 0; step < loops_[k].counts[r]; ++step) {
          const RunValue v = made(k, r, step, slot);
          for (int axis = 0; axis < run.values[v].rank; ++axis) {
            if (axis != dim && run.dim(v, axis) != run.dim(first, axis)) throw NotRolled{};
          }
          before.push_back(before.back() + run.dim(v, static_cast<int>(dim)));
        }
      }
    }
  }

  // What run `r` made in a slot of a step.
  [[nodiscard]] RunValue made(std::size_t k, std::size_t r, std::size_t step,
                              const Slot& slot) const {
    const Run& run = views_[r].run;
    const OpRecord& record = run.ops[loops_[k].starts[r] + step * loops_[k].period + slot.first];
    return static_cast<RunValue>(
        run.items[record.results + static_cast<std::uint32_t>(slot.second)].i);
  }

  // Whether what is made in a slot differs in size from step to step.
  [[nodiscard]] bool grows(std::size_t k, const Slot& slot) const {
    for (std::size_t r = 0; r < views_.size(); ++r) {
      const Run& run = views_[r].run;
      const RunValue first = made(k, r, 0, slot);
      for (std::size_t step = 1; step < loops_[k].counts[r]; ++step) {
        const RunValue v = made(k, r, step, slot);
        for (int axis = 0; axis < run.values[first].rank; ++axis) {
          if (run.dim(first, axis) != run.dim(v, axis)) return true;
        }
      }
    }
    return false;
  }

  // Steps may write to what they made, and to a tensor of its own that was made before the loop.
  void check_writes(std::size_t k, const RunView& view) {
    const std::size_t number = static_cast<std::size_t>(&view - views_.data());
    const LoopPlaces& loop = loops_[k];
    LoopPlan& plan = plans_[k];
    std::set<RunValue> outside;
    for (std::size_t step = 0; step < loop.counts[number]; ++step) {
      for (std::size_t offset = 0; offset < loop.period; ++offset) {
        const std::size_t op = loop.starts[number] + step * loop.period + offset;
        const OpDef& def = view.def(op);
        if (def.writes >= 0 && def.written_count != 1) throw NotRolled{};
        const RunValue v = view.argument(op, def.writes);
        if (v == kNoRunValue) continue;
        const RunValue from = view.leaves_step(v, {k, step, offset});
        if (from == kNoRunValue) continue;
        if (view.made_at(from).loop == k || view.run.values[from].alias != kNoRunValue) {
          throw NotRolled{};
        }
        const bool known = std::any_of(plan.invariants.begin(), plan.invariants.end(),
                                       [&](const Values& i) { return i[number] == from; });
        if (!known) throw NotRolled{};
        outside.insert(from);
      }
    }
    for (const Values& each : plan.invariants) {
      const RunValue root = view.root(each[number]);
      if (root != each[number] && outside.contains(root)) throw NotRolled{};
    }
    const auto check = [&](const Slot& slot) {
      for (std::size_t step = 0; step < loop.counts[number]; ++step) {
        const OpRecord& record =
            view.run.ops[loop.starts[number] + step * loop.period + slot.first];
        const Item& item = view.run.items[record.results + slot.second];
        const auto v = static_cast<RunValue>(item.i);
        const RunValue from = view.leaves_step(v, {k, step, 0});
        if (from != kNoRunValue && view.is_written(view.root(from))) throw NotRolled{};
      }
    };
    for (const Carried& each : plan.carried) check(each.slot);
    for (const Slot& each : plan.collected) check(each);
    for (const auto& [each, dim] : plan.grown) check(each);
    for (const Slot& each : plan.last) check(each);
    for (const Slot& each : plan.first) check(each);
  }

  const std::vector<RunView>& views_;
  const std::vector<LoopPlaces>& loops_;
  std::vector<LoopPlan> plans_;
  std::vector<ReadList> unread_;
  std::vector<std::set<std::size_t>> apart_, repeated_;
};

}  // namespace

Collected collected_at(const RunView& view, const std::vector<LoopPlaces>& loops,
                       std::size_t number, std::uint32_t at, std::int64_t left) {
  const auto value = [&](std::int64_t k) {
    return static_cast<RunValue>(view.run.items[at + static_cast<std::uint32_t>(k)].i);
  };
  const Place first = view.made_at(value(0));
  if (first.loop == kMain) return {};
  const Slot slot = view.slot(value(0));
  const auto is_step = [&](std::int64_t k, std::size_t step) {
    const Place made = view.made_at(value(k));
    return made.loop == first.loop && made.step == step && view.slot(value(k)) == slot;
  };
  Collected found{1, first.step, left > 1 && first.step > 0 && is_step(1, first.step - 1)};
  for (std::int64_t k = 1; k < left; ++k) {
    if (found.reversed && found.from == 0) break;
    if (!is_step(k, found.reversed ? found.from - 1 : first.step + found.count)) break;
    found.from -= found.reversed ? 1 : 0;
    ++found.count;
  }
  // One alone is read as what the first or the last step made.
  if (found.count == 1 && loops[first.loop].counts[number] > 1) return {};
  return found;
}

Plan plan_loops(const std::vector<RunView>& views, const std::vector<LoopPlaces>& loops) {
  return Planner(views, loops).plan();
}

}  // namespace fairlead::rolling
