// ModelProto to summary, by protozero. Every field is matched by number and wire type together, and
// protozero checks each length against what is left, so that no bytes can lead out of the buffer.
#include "fairlead/onnx/reader.h"

#include <charconv>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <string_view>

#include "fairlead/base/dtype.h"
#include "fairlead/base/error.h"
#include "fairlead/onnx/proto_fields.h"
#include "fairlead/onnx/reader_impl.h"

namespace fairlead::onnx {
namespace {

using protozero::pbf_reader;

constexpr int kMaxDepth = 64;  // of graphs in graphs: a limit of ours, far above any model

constexpr std::uint32_t varint(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t fixed32(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed32);
}
constexpr std::uint32_t bytes(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

// What is wrong with the bytes; caught at the top, where the name of the file is known.
struct Malformed {
  std::string what;
};

std::string text(pbf_reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

std::int64_t number(const std::string& digits, const std::string& of) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0) {
    throw Malformed{"'" + digits + "' is no " + of};
  }
  return value;
}

struct Entry {
  std::string key;
  std::string value;
};

Entry read_entry(pbf_reader message) {
  Entry entry;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes(proto::kEntryKey):
        entry.key = text(message);
        break;
      case bytes(proto::kEntryValue):
        entry.value = text(message);
        break;
      default:
        message.skip();
    }
  }
  return entry;
}

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
    if (depth > kMaxDepth) throw Malformed{"graphs are nested too deeply"};
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kGraphNode):
          read_node(message.get_message(), depth);
          break;
        case bytes(proto::kGraphInitializer):
          model_.initializers.push_back(read_tensor(message.get_message()));
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
          value.add(read_tensor(message.get_message()));
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

  InitializerSummary read_tensor(pbf_reader message) const {
    InitializerSummary tensor;
    std::optional<std::int64_t> raw_bytes;
    std::int64_t string_bytes = 0;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(proto::kTensorDims):
          tensor.dims.push_back(message.get_int64());
          break;
        case bytes(proto::kTensorDims):  // packed
          for (const std::int64_t dim : message.get_packed_int64()) tensor.dims.push_back(dim);
          break;
        case varint(proto::kTensorDataType):
          tensor.elem_type = message.get_int32();
          tensor.dtype = elem_type_name(tensor.elem_type);
          break;
        case bytes(proto::kTensorName):
          tensor.name = text(message);
          break;
        case bytes(proto::kTensorRawData): {
          const protozero::data_view raw = message.get_view();
          raw_bytes = static_cast<std::int64_t>(raw.size());
          tensor.offset = raw.data() - begin_;
          break;
        }
        case bytes(proto::kTensorStringData):
          string_bytes += static_cast<std::int64_t>(message.get_view().size());
          break;
        case bytes(proto::kTensorExternalData): {
          const Entry entry = read_entry(message.get_message());
          if (entry.key == "location") tensor.location = entry.value;
          if (entry.key == "offset") tensor.offset = number(entry.value, "offset");
          if (entry.key == "length") tensor.length = number(entry.value, "length");
          break;
        }
        case varint(proto::kTensorDataLocation):
          tensor.external = message.get_int32() == proto::kLocationExternal;
          break;
        default:
          message.skip();
      }
    }
    const std::optional<std::int64_t> implied = elements_bytes(tensor.elem_type, tensor.dims);
    if (!implied) throw Malformed{"tensor '" + tensor.name + "' has impossible dims"};
    if (tensor.external) {
      tensor.bytes = tensor.length > 0 ? tensor.length : *implied;
    } else {
      tensor.length = raw_bytes.value_or(0);
      tensor.bytes = raw_bytes.value_or(string_bytes > 0 ? string_bytes : *implied);
    }
    return tensor;
  }

  const char* begin_;
  std::size_t size_;
  ModelSummary model_;
};

[[noreturn]] void fail_parse(const std::string& name, const std::string& reason) {
  throw Error(ErrorCode::kParse, "[read_model_summary] Could not read '" + name +
                                     "': it is not an ONNX model (" + reason +
                                     "). Check that the file is whole and of this format.");
}

}  // namespace

ModelSummary parse_model_summary(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) fail_parse(name, "it is empty");
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail_parse(name, "it is larger than the 2 GiB of protobuf");
  }
  try {
    return SummaryReader(bytes).read();
  } catch (const Malformed& malformed) {
    fail_parse(name, malformed.what);
  } catch (const protozero::end_of_buffer_exception&) {
    fail_parse(name, "the bytes end inside a field");
  } catch (const protozero::exception& error) {
    fail_parse(name, error.what());
  }
}

}  // namespace fairlead::onnx
