// Prints a size that depends on two symbols, and its value at one setting of them.
#include <fairlead/fairlead.h>

#include <cstdint>
#include <iostream>
#include <vector>

int main() {
  fairlead::ExprPool pool;
  const fairlead::Expr batch = pool.symbol("batch"), sequence = pool.symbol("sequence");
  const fairlead::Expr tokens = pool.mul(batch, sequence);
  const std::vector<std::int64_t> sizes{2, 3};
  std::cout << pool.to_string(tokens) << " = " << pool.evaluate(tokens, sizes) << '\n';
}
