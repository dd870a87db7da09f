// Numbers in tensors that the model computes of sizes: torch.div(n, 4, rounding_mode="floor").
#include <algorithm>
#include <iterator>

#include "fairlead/trace/program_impl.h"

namespace fairlead {
namespace {

struct Numbers {
  ExprPool& pool;
  const Node& node;
  Expr a;            // null where it is not known
  Expr b = nullptr;  // likewise
};

using Makes = Expr (*)(const Numbers&);

Expr same(const Numbers& n) { return n.a; }
Expr negated(const Numbers& n) { return n.pool.neg(n.a); }
Expr times(const Numbers& n) { return n.pool.mul(n.a, n.b); }
Expr lesser(const Numbers& n) { return n.pool.min(n.a, n.b); }
Expr greater(const Numbers& n) { return n.pool.max(n.a, n.b); }

// add and sub have a factor of their second number.
Expr scaled(const Numbers& n, Expr number) {
  if (n.node.args.size() < 3) return number;
  const Arg& alpha = n.node.args[2];
  return alpha.kind == ArgKind::kInt ? n.pool.mul(number, alpha.expr) : nullptr;
}

Expr sum(const Numbers& n) {
  const Expr b = scaled(n, n.b);
  return b == nullptr ? nullptr : n.pool.add(n.a, b);
}

Expr difference(const Numbers& n) {
  const Expr b = scaled(n, n.b);
  return b == nullptr ? nullptr : n.pool.sub(n.a, b);
}

Expr from_other(const Numbers& n) {
  const Expr a = scaled(n, n.a);
  return a == nullptr ? nullptr : n.pool.sub(n.b, a);
}

// A divisor that may be 0 or less is left to the tensor.
Expr quotient(const Numbers& n) { return n.b->least > 0 ? n.pool.floordiv(n.a, n.b) : nullptr; }
Expr rest(const Numbers& n) { return n.b->least > 0 ? n.pool.mod(n.a, n.b) : nullptr; }

Expr rounded(const Numbers& n) {
  if (n.node.args.size() < 3 || n.node.args[2].kind != ArgKind::kString) return nullptr;
  const bool down = n.node.args[2].text == "floor" || !n.pool.may_be_negative(n.a);
  return down ? quotient(n) : nullptr;
}

struct Row {
  Op op;
  std::size_t number;  // its first number, as an argument
  bool two;
  Makes makes;
};

constexpr Row kRows[] = {
    {Op::_to_copy, 0, false, same},
    {Op::add_Scalar, 0, true, sum},
    {Op::add_Tensor, 0, true, sum},
    {Op::alias, 0, false, same},
    {Op::clone, 0, false, same},
    {Op::detach, 0, false, same},
    {Op::div_Scalar_mode, 0, true, rounded},
    {Op::div_Tensor_mode, 0, true, rounded},
    {Op::fairlead_tensor, 0, false, same},
    {Op::floor_divide, 0, true, quotient},
    {Op::floor_divide_Scalar, 0, true, quotient},
    {Op::full, 1, false, same},
    {Op::lift_fresh, 0, false, same},
    {Op::maximum, 0, true, greater},
    {Op::minimum, 0, true, lesser},
    {Op::mul_Scalar, 0, true, times},
    {Op::mul_Tensor, 0, true, times},
    {Op::neg, 0, false, negated},
    {Op::remainder_Scalar, 0, true, rest},
    {Op::remainder_Tensor, 0, true, rest},
    {Op::rsub_Scalar, 0, true, from_other},
    {Op::rsub_Tensor, 0, true, from_other},
    {Op::scalar_tensor, 0, false, same},
    {Op::sub_Scalar, 0, true, difference},
    {Op::sub_Tensor, 0, true, difference},
};

}  // namespace

// What a tensor of one number is that an operator made of numbers, exactly.
void ProgramBuilder::note_number(const Node& node) {
  if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) return;
  const Value& made = graph().values[node.outputs[0]];
  if (made.dtype != Dtype::kInt64 || !made.shape.empty()) return;
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& each) { return node.op == each.op; });
  if (row == std::end(kRows)) return;
  const auto number = [&](std::size_t k) -> Expr {
    if (k >= node.args.size()) return nullptr;
    const bool list = node.args[k].kind == ArgKind::kList && node.args[k].items.size() == 1;
    const Arg& arg = list ? node.args[k].items[0] : node.args[k];
    if (arg.kind == ArgKind::kInt) return pool().is_real(arg.expr) ? nullptr : arg.expr;
    if (arg.kind != ArgKind::kValue) return nullptr;
    const auto it = numbers_.find(arg.value);
    return it == numbers_.end() ? nullptr : it->second;
  };
  Numbers known{pool(), node, number(row->number)};
  if (row->two) known.b = number(row->number + 1);
  if (known.a == nullptr || (row->two && known.b == nullptr)) return;
  if (const Expr found = row->makes(known)) numbers_[node.outputs[0]] = found;
}

}  // namespace fairlead
