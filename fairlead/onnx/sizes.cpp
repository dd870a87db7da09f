// Expressions become nodes, each once.
#include "fairlead/onnx/sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fairlead/base/error.h"
#include "fairlead/graph/places.h"

namespace fairlead::onnx {

Val Sizes::symbol(SymbolId id) {
  if (const auto found = checked_.find(id); found != checked_.end()) return found->second;
  const SymbolSource& source = graph_.symbol_sources.at(id);
  if (source.value == kNoValue) {  // a text may name it alone
    throw Error(ErrorCode::kInvalidInput,
                "[lower] Expected an axis of an input, or a number that was "
                "read, for symbol " +
                    graph_.pool->symbols()[id].name + ", got none. Give its place in the graph.");
  }
  const Val v = value(source.value);
  const SymbolKind kind = graph_.pool->symbols()[id].kind;
  if (kind == SymbolKind::kRead || kind == SymbolKind::kReadReal) {
    const Dtype dtype = kind == SymbolKind::kRead ? Dtype::kInt64 : Dtype::kFloat64;
    const Val flat = op("Reshape", {cast(v, dtype), ints({-1})});
    if (graph_.values[source.value].shape.empty()) return flat;
    return op("Gather", {flat, ints({source.axis})}, {attr("axis", 0)});
  }
  const Val size = op("Shape", {v}, {attr("start", source.axis), attr("end", source.axis + 1)});
  return source.divisor == 1 ? size : op("Div", {size, ints({source.divisor})});
}

Val Sizes::dim(Expr e) {
  ExprPool& p = pool();
  switch (e->kind) {
    case ExprKind::kConst:
      return ints({e->value});
    case ExprKind::kSymbol:
      return symbol(static_cast<SymbolId>(e->value));
    case ExprKind::kAdd: {
      // A negative term is subtracted.
      Val sum = dim(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k) {
        const Expr term = e->args[k];
        const bool minus = (is_const(term) || term->kind == ExprKind::kMul) && term->value < 0;
        sum = op(minus ? "Sub" : "Add", {sum, dim(minus ? p.neg(term) : term)});
      }
      return sum;
    }
    case ExprKind::kMul: {
      // -((-a)//k) is ceil division.
      if (e->value == -1 && e->args.size() == 1 && e->args[0]->kind == ExprKind::kFloorDiv &&
          is_const(e->args[0]->args[1])) {
        const Expr k = e->args[0]->args[1];
        const Expr a = p.neg(e->args[0]->args[0]);
        if (k->value > 0 && !p.may_be_negative(a)) {
          return op("Div", {dim(p.add(a, p.constant(k->value - 1))), dim(k)});
        }
      }
      Val result = dim(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k)
        result = op("Mul", {result, dim(e->args[k])});
      return e->value == 1 ? result : op("Mul", {result, ints({e->value})});
    }
    case ExprKind::kFloorDiv: {
      const Val a = dim(e->args[0]);
      const Val b = divisor(e->args[1]);
      if (!p.may_be_negative(e->args[0]) && !p.may_be_negative(e->args[1])) {
        return op("Div", {a, b});
      }
      // Div rounds towards zero; Mod has the divisor's sign.
      return op("Div", {op("Sub", {a, op("Mod", {a, b})}), b});
    }
    case ExprKind::kMod:
      return op("Mod", {dim(e->args[0]), divisor(e->args[1])});
    case ExprKind::kMax:
    case ExprKind::kMin: {
      Inputs parts;
      for (const Expr part : e->args) parts.push_back(dim(part));
      return op(e->kind == ExprKind::kMax ? "Max" : "Min", parts);
    }
    case ExprKind::kLess:
    case ExprKind::kSame: {
      const bool reals = p.is_real(e->args[0]) || p.is_real(e->args[1]);
      const auto side = [&](Expr part) { return reals ? real(p.to_real(part)) : dim(part); };
      const Val a = side(e->args[0]), b = side(e->args[1]);
      return cast(op(e->kind == ExprKind::kLess ? "Less" : "Equal", {a, b}), Dtype::kInt64);
    }
    case ExprKind::kWhere:
      if (p.is_real(e)) return real(e);
      return op("Where", {cast(dim(e->args[0]), Dtype::kBool), dim(e->args[1]), dim(e->args[2])});
    case ExprKind::kBitLength: {
      // How many powers of two are not above it: exact, where a logarithm would round.
      std::vector<std::int64_t> powers;
      for (int k = 0; k < 63; ++k) powers.push_back(std::int64_t{1} << k);
      const Val reached = op("GreaterOrEqual", {op("Abs", {dim(e->args[0])}), ints(powers)});
      return op("ReduceSum", {cast(reached, Dtype::kInt64), ints({0})}, {attr("keepdims", 1)});
    }
    case ExprKind::kPower2: {
      std::vector<std::int64_t> powers;
      for (int k = 0; k < 63; ++k) powers.push_back(std::int64_t{1} << k);
      const Val power = dim(e->args[0]);
      const Val found = op("Gather", {ints(powers), op("Max", {power, ints({0})})});
      return op("Where", {op("Less", {power, ints({0})}), ints({0}), found});
    }
    case ExprKind::kTrunc:
      return cast(real(e->args[0]), Dtype::kInt64);
    case ExprKind::kFloor:
      return cast(op("Floor", {real(e->args[0])}), Dtype::kInt64);
    case ExprKind::kCeil:
      return cast(op("Ceil", {real(e->args[0])}), Dtype::kInt64);
    case ExprKind::kRound:
      return cast(op("Round", {real(e->args[0])}), Dtype::kInt64);
    default:
      return real(e);
  }
}

// A divisor that may be 0 on the side of a choice that is not taken ends the process there.
Val Sizes::divisor(Expr e) {
  const Val b = dim(e);
  if (least_value(pool(), e) >= 1) return b;
  return op("Where", {op("Equal", {b, ints({0})}), ints({1}), b});
}

Val Sizes::real(Expr e) {
  const auto doubles = [&](double value) { return unsqueeze(scalar(value, Dtype::kFloat64), {0}); };
  const auto all = [&](const char* name) {
    Inputs parts;
    for (const Expr part : e->args) parts.push_back(real(part));
    return op(name, parts);
  };
  switch (e->kind) {
    case ExprKind::kReal:
      return doubles(std::bit_cast<double>(e->value));
    case ExprKind::kSymbol:
      return symbol(static_cast<SymbolId>(e->value));
    case ExprKind::kToReal:
      return cast(dim(e->args[0]), Dtype::kFloat64);
    case ExprKind::kRealAdd:
      return all("Add");
    case ExprKind::kRealSub:
      return all("Sub");
    case ExprKind::kRealMul:
      return all("Mul");
    case ExprKind::kRealDiv:
      return all("Div");
    case ExprKind::kRealPow:
      return all("Pow");
    case ExprKind::kRealFloorDiv:
    case ExprKind::kRealMod: {
      // Mod has the dividend's sign.
      const Val a = real(e->args[0]), b = real(e->args[1]);
      Val rest = op("Mod", {a, b}, {attr("fmod", 1)});
      if (pool().may_be_negative(e->args[0]) || pool().may_be_negative(e->args[1])) {
        const Val other = op("Less", {op("Mul", {rest, b}), doubles(0)});
        rest = op("Where", {other, op("Add", {rest, b}), rest});
      }
      if (e->kind == ExprKind::kRealMod) return rest;
      return op("Round", {op("Div", {op("Sub", {a, rest}), b})});
    }
    case ExprKind::kSqrt:
      return all("Sqrt");
    case ExprKind::kLog:
      return all("Log");
    case ExprKind::kExp:
      return all("Exp");
    case ExprKind::kLog2: {
      // A power of two has a whole logarithm, which the quotient of two would miss by its rounding.
      const Val found = op("Div", {op("Log", {real(e->args[0])}), doubles(std::log(2.0))});
      const Val near = op("Round", {found});
      const Val apart = op("Abs", {op("Sub", {found, near})});
      return op("Where", {op("Less", {apart, doubles(1e-12)}), near, found});
    }
    case ExprKind::kWhere:
      return op("Where", {cast(dim(e->args[0]), Dtype::kBool), real(e->args[1]), real(e->args[2])});
    default:
      FAIRLEAD_CHECK(false, "unknown kind of expression");
  }
}

namespace {

// What PyTorch makes of a number that does not fit: the bits that do.
double wrapped(std::int64_t value, Dtype dtype) {
  if (!is_integer(dtype) || dtype_size(dtype) == 8) return static_cast<double>(value);
  const std::size_t bits = 8 * dtype_size(dtype);
  const std::int64_t range = std::int64_t{1} << bits;
  const std::int64_t low = ((value % range) + range) % range;
  const bool negative = dtype_kind(dtype) == DtypeKind::kInt && low >= range / 2;
  return static_cast<double>(negative ? low - range : low);
}

}  // namespace

Val Sizes::size_scalar(Expr e, Dtype dtype) {
  if (is_const(e)) {
    if (dtype != Dtype::kInt64) return scalar(wrapped(e->value, dtype), dtype);
    auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(e->value));
    std::memcpy(bytes->data(), &e->value, sizeof(e->value));
    TensorData data;
    data.dtype = dtype;
    data.owned = bytes;
    return constant(std::move(data));
  }
  return cast(op("Squeeze", {dim(e), ints({0})}), dtype);
}

Val Sizes::shape_tensor(std::span<const Expr> shape) {
  Inputs parts;
  std::vector<std::int64_t> run;
  const auto flush = [&] {
    if (!run.empty()) parts.push_back(ints(run));
    run.clear();
  };
  for (const Expr e : shape) {
    if (is_const(e)) {
      run.push_back(e->value);
    } else {
      flush();
      parts.push_back(dim(e));
    }
  }
  flush();
  if (parts.empty()) return ints({});
  return concat(parts, 0);
}

// Whether a size is 0 at some sizes of the inputs: a count, what a slice leaves, the parts of a crop.
static bool may_be_none(const ExprPool& pool, Expr e) {
  if (e->kind == ExprKind::kConst) return false;
  if (e->kind != ExprKind::kMul) return least_value(pool, e) < 1;
  return std::any_of(e->args.begin(), e->args.end(), [&](Expr f) { return may_be_none(pool, f); });
}

Val Sizes::reshape(Val v, const Shape& from, const Shape& to) {
  if (from == to) return v;
  // 0 keeps the size at the same place, and one size may be left to be inferred. Neither is right
  // for an empty tensor when a constant size is 0, which stays a plain shape. A size that may be 0
  // is the one that is inferred: none follows from the others where their product is 0.
  std::vector<std::int64_t> target;
  int open = 0;
  bool zero = false;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (is_const(to[k])) {
      zero = zero || to[k]->value == 0;
      target.push_back(to[k]->value);
    } else if (k < from.size() && from[k] == to[k]) {
      target.push_back(0);
    } else {
      target.push_back(-1);
      ++open;
    }
  }
  std::vector<std::size_t> none;
  for (std::size_t k = 0; k < to.size() && open > 0; ++k) {
    if (may_be_none(pool(), to[k])) none.push_back(k);
  }
  if (none.size() == 1 && target[none[0]] == 0) {
    target[none[0]] = -1;
    ++open;
  }
  zero = zero || none.size() > 1;
  if (open <= 1 && !zero) return op("Reshape", {v, ints(target)});
  if (!zero) {
    // Among several open sizes the costliest to compute is inferred.
    std::size_t dearest = none.empty() ? 0 : none[0];
    std::size_t cost = 0;
    for (std::size_t k = 0; k < to.size() && none.empty(); ++k) {
      if (target[k] != -1) continue;
      const std::size_t size = pool().to_string(to[k]).size();
      if (size >= cost) {
        cost = size;
        dearest = k;
      }
    }
    Shape parts;
    for (std::size_t k = 0; k < to.size(); ++k) {
      parts.push_back(k == dearest || target[k] != -1 ? expr(target[k]) : to[k]);
    }
    return op("Reshape", {v, shape_tensor(parts)});
  }
  return op("Reshape", {v, shape_tensor(to)}, {attr("allowzero", 1)});
}

Val Sizes::expand(Val v, const Shape& from, const Shape& to) {
  if (from == to) return v;
  // Expand broadcasts both ways: a 1 keeps the size that is there.
  Shape target(to.size(), expr(1));
  const std::size_t shift = to.size() - from.size();
  bool changes = shift > 0;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (k >= shift && from[k - shift] == to[k]) continue;
    target[k] = to[k];
    changes = changes || !is_const(to[k], 1);
  }
  return changes ? op("Expand", {v, shape_tensor(target)}) : v;
}

Val Sizes::zero_where(Expr holds, const std::string& words) {
  const Val beyond = size_scalar(pool().sub(expr(1), holds));
  const Val zero = fresh_op("Gather", {ints({0}), beyond}, {attr("axis", 0)}, Dtype::kInt64);
  model_.graph.nodes.back().name = unique(words);
  return zero;
}

Val Sizes::unless(Val v, Val beyond, const std::string& words) {
  const std::size_t before = model_.graph.nodes.size();
  const Val same = op("Gather", {v, beyond}, {attr("axis", 0)}, dtype_of(v));
  if (model_.graph.nodes.size() > before) model_.graph.nodes.back().name = unique(words);
  return same;
}

Val Sizes::arg_number(const Arg& a, Dtype dtype) {
  if (part_ == 1) return scalar(0, dtype);  // the imaginary part of a number
  switch (a.kind) {
    case ArgKind::kInt:
      return size_scalar(a.expr, dtype);
    case ArgKind::kBool:
      return scalar(a.number, dtype);
    case ArgKind::kFloat: {
      if (a.expr == nullptr) return scalar(a.number, dtype);
      if (pool().is_real(a.expr) && a.number == 1 && a.power == 1) {
        return cast(op("Squeeze", {real(a.expr), ints({0})}), dtype);
      }
      // coefficient * base^power, computed in double so that it rounds once, as Python's float did.
      Val base = size_scalar(a.expr, Dtype::kFloat64);
      if (a.power != 1) base = op("Pow", {base, scalar(a.power, Dtype::kFloat64)});
      return cast(op("Mul", {base, scalar(a.number, Dtype::kFloat64)}), dtype);
    }
    default:
      unsupported("expected a number as argument");
  }
}

}  // namespace fairlead::onnx
