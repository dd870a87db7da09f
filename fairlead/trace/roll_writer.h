// A run that is written anew, from parts of another and from operators that rolling puts in.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/trace/roll_impl.h"

namespace fairlead::rolling {

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

}  // namespace fairlead::rolling
