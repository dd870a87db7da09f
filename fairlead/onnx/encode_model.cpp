// ModelProto by hand: protozero for the leaves, and messages with holes above them.
#include "fairlead/onnx/encode_model.h"

#include <algorithm>
#include <functional>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "fairlead/base/error.h"
#include "fairlead/onnx/proto_fields.h"
#include "fairlead/onnx/tensor_stream.h"

namespace fairlead::onnx {
namespace {

using protozero::pbf_writer;

constexpr std::string_view kContribDomain = "com.microsoft";
constexpr int kFunctionsIrVersion = 8;  // the first that has them

struct OpsetRow {
  int opset;
  int ir_version;
};

// First opset of each IR version (onnx.helper.VERSION_TABLE); opset 22 is the last of IR 10.
constexpr OpsetRow kIrVersions[] = {
    {1, 3},  {9, 4},   {10, 5},  {11, 6},  {12, 7},  {15, 8},
    {19, 9}, {21, 10}, {23, 11}, {24, 12}, {25, 13}, {28, 14},
};

void put_length(EncodedMessage& message, std::uint32_t field, std::int64_t length) {
  const auto key = protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
  protozero::add_varint_to_buffer(&message.bytes, key);
  protozero::add_varint_to_buffer(&message.bytes, static_cast<std::uint64_t>(length));
}

void append(EncodedMessage& parent, const EncodedMessage& child) {
  for (const auto& hole : child.holes) {
    parent.holes.push_back({parent.bytes.size() + hole.at, hole.tensor});
  }
  parent.bytes += child.bytes;
  parent.hole_bytes += child.hole_bytes;
}

void put_message(EncodedMessage& parent, std::uint32_t field, const EncodedMessage& child) {
  put_length(parent, field, child.size());
  append(parent, child);
}

void put_entry(EncodedMessage& parent, std::uint32_t field, std::string_view key,
               std::string_view value) {
  pbf_writer writer(parent.bytes);
  pbf_writer entry(writer, field);
  entry.add_string(proto::kEntryKey, key.data(), key.size());
  entry.add_string(proto::kEntryValue, value.data(), value.size());
}

class Encoder {
 public:
  // Told every field of a graph, when it is whole.
  using Sink = std::function<void(const EncodedMessage&)>;

  Encoder(const Model& model, const ExternalPlan& plan) : model_(model), plan_(plan) {
    for (const Initializer& each : model.graph.initializers) {
      if (each.pieces > 1) pieced_.emplace(each.tensor, each.pieces);
    }
  }

  // After the graph, which tells the domains.
  [[nodiscard]] EncodedMessage head(std::int64_t graph_size, const std::vector<Function>* given) {
    EncodedMessage message, functions;
    if (given != nullptr) {
      for (const Function& function : *given) put_function(functions, function);
    }
    {
      pbf_writer writer(message.bytes);
      const int version = ir_version_of_opset(model_.opset);
      writer.add_int64(proto::kModelIrVersion,
                       functions.bytes.empty() ? version : std::max(version, kFunctionsIrVersion));
      writer.add_string(proto::kModelProducerName, "fairlead");
      writer.add_string(proto::kModelProducerVersion, model_.producer_version);
      put_opset(writer, proto::kModelOpsetImport, "", model_.opset);
      if (model_.uses_contrib_ops) domains_.insert(std::string(kContribDomain));
      for (const std::string& domain : domains_) {
        put_opset(writer, proto::kModelOpsetImport, domain, 1);
      }
    }
    append(message, functions);
    for (const auto& [key, value] : model_.metadata) {
      put_entry(message, proto::kModelMetadata, key, value);
    }
    put_length(message, proto::kModelGraph, graph_size);
    return message;
  }

  void graph(const Graph& graph, const Sink& sink) {
    EncodedMessage message;
    const auto done = [&] {
      sink(message);
      message.bytes.clear();  // what it has room for stays
      message.holes.clear();
      message.hole_bytes = 0;
    };
    for (const Node& node : graph.nodes) {
      put_node(message, proto::kGraphNode, node);
      done();
    }
    pbf_writer(message.bytes)
        .add_string(proto::kGraphName, graph.name.empty() ? std::string("graph") : graph.name);
    done();
    for (const Initializer& initializer : graph.initializers) {
      if (initializer.pieces > 1) {
        put_pieces(initializer, message, done);
        continue;
      }
      put_tensor(message, proto::kGraphInitializer, initializer.data,
                 info(initializer.tensor).name);
      done();
    }
    for (const TensorId id : graph.inputs) {
      put_value_info(message, proto::kGraphInput, info(id));
      done();
    }
    for (const TensorId id : graph.outputs) {
      put_value_info(message, proto::kGraphOutput, info(id));
      done();
    }
    const std::unordered_set<TensorId> outputs(graph.outputs.begin(), graph.outputs.end());
    for (const Node& node : graph.nodes) {
      for (const TensorId id : node.outputs) {
        if (id == kAbsent || outputs.contains(id) || !info(id).shape) continue;
        put_value_info(message, proto::kGraphValueInfo, info(id));
        done();
      }
    }
  }

 private:
  static void put_opset(pbf_writer& parent, std::uint32_t field, const std::string& domain,
                        int version) {
    pbf_writer opset(parent, field);
    opset.add_string(proto::kOpsetDomain, domain);
    opset.add_int64(proto::kOpsetVersion, version);
  }

  [[nodiscard]] const TensorInfo& info(TensorId id) const {
    FAIRLEAD_CHECK(id >= 0 && static_cast<std::size_t>(id) < model_.tensors.size(),
                   "tensor " + std::to_string(id) + " of " + std::to_string(model_.tensors.size()));
    return model_.tensors[static_cast<std::size_t>(id)];
  }

  [[nodiscard]] std::string_view name_of(TensorId id) const {
    return id == kAbsent ? std::string_view() : std::string_view(info(id).name);
  }

  // The parts of files that an initializer in pieces is, each a tensor: "weight/0", "weight/1".
  template <typename Done>
  void put_pieces(const Initializer& initializer, EncodedMessage& message, const Done& done) {
    TensorData piece = initializer.data;
    std::int64_t row = static_cast<std::int64_t>(dtype_size(piece.dtype));
    for (std::size_t k = 1; k < piece.dims.size(); ++k) row *= piece.dims[k];
    std::int64_t number = 0;
    for (const FilePart& part : plan_.parts(initializer.data)) {
      piece.dims[0] = part.bytes / row;
      put_tensor(message, proto::kGraphInitializer, piece,
                 piece_name(info(initializer.tensor).name, number++));
      done();
      piece.data += part.bytes;
    }
    FAIRLEAD_CHECK(number == initializer.pieces, "an initializer of other pieces");
  }

  static std::string piece_name(const std::string& name, std::int64_t number) {
    return name + "/" + std::to_string(number);
  }

  void put_function(EncodedMessage& parent, const Function& function) {
    EncodedMessage message;
    std::set<std::string> domains;
    {
      pbf_writer writer(message.bytes);
      writer.add_string(proto::kFunctionName, function.name);
      for (const TensorId id : function.inputs) {
        writer.add_string(proto::kFunctionInput, info(id).name);
      }
      for (const TensorId id : function.outputs) {
        writer.add_string(proto::kFunctionOutput, info(id).name);
      }
    }
    for (const Node& node : function.nodes) {
      put_node(message, proto::kFunctionNode, node);
      if (!node.domain.empty()) domains.insert(node.domain);
    }
    pbf_writer writer(message.bytes);
    put_opset(writer, proto::kFunctionOpsetImport, "", model_.opset);
    for (const std::string& domain : domains) {
      put_opset(writer, proto::kFunctionOpsetImport, domain, 1);
    }
    writer.add_string(proto::kFunctionDomain, function.domain);
    put_message(parent, proto::kModelFunctions, message);
  }

  void put_node(EncodedMessage& parent, std::uint32_t field, const Node& node) {
    EncodedMessage message;
    {
      pbf_writer writer(message.bytes);
      for (const TensorId id : node.inputs) {
        const std::string_view name = name_of(id);
        const auto pieced = pieced_.find(id);
        if (pieced == pieced_.end()) {
          writer.add_string(proto::kNodeInput, name.data(), name.size());
          continue;
        }
        for (std::int64_t k = 0; k < pieced->second; ++k) {
          writer.add_string(proto::kNodeInput, piece_name(std::string(name), k));
        }
      }
      for (const TensorId id : node.outputs) {
        const std::string_view name = name_of(id);
        writer.add_string(proto::kNodeOutput, name.data(), name.size());
      }
      if (!node.name.empty()) writer.add_string(proto::kNodeName, node.name);
      writer.add_string(proto::kNodeOpType, node.op);
    }
    for (const Attribute& attribute : node.attributes) put_attribute(message, attribute);
    if (!node.domain.empty()) {
      pbf_writer(message.bytes).add_string(proto::kNodeDomain, node.domain);
      domains_.insert(node.domain);
    }
    if (!node.module.empty()) {
      put_entry(message, proto::kNodeMetadata, proto::kModuleKey, node.module);
    }
    if (!node.source.empty()) {
      put_entry(message, proto::kNodeMetadata, proto::kSourceKey, node.source);
    }
    put_message(parent, field, message);
  }

  void put_attribute(EncodedMessage& parent, const Attribute& attribute) {
    EncodedMessage message;
    pbf_writer(message.bytes).add_string(proto::kAttributeName, attribute.name);
    const proto::AttributeType type =
        std::visit([&](const auto& value) { return put_value(message, value); }, attribute.value);
    // Readers of the format go by the type and not by which field is there.
    pbf_writer(message.bytes).add_enum(proto::kAttributeType, type);
    put_message(parent, proto::kNodeAttribute, message);
  }

  // One overload per kind of attribute; lists are not packed, as onnx.proto declares them.
  proto::AttributeType put_value(EncodedMessage& message, std::int64_t value) {
    pbf_writer(message.bytes).add_int64(proto::kAttributeInt, value);
    return proto::kTypeInt;
  }
  proto::AttributeType put_value(EncodedMessage& message, float value) {
    pbf_writer(message.bytes).add_float(proto::kAttributeFloat, value);
    return proto::kTypeFloat;
  }
  proto::AttributeType put_value(EncodedMessage& message, const std::string& value) {
    pbf_writer(message.bytes).add_bytes(proto::kAttributeString, value);
    return proto::kTypeString;
  }
  proto::AttributeType put_value(EncodedMessage& message, const std::vector<std::int64_t>& values) {
    pbf_writer writer(message.bytes);
    for (const std::int64_t value : values) writer.add_int64(proto::kAttributeInts, value);
    return proto::kTypeInts;
  }
  proto::AttributeType put_value(EncodedMessage& message, const std::vector<float>& values) {
    pbf_writer writer(message.bytes);
    for (const float value : values) writer.add_float(proto::kAttributeFloats, value);
    return proto::kTypeFloats;
  }
  proto::AttributeType put_value(EncodedMessage& message, const std::vector<std::string>& values) {
    pbf_writer writer(message.bytes);
    for (const std::string& value : values) writer.add_bytes(proto::kAttributeStrings, value);
    return proto::kTypeStrings;
  }
  proto::AttributeType put_value(EncodedMessage& message, const TensorData& value) {
    put_tensor(message, proto::kAttributeTensor, value, "");
    return proto::kTypeTensor;
  }
  proto::AttributeType put_value(EncodedMessage& message, const std::shared_ptr<Graph>& value) {
    FAIRLEAD_CHECK(value != nullptr, "an attribute without its subgraph");
    EncodedMessage inner;
    graph(*value, [&](const EncodedMessage& each) { append(inner, each); });
    put_message(message, proto::kAttributeGraph, inner);
    return proto::kTypeGraph;
  }

  void put_tensor(EncodedMessage& parent, std::uint32_t field, const TensorData& tensor,
                  const std::string& name) {
    EncodedMessage message;
    {
      pbf_writer writer(message.bytes);
      for (const std::int64_t dim : tensor.dims) writer.add_int64(proto::kTensorDims, dim);
      writer.add_int32(proto::kTensorDataType, tensor.four_bits == FourBits::kNo
                                                   ? onnx_code(tensor.dtype)
                                                   : static_cast<int>(tensor.four_bits));
      if (!name.empty()) writer.add_string(proto::kTensorName, name);
    }
    const std::optional<ExternalSlot> slot =
        field == proto::kGraphInitializer ? plan_.slot(tensor) : std::nullopt;
    if (slot) {
      const auto put = [&](std::string_view key, std::string_view value) {
        put_entry(message, proto::kTensorExternalData, key, value);
      };
      put("location", slot->location.empty() ? plan_.location : slot->location);
      put("offset", std::to_string(slot->offset));
      put("length", std::to_string(slot->length));
      pbf_writer(message.bytes).add_enum(proto::kTensorDataLocation, proto::kLocationExternal);
    } else {
      const std::int64_t bytes = stored_bytes(tensor);
      put_length(message, proto::kTensorRawData, bytes);
      if (bytes > 0) message.holes.push_back({message.bytes.size(), &tensor});
      message.hole_bytes += bytes;
    }
    put_message(parent, field, message);
  }

  void put_value_info(EncodedMessage& parent, std::uint32_t field, const TensorInfo& tensor) {
    // The shape is made first and added whole: a nested writer drops an empty message, and the
    // empty shape is what says "scalar".
    scratch_.clear();
    if (tensor.shape) {
      pbf_writer shape(scratch_);
      for (const Expr dim : *tensor.shape) put_dim(shape, dim);
    }
    pbf_writer graph(parent.bytes);
    pbf_writer value(graph, field);
    value.add_string(proto::kValueInfoName, tensor.name);
    pbf_writer type(value, proto::kValueInfoType);
    pbf_writer tensor_type(type, proto::kTypeTensorType);
    tensor_type.add_int32(proto::kTensorTypeElem, onnx_code(tensor.dtype));
    if (tensor.shape) tensor_type.add_message(proto::kTensorTypeShape, scratch_);
  }

  void put_dim(pbf_writer& shape, Expr dim) {
    FAIRLEAD_CHECK(dim != nullptr, "a shape without one of its dims");
    pbf_writer message(shape, proto::kShapeDim);
    if (is_const(dim)) {
      message.add_int64(proto::kDimValue, dim->value);
      return;
    }
    FAIRLEAD_CHECK(model_.pool != nullptr, "a named dim in a model without expressions");
    auto [text, is_new] = dim_names_.try_emplace(dim);
    if (is_new) text->second = model_.pool->to_string(dim);
    message.add_string(proto::kDimParam, text->second);
  }

  const Model& model_;
  const ExternalPlan& plan_;
  std::set<std::string> domains_;
  std::unordered_map<TensorId, std::int64_t> pieced_;
  std::unordered_map<Expr, std::string> dim_names_;  // the same few expressions all over a model
  std::string scratch_;
};

}  // namespace

ModelEncoder::ModelEncoder(const Model& model, const ExternalPlan& plan,
                           const std::vector<Function>* functions)
    : model_(model), plan_(plan) {
  Encoder encoder(model, plan);
  encoder.graph(model.graph, [&](const EncodedMessage& each) { graph_size_ += each.size(); });
  head_ = encoder.head(graph_size_, functions);
}

void ModelEncoder::write(OutputFile& file, FetchedWeights* fetched) const {
  write_message(head_, file);
  std::int64_t written = 0;
  Encoder(model_, plan_).graph(model_.graph, [&](const EncodedMessage& each) {
    write_message(each, file, fetched);
    written += each.size();
  });
  FAIRLEAD_CHECK(written == graph_size_, "a graph of another size than was counted");
}

EncodedMessage encode_metadata(std::string_view key, std::string_view value) {
  EncodedMessage message;
  put_entry(message, proto::kModelMetadata, key, value);
  return message;
}

void write_message(const EncodedMessage& message, OutputFile& file, FetchedWeights* fetched) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(message.bytes));
  std::size_t done = 0;
  for (const auto& hole : message.holes) {
    file.write(bytes.subspan(done, hole.at - done));
    stream_tensor(*hole.tensor, file, fetched);
    done = hole.at;
  }
  file.write(bytes.subspan(done));
}

int ir_version_of_opset(int opset) {
  int version = kIrVersions[0].ir_version;
  for (const OpsetRow& row : kIrVersions) {
    if (opset >= row.opset) version = row.ir_version;
  }
  return version;
}

}  // namespace fairlead::onnx
