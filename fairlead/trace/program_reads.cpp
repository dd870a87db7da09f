// Values that the model read from tensors: symbols where they vary, assumptions where they do not.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "fairlead/trace/program_impl.h"

namespace fairlead {

template <typename T>
void ProgramBuilder::read_number(const Node& node, const std::vector<T>& seen,
                                 std::int64_t element) {
  const ValueId from = node.args.empty() ? kNoValue : node.args[0].value;
  const bool varies = std::any_of(seen.begin(), seen.end(), [&](T v) { return v != seen[0]; });
  const std::pair place{static_cast<CarryId>(op_), static_cast<CarryId>(element)};
  constexpr bool kIsInteger = std::is_same_v<T, std::int64_t>;
  Expr fitting = nullptr;
  if constexpr (kIsInteger) {
    const auto held = numbers_.find(from);
    if (held != numbers_.end() && explains(held->second, seen)) {
      reads_[place] = held->second;
      return;
    }
    if (varies && !tainted_args()) fitting = solver_.solve(seen, hints_).expr;
  }
  if (fitting != nullptr && is_product(fitting)) {  // torch.tensor(x.shape).prod().item()
    reads_[place] = fitting;
    return;
  }
  // A number that the model computes with is a symbol, whether or not it varied so far.
  if (from != kNoValue && used_reads_.contains(place) && (tainted_args() || sized_args())) {
    std::vector<std::int64_t> bits;
    for (const T v : seen) bits.push_back(std::bit_cast<std::int64_t>(v));
    const Expr symbol =
        new_symbol("read", kIsInteger ? SymbolKind::kRead : SymbolKind::kReadReal, bits);
    graph().symbol_sources[symbol->value] = {from, static_cast<int>(element)};
    reads_[place] = symbol;
    if (fitting != nullptr && asked_reads_.contains(place)) {
      // The sizes at which a question about it has another answer are found by what fits.
      reads_[place] = fitting;
      const Expr holds = pool().same(symbol, fitting);
      graph().requirements.push_back(
          {holds, pool().to_string(symbol) + " is " + pool().to_string(fitting)});
    }
    return;
  }
  if (!varies) {
    if (tainted_args()) {
      program_.assumptions.push_back(
          {"read",
           "read " + std::to_string(seen[0]) + " from a tensor in every run and may go by it",
           std::string(node.module), std::string(node.source)});
    }
    return;
  }
  if constexpr (kIsInteger) {
    if (fitting != nullptr) {
      note_fitted(fitting, "a number that was read");
      reads_[place] = fitting;
      return;
    }
    const Expr symbol = new_symbol("read", SymbolKind::kRead, seen);
    graph().symbol_sources[symbol->value] = {from, static_cast<int>(element)};
    reads_[place] = symbol;
  }
}

// The number of a tensor that was given where an operator takes an integer.
Expr ProgramBuilder::read_below(const std::vector<std::int64_t>& observed) {
  const auto varies = [&](std::int64_t v) { return v != observed[0]; };
  if (std::none_of(observed.begin(), observed.end(), varies)) return nullptr;
  const auto it = std::find_if(just_read_.begin(), just_read_.end(),
                               [&](Expr e) { return explains(e, observed); });
  return it == just_read_.end() ? nullptr : *it;
}

// .item(), .tolist(), bool(t): results that are numbers. Each is a symbol where it varies.
bool ProgramBuilder::reads_value(const OpRecord& record, const Node& node) {
  bool reads = vocabulary_.ops[record.op].name.has(Trait::kReads);  // perhaps no number of it
  std::int64_t element = 0;
  for (std::uint32_t k = 0; k < record.result_count; ++k) {
    const std::uint32_t at = record.results + k;
    const ItemKind kind = run_.items[at].kind;
    if (kind != ItemKind::kInt && kind != ItemKind::kFloat && kind != ItemKind::kBool) continue;
    reads = true;
    if (kind == ItemKind::kFloat) {
      read_number(node, over_runs(at, true, [](const Item& i) { return i.f; }), element++);
    } else if (kind == ItemKind::kBool) {
      read_flag(node, over_runs(at, true, [](const Item& i) { return i.i; }));
    } else {
      read_number(node, over_runs(at, true, [](const Item& i) { return i.i; }), element++);
      const auto known =
          reads_.find({static_cast<CarryId>(op_), static_cast<CarryId>(element - 1)});
      if (known != reads_.end()) just_read_.push_back(known->second);
    }
  }
  if (!reads) just_read_.clear();
  return reads;
}

// if x.sum() > 0: what the model did after that answer is the program. Where both answers were
// seen the runs did not part, so nothing is assumed.
void ProgramBuilder::read_flag(const Node& node, const std::vector<std::int64_t>& seen) {
  const bool tainted = tainted_args();
  if (!tainted && !sized_args()) return;
  const auto differs = [&](std::int64_t v) { return v != seen[0]; };
  if (std::any_of(seen.begin(), seen.end(), differs)) {
    // What follows it may be chosen by the answer: x * 2 if t.any() else x * 3.
    const std::pair place{static_cast<CarryId>(op_), CarryId{0}};
    if (used_reads_.contains(place) && !request_.nested && request_.rolled == nullptr &&
        !node.args.empty() && node.args[0].kind == ArgKind::kValue) {
      const Expr symbol = new_symbol("read", SymbolKind::kRead, seen);
      graph().symbol_sources[symbol->value] = {node.args[0].value, 0};
      reads_[place] = symbol;
    }
    return;
  }
  if (tainted) {
    program_.assumptions.push_back({"read",
                                    std::string("read ") + (seen[0] != 0 ? "True" : "False") +
                                        " from a tensor in every run and may go by it",
                                    std::string(node.module), std::string(node.source),
                                    seen[0] != 0});
  }
  if (request_.nested || request_.rolled != nullptr || node.args.empty() ||
      node.args[0].kind != ArgKind::kValue) {
    return;
  }
  const Expr symbol = new_symbol("read", SymbolKind::kRead, seen);
  graph().symbol_sources[symbol->value] = {node.args[0].value, 0};
  program_.guards.push_back({Compare::kEqual, true, symbol, pool().constant(seen[0]),
                             std::string(node.module), std::string(node.source)});
}

bool ProgramBuilder::tainted_args() const {
  const OpRecord& record = run_.ops[op_];
  for (std::uint32_t k = 0; k < record.item_count; ++k) {
    const Item& item = run_.items[record.items + k];
    if (item.kind == ItemKind::kTensor && run_.values[item.i].tainted) return true;
  }
  return false;
}

// What is read depends on sizes alone: int(torch.tensor(n).sqrt()). Not what was folded, as no size
// of it varies.
bool ProgramBuilder::sized_args() {
  if (tainted_args()) return false;
  const OpRecord& record = run_.ops[op_];
  for (std::uint32_t k = 0; k < record.item_count; ++k) {
    const Item& item = run_.items[record.items + k];
    if (item.kind != ItemKind::kTensor) continue;
    const auto v = static_cast<RunValue>(item.i);
    if (run_.values[v].sized && !is_constant(v)) return true;
  }
  return false;
}

}  // namespace fairlead
