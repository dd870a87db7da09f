// Two runs are walked together, each past its neutral operators.
#include "fairlead/trace/answered.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "fairlead/base/dtype.h"

namespace fairlead {
namespace {

// One of the two, with what stands for each of its values.
struct Side {
  const Vocabulary& vocabulary;
  const Run& run;
  std::size_t next = 0;
  std::unordered_map<RunValue, RunValue> stands = {};  // results of neutral operators
  std::set<RunValue> shared = {};  // storages of copies that such operators make

  [[nodiscard]] RunValue at(RunValue v) const {
    const auto it = stands.find(v);
    return it == stands.end() ? v : it->second;
  }

  [[nodiscard]] RunValue storage(RunValue v) const {
    while (run.values[v].alias != kNoRunValue && run.values[v].alias != v) v = run.values[v].alias;
    return v;
  }

  [[nodiscard]] bool same_sizes(RunValue v, RunValue w) const {
    if (run.values[v].dtype != run.values[w].dtype || run.values[v].rank != run.values[w].rank) {
      return false;
    }
    for (int axis = 0; axis < run.values[v].rank; ++axis) {
      if (run.dim(v, axis) != run.dim(w, axis)) return false;
    }
    return true;
  }

  // To the next operator that does something.
  void skip() {
    for (; next < run.ops.size(); ++next) {
      const OpRecord& op = run.ops[next];
      const OpDef& def = vocabulary.ops[op.op];
      const bool zeros = def.name.has(Trait::kKeepsAtZero);
      if (!zeros && !def.name.has(Trait::kKeepsAlike)) return;
      if (def.writes >= 0 || op.result_count != 1) return;
      const Item& first = run.items[op.items];
      const Item& result = run.items[op.results];
      if (first.kind != ItemKind::kTensor || result.kind != ItemKind::kTensor) return;
      const auto from = static_cast<RunValue>(first.i), to = static_cast<RunValue>(result.i);
      if (!same_sizes(from, to)) return;
      if (zeros) {
        for (std::uint32_t k = 1; k < op.item_count; ++k) {
          const Item& item = run.items[op.items + k];
          if (item.kind == ItemKind::kInt && item.i != 0) return;
        }
      }
      for (std::uint32_t k = 1; k < op.item_count; ++k) {  // interpolate(x, scale_factor=1.05)
        const Item& item = run.items[op.items + k];
        if (item.kind == ItemKind::kFloat && item.f != 1) return;
      }
      stands[to] = at(from);
      if (storage(from) == storage(to)) continue;  // what is written to one is in the other
      shared.insert(storage(from));
      shared.insert(storage(to));
    }
  }

  // What it writes to may be one tensor here and two there.
  [[nodiscard]] bool writes_shared() const {
    const OpRecord& op = run.ops[next];
    if (vocabulary.ops[op.op].writes < 0) return false;
    for (std::uint32_t k = 0; k < op.item_count; ++k) {
      const Item& item = run.items[op.items + k];
      if (item.kind == ItemKind::kTensor && shared.contains(storage(static_cast<RunValue>(item.i))))
        return true;
    }
    return false;
  }
};

const RunConstant* constant_of(const Run& run, RunValue v) {
  const std::int32_t index = run.values[v].constant;
  return index < 0 ? nullptr : &run.constants[static_cast<std::size_t>(index)];
}

bool same_constant(const Run& a, RunValue v, const Run& b, RunValue w) {
  const RunConstant *x = constant_of(a, v), *y = constant_of(b, w);
  if (x == nullptr || y == nullptr || x->strides != y->strides) return false;
  if (x->persistent || y->persistent) {
    return x->persistent && y->persistent && x->name == y->name;
  }
  std::int64_t count = 1;
  for (int axis = 0; axis < a.values[v].rank; ++axis) count *= a.dim(v, axis);
  const auto bytes = static_cast<std::size_t>(count) * dtype_size(a.values[v].dtype);
  return bytes == 0 ||
         (x->data != nullptr && y->data != nullptr && std::memcmp(x->data, y->data, bytes) == 0);
}

class Pair {
 public:
  Pair(const Vocabulary& vocabulary, const Run& a, const Run& b)
      : a_{vocabulary, a}, b_{vocabulary, b} {}

  [[nodiscard]] bool same() {
    if (a_.run.inputs.size() != b_.run.inputs.size()) return false;
    for (std::size_t k = 0; k < a_.run.inputs.size(); ++k) {
      twin_[a_.run.inputs[k]] = b_.run.inputs[k];
    }
    for (;; ++a_.next, ++b_.next) {
      a_.skip();
      b_.skip();
      const bool over = a_.next == a_.run.ops.size();
      if (over != (b_.next == b_.run.ops.size())) return false;
      if (over) break;
      if (a_.writes_shared() || b_.writes_shared() || !same_operators()) return false;
    }
    if (a_.run.outputs.size() != b_.run.outputs.size()) return false;
    for (std::size_t k = 0; k < a_.run.outputs.size(); ++k) {
      if (!same_values(a_.run.outputs[k], b_.run.outputs[k])) return false;
    }
    return true;
  }

 private:
  bool same_operators() {
    const OpRecord &x = a_.run.ops[a_.next], &y = b_.run.ops[b_.next];
    if (x.op != y.op || x.item_count != y.item_count || x.result_count != y.result_count) {
      return false;
    }
    for (std::uint32_t k = 0; k < x.item_count; ++k) {
      const Item &p = a_.run.items[x.items + k], &q = b_.run.items[y.items + k];
      if (p.kind != q.kind) return false;
      if (p.kind == ItemKind::kTensor) {
        if (!same_values(static_cast<RunValue>(p.i), static_cast<RunValue>(q.i))) return false;
      } else if (p.kind == ItemKind::kFloat ? std::memcmp(&p.f, &q.f, sizeof p.f) != 0
                                            : p.i != q.i) {
        return false;
      }
    }
    for (std::uint32_t k = 0; k < x.result_count; ++k) {
      const Item &p = a_.run.items[x.results + k], &q = b_.run.items[y.results + k];
      if (p.kind != q.kind) return false;
      if (p.kind == ItemKind::kTensor) {
        // What is written through a view of everything is that.
        twin_[a_.at(static_cast<RunValue>(p.i))] = b_.at(static_cast<RunValue>(q.i));
      } else if (p.kind == ItemKind::kFloat ? p.f != q.f : p.i != q.i) {
        return false;
      }
    }
    return true;
  }

  bool same_values(RunValue v, RunValue w) {
    if (v == kNoRunValue || w == kNoRunValue) return v == w;
    v = a_.at(v);
    w = b_.at(w);
    const auto it = twin_.find(v);
    if (it != twin_.end()) return it->second == w;
    const bool outside = a_.run.values[v].origin == Origin::kConstant &&
                         b_.run.values[w].origin == Origin::kConstant;
    if (!outside || a_.run.values[v].dtype != b_.run.values[w].dtype ||
        a_.run.values[v].rank != b_.run.values[w].rank) {
      return false;
    }
    for (int axis = 0; axis < a_.run.values[v].rank; ++axis) {
      if (a_.run.dim(v, axis) != b_.run.dim(w, axis)) return false;
    }
    if (!same_constant(a_.run, v, b_.run, w)) return false;
    twin_[v] = w;
    return true;
  }

  Side a_, b_;
  std::unordered_map<RunValue, RunValue> twin_;
};

}  // namespace

void AnswersByTurn::add(const Guard& guard) { known_[turn(guard)] = guard.outcome; }

std::optional<bool> AnswersByTurn::next(const Guard& guard) {
  const auto it = known_.find(turn(guard));
  return it == known_.end() ? std::nullopt : std::optional(it->second);
}

AnswersByTurn::Key AnswersByTurn::turn(const Guard& guard) {
  return {guard.source, guard.op, asked_[{guard.source, guard.op}]++};
}

Answers::Answers(const Run& run, const std::vector<std::uint32_t>& lines) : lines_(lines) {
  for (const Guard& guard : run.guards) {
    if (is_given(guard)) given_.add(guard);
  }
  given_.begin_again();
}

bool Answers::answer(const Guard& guard) {
  return is_given(guard) ? given_.next(guard).value_or(guard.outcome) : guard.outcome;
}

bool Answers::is_given(const Guard& guard) const {
  return std::find(lines_.begin(), lines_.end(), guard.source) != lines_.end();
}

std::uint32_t deciding_line(const Run& reference, const Run& run, std::size_t op) {
  const auto counts = [&](const Guard& guard) {
    return guard.op <= op && guard.right != kNoCarry && guard.compare != Compare::kCount;
  };
  AnswersByTurn before;
  for (const Guard& guard : reference.guards) {
    if (counts(guard)) before.add(guard);
  }
  before.begin_again();
  std::uint32_t line = 0;
  for (const Guard& guard : run.guards) {
    if (!counts(guard)) continue;
    const std::optional<bool> known = before.next(guard);
    if (known && *known != guard.outcome) line = guard.source;
  }
  return line;
}

bool same_but_neutral(const Vocabulary& vocabulary, const Run& a, const Run& b) {
  return Pair(vocabulary, a, b).same();
}

}  // namespace fairlead
