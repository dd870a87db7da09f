// Operators in words, with arguments and results.
#include "fairlead/trace/parting.h"

#include <algorithm>
#include <cstdio>

namespace fairlead {
namespace {

constexpr std::int64_t kMaxItems = 8;  // of a list, and then "..."

class Words {
 public:
  Words(const Vocabulary& vocabulary, const Run& run) : vocabulary_(vocabulary), run_(run) {}

  [[nodiscard]] OpView view(std::size_t op) const {
    const OpRecord& record = run_.ops[op];
    const OpDef& def = vocabulary_.ops[record.op];
    OpView view;
    view.number = op;
    view.op = def.name.str();
    view.module = vocabulary_.strings[record.module];
    view.source = vocabulary_.strings[record.source];
    std::size_t position = 0;
    for (std::uint32_t at = record.items; at < record.items + record.item_count; ++position) {
      const bool absent = run_.items[at].kind == ItemKind::kNone;
      const std::string text = item(at);
      if (absent) continue;
      if (!view.arguments.empty()) view.arguments += ", ";
      if (position < def.params.size()) view.arguments += def.params[position] + ": ";
      view.arguments += text;
    }
    for (std::uint32_t at = record.results; at < record.results + record.result_count;) {
      if (!view.results.empty()) view.results += ", ";
      view.results += item(at);
    }
    return view;
  }

 private:
  // The item at `at`, which moves behind it.
  std::string item(std::uint32_t& at) const {
    const Item& i = run_.items[at++];
    switch (i.kind) {
      case ItemKind::kNone:
        return "None";
      case ItemKind::kTensor:
        return tensor(static_cast<RunValue>(i.i));
      case ItemKind::kInt:
        return std::to_string(i.i);
      case ItemKind::kFloat: {
        char buffer[32];
        std::snprintf(buffer, sizeof(buffer), "%.6g", i.f);
        return buffer;
      }
      case ItemKind::kBool:
        return i.i != 0 ? "True" : "False";
      case ItemKind::kString:
        return vocabulary_.strings[static_cast<std::size_t>(i.i)];
      case ItemKind::kDtype:
        return std::string(dtype_name(static_cast<Dtype>(i.i)));
      case ItemKind::kList:
        break;
    }
    std::string text = "[";
    for (std::int64_t k = 0; k < i.i; ++k) {
      const std::string next = item(at);
      if (k > 0 && k <= kMaxItems) text += ", ";
      if (k < kMaxItems) text += next;
      if (k == kMaxItems) text += "...";
    }
    return text + "]";
  }

  [[nodiscard]] std::string tensor(RunValue v) const {
    if (v == kNoRunValue) return "None";
    const ValueFact& fact = run_.values[static_cast<std::size_t>(v)];
    std::string text(dtype_name(fact.dtype));
    text += '[';
    for (int axis = 0; axis < fact.rank; ++axis) {
      if (axis > 0) text += ", ";
      text += std::to_string(run_.dim(v, axis));
    }
    return text + ']';
  }

  const Vocabulary& vocabulary_;
  const Run& run_;
};

std::vector<OpView> views(const Vocabulary& vocabulary, const Run& run, std::size_t from,
                          std::size_t to) {
  std::vector<OpView> list;
  const Words words(vocabulary, run);
  for (std::size_t op = from; op < std::min(to, run.ops.size()); ++op)
    list.push_back(words.view(op));
  return list;
}

// The model may have taken another way before it executed another operator: two branches may begin
// alike. Runs of one vocabulary number their places alike.
std::size_t first_other_place(const Run& first, const Run& second, std::size_t before) {
  for (std::size_t op = 0; op < before; ++op) {
    const OpRecord &a = first.ops[op], &b = second.ops[op];
    if (a.module != b.module || a.source != b.source) return op;
  }
  return before;
}

// Whether `through` is among the values whose storage this one shares, or itself.
bool is_through(const Run& run, RunValue value, RunValue through) {
  for (; value != kNoRunValue; value = run.values[value].alias) {
    if (value == through) return true;
  }
  return false;
}

RunValue storage_of(const Run& run, RunValue value) {
  while (run.values[value].alias != kNoRunValue) value = run.values[value].alias;
  return value;
}

// A reshape that is a view here and a copy in the other run (a size of 1): the operator that writes
// to its storage by one of the two, where the other is used later, or is an input, whose new values
// are seen outside. kSameProgram: none.
std::size_t first_write_seen(const Run& run, RunValue view) {
  const RunValue storage = storage_of(run, view);
  for (const auto& [op, written] : run.writes) {
    if (static_cast<std::int32_t>(op) <= run.values[view].producer) continue;
    if (storage_of(run, written) != storage) continue;
    const bool by_view = is_through(run, written, view);
    if (by_view && run.values[storage].origin == Origin::kInput) return op;
    const auto sees = [&](RunValue v) {
      return storage_of(run, v) == storage && is_through(run, v, view) != by_view;
    };
    if (std::any_of(run.outputs.begin(), run.outputs.end(),
                    [&](RunValue v) { return v != kNoRunValue && sees(v); })) {
      return op;
    }
    for (std::size_t later = op + 1; later < run.ops.size(); ++later) {
      const OpRecord& record = run.ops[later];
      for (std::uint32_t k = record.items; k < record.items + record.item_count; ++k) {
        const Item& item = run.items[k];
        if (item.kind != ItemKind::kTensor || item.i == kNoRunValue) continue;
        if (sees(static_cast<RunValue>(item.i))) return op;
      }
    }
  }
  return kSameProgram;
}

}  // namespace

std::size_t first_other_storage(const Run& a, const Run& b) {
  if (a.writes.empty() || a.values.size() != b.values.size()) return kSameProgram;
  std::size_t first = kSameProgram;
  for (std::size_t v = 0; v < a.values.size(); ++v) {
    const bool here = a.values[v].alias != kNoRunValue, there = b.values[v].alias != kNoRunValue;
    if (here != there) {
      first = std::min(first, first_write_seen(here ? a : b, static_cast<RunValue>(v)));
    }
  }
  return first;
}

Parting parting(const Vocabulary& vocabulary, const Run& first, const Run& second,
                std::size_t context) {
  Parting result;
  result.first_count = first.ops.size();
  result.second_count = second.ops.size();
  result.op = first_difference(first, second);
  if (result.op == kSameProgram) return result;
  result.op = first_other_place(first, second, result.op);
  const std::size_t op = result.op;
  result.common = views(vocabulary, first, op - std::min(op, context), op);
  result.first = views(vocabulary, first, op, op + context);
  result.second = views(vocabulary, second, op, op + context);
  return result;
}

}  // namespace fairlead
