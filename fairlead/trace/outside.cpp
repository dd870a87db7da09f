// Constants are compared by their bytes, numbers among the arguments by value.
#include "fairlead/trace/outside.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

namespace fairlead {
namespace {

bool is_number(const Item& item) {
  return item.kind == ItemKind::kInt || item.kind == ItemKind::kFloat ||
         item.kind == ItemKind::kBool;
}

std::string text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

class Outside {
 public:
  Outside(const Vocabulary& vocabulary, const Run& first, const Run& second)
      : vocabulary_(vocabulary), first_(first), second_(second) {}

  std::vector<FromOutside> find() {
    for (std::size_t op = 0; op < first_.ops.size() && op < second_.ops.size(); ++op) {
      const OpRecord& a = first_.ops[op];
      const OpRecord& b = second_.ops[op];
      if (a.item_count != b.item_count || a.result_count != b.result_count) break;
      for (std::uint32_t k = 0; k < a.item_count; ++k) {
        look(op, first_.items[a.items + k], second_.items[b.items + k]);
      }
      for (std::uint32_t k = 0; k < a.result_count; ++k) {
        const Item& seen = first_.items[a.results + k];
        if (is_number(seen))
          read_.emplace(number_of(seen), number_of(second_.items[b.results + k]));
        if (seen.kind == ItemKind::kTensor) keep_sizes(seen, second_.items[b.results + k]);
      }
    }
    for (const RunValue v : first_.outputs) {  // returned as it came
      Item item;
      item.kind = ItemKind::kTensor;
      item.i = v;
      look(first_.ops.size(), item, item);
    }
    return std::move(found_);
  }

 private:
  void look(std::size_t op, const Item& a, const Item& b) {
    if (a.kind != b.kind) return;
    if (a.carried != kNoCarry && b.carried != kNoCarry) return;  // it says what it comes from
    if (is_number(a)) {
      const std::pair pair(number_of(a), number_of(b));
      if (pair.first != pair.second && pair.first == pair.first && !read_.contains(pair)) {
        add(op,
            "the number " + text(pair.first) + " (" + text(pair.second) + " with other values)");
      }
    } else if (a.kind == ItemKind::kTensor && a.i == b.i) {
      look_at_tensor(op, static_cast<RunValue>(a.i));
    }
  }

  void look_at_tensor(std::size_t op, RunValue v) {
    const ValueFact& fact = first_.values[v];
    if (fact.origin != Origin::kConstant || fact.constant < 0 || !seen_.insert(v).second) return;
    const ValueFact& other = second_.values.at(static_cast<std::size_t>(v));
    if (other.origin != Origin::kConstant || other.constant < 0) return;
    const RunConstant& a = first_.constants[static_cast<std::size_t>(fact.constant)];
    const RunConstant& b = second_.constants[static_cast<std::size_t>(other.constant)];
    if (a.persistent || b.persistent) return;
    bool same_sizes = fact.rank == other.rank && fact.dtype == other.dtype;
    std::size_t bytes = dtype_size(fact.dtype);
    std::string shape;
    for (int axis = 0; axis < fact.rank; ++axis) {
      same_sizes = same_sizes && first_.dim(v, axis) == second_.dim(v, axis);
      bytes *= static_cast<std::size_t>(first_.dim(v, axis));
      shape += (axis > 0 ? ", " : "") + std::to_string(first_.dim(v, axis));
    }
    if (same_sizes && (bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0)) return;
    add(op, "a tensor " + std::string(dtype_name(fact.dtype)) + "[" + shape + "]");
    found_.back().is_float = is_float(fact.dtype) || is_complex(fact.dtype);
  }

  // Sizes that data decided are numbers that may be handed on.
  void keep_sizes(const Item& a, const Item& b) {
    const auto v = static_cast<RunValue>(a.i), w = static_cast<RunValue>(b.i);
    const int rank = std::min(first_.values[v].rank, second_.values[w].rank);
    for (int axis = 0; axis < rank; ++axis) {
      const std::int64_t size = first_.dim(v, axis), other = second_.dim(w, axis);
      if (size != other) read_.emplace(static_cast<double>(size), static_cast<double>(other));
    }
  }

  void add(std::size_t op, std::string what) {
    FromOutside row;
    row.op = op;
    row.what = std::move(what);
    if (op < first_.ops.size()) {
      row.place = describe(vocabulary_, first_, op);
      row.source = vocabulary_.strings[first_.ops[op].source];
    }
    found_.push_back(std::move(row));
  }

  const Vocabulary& vocabulary_;
  const Run& first_;
  const Run& second_;
  std::set<std::pair<double, double>> read_;
  std::set<RunValue> seen_;
  std::vector<FromOutside> found_;
};

}  // namespace

std::vector<FromOutside> follows_from_outside(const Vocabulary& vocabulary, const Run& first,
                                              const Run& second) {
  return Outside(vocabulary, first, second).find();
}

bool takes_from_outside(const Run& run) {
  if (std::any_of(run.constants.begin(), run.constants.end(),
                  [](const RunConstant& c) { return !c.persistent; })) {
    return true;
  }
  return std::any_of(run.ops.begin(), run.ops.end(), [&](const OpRecord& op) {
    const Item* results = run.items.data() + op.results;
    return std::none_of(results, results + op.result_count,
                        [](const Item& i) { return i.kind == ItemKind::kTensor; });
  });
}

}  // namespace fairlead
