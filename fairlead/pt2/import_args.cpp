// Sizes, numbers and arguments of a program.
#include <limits>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/pt2/import_impl.h"

namespace fairlead::pt2 {
namespace {

struct TypeRow {
  int code;
  Dtype dtype;
};

// torch._export.serde.schema.ScalarType
constexpr TypeRow kTypes[] = {
    {1, Dtype::kUint8},           {2, Dtype::kInt8},
    {3, Dtype::kInt16},           {4, Dtype::kInt32},
    {5, Dtype::kInt64},           {6, Dtype::kFloat16},
    {7, Dtype::kFloat32},         {8, Dtype::kFloat64},
    {10, Dtype::kComplex64},      {11, Dtype::kComplex128},
    {12, Dtype::kBool},           {13, Dtype::kBfloat16},
    {28, Dtype::kUint16},         {29, Dtype::kFloat8E4m3fn},
    {30, Dtype::kFloat8E5m2},     {31, Dtype::kFloat8E4m3fnuz},
    {32, Dtype::kFloat8E5m2fnuz}, {34, Dtype::kUint32},
    {35, Dtype::kUint64},
};

constexpr std::string_view kFormats[] = {"torch.contiguous_format", "torch.contiguous_format",
                                         "torch.channels_last", "torch.channels_last_3d",
                                         "torch.preserve_format"};

Arg text_arg(std::string_view text) {
  Arg arg;
  arg.kind = ArgKind::kString;
  arg.text = text;
  return arg;
}

// A number, or one of the words that JSON has no number for.
double real(dom::element json) {
  std::string_view word;
  if (json.get(word) != simdjson::SUCCESS) return double(json);
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

Arg real_arg(dom::element json) { return float_arg(real(json)); }

template <typename Make>
Arg list_arg(dom::element json, Make make) {
  Arg arg;
  arg.kind = ArgKind::kList;
  for (const dom::element item : dom::array(json)) arg.items.push_back(make(item));
  return arg;
}

}  // namespace

Dtype dtype_of_code(std::int64_t code, std::string_view what) {
  for (const TypeRow& row : kTypes) {
    if (row.code == code) return row.dtype;
  }
  throw Error(ErrorCode::kUnsupported,
              "[pt2] Expected an element type that ONNX has, got type number " +
                  std::to_string(code) + " of " + std::string(what) + ".");
}

Expr Importer::symbol(std::string_view name) {
  const auto it = symbols_.find(std::string(name));
  if (it != symbols_.end()) return it->second;
  // Born later, at the operator whose data decides it.
  const Expr e = pool().symbol(name, SymbolKind::kData);
  graph().symbol_sources.resize(pool().symbols().size());
  symbols_.emplace(name, e);
  return e;
}

Expr Importer::expression(std::string_view text) {
  if (const auto it = expressions_.find(text); it != expressions_.end()) return it->second;
  const Expr e = parse_sympy(text, pool(), [&](std::string_view name) { return symbol(name); });
  expressions_.emplace(text, e);
  return e;
}

Expr Importer::size(dom::element json) {
  std::int64_t number = 0;
  if (json["as_int"].get(number) == simdjson::SUCCESS) return pool().constant(number);
  return expression(std::string_view(json["as_expr"]["expr_str"]));
}

Expr Importer::named_int(const Scope& scope, dom::element json, std::string_view constant) {
  std::int64_t number = 0;
  bool truth = false;
  if (json[constant].get(number) == simdjson::SUCCESS) return pool().constant(number);
  if (json[constant].get(truth) == simdjson::SUCCESS) return pool().constant(truth ? 1 : 0);
  const std::string_view name = json["as_name"];
  for (const auto* map : {&scope.ints, &scope.flags}) {
    const auto it = map->find(name);
    if (it == map->end()) continue;
    if (it->second["as_int"].get(number) == simdjson::SUCCESS) return pool().constant(number);
    if (it->second["as_bool"].get(truth) == simdjson::SUCCESS)
      return pool().constant(truth ? 1 : 0);
    return expression(std::string_view(it->second["as_expr"]["expr_str"]));
  }
  fail(ErrorCode::kParse, "Expected a number that a node made, got '" + std::string(name) + "'");
}

Fact Importer::fact(const Scope& scope, std::string_view name) {
  const auto it = scope.metas.find(name);
  if (it == scope.metas.end()) {
    fail(ErrorCode::kParse,
         "Expected the type of every tensor, got none of '" + std::string(name) + "'");
  }
  Fact known;
  known.dtype = dtype_of_code(std::int64_t(it->second["dtype"]), name);
  for (const dom::element dim : dom::array(it->second["sizes"])) known.shape.push_back(size(dim));
  dom::array strides;
  if (it->second["strides"].get(strides) == simdjson::SUCCESS) {
    for (const dom::element stride : strides) known.strides.push_back(size(stride));
  }
  return known;
}

RunValue Importer::tensor(const Scope& scope, std::string_view name) const {
  const auto it = scope.tensors.find(name);
  if (it == scope.tensors.end()) {
    fail(ErrorCode::kParse,
         "Expected a tensor that is made before it is read, got '" + std::string(name) + "'");
  }
  return it->second;
}

Arg Importer::value(Scope& scope, std::string_view name) {
  return value_arg(scope.storage->functional.read(tensor(scope, name)));
}

Arg Importer::float_arg(const Scope& scope, dom::element json) {
  std::string_view name;
  if (json["as_name"].get(name) != simdjson::SUCCESS) return real_arg(json["as_float"]);
  if (const auto it = scope.read.find(name); it != scope.read.end()) return value_arg(it->second);
  const auto it = scope.floats.find(name);
  if (it == scope.floats.end()) {
    fail(ErrorCode::kParse, "Expected a number that a node made, got '" + std::string(name) + "'");
  }
  dom::element number;
  if (it->second["as_float"].get(number) == simdjson::SUCCESS) return real_arg(number);
  const SymFloat found =
      parse_sympy_float(std::string_view(it->second["as_expr"]["expr_str"]), pool(),
                        [&](std::string_view symbol_name) { return symbol(symbol_name); });
  Arg arg;
  arg.kind = ArgKind::kFloat;
  arg.number = found.number;
  arg.expr = found.base;
  arg.power = found.power;
  return arg;
}

Arg Importer::flag_arg(const Scope& scope, dom::element json) {
  std::string_view name;
  if (json["as_name"].get(name) == simdjson::SUCCESS) {
    if (const auto it = scope.read.find(name); it != scope.read.end()) return value_arg(it->second);
  }
  const Expr e = named_int(scope, json, "as_bool");
  return is_const(e) ? bool_arg(e->value != 0) : int_arg(e);
}

Arg Importer::argument(Scope& scope, dom::element json) {
  std::string_view key;
  dom::element what;
  for (const auto field : dom::object(json)) {
    key = field.key;
    what = field.value;
    break;
  }
  const auto tensor_item = [&](dom::element item) { return value(scope, item["name"]); };
  const auto optional_item = [&](dom::element item) {
    dom::object inside;
    if (item["as_tensor"].get(inside) != simdjson::SUCCESS) return Arg{};
    return value(scope, inside["name"]);
  };
  const auto int_item = [&](dom::element item) {
    return int_arg(pool().constant(std::int64_t(item)));
  };
  const auto text_item = [](dom::element item) { return text_arg(item); };
  if (key == "as_none") return {};
  if (key == "as_tensor") return tensor_item(what);
  if (key == "as_tensors") return list_arg(what, tensor_item);
  if (key == "as_optional_tensor") return optional_item(what);
  if (key == "as_optional_tensors") return list_arg(what, optional_item);
  if (key == "as_int") return int_item(what);
  if (key == "as_ints") return list_arg(what, int_item);
  if (key == "as_float") return real_arg(what);
  if (key == "as_floats") return list_arg(what, real_arg);
  if (key == "as_string" || key == "as_operator") return text_arg(what);
  if (key == "as_strings") return list_arg(what, text_item);
  if (key == "as_bool") return bool_arg(bool(what));
  if (key == "as_bools")
    return list_arg(what, [](dom::element item) { return bool_arg(bool(item)); });
  if (key == "as_sym_int") return int_arg(named_int(scope, what, "as_int"));
  if (key == "as_sym_ints") {
    return list_arg(what, [&](dom::element i) { return int_arg(named_int(scope, i, "as_int")); });
  }
  if (key == "as_sym_float") return float_arg(scope, what);
  if (key == "as_sym_floats") {
    return list_arg(what, [&](dom::element i) { return float_arg(scope, i); });
  }
  if (key == "as_sym_bool") return flag_arg(scope, what);
  if (key == "as_sym_bools") {
    return list_arg(what, [&](dom::element i) { return flag_arg(scope, i); });
  }
  if (key == "as_scalar_type") {
    Arg arg;
    arg.kind = ArgKind::kDtype;
    arg.dtype = dtype_of_code(std::int64_t(what), node_);
    return arg;
  }
  if (key == "as_memory_format") {
    const auto code = std::uint64_t(what);
    return text_arg(kFormats[code < std::size(kFormats) ? code : 0]);
  }
  if (key == "as_layout") return text_arg("torch.strided");
  if (key == "as_device") return text_arg(std::string_view(what["type"]));
  fail(ErrorCode::kUnsupported,
       "Expected arguments that are tensors, numbers, texts or lists of them, got '" +
           std::string(key) + "'");
}

}  // namespace fairlead::pt2
