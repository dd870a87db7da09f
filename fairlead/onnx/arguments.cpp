// Arguments and results of the node at hand.
#include "fairlead/onnx/arguments.h"

#include <algorithm>
#include <cmath>

#include "fairlead/base/error.h"

namespace fairlead::onnx {
namespace {

const Arg kNoArg;

// Axes, groups, windows: sums and products of two such numbers are numbers of 64 bits.
constexpr std::int64_t kMostCounted = (std::int64_t{1} << 31) - 1;

std::int64_t counted(const Arguments& arguments, std::size_t i, Expr e) {
  if (!is_const(e)) arguments.must_be_constant("argument " + std::to_string(i), e);
  if (e->value > kMostCounted || e->value < -kMostCounted) {
    arguments.unsupported("expected a number of " + std::to_string(kMostCounted) +
                          " at most as argument " + std::to_string(i) + ", got " +
                          std::to_string(e->value));
  }
  return e->value;
}

}  // namespace

const Arg& Arguments::arg(std::size_t i) const {
  return i < node_->args.size() ? node_->args[i] : kNoArg;
}

bool Arguments::has(std::size_t i) const { return arg(i).kind != ArgKind::kNone; }

bool Arguments::is_tensor(std::size_t i) const { return arg(i).kind == ArgKind::kValue; }

bool Arguments::is_complex_arg(std::size_t i) const {
  return is_tensor(i) && is_complex(graph_.values[arg(i).value].dtype);
}

const Shape& Arguments::shape(std::size_t i) const {
  static const Shape kScalar;
  return is_tensor(i) ? graph_.values[arg(i).value].shape : kScalar;
}

Dtype Arguments::dtype(std::size_t i) const {
  const Arg& a = arg(i);
  if (a.kind == ArgKind::kValue) return seen(graph_.values[a.value].dtype);
  if (a.kind == ArgKind::kList && !a.items.empty() && a.items[0].kind == ArgKind::kValue) {
    return seen(graph_.values[a.items[0].value].dtype);
  }
  unsupported("argument " + std::to_string(i) + " is not a tensor");
}

Expr Arguments::integer(std::size_t i) const {
  const Arg& a = arg(i);
  if (a.kind == ArgKind::kInt) return a.expr;
  if (a.kind == ArgKind::kBool || (a.kind == ArgKind::kFloat && a.expr == nullptr)) {
    // Every whole number below it is exact, and casting a larger one or NaN is undefined.
    if (!(std::abs(a.number) < 9007199254740992.0)) {
      unsupported("expected an integer as argument " + std::to_string(i));
    }
    return graph_.pool->constant(static_cast<std::int64_t>(a.number));
  }
  if (a.kind == ArgKind::kFloat) {
    unsupported("expected an integer as argument " + std::to_string(i) + ", it is a fraction of " +
                graph_.pool->to_string(a.expr));
  }
  unsupported("expected an integer as argument " + std::to_string(i));
}

Expr Arguments::integer(std::size_t i, std::int64_t otherwise) const {
  return has(i) ? integer(i) : graph_.pool->constant(otherwise);
}

Shape Arguments::integers(std::size_t i) const {
  const Arg& a = arg(i);
  if (a.kind == ArgKind::kInt) return Shape{a.expr};
  Shape list;
  for (const Arg& item : a.items) {
    if (item.kind != ArgKind::kInt)
      unsupported("expected integers as argument " + std::to_string(i));
    list.push_back(item.expr);
  }
  return list;
}

std::int64_t Arguments::constant_int(std::size_t i) const { return counted(*this, i, integer(i)); }

std::int64_t Arguments::constant_int(std::size_t i, std::int64_t otherwise) const {
  return has(i) ? constant_int(i) : otherwise;
}

Ints Arguments::constant_ints(std::size_t i) const {
  Ints list;
  for (const Expr e : integers(i)) list.push_back(counted(*this, i, e));
  return list;
}

double Arguments::number(std::size_t i, double otherwise) const {
  const Arg& a = arg(i);
  switch (a.kind) {
    case ArgKind::kNone:
      return otherwise;
    case ArgKind::kInt:
      if (!is_const(a.expr)) must_be_constant("argument " + std::to_string(i), a.expr);
      return static_cast<double>(a.expr->value);
    case ArgKind::kBool:
      return a.number;
    case ArgKind::kFloat:
      if (a.expr == nullptr) return a.number;
      must_be_constant("argument " + std::to_string(i), a.expr);
    default:
      unsupported("expected a number as argument " + std::to_string(i));
  }
}

bool Arguments::flag(std::size_t i, bool otherwise) const {
  const Arg& a = arg(i);
  if (a.kind == ArgKind::kBool) return a.number != 0;
  if (a.kind == ArgKind::kInt && is_const(a.expr)) return a.expr->value != 0;
  if (a.kind == ArgKind::kFloat && a.expr == nullptr) return a.number != 0;
  if (a.kind == ArgKind::kNone) return otherwise;
  unsupported("argument " + std::to_string(i) + " must be a constant flag");
}

std::string_view Arguments::text(std::size_t i) const { return arg(i).text; }

std::optional<Dtype> Arguments::dtype_arg(std::size_t i) const {
  const Arg& a = arg(i);
  return a.kind == ArgKind::kDtype ? std::optional(seen(a.dtype)) : std::nullopt;
}

std::int64_t Arguments::axis(std::size_t i, int of_rank) const {
  return within(constant_int(i), of_rank < 0 ? rank(0) : of_rank);
}

Ints Arguments::axes(std::size_t i, int of_rank) const {
  Ints list = constant_ints(i);
  for (std::int64_t& a : list) a = within(a, of_rank < 0 ? rank(0) : of_rank);
  return list;
}

std::int64_t Arguments::within(std::int64_t axis, int rank) const {
  const std::int64_t count = std::max(rank, 1);
  if (axis < -count || axis >= count) {
    unsupported("expected an axis of a tensor of " + std::to_string(rank) + ", got " +
                std::to_string(axis));
  }
  return axis < 0 ? axis + count : axis;
}

std::size_t Arguments::place(std::size_t i, std::size_t size) const {
  const std::int64_t at = constant_int(i);
  if (at < 0 || static_cast<std::uint64_t>(at) >= size) {
    unsupported("expected argument " + std::to_string(i) + " below " + std::to_string(size) +
                ", got " + std::to_string(at));
  }
  return static_cast<std::size_t>(at);
}

Dtype Arguments::promoted(std::initializer_list<std::size_t> arguments) const {
  // Tensors with dimensions outrank 0-d tensors, which outrank numbers; a lower rank only counts
  // when it is of a higher category (bool < integer < float < complex).
  const auto category = [](Dtype d) {
    switch (dtype_kind(d)) {
      case DtypeKind::kBool:
        return 0;
      case DtypeKind::kInt:
      case DtypeKind::kUint:
        return 1;
      case DtypeKind::kFloat:
        return 2;
      default:
        return 3;
    }
  };
  const auto join = [&](Dtype a, Dtype b) {
    if (a == b) return a;
    if (category(a) != category(b)) {
      const Dtype high = category(a) > category(b) ? a : b;
      const Dtype low = category(a) > category(b) ? b : a;
      if (high == Dtype::kComplex64 && low == Dtype::kFloat64) return Dtype::kComplex128;
      return high;
    }
    if (category(a) == 2) {
      if (dtype_size(a) == dtype_size(b)) return Dtype::kFloat32;  // float16 with bfloat16
      return dtype_size(a) > dtype_size(b) ? a : b;
    }
    if (category(a) == 1) {
      const bool ua = dtype_kind(a) == DtypeKind::kUint, ub = dtype_kind(b) == DtypeKind::kUint;
      if (ua != ub) {  // uint8 with int8 is int16
        const Dtype u = ua ? a : b, s = ua ? b : a;
        if (dtype_size(s) > dtype_size(u)) return s;
        return dtype_size(u) == 1   ? Dtype::kInt16
               : dtype_size(u) == 2 ? Dtype::kInt32
                                    : Dtype::kInt64;
      }
    }
    return dtype_size(a) > dtype_size(b) ? a : b;
  };
  std::optional<Dtype> best[3];
  for (const std::size_t i : arguments) {
    const Arg& a = arg(i);
    int level = 2;
    Dtype d = Dtype::kFloat32;
    switch (a.kind) {
      case ArgKind::kValue:
        d = seen(graph_.values[a.value].dtype);
        level = graph_.values[a.value].shape.empty() ? 1 : 0;
        break;
      case ArgKind::kInt:
        d = Dtype::kInt64;
        break;
      case ArgKind::kBool:
        d = Dtype::kBool;
        break;
      case ArgKind::kFloat:
        d = Dtype::kFloat32;
        break;
      default:
        continue;
    }
    best[level] = best[level] ? join(*best[level], d) : d;
  }
  std::optional<Dtype> result;
  for (const auto& candidate : best) {
    if (!candidate) continue;
    if (!result) {
      result = candidate;
    } else if (category(*candidate) > category(*result)) {
      // A number of a higher category gives the default type of that category.
      result = candidate == best[2] && category(*candidate) == 2 ? Dtype::kFloat32 : *candidate;
    }
  }
  return result.value_or(Dtype::kFloat32);
}

Dtype Arguments::out_dtype(std::size_t k) const {
  return seen(graph_.values[node_->outputs.at(k)].dtype);
}

const Shape& Arguments::out_shape(std::size_t k) const {
  return graph_.values[node_->outputs.at(k)].shape;
}

void Arguments::unsupported(const std::string& why) const { refuse("unsupported form", why, {}); }

void Arguments::must_be_constant(const std::string& what, Expr e) const {
  std::vector<std::string> names;
  for (const SymbolId id : graph_.pool->symbols_of(e)) {
    names.push_back(graph_.pool->symbols()[id].name);
  }
  refuse("must be constant", what + " must be constant, it is " + graph_.pool->to_string(e),
         std::move(names));
}

void Arguments::refuse(std::string_view kind, const std::string& why,
                       std::vector<std::string> values) const {
  std::string text = "[lower] " + node_->op + ": " + why;
  if (!node_->module.empty() || !node_->source.empty()) {
    text += " (in " + std::string(node_->module.empty() ? "the model" : node_->module) + " at " +
            std::string(node_->source) + ")";
  }
  ErrorDetail detail;
  detail.kind = kind;
  detail.fields = {{"operator", node_->op.str()},
                   {"why", why},
                   {"module", std::string(node_->module)},
                   {"source", std::string(node_->source)}};
  detail.values = std::move(values);
  throw Error(ErrorCode::kUnsupported, text + ".", {std::move(detail)});
}

}  // namespace fairlead::onnx
