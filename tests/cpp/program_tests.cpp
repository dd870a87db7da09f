// Tests of the way from runs to the program, on runs written by hand.
#include "fairlead/trace/program.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "fairlead/trace/parting.h"
#include "graphs.h"
#include "runs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

const std::vector<Ints> kBatchAndSequence = {{2, 7}, {3, 11}, {5, 13}};
const std::vector<Ints> kOneSize = {{5}, {7}, {11}};

// A model of one input x of [n] whose body is given.
Lab one_input(const std::function<void(Recording&, std::int64_t, RunValue)>& body) {
  Lab lab({"n"});
  lab.input("x", {"n"});
  lab.record_all(kOneSize, [&](Recording& r, const Ints& s) {
    body(r, s[0], r.input(Dtype::kFloat32, {s[0]}));
  });
  return lab;
}

}  // namespace

TEST_CASE("sizes of a view are solved over three runs") {
  Lab lab({"batch", "sequence"});
  lab.define("aten.view.default", {"self", "size"}).alias = Alias::kView;
  lab.input("x", {"batch", "sequence", "8"});
  lab.record_all(kBatchAndSequence, [](Recording& r, const Ints& s) {
    r.module = "model.layers.0";
    r.source = "model.py:7";
    const RunValue x = r.input(Dtype::kFloat32, {s[0], s[1], 8});
    const Ints flat = {s[0] * s[1], 4, 2};
    const RunValue y =
        r.op("aten.view.default", {tensor(x), numbers(flat)}, made(flat, Dtype::kFloat32, x));
    r.outputs({y, x});
  });
  const Program program = lab.build();
  CHECK(to_text(program.graph) ==
        "symbol batch: size = %0[0]\n"
        "symbol sequence: size = %0[1]\n"
        "input %0 \"x\": float32[batch, sequence, 8]\n"
        "%1: float32[batch*sequence, 4, 2] = aten.view.default(%0, [batch*sequence, 4, 2]) in "
        "\"model.layers.0\" at \"model.py:7\"\n"
        "output \"output0\" = %1\n"
        "output \"output1\" = %0\n");
  CHECK(program.assumptions.empty());
  CHECK(program.written_inputs.empty());
  CHECK(program.ambiguous == 0);
}

TEST_CASE("every kind of argument arrives") {
  Lab lab = one_input([](Recording& r, std::int64_t n, RunValue x) {
    const RunValue y =
        r.op("aten.op.default",
             {tensor(x), none(), number(-1), real(1e-5), real(HUGE_VAL), real(NAN), flag(true),
              words("cpu"), dtype(Dtype::kInt64),
              list({tensor(x), none(), list({number(n - 2)}), list({})}),
              real(1 / std::sqrt(static_cast<double>(n))), real(static_cast<double>(n) - 0.5)},
             made({n + 1}));
    r.outputs({y});
  });
  CHECK(node_lines(lab.build().graph) ==
        "%1: float32[n + 1] = aten.op.default(%0, None, -1, 1e-05, inf, nan, True, \"cpu\", int64, "
        "[%0, None, [n - 2], []], 1.0*(n)^-0.5, 0.5*(2*n - 1))\n");
}

TEST_CASE("a symbol whose sizes come in multiples is read by division") {
  Lab lab({"height"});
  lab.input("x", {"16*height"});
  lab.record_all(kOneSize, [](Recording& r, const Ints& s) {
    const RunValue x = r.input(Dtype::kFloat32, {16 * s[0]});
    r.outputs({r.op("aten.op.default", {tensor(x)}, made({s[0]}))});
  });
  CHECK(to_text(lab.build().graph) ==
        "symbol height: size = %0[0] // 16\n"
        "input %0 \"x\": float32[16*height]\n"
        "%1: float32[height] = aten.op.default(%0)\n"
        "output \"output0\" = %1\n");
}

TEST_CASE("runs of two programs are refused where they part") {
  Lab lab({"n"});
  lab.input("x", {"n"});
  for (const std::int64_t n : {5, 7, 11}) {
    lab.record({n}, [&](Recording& r) {
      r.module = "model.mlp";
      r.source = "mlp.py:3";
      const RunValue x = r.input(Dtype::kFloat32, {n});
      const RunValue y = r.op("aten.relu.default", {tensor(x)}, made({n}));
      r.source = "mlp.py:5";
      const char* second = n == 11 ? "aten.neg.default" : "aten.abs.default";
      r.outputs({r.op(second, {tensor(y)}, made({n}))});
    });
  }
  CHECK(error_of(ErrorCode::kDiverged, [&] { (void)lab.build(); }) ==
        "[export] Expected every run to execute the same operators, but operator 1 is "
        "aten.abs.default "
        "in model.mlp at mlp.py:5 in one run and aten.neg.default in model.mlp at mlp.py:5 in "
        "another. "
        "The model branches on a size or a value there; fix that dimension with dynamic_shapes.");
}

TEST_CASE("a parting is where another line was taken, with both sides in words") {
  Lab lab({"n"});
  lab.input("x", {"n"});
  for (const std::int64_t n : {5, 7}) {
    lab.record({n}, [&](Recording& r) {
      r.source = "mlp.py:3";
      const RunValue x = r.input(Dtype::kFloat32, {n});
      RunValue y = r.op("aten.relu.default", {tensor(x)}, made({n}));
      r.source = n == 5 ? "mlp.py:5" : "mlp.py:7";
      y = r.op("aten.abs.default", {tensor(y)}, made({n}));  // both branches begin alike
      if (n == 7) y = r.op("aten.pow.default", {tensor(y), number(2), none()}, made({n}));
      r.outputs({y});
    });
  }
  const Parting p = parting(lab.vocabulary, lab.run(0), lab.run(1), 6);
  CHECK(p.op == 1);
  CHECK(p.first_count == 2);
  CHECK(p.second_count == 3);
  REQUIRE(p.common.size() == 1);
  CHECK(p.common[0].results == "float32[5]");
  REQUIRE(p.first.size() == 1);
  CHECK(p.first[0].source == "mlp.py:5");
  REQUIRE(p.second.size() == 2);
  CHECK(p.second[0].source == "mlp.py:7");
  CHECK(p.second[1].op == "aten.pow.default");
  CHECK(p.second[1].arguments.find("float32[7]") != std::string::npos);
  CHECK(p.second[1].arguments.find("2") != std::string::npos);
  CHECK(p.second[1].arguments.find("None") == std::string::npos);
  CHECK(parting(lab.vocabulary, lab.run(0), lab.run(0), 6).op == kSameProgram);
}

TEST_CASE("one error names every number that nothing explains, and not what follows from it") {
  Lab lab({"n"});
  lab.input("x", {"n"});
  for (const auto& [n, odd, other] : std::vector<std::array<std::int64_t, 3>>{
           {5, 17, 101}, {7, 90, 3}, {11, 31, 77}, {13, 46, 12}}) {
    lab.record({n}, [&, n = n, odd = odd, other = other](Recording& r) {
      const RunValue x = r.input(Dtype::kFloat32, {n});
      r.source = "mlp.py:3";
      const RunValue a = r.op("aten.one.default", {tensor(x), number(odd)}, made({odd}));
      r.source = "mlp.py:4";
      const RunValue b = r.op("aten.two.default", {tensor(a), number(2 * odd)}, made({2 * odd}));
      r.source = "mlp.py:5";
      r.outputs({b, r.op("aten.three.default", {tensor(x), number(other)}, made({1}))});
    });
  }
  try {
    (void)lab.build();
    FAIL("nothing was refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsolved);
    CHECK(std::string(error.what()).find("17, 90, 31, 46") != std::string::npos);
    REQUIRE(error.details().size() == 2);
    CHECK(error.details()[0].values == std::vector<std::string>{"17", "90", "31", "46"});
    CHECK(error.details()[1].fields.back() ==
          std::pair<std::string, std::string>{"source", "mlp.py:5"});
  }
}

TEST_CASE("a run that ends earlier is refused") {
  Lab lab({"n"});
  lab.input("x", {"n"});
  for (const std::int64_t n : {5, 7}) {
    lab.record({n}, [&](Recording& r) {
      RunValue x = r.input(Dtype::kFloat32, {n});
      if (n == 5) x = r.op("aten.relu.default", {tensor(x)}, made({n}));
      r.outputs({x});
    });
  }
  const std::string error = error_of(ErrorCode::kDiverged, [&] { (void)lab.build(); });
  CAPTURE(error);
  CHECK(
      error.find("operator 0 is aten.relu.default in one run and the end of the run in another") !=
      std::string::npos);
}

TEST_CASE("a result of another dtype or rank is another program") {
  for (const int change : {0, 1, 2}) {
    Lab lab({"n"});
    lab.input("x", {"n"});
    for (const std::int64_t n : {5, 7}) {
      lab.record({n}, [&](Recording& r) {
        const RunValue x = r.input(Dtype::kFloat32, {n});
        const bool other = n == 7;
        const Given arg = change == 2 && other ? flag(true) : number(1);
        r.outputs({r.op("aten.op.default", {tensor(x), arg},
                        made(change == 1 && other ? Ints{n, 1} : Ints{n},
                             change == 0 && other ? Dtype::kFloat64 : Dtype::kFloat32))});
      });
    }
    CAPTURE(change);
    (void)error_of(ErrorCode::kDiverged, [&] { (void)lab.build(); });
  }
}

TEST_CASE("integers and floats that nothing explains are named") {
  const std::int64_t odd[] = {17, 3, 40};
  const auto error = [&](const std::function<Given(std::size_t)>& argument, const Ints& result) {
    Lab lab({"n"});
    lab.define("aten.op.default", {"self", "amount"});
    lab.input("x", {"n"});
    for (std::size_t k = 0; k < 3; ++k) {
      lab.record(kOneSize[k], [&](Recording& r) {
        r.module = "m";
        r.source = "a.py:1";
        const RunValue x = r.input(Dtype::kFloat32, {kOneSize[k][0]});
        r.outputs({r.op("aten.op.default", {tensor(x), argument(k)}, made({result[k]}))});
      });
    }
    return error_of(ErrorCode::kUnsolved, [&] { (void)lab.build(); });
  };
  CHECK(
      error([&](std::size_t k) { return number(odd[k]); }, {1, 1, 1}) ==
      "[export] Expected every integer to follow from the input sizes, got amount = 17, 3, 40 over "
      "the runs (aten.op.default in m at a.py:1). Fix the dimension it depends on with "
      "dynamic_shapes.");
  CHECK(
      error([&](std::size_t) { return none(); }, {17, 3, 40}) ==
      "[export] Expected every integer to follow from the input sizes, got size 0 of the result = "
      "17, "
      "3, 40 over the runs (aten.op.default in m at a.py:1). Fix the dimension it depends on with "
      "dynamic_shapes.");
  CHECK(error([&](std::size_t k) { return real(static_cast<double>(odd[k]) + 0.3); }, {1, 1, 1}) ==
        "[export] Expected the number amount to follow from the input sizes, got 17.300000, "
        "3.300000, "
        "40.300000 over the runs (aten.op.default in m at a.py:1). Fix the dimension it depends on "
        "with "
        "dynamic_shapes.");
}

// ---- data-dependent sizes -----------------------------------------------------------------------

TEST_CASE("operators that count the same mask share a symbol") {
  Lab lab({"n"});
  lab.input("x", {"n"});
  lab.input("mask", {"n"});
  const std::int64_t counts[] = {3, 3, 9};
  for (std::size_t k = 0; k < 3; ++k) {
    const std::int64_t n = kOneSize[k][0], count = counts[k];
    lab.record({n}, [&](Recording& r) {
      const RunValue x = r.input(Dtype::kFloat32, {n});
      const RunValue mask = r.input(Dtype::kBool, {n});
      const RunValue at =
          r.op("aten.nonzero.default", {tensor(mask)}, made({count, 1}, Dtype::kInt64));
      const RunValue y =
          r.op("aten.index.Tensor", {tensor(x), list({tensor(mask)})}, made({count}));
      const RunValue z =
          r.op("aten.masked_select.default", {tensor(x), tensor(mask)}, made({count}));
      const RunValue both =
          r.op("aten.cat.default", {list({tensor(y), tensor(z)}), number(0)}, made({2 * count}));
      const RunValue wide = r.op("aten.expand.default", {tensor(at), numbers({count, n})},
                                 made({count, n}, Dtype::kInt64, at));
      const RunValue other =
          r.op("aten.nonzero.default", {tensor(x)}, made({count, 1}, Dtype::kInt64));
      r.outputs({both, wide, other});
    });
  }
  const Program program = lab.build();
  CHECK(to_text(program.graph) ==
        "symbol n: size = %0[0]\n"
        "symbol count_0: data = %2[0]\n"
        "symbol count_1: data = %7[0]\n"
        "input %0 \"x\": float32[n]\n"
        "input %1 \"mask\": bool[n]\n"
        "%2: int64[count_0, 1] = aten.nonzero.default(%1)\n"
        "%3: float32[count_0] = aten.index.Tensor(%0, [%1])\n"
        "%4: float32[count_0] = aten.masked_select.default(%0, %1)\n"
        "%5: float32[2*count_0] = aten.cat.default([%3, %4], 0)\n"
        "%6: int64[count_0, n] = aten.expand.default(%2, [count_0, n])\n"
        "%7: int64[count_1, 1] = aten.nonzero.default(%0)\n"
        "output \"output0\" = %5\n"
        "output \"output1\" = %6\n"
        "output \"output2\" = %7\n");
}

TEST_CASE("a mask that is broadcast counts by itself") {
  Lab lab({"n"});
  lab.input("x", {"4", "n"});
  lab.input("mask", {"n"});
  const std::int64_t counts[] = {3, 2, 9};
  for (std::size_t k = 0; k < 3; ++k) {
    const std::int64_t n = kOneSize[k][0], count = counts[k];
    lab.record({n}, [&](Recording& r) {
      const RunValue x = r.input(Dtype::kFloat32, {4, n});
      const RunValue mask = r.input(Dtype::kBool, {n});
      const RunValue at =
          r.op("aten.nonzero.default", {tensor(mask)}, made({count, 1}, Dtype::kInt64));
      const RunValue y =
          r.op("aten.masked_select.default", {tensor(x), tensor(mask)}, made({4 * count}));
      r.outputs({at, y});
    });
  }
  CHECK(node_lines(lab.build().graph) ==
        "%2: int64[count_0, 1] = aten.nonzero.default(%1)\n"
        "%3: float32[count_1] = aten.masked_select.default(%0, %1)\n");
}

// ---- values read --------------------------------------------------------------------------------

TEST_CASE("a number read from an input is a symbol where it varies and an assumption where not") {
  const std::int64_t reads[] = {4, 9, 6};
  for (const bool varies : {true, false}) {
    Lab lab({"n"});
    lab.input("x", {"n"});
    for (std::size_t k = 0; k < 3; ++k) {
      const std::int64_t n = kOneSize[k][0], read = varies ? reads[k] : 4;
      lab.record({n}, [&](Recording& r) {
        r.module = "m";
        r.source = "a.py:2";
        const RunValue x = r.input(Dtype::kInt64, {n});
        (void)r.ops("aten._local_scalar_dense.default", {tensor(x)}, {number(read)});
        r.outputs({r.op("aten.zeros.default", {numbers({read, n})}, made({read, n}))});
      });
    }
    const Program program = lab.build();
    if (varies) {
      CHECK(program.assumptions.empty());
      CHECK(to_text(program.graph) ==
            "symbol n: size = %0[0]\n"
            "symbol read_0: read = %0[0]\n"
            "input %0 \"x\": int64[n]\n"
            "%1: float32[read_0, n] = aten.zeros.default([read_0, n]) in \"m\" at \"a.py:2\"\n"
            "output \"output0\" = %1\n");
      continue;
    }
    REQUIRE(program.assumptions.size() == 1);
    CHECK(program.assumptions[0].kind == "read");
    CHECK(program.assumptions[0].what == "read 4 from a tensor in every run and may go by it");
    CHECK(program.assumptions[0].module == "m");
    CHECK(program.assumptions[0].source == "a.py:2");
    CHECK(node_lines(program.graph) ==
          "%1: float32[4, n] = aten.zeros.default([4, n]) in \"m\" at \"a.py:2\"\n");
  }
}

TEST_CASE("numbers of one list are elements of their tensor") {
  Lab lab({"n"});
  lab.input("sizes", {"2"});
  lab.input("x", {"n"});
  const std::int64_t first[] = {4, 9, 6}, second[] = {12, 5, 3};
  for (std::size_t k = 0; k < 3; ++k) {
    lab.record(kOneSize[k], [&](Recording& r) {
      const RunValue sizes = r.input(Dtype::kInt64, {2});
      (void)r.input(Dtype::kFloat32, kOneSize[k]);
      (void)r.ops("fairlead.tolist", {tensor(sizes)},
                  {list({number(first[k]), number(second[k])})});
      r.outputs({r.op("aten.zeros.default", {numbers({second[k], first[k]})},
                      made({second[k], first[k]}))});
    });
  }
  const Program program = lab.build();
  CHECK(node_lines(program.graph) ==
        "%2: float32[read_1, read_0] = aten.zeros.default([read_1, read_0])\n");
  CHECK(program.graph.symbol_sources[1].axis == 0);
  CHECK(program.graph.symbol_sources[2].axis == 1);
}

TEST_CASE("flags and floats read from inputs are assumptions where they never vary") {
  const auto assumptions = [](const std::function<Given(std::int64_t)>& read, bool tainted) {
    Lab lab = one_input([&](Recording& r, std::int64_t n, RunValue x) {
      if (!tainted) r.run().values[x].tainted = false;
      (void)r.ops("aten.item", {tensor(x)}, {read(n)});
      r.outputs({x});
    });
    const Program program = lab.build();
    std::vector<std::string> list;
    for (const Assumption& a : program.assumptions) list.push_back(a.what);
    return list;
  };
  using Words = std::vector<std::string>;
  CHECK(assumptions([](std::int64_t) { return flag(true); }, true) ==
        Words{"read True from a tensor in every run and may go by it"});
  CHECK(assumptions([](std::int64_t n) { return flag(n == 7); }, true) == Words{});
  CHECK(assumptions([](std::int64_t) { return flag(false); }, false) == Words{});
  CHECK(assumptions([](std::int64_t) { return real(0.5); }, true) ==
        Words{"read 0.500000 from a tensor in every run and may go by it"});
  CHECK(assumptions([](std::int64_t n) { return real(static_cast<double>(n)); }, true) == Words{});
}

TEST_CASE("a number read from what no input decides follows from the sizes") {
  Lab lab = one_input([](Recording& r, std::int64_t n, RunValue) {
    const RunValue length =
        r.op("aten.scalar_tensor.default", {number(2 * n)}, made({}, Dtype::kInt64));
    (void)r.ops("aten._local_scalar_dense.default", {tensor(length)}, {number(2 * n)});
    r.outputs({r.op("aten.zeros.default", {numbers({2 * n})}, made({2 * n}))});
  });
  const Program program = lab.build();
  CHECK(program.graph.pool->symbols().size() == 1);
  CHECK(node_lines(program.graph) ==
        "%1: int64[] = aten.scalar_tensor.default(2*n)\n"
        "%2: float32[2*n] = aten.zeros.default([2*n])\n");
}

// ---- constants ----------------------------------------------------------------------------------

TEST_CASE("a tensor made outside is a constant where its bytes are equal") {
  const std::byte weight[8] = {};
  Lab lab = one_input([&](Recording& r, std::int64_t n, RunValue x) {
    const RunValue w = r.parameter(weight, Dtype::kFloat32, {2}, "linear.weight");
    const RunValue c = r.constant(std::vector<std::int64_t>{1, 2, 3}, Dtype::kInt64, {3});
    r.outputs({r.op("aten.op.default", {tensor(x), tensor(w), tensor(c), tensor(w)}, made({n}))});
  });
  const Program program = lab.build();
  CHECK(to_text(program.graph) ==
        "symbol n: size = %0[0]\n"
        "input %0 \"x\": float32[n]\n"
        "constant %1 \"linear.weight\": float32[2]\n"
        "constant %2: int64[3]\n"
        "%3: float32[n] = aten.op.default(%0, %1, %2, %1)\n"
        "output \"output0\" = %3\n");
  CHECK(program.graph.constants[0].data == weight);
}

TEST_CASE("a tensor made outside is solved by element, or as a progression") {
  Lab lab = one_input([](Recording& r, std::int64_t n, RunValue) {
    const RunValue sizes = r.constant(std::vector<std::int64_t>{n, 3, n * n}, Dtype::kInt64, {3});
    const RunValue scale =
        r.constant(std::vector<float>{1 / std::sqrt(static_cast<float>(n))}, Dtype::kFloat32, {});
    std::vector<std::int32_t> steps;
    for (std::int64_t k = 0; k < n; ++k) steps.push_back(static_cast<std::int32_t>(4 + 3 * k));
    const RunValue range = r.constant(steps, Dtype::kInt32, {n});
    r.outputs({sizes, scale, range});
  });
  CHECK(node_lines(lab.build().graph) ==
        "%1: int64[3] = fairlead.tensor([n, 3, n*n], [3], int64)\n"
        "%2: float32[] = fairlead.tensor([1.0*(n)^-0.5], [], float32)\n"
        "%3: int32[n] = aten.arange.start_step(4, 3*n + 4, 3, int32, None, None, None)\n");
}

TEST_CASE("rows that are all alike are as many as sizes say") {
  Lab lab = one_input([](Recording& r, std::int64_t n, RunValue) {
    std::vector<float> content;
    for (std::int64_t k = 0; k < n; ++k) content.insert(content.end(), {1.5F, 2.5F});
    const RunValue c = r.constant(content, Dtype::kFloat32, {n, 2});
    r.outputs({r.op("aten.neg.default", {tensor(c)}, made({n, 2}))});
  });
  CHECK(node_lines(lab.build().graph) ==
        "%2: float32[n, 2] = aten.expand.default(%1, [n, 2], False)\n"
        "%3: float32[n, 2] = aten.neg.default(%2)\n");
}

TEST_CASE("a tensor made outside that nothing explains is refused") {
  const auto error = [](const std::function<RunValue(Recording&, std::int64_t)>& make) {
    Lab lab({"n"});
    lab.input("x", {"n"});
    lab.record_all(kOneSize, [&](Recording& r, const Ints& s) {
      (void)r.input(Dtype::kFloat32, s);
      r.module = "m";
      r.source = "a.py:9";
      const RunValue c = make(r, s[0]);
      r.outputs({r.op("aten.neg.default", {tensor(c)}, made({1}))});
    });
    const std::string text = error_of(ErrorCode::kUnsolved, [&] { (void)lab.build(); });
    CHECK(text.find("(aten.neg.default in m at a.py:9). Make it with torch operators, or fix the "
                    "dimension it depends on with dynamic_shapes.") != std::string::npos);
    return text;
  };
  const auto says = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says(error([](Recording& r, std::int64_t n) {
         const std::int64_t odd = n == 5 ? 17 : n == 7 ? 3 : 40;
         return r.constant(std::vector<std::int64_t>{odd}, Dtype::kInt64, {1});
       }),
       "but its elements vary over the runs");
  says(error([](Recording& r, std::int64_t n) {
         return r.constant(std::vector<std::uint8_t>{n == 5}, Dtype::kBool, {1});
       }),
       "but its elements vary over the runs");
  says(error([](Recording& r, std::int64_t n) {
         std::vector<float> halves;
         for (std::int64_t k = 0; k < n; ++k) halves.push_back(0.5F * static_cast<float>(k));
         return r.constant(halves, Dtype::kFloat32, {n});
       }),
       "but its shape varies over the runs");
  says(error([](Recording& r, std::int64_t n) {
         std::vector<std::int64_t> squares;
         for (std::int64_t k = 0; k < n; ++k) squares.push_back(k * k);
         return r.constant(squares, Dtype::kInt64, {n});
       }),
       "but its shape and elements vary over the runs");
  says(error([](Recording& r, std::int64_t n) {
         const std::vector<float> content(4, static_cast<float>(n));
         return r.constant(content, Dtype::kFloat32, {4}, n == 5 ? "a" : "b");
       }),
       "but it is another tensor in each run");
}

TEST_CASE("what only constants decide is folded into what was kept of it") {
  const std::byte weight[8] = {};
  const auto build = [&](bool written, bool varies, bool flag_varies) {
    Lab lab({"n"});
    lab.define_in_place("aten.neg_.default", "aten.neg.default");
    lab.input("x", {"n"});
    lab.record_all(kOneSize, [&](Recording& r, const Ints& s) {
      const RunValue x = r.input(Dtype::kFloat32, s);
      const RunValue w = r.parameter(weight, Dtype::kFloat32, {2}, "w");
      const RunValue sum =
          r.op("aten.op.default",
               {tensor(w), number(varies ? s[0] : 3), real(0.5), flag(flag_varies && s[0] == 7)},
               made({2}));
      r.keep(sum, std::vector<float>{1, 2});
      if (written) (void)r.op("aten.neg_.default", {tensor(sum)}, same(sum));
      r.outputs({r.op("aten.mul.Tensor", {tensor(x), tensor(sum)}, made(s))});
    });
    return lab.build();
  };
  const Program folded = build(false, false, false);
  CHECK(to_text(folded.graph) ==
        "symbol n: size = %0[0]\n"
        "input %0 \"x\": float32[n]\n"
        "constant %1 \"w\": float32[2]\n"
        "constant %2: float32[2]\n"
        "%3: float32[n] = aten.mul.Tensor(%0, %2)\n"
        "output \"output0\" = %3\n");
  float kept[2];
  std::memcpy(kept, folded.graph.constants[1].data, 8);
  CHECK(kept[1] == 2);
  // The bytes that were kept may be those after a write, and a varying argument varies the result.
  CHECK(node_lines(build(true, false, false).graph) ==
        "%2: float32[2] = aten.op.default(%1, 3, 0.5, False)\n"
        "%3: float32[2] = aten.neg.default(%2)\n"
        "%4: float32[n] = aten.mul.Tensor(%0, %3)\n");
  CHECK(node_lines(build(false, true, false).graph) ==
        "%2: float32[2] = aten.op.default(%1, n, 0.5, False)\n"
        "%3: float32[n] = aten.mul.Tensor(%0, %2)\n");
  CHECK(error_of(ErrorCode::kDiverged, [&] { (void)build(false, false, true); })
            .find("is aten.op.default in one run and the same with other flags or tensors in "
                  "another.") != std::string::npos);
}

// ---- writes -------------------------------------------------------------------------------------

TEST_CASE("writes to inputs and buffers are functional, and listed") {
  const std::byte buffer[8] = {};
  Lab lab({"n"});
  lab.define_in_place("aten.add_.Tensor", "aten.add.Tensor");
  lab.define("aten.slice.Tensor").alias = Alias::kView;
  lab.input("x", {"n"});
  lab.input("y", {"n"});
  lab.record_all(kOneSize, [&](Recording& r, const Ints& s) {
    const RunValue x = r.input(Dtype::kFloat32, s);
    (void)r.input(Dtype::kFloat32, s);
    const RunValue b = r.parameter(buffer, Dtype::kFloat32, {2}, "running_mean");
    const RunValue head =
        r.op("aten.slice.Tensor", {tensor(x), number(0), number(0), number(2), number(1)},
             made({2}, Dtype::kFloat32, x));
    (void)r.op("aten.add_.Tensor", {tensor(b), tensor(head), number(1)}, same(b));
    (void)r.op("aten.add_.Tensor", {tensor(head), tensor(b), number(1)}, same(head));
    r.outputs({x, head});
  });
  const Program program = lab.build();
  CHECK(program.written_inputs == std::vector<std::string>{"x", "running_mean"});
  CHECK(node_lines(program.graph) ==
        "%2: float32[min(n, 2)] = aten.slice.Tensor(%0, 0, 0, 2, 1)\n"
        "%4: float32[2] = aten.add.Tensor(%3, %2, 1)\n"
        "%5: float32[min(n, 2)] = aten.add.Tensor(%2, %4, 1)\n"
        "%6: float32[n] = aten.slice_scatter.default(%0, %5, 0, 0, 2, 1)\n");
  CHECK(program.graph.outputs == std::vector<ValueId>{6, 5});
}

TEST_CASE("an out= argument is written and is no argument") {
  Lab lab({"n"});
  OpDef& def = lab.define("aten.add.out", {"self", "other", "out"});
  def.functional = "aten.add.Tensor";
  def.writes = 2;
  def.drops_written = true;
  lab.input("x", {"n"});
  lab.record_all(kOneSize, [&](Recording& r, const Ints& s) {
    const RunValue x = r.input(Dtype::kFloat32, s);
    const RunValue out = r.op("aten.empty_like.default", {tensor(x)}, made(s));
    r.outputs({r.op("aten.add.out", {tensor(x), number(2), tensor(out)}, same(out))});
  });
  CHECK(node_lines(lab.build().graph) ==
        "%1: float32[n] = aten.empty_like.default(%0)\n"
        "%2: float32[n] = aten.add.Tensor(%0, 2)\n");
}

TEST_CASE("a result that is None and results in a list have their places") {
  Lab lab = one_input([](Recording& r, std::int64_t n, RunValue x) {
    const auto parts =
        r.ops("aten.split.Tensor", {tensor(x), number(4)}, {list({made({4}), made({n})}), none()});
    r.outputs({parts[1]});
  });
  CHECK(node_lines(lab.build().graph) ==
        "%1: float32[4], %2: float32[n], None = aten.split.Tensor(%0, 4)\n");
}

TEST_CASE("random operators are marked, and never folded") {
  Lab lab({"n"});
  lab.define("aten.rand.default").random = true;
  lab.input("x", {"n"});
  lab.record_all(kOneSize, [](Recording& r, const Ints& s) {
    (void)r.input(Dtype::kFloat32, s);
    const RunValue noise = r.op("aten.rand.default", {numbers({2})}, made({2}));
    r.keep(noise, std::vector<float>{1, 2});
    r.outputs({noise});
  });
  CHECK(node_lines(lab.build().graph) == "%1: float32[2] = random aten.rand.default([2])\n");
}

TEST_CASE("as_strided carries the strides of what it reads") {
  Lab lab({"n"});
  lab.input("x", {"n", "4"});
  lab.record_all(kOneSize, [](Recording& r, const Ints& s) {
    const RunValue x = r.input(Dtype::kFloat32, {s[0], 4});
    r.run().strides[x] = {4, 1, 0};
    const RunValue y =
        r.op("aten.as_strided.default", {tensor(x), numbers({4, s[0]}), numbers({1, 4}), number(0)},
             made({4, s[0]}));
    r.outputs({y});
  });
  CHECK(node_lines(lab.build().graph) ==
        "%1: float32[4, n] = aten.as_strided.default(%0, [4, n], [1, 4], 0, [4, 1, 0])\n");
}

TEST_CASE("runs are compared by their numbers") {
  Vocabulary vocabulary;
  const auto run = [&](std::int64_t size, std::int64_t number_given, double real_given) {
    Run run;
    Recording r(vocabulary, run);
    const RunValue x = r.input(Dtype::kFloat32, {size});
    r.outputs(
        {r.op("aten.op.default", {tensor(x), number(number_given), real(real_given)}, made({2}))});
    return run;
  };
  const Run base = run(4, 1, 0.5);
  CHECK(first_difference(base, run(9, 2, 1.5)) == kSameProgram);
  CHECK(same_numbers(base, run(9, 1, 0.5)));  // only the input, which is not looked at
  CHECK_FALSE(same_numbers(base, run(4, 2, 0.5)));
  CHECK_FALSE(same_numbers(base, run(4, 1, 0.25)));
  CHECK(describe(vocabulary, base, 0) == "aten.op.default");
  CHECK(describe(vocabulary, base, 1) == "the end of the run");
}
