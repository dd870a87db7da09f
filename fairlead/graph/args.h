// Arguments of nodes that passes and the functional form make themselves.
#pragma once

#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

[[nodiscard]] inline Arg value_arg(ValueId value) {
  Arg arg;
  arg.kind = ArgKind::kValue;
  arg.value = value;
  return arg;
}

[[nodiscard]] inline Arg int_arg(Expr expr) {
  Arg arg;
  arg.kind = ArgKind::kInt;
  arg.expr = expr;
  return arg;
}

[[nodiscard]] inline Arg float_arg(double number) {
  Arg arg;
  arg.kind = ArgKind::kFloat;
  arg.number = number;
  return arg;
}

[[nodiscard]] inline Arg bool_arg(bool value) {
  Arg arg;
  arg.kind = ArgKind::kBool;
  arg.number = value ? 1 : 0;
  return arg;
}

[[nodiscard]] inline Arg shape_arg(const std::vector<Expr>& shape) {
  Arg arg;
  arg.kind = ArgKind::kList;
  for (const Expr e : shape) arg.items.push_back(int_arg(e));
  return arg;
}

}  // namespace fairlead
