// What rolling's sources share: a view of one run with its loops, and the plan of each loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/trace/loops.h"
#include "fairlead/trace/roll.h"
#include "fairlead/trace/run.h"

namespace fairlead::rolling {

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

// One part per step: of a tensor that was unbound or split, or of what another loop collected.
struct Taken {
  Values of;  // the tensor; empty where a loop collected it
  std::int64_t dim = 0;
  std::size_t loop = kMain;
  Slot slot;
  std::vector<std::size_t> splits = {};  // by run: the operator that split it; empty: unbound
  bool reversed = false;                 // from the last part to the first
  std::size_t shift = 0;                 // parts that come before the one of the first step
  bool operator==(const Taken&) const = default;
};

// tensor.tolist() with an entry per step, by run: each step reads its own.
struct ReadList {
  Values of;
  std::vector<std::size_t> ops;
};

struct LoopPlan {
  std::vector<std::vector<Use>> uses;  // by offset, then item
  std::vector<Values> invariants;
  std::vector<Carried> carried;
  std::vector<Taken> taken;
  std::vector<ReadList> reads;
  std::vector<std::size_t> offsets;  // of `reads`: those whose entries are the sizes of parts
  std::vector<Slot> collected;
  std::map<Slot, std::int64_t> grown;  // what differs in size from step to step, and is joined
                                       // along this dim: step by step, it is carried
  // By run, then step: how long what the steps before made is along that dim, joined.
  std::map<Slot, std::vector<std::vector<std::int64_t>>> grown_before;
  std::set<Slot> last;           // what is read behind the loop as the last step made it
  std::set<Slot> first;          // and as the first one did
  std::set<std::size_t> unread;  // offsets of tolist whose length varies: its numbers are left out
};

template <typename T>
std::size_t index_of(std::vector<T>& list, const T& value) {
  const auto it = std::find(list.begin(), list.end(), value);
  if (it != list.end()) return static_cast<std::size_t>(it - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

// Nothing is rolled: the steps do not hang together, or those of `loop` are too short.
struct NotRolled {
  std::size_t loop = kMain;
};

class RunView {
 public:
  RunView(const Vocabulary& vocabulary, const Run& run, const std::vector<LoopPlaces>& loops,
          std::size_t number)
      : run(run),
        vocabulary_(vocabulary),
        places_(run.ops.size()),
        first_use_(run.values.size(), kMain),
        last_use_(run.values.size(), 0),
        result_number_(run.values.size(), kMain) {
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
      for (std::uint32_t k = record.result_count; k-- > 0;) {
        const Item& item = run.items[record.results + k];
        if (item.kind != ItemKind::kTensor) continue;
        if (run.values[item.i].producer == static_cast<std::int32_t>(op)) {
          result_number_[item.i] = k;
        }
      }
      const OpDef& def = vocabulary.ops[record.op];
      if (def.name == Op::fairlead_tolist) find_entries(op);
      if (def.name == Op::split_with_sizes) find_parts(op);
      if (def.name == Op::split_Tensor) find_equal_parts(op);
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
    if (result_number_[v] == kMain) throw NotRolled{};
    return result_number_[v];
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
  // Calls visit(item, value, left) for the tensors among an operator's arguments, where `left` is
  // how many are left of the list it is in (0: none); it says how many of these it has dealt with.
  template <typename Visit>
  void each_tensor(std::size_t op, const Visit& visit) const {
    const OpRecord& record = run.ops[op];
    std::int64_t left = 0;
    for (std::uint32_t k = 0; k < record.item_count; ++k) {
      const Item& item = run.items[record.items + k];
      if (item.kind == ItemKind::kList) {
        left = item.i;
        continue;
      }
      std::size_t dealt = 1;
      if (item.kind == ItemKind::kTensor) dealt = visit(k, static_cast<RunValue>(item.i), left);
      k += static_cast<std::uint32_t>(dealt) - 1;
      left = std::max<std::int64_t>(left - static_cast<std::int64_t>(dealt), 0);
    }
  }
  // Whether an operator joins the list that is its first argument along the dim that is its last.
  [[nodiscard]] bool joins(std::size_t op) const {
    const OpRecord& record = run.ops[op];
    return def(op).name.has(Trait::kJoins) &&
           run.items[record.items + record.item_count - 1].kind == ItemKind::kInt;
  }
  // What the list that operator `op` joins is, from item `k` on, of `left` that remain, if it is
  // all parts of one tensor.
  struct Parts {
    std::size_t count = 0;  // 0: it is not
    std::size_t op = 0;     // that took it apart
    RunValue of = kNoRunValue;
    std::int64_t dim = 0;
    bool unbound = false;  // the parts have lost the dimension
  };
  [[nodiscard]] Parts parts_at(std::size_t op, std::uint32_t k, std::int64_t left) const {
    if (left == 0 || !joins(op)) return {};
    const std::uint32_t at = run.ops[op].items + k;
    const auto first = static_cast<RunValue>(run.items[at].i);
    if (run.values[first].producer < 0 || made_at(first).loop != kMain) return {};
    Parts parts;
    parts.op = static_cast<std::size_t>(run.values[first].producer);
    const OpName& name = def(parts.op).name;
    if (!name.has(Trait::kTakesApart)) return {};
    parts.unbound = name == Op::unbind_int;
    const OpRecord& record = run.ops[parts.op];
    const std::int64_t count = run.items[record.results].i;
    if (run.items[record.results].kind != ItemKind::kList || count > left) return {};
    for (std::int64_t part = 0; part < count; ++part) {
      if (run.items[record.results + 1 + part].i != run.items[at + part].i) return {};
    }
    const Item& dim = run.items[record.items + record.item_count - 1];
    if (dim.kind != ItemKind::kInt) return {};
    parts.count = static_cast<std::size_t>(count);
    parts.of = argument(parts.op, 0);
    parts.dim = dim.i < 0 ? dim.i + run.values[parts.of].rank : dim.i;
    return parts;
  }
  // The numbers of entry `entry` of the list that tolist gave.
  [[nodiscard]] std::vector<Item> entry(std::size_t op, std::size_t entry) const {
    const std::vector<std::uint32_t>& begins = entries_.at(op);
    if (entry + 1 >= begins.size()) throw NotRolled{};
    std::uint32_t at = begins[entry];
    if (run.items[at].kind == ItemKind::kList) ++at;
    return {run.items.begin() + at, run.items.begin() + begins[entry + 1]};
  }
  // Where part `part` of what was split begins, or, of a list that tolist gave, what the entries
  // before it are together.
  [[nodiscard]] std::int64_t begin_of(std::size_t op, std::size_t part) const {
    const auto it = begins_.find(op);
    if (it == begins_.end() || part >= it->second.size()) throw NotRolled{};
    return it->second[part];
  }
  // How many items were looked at to find arguments and entries.
  [[nodiscard]] std::size_t looked_at() const { return looked_at_; }
  [[nodiscard]] const OpDef& def(std::size_t op) const { return vocabulary_.ops[run.ops[op].op]; }

 private:
  // Of a list of numbers, or of lists of them: the first of each counts.
  void find_entries(std::size_t op) {
    const OpRecord& record = run.ops[op];
    if (record.result_count == 0 || run.items[record.results].kind != ItemKind::kList) return;
    std::vector<std::uint32_t>& places = entries_[op];
    std::vector<std::int64_t>& sums = begins_[op];
    std::uint32_t at = record.results + 1;
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < run.items[record.results].i; ++k) {
      places.push_back(at);
      sums.push_back(sum);
      const std::uint32_t end = skip(at);
      if (run.items[at].kind == ItemKind::kList) ++at;
      if (at < end && run.items[at].kind == ItemKind::kInt) sum += run.items[at].i;
      at = end;
    }
    places.push_back(at);
  }
  // split_with_sizes(self, sizes, dim)
  void find_parts(std::size_t op) {
    const OpRecord& record = run.ops[op];
    if (record.item_count < 2 || run.items[record.items + 1].kind != ItemKind::kList) return;
    std::vector<std::int64_t>& sums = begins_[op];
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < run.items[record.items + 1].i; ++k) {
      sums.push_back(sum);
      sum += run.items[record.items + 2 + static_cast<std::uint32_t>(k)].i;
    }
  }
  // split(self, size, dim)
  void find_equal_parts(std::size_t op) {
    const OpRecord& record = run.ops[op];
    if (record.item_count < 2 || record.result_count == 0) return;
    const Item &size = run.items[record.items + 1], &parts = run.items[record.results];
    if (size.kind != ItemKind::kInt || parts.kind != ItemKind::kList) return;
    for (std::int64_t k = 0; k < parts.i; ++k) begins_[op].push_back(k * size.i);
  }
  [[nodiscard]] std::uint32_t skip(std::uint32_t at) const {
    ++looked_at_;
    const Item& item = run.items[at++];
    if (item.kind == ItemKind::kList) {
      for (std::int64_t k = 0; k < item.i; ++k) at = skip(at);
    }
    return at;
  }

  const Vocabulary& vocabulary_;
  std::vector<Place> places_;
  std::vector<std::size_t> first_use_, last_use_;
  std::vector<std::size_t> result_number_;  // by value: which result of its operator it is
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> entries_;  // by operator: tolist
  std::unordered_map<std::size_t, std::vector<std::int64_t>> begins_;    // of entries or parts
  mutable std::size_t looked_at_ = 0;
  std::set<RunValue> written_;
};

// How many values of a list from item `at` on, of `left` that remain, are what steps of a loop made
// one after the other, or one before the other; 0: none. `number` is the run's.
struct Collected {
  std::size_t count = 0;
  std::size_t from = 0;  // the first of these steps
  bool reversed = false;
};
[[nodiscard]] Collected collected_at(const RunView& view, const std::vector<LoopPlaces>& loops,
                                     std::size_t number, std::uint32_t at, std::int64_t left);

struct Plan {
  std::vector<LoopPlan> loops;
  std::vector<ReadList> unread;  // lists whose length varies and that no loop goes over
  // By run: operators outside of loops that take a tensor into a number of parts that varies.
  std::vector<std::set<std::size_t>> apart;
  // And those that join one tensor with itself, as many times as a size says.
  std::vector<std::set<std::size_t>> repeated;
};
// What the arguments of every body are; throws NotRolled.
[[nodiscard]] Plan plan_loops(const std::vector<RunView>& views,
                              const std::vector<LoopPlaces>& loops);

// Operators that rolling puts in.
struct Added {
  std::uint32_t loop, select, slice, permute, reshape, cat, full, cumsum, sub, flip, expand;
};
[[nodiscard]] Added add_operators(Vocabulary& vocabulary);

struct Rolling {
  const std::vector<LoopPlaces>& loops;
  const Plan& plan;
  const Added& added;
};
// Run `number` with each loop as one operator; throws NotRolled.
[[nodiscard]] Run write_main(const RunView& view, std::size_t number, const Rolling& rolling,
                             std::unordered_map<RunValue, RunValue>& values);
// Step `step` of its loop k.
[[nodiscard]] Run write_step(const RunView& view, std::size_t number, const Rolling& rolling,
                             std::size_t k, std::size_t step);

}  // namespace fairlead::rolling
