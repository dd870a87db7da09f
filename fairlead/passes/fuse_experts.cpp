// 1. sorted, order = sort(experts.reshape(-1));  x[order // k] are the rows of experts 0, 1, ..
// 2. gate, up = grouped_mm(rows, w1, ends).chunk(2);  made = grouped_mm(silu(gate) * up, w2, ends)
// 3. (made * weights.reshape(-1)[order]) put back in order, [rows, k, size], summed over k.
// 4. weights, experts = topk(softmax(logits), k), divided by their sum: the operator does that
//    itself. Other positive weights are told it as logarithms, whose softmax they are but for their
//    sum.
#include "fairlead/passes/fuse_experts.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/expert_matrices.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

constexpr std::string_view kKind = "MoE";
// Of a matrix. From here on the time of products counts, and the kernel packs no matrices: it takes
// a third longer than a MatMul for each of few experts.
constexpr std::int64_t kLargeMatrix = 1 << 16;

bool is_axis(const Arg& arg, std::int64_t axis, std::int64_t rank) {
  return arg.kind == ArgKind::kInt && (is_const(arg.expr, axis) || is_const(arg.expr, axis - rank));
}

bool is_axes(const Arg& arg, std::int64_t axis, std::int64_t rank) {
  return arg.kind == ArgKind::kList && arg.items.size() == 1 && is_axis(arg.items[0], axis, rank);
}

bool is_int(const Arg& arg, std::int64_t value) {
  return arg.kind == ArgKind::kInt && is_const(arg.expr, value);
}

// A number of either kind.
bool is_number(const Arg& arg, std::int64_t value) {
  const bool as_float = arg.kind == ArgKind::kFloat && arg.expr == nullptr &&
                        arg.number == static_cast<double>(value);
  return as_float || is_int(arg, value);
}

// grouped_mm(rows, weight, ends), with neither bias nor another type.
bool is_grouped(const Node& node) {
  if (node.op == Op::transformers_grouped_mm_fallback) return true;
  return node.op == Op::_grouped_mm && node.args[2].kind == ArgKind::kValue &&
         node.args[3].kind == ArgKind::kNone && node.args[4].kind == ArgKind::kNone;
}

struct Experts {
  ValueId x = kNoValue;                                // [rows, size]
  ValueId weights = kNoValue, chosen = kNoValue;       // [rows, k]
  ValueId gate_up = kNoValue, down = kNoValue;         // [experts, in, out]
  std::int64_t count = 0, k = 0, inner = 0, size = 0;  // of experts, of those of a row
};

struct Router {
  ValueId logits = kNoValue;  // of a softmax; else the weights are as they are
};

class Finder {
 public:
  Finder(const Rewriter& rewriter, const Structure& look) : rewriter_(rewriter), look_(look) {}

  // From the sum over the experts of a row; `why` is set where it is one of another form.
  std::optional<Experts> experts(const Node& sum, std::string_view& why) const {
    if (sum.op != Op::sum_dim_IntList || look_.shape(sum.args[0].value).size() != 3 ||
        !is_axes(sum.args[1], 1, 3) || sum.args[2].number != 0) {
      return std::nullopt;
    }
    Experts found;
    const Shape& each = look_.shape(sum.args[0].value);
    const Node* ordered = indexed(look_.flat_origin(sum.args[0].value));
    if (ordered == nullptr || !is_const(each[1]) || !is_const(each[2])) return std::nullopt;
    const Node* put = look_.made_by(ordered->args[1].items[0].value, Op::index_put);
    const Node* weighted = look_.made_by(ordered->args[0].value, Op::mul_Tensor);
    if (put == nullptr || put->args[1].items.size() != 1 || put->args[3].number != 0 ||
        weighted == nullptr || weighted->args[1].kind != ArgKind::kValue) {
      return std::nullopt;
    }
    found.k = each[1]->value;
    found.size = each[2]->value;
    const ValueId order = put->args[1].items[0].value;
    const Node* sorted = rewriter_.producer(order);
    if (sorted == nullptr || sorted->op != Op::sort || sorted->outputs[1] != order ||
        look_.shape(order).size() != 1 || sorted->args[2].number != 0 ||
        !counts_from_zero(put->args[2])) {
      return std::nullopt;
    }
    found.chosen = look_.flat_origin(sorted->args[0].value);
    const Node* product = rewriter_.producer(look_.origin(weighted->args[0].value));
    const Node* factor = look_.made_by(weighted->args[1].value, Op::unsqueeze);
    const Node* of_row = factor != nullptr ? indexed(factor->args[0].value) : nullptr;
    if (product == nullptr || of_row == nullptr || !is_grouped(*product) ||
        !is_axis(factor->args[1], 1, 2)) {
      return std::nullopt;
    }
    if (of_row->args[1].items[0].value != order) return std::nullopt;
    found.weights = look_.flat_origin(of_row->args[0].value);
    if (!layers(*product, *sorted, found, why)) return std::nullopt;
    const Shape &weights = look_.shape(found.weights), &chosen = look_.shape(found.chosen);
    const Expr rows = look_.shape(found.x)[0];
    for (const Shape* each : {&weights, &chosen}) {
      if (each->size() != 2 || (*each)[0] != rows || !is_const((*each)[1], found.k)) {
        return std::nullopt;
      }
    }
    return found;
  }

  [[nodiscard]] std::optional<Router> router(const Experts& found) const {
    // Those that topk gives are different experts.
    const Node* best = rewriter_.producer(found.chosen);
    if (best == nullptr || best->op != Op::topk || best->outputs[1] != found.chosen ||
        !is_axis(best->args[2], 1, 2)) {
      return std::nullopt;
    }
    if (normalized(found.weights) == best->outputs[0] && best->args[3].number != 0) {
      const Node* softmax = rewriter_.producer(look_.origin(best->args[0].value));
      if (softmax != nullptr && (softmax->op == Op::_softmax || softmax->op == Op::softmax_int) &&
          is_axis(softmax->args[1], 1, 2) && is_float32(look_.graph(), softmax->args[0])) {
        return Router{softmax->args[0].value};
      }
    }
    if (!is_positive(found.weights, 8)) return std::nullopt;
    return Router{};
  }

 private:
  // w of w / w.sum(1, keepdim=True), or none.
  [[nodiscard]] ValueId normalized(ValueId id) const {
    const Node* quotient = look_.made_by(id, Op::div_Tensor);
    if (quotient == nullptr || quotient->args[1].kind != ArgKind::kValue) return kNoValue;
    const Node* sum = look_.made_by(quotient->args[1].value, Op::sum_dim_IntList);
    const ValueId of = look_.origin(quotient->args[0].value);
    const bool by_sum = sum != nullptr && is_axes(sum->args[1], 1, 2) && sum->args[2].number != 0 &&
                        look_.origin(sum->args[0].value) == of;
    return by_sum ? of : kNoValue;
  }

  // x[i]
  [[nodiscard]] const Node* indexed(ValueId id) const {
    const Node* node = look_.made_by(id, Op::index_Tensor);
    const bool one = node != nullptr && node->args[1].items.size() == 1 &&
                     node->args[1].items[0].kind == ArgKind::kValue;
    return one ? node : nullptr;
  }

  [[nodiscard]] bool counts_from_zero(const Arg& arg) const {
    const auto counted = arg.kind == ArgKind::kValue ? look_.ramp(arg.value) : std::nullopt;
    return counted && is_const(counted->offset, 0);
  }

  // Both layers, from the second; rows end where the sorted experts do.
  bool layers(const Node& second, const Node& sorted, Experts& found, std::string_view& why) const {
    const Node* gated = look_.made_by(second.args[0].value, Op::mul_Tensor);
    if (gated == nullptr || gated->args[1].kind != ArgKind::kValue) {
      why = "its experts are not gated";
      return false;
    }
    const Node* silu = look_.made_by(gated->args[0].value, Op::silu);
    const Node* halves = rewriter_.producer(gated->args[1].value);
    if (silu == nullptr || halves == nullptr || halves->outputs.size() != 2 ||
        (halves->op != Op::split_Tensor && halves->op != Op::split_with_sizes) ||
        silu->args[0].value != halves->outputs[0] || gated->args[1].value != halves->outputs[1] ||
        look_.shape(halves->outputs[0]) != look_.shape(halves->outputs[1])) {
      why = "its experts are not gated by silu of the first half";
      return false;
    }
    const Node* first = rewriter_.producer(look_.origin(halves->args[0].value));
    if (first == nullptr || !is_grouped(*first)) {
      why = "its experts have a bias";
      return false;
    }
    if (first->args[2].value != second.args[2].value) return false;
    const Node* rows = indexed(first->args[0].value);
    const Node* of_row =
        rows != nullptr ? look_.made_by(rows->args[1].items[0].value, Op::floor_divide) : nullptr;
    if (of_row == nullptr || of_row->args[0].value != sorted.outputs[1] ||
        !is_int(of_row->args[1], found.k)) {
      return false;
    }
    found.x = rows->args[0].value;
    if (look_.shape(found.x).size() != 2) return false;
    found.gate_up = first->args[1].value;
    found.down = second.args[1].value;
    const Shape &w1 = look_.shape(found.gate_up), &w2 = look_.shape(found.down);
    if (w1.size() != 3 || w2.size() != 3 || !is_const(w1[0]) || !is_const(w2[1])) return false;
    found.count = w1[0]->value;
    found.inner = w2[1]->value;
    if (!is_float32(look_.graph(), value_arg(found.x)) ||
        !is_float32(look_.graph(), value_arg(found.gate_up))) {
      why = "it computes in another type than float32";
      return false;
    }
    return is_const(w1[1], found.size) && is_const(w1[2], 2 * found.inner) &&
           is_const(w2[0], found.count) && is_const(w2[2], found.size) &&
           ends(first->args[2].value, sorted, found.count);
  }

  // cumsum(histc(sorted, experts, 0, experts - 1))
  [[nodiscard]] bool ends(ValueId id, const Node& sorted, std::int64_t experts) const {
    const Node* sums = look_.made_by(id, Op::cumsum);
    const Node* counts = sums != nullptr ? look_.made_by(sums->args[0].value, Op::histc) : nullptr;
    if (counts == nullptr || !is_int(counts->args[1], experts) || !is_number(counts->args[2], 0) ||
        !is_number(counts->args[3], experts - 1)) {
      return false;
    }
    ValueId of = counts->args[0].value;
    if (const Node* copy = rewriter_.producer(of); copy != nullptr && copy->op == Op::_to_copy) {
      of = copy->args[0].value;
    }
    return of == sorted.outputs[0];
  }

  // Chances of a softmax or sigmoid, chosen, scaled and divided.
  [[nodiscard]] bool is_positive(ValueId id, int steps) const {
    const Node* node = steps > 0 ? rewriter_.producer(look_.origin(id)) : nullptr;
    if (node == nullptr) return false;
    const auto positive = [&](const Arg& arg) {
      if (arg.kind == ArgKind::kValue) return is_positive(arg.value, steps - 1);
      if (arg.kind == ArgKind::kFloat) return arg.expr == nullptr && arg.number > 0;
      return arg.kind == ArgKind::kInt && is_const(arg.expr) && arg.expr->value > 0;
    };
    if (node->op == Op::_softmax || node->op == Op::softmax_int || node->op == Op::sigmoid) {
      return true;
    }
    if (node->op == Op::topk || node->op == Op::gather || node->op == Op::sum_dim_IntList) {
      return node->outputs[0] == look_.origin(id) && positive(node->args[0]);
    }
    const bool both = node->op == Op::mul_Tensor || node->op == Op::div_Tensor ||
                      (node->op == Op::add_Tensor && is_const(node->args[2].expr, 1));
    return both && positive(node->args[0]) && positive(node->args[1]);
  }

  const Rewriter& rewriter_;
  const Structure& look_;
};

// A constant [experts, in, out], seen with other axes: none is copied.
struct Weight {
  const Constant* constant = nullptr;
  std::int64_t expert = 0, in = 0, out = 0;  // strides
};

std::optional<Weight> weight(const Structure& look, ValueId id) {
  const Node* transposed = look.made_by(id, Op::transpose_int);
  if (transposed != nullptr) {
    const bool inner = (is_axis(transposed->args[1], 1, 3) && is_axis(transposed->args[2], 2, 3)) ||
                       (is_axis(transposed->args[1], 2, 3) && is_axis(transposed->args[2], 1, 3));
    if (!inner) return std::nullopt;
    id = transposed->args[0].value;
  }
  const Constant* c = look.graph().constant(look.origin(id));
  if (c == nullptr || c->dims.size() != 3) return std::nullopt;
  std::vector<std::int64_t> strides = c->strides;
  if (strides.empty()) strides = {c->dims[1] * c->dims[2], c->dims[2], 1};
  if (transposed != nullptr) return Weight{c, strides[0], strides[2], strides[1]};
  return Weight{c, strides[0], strides[1], strides[2]};
}

Constant seen(const Weight& of, std::vector<std::int64_t> dims, std::vector<std::int64_t> strides) {
  Constant made;
  made.data = of.constant->data;
  made.owned = of.constant->owned;
  made.dims = std::move(dims);
  made.strides = std::move(strides);
  return made;
}

std::string name_of(const Structure& look, const Weight& of, const char* what) {
  const std::string& name = look.graph().values[of.constant->value].name;
  return name.empty() ? name : name + what;
}

bool fuse(Rewriter& rewriter, FusionLog& log, Node& node, bool& refused) {
  const Structure look(rewriter, rewriter.graph());
  const Finder finder(rewriter, look);
  std::string_view why;
  const auto found = finder.experts(node, why);
  const auto refuse = [&](std::string_view reason) {
    log.refused(kKind, reason);
    refused = true;
    return false;
  };
  if (!found) return why.empty() ? false : refuse(why);
  const auto router = finder.router(*found);
  if (!router) return refuse("its weights are not known to be positive");
  const auto up = weight(look, found->gate_up), down = weight(look, found->down);
  if (!up || !down) return refuse("its weights are no constants");
  const std::int64_t e = found->count, i = found->inner, h = found->size;
  if (e <= kFewExperts && i * h >= kLargeMatrix) {
    return refuse("it takes longer than a product for each of few experts");
  }
  // The kernel takes gate and up row by row in turn.
  const ValueId w1 = rewriter.add_constant(
      Dtype::kFloat32, seen(*up, {e, i, 2, h}, {up->expert, up->out, i * up->out, up->in}),
      name_of(look, *up, ".interleaved"));
  const ValueId w2 = rewriter.add_constant(
      Dtype::kFloat32, seen(*down, {e, h, i}, {down->expert, down->out, down->in}),
      name_of(look, *down, ".rows"));
  const ValueId before = node.args[0].value;
  const bool direct = router->logits != kNoValue;
  ExprPool& pool = look.pool();
  rewriter.become(
      node, Op::onnxruntime_moe,
      {value_arg(found->x), direct ? value_arg(router->logits) : Arg{},
       direct ? Arg{} : value_arg(found->weights), direct ? Arg{} : value_arg(found->chosen),
       value_arg(w1), value_arg(w2), int_arg(pool.constant(found->k))});
  rewriter.sweep(before);
  log.fused(kKind);
  return true;
}

}  // namespace

std::size_t fuse_experts(Graph& graph, FusionLog& log) {
  if (!log.wants(kKind)) return 0;
  bool refused = false;
  const std::size_t changes = Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return fuse(rewriter, log, node, refused); });
  // What has not even the form of it is said as well.
  Rewriter(graph).each([&](Rewriter& rewriter, Node& node) {
    if (!refused && is_grouped(node) && rewriter.uses(node.outputs[0]) > 0) {
      log.refused(kKind, "its rows and experts are put together in another way");
      refused = true;
    }
    return false;
  });
  return changes;
}

}  // namespace fairlead
