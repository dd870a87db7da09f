// 1. What GroupQueryAttention takes as past and gives as present: the cache.
// 2. Nobody else reads it, but for its sizes.
// 3. Where its length is read, the mask's less that of the new tokens stands instead.
// A static cache is the same of what Concat makes of past and new, and Attention alone reads.
#include "fairlead/onnx/shared_cache.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace fairlead::onnx {
namespace {

constexpr std::int64_t kLengthAxis = 2;

struct Place {
  TensorId tensor = kAbsent;
  std::int64_t axis = 0;
};

void for_each_node(Graph& graph, const std::function<void(Node&)>& visit) {
  for (Node& node : graph.nodes) {
    visit(node);
    for (Attribute& a : node.attributes) {
      auto* inner = std::get_if<std::shared_ptr<Graph>>(&a.value);
      if (inner != nullptr && *inner) for_each_node(**inner, visit);
    }
  }
}

std::optional<std::int64_t> int_attribute(const Node& node, std::string_view name) {
  for (const Attribute& a : node.attributes) {
    const auto* value = std::get_if<std::int64_t>(&a.value);
    if (a.name == name && value != nullptr) return *value;
  }
  return std::nullopt;
}

class Sharing {
 public:
  Sharing(Model& model, bool is_static) : model_(model), static_(is_static) {}

  SharedCache run() {
    SharedCache found;
    found.why = find();
    if (!found.why.empty()) return found;
    found.layers = layers_;
    if (static_) {
      found.mask = name(both_.tensor);
      found.mask_axis = both_.axis;
      scatter();
    } else if (!reads_.empty()) {
      read_mask();
    }
    return found;
  }

 private:
  [[nodiscard]] const std::vector<Expr>* shape(TensorId id) const {
    const auto& shape = model_.tensors[static_cast<std::size_t>(id)].shape;
    return shape ? &*shape : nullptr;
  }
  [[nodiscard]] const std::string& name(TensorId id) const {
    return model_.tensors[static_cast<std::size_t>(id)].name;
  }

  std::string find() {
    const std::set<TensorId> inputs(model_.graph.inputs.begin(), model_.graph.inputs.end());
    const std::set<TensorId> outputs(model_.graph.outputs.begin(), model_.graph.outputs.end());
    if (static_) {
      if (std::string why = find_joined(); !why.empty()) return why;
    }
    for (const Node& node : model_.graph.nodes) {
      if (static_ || node.op != "GroupQueryAttention" || node.inputs[3] == kAbsent) continue;
      for (const std::size_t k : {std::size_t{3}, std::size_t{4}}) {
        if (!inputs.contains(node.inputs[k]) || !outputs.contains(node.outputs[k - 2])) {
          return "what " + node.name + " takes as past is no input, or its present no output";
        }
        past_.insert(node.inputs[k]);
      }
      ++layers_;
    }
    if (past_.empty()) {
      return static_ ? "no Attention of the standard reads a cache that is joined"
                     : "no GroupQueryAttention reads a cache";
    }
    length_ = (*shape(*past_.begin()))[kLengthAxis];
    for (const TensorId id : past_) {
      if ((*shape(id))[kLengthAxis] != length_) return name(id) + " has another length";
    }
    if (std::string why = find_reads(); !why.empty()) return why;
    for (const TensorId id : model_.graph.inputs) {
      const auto* dims = past_.contains(id) ? nullptr : shape(id);
      if (dims != nullptr && std::find(dims->begin(), dims->end(), length_) != dims->end()) {
        return name(id) + " is as long as the cache, and is none that GroupQueryAttention reads";
      }
    }
    return (reads_.empty() && !static_) || find_mask()
               ? ""
               : "no input is as long as the cache with the new tokens";
  }

  // Concatenations of an input and new keys that are outputs, and that Attention alone reads.
  std::string find_joined() {
    const std::set<TensorId> inputs(model_.graph.inputs.begin(), model_.graph.inputs.end());
    const std::set<TensorId> outputs(model_.graph.outputs.begin(), model_.graph.outputs.end());
    for (const Node& node : model_.graph.nodes) {
      const auto axis = int_attribute(node, "axis");
      if (node.op != "Concat" || node.inputs.size() != 2 || !inputs.contains(node.inputs[0]) ||
          !outputs.contains(node.outputs[0]) || (axis != kLengthAxis && axis != -2)) {
        continue;
      }
      past_.insert(node.inputs[0]);
      joined_.insert(node.outputs[0]);
    }
    std::string why;
    for_each_node(model_.graph, [&](Node& node) {
      const bool attends = node.op == "Attention" && node.inputs.size() > 3 &&
                           node.inputs[3] != kAbsent && !int_attribute(node, "is_causal");
      bool reads = false;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (!joined_.contains(node.inputs[k])) continue;
        reads = true;
        if (!attends || (k != 1 && k != 2)) why = name(node.inputs[k]) + " is read by " + node.op;
      }
      if (!reads || !why.empty()) return;
      if (!joined_.contains(node.inputs[1]) || !joined_.contains(node.inputs[2])) {
        why = node.name + " has a cache of keys or of values alone";
      } else if (shape(node.inputs[3]) == nullptr) {
        why = "the mask of " + node.name + " has no known sizes";
      } else if (const Dtype d = model_.tensors[static_cast<std::size_t>(node.inputs[3])].dtype;
                 d != Dtype::kBool && d != Dtype::kFloat32) {
        why = "the mask of " + node.name + " is neither of booleans nor of float32";
      }
      ++layers_;
    });
    return why;
  }

  std::string find_reads() {
    std::string why;
    for_each_node(model_.graph, [&](Node& node) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (!past_.contains(node.inputs[k])) continue;
        if (static_ ? joined_.contains(node.outputs[0]) && k == 0 : is_attention(node, k)) continue;
        const auto start = int_attribute(node, "start"), end = int_attribute(node, "end");
        if (node.op != "Shape" || !start || !end || *end != *start + 1) {
          why = name(node.inputs[k]) + " is read by " + node.op + " too";
        } else if (*start == kLengthAxis) {
          reads_.push_back(&node);
        }
      }
    });
    return why;
  }

  static bool is_attention(const Node& node, std::size_t k) {
    return node.op == "GroupQueryAttention" && (k == 3 || k == 4);
  }

  // An input that is as long as the cache and an axis of another input.
  bool find_mask() {
    for (const TensorId whole : model_.graph.inputs) {
      const auto* dims = shape(whole);
      for (std::size_t a = 0; dims != nullptr && a < dims->size(); ++a) {
        for (const TensorId part : model_.graph.inputs) {
          const auto* others = shape(part);
          for (std::size_t b = 0; others != nullptr && b < others->size(); ++b) {
            if (past_.contains(part) || model_.pool->add(length_, (*others)[b]) != (*dims)[a]) {
              continue;
            }
            both_ = {whole, static_cast<std::int64_t>(a)};
            fresh_ = {part, static_cast<std::int64_t>(b)};
            return true;
          }
        }
      }
    }
    return false;
  }

  void read_mask() {
    std::vector<Node> first;
    const auto size = [&](const char* what, Place place) {
      Node node;
      node.op = "Shape";
      node.name = std::string("/cache/") + what;
      node.inputs = {place.tensor};
      model_.tensors.push_back({node.name, Dtype::kInt64, std::nullopt});
      node.outputs = {static_cast<TensorId>(model_.tensors.size() - 1)};
      node.attributes = {{"start", place.axis}, {"end", place.axis + 1}};
      first.push_back(node);
      return node.outputs[0];
    };
    const TensorId both = size("length", both_), fresh = size("new_tokens", fresh_);
    for (Node* node : reads_) {
      node->op = "Sub";
      node->inputs = {both, fresh};
      node->attributes.clear();
    }
    model_.graph.nodes.insert(model_.graph.nodes.begin(), first.begin(), first.end());
  }

  TensorId add(std::vector<Node>& nodes, const std::string& what, std::string op, Dtype dtype,
               std::vector<TensorId> inputs, std::vector<Attribute> attributes = {}) {
    Node node;
    node.op = std::move(op);
    node.name = "/cache/" + what;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    model_.tensors.push_back({node.name, dtype, std::nullopt});
    node.outputs = {static_cast<TensorId>(model_.tensors.size() - 1)};
    nodes.push_back(std::move(node));
    return nodes.back().outputs[0];
  }

  template <typename T>
  TensorId constant(const std::string& what, Dtype dtype, const std::vector<T>& values,
                    std::vector<std::int64_t> dims) {
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    TensorData data;
    data.dtype = dtype;
    data.dims = std::move(dims);
    data.owned = std::make_shared<std::vector<std::byte>>(first, first + values.size() * sizeof(T));
    data.data = data.owned->data();
    model_.tensors.push_back({"cache." + what, dtype, std::nullopt});
    const auto id = static_cast<TensorId>(model_.tensors.size() - 1);
    model_.graph.initializers.push_back({id, std::move(data)});
    return id;
  }

  void scatter() {
    constexpr Dtype kSize = Dtype::kInt64;
    std::vector<Node> first;
    const auto size = [&](const char* what, Place place) {
      return add(first, what, "Shape", kSize, {place.tensor},
                 {{"start", place.axis}, {"end", place.axis + 1}});
    };
    const TensorId any = *past_.begin();
    const TensorId both = size("length", both_), fresh = size("new_tokens", fresh_);
    const TensorId before = add(first, "past", "Sub", kSize, {both, fresh});
    const TensorId rows = size("rows", {any, 0});
    const TensorId at = add(first, "at", "Expand", kSize, {before, rows});
    const TensorId room =
        add(first, "room", "Sub", kSize, {size("size", {any, kLengthAxis}), both});
    for (Node* node : reads_) {
      node->op = "Identity";
      node->inputs = {before};
      node->attributes.clear();
    }
    const Expr long_enough = model_.pool->symbol("cache");
    std::map<TensorId, TensorId> masks;
    std::map<std::size_t, TensorId> pads;  // by rank
    std::vector<Node> nodes;
    for (Node& node : model_.graph.nodes) {
      if (joined_.contains(node.outputs[0])) {
        node.op = "TensorScatter";
        node.inputs.push_back(at);
        node.attributes = {{"axis", kLengthAxis}, {"mode", std::string("linear")}};
        for (const TensorId id : {node.inputs[0], node.outputs[0]}) {
          auto& dims = model_.tensors[static_cast<std::size_t>(id)].shape;
          if (dims) (*dims)[kLengthAxis] = long_enough;
        }
      } else if (node.op == "Attention" && joined_.contains(node.inputs[1])) {
        node.inputs[3] = padded(node.inputs[3], room, first, pads, nodes, masks);
      }
      nodes.push_back(std::move(node));
    }
    nodes.insert(nodes.begin(), std::make_move_iterator(first.begin()),
                 std::make_move_iterator(first.end()));
    model_.graph.nodes = std::move(nodes);
  }

  // The mask, which hides the rest of the buffer.
  TensorId padded(TensorId mask, TensorId room, std::vector<Node>& first,
                  std::map<std::size_t, TensorId>& pads, std::vector<Node>& nodes,
                  std::map<TensorId, TensorId>& masks) {
    if (const auto known = masks.find(mask); known != masks.end()) return known->second;
    const std::size_t rank = shape(mask)->size();
    if (!pads.contains(rank)) {
      const auto count = static_cast<std::int64_t>(2 * rank - 1);
      const TensorId zeros = constant("zeros" + std::to_string(rank), Dtype::kInt64,
                                      std::vector<std::int64_t>(2 * rank - 1, 0), {count});
      pads[rank] = add(first, "pads" + std::to_string(rank), "Concat", Dtype::kInt64, {zeros, room},
                       {{"axis", std::int64_t{0}}});
    }
    const Dtype dtype = model_.tensors[static_cast<std::size_t>(mask)].dtype;
    const std::string number = std::to_string(masks.size());
    const TensorId hidden =
        dtype == Dtype::kBool
            ? constant("hidden" + number, dtype, std::vector<std::uint8_t>{0}, {})
            : constant("hidden" + number, dtype,
                       std::vector<float>{-std::numeric_limits<float>::infinity()}, {});
    return masks[mask] = add(nodes, "mask" + number, "Pad", dtype, {mask, pads[rank], hidden});
  }

  Model& model_;
  bool static_;
  std::set<TensorId> joined_;  // what Concat makes of a static cache
  std::set<TensorId> past_;
  Expr length_ = nullptr;
  std::vector<Node*> reads_;  // Shape, of the length of the past
  Place both_, fresh_;
  std::int64_t layers_ = 0;
};

}  // namespace

SharedCache share_cache(Model& model) { return Sharing(model, false).run(); }

SharedCache static_cache(Model& model) { return Sharing(model, true).run(); }

std::vector<std::pair<TensorId, TensorId>> cache_pairs(const Model& model) {
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (const Node& node : model.graph.nodes) {
    if (node.op == "TensorScatter") pairs.emplace_back(node.inputs[0], node.outputs[0]);
    if (node.op != "GroupQueryAttention" || node.inputs[3] == kAbsent) continue;
    pairs.emplace_back(node.inputs[3], node.outputs[1]);
    pairs.emplace_back(node.inputs[4], node.outputs[2]);
  }
  return pairs;
}

void int8_cache(Model& model, const std::map<std::string, std::vector<float>>& scales) {
  constexpr std::size_t kFirstScale = 12;  // among the inputs of GroupQueryAttention
  const auto info = [&](TensorId id) -> TensorInfo& {
    return model.tensors[static_cast<std::size_t>(id)];
  };
  for (Node& node : model.graph.nodes) {
    if (node.op != "GroupQueryAttention" || node.inputs[3] == kAbsent) continue;
    node.inputs.resize(kFirstScale + 2, kAbsent);
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const TensorId past = node.inputs[3 + k];
      const std::vector<float>& given = scales.at(info(past).name);
      const auto* first = reinterpret_cast<const std::byte*>(given.data());
      TensorData data;
      data.dims = {static_cast<std::int64_t>(given.size())};
      data.owned =
          std::make_shared<std::vector<std::byte>>(first, first + given.size() * sizeof(float));
      data.data = data.owned->data();
      info(past).dtype = info(node.outputs[1 + k]).dtype = Dtype::kInt8;
      model.tensors.push_back({info(past).name + ".scale", Dtype::kFloat32, std::nullopt});
      node.inputs[kFirstScale + k] = static_cast<TensorId>(model.tensors.size() - 1);
      model.graph.initializers.push_back({node.inputs[kFirstScale + k], std::move(data)});
    }
    node.attributes.push_back({"kv_cache_bit_width", std::int64_t{8}});
    for (const char* name : {"k_quant_type", "v_quant_type"}) {
      node.attributes.push_back({name, std::string("PER_CHANNEL")});
    }
  }
}

}  // namespace fairlead::onnx
