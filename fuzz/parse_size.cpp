// Fuzz target: no text may crash the readers of sizes, ours and sympy's; what ours reads, it writes
// and reads again as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fairlead/pt2/sympy.h"
#include "fairlead/symbol/expr.h"
#include "fuzz/fuzz_impl.h"

namespace {

void use(fairlead::ExprPool& pool, fairlead::Expr size) {
  const std::string text = pool.to_string(size);
  if (pool.to_string(pool.parse(text)) != text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::abort();
  }
  (void)pool.may_be_negative(size);
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{3}, INT64_MAX}) {
    const std::vector<std::int64_t> values(pool.symbols().size(), value);
    fairlead::fuzz::no_fault([&] { (void)pool.number(size, values); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fairlead::fuzz::no_fault([&] {
    fairlead::ExprPool pool;
    use(pool, pool.parse(text));
  });
  fairlead::fuzz::no_fault([&] {
    fairlead::ExprPool pool;
    const auto symbol = [&](std::string_view name) { return pool.symbol(std::string(name)); };
    use(pool, fairlead::pt2::parse_sympy(text, pool, symbol));
  });
  return fairlead::fuzz::no_fault([&] {
    fairlead::ExprPool pool;
    const auto symbol = [&](std::string_view name) { return pool.symbol(std::string(name)); };
    (void)fairlead::pt2::parse_sympy_float(text, pool, symbol);
  });
}
