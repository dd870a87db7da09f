// The sizes of results of operators without a rule: a local question.
//
// The arguments have expressions already. At other values of the symbols they have other sizes, at
// which the operator alone is asked, without data: microseconds each, and the model is not run.
#include <array>

#include "fairlead/trace/program_impl.h"

namespace fairlead {
namespace {

constexpr std::size_t kFewest = 4;  // answers that are worth something
constexpr std::array<std::int64_t, 10> kSizes = {5, 16, 33, 8, 64, 3, 100, 17, 257, 2};

void describe(const Arg& arg, const Graph& graph, std::string& key) {
  const auto add = [&](const void* p) {
    key += std::to_string(reinterpret_cast<std::uintptr_t>(p)) + ",";
  };
  key += std::to_string(static_cast<int>(arg.kind)) + ":";
  if (arg.kind == ArgKind::kValue) {
    key += std::to_string(static_cast<int>(graph.values[arg.value].dtype)) + "[";
    for (const Expr e : graph.values[arg.value].shape) add(e);
  } else {
    add(arg.expr);
    key += std::to_string(arg.number) + "^" + std::to_string(arg.power) + arg.text +
           std::to_string(static_cast<int>(arg.dtype)) + "(";
    for (const Arg& item : arg.items) describe(item, graph, key);
  }
  key += ";";
}

}  // namespace

ResultShapes ProgramBuilder::alone_shapes(const OpRecord& record, const Node& node) {
  if (!request_.ask_alone || request_.nested || request_.rolled != nullptr) return {};
  std::string key = node.op.str() + "|";
  for (const Arg& arg : node.args) describe(arg, graph(), key);
  const auto [known, fresh] = asked_alone_.try_emplace(std::move(key));
  if (!fresh) return known->second;
  const std::size_t count = pool().symbols().size();
  std::vector<std::vector<std::int64_t>> settings(kSizes.size(), std::vector<std::int64_t>(count));
  for (std::size_t k = 0; k < settings.size(); ++k) {
    for (std::size_t s = 0; s < count; ++s) settings[k][s] = kSizes[(k + 3 * s) % kSizes.size()];
  }
  const auto answers = request_.ask_alone(graph(), node, settings);
  std::vector<std::vector<std::int64_t>> values = symbol_values_;
  for (auto& run : values) run.resize(count, 0);
  std::vector<const std::vector<std::vector<std::int64_t>>*> told;
  for (std::size_t k = 0; k < answers.size(); ++k) {
    if (answers[k].empty()) continue;
    values.push_back(settings[k]);
    told.push_back(&answers[k]);
  }
  if (told.size() < kFewest) return {};
  Solver solver(pool(), std::move(values));
  ResultShapes shapes;
  for (std::uint32_t k = 0; k < record.result_count; ++k) {
    const Item& item = run_.items[record.results + k];
    if (item.kind == ItemKind::kList) continue;
    std::vector<Expr> shape;
    const std::size_t number = shapes.size();
    const int rank = item.kind == ItemKind::kTensor ? run_.values[item.i].rank : 0;
    for (int axis = 0; axis < rank; ++axis) {
      std::vector<std::int64_t> seen;
      for (const Run* run : request_.runs) {
        seen.push_back(run->dim(static_cast<RunValue>(item.i), axis));
      }
      bool alike = true;
      for (const auto* answer : told) {
        alike = alike && number < answer->size() &&
                (*answer)[number].size() == static_cast<std::size_t>(rank);
        if (alike) seen.push_back((*answer)[number][static_cast<std::size_t>(axis)]);
      }
      shape.push_back(alike ? solver.solve(seen, hints_).expr : nullptr);
    }
    shapes.push_back(std::move(shape));
  }
  return known->second = std::move(shapes);
}

}  // namespace fairlead
