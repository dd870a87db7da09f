// First what every argument of a loop's body is, by looking at all steps of all runs; then the runs
// are written anew, values renumbered in the order they are met.
#include "fairlead/trace/roll.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace fairlead {
namespace {

constexpr std::size_t kMain = static_cast<std::size_t>(-1);

struct Place {
  std::size_t loop = kMain;
  std::size_t step = 0;
  std::size_t offset = 0;
};

// Result `second` of the operator at `first` of a loop's body.
using Slot = std::pair<std::size_t, std::size_t>;
using Values = std::vector<RunValue>;  // by run

enum class Role : std::uint8_t {
  kUnknown,
  kLocal,      // made in this step, or a number
  kInvariant,  // `index` into LoopPlan::invariants
  kCarried,    // into LoopPlan::carried
  kTaken,      // into LoopPlan::taken: element number `step` of something made before
  kOwn,        // a tensor that Python made in this step
};

struct Use {
  Role role = Role::kUnknown;
  std::size_t index = 0;
};

struct Carried {
  Slot slot;
  Values start;
  bool operator==(const Carried&) const = default;
};

// One element per step: of a tensor that was unbound, or of what another loop collected.
struct Taken {
  Values of;  // the tensor; empty where a loop collected it
  std::int64_t dim = 0;
  std::size_t loop = kMain;
  Slot slot;
  bool operator==(const Taken&) const = default;
};

struct LoopPlan {
  std::vector<std::vector<Use>> uses;  // by offset, then item
  std::vector<Values> invariants;
  std::vector<Carried> carried;
  std::vector<Taken> taken;
  std::vector<Slot> collected;
  std::map<Slot, std::int64_t> grown;  // what differs in size from step to step, and is joined
                                       // along this dim: step by step, it is carried
  std::set<Slot> last;                 // what is read behind the loop as the last step made it
};

template <typename T>
std::size_t index_of(std::vector<T>& list, const T& value) {
  const auto it = std::find(list.begin(), list.end(), value);
  if (it != list.end()) return static_cast<std::size_t>(it - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

// Nothing is rolled: the steps do not hang together.
struct NotRolled {};

class RunView {
 public:
  RunView(const Vocabulary& vocabulary, const Run& run, const std::vector<LoopPlaces>& loops,
          std::size_t number)
      : run(run),
        vocabulary_(vocabulary),
        places_(run.ops.size()),
        first_use_(run.values.size(), kMain),
        last_use_(run.values.size(), 0) {
    for (std::size_t k = 0; k < loops.size(); ++k) {
      for (std::size_t step = 0; step < loops[k].counts[number]; ++step) {
        for (std::size_t offset = 0; offset < loops[k].period; ++offset) {
          places_[loops[k].starts[number] + step * loops[k].period + offset] = {k, step, offset};
        }
      }
    }
    for (std::size_t op = 0; op < run.ops.size(); ++op) {
      const OpRecord& record = run.ops[op];
      for (std::uint32_t k = 0; k < record.item_count; ++k) {
        const Item& item = run.items[record.items + k];
        if (item.kind != ItemKind::kTensor) continue;
        first_use_[item.i] = std::min(first_use_[item.i], op);
        last_use_[item.i] = op;
      }
      const OpDef& def = vocabulary.ops[record.op];
      for (int k = 0; k < def.written_count; ++k) {
        const RunValue v = argument(op, def.writes < 0 ? -1 : def.writes + k);
        if (v != kNoRunValue) written_.insert(root(v));
      }
    }
    for (const RunValue v : run.outputs) last_use_[v] = run.ops.size();
  }

  const Run& run;

  [[nodiscard]] Place place(std::size_t op) const {
    return op < places_.size() ? places_[op] : Place{};
  }
  [[nodiscard]] Place made_at(RunValue v) const {
    const std::int32_t producer = run.values[v].producer;
    return producer < 0 ? Place{} : places_[static_cast<std::size_t>(producer)];
  }
  // Which result of its operator v is.
  [[nodiscard]] std::size_t result_number(RunValue v) const {
    const OpRecord& record = run.ops[static_cast<std::size_t>(run.values[v].producer)];
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const Item& item = run.items[record.results + k];
      if (item.kind == ItemKind::kTensor && item.i == v) return k;
    }
    throw NotRolled{};
  }
  [[nodiscard]] Slot slot(RunValue v) const { return {made_at(v).offset, result_number(v)}; }
  // A tensor that Python made and only this step reads.
  [[nodiscard]] bool own(RunValue v, const Place& at) const {
    if (run.values[v].origin != Origin::kConstant) return false;
    if (run.constants[run.values[v].constant].persistent) return false;
    const Place first = place(first_use_[v]), last = place(last_use_[v]);
    return last_use_[v] < run.ops.size() && first.loop == at.loop && first.step == at.step &&
           last.loop == at.loop && last.step == at.step;
  }
  [[nodiscard]] RunValue root(RunValue v) const {
    while (run.values[v].alias != kNoRunValue) v = run.values[v].alias;
    return v;
  }
  [[nodiscard]] bool is_written(RunValue root) const { return written_.contains(root); }
  // The first value up the chain of views that was not made in the same step of the loop.
  [[nodiscard]] RunValue leaves_step(RunValue v, const Place& at) const {
    while (v != kNoRunValue) {
      const Place made = made_at(v);
      if (made.loop != at.loop || made.step != at.step) return v;
      v = run.values[v].alias;
    }
    return kNoRunValue;
  }
  // The tensor that is argument `number` of an operator.
  [[nodiscard]] RunValue argument(std::size_t op, int number) const {
    if (number < 0) return kNoRunValue;
    const OpRecord& record = run.ops[op];
    std::uint32_t at = record.items;
    for (int k = 0; k < number; ++k) at = skip(at);
    const Item& item = run.items[at];
    return item.kind == ItemKind::kTensor ? static_cast<RunValue>(item.i) : kNoRunValue;
  }
  [[nodiscard]] const OpDef& def(std::size_t op) const { return vocabulary_.ops[run.ops[op].op]; }

 private:
  [[nodiscard]] std::uint32_t skip(std::uint32_t at) const {
    const Item& item = run.items[at++];
    if (item.kind == ItemKind::kList) {
      for (std::int64_t k = 0; k < item.i; ++k) at = skip(at);
    }
    return at;
  }

  const Vocabulary& vocabulary_;
  std::vector<Place> places_;
  std::vector<std::size_t> first_use_, last_use_;
  std::set<RunValue> written_;
};

// ---- what the bodies compute on ---------------------------------------------------------------

class Planner {
 public:
  Planner(const std::vector<RunView>& views, const std::vector<LoopPlaces>& loops)
      : views_(views), loops_(loops), plans_(loops.size()) {}

  std::vector<LoopPlan> plan() {
    for (std::size_t k = 0; k < loops_.size(); ++k) plan_body(k);
    for (const RunView& view : views_) find_escapes(view);
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      for (const RunView& view : views_) check_writes(k, view);
    }
    return std::move(plans_);
  }

  // The values of a list at `at` that are what every step of a loop made, in order: how many, 0
  // for none.
  static std::size_t collected_at(const RunView& view, const std::vector<LoopPlaces>& loops,
                                  std::size_t number, std::uint32_t at, std::int64_t left) {
    const auto value = [&](std::int64_t k) {
      return static_cast<RunValue>(view.run.items[at + static_cast<std::uint32_t>(k)].i);
    };
    const Place first = view.made_at(value(0));
    if (first.loop == kMain || first.step != 0) return 0;
    const std::size_t count = loops[first.loop].counts[number];
    if (static_cast<std::int64_t>(count) > left) return 0;
    const Slot slot = view.slot(value(0));
    for (std::size_t k = 1; k < count; ++k) {
      const RunValue v = value(static_cast<std::int64_t>(k));
      const Place made = view.made_at(v);
      if (made.loop != first.loop || made.step != k || view.slot(v) != slot) return 0;
    }
    return count;
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
      const std::uint32_t count = arguments + model.result_count;
      for (std::uint32_t item = 0; item < count; ++item) {
        std::vector<Seen> seen;
        for (std::size_t r = 0; r < views_.size(); ++r) {
          const Run& run = views_[r].run;
          for (std::size_t step = 0; step < loop.counts[r]; ++step) {
            const OpRecord& record = run.ops[loop.starts[r] + step * loop.period + offset];
            if (record.item_count != arguments || record.result_count != model.result_count) {
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
    found.of.assign(views_.size(), kNoRunValue);
    for (const Seen& s : seen) {
      const RunView& view = views_[s.run];
      const Place made = view.made_at(s.v);
      Taken now = found;
      if (made.loop != kMain) {
        if (made.step != s.step || loops_[made.loop].counts[s.run] != loops_[k].counts[s.run]) {
          throw NotRolled{};
        }
        now.of.clear();
        now.loop = made.loop;
        now.slot = view.slot(s.v);
      } else {
        const std::int32_t producer = view.run.values[s.v].producer;
        if (producer < 0 || found.of.empty()) throw NotRolled{};
        const auto op = static_cast<std::size_t>(producer);
        // A list comes first among the results.
        if (view.def(op).name != "aten.unbind.int" || view.result_number(s.v) != s.step + 1) {
          throw NotRolled{};
        }
        now.of[s.run] = view.argument(op, 0);
        const Item& dim = view.run.items[view.run.ops[op].items + 1];
        now.dim = dim.kind == ItemKind::kInt ? dim.i : 0;
        const int rank = view.run.values[now.of[s.run]].rank;
        if (now.dim < 0) now.dim += rank;
      }
      const bool first = &s == &seen.front();
      if (!first && (now.loop != found.loop || now.dim != found.dim || now.slot != found.slot)) {
        throw NotRolled{};
      }
      if (!first && s.step > 0 && now.of != found.of) throw NotRolled{};
      found = now;
    }
    if (found.loop != kMain) (void)index_of(plans_[found.loop].collected, found.slot);
    return {Role::kTaken, index_of(plans_[k].taken, found)};
  }

  // What is read behind a loop, or by another loop.
  void find_escapes(const RunView& view) {
    const std::size_t number = static_cast<std::size_t>(&view - views_.data());
    const auto last = [&](RunValue v) {
      if (v == kNoRunValue) return;
      const Place made = view.made_at(v);
      if (made.loop == kMain) return;
      if (made.step + 1 != loops_[made.loop].counts[number]) throw NotRolled{};
      plans_[made.loop].last.insert(view.slot(v));
    };
    for (std::size_t op = 0; op < view.run.ops.size(); ++op) {
      if (view.place(op).loop != kMain) continue;
      const OpRecord& record = view.run.ops[op];
      std::int64_t in_list = 0;
      for (std::uint32_t k = 0; k < record.item_count; ++k) {
        const Item& item = view.run.items[record.items + k];
        if (item.kind == ItemKind::kList) {
          in_list = item.i;
          continue;
        }
        const std::int64_t left = in_list;
        if (in_list > 0) --in_list;
        if (item.kind != ItemKind::kTensor) continue;
        const std::size_t count =
            left > 0 ? collected_at(view, loops_, number, record.items + k, left) : 0;
        if (count == 0) {
          last(static_cast<RunValue>(item.i));
          continue;
        }
        collect(view, op, static_cast<RunValue>(item.i));
        k += static_cast<std::uint32_t>(count) - 1;
        in_list = left - static_cast<std::int64_t>(count);
      }
    }
    for (const RunValue v : view.run.outputs) last(v);
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      for (const Values& each : plans_[k].invariants) last(each[number]);
      for (const Carried& each : plans_[k].carried) last(each.start[number]);
      for (const Taken& each : plans_[k].taken) {
        if (!each.of.empty()) last(each.of[number]);
      }
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
    if (view.def(op).name != "aten.cat.default" || item.kind != ItemKind::kInt) throw NotRolled{};
    const std::int64_t dim = item.i < 0 ? item.i + view.run.values[v].rank : item.i;
    if (plans_[k].grown.try_emplace(slot, dim).first->second != dim) throw NotRolled{};
  }

  // Whether what is made in a slot differs in size from step to step.
  [[nodiscard]] bool grows(std::size_t k, const Slot& slot) const {
    for (std::size_t r = 0; r < views_.size(); ++r) {
      const Run& run = views_[r].run;
      std::vector<RunValue> made;
      for (std::size_t step = 0; step < loops_[k].counts[r]; ++step) {
        const OpRecord& record =
            run.ops[loops_[k].starts[r] + step * loops_[k].period + slot.first];
        made.push_back(static_cast<RunValue>(
            run.items[record.results + static_cast<std::uint32_t>(slot.second)].i));
        for (int axis = 0; axis < run.values[made[0]].rank; ++axis) {
          if (run.dim(made[0], axis) != run.dim(made.back(), axis)) return true;
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
  }

  const std::vector<RunView>& views_;
  const std::vector<LoopPlaces>& loops_;
  std::vector<LoopPlan> plans_;
};

// ---- the runs written anew --------------------------------------------------------------------

// Operators that rolling puts in.
struct Added {
  std::uint32_t loop, select, permute, reshape, cat, full;
};

Added add_operators(Vocabulary& vocabulary) {
  const auto add = [&](std::string_view name, std::vector<std::string> params) {
    OpDef def;
    def.name = name;
    def.params = std::move(params);
    vocabulary.ops.push_back(std::move(def));
    return static_cast<std::uint32_t>(vocabulary.ops.size() - 1);
  };
  return {
      add(kLoopOp, {"loop", "steps", "invariants", "carried"}),
      add("aten.select.int", {"self", "dim", "index"}),
      add("aten.permute.default", {"self", "dims"}),
      add("aten.reshape.default", {"self", "shape"}),
      add("aten.cat.default", {"tensors", "dim"}),
      add("aten.full.default", {"size", "fill_value", "dtype", "layout", "device", "pin_memory"})};
}

// A run under construction from parts of another.
class Writer {
 public:
  explicit Writer(const Run& from) : from_(from) {}

  Run made;
  std::unordered_map<RunValue, RunValue> number;  // value of the old run -> of the new

  RunValue copy_value(RunValue v) {
    const ValueFact& old = from_.values[v];
    ValueFact fact = old;
    fact.dims = static_cast<std::uint32_t>(made.dims.size());
    for (int axis = 0; axis < old.rank; ++axis) made.dims.push_back(from_.dim(v, axis));
    const auto it = number.find(old.alias);
    fact.alias = old.alias != kNoRunValue && it != number.end() ? it->second : kNoRunValue;
    fact.producer = -1;
    fact.constant = -1;
    const RunValue id = push(fact);
    number[v] = id;
    if (const auto strides = from_.strides.find(v); strides != from_.strides.end()) {
      made.strides.emplace(id, strides->second);
    }
    return id;
  }
  RunValue input(RunValue v) {
    const RunValue id = copy_value(v);
    ValueFact& fact = made.values[id];
    fact.origin = Origin::kInput;
    fact.alias = kNoRunValue;
    made.inputs.push_back(id);
    return id;
  }
  RunValue constant(RunValue v) {
    const RunValue id = copy_value(v);
    RunConstant kept = from_.constants[from_.values[v].constant];
    kept.value = id;
    made.values[id].constant = static_cast<std::int32_t>(made.constants.size());
    made.constants.push_back(std::move(kept));
    return id;
  }
  RunValue result(RunValue v) {
    const RunValue id = copy_value(v);
    made.values[id].producer = static_cast<std::int32_t>(made.ops.size());
    if (const auto kept = from_.kept.find(v); kept != from_.kept.end()) {
      RunConstant copy = kept->second;
      copy.value = id;
      made.kept.emplace(id, std::move(copy));
    }
    return id;
  }
  // A value that no operator of the old run made.
  RunValue fresh(RunValue like, const std::vector<std::int64_t>& dims) {
    ValueFact fact = from_.values[like];
    fact.origin = Origin::kOperator;
    fact.rank = static_cast<std::uint8_t>(dims.size());
    fact.dims = static_cast<std::uint32_t>(made.dims.size());
    made.dims.insert(made.dims.end(), dims.begin(), dims.end());
    fact.alias = kNoRunValue;
    fact.constant = -1;
    fact.producer = static_cast<std::int32_t>(made.ops.size());
    return push(fact);
  }
  [[nodiscard]] std::vector<std::int64_t> dims(RunValue v) const {
    std::vector<std::int64_t> list;
    for (int axis = 0; axis < made.values[v].rank; ++axis) list.push_back(made.dim(v, axis));
    return list;
  }

  void begin(std::uint32_t op, const OpRecord& like) {
    record_ = like;
    record_.op = op;
    record_.items = static_cast<std::uint32_t>(made.items.size());
  }
  void add(ItemKind kind, std::int64_t i) {
    Item item;
    item.kind = kind;
    item.i = i;
    made.items.push_back(item);
  }
  void add_ints(const std::vector<std::int64_t>& values) {
    add(ItemKind::kList, static_cast<std::int64_t>(values.size()));
    for (const std::int64_t v : values) add(ItemKind::kInt, v);
  }
  void end_arguments() {
    record_.item_count = static_cast<std::uint32_t>(made.items.size()) - record_.items;
    record_.results = static_cast<std::uint32_t>(made.items.size());
  }
  void end() {
    record_.result_count = static_cast<std::uint32_t>(made.items.size()) - record_.results;
    made.ops.push_back(record_);
  }
  // An operator with one new result.
  RunValue select(const Added& added, const OpRecord& like, RunValue of, std::int64_t dim,
                  std::int64_t index, RunValue old) {
    std::vector<std::int64_t> sizes = dims(of);
    sizes.erase(sizes.begin() + dim);
    begin(added.select, like);
    add(ItemKind::kTensor, of);
    add(ItemKind::kInt, dim);
    add(ItemKind::kInt, index);
    return end_with(old, sizes);
  }
  RunValue end_with(RunValue like, const std::vector<std::int64_t>& sizes) {
    end_arguments();
    const RunValue id = fresh(like, sizes);
    add(ItemKind::kTensor, id);
    end();
    return id;
  }

 private:
  RunValue push(const ValueFact& fact) {
    made.values.push_back(fact);
    return static_cast<RunValue>(made.values.size() - 1);
  }

  const Run& from_;
  OpRecord record_;
};

class RunRoller {
 public:
  RunRoller(const RunView& view, std::size_t number, const std::vector<LoopPlaces>& loops,
            const std::vector<LoopPlan>& plans, const Added& added)
      : view_(view),
        run_(view.run),
        number_(number),
        loops_(loops),
        plans_(plans),
        added_(added),
        writer_(view.run),
        collected_(loops.size()) {}

  // The run with each loop as one operator.
  Run main() {
    for (const RunValue v : run_.inputs) (void)writer_.input(v);
    for (std::size_t op = 0; op < run_.ops.size();) {
      const Place place = view_.place(op);
      if (place.loop != kMain) {
        add_loop(place.loop);
        op += loops_[place.loop].period * loops_[place.loop].counts[number_];
        continue;
      }
      if (!is_taken_apart(op)) add_operator(op);
      ++op;
    }
    for (const RunValue v : run_.outputs) writer_.made.outputs.push_back(read(v));
    return std::move(writer_.made);
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
    for (const Carried& each : plan.carried) {
      carried.push_back(
          writer.input(step == 0 ? each.start[number_] : made(k, step - 1, each.slot)));
    }
    std::vector<RunValue> grown;
    for (const auto& [slot, dim] : plan.grown) {
      const RunValue like = made(k, 0, slot);
      grown.push_back(writer.fresh(like, grown_sizes(k, slot, dim, step)));
      writer.made.values[grown.back()].origin = Origin::kInput;
      writer.made.values[grown.back()].producer = -1;
      writer.made.inputs.push_back(grown.back());
    }
    // The same value may be an input twice, or be read by its old number: uses say which is meant.
    for (std::size_t t = 0; t < plan.taken.size(); ++t) {
      const RunValue like = taken_value(k, step, t);
      taken[t] = writer.select(added_, run_.ops[first], taken[t], plan.taken[t].dim,
                               static_cast<std::int64_t>(step), like);
    }
    std::map<Slot, RunValue> local;
    std::unordered_map<RunValue, RunValue> own;
    for (std::size_t offset = 0; offset < loops_[k].period; ++offset) {
      const OpRecord& record = run_.ops[first + offset];
      writer.begin(record.op, record);
      const auto put = [&](const Item& item, const Use& use, bool result, std::uint32_t position) {
        if (item.kind != ItemKind::kTensor) {
          writer.made.items.push_back(item);
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
      for (std::uint32_t i = 0; i < record.result_count; ++i) {
        put(run_.items[record.results + i], plan.uses[offset][record.item_count + i], true, i);
      }
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
  // What a loop collects: what is joined behind it, and what is read there and not carried.
  [[nodiscard]] std::vector<Slot> outputs_of(std::size_t k) const {
    std::vector<Slot> slots = plans_[k].collected;
    for (const Slot& slot : plans_[k].last) {
      if (carried_as(k, slot) == kMain) (void)index_of(slots, slot);
    }
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
      sizes.push_back(axis == dim ? 0 : run_.dim(like, axis));
    }
    for (std::size_t before = 0; before < step; ++before) {
      const RunValue v = made(k, before, slot);
      for (int axis = 0; axis < run_.values[v].rank; ++axis) {
        if (axis == dim) {
          sizes[static_cast<std::size_t>(axis)] += run_.dim(v, axis);
        } else if (run_.dim(v, axis) != sizes[static_cast<std::size_t>(axis)]) {
          throw NotRolled{};
        }
      }
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
    const RunValue id = writer.fresh(like, sizes);
    writer.made.values[id].origin = Origin::kInput;
    writer.made.values[id].producer = -1;
    writer.made.inputs.push_back(id);
    return id;
  }

  // unbind whose parts only loops take.
  [[nodiscard]] bool is_taken_apart(std::size_t op) const {
    if (view_.def(op).name != "aten.unbind.int") return false;
    const RunValue of = view_.argument(op, 0);
    return std::any_of(plans_.begin(), plans_.end(), [&](const LoopPlan& plan) {
      return std::any_of(plan.taken.begin(), plan.taken.end(), [&](const Taken& each) {
        return !each.of.empty() && each.of[number_] == of;
      });
    });
  }

  [[nodiscard]] RunValue collected(std::size_t k, const Slot& slot) const {
    const auto it = collected_[k].find(slot);
    if (it == collected_[k].end()) throw NotRolled{};
    return it->second;
  }

  RunValue read(RunValue v) {
    if (const auto it = writer_.number.find(v); it != writer_.number.end()) return it->second;
    if (run_.values[v].origin == Origin::kConstant) return writer_.constant(v);
    throw NotRolled{};  // what is left of an operator that was taken apart
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
  }

  void add_operator(std::size_t op) {
    const OpRecord& record = run_.ops[op];
    const std::string& name = view_.def(op).name;
    // Lists of what steps made: first they are joined, then the operator is written.
    std::vector<std::pair<std::uint32_t, std::size_t>> joined;  // item, how many
    std::unordered_map<std::uint32_t, RunValue> joins;
    std::int64_t in_list = 0;
    std::uint32_t list_at = 0;
    for (std::uint32_t k = 0; k < record.item_count; ++k) {
      const Item& item = run_.items[record.items + k];
      if (item.kind == ItemKind::kList) {
        in_list = item.i;
        list_at = k;
        continue;
      }
      const std::int64_t left = in_list;
      if (in_list > 0) --in_list;
      if (item.kind != ItemKind::kTensor || left == 0) continue;
      const std::size_t count =
          Planner::collected_at(view_, loops_, number_, record.items + k, left);
      if (count == 0) continue;
      const auto v = static_cast<RunValue>(item.i);
      const RunValue whole = collected(view_.made_at(v).loop, view_.slot(v));
      const Item& dim_item = run_.items[record.items + record.item_count - 1];
      if (dim_item.kind != ItemKind::kInt || list_at != 0) throw NotRolled{};
      if (name == "aten.stack.default") {
        if (k != 1 || static_cast<std::int64_t>(count) != run_.items[record.items].i) {
          throw NotRolled{};
        }
        add_stack(record, whole, dim_item.i);
        return;
      }
      if (name != "aten.cat.default") throw NotRolled{};
      const bool grown = plans_[view_.made_at(v).loop].grown.contains(view_.slot(v));
      joins.emplace(k, grown ? whole : join(record, v, whole, dim_item.i));
      joined.emplace_back(k, count);
      k += static_cast<std::uint32_t>(count) - 1;
      in_list = left - static_cast<std::int64_t>(count);
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

  void add_stack(const OpRecord& record, RunValue whole, std::int64_t dim) {
    const auto v = static_cast<RunValue>(run_.items[record.results].i);
    const int rank = run_.values[v].rank;
    writer_.number[v] = permuted(record, whole, dim < 0 ? dim + rank : dim, v);
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
  const Added& added_;
  Writer writer_;
  std::vector<std::map<Slot, RunValue>> collected_;  // by loop: the values of all steps
};

bool one_program(const std::vector<Run>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const Run& run) {
    return first_difference(runs.front(), run) == kSameProgram;
  });
}

}  // namespace

std::optional<Rolled> roll(const Vocabulary& vocabulary, std::span<const Run* const> runs) {
  const std::vector<LoopPlaces> loops = find_loops(runs);
  if (loops.empty()) return std::nullopt;
  try {
    std::vector<RunView> views;
    views.reserve(runs.size());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      views.emplace_back(vocabulary, *runs[r], loops, r);
    }
    const std::vector<LoopPlan> plans = Planner(views, loops).plan();
    Rolled rolled;
    rolled.vocabulary = vocabulary;
    const Added added = add_operators(rolled.vocabulary);
    rolled.loops.resize(loops.size());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      RunRoller roller(views[r], r, loops, plans, added);
      for (std::size_t k = 0; k < loops.size(); ++k) {
        LoopSteps& loop = rolled.loops[k];
        loop.invariants = plans[k].invariants.size() + plans[k].taken.size();
        loop.carried = plans[k].carried.size() + plans[k].grown.size();
        for (std::size_t step = 0; step < loops[k].counts[r]; ++step) {
          loop.steps.push_back(roller.step(k, step));
          loop.run_of.push_back(r);
          loop.number_of.push_back(static_cast<std::int64_t>(step));
        }
      }
      rolled.runs.push_back(roller.main());
    }
    if (!one_program(rolled.runs)) return std::nullopt;
    for (const LoopSteps& loop : rolled.loops) {
      if (!one_program(loop.steps)) return std::nullopt;
    }
    return rolled;
  } catch (const NotRolled&) {
    return std::nullopt;
  }
}

}  // namespace fairlead
