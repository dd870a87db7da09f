// Random numbers: drawn anew at every run of the model, from the same distributions as PyTorch's.
#include <cmath>
#include <numbers>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

// Draws of `op` in the shape of the result. A shape known in advance is an attribute; another is
// that of an expanded zero.
Num draw(Lowering& b, std::string_view op, const Shape& shape, Dtype d,
         Attributes attributes = {}) {
  attributes.push_back(attr("dtype", onnx_code(d)));
  Ints dims;
  for (const Expr e : shape) {
    if (is_const(e)) dims.push_back(e->value);
  }
  if (dims.size() == shape.size() && !dims.empty()) {
    attributes.push_back(attr("shape", dims));
    return {&b, b.fresh_op(op, {}, attributes, d)};
  }
  const Val zeros = b.expand(b.scalar(0, Dtype::kFloat32), {}, shape);
  return {&b, b.fresh_op(std::string(op) + "Like", {zeros}, attributes, d)};
}

Num uniform(Lowering& b, const Shape& shape, Dtype d = Dtype::kFloat32) {
  return draw(b, "RandomUniform", shape, d);
}

Num normal(Lowering& b, const Shape& shape, Dtype d = Dtype::kFloat32) {
  return draw(b, "RandomNormal", shape, d);
}

Dtype drawn(Lowering& b) {
  return b.out_dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
}

// aten::rand(SymInt[] size, ...) -> Tensor; rand_like
void lower_rand(Lowering& b) { b.result(uniform(b, b.out_shape(), drawn(b))); }
void lower_randn(Lowering& b) { b.result(normal(b, b.out_shape(), drawn(b))); }

// Whole numbers in [low, high), in double so that wide ranges are even.
void whole(Lowering& b, Val low, Val high) {
  const Num from = {&b, low}, to = {&b, high};
  const Num u = uniform(b, b.out_shape(), Dtype::kFloat64);
  b.result(min(node("Floor", from + u * (to - from)), to - 1.0));
}

// aten::randint.low(SymInt low, SymInt high, SymInt[] size, ...) -> Tensor and its kin
template <int kLow, int kHigh>
void lower_randint(Lowering& b) {
  const Dtype d = Dtype::kFloat64;
  whole(b, kLow < 0 ? b.scalar(0, d) : b.in(static_cast<std::size_t>(kLow), d),
        b.in(static_cast<std::size_t>(kHigh), d));
}

// aten::random(Tensor self) -> Tensor: every whole number that the type can count to
void lower_random(Lowering& b) {
  const Dtype d = Dtype::kFloat64;
  const Dtype to = b.out_dtype();
  const double digits = to == Dtype::kFloat64   ? 53
                        : to == Dtype::kFloat32 ? 24
                        : to == Dtype::kFloat16 ? 11
                                                : 8;
  const double high = to == Dtype::kBool ? 2
                      : is_integer(to)   ? std::min(Lowering::highest(to), std::ldexp(1.0, 62)) + 1
                                         : std::ldexp(1.0, static_cast<int>(digits)) + 1;
  whole(b, b.scalar(0, d), b.scalar(high, d));
}

// aten::random.from(Tensor self, int from, int? to) -> Tensor
void lower_random_from(Lowering& b) {
  const Dtype d = Dtype::kFloat64;
  whole(b, b.in(1, d), b.has(2) ? b.in(2, d) : b.scalar(Lowering::highest(b.out_dtype()), d));
}

// aten::randperm(SymInt n, ...) -> Tensor: the order of n draws
void lower_randperm(Lowering& b) {
  const Num u = uniform(b, b.out_shape());
  b.result(b.ops("TopK", {u, b.dim(b.out_shape()[0])}, {Dtype::kFloat32, Dtype::kInt64})[1]);
}

// aten::bernoulli(Tensor self) -> Tensor: `self` is the chance of a 1; .p and .Tensor give it apart
template <std::size_t kChance>
void lower_bernoulli(Lowering& b) {
  const Dtype d = Dtype::kFloat32;
  b.result(uniform(b, b.out_shape()) <
           Num{&b, b.has(kChance) ? b.in(kChance, d) : b.scalar(0.5, d)});
}

// aten::normal.Tensor_float(Tensor mean, float std=1.) -> Tensor and its kin
template <std::size_t kMean, std::size_t kStd>
void lower_normal(Lowering& b) {
  const Dtype d = drawn(b);
  b.result(Num{&b, b.in(kMean, d)} + normal(b, b.out_shape(), d) * Num{&b, b.in(kStd, d)});
}

// aten::log_normal(Tensor self, float mean=1., float std=2.) -> Tensor
void lower_log_normal(Lowering& b) {
  b.result(node("Exp", normal(b, b.out_shape(), drawn(b)) * b.number(2, 2) + b.number(1, 1)));
}

// aten::uniform(Tensor self, float from=0., float to=1.) -> Tensor
void lower_uniform(Lowering& b) {
  const double from = b.number(1, 0), to = b.number(2, 1);
  const Num u = uniform(b, b.out_shape(), drawn(b));
  b.result(from == 0 && to == 1 ? u : u * (to - from) + from);
}

// aten::exponential(Tensor self, float lambd=1.) -> Tensor
void lower_exponential(Lowering& b) {
  b.result(-node("Log", 1.0 - uniform(b, b.out_shape(), drawn(b))) / b.number(1, 1));
}

// aten::geometric(Tensor self, float p) -> Tensor: tries until the first success
void lower_geometric(Lowering& b) {
  const Num u = 1.0 - uniform(b, b.out_shape(), Dtype::kFloat64);
  b.result(max(node("Ceil", node("Log", u) / std::log1p(-b.number(1))), 1));
}

// aten::cauchy(Tensor self, float median=0., float sigma=1.) -> Tensor
void lower_cauchy(Lowering& b) {
  const Num u = uniform(b, b.out_shape(), Dtype::kFloat32);
  b.result(node("Tan", (u - 0.5) * std::numbers::pi) * b.number(2, 1) + b.number(1, 0));
}

// aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False) -> Tensor
//
// Without replacement: the largest of p / e with e exponential, as PyTorch does. With: each draw
// falls into the place of the running sum of p.
void lower_multinomial(Lowering& b) {
  const Num p = {&b, b.in(0, Dtype::kFloat32)};
  const Val samples = b.dim(b.integer(1));
  if (!b.flag(2) || is_const(b.integer(1), 1)) {
    const Num e = -node("Log", 1.0 - uniform(b, b.shape(0)));
    return b.result(b.ops("TopK", {p / e, samples}, {Dtype::kFloat32, Dtype::kInt64})[1]);
  }
  const Num running = {&b, b.op("CumSum", {p, b.size_scalar(b.expr(b.rank(0) - 1))})};
  const Num total = {&b, b.reduce("ReduceSum", p, {b.rank(0) - 1}, true)};
  const Num u = {&b, b.unsqueeze(uniform(b, b.out_shape()) * total, {-1})};
  const Num passed = cast(Num{&b, b.unsqueeze(running, {-2})} <= u, Dtype::kInt64);
  const Num place = {&b, b.reduce("ReduceSum", passed, {b.rank(0)}, false)};
  const Expr last = b.pool().sub(b.shape(0).back(), b.expr(1));
  b.result(min(place, Num{&b, b.size_scalar(last)}));
}

// aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor); dropout alike
void lower_dropout(Lowering& b) {
  const double p = b.number(1);
  const bool train = b.flag(2, b.has(2) ? false : b.node().op == "aten.native_dropout.default");
  const Shape& shape = b.shape(0);
  Num kept = {&b, {}};
  if (train && p > 0) {
    kept = uniform(b, shape) >= p;
    const Num x = arg(b);
    b.result(where(kept, p < 1 ? x / (1 - p) : x, 0));
  } else {
    b.result(b.in(0));
    kept = {&b, b.expand(b.scalar(1, Dtype::kBool), {}, shape)};
  }
  if (b.result_count() > 1) b.result(1, kept);
}

constexpr OpRow kRows[] = {
    {"aten.bernoulli.Tensor", lower_bernoulli<1>, "RandomUniform, Less", "random"},
    {"aten.bernoulli.default", lower_bernoulli<0>, "RandomUniform, Less", "random"},
    {"aten.bernoulli.float", lower_bernoulli<1>, "RandomUniform, Less", "random"},
    {"aten.bernoulli.p", lower_bernoulli<1>, "RandomUniform, Less", "random"},
    {"aten.cauchy.default", lower_cauchy, "RandomUniform, Tan", "random"},
    {"aten.dropout.default", lower_dropout, "nothing, or RandomUniform, Where",
     "random in training"},
    {"aten.exponential.default", lower_exponential, "RandomUniform, Log", "random"},
    {"aten.geometric.default", lower_geometric, "RandomUniform, Log, Ceil", "random"},
    {"aten.log_normal.default", lower_log_normal, "RandomNormal, Exp", "random"},
    {"aten.multinomial.default", lower_multinomial, "RandomUniform, Log, TopK", "random"},
    {"aten.native_dropout.default", lower_dropout, "nothing, or RandomUniform, Where",
     "random in training"},
    {"aten.normal.Tensor_Tensor", lower_normal<0, 1>, "RandomNormal, Mul, Add", "random"},
    {"aten.normal.Tensor_float", lower_normal<0, 1>, "RandomNormal, Mul, Add", "random"},
    {"aten.normal.default", lower_normal<1, 2>, "RandomNormal, Mul, Add", "random"},
    {"aten.normal.float_Tensor", lower_normal<0, 1>, "RandomNormal, Mul, Add", "random"},
    {"aten.normal.float_float", lower_normal<0, 1>, "RandomNormal, Mul, Add", "random"},
    {"aten.normal_functional.default", lower_normal<1, 2>, "RandomNormal, Mul, Add", "random"},
    {"aten.rand.default", lower_rand, "RandomUniform", "random"},
    {"aten.rand.generator", lower_rand, "RandomUniform", "random; the generator is ignored"},
    {"aten.rand_like.default", lower_rand, "RandomUniform", "random"},
    {"aten.randint.default", lower_randint<-1, 0>, "RandomUniform, Floor", "random"},
    {"aten.randint.generator", lower_randint<-1, 0>, "RandomUniform, Floor",
     "random; the generator is ignored"},
    {"aten.randint.low", lower_randint<0, 1>, "RandomUniform, Floor", "random"},
    {"aten.randint.low_generator", lower_randint<0, 1>, "RandomUniform, Floor",
     "random; the generator is ignored"},
    {"aten.randint_like.Tensor", lower_randint<-1, 1>, "RandomUniform, Floor", "random"},
    {"aten.randint_like.default", lower_randint<-1, 1>, "RandomUniform, Floor", "random"},
    {"aten.randint_like.low_dtype", lower_randint<1, 2>, "RandomUniform, Floor", "random"},
    {"aten.randn.default", lower_randn, "RandomNormal", "random"},
    {"aten.randn.generator", lower_randn, "RandomNormal", "random; the generator is ignored"},
    {"aten.randn_like.default", lower_randn, "RandomNormal", "random"},
    {"aten.random.default", lower_random, "RandomUniform, Floor", "random"},
    {"aten.random.from", lower_random_from, "RandomUniform, Floor", "random"},
    {"aten.random.to", lower_randint<-1, 1>, "RandomUniform, Floor", "random"},
    {"aten.randperm.default", lower_randperm, "RandomUniform, TopK", "random"},
    {"aten.randperm.generator", lower_randperm, "RandomUniform, TopK",
     "random; the generator is ignored"},
    {"aten.uniform.default", lower_uniform, "RandomUniform", "random"},
};

}  // namespace

std::span<const OpRow> random_ops() { return kRows; }

}  // namespace fairlead::onnx
