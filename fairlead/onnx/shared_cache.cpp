// 1. What GroupQueryAttention takes as past and gives as present: the cache.
// 2. Nobody else reads it, but for its sizes.
// 3. Where its length is read, the mask's less that of the new tokens stands instead.
#include "fairlead/onnx/shared_cache.h"

#include <algorithm>
#include <functional>
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
  explicit Sharing(Model& model) : model_(model) {}

  SharedCache run() {
    SharedCache found;
    found.why = find();
    if (!found.why.empty()) return found;
    found.layers = layers_;
    if (!reads_.empty()) read_mask();
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
    for (const Node& node : model_.graph.nodes) {
      if (node.op != "GroupQueryAttention" || node.inputs[3] == kAbsent) continue;
      for (const std::size_t k : {std::size_t{3}, std::size_t{4}}) {
        if (!inputs.contains(node.inputs[k]) || !outputs.contains(node.outputs[k - 2])) {
          return "what " + node.name + " takes as past is no input, or its present no output";
        }
        past_.insert(node.inputs[k]);
      }
      ++layers_;
    }
    if (past_.empty()) return "no GroupQueryAttention reads a cache";
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
    return reads_.empty() || find_mask() ? ""
                                         : "no input is as long as the cache with the new tokens";
  }

  std::string find_reads() {
    std::string why;
    for_each_node(model_.graph, [&](Node& node) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (!past_.contains(node.inputs[k])) continue;
        if (node.op == "GroupQueryAttention" && (k == 3 || k == 4)) continue;
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

  Model& model_;
  std::set<TensorId> past_;
  Expr length_ = nullptr;
  std::vector<Node*> reads_;  // Shape, of the length of the past
  Place both_, fresh_;
  std::int64_t layers_ = 0;
};

}  // namespace

SharedCache share_cache(Model& model) { return Sharing(model).run(); }

std::vector<std::pair<TensorId, TensorId>> cache_pairs(const Model& model) {
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (const Node& node : model.graph.nodes) {
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
