// Compares the bytes of outside tensors over the runs, and solves those that vary.
#include "fairlead/trace/fresh.h"

#include <algorithm>
#include <cstring>
#include <set>

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
  const std::string cause = what + " (" + where + ")";
  throw Error(
      ErrorCode::kUnsolved,
      "[export] Expected a tensor made outside the operators to be constant or to follow from "
      "the input sizes, but " +
          cause +
          ". Make it with torch operators, or fix the dimension it depends on with dynamic_shapes.",
      {}, cause);
}

ValueId emit(Graph& graph, Op op, std::vector<Arg> args, Dtype dtype, std::vector<Expr> shape) {
  const ValueId out = graph.add_value(dtype, std::move(shape));
  graph.nodes.push_back({op, std::move(args), {out}, {}, {}});
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
  return emit(graph, Op::expand, {value_arg(id), shape_arg(shape), bool_arg(false)}, dtype, shape);
}

// list(range(n)) and its kin: a one-dimensional integer tensor a, a + k, a + 2k, ...
ValueId progression(Graph& graph, const std::vector<Seen>& all, Dtype dtype, Solver& solver,
                    const std::string& where) {
  // A run with one element has no step, one without any no start: the others know them.
  std::set<std::int64_t> starts, steps, ends;
  std::vector<std::int64_t> seen_starts, lengths;
  for (const Seen& s : all) {
    if (s.dims.size() != 1 || !is_integer(dtype)) unsolved(where, "its shape varies over the runs");
    const auto at = [&](std::int64_t k) { return integer_at(s.constant->data, dtype, k); };
    const std::int64_t start = s.count > 0 ? at(0) : 0;
    const std::int64_t step = s.count > 1 ? at(1) - start : 1;
    for (std::int64_t k = 0; k < s.count; ++k) {
      if (at(k) != start + k * step) unsolved(where, "its shape and elements vary over the runs");
    }
    if (s.count > 1) steps.insert(step);
    if (s.count > 0) starts.insert(start);
    if (s.count > 0) ends.insert(at(s.count - 1));
    seen_starts.push_back(start);
    lengths.push_back(s.count);
  }
  ExprPool& pool = *graph.pool;
  const Expr length = solver.solve(lengths).expr;
  if (length == nullptr || steps.size() != 1) unsolved(where, "its elements vary");
  const Expr step = pool.constant(*steps.begin());
  Expr start = nullptr;
  if (starts.size() == 1) {
    start = pool.constant(*starts.begin());
  } else if (ends.size() == 1) {  // range(n)[::-1]
    start =
        pool.sub(pool.constant(*ends.begin()), pool.mul(step, pool.sub(length, pool.constant(1))));
  } else {
    start = solver.solve(seen_starts).expr;
  }
  if (start == nullptr) unsolved(where, "its elements vary");
  const Expr end = pool.add(start, pool.mul(step, length));
  Arg kind;
  kind.kind = ArgKind::kDtype;
  kind.dtype = dtype;
  return emit(graph, Op::arange_start_step,
              {int_arg(start), int_arg(end), int_arg(step), kind, {}, {}, {}}, dtype, {length});
}

// The elements as Args, by what Python made them of or by what fits the runs. Empty where they are
// literals; throws Error(kUnsolved) where they vary and nothing explains them.
std::vector<Arg> solved_elements(ExprPool& pool, const std::vector<Seen>& all, Dtype dtype,
                                 bool vary, Solver& solver, const CallNumbers* numbers,
                                 const std::string& where) {
  std::vector<Arg> elements;
  bool open = vary;
  const bool integers = is_integer(dtype);
  const bool reals = dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64;
  if (!integers && !reals) {
    if (vary) unsolved(where, "its elements vary over the runs");
    return {};
  }
  for (int k = 0; k < all.front().count; ++k) {
    Arg element;
    if (integers) {
      std::vector<std::int64_t> seen;
      for (const Seen& s : all) seen.push_back(integer_at(s.constant->data, dtype, k));
      Expr e = numbers != nullptr ? numbers->integer(k, seen) : nullptr;
      if (e == nullptr && !vary) return {};
      if (e == nullptr) e = solver.solve(seen).expr;
      if (e == nullptr) unsolved(where, "its elements vary over the runs");
      element = int_arg(e);
      open = open || !is_const(e);
    } else {
      const bool single = dtype == Dtype::kFloat32;
      std::vector<double> seen;
      for (const Seen& s : all) seen.push_back(float_at(s.constant->data, dtype, k));
      const Expr e = numbers != nullptr ? numbers->real(k, seen, single) : nullptr;
      if (e == nullptr && !vary) return {};
      element.kind = ArgKind::kFloat;
      element.number = seen[0];
      if (e != nullptr && e->kind != ExprKind::kReal && !is_const(e)) {
        element.number = 1;
        element.expr = pool.to_real(e);
        open = true;
      } else if (e == nullptr && std::count(seen.begin(), seen.end(), seen[0]) !=
                                     static_cast<std::ptrdiff_t>(seen.size())) {
        const auto solution = solver.solve_float(seen);
        if (!solution) unsolved(where, "its elements vary over the runs");
        element.number = solution->coefficient;
        element.expr = solution->base;
        element.power = solution->power;
      }
    }
    elements.push_back(std::move(element));
  }
  return open ? elements : std::vector<Arg>{};
}

}  // namespace

ValueId constant_value(Graph& graph, const std::vector<const Run*>& runs, RunValue v,
                       Solver& solver, const CallNumbers* numbers, const std::string& where) {
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
  constexpr std::int64_t kMostElements = 4096, kMostNumbers = 64;
  if (!same && first.count > kMostElements) unsolved(where, "its elements vary over the runs");
  Arg elements;
  elements.kind = ArgKind::kList;
  if (!same || (numbers != nullptr && !first.constant->persistent && first.count <= kMostNumbers)) {
    elements.items = solved_elements(pool, all, dtype, !same, solver, numbers, where);
  }
  if (elements.items.empty()) {
    Constant constant;
    constant.value = graph.add_value(dtype, std::move(shape), first.constant->name);
    constant.data = first.constant->data;
    constant.dims = first.dims;
    constant.strides = first.constant->strides;
    const ValueId id = constant.value;
    graph.add_constant(std::move(constant));
    return id;
  }
  Arg sizes;
  sizes.kind = ArgKind::kList;
  for (const Expr e : shape) sizes.items.push_back(int_arg(e));
  Arg kind;
  kind.kind = ArgKind::kDtype;
  kind.dtype = dtype;
  return emit(graph, Op::fairlead_tensor, {std::move(elements), std::move(sizes), std::move(kind)},
              dtype, std::move(shape));
}

}  // namespace fairlead
