// Weights of experts [experts, rows, columns] are blocks along their columns, as those of a matrix
// with the rows of all experts: QMoE takes what pack() makes of it.
#include "fairlead/quant/experts.h"

#include <array>
#include <cmath>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "fairlead/onnx/tensor_stream.h"
#include "fairlead/quant/blocks.h"
#include "fairlead/quant/matrices.h"

namespace fairlead::quant {
namespace {

using onnx::TensorId;

// Tried on this version; those before have no kernel of blocks on the CPU, or none for floats.
constexpr int kSince = 31;
// Where MoE has its weights, and QMoE integers, scales and zero points of the same.
struct Place {
  std::size_t weights, packed, scales, zeros;
};
constexpr std::array kPlaces = {Place{2, 2, 3, 11}, Place{4, 5, 6, 12}};

class Experts {
 public:
  Experts(onnx::Model& model, const Options& options, Report& report)
      : model_(model), options_(options), report_(report) {
    for (std::size_t k = 0; k < model.graph.initializers.size(); ++k) {
      constants_.emplace(model.graph.initializers[k].tensor, k);
    }
    for_each_node(model.graph, [&](onnx::Node& node) {
      for (const TensorId id : node.inputs) ++readers_[id];
    });
    for (const onnx::Node& node : model.graph.nodes) {
      if (node.op == "Reshape" && constants_.contains(node.inputs[0])) {
        reshaped_.emplace(node.outputs[0], node.inputs[0]);
      }
    }
  }

  std::unordered_set<TensorId> run() {
    for_each_node(model_.graph, [&](onnx::Node& node) {
      if (node.op == "MoE") quantize(node);
    });
    auto& initializers = model_.graph.initializers;
    std::erase_if(initializers,
                  [&](const onnx::Initializer& i) { return gone_.contains(i.tensor); });
    std::erase_if(model_.graph.nodes, [&](const onnx::Node& node) {
      return !node.outputs.empty() && gone_.contains(node.outputs[0]);
    });
    initializers.insert(initializers.end(), added_.begin(), added_.end());
    return std::move(stay_);
  }

 private:
  struct Found {
    TensorId constant = onnx::kAbsent;
    std::string name;
    const onnx::TensorData* data = nullptr;
    Packed packed;    // the rows of all experts
    std::string why;  // it stays
  };

  void quantize(onnx::Node& node) {
    std::array<Found, kPlaces.size()> found;
    std::string why;
    for (std::size_t k = 0; k < kPlaces.size(); ++k) {
      found[k] = look(node.inputs[kPlaces[k].weights]);
      if (why.empty()) why = found[k].why;
    }
    for (Found& each : found) {
      if (!why.empty()) break;
      each.packed = packed(*each.data);
      why = reason(each.packed);
    }
    if (!why.empty()) {  // one operator: both are packed, or none
      for (const Found& each : found) {
        report_.kept.emplace_back(each.name, why);
        stay_.insert(each.constant);
      }
      return;
    }
    const std::vector<TensorId> before = std::exchange(
        node.inputs, std::vector<TensorId>(options_.format.symmetric ? 7 : 13, onnx::kAbsent));
    node.inputs[0] = before[0];
    node.inputs[1] = before[1];
    for (std::size_t k = 0; k < kPlaces.size(); ++k) take(node, kPlaces[k], found[k], before);
    node.op = "QMoE";
    node.attributes.push_back({"expert_weight_bits", std::int64_t{options_.format.bits}});
    node.attributes.push_back({"block_size", std::int64_t{options_.format.block}});
    node.attributes.push_back({"accuracy_level", std::int64_t{options_.int8_activations ? 4 : 0}});
  }

  Found look(TensorId id) {
    const auto reshape = reshaped_.find(id);
    const TensorId constant = reshape == reshaped_.end() ? id : reshape->second;
    Found found;
    found.constant = constant;
    found.name = model_.tensors[static_cast<std::size_t>(constant)].name;
    const auto at = constants_.find(constant);
    if (at == constants_.end()) {
      found.why = "it is computed";
      return found;
    }
    const onnx::TensorData& data = model_.graph.initializers[at->second].data;
    if (readers_.at(constant) != 1 || readers_.at(id) != 1) {
      found.why = "it is read in other ways too";
    } else if (data.dtype != Dtype::kFloat32 || data.dims.size() < 3 ||
               onnx::first_byte(data) == nullptr ||
               model_.graph.initializers[at->second].pieces != 1) {
      found.why = "it is not in memory as float32";
    } else if (options_.runtime_version != 0 && options_.runtime_version < kSince) {
      found.why = "ONNX Runtime 1." + std::to_string(options_.runtime_version) +
                  " is too old for experts of integers, 1." + std::to_string(kSince) + " has them";
    } else if (options_.format.bits == 8 && !options_.int8_activations) {
      found.why = "experts of 8 bits round what they multiply: activations=\"int8\" takes them";
    } else if (data.dims.back() % options_.format.block != 0) {
      found.why = "experts take whole blocks";
    }
    found.data = &data;
    return found;
  }

  // Expert by expert: the rows of one are copied side by side, whatever its strides are.
  Packed packed(const onnx::TensorData& data) const {
    const std::size_t rank = data.dims.size();
    std::vector<std::int64_t> strides = data.strides;
    if (strides.empty()) {
      strides.assign(rank, 1);
      for (std::size_t d = rank - 1; d > 0; --d) strides[d - 1] = strides[d] * data.dims[d];
    }
    const auto* first = reinterpret_cast<const float*>(onnx::first_byte(data));
    std::vector<float> floats;
    Packed all;
    for (std::int64_t expert = 0; expert < data.dims[0]; ++expert) {
      floats.clear();
      copy(first + expert * strides[0], data.dims, strides, 1, floats);
      Matrix matrix;
      matrix.data = floats.data();
      matrix.columns = matrix.row_stride = data.dims.back();
      matrix.rows = static_cast<std::int64_t>(floats.size()) / matrix.columns;
      append(all, pack(matrix, options_.format, options_.threads));
    }
    return all;
  }

  static void copy(const float* from, const std::vector<std::int64_t>& dims,
                   const std::vector<std::int64_t>& strides, std::size_t axis,
                   std::vector<float>& to) {
    for (std::int64_t k = 0; k < dims[axis]; ++k, from += strides[axis]) {
      if (axis + 1 == dims.size()) {
        to.push_back(*from);
      } else {
        copy(from, dims, strides, axis + 1, to);
      }
    }
  }

  static void append(Packed& all, Packed more) {
    if (all.values == nullptr) {
      all = std::move(more);
      return;
    }
    const auto join = [](const auto& to, const auto& from) {
      if (to) to->insert(to->end(), from->begin(), from->end());
    };
    all.rows += more.rows;
    join(all.values, more.values);
    join(all.scales, more.scales);
    join(all.zero_points, more.zero_points);
    all.squared_error += more.squared_error;
    all.squared_size += more.squared_size;
  }

  void take(onnx::Node& node, const Place& place, const Found& found,
            const std::vector<TensorId>& before) {
    const Packed& p = found.packed;
    const int bits = options_.format.bits;
    const std::int64_t experts = found.data->dims[0], rows = p.rows / experts;
    const auto last = [&](std::int64_t count) {
      return std::vector<std::int64_t>{experts, rows, count};
    };
    node.inputs[place.packed] =
        add(found.name + ".packed", Dtype::kUint8, last(p.columns * bits / 8), p.values);
    node.inputs[place.scales] =
        add(found.name + ".scales", Dtype::kFloat32, last(p.blocks), p.scales);
    if (p.zero_points) {
      node.inputs[place.zeros] = add(found.name + ".zero_points", Dtype::kUint8,
                                     last((p.blocks * bits + 7) / 8), p.zero_points);
    }
    gone_.insert(found.constant);
    gone_.insert(before[place.weights]);
    report_.layers.push_back({found.name, p.rows, p.columns, p.relative_error()});
    report_.bytes_before += p.rows * p.columns * std::int64_t{sizeof(float)};
  }

  TensorId add(const std::string& name, Dtype dtype, std::vector<std::int64_t> dims,
               const std::shared_ptr<std::vector<std::byte>>& bytes) {
    model_.tensors.push_back({name, dtype, std::nullopt});
    const auto id = static_cast<TensorId>(model_.tensors.size() - 1);
    added_.push_back({id, {dtype, std::move(dims), {}, bytes->data(), bytes}});
    report_.bytes_after += onnx::stored_bytes(added_.back().data);
    return id;
  }

  onnx::Model& model_;
  const Options& options_;
  Report& report_;
  std::unordered_map<TensorId, std::size_t> constants_;
  std::unordered_map<TensorId, std::size_t> readers_;
  std::unordered_map<TensorId, TensorId> reshaped_;  // constants in another shape
  std::unordered_set<TensorId> gone_, stay_;
  std::vector<onnx::Initializer> added_;
};

}  // namespace

std::unordered_set<TensorId> quantize_experts(onnx::Model& model, const Options& options,
                                              Report& report) {
  return options.contrib ? Experts(model, options, report).run() : std::unordered_set<TensorId>();
}

}  // namespace fairlead::quant
