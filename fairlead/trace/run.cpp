// Interning, describing and comparing recorded runs.
#include "fairlead/trace/run.h"

#include <algorithm>

#include "fairlead/trace/parting.h"

namespace fairlead {

std::uint32_t Vocabulary::intern(std::string_view text) {
  auto [it, inserted] =
      string_ids.try_emplace(std::string(text), static_cast<std::uint32_t>(strings.size()));
  if (inserted) strings.emplace_back(text);
  return it->second;
}

void Run::trim() {
  ops.shrink_to_fit();
  items.shrink_to_fit();
  values.shrink_to_fit();
  dims.shrink_to_fit();
  carried.shrink_to_fit();
  guards.shrink_to_fit();
  call_numbers.shrink_to_fit();
}

std::string describe(const Vocabulary& vocabulary, const Run& run, std::size_t op) {
  if (op >= run.ops.size()) return "the end of the run";
  const OpRecord& record = run.ops[op];
  std::string text = vocabulary.ops[record.op].name.str();
  if (record.module != 0) text += " in " + vocabulary.strings[record.module];
  if (record.source != 0) text += " at " + vocabulary.strings[record.source];
  return text;
}

bool same_operator(const Run& reference, const Run& run, std::size_t op, bool results) {
  if (op >= reference.ops.size()) return false;
  const OpRecord& a = reference.ops[op];
  const OpRecord& b = run.ops[op];
  if (a.op != b.op || a.item_count != b.item_count) return false;
  if (results && a.result_count != b.result_count) return false;
  const auto is_number = [](const Item& item) {
    return item.kind == ItemKind::kInt || item.kind == ItemKind::kFloat;
  };
  auto same = [&](std::uint32_t i, std::uint32_t j) {
    const Item& x = reference.items[i];
    const Item& y = run.items[j];
    if (x.kind != y.kind) return false;
    switch (x.kind) {
      case ItemKind::kTensor:
      case ItemKind::kString:
      case ItemKind::kDtype:
      case ItemKind::kList:
        return x.i == y.i;
      default:
        return true;
    }
  };
  for (std::uint32_t k = 0; k < a.item_count; ++k) {
    const Item& x = reference.items[a.items + k];
    // max(0.5 * n, 1) is an integer now and then; what comes of it has one type, or parts below.
    if (is_number(x) && is_number(run.items[b.items + k])) continue;
    if (!same(a.items + k, b.items + k)) return false;
    // Another flag is another operator; a flag that was read is a result.
    if (x.kind == ItemKind::kBool && x.i != run.items[b.items + k].i) return false;
  }
  for (std::uint32_t k = 0; results && k < a.result_count; ++k) {
    if (!same(a.results + k, b.results + k)) return false;
    const Item& x = reference.items[a.results + k];
    if (x.kind != ItemKind::kTensor) continue;
    const ValueFact& v = reference.values[x.i];
    const ValueFact& w = run.values[x.i];
    if (v.dtype != w.dtype || v.rank != w.rank) return false;
  }
  return true;
}

bool same_numbers(const Run& a, const Run& b) {
  if (a.items.size() != b.items.size() || a.values.size() != b.values.size()) return false;
  return same_numbers_so_far(a, b);
}

bool same_numbers_so_far(const Run& a, const Run& b) {
  if (a.items.size() > b.items.size() || a.values.size() > b.values.size()) return false;
  for (std::size_t k = 0; k < a.items.size(); ++k) {
    const Item &x = a.items[k], &y = b.items[k];
    const bool real = x.kind == ItemKind::kFloat || y.kind == ItemKind::kFloat;
    if (real ? number_of(x) != number_of(y) : x.i != y.i) return false;
  }
  for (std::size_t v = 0; v < a.values.size(); ++v) {
    if (a.values[v].origin != Origin::kOperator) continue;
    for (int axis = 0; axis < a.values[v].rank; ++axis) {
      const auto value = static_cast<RunValue>(v);
      if (a.dim(value, axis) != b.dim(value, axis)) return false;
    }
  }
  return true;
}

std::size_t first_difference(const Run& a, const Run& b) {
  const std::size_t count = std::min(a.ops.size(), b.ops.size());
  for (std::size_t op = 0; op < count; ++op) {
    if (!same_operator(a, b, op)) return op;
  }
  if (a.ops.size() != b.ops.size() || a.outputs != b.outputs) return count;
  return first_other_storage(a, b);
}

}  // namespace fairlead
