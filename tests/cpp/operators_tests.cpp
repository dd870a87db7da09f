// The table of operators: its rows, its names in C++, what is annotated.
#include "fairlead/aten/operators.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

using namespace fairlead;

TEST_CASE("the table has every operator once, PyTorch's own sorted") {
  const auto rows = operators();
  REQUIRE(rows.size() > 800);
  for (const Operator& row : rows) {
    CAPTURE(row.name);
    CHECK(find_operator(row.name) == &row);
    if (row.name.starts_with("aten.")) CHECK(row.has_schema());
  }
  const auto last = std::find_if(
      rows.begin(), rows.end(), [](const Operator& row) { return !row.name.starts_with("aten."); });
  CHECK(last != rows.end());
  CHECK(std::is_sorted(rows.begin(), last,
                       [](const Operator& a, const Operator& b) { return a.name < b.name; }));
  CHECK(find_operator("aten.no_such.default") == nullptr);
}

TEST_CASE("kinds are letters, as many as parameters") {
  for (const Operator& row : operators()) {
    if (!row.has_schema()) continue;
    CAPTURE(row.name);
    REQUIRE(row.kinds.find(':') != std::string_view::npos);
    CHECK(row.kinds.find_first_not_of(".@^%~:TtLliIoJfgbcsqx") == std::string_view::npos);
    const std::string_view given = row.kinds.substr(0, row.kinds.find(':'));
    const auto letters = std::count_if(given.begin(), given.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    const auto wanted = static_cast<std::ptrdiff_t>(params_of(row).size());
    // A recording adds the strides of what is read as raw storage.
    const bool strided =
        OpName(row.functional.empty() ? row.name : row.functional).has(Trait::kStrided);
    CHECK(letters == wanted + (strided ? 1 : 0));
  }
}

TEST_CASE("what writes has a form that does not, with the same parameters") {
  const Operator* add = find_operator("aten.add_.Tensor");
  REQUIRE(add != nullptr);
  CHECK(add->functional == "aten.add.Tensor");
  CHECK(add->writes == 0);
  CHECK(params_of(*add)[2].default_text == "1");
  for (const Operator& row : operators()) {
    CAPTURE(row.name);
    if (row.writes >= 0) CHECK(!row.functional.empty());
    const Operator* form = find_operator(row.functional);
    if (form != nullptr) CHECK(params_of(*form).size() == params_of(row).size());
  }
}

TEST_CASE("a name finds its row, and says which operator it is") {
  const OpName cat = "aten.cat.default";
  CHECK(cat == Op::cat);
  CHECK(cat != Op::stack);
  CHECK(cat == OpName(Op::cat));
  CHECK(cat.has(Trait::kJoins));
  CHECK(!cat.has(Trait::kReads));
  CHECK(OpName(Op::higher_order_cond).text() == "higher_order.cond");
  const OpName mine = "mylib.op.default";
  CHECK(mine.row() == nullptr);
  CHECK(mine.text() == "mylib.op.default");
  CHECK(mine == OpName("mylib.op.default"));
  CHECK(mine != OpName("mylib.other.default"));
  CHECK(!mine.has(Trait::kJoins));
  CHECK(OpName().text().empty());
}

TEST_CASE("what schemas do not say is annotated") {
  CHECK(find_operator("aten.squeeze.dims")->has(Trait::kSqueezes));
  CHECK(find_operator("aten.upsample_nearest2d.vec")->has(Trait::kScales));
  CHECK(find_operator("aten.masked_fill.Scalar")->has(Trait::kByParts));
  CHECK(!find_operator("aten.sin.default")->has(Trait::kByParts));
  CHECK(find_operator("aten.sin.default")->has(Trait::kPointwise));
  CHECK(find_operator("aten.lstm.input")->chances == std::array<std::int8_t, 2>{5, 6});
  CHECK(find_operator("higher_order.while_loop")->control.tests);
  CHECK(find_operator("aten.add.Tensor")->control.bodies == 0);
}
