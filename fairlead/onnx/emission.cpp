// Nodes and constants, shared; named after the module they come from.
#include "fairlead/onnx/emission.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

Dtype result_dtype(std::string_view type, const Attributes& attributes, Dtype first, Dtype second) {
  static const std::unordered_map<std::string_view, Dtype> fixed = {
      {"Shape", Dtype::kInt64},   {"Size", Dtype::kInt64},
      {"ArgMax", Dtype::kInt64},  {"ArgMin", Dtype::kInt64},
      {"NonZero", Dtype::kInt64}, {"Equal", Dtype::kBool},
      {"Less", Dtype::kBool},     {"LessOrEqual", Dtype::kBool},
      {"Greater", Dtype::kBool},  {"GreaterOrEqual", Dtype::kBool},
      {"And", Dtype::kBool},      {"Or", Dtype::kBool},
      {"Xor", Dtype::kBool},      {"Not", Dtype::kBool},
      {"IsNaN", Dtype::kBool},    {"IsInf", Dtype::kBool},
  };
  if (const auto it = fixed.find(type); it != fixed.end()) return it->second;
  if (type == "Where") return second;
  if (type == "Cast") {
    for (const Attribute& a : attributes) {
      if (a.name == "to") return static_cast<Dtype>(std::get<std::int64_t>(a.value));
    }
  }
  return first;
}

template <typename T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_attribute(std::string& key, const Attribute& a) {
  key += a.name;
  key += '\x1f';
  std::visit(
      [&](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::int64_t> || std::is_same_v<V, float>) {
          append(key, v);
        } else if constexpr (std::is_same_v<V, std::string>) {
          key += v;
        } else if constexpr (std::is_same_v<V, std::vector<std::string>>) {
          for (const std::string& s : v) key += s + '\x1e';
        } else if constexpr (std::is_same_v<V, TensorData>) {
          append(key, v.data);
          append(key, v.dtype);
          if (v.owned) key.append(reinterpret_cast<const char*>(v.owned->data()), v.owned->size());
          for (const std::int64_t d : v.dims) append(key, d);
        } else if constexpr (std::is_same_v<V, std::shared_ptr<Graph>>) {
          append(key, v.get());
        } else {
          for (const auto item : v) append(key, item);
        }
      },
      a.value);
  key += '\x1f';
}

// What a node computes, by which equal ones are found.
std::string key_of(const Node& node, const std::vector<Dtype>& dtypes) {
  std::string key = node.op;
  key += '\x1f';
  key += node.domain;
  key += '\x1f';
  for (const TensorId id : node.inputs) append(key, id);
  key += '\x1f';
  for (const Attribute& a : node.attributes) append_attribute(key, a);
  append(key, dtypes.size());
  for (const Dtype d : dtypes) append(key, d);
  return key;
}

}  // namespace

Attribute attr(std::string_view name, std::int64_t value) { return {std::string(name), value}; }
Attribute attr(std::string_view name, float value) { return {std::string(name), value}; }
Attribute attr(std::string_view name, std::string_view value) {
  return {std::string(name), std::string(value)};
}
Attribute attr(std::string_view name, std::vector<std::int64_t> value) {
  return {std::string(name), std::move(value)};
}

// "model.layers.0.self_attn" -> "/model/layers.0/self_attn/"
std::string Emission::scope() const {
  std::string text = "/";
  if (node_ == nullptr || node_->module.empty()) return text;
  const std::string_view path = node_->module;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string_view part = path.substr(start, dot - start);
    const bool index =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (index && text.size() > 1) {
      text.back() = '.';
    }
    text += part;
    text += '/';
    start = dot + 1;
  }
  return text;
}

std::uint64_t Emission::name_hash(std::string_view name) {
  return std::hash<std::string_view>()(name);
}

std::string Emission::unique(std::string name) {
  const std::uint64_t hash = name_hash(name);
  if (names_.insert(hash).second) return name;
  int& number = numbers_[hash];
  const std::size_t length = name.size();
  do {
    name.resize(length);
    name += "_" + std::to_string(++number);
  } while (!names_.insert(name_hash(name)).second);
  return name;
}

TensorId Emission::new_tensor(Dtype dtype, std::string name) {
  model_.tensors.push_back({std::move(name), dtype, std::nullopt});
  return static_cast<TensorId>(model_.tensors.size() - 1);
}

Inputs Emission::emit(std::string_view type, const Inputs& inputs, const std::vector<Dtype>& dtypes,
                      Attributes attributes, std::string_view domain, bool shared) {
  Node node;
  node.op = type;
  node.domain = domain;
  node.inputs.reserve(inputs.size());
  for (const Val v : inputs) node.inputs.push_back(v.id);
  while (!node.inputs.empty() && node.inputs.back() == kAbsent) node.inputs.pop_back();
  node.attributes = std::move(attributes);
  const auto results = [](const Node& made) {
    Inputs found;
    for (const TensorId id : made.outputs) found.push_back({id});
    return found;
  };
  if (shared) {
    const std::string key = key_of(node, dtypes);
    const std::uint64_t hash = std::hash<std::string>()(key);
    for (auto [it, end] = emitted_.equal_range(hash); it != end; ++it) {
      const Node& other = model_.graph.nodes[it->second];
      std::vector<Dtype> same;
      for (const TensorId id : other.outputs) same.push_back(model_.tensors[id].dtype);
      if (key_of(other, same) == key) return results(other);
    }
    emitted_.emplace(hash, static_cast<std::uint32_t>(model_.graph.nodes.size()));
  }
  node.name = unique(scope() + node.op);
  node.outputs.reserve(dtypes.size());
  for (std::size_t k = 0; k < dtypes.size(); ++k) {
    node.outputs.push_back(new_tensor(dtypes[k], node.name + "_output_" + std::to_string(k)));
  }
  if (node_ != nullptr) {
    node.module = node_->module;
    node.source = node_->source;
  }
  if (domain == "com.microsoft") model_.uses_contrib_ops = true;
  model_.graph.nodes.push_back(std::move(node));
  return results(model_.graph.nodes.back());
}

Inputs Emission::ops(std::string_view type, const Inputs& inputs, const std::vector<Dtype>& dtypes,
                     Attributes attributes, std::string_view domain) {
  return emit(type, inputs, dtypes, std::move(attributes), domain, true);
}

Val Emission::op(std::string_view type, const Inputs& inputs, Attributes attributes,
                 std::optional<Dtype> dtype, std::string_view domain) {
  if (!dtype && domain.empty()) {
    // Where the runtime has no kernel for this type, the node computes in another and is cast back.
    if (const std::uint32_t typed = kernel_inputs(type); typed != 0) {
      const std::size_t first = (typed & 1U) != 0 ? 0 : 1;
      const Dtype from = dtype_of(inputs.at(first));
      const Dtype to = kernel_dtype(type, from);
      if (to != from) {
        Inputs wide = inputs;
        for (std::size_t k = 0; k < wide.size(); ++k) {
          if (k < 32 && ((typed >> k) & 1U) != 0) wide[k] = cast(wide[k], to);
        }
        const bool keeps = result_dtype(type, attributes, from, from) == from;
        const Val v = op(type, wide, std::move(attributes));
        return keeps ? cast(v, from) : v;
      }
    }
  }
  if (!dtype) {
    const auto of = [&](std::size_t k) {
      return k < inputs.size() && inputs[k].present() ? dtype_of(inputs[k]) : Dtype::kFloat32;
    };
    dtype = result_dtype(type, attributes, of(0), of(1));
  }
  return ops(type, inputs, {*dtype}, std::move(attributes), domain)[0];
}

Dtype Emission::kernel_dtype(std::string_view type, Dtype dtype) const {
  return onnx::kernel_dtype(runtime_, type, dtype);
}

Val Emission::fresh_op(std::string_view type, const Inputs& inputs, Attributes attributes,
                       Dtype dtype) {
  return emit(type, inputs, {dtype}, std::move(attributes), {}, false)[0];
}

std::shared_ptr<Graph> Emission::body(std::vector<TensorInfo> inputs,
                                      const std::function<Inputs(const Inputs&)>& build) {
  auto graph = std::make_shared<Graph>();
  graph->name = unique(scope() + "body");
  Inputs parameters;
  for (TensorInfo& input : inputs) {
    const TensorId id =
        new_tensor(input.dtype, graph->name + "_input_" + std::to_string(parameters.size()));
    model_.tensors[id].shape = std::move(input.shape);
    graph->inputs.push_back(id);
    parameters.push_back({id});
  }
  // What is emitted outside is visible inside, but not the other way round.
  std::vector<Node> outside;
  std::unordered_multimap<std::uint64_t, std::uint32_t> shared;
  std::swap(outside, model_.graph.nodes);
  std::swap(shared, emitted_);
  std::vector<TensorId> made;
  for (const Val v : build(parameters)) {
    made.push_back(fresh_op("Identity", {v}, {}, dtype_of(v)).id);
  }
  graph->outputs = std::move(made);
  graph->nodes = std::move(model_.graph.nodes);
  model_.graph.nodes = std::move(outside);
  emitted_ = std::move(shared);
  return graph;
}

const Node* Emission::maker(Val v) const {
  const auto& nodes = model_.graph.nodes;
  const auto it = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), v.id) != node.outputs.end();
  });
  return it == nodes.rend() ? nullptr : &*it;
}

bool Emission::made_by(Val v, std::string_view type) const {
  const Node* const node = maker(v);
  return node != nullptr && node->op == type;
}

bool Emission::first_axis_moved(Val v) const {
  const Node* const node = maker(v);
  if (node == nullptr || node->op != "Transpose") return false;
  const auto perm = std::find_if(node->attributes.begin(), node->attributes.end(),
                                 [](const Attribute& a) { return a.name == "perm"; });
  if (perm == node->attributes.end()) return true;
  const auto* const order = std::get_if<std::vector<std::int64_t>>(&perm->value);
  return order != nullptr && order->size() >= 3 && order->front() != 0;
}

const TensorData* Emission::data_of(Val v) const {
  const auto it = initializer_of_.find(v.id);
  return it == initializer_of_.end() ? nullptr : &model_.graph.initializers[it->second].data;
}

Dtype Emission::dtype_of(Val v) const {
  if (!v.present()) unsupported("expected a tensor, got none");
  return model_.tensors[v.id].dtype;
}

Val Emission::constant(TensorData data, std::string_view name) {
  std::string key;
  append(key, data.dtype);
  for (const std::int64_t d : data.dims) append(key, d);
  key += '\x1f';
  for (const std::int64_t s : data.strides) append(key, s);
  key += '\x1f';
  if (data.owned) {
    data.data = data.owned->data();
    key.append(reinterpret_cast<const char*>(data.owned->data()), data.owned->size());
  } else {
    key += "at";
    append(key, data.data);
  }
  auto [it, inserted] = constants_.try_emplace(std::move(key), kAbsent);
  if (inserted) {
    it->second = new_tensor(data.dtype, unique(name.empty() ? "constant" : std::string(name)));
    initializer_of_.emplace(it->second, model_.graph.initializers.size());
    model_.graph.initializers.push_back({it->second, std::move(data)});
  }
  return {it->second};
}

Val Emission::ints(std::span<const std::int64_t> values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size_bytes());
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), values.size_bytes());
  TensorData data;
  data.dtype = Dtype::kInt64;
  data.dims = {static_cast<std::int64_t>(values.size())};
  data.owned = bytes;
  return constant(std::move(data));
}

Val Emission::ints(std::initializer_list<std::int64_t> values) {
  return ints(std::span(values.begin(), values.size()));
}

namespace {

template <typename T>
void store(std::byte* at, double value) {
  T typed;
  if constexpr (std::is_floating_point_v<T>) {
    typed = static_cast<T>(value);
  } else if (std::isnan(value)) {
    typed = 0;
  } else {  // saturate: a mask's lowest value of another type must not wrap
    const double low = static_cast<double>(std::numeric_limits<T>::lowest());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    typed = value <= low    ? std::numeric_limits<T>::lowest()
            : value >= high ? std::numeric_limits<T>::max()
                            : static_cast<T>(value);
  }
  std::memcpy(at, &typed, sizeof(typed));
}

void store(std::byte* at, double value, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return store<float>(at, value);
    case Dtype::kFloat64:
      return store<double>(at, value);
    case Dtype::kInt64:
      return store<std::int64_t>(at, value);
    case Dtype::kInt32:
      return store<std::int32_t>(at, value);
    case Dtype::kInt16:
      return store<std::int16_t>(at, value);
    case Dtype::kInt8:
      return store<std::int8_t>(at, value);
    case Dtype::kUint8:
      return store<std::uint8_t>(at, value);
    case Dtype::kUint16:
      return store<std::uint16_t>(at, value);
    case Dtype::kUint32:
      return store<std::uint32_t>(at, value);
    case Dtype::kUint64:
      return store<std::uint64_t>(at, value);
    case Dtype::kBool:
      return store<std::uint8_t>(at, value != 0 ? 1 : 0);
    case Dtype::kFloat16: {
      const std::uint16_t bits = half_from_float(static_cast<float>(value));
      std::memcpy(at, &bits, 2);
      return;
    }
    case Dtype::kBfloat16: {
      const std::uint16_t bits = bfloat16_from_float(static_cast<float>(value));
      std::memcpy(at, &bits, 2);
      return;
    }
    default:
      throw Error(ErrorCode::kUnsupported, "[lower] Expected a number of a plain type, got " +
                                               std::string(dtype_name(dtype)) + ".");
  }
}

}  // namespace

Val Emission::filled(double value, Dtype dtype, std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  const std::size_t size = dtype_size(dtype);
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(count) * size);
  for (std::int64_t k = 0; k < count; ++k) {
    store(bytes->data() + static_cast<std::size_t>(k) * size, value, dtype);
  }
  TensorData data;
  data.dtype = dtype;
  data.dims.assign(dims.begin(), dims.end());
  data.owned = bytes;
  return constant(std::move(data));
}

Val Emission::scalar(double value, Dtype dtype) { return filled(value, dtype, {}); }

double Emission::lowest(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return std::numeric_limits<double>::lowest();
    case Dtype::kFloat16:
      return -65504.0;
    case Dtype::kBfloat16:
      return -3.3895313892515355e38;
    case Dtype::kInt64:
      return -9223372036854775808.0;
    case Dtype::kInt32:
      return std::numeric_limits<std::int32_t>::lowest();
    case Dtype::kInt16:
      return -32768;
    case Dtype::kInt8:
      return -128;
    case Dtype::kUint8:
    case Dtype::kBool:
      return 0;
    default:
      return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

double Emission::highest(Dtype dtype) {
  switch (dtype) {
    case Dtype::kInt64:
      return 9223372036854775807.0;
    case Dtype::kInt32:
      return std::numeric_limits<std::int32_t>::max();
    case Dtype::kInt16:
      return 32767;
    case Dtype::kInt8:
      return 127;
    case Dtype::kUint8:
      return 255;
    case Dtype::kBool:
      return 1;
    default:
      return -lowest(dtype);
  }
}

Val Emission::cast(Val v, Dtype dtype) {
  if (!v.present() || dtype_of(v) == dtype) return v;
  return op("Cast", {v}, {attr("to", onnx_code(dtype))});
}

Val Emission::transpose(Val v, std::vector<std::int64_t> perm) {
  bool identity = true;
  for (std::size_t k = 0; k < perm.size(); ++k)
    identity = identity && perm[k] == static_cast<std::int64_t>(k);
  if (identity) return v;
  const Dtype d = dtype_of(v);
  // Runtimes move numbers of 8 bits only where they are whole ones; float32 holds them all.
  const bool eight = is_float(d) && dtype_size(d) == 1;
  const Val given = eight ? cast(v, Dtype::kFloat32) : v;
  return cast(op("Transpose", {given}, {attr("perm", std::move(perm))}), d);
}

Val Emission::unsqueeze(Val v, std::vector<std::int64_t> axes) {
  return op("Unsqueeze", {v, ints(axes)});
}

Val Emission::squeeze(Val v, std::vector<std::int64_t> axes) {
  return op("Squeeze", {v, ints(axes)});
}

Val Emission::slice(Val v, std::int64_t axis, Val start, Val end, std::int64_t step) {
  return op("Slice", {v, start, end, ints({axis}), ints({step})});
}

Val Emission::concat(const Inputs& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : op("Concat", parts, {attr("axis", axis)});
}

Val Emission::reduce(std::string_view type, Val v, std::vector<std::int64_t> axes, bool keepdim) {
  // From opset 18 on every reduction takes its axes as an input.
  return op(type, {v, ints(axes)}, {attr("keepdims", keepdim)});
}

}  // namespace fairlead::onnx
