// One row per operator: another name for it, or a function that gives its other form.
#include "fairlead/aten/rules/composite.h"

#include "fairlead/aten/rules/rule_table.h"
#include "fairlead/graph/args.h"

namespace fairlead {
namespace {

struct Rewrite {
  const Graph& graph;
  Node& node;

  [[nodiscard]] const std::vector<Expr>& out_shape() const {
    return graph.values[node.outputs.at(0)].shape;
  }
  [[nodiscard]] std::size_t rank() const {
    return graph.values[node.args.at(0).value].shape.size();
  }
  [[nodiscard]] Arg number(std::int64_t value) const {
    return int_arg(graph.pool->constant(value));
  }
  // An axis, made non-negative; -1 where it is no constant.
  [[nodiscard]] std::int64_t axis(const Arg& arg) const {
    if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return -1;
    const std::int64_t a = arg.expr->value;
    return a < 0 ? a + static_cast<std::int64_t>(rank()) : a;
  }
  [[nodiscard]] bool is_batched() const {
    return rank() == graph.values[node.args.at(1).value].shape.size();
  }
  void become(Op op, std::vector<Arg> args) const {
    node.op = op;
    node.args = std::move(args);
  }
};

using Apply = void (*)(const Rewrite&);

// conv(input, weight, bias, stride, padding, dilation, groups)
void conv(const Rewrite& r) {
  const auto a = r.node.args;
  if (!r.is_batched()) return;
  r.become(Op::convolution,
           {a[0], a[1], a[2], a[3], a[4], a[5], bool_arg(false), r.number(0), a[6]});
}

// conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)
void conv_transpose(const Rewrite& r) {
  const auto a = r.node.args;
  if (!r.is_batched()) return;
  r.become(Op::convolution, {a[0], a[1], a[2], a[3], a[4], a[7], bool_arg(true), a[5], a[6]});
}

// padding "valid", and "same" where both sides get as much: the total is dilation * (kernel - 1).
void conv_padding(const Rewrite& r) {
  const auto a = r.node.args;
  const auto& weight = r.graph.values[a[1].value].shape;
  if (!r.is_batched()) return;
  if (a[4].text == "valid") {
    r.become(Op::convolution,
             {a[0], a[1], a[2], a[3], r.number(0), a[5], bool_arg(false), r.number(0), a[6]});
    return;
  }
  std::vector<Expr> padding;
  for (std::size_t k = 2; k < weight.size(); ++k) {
    const auto& dilations = a[5].items;
    const Arg* dilation = a[5].kind == ArgKind::kInt ? &a[5]
                          : dilations.empty()        ? nullptr
                                              : &dilations[std::min(k - 2, dilations.size() - 1)];
    if (dilation == nullptr || dilation->kind != ArgKind::kInt || !is_const(weight[k]) ||
        !is_const(dilation->expr)) {
      return;
    }
    std::int64_t total = 0;
    if (__builtin_mul_overflow(dilation->expr->value, weight[k]->value - 1, &total)) return;
    if (total % 2 != 0) return;
    padding.push_back(r.graph.pool->constant(total / 2));
  }
  r.become(Op::convolution,
           {a[0], a[1], a[2], a[3], shape_arg(padding), a[5], bool_arg(false), r.number(0), a[6]});
}

void view(const Rewrite& r) { r.become(Op::view, {r.node.args[0], shape_arg(r.out_shape())}); }
void reshape(const Rewrite& r) {
  r.become(Op::reshape, {r.node.args[0], shape_arg(r.out_shape())});
}
void expand(const Rewrite& r) {
  r.become(Op::expand, {r.node.args[0], shape_arg(r.out_shape()), bool_arg(false)});
}

// chunk, tensor_split, split.sizes(self, parts, dim): the parts are as large as their results.
void split(const Rewrite& r) {
  const std::int64_t dim = r.axis(r.node.args.at(2));
  if (dim < 0) return;
  std::vector<Expr> sizes;
  for (const ValueId id : r.node.outputs) {
    if (id == kNoValue) return;
    sizes.push_back(r.graph.values[id].shape.at(dim));
  }
  r.become(Op::split_with_sizes, {r.node.args[0], shape_arg(sizes), r.number(dim)});
}

// narrow(self, dim, start, length)
void narrow(const Rewrite& r) {
  const auto a = r.node.args;
  if (a[2].kind != ArgKind::kInt || a[3].kind != ArgKind::kInt) return;
  if (is_const(a[2].expr) && a[2].expr->value < 0) return;
  r.become(Op::slice_Tensor,
           {a[0], a[1], a[2], int_arg(r.graph.pool->add(a[2].expr, a[3].expr)), r.number(1)});
}

void transpose(const Rewrite& r) {
  const auto a = r.node.args;
  r.become(Op::transpose_int, {a[0], a[1], a[2]});
}
void transpose_last(const Rewrite& r) {
  r.become(Op::transpose_int, {r.node.args[0], r.number(-2), r.number(-1)});
}

void permute(const Rewrite& r, const std::vector<std::int64_t>& dims) {
  std::vector<Expr> list;
  for (const std::int64_t d : dims) list.push_back(r.graph.pool->constant(d));
  r.become(Op::permute, {r.node.args[0], shape_arg(list)});
}

void reverse_dims(const Rewrite& r) {
  std::vector<std::int64_t> dims;
  for (std::size_t k = r.rank(); k-- > 0;) dims.push_back(static_cast<std::int64_t>(k));
  permute(r, dims);
}

// movedim(self, source, destination): what is not moved keeps its order.
void move_dims(const Rewrite& r) {
  const auto list = [](const Arg& arg) {
    return arg.kind == ArgKind::kList ? arg.items : CheckedList<Arg>{arg};
  };
  const CheckedList<Arg> from = list(r.node.args.at(1));
  const CheckedList<Arg> to = list(r.node.args.at(2));
  const auto rank = static_cast<std::int64_t>(r.rank());
  std::vector<std::int64_t> dims(r.rank(), -1);
  std::vector<bool> moved(r.rank(), false);
  if (from.size() != to.size()) return;
  for (std::size_t k = 0; k < from.size(); ++k) {
    const std::int64_t source = r.axis(from[k]);
    const std::int64_t target = r.axis(to[k]);
    if (source < 0 || target < 0 || source >= rank || target >= rank) return;
    dims[target] = source;
    moved[source] = true;
  }
  std::int64_t next = 0;
  for (std::int64_t& d : dims) {
    if (d >= 0) continue;
    while (next < rank && moved[next]) ++next;
    d = next++;
  }
  permute(r, dims);
}

// repeat wants at least one count per dimension.
void tile(const Rewrite& r) {
  auto a = r.node.args;
  auto& counts = a.at(1).items;
  while (counts.size() < r.rank()) counts.insert(counts.begin(), r.number(1));
  r.become(Op::repeat, {a[0], a[1]});
}

struct Form {
  std::string_view same_as;  // the same arguments under another name
  Apply apply = nullptr;

  bool operator==(const Form&) const = default;
};

// clang-format off
constexpr RuleRow<Form> kRows[] = {
    {"aten.absolute.default",       {"aten.abs.default"}},
    {"aten.arccos.default",         {"aten.acos.default"}},
    {"aten.arccosh.default",        {"aten.acosh.default"}},
    {"aten.arcsin.default",         {"aten.asin.default"}},
    {"aten.arcsinh.default",        {"aten.asinh.default"}},
    {"aten.arctan.default",         {"aten.atan.default"}},
    {"aten.arctan2.default",        {"aten.atan2.default"}},
    {"aten.arctanh.default",        {"aten.atanh.default"}},
    {"aten.concat.default",         {"aten.cat.default"}},
    {"aten.concatenate.default",    {"aten.cat.default"}},
    {"aten.divide.Tensor",          {"aten.div.Tensor"}},
    {"aten.divide.Tensor_mode",     {"aten.div.Tensor_mode"}},
    {"aten.divide.Scalar",          {"aten.div.Scalar"}},
    {"aten.divide.Scalar_mode",     {"aten.div.Scalar_mode"}},
    {"aten.fix.default",            {"aten.trunc.default"}},
    {"aten.greater.Scalar",         {"aten.gt.Scalar"}},
    {"aten.greater.Tensor",         {"aten.gt.Tensor"}},
    {"aten.greater_equal.Scalar",   {"aten.ge.Scalar"}},
    {"aten.greater_equal.Tensor",   {"aten.ge.Tensor"}},
    {"aten.less.Scalar",            {"aten.lt.Scalar"}},
    {"aten.less.Tensor",            {"aten.lt.Tensor"}},
    {"aten.less_equal.Scalar",      {"aten.le.Scalar"}},
    {"aten.less_equal.Tensor",      {"aten.le.Tensor"}},
    {"aten.multiply.Scalar",        {"aten.mul.Scalar"}},
    {"aten.multiply.Tensor",        {"aten.mul.Tensor"}},
    {"aten.negative.default",       {"aten.neg.default"}},
    {"aten.not_equal.Scalar",       {"aten.ne.Scalar"}},
    {"aten.not_equal.Tensor",       {"aten.ne.Tensor"}},
    {"aten.subtract.Scalar",        {"aten.sub.Scalar"}},
    {"aten.subtract.Tensor",        {"aten.sub.Tensor"}},
    {"aten.true_divide.Scalar",     {"aten.div.Scalar"}},
    {"aten.true_divide.Tensor",     {"aten.div.Tensor"}},
    {"aten.broadcast_to.default",        {"", expand}},
    {"aten.chunk.default",               {"", split}},
    {"aten.conv1d.default",              {"", conv}},
    {"aten.conv1d.padding",              {"", conv_padding}},
    {"aten.conv2d.default",              {"", conv}},
    {"aten.conv2d.padding",              {"", conv_padding}},
    {"aten.conv3d.default",              {"", conv}},
    {"aten.conv3d.padding",              {"", conv_padding}},
    {"aten.conv_transpose1d.default",    {"", conv_transpose}},
    {"aten.conv_transpose2d.input",      {"", conv_transpose}},
    {"aten.conv_transpose3d.input",      {"", conv_transpose}},
    {"aten.expand_as.default",           {"", expand}},
    {"aten.mT.default",                  {"", transpose_last}},
    {"aten.moveaxis.int",                {"", move_dims}},
    {"aten.moveaxis.intlist",            {"", move_dims}},
    {"aten.movedim.int",                 {"", move_dims}},
    {"aten.movedim.intlist",             {"", move_dims}},
    {"aten.narrow.default",              {"", narrow}},
    {"aten.numpy_T.default",             {"", reverse_dims}},
    {"aten.ravel.default",               {"", reshape}},
    {"aten.reshape_as.default",          {"", reshape}},
    {"aten.split.sizes",                 {"", split}},
    {"aten.swapaxes.default",            {"", transpose}},
    {"aten.swapdims.default",            {"", transpose}},
    {"aten.tensor_split.indices",        {"", split}},
    {"aten.tensor_split.sections",       {"", split}},
    {"aten.tile.default",                {"", tile}},
    {"aten.unflatten.int",               {"", view}},
    {"aten.unsafe_chunk.default",        {"", split}},
    {"aten.view_as.default",             {"", view}},
};
// clang-format on

}  // namespace

void rewrite_composite(const Graph& graph, Node& node) {
  static const RuleTable<Form> forms = {kRows};
  const Form form = forms.of(node.op);
  if (form.apply != nullptr) {
    form.apply({graph, node});
  } else if (!form.same_as.empty()) {
    node.op = form.same_as;
  }
}

}  // namespace fairlead
