// Writes runs anew: loops as one operator, steps as runs, values renumbered in the order they are
// met.
#include <string_view>
#include <unordered_map>

#include "fairlead/trace/roll_impl.h"
#include "fairlead/trace/roll_writer.h"

namespace fairlead::rolling {

Added add_operators(Vocabulary& vocabulary) {
  const auto add = [&](Op op, std::vector<std::string> params = {}) {
    OpDef def;
    def.name = op;
    def.params = std::move(params);
    for (const Param& param : params_of(*def.name.row())) def.params.emplace_back(param.name);
    vocabulary.ops.push_back(std::move(def));
    return static_cast<std::uint32_t>(vocabulary.ops.size() - 1);
  };
  return {add(Op::fairlead_loop, {"loop", "steps", "invariants", "carried"}),
          add(Op::select_int),
          add(Op::slice_Tensor),
          add(Op::permute),
          add(Op::reshape),
          add(Op::cat),
          add(Op::full),
          add(Op::cumsum),
          add(Op::sub_Tensor),
          add(Op::flip),
          add(Op::expand)};
}

namespace {

class RunRoller {
 public:
  RunRoller(const RunView& view, std::size_t number, const Rolling& rolling)
      : view_(view),
        run_(view.run),
        number_(number),
        loops_(rolling.loops),
        plans_(rolling.plan.loops),
        unread_(rolling.plan.unread),
        apart_(rolling.plan.apart.at(number)),
        repeated_(rolling.plan.repeated.at(number)),
        added_(rolling.added),
        writer_(view.run),
        collected_(loops_.size()) {}

  // The run with each loop as one operator.
  Run main(std::unordered_map<RunValue, RunValue>& values) {
    find_read_alone();
    for (const RunValue v : run_.inputs) (void)writer_.input(v);
    for (std::size_t op = 0; op < run_.ops.size();) {
      const Place place = view_.place(op);
      if (place.loop != kMain) {
        add_loop(place.loop);
        op += loops_[place.loop].period * loops_[place.loop].counts[number_];
        continue;
      }
      if (!is_taken_apart(op) && !is_read_in_steps(op)) add_operator(op);
      ++op;
    }
    for (const RunValue v : run_.outputs) writer_.made.outputs.push_back(read(v));
    values = std::move(writer_.number);
    return std::move(writer_.made);
  }

  // A number that a step has read itself goes on being that: out[k, : int(n[k])] = part, where the
  // part is as long in every run. Other numbers forget.
  CarryId read_here(Writer& writer, CarryId id, std::size_t first,
                    const std::vector<CarryId>& place) const {
    if (id == kNoCarry || static_cast<std::size_t>(id) >= run_.carried.size()) return kNoCarry;
    Carry node = run_.carried[static_cast<std::size_t>(id)];
    const auto op = static_cast<std::size_t>(node.a);
    if (node.kind != CarryKind::kRead || op < first || op - first >= place.size()) return kNoCarry;
    node.a = place[op - first];
    writer.made.carried.push_back(node);
    return static_cast<CarryId>(writer.made.carried.size()) - 1;
  }

  // One step of a loop.
  Run step(std::size_t k, std::size_t step) const {
    const LoopPlan& plan = plans_[k];
    const std::size_t first = loops_[k].starts[number_] + step * loops_[k].period;
    Writer writer(run_);
    std::vector<RunValue> invariants, carried, taken;
    for (const Values& each : plan.invariants) {
      invariants.push_back(writer.input(each[number_]));
    }
    // What is taken from is an invariant, too; its shape is that of the main run.
    for (const Taken& each : plan.taken) taken.push_back(taken_source(writer, each));
    std::vector<RunValue> lists, offsets;
    for (const ReadList& each : plan.reads) lists.push_back(writer.input(each.of[number_]));
    for (const std::size_t i : plan.offsets) {
      const RunValue of = plan.reads[i].of[number_];
      offsets.push_back(as_input(writer, of, {run_.dim(of, 0)}));
    }
    for (const Carried& each : plan.carried) {
      carried.push_back(
          writer.input(step == 0 ? each.start[number_] : made(k, step - 1, each.slot)));
    }
    std::vector<RunValue> grown;
    for (const auto& [slot, dim] : plan.grown) {
      const RunValue like = made(k, 0, slot);
      grown.push_back(as_input(writer, like, grown_sizes(k, slot, dim, step)));
    }
    const OpRecord& here = run_.ops[first];
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const ReadList& each = plan.reads[i];
      read_entry(writer, here, lists[i], each, step, view_.entry(each.ops[number_], step));
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const ReadList& each = plan.reads[plan.offsets[i]];
      Item begin;
      begin.kind = ItemKind::kInt;
      begin.i = view_.begin_of(each.ops[number_], step);
      read_entry(writer, here, offsets[i], each, step, {begin});
    }
    // The same value may be an input twice, or be read by its old number: uses say which is meant.
    for (std::size_t t = 0; t < plan.taken.size(); ++t) {
      const RunValue like = taken_value(k, step, t);
      const Taken& each = plan.taken[t];
      const std::size_t part =
          each.reversed ? parts_of(each) - 1 - each.shift - step : step + each.shift;
      if (!each.splits.empty()) {
        taken[t] = part_of(writer, here, taken[t], each.dim, each.splits[number_], part, like);
      } else {
        taken[t] =
            writer.select(added_, here, taken[t], each.dim, static_cast<std::int64_t>(part), like);
      }
    }
    std::map<Slot, RunValue> local;
    std::unordered_map<RunValue, RunValue> own;
    std::vector<CarryId> place;  // of the operators of the step, among those that are written
    for (std::size_t offset = 0; offset < loops_[k].period; ++offset) {
      const OpRecord& record = run_.ops[first + offset];
      writer.begin(record.op, record);
      const auto put = [&](const Item& item, const Use& use, bool result, std::uint32_t position) {
        if (item.kind != ItemKind::kTensor) {
          writer.made.items.push_back(item);
          writer.made.items.back().carried = read_here(writer, item.carried, first, place);
          return;
        }
        const auto v = static_cast<RunValue>(item.i);
        RunValue id = kNoRunValue;
        switch (use.role) {
          case Role::kInvariant:
            id = invariants[use.index];
            break;
          case Role::kCarried:
            id = carried[use.index];
            break;
          case Role::kTaken:
            id = taken[use.index];
            break;
          case Role::kOwn: {
            const auto [it, fresh] = own.try_emplace(v, kNoRunValue);
            if (fresh) it->second = writer.constant(v);
            id = it->second;
            break;
          }
          default: {
            const Slot slot = result && view_.made_at(v).offset == offset ? Slot{offset, position}
                                                                          : view_.slot(v);
            const auto [it, fresh] = local.try_emplace(slot, kNoRunValue);
            if (fresh) {
              if (!result) throw NotRolled{};
              it->second = writer.result(v);
            }
            id = it->second;
          }
        }
        writer.number[v] = id;
        writer.add(ItemKind::kTensor, id);
      };
      for (std::uint32_t i = 0; i < record.item_count; ++i) {
        put(run_.items[record.items + i], plan.uses[offset][i], false, i);
      }
      writer.end_arguments();
      const std::uint32_t results = plan.unread.contains(offset) ? 0 : record.result_count;
      for (std::uint32_t i = 0; i < results; ++i) {
        put(run_.items[record.results + i], plan.uses[offset][record.item_count + i], true, i);
      }
      place.push_back(static_cast<CarryId>(writer.made.ops.size()));
      writer.end();
    }
    const auto output = [&](const Slot& slot) {
      const auto it = local.find(slot);
      if (it == local.end()) throw NotRolled{};
      writer.made.outputs.push_back(it->second);
    };
    for (const Carried& each : plan.carried) output(each.slot);
    std::size_t number = 0;
    for (const auto& [slot, dim] : plan.grown) {
      const auto it = local.find(slot);
      if (it == local.end()) throw NotRolled{};
      writer.begin(added_.cat, run_.ops[first]);
      writer.add(ItemKind::kList, 2);
      writer.add(ItemKind::kTensor, grown[number++]);
      writer.add(ItemKind::kTensor, it->second);
      writer.add(ItemKind::kInt, dim);
      writer.made.outputs.push_back(
          writer.end_with(made(k, step, slot), grown_sizes(k, slot, dim, step + 1)));
    }
    for (const Slot& each : outputs_of(k)) output(each);
    return std::move(writer.made);
  }

 private:
  [[nodiscard]] std::size_t parts_of(const Taken& taken) const {
    if (taken.of.empty()) return loops_[taken.loop].counts[number_];
    if (!taken.splits.empty()) {
      return static_cast<std::size_t>(run_.items[run_.ops[taken.splits[number_]].results].i);
    }
    return static_cast<std::size_t>(run_.dim(taken.of[number_], static_cast<int>(taken.dim)));
  }
  // What a loop collects: what is joined behind it, and what is read there and not carried.
  [[nodiscard]] std::vector<Slot> outputs_of(std::size_t k) const {
    std::vector<Slot> slots = plans_[k].collected;
    for (const Slot& slot : plans_[k].last) {
      if (carried_as(k, slot) == kMain) (void)index_of(slots, slot);
    }
    for (const Slot& slot : plans_[k].first) (void)index_of(slots, slot);
    return slots;
  }
  [[nodiscard]] std::size_t carried_as(std::size_t k, const Slot& slot) const {
    const auto& list = plans_[k].carried;
    for (std::size_t c = 0; c < list.size(); ++c) {
      if (list[c].slot == slot) return c;
    }
    return kMain;
  }
  // The value of the old run in a slot of a step.
  [[nodiscard]] RunValue made(std::size_t k, std::size_t step, const Slot& slot) const {
    const std::size_t op = loops_[k].starts[number_] + step * loops_[k].period + slot.first;
    return static_cast<RunValue>(
        run_.items[run_.ops[op].results + static_cast<std::uint32_t>(slot.second)].i);
  }
  // The size of what the steps before `step` made, joined.
  [[nodiscard]] std::vector<std::int64_t> grown_sizes(std::size_t k, const Slot& slot,
                                                      std::int64_t dim, std::size_t step) const {
    const RunValue like = made(k, 0, slot);
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < run_.values[like].rank; ++axis) {
      sizes.push_back(axis == dim ? plans_[k].grown_before.at(slot)[number_][step]
                                  : run_.dim(like, axis));
    }
    return sizes;
  }
  // The value that step takes: found again at the first place of the body that uses it.
  [[nodiscard]] RunValue taken_value(std::size_t k, std::size_t step, std::size_t t) const {
    const std::size_t first = loops_[k].starts[number_] + step * loops_[k].period;
    for (std::size_t offset = 0; offset < loops_[k].period; ++offset) {
      const auto& uses = plans_[k].uses[offset];
      for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].role != Role::kTaken || uses[i].index != t) continue;
        const OpRecord& record = run_.ops[first + offset];
        return static_cast<RunValue>(run_.items[record.items + static_cast<std::uint32_t>(i)].i);
      }
    }
    throw NotRolled{};
  }
  // What is taken from, as an input of a step.
  RunValue taken_source(Writer& writer, const Taken& each) const {
    if (!each.of.empty()) return writer.input(each.of[number_]);
    const RunValue like = made(each.loop, 0, each.slot);
    std::vector<std::int64_t> sizes = {
        static_cast<std::int64_t>(loops_[each.loop].counts[number_])};
    for (int axis = 0; axis < run_.values[like].rank; ++axis) sizes.push_back(run_.dim(like, axis));
    return as_input(writer, like, sizes);
  }
  // An input of a step that no operator of the old run made.
  static RunValue as_input(Writer& writer, RunValue like, const std::vector<std::int64_t>& sizes) {
    const RunValue id = writer.fresh(like, sizes);
    writer.made.values[id].origin = Origin::kInput;
    writer.made.values[id].producer = -1;
    writer.made.inputs.push_back(id);
    return id;
  }
  // A step reads its entry of a list: the numbers that the whole list had there.
  void read_entry(Writer& writer, const OpRecord& here, RunValue list, const ReadList& each,
                  std::size_t step, const std::vector<Item>& numbers) const {
    const RunValue row =
        writer.select(added_, here, list, 0, static_cast<std::int64_t>(step), each.of[number_]);
    writer.begin(run_.ops[each.ops[number_]].op, here);
    writer.add(ItemKind::kTensor, row);
    writer.end_arguments();
    writer.add(ItemKind::kList, static_cast<std::int64_t>(numbers.size()));
    for (const Item& item : numbers) writer.made.items.push_back(item);
    writer.end();
  }
  // One part of a tensor that operator `split` took apart.
  RunValue part_of(Writer& writer, const OpRecord& here, RunValue of, std::int64_t dim,
                   std::size_t split, std::size_t part, RunValue like) const {
    const std::int64_t begin = view_.begin_of(split, part);
    const std::int64_t size = run_.dim(like, static_cast<int>(dim));
    writer.begin(added_.slice, here);
    writer.add(ItemKind::kTensor, of);
    for (const std::int64_t number : {dim, begin, begin + size, std::int64_t{1}}) {
      writer.add(ItemKind::kInt, number);
    }
    std::vector<std::int64_t> dims;
    for (int axis = 0; axis < run_.values[like].rank; ++axis) dims.push_back(run_.dim(like, axis));
    return writer.end_with(like, dims);
  }

  // Whether an operator only takes a tensor apart whose parts are joined again, or taken by loops.
  [[nodiscard]] bool is_taken_apart(std::size_t op) const {
    if (!view_.def(op).name.has(Trait::kTakesApart)) return false;
    if (apart_.contains(op)) return true;  // single parts are taken where they are read
    const OpRecord& record = run_.ops[op];
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const Item& item = run_.items[record.results + k];
      if (item.kind == ItemKind::kTensor && read_alone_.contains(static_cast<RunValue>(item.i))) {
        return false;
      }
    }
    return true;
  }

  // A list of numbers whose length varies: its steps read it, or what it was for is rolled.
  [[nodiscard]] bool is_read_in_steps(std::size_t op) const {
    const auto here = [&](const std::vector<ReadList>& lists) {
      return std::any_of(lists.begin(), lists.end(),
                         [&](const ReadList& each) { return each.ops[number_] == op; });
    };
    return here(unread_) || std::any_of(plans_.begin(), plans_.end(),
                                        [&](const LoopPlan& plan) { return here(plan.reads); });
  }

  // Values that are read other than as one of the parts of a list.
  void find_read_alone() {
    for (std::size_t op = 0; op < run_.ops.size(); ++op) {
      if (view_.place(op).loop != kMain) continue;
      view_.each_tensor(op, [&](std::uint32_t k, RunValue v, std::int64_t left) -> std::size_t {
        const std::size_t parts = view_.parts_at(op, k, left).count;
        if (parts == 0) read_alone_.insert(v);
        return std::max<std::size_t>(parts, 1);
      });
    }
    read_alone_.insert(run_.outputs.begin(), run_.outputs.end());
    for (const LoopPlan& plan : plans_) {
      for (const Values& each : plan.invariants) read_alone_.insert(each[number_]);
      for (const Carried& each : plan.carried) read_alone_.insert(each.start[number_]);
    }
  }

  [[nodiscard]] RunValue collected(std::size_t k, const Slot& slot) const {
    const auto it = collected_[k].find(slot);
    if (it == collected_[k].end()) throw NotRolled{};
    return it->second;
  }

  RunValue read(RunValue v) {
    if (const auto it = writer_.number.find(v); it != writer_.number.end()) return it->second;
    if (run_.values[v].origin == Origin::kConstant) return writer_.constant(v);
    return writer_.number[v] = single_part(v);
  }

  // One of as many parts as a size says, read alone: the first, say, by the first step of a loop,
  // which is another one than the rest.
  RunValue single_part(RunValue v) {
    const std::int32_t producer = run_.values[v].producer;
    if (producer < 0 || view_.is_written(view_.root(v))) throw NotRolled{};
    const auto op = static_cast<std::size_t>(producer);
    if (!apart_.contains(op)) throw NotRolled{};  // what is left of one that was taken apart
    const OpRecord& record = run_.ops[op];
    const RunValue of = view_.argument(op, 0);
    const Item& item = run_.items[record.items + record.item_count - 1];
    std::int64_t dim = item.kind == ItemKind::kInt ? item.i : 0;
    if (dim < 0) dim += run_.values[of].rank;
    const std::size_t part = view_.result_number(v) - 1;
    const RunValue whole = read(of);
    if (view_.def(op).name != Op::unbind_int) {
      return part_of(writer_, record, whole, dim, op, part, v);
    }
    return writer_.select(added_, record, whole, dim, static_cast<std::int64_t>(part), v);
  }

  // Where parts of these sizes begin.
  RunValue begins_of(const OpRecord& like, RunValue sizes) {
    const RunValue of = read(sizes);
    const std::vector<std::int64_t> dims = writer_.dims(of);
    writer_.begin(added_.cumsum, like);
    writer_.add(ItemKind::kTensor, of);
    writer_.add(ItemKind::kInt, 0);
    writer_.add(ItemKind::kDtype, static_cast<std::int64_t>(run_.values[sizes].dtype));
    const RunValue ends = writer_.end_with(sizes, dims);
    writer_.begin(added_.sub, like);
    writer_.add(ItemKind::kTensor, ends);
    writer_.add(ItemKind::kTensor, of);
    writer_.add(ItemKind::kInt, 1);
    return writer_.end_with(sizes, dims);
  }

  void add_loop(std::size_t k) {
    const LoopPlan& plan = plans_[k];
    const std::size_t count = loops_[k].counts[number_];
    const OpRecord& like = run_.ops[loops_[k].starts[number_]];
    std::vector<RunValue> invariants, starts;
    for (const Values& each : plan.invariants) invariants.push_back(read(each[number_]));
    for (const Taken& each : plan.taken) {
      if (each.of.empty() && plans_[each.loop].grown.contains(each.slot)) throw NotRolled{};
      invariants.push_back(each.of.empty() ? collected(each.loop, each.slot)
                                           : read(each.of[number_]));
    }
    for (const ReadList& each : plan.reads) invariants.push_back(read(each.of[number_]));
    for (const std::size_t i : plan.offsets) {
      invariants.push_back(begins_of(like, plan.reads[i].of[number_]));
    }
    for (const Carried& each : plan.carried) starts.push_back(read(each.start[number_]));
    for (const auto& [slot, dim] : plan.grown) {
      const RunValue first = made(k, 0, slot);
      const std::vector<std::int64_t> sizes = grown_sizes(k, slot, dim, 0);
      writer_.begin(added_.full, like);
      writer_.add_ints(sizes);
      writer_.add(ItemKind::kInt, 0);
      writer_.add(ItemKind::kDtype, static_cast<std::int64_t>(run_.values[first].dtype));
      for (int none = 0; none < 3; ++none) writer_.add(ItemKind::kNone, 0);
      starts.push_back(writer_.end_with(first, sizes));
    }
    writer_.begin(added_.loop, like);
    writer_.add(ItemKind::kInt, static_cast<std::int64_t>(k));
    writer_.add(ItemKind::kInt, static_cast<std::int64_t>(count));
    for (const auto* list : {&invariants, &starts}) {
      writer_.add(ItemKind::kList, static_cast<std::int64_t>(list->size()));
      for (const RunValue v : *list) writer_.add(ItemKind::kTensor, v);
    }
    writer_.end_arguments();
    for (const Carried& each : plan.carried) {
      const RunValue v = made(k, count - 1, each.slot);
      const RunValue id = writer_.result(v);
      writer_.made.values[id].alias = kNoRunValue;
      writer_.made.kept.erase(id);
      writer_.add(ItemKind::kTensor, id);
    }
    for (const auto& [slot, dim] : plan.grown) {
      const RunValue id = writer_.fresh(made(k, count - 1, slot), grown_sizes(k, slot, dim, count));
      collected_[k][slot] = id;
      writer_.add(ItemKind::kTensor, id);
    }
    const std::vector<Slot> slots = outputs_of(k);
    for (const Slot& slot : slots) {
      const RunValue v = made(k, 0, slot);
      std::vector<std::int64_t> sizes = {static_cast<std::int64_t>(count)};
      for (int axis = 0; axis < run_.values[v].rank; ++axis) sizes.push_back(run_.dim(v, axis));
      for (std::size_t step = 1; step < count; ++step) {
        const RunValue other = made(k, step, slot);
        for (int axis = 0; axis < run_.values[v].rank; ++axis) {
          if (run_.dim(other, axis) != run_.dim(v, axis)) throw NotRolled{};
        }
      }
      const RunValue id = writer_.fresh(v, sizes);
      writer_.made.values[id].tainted = run_.values[made(k, count - 1, slot)].tainted;
      collected_[k][slot] = id;
      writer_.add(ItemKind::kTensor, id);
    }
    writer_.end();
    for (const Slot& slot : plan.last) {
      if (carried_as(k, slot) != kMain) continue;
      const RunValue v = made(k, count - 1, slot);
      writer_.number[v] = writer_.select(added_, like, collected(k, slot), 0,
                                         static_cast<std::int64_t>(count) - 1, v);
    }
    for (const Slot& slot : plan.first) {
      const RunValue v = made(k, 0, slot);
      writer_.number[v] = writer_.select(added_, like, collected(k, slot), 0, 0, v);
    }
  }

  void add_operator(std::size_t op) {
    const OpRecord& record = run_.ops[op];
    const OpName& name = view_.def(op).name;
    // Lists of what steps made: first they are joined, then the operator is written.
    std::vector<std::pair<std::uint32_t, std::size_t>> joined;  // item, how many
    std::unordered_map<std::uint32_t, RunValue> joins;
    std::map<std::uint32_t, std::pair<std::size_t, RunValue>> stacked;  // item -> how many, joined
    view_.each_tensor(op, [&](std::uint32_t k, RunValue v, std::int64_t left) -> std::size_t {
      if (left == 0) return 1;
      const int rank = run_.values[v].rank;
      if (repeated_.contains(op)) {
        const auto count = static_cast<std::size_t>(left);
        const std::int64_t dim = run_.items[record.items + record.item_count - 1].i;
        const RunValue whole = repeat(record, v, left);
        if (name != Op::stack) {
          joins.emplace(k, join(record, v, whole, dim));
          joined.emplace_back(k, count);
          return count;
        }
        stacked[k] = {count, permuted(record, whole, dim < 0 ? dim + rank + 1 : dim, v)};
        return count;
      }
      const RunView::Parts parts = view_.parts_at(op, k, left);
      const bool apart = parts.count > 0 && is_taken_apart(parts.op);
      const Collected steps = apart ? Collected{parts.count, 0, false}
                                    : collected_at(view_, loops_, number_, record.items + k, left);
      const std::size_t count = steps.count;
      if (count == 0) return 1;
      if (!view_.joins(op)) throw NotRolled{};
      const std::int64_t dim = run_.items[record.items + record.item_count - 1].i;
      if (apart && !parts.unbound) {
        if (name != Op::cat || (dim < 0 ? dim + rank : dim) != parts.dim) {
          throw NotRolled{};
        }
        joins.emplace(k, read(parts.of));
        joined.emplace_back(k, count);
        return count;
      }
      const bool grown = !apart && plans_[view_.made_at(v).loop].grown.contains(view_.slot(v));
      RunValue whole =
          apart ? in_front(record, parts) : collected(view_.made_at(v).loop, view_.slot(v));
      const bool all = apart || count == loops_[view_.made_at(v).loop].counts[number_];
      if (grown && (steps.reversed || !all)) throw NotRolled{};
      if (!all) whole = sliced(record, whole, steps, v);
      if (steps.reversed) whole = flipped(record, whole, v);
      if (name == Op::stack) {
        const auto made = static_cast<RunValue>(run_.items[record.results].i);
        stacked[k] = {count, permuted(record, whole, dim < 0 ? dim + rank + 1 : dim, made)};
        return count;
      }
      joins.emplace(k, grown ? whole : join(record, v, whole, dim));
      joined.emplace_back(k, count);
      return count;
    });
    if (!stacked.empty()) {
      add_stack(record, stacked);
      return;
    }
    std::vector<Item> items;
    for (std::uint32_t k = 0; k < record.item_count; ++k) {
      Item item = run_.items[record.items + k];
      if (const auto it = joins.find(k); it != joins.end()) {
        item.i = it->second;
        for (const auto& [at, count] : joined) {
          if (at == k) k += static_cast<std::uint32_t>(count) - 1;
        }
      } else if (item.kind == ItemKind::kTensor) {
        item.i = read(static_cast<RunValue>(item.i));
      }
      items.push_back(item);
    }
    for (const auto& [at, count] : joined) items[0].i -= static_cast<std::int64_t>(count) - 1;
    writer_.begin(record.op, record);
    writer_.made.items.insert(writer_.made.items.end(), items.begin(), items.end());
    writer_.end_arguments();
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      Item item = run_.items[record.results + k];
      if (item.kind == ItemKind::kTensor) {
        const auto v = static_cast<RunValue>(item.i);
        const auto it = writer_.number.find(v);
        const bool again = run_.values[v].producer != static_cast<std::int32_t>(op);
        item.i = again && it != writer_.number.end() ? it->second : writer_.result(v);
      }
      writer_.made.items.push_back(item);
    }
    writer_.end();
  }

  // A tensor that was unbound, with that dimension first.
  RunValue in_front(const OpRecord& record, const RunView::Parts& parts) {
    const RunValue whole = read(parts.of);
    const std::vector<std::int64_t> sizes = writer_.dims(whole);
    std::vector<std::int64_t> order = {parts.dim}, moved;
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(sizes.size()); ++axis) {
      if (axis != parts.dim) order.push_back(axis);
    }
    for (const std::int64_t axis : order) moved.push_back(sizes[static_cast<std::size_t>(axis)]);
    writer_.begin(added_.permute, record);
    writer_.add(ItemKind::kTensor, whole);
    writer_.add_ints(order);
    return writer_.end_with(parts.of, moved);
  }

  // [steps, ...] with the steps where `dim` of the stacked result is.
  RunValue permuted(const OpRecord& record, RunValue whole, std::int64_t dim, RunValue like) {
    const std::vector<std::int64_t> sizes = writer_.dims(whole);
    std::vector<std::int64_t> order;
    for (std::int64_t axis = 1; axis < static_cast<std::int64_t>(sizes.size()); ++axis) {
      order.push_back(axis);
    }
    order.insert(order.begin() + dim, 0);
    std::vector<std::int64_t> moved;
    for (const std::int64_t axis : order) moved.push_back(sizes[static_cast<std::size_t>(axis)]);
    writer_.begin(added_.permute, record);
    writer_.add(ItemKind::kTensor, whole);
    writer_.add_ints(order);
    return writer_.end_with(like, moved);
  }

  // A tensor as often as a size says: [count, ...].
  RunValue repeat(const OpRecord& record, RunValue v, std::int64_t count) {
    const RunValue one = read(v);
    std::vector<std::int64_t> sizes = writer_.dims(one);
    sizes.insert(sizes.begin(), count);
    writer_.begin(added_.expand, record);
    writer_.add(ItemKind::kTensor, one);
    writer_.add_ints(sizes);
    writer_.add(ItemKind::kBool, 0);
    return writer_.end_with(v, sizes);
  }

  // What some of the steps made: torch.stack(states[1:]).
  RunValue sliced(const OpRecord& record, RunValue whole, const Collected& steps, RunValue like) {
    std::vector<std::int64_t> sizes = writer_.dims(whole);
    sizes[0] = static_cast<std::int64_t>(steps.count);
    const auto from = static_cast<std::int64_t>(steps.from);
    writer_.begin(added_.slice, record);
    writer_.add(ItemKind::kTensor, whole);
    for (const std::int64_t number : {std::int64_t{0}, from, from + sizes[0], std::int64_t{1}}) {
      writer_.add(ItemKind::kInt, number);
    }
    return writer_.end_with(like, sizes);
  }

  // The steps of a loop from the last one to the first.
  RunValue flipped(const OpRecord& record, RunValue whole, RunValue like) {
    const std::vector<std::int64_t> sizes = writer_.dims(whole);
    writer_.begin(added_.flip, record);
    writer_.add(ItemKind::kTensor, whole);
    writer_.add_ints({0});
    return writer_.end_with(like, sizes);
  }

  // torch.stack of what steps made, which is joined already, and of single values beside it: a state
  // before the loop, or what its first step made in its own way.
  void add_stack(const OpRecord& record,
                 const std::map<std::uint32_t, std::pair<std::size_t, RunValue>>& joined) {
    const auto v = static_cast<RunValue>(run_.items[record.results].i);
    std::int64_t dim = run_.items[record.items + record.item_count - 1].i;
    if (dim < 0) dim += run_.values[v].rank;
    std::vector<RunValue> parts;
    const auto end = static_cast<std::uint32_t>(run_.items[record.items].i) + 1;
    for (std::uint32_t k = 1; k < end;) {
      if (const auto it = joined.find(k); it != joined.end()) {
        parts.push_back(it->second.second);
        k += static_cast<std::uint32_t>(it->second.first);
        continue;
      }
      const RunValue one = read(static_cast<RunValue>(run_.items[record.items + k++].i));
      std::vector<std::int64_t> sizes = writer_.dims(one);
      sizes.insert(sizes.begin() + dim, 1);
      writer_.begin(added_.reshape, record);
      writer_.add(ItemKind::kTensor, one);
      writer_.add_ints(sizes);
      parts.push_back(writer_.end_with(v, sizes));
    }
    if (parts.size() > 1) {
      std::vector<std::int64_t> sizes;
      for (int axis = 0; axis < run_.values[v].rank; ++axis) sizes.push_back(run_.dim(v, axis));
      writer_.begin(added_.cat, record);
      writer_.add(ItemKind::kList, static_cast<std::int64_t>(parts.size()));
      for (const RunValue part : parts) writer_.add(ItemKind::kTensor, part);
      writer_.add(ItemKind::kInt, dim);
      parts = {writer_.end_with(v, sizes)};
    }
    writer_.number[v] = parts.front();
  }

  // What torch.cat makes of the collected values along `dim`.
  RunValue join(const OpRecord& record, RunValue first, RunValue whole, std::int64_t dim) {
    const int rank = run_.values[first].rank;
    if (dim < 0) dim += rank;
    const RunValue moved = permuted(record, whole, dim, first);
    std::vector<std::int64_t> sizes = writer_.dims(moved);
    sizes[static_cast<std::size_t>(dim)] *= sizes[static_cast<std::size_t>(dim) + 1];
    sizes.erase(sizes.begin() + dim + 1);
    writer_.begin(added_.reshape, record);
    writer_.add(ItemKind::kTensor, moved);
    writer_.add_ints(sizes);
    return writer_.end_with(first, sizes);
  }

  const RunView& view_;
  const Run& run_;
  std::size_t number_;
  const std::vector<LoopPlaces>& loops_;
  const std::vector<LoopPlan>& plans_;
  const std::vector<ReadList>& unread_;
  const std::set<std::size_t>&apart_, &repeated_;
  const Added& added_;
  Writer writer_;
  std::set<RunValue> read_alone_;
  std::vector<std::map<Slot, RunValue>> collected_;  // by loop: the values of all steps
};

}  // namespace

Run write_main(const RunView& view, std::size_t number, const Rolling& rolling,
               std::unordered_map<RunValue, RunValue>& values) {
  return RunRoller(view, number, rolling).main(values);
}

Run write_step(const RunView& view, std::size_t number, const Rolling& rolling, std::size_t k,
               std::size_t step) {
  return RunRoller(view, number, rolling).step(k, step);
}

}  // namespace fairlead::rolling
