// Tests of inputs that need not be given.
#include "fairlead/onnx/default_inputs.h"

#include <doctest/doctest.h>

#include "fairlead/base/error.h"

using namespace fairlead;
using namespace fairlead::onnx;

TEST_CASE("a named input is empty along the sizes that vary") {
  Model model;
  model.pool = std::make_shared<ExprPool>();
  const Expr rank = model.pool->symbol("rank"), size = model.pool->constant(8);
  model.tensors = {{"x", Dtype::kFloat32, {{size}}}, {"a", Dtype::kFloat16, {{size, rank}}}};
  model.graph.inputs = {0, 1};
  default_inputs(model, {"a"});
  REQUIRE(model.graph.initializers.size() == 1);
  const Initializer& made = model.graph.initializers[0];
  CHECK(made.tensor == 1);
  CHECK(made.data.dtype == Dtype::kFloat16);
  CHECK(made.data.dims == std::vector<std::int64_t>{8, 0});
  CHECK(model.graph.inputs.size() == 2);
  CHECK_THROWS_WITH_AS(default_inputs(model, {"b"}),
                       "[default_inputs] Expected the name of an input, got 'b', which the model "
                       "does not have.",
                       Error);
  CHECK_THROWS_AS(default_inputs(model, {"x"}), Error);
}
