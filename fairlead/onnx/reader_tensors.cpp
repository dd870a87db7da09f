// Tensors of ONNX files, and the initializers of one without the rest of it.
#include <charconv>
#include <limits>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/mapped_file.h"
#include "fairlead/onnx/proto_fields.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/onnx/reader_fields.h"
#include "fairlead/onnx/reader_impl.h"

namespace fairlead::onnx {
namespace {

std::int64_t number(const std::string& digits, const std::string& of) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0) {
    throw Malformed{"'" + digits + "' is no " + of};
  }
  return value;
}

// Graphs are walked for their initializers; nodes for the graphs in their attributes.
class InitializerWalk {
 public:
  InitializerWalk(const MappedFile& file,
                  const std::function<void(const InitializerSummary&)>& visit)
      : file_(file), begin_(reinterpret_cast<const char*>(file.bytes().data())), visit_(visit) {}

  void graph(pbf_reader message, int depth) const {
    if (depth > kMaxGraphDepth) throw Malformed{"graphs are nested too deeply"};
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kGraphNode):
          node(message.get_message(), depth);
          break;
        case bytes(proto::kGraphInitializer): {
          InitializerSummary tensor = read_tensor(message.get_message(), begin_);
          tensor.depth = depth;
          visit_(tensor);
          forget_before(message.data().data());
          break;
        }
        default:
          message.skip();
      }
    }
  }

 private:
  // A model may be as large as its weights, if they are inside.
  void forget_before(const char* at) const {
    const auto done = static_cast<std::size_t>(at - begin_);
    if (done < forgotten_ + kForgotten) return;
    file_.forget(done);
    forgotten_ = done;
  }

  void node(pbf_reader message, int depth) const {
    while (message.next(proto::kNodeAttribute, protozero::pbf_wire_type::length_delimited)) {
      pbf_reader attribute = message.get_message();
      while (attribute.next()) {
        switch (attribute.tag_and_type()) {
          case bytes(proto::kAttributeGraph):
          case bytes(proto::kAttributeGraphs):
            graph(attribute.get_message(), depth + 1);
            break;
          default:
            attribute.skip();
        }
      }
    }
  }

  static constexpr std::size_t kForgotten = 1 << 20;

  const MappedFile& file_;
  const char* begin_;
  const std::function<void(const InitializerSummary&)>& visit_;
  mutable std::size_t forgotten_ = 0;
};

}  // namespace

std::string text(pbf_reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

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

InitializerSummary read_tensor(pbf_reader message, const char* begin) {
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
        tensor.offset = raw.data() - begin;
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

void fail_parse(const std::string& name, const std::string& reason) {
  throw Error(ErrorCode::kParse, "[read_model_summary] Could not read '" + name +
                                     "': it is not an ONNX model (" + reason +
                                     "). Check that the file is whole and of this format.");
}

void check_whole(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) fail_parse(name, "it is empty");
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail_parse(name, "it is larger than the 2 GiB of protobuf");
  }
}

void visit_initializers(const std::string& path,
                        const std::function<void(const InitializerSummary&)>& visit) {
  const MappedFile file(path, "read_model_summary", "Check the path.");
  check_whole(file.bytes(), path);
  guarded(path, [&] {
    const auto* const begin = reinterpret_cast<const char*>(file.bytes().data());
    pbf_reader message(begin, file.bytes().size());
    while (message.next(proto::kModelGraph, protozero::pbf_wire_type::length_delimited)) {
      InitializerWalk(file, visit).graph(message.get_message(), 0);
    }
  });
}

}  // namespace fairlead::onnx
