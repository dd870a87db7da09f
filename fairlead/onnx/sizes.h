// Sizes as tensors: the arithmetic of expressions, and the forms whose shapes it is for.
#pragma once

#include <map>
#include <span>
#include <string>

#include "fairlead/onnx/emission.h"

namespace fairlead::onnx {

class Sizes : public Emission {
 public:
  using Emission::Emission;
  virtual ~Sizes() = default;

  // Any value of the graph made before this node: sizes are read from it.
  [[nodiscard]] virtual Val value(ValueId id) = 0;

  Val size_scalar(Expr e, Dtype dtype = Dtype::kInt64);  // rank 0
  Val dim(Expr e);                                       // int64 [1]
  Val divisor(Expr e);
  Val real(Expr e);  // a real expression in double, of one element as `dim` gives it
  Val shape_tensor(std::span<const Expr> shape);  // int64 [n]

  // Reshape from `from` to `to`, with 0 and -1 where they spare arithmetic.
  Val reshape(Val v, const Shape& from, const Shape& to);
  Val expand(Val v, const Shape& from, const Shape& to);  // v itself where nothing changes
  // v [1] where `beyond`, an int64 [1], is 0; elsewhere the file stops with these words.
  Val unless(Val v, Val beyond, const std::string& words);
  // 0, of rank 0, where `holds` is 1; where it is 0 the file stops with these words.
  Val zero_where(Expr holds, const std::string& words);

 protected:
  // An integer or a float of the node as a tensor of no axes.
  [[nodiscard]] Val arg_number(const Arg& a, Dtype dtype);

  // From here on this symbol is used as `v`: itself, where a check of it holds.
  void use_instead(SymbolId id, Val v) { checked_.insert_or_assign(id, v); }

 private:
  Val symbol(SymbolId id);

  std::map<SymbolId, Val> checked_;
};

}  // namespace fairlead::onnx
