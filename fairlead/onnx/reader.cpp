// ModelProto to summary, by protozero. Every field is matched by number and wire type together, and
// protozero checks each length against what is left, so that no bytes can lead out of the buffer.
#include "fairlead/onnx/reader.h"

#include <utility>

#include "fairlead/onnx/proto_fields.h"
#include "fairlead/onnx/reader_fields.h"
#include "fairlead/onnx/reader_impl.h"

namespace fairlead::onnx {
namespace {

class SummaryReader {
 public:
  explicit SummaryReader(std::span<const std::byte> all)
      : begin_(reinterpret_cast<const char*>(all.data())), size_(all.size()) {}

  ModelSummary read() {
    bool has_graph = false;
    pbf_reader message(begin_, size_);
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(proto::kModelIrVersion):
          model_.ir_version = message.get_int64();
          break;
        case bytes(proto::kModelProducerName):
          model_.producer_name = text(message);
          break;
        case bytes(proto::kModelProducerVersion):
          model_.producer_version = text(message);
          break;
        case bytes(proto::kModelOpsetImport):
          read_opset(message.get_message());
          break;
        case bytes(proto::kModelMetadata): {
          Entry entry = read_entry(message.get_message());
          model_.metadata.emplace_back(std::move(entry.key), std::move(entry.value));
          break;
        }
        case bytes(proto::kModelGraph):
          if (has_graph) throw Malformed{"there are two graphs"};
          has_graph = true;
          read_graph(message.get_message(), 0);
          break;
        default:
          message.skip();
      }
    }
    if (!has_graph) throw Malformed{"there is no graph in it"};
    if (model_.ir_version <= 0) throw Malformed{"it has no IR version"};
    model_.file_bytes = static_cast<std::int64_t>(size_);
    return std::move(model_);
  }

 private:
  void read_opset(pbf_reader message) {
    std::pair<std::string, std::int64_t> opset;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kOpsetDomain):
          opset.first = text(message);
          break;
        case varint(proto::kOpsetVersion):
          opset.second = message.get_int64();
          break;
        default:
          message.skip();
      }
    }
    model_.opset_imports.push_back(std::move(opset));
  }

  void read_graph(pbf_reader message, int depth) {
    if (depth > kMaxGraphDepth) throw Malformed{"graphs are nested too deeply"};
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kGraphNode):
          read_node(message.get_message(), depth);
          break;
        case bytes(proto::kGraphInitializer):
          model_.initializers.push_back(read_tensor(message.get_message(), begin_));
          model_.initializers.back().depth = depth;
          break;
        case bytes(proto::kGraphName):
          if (depth == 0)
            model_.graph_name = text(message);
          else
            message.skip();
          break;
        case bytes(proto::kGraphInput):
          read_value(message.get_message(), depth, model_.inputs);
          break;
        case bytes(proto::kGraphOutput):
          read_value(message.get_message(), depth, model_.outputs);
          break;
        case bytes(proto::kGraphValueInfo):
          read_value(message.get_message(), depth, model_.value_info);
          break;
        default:
          message.skip();
      }
    }
  }

  void read_value(pbf_reader message, int depth, std::vector<ValueSummary>& values) {
    ValueSummary value;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kValueInfoName):
          value.name = text(message);
          break;
        case bytes(proto::kValueInfoType):
          read_type(message.get_message(), value);
          break;
        default:
          message.skip();
      }
    }
    if (depth == 0) values.push_back(std::move(value));
  }

  static void read_type(pbf_reader message, ValueSummary& value) {
    while (message.next(proto::kTypeTensorType, protozero::pbf_wire_type::length_delimited)) {
      pbf_reader tensor = message.get_message();
      while (tensor.next()) {
        switch (tensor.tag_and_type()) {
          case varint(proto::kTensorTypeElem):
            value.elem_type = tensor.get_int32();
            value.dtype = elem_type_name(value.elem_type);
            break;
          case bytes(proto::kTensorTypeShape):
            value.shape = read_shape(tensor.get_message());
            break;
          default:
            tensor.skip();
        }
      }
    }
  }

  static std::vector<DimSummary> read_shape(pbf_reader message) {
    std::vector<DimSummary> shape;
    while (message.next(proto::kShapeDim, protozero::pbf_wire_type::length_delimited)) {
      pbf_reader dim = message.get_message();
      DimSummary& summary = shape.emplace_back();
      while (dim.next()) {
        switch (dim.tag_and_type()) {
          case varint(proto::kDimValue):
            summary.value = dim.get_int64();
            break;
          case bytes(proto::kDimParam):
            summary.name = text(dim);
            break;
          default:
            dim.skip();
        }
      }
    }
    return shape;
  }

  void read_node(pbf_reader message, int depth) {
    // By position: subgraphs append nodes of their own while this one is read.
    const std::size_t position = model_.nodes.size();
    model_.nodes.emplace_back().depth = depth;
    const auto node = [&]() -> NodeSummary& { return model_.nodes[position]; };
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kNodeInput):
          node().inputs.push_back(text(message));
          break;
        case bytes(proto::kNodeOutput):
          node().outputs.push_back(text(message));
          break;
        case bytes(proto::kNodeName):
          node().name = text(message);
          break;
        case bytes(proto::kNodeOpType):
          node().op = text(message);
          break;
        case bytes(proto::kNodeDomain):
          node().domain = text(message);
          break;
        case bytes(proto::kNodeAttribute): {
          auto attribute = read_attribute(message.get_message(), depth);
          node().attributes.push_back(std::move(attribute));
          break;
        }
        case bytes(proto::kNodeMetadata): {
          Entry entry = read_entry(message.get_message());
          if (entry.key == proto::kModuleKey)
            node().module = std::move(entry.value);
          else if (entry.key == proto::kSourceKey)
            node().source = std::move(entry.value);
          break;
        }
        default:
          message.skip();
      }
    }
    const NodeSummary& done = node();
    const bool is_default = done.domain.empty() || done.domain == "ai.onnx";
    ++model_.op_counts[is_default ? done.op : done.domain + "." + done.op];
  }

  std::pair<std::string, std::string> read_attribute(pbf_reader message, int depth) {
    std::string name;
    AttributeText value;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kAttributeName):
          name = text(message);
          break;
        case varint(proto::kAttributeType):
          value.set_type(message.get_int32());
          break;
        case varint(proto::kAttributeInt):
        case varint(proto::kAttributeInts):
          value.add(message.get_int64());
          break;
        case bytes(proto::kAttributeInts):  // packed
          for (const std::int64_t item : message.get_packed_int64()) value.add(item);
          break;
        case fixed32(proto::kAttributeFloat):
        case fixed32(proto::kAttributeFloats):
          value.add(message.get_float());
          break;
        case bytes(proto::kAttributeFloats):  // packed
          for (const float item : message.get_packed_float()) value.add(item);
          break;
        case bytes(proto::kAttributeString):
        case bytes(proto::kAttributeStrings):
          value.add(text(message));
          break;
        case bytes(proto::kAttributeTensor):
          value.add(read_tensor(message.get_message(), begin_));
          break;
        case bytes(proto::kAttributeGraph):
        case bytes(proto::kAttributeGraphs):
          read_graph(message.get_message(), depth + 1);
          value.add_graph();
          break;
        default:
          message.skip();
      }
    }
    return {std::move(name), value.finish()};
  }

  const char* begin_;
  std::size_t size_;
  ModelSummary model_;
};

}  // namespace

ModelSummary parse_model_summary(std::span<const std::byte> bytes, const std::string& name) {
  check_whole(bytes, name);
  return guarded(name, [&] { return SummaryReader(bytes).read(); });
}

}  // namespace fairlead::onnx
