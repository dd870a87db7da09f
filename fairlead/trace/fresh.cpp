// Compares the bytes of outside tensors over the runs, and solves those that vary.
#include "fairlead/trace/fresh.h"

#include <algorithm>
#include <cstring>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"

namespace fairlead {
namespace {

struct Seen {
  const RunConstant* constant;
  std::vector<std::int64_t> dims;
  std::int64_t count;
};

Seen seen_in(const Run& run, RunValue v) {
  const ValueFact& fact = run.values[v];
  FAIRLEAD_CHECK(fact.constant >= 0, "an outside tensor has no bytes");
  Seen seen{&run.constants[fact.constant], {}, 1};
  for (int axis = 0; axis < fact.rank; ++axis) {
    seen.dims.push_back(run.dim(v, axis));
    seen.count *= seen.dims.back();
  }
  return seen;
}

// Only contiguous bytes are kept for tensors made in Python, so element k lies at k.
std::int64_t integer_at(const std::byte* data, Dtype dtype, std::int64_t k) {
  const auto read = [&](auto zero) {
    std::memcpy(&zero, data + k * static_cast<std::int64_t>(sizeof(zero)), sizeof(zero));
    return static_cast<std::int64_t>(zero);
  };
  switch (dtype) {
    case Dtype::kInt64:
      return read(std::int64_t{});
    case Dtype::kInt32:
      return read(std::int32_t{});
    case Dtype::kInt16:
      return read(std::int16_t{});
    case Dtype::kInt8:
      return read(std::int8_t{});
    case Dtype::kUint8:
      return read(std::uint8_t{});
    default:
      return 0;
  }
}

double float_at(const std::byte* data, Dtype dtype, std::int64_t k) {
  if (dtype == Dtype::kFloat32) {
    float value;
    std::memcpy(&value, data + k * 4, 4);
    return value;
  }
  double value;
  std::memcpy(&value, data + k * 8, 8);
  return value;
}

[[noreturn]] void unsolved(const std::string& where, const std::string& what) {
  throw Error(
      ErrorCode::kUnsolved,
      "[export] Expected a tensor made outside the operators to be constant or to follow from "
      "the input sizes, but " +
          what + " (" + where +
          "). Make it with torch operators, or fix the dimension it depends on with "
          "dynamic_shapes.");
}

ValueId emit(Graph& graph, std::string op, std::vector<Arg> args, Dtype dtype,
             std::vector<Expr> shape) {
  const ValueId out = graph.add_value(dtype, std::move(shape));
  graph.nodes.push_back({std::move(op), std::move(args), {out}, {}, {}});
  return out;
}

// Sizes that vary over the runs, solved; empty where one is not.
std::vector<Expr> solved_shape(const std::vector<Seen>& all, Solver& solver) {
  std::vector<Expr> shape;
  for (std::size_t axis = 0; axis < all.front().dims.size(); ++axis) {
    std::vector<std::int64_t> sizes;
    for (const Seen& s : all) sizes.push_back(s.dims[axis]);
    const Solution solution = solver.solve(sizes);
    if (!solution.found()) return {};
    shape.push_back(solution.expr);
  }
  return shape;
}

// [[1, 2]] * n: the same rows, as many as sizes say. kNoValue where they are not.
ValueId repeated_rows(Graph& graph, const std::vector<Seen>& all, Dtype dtype, Solver& solver) {
  const Seen& first = all.front();
  if (first.dims.empty() || first.count == 0) return kNoValue;
  const auto row = static_cast<std::size_t>(first.count / first.dims[0]) * dtype_size(dtype);
  for (const Seen& s : all) {
    if (!std::equal(s.dims.begin() + 1, s.dims.end(), first.dims.begin() + 1)) return kNoValue;
    for (std::int64_t k = 0; k < s.dims[0]; ++k) {
      const std::byte* at = s.constant->data + static_cast<std::size_t>(k) * row;
      if (std::memcmp(at, first.constant->data, row) != 0) return kNoValue;
    }
  }
  const std::vector<Expr> shape = solved_shape(all, solver);
  if (shape.empty()) return kNoValue;
  std::vector<Expr> one = shape;
  one[0] = graph.pool->constant(1);
  Constant constant;
  constant.dims = first.dims;
  constant.dims[0] = 1;
  constant.data = first.constant->data;
  constant.value = graph.add_value(dtype, std::move(one));
  const ValueId id = constant.value;
  graph.add_constant(std::move(constant));
  Arg same;
  same.kind = ArgKind::kBool;
  return emit(graph, "aten.expand.default", {value_arg(id), shape_arg(shape), same}, dtype, shape);
}

// list(range(n)) and its kin: a one-dimensional integer tensor a, a + k, a + 2k, ...
ValueId progression(Graph& graph, const std::vector<Seen>& all, Dtype dtype, Solver& solver,
                    const std::string& where) {
  std::vector<std::int64_t> starts, steps, lengths;
  for (const Seen& s : all) {
    if (s.dims.size() != 1 || !is_integer(dtype)) unsolved(where, "its shape varies over the runs");
    const std::int64_t start = s.count > 0 ? integer_at(s.constant->data, dtype, 0) : 0;
    const std::int64_t step = s.count > 1 ? integer_at(s.constant->data, dtype, 1) - start : 1;
    for (std::int64_t k = 0; k < s.count; ++k) {
      if (integer_at(s.constant->data, dtype, k) != start + k * step) {
        unsolved(where, "its shape and elements vary over the runs");
      }
    }
    starts.push_back(start);
    steps.push_back(step);
    lengths.push_back(s.count);
  }
  const Solution start = solver.solve(starts), step = solver.solve(steps),
                 length = solver.solve(lengths);
  if (!start.found() || !step.found() || !length.found()) unsolved(where, "its elements vary");
  ExprPool& pool = *graph.pool;
  const Expr end = pool.add(start.expr, pool.mul(step.expr, length.expr));
  Arg kind;
  kind.kind = ArgKind::kDtype;
  kind.dtype = dtype;
  return emit(graph, "aten.arange.start_step",
              {int_arg(start.expr), int_arg(end), int_arg(step.expr), kind, {}, {}, {}}, dtype,
              {length.expr});
}

}  // namespace

ValueId constant_value(Graph& graph, const std::vector<const Run*>& runs, RunValue v,
                       Solver& solver, std::span<const Expr> numbers, const std::string& where) {
  const Dtype dtype = runs.front()->values[v].dtype;
  std::vector<Seen> all;
  for (const Run* run : runs) all.push_back(seen_in(*run, v));
  const Seen& first = all.front();
  bool same_shape = true;
  bool same = true;
  for (const Seen& s : all) {
    same_shape = same_shape && s.dims == first.dims;
    if (!same_shape) break;
    if (s.constant->persistent != first.constant->persistent ||
        s.constant->name != first.constant->name) {
      unsolved(where, "it is another tensor in each run");
    }
    const auto bytes = static_cast<std::size_t>(s.count) * dtype_size(dtype);
    same = same && (s.constant->data == first.constant->data ||
                    (!s.constant->persistent &&
                     std::memcmp(s.constant->data, first.constant->data, bytes) == 0));
  }
  ExprPool& pool = *graph.pool;
  if (!same_shape) {
    const bool one_rank = std::all_of(all.begin(), all.end(), [&](const Seen& s) {
      return s.dims.size() == first.dims.size() && !s.constant->persistent;
    });
    const ValueId rows = one_rank ? repeated_rows(graph, all, dtype, solver) : kNoValue;
    return rows != kNoValue ? rows : progression(graph, all, dtype, solver, where);
  }
  std::vector<Expr> shape;
  for (const std::int64_t d : first.dims) shape.push_back(pool.constant(d));
  if (same) {
    Constant constant;
    constant.value = graph.add_value(dtype, std::move(shape), first.constant->name);
    constant.data = first.constant->data;
    constant.dims = first.dims;
    constant.strides = first.constant->strides;
    const ValueId id = constant.value;
    graph.add_constant(std::move(constant));
    return id;
  }
  constexpr std::int64_t kMostElements = 4096;
  if (first.count > kMostElements) unsolved(where, "its elements vary over the runs");
  Arg elements;
  elements.kind = ArgKind::kList;
  for (std::int64_t k = 0; k < first.count; ++k) {
    Arg element;
    if (is_integer(dtype) || dtype == Dtype::kBool) {
      std::vector<std::int64_t> seen;
      for (const Seen& s : all) {
        seen.push_back(
            integer_at(s.constant->data, dtype == Dtype::kBool ? Dtype::kUint8 : dtype, k));
      }
      const Solution solution = solver.solve(seen, numbers);
      if (!solution.found() || dtype == Dtype::kBool)
        unsolved(where, "its elements vary over the runs");
      element = int_arg(solution.expr);
    } else if (dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64) {
      std::vector<double> seen;
      for (const Seen& s : all) seen.push_back(float_at(s.constant->data, dtype, k));
      auto solution = solver.solve_float(seen);
      for (const Expr e : numbers) {
        if (solution) break;
        bool same = true;
        const std::vector<double> values = solver.real_values_of(e);
        for (std::size_t r = 0; r < seen.size(); ++r) {
          const double value = dtype == Dtype::kFloat32 ? static_cast<float>(values[r]) : values[r];
          same = same && value == seen[r];
        }
        if (same) solution = FloatSolution{1, pool.to_real(e), 1};
      }
      if (!solution) unsolved(where, "its elements vary over the runs");
      element.kind = ArgKind::kFloat;
      element.number = solution->coefficient;
      element.expr = solution->base;
      element.power = solution->power;
    } else {
      unsolved(where, "its elements vary over the runs");
    }
    elements.items.push_back(std::move(element));
  }
  Arg sizes;
  sizes.kind = ArgKind::kList;
  for (const Expr e : shape) sizes.items.push_back(int_arg(e));
  Arg kind;
  kind.kind = ArgKind::kDtype;
  kind.dtype = dtype;
  return emit(graph, "fairlead.tensor", {std::move(elements), std::move(sizes), std::move(kind)},
              dtype, std::move(shape));
}

}  // namespace fairlead
