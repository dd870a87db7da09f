// How many operators the functions of an ONNX file come to where each call is its body: functions that
// call each other several times are a kilobyte, and run without end.
#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/files/mapped_file.h"
#include "fairlead/onnx/proto_fields.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/onnx/reader_fields.h"

namespace fairlead::onnx {
namespace {

constexpr std::int64_t kAlways = 100'000;  // operators that any file may come to
constexpr std::int64_t kTimes = 100;       // and for each that stands in it
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2;

// A graph or a function: how many nodes stand in it, and what they may call.
struct Body {
  std::int64_t nodes = 0;
  std::unordered_map<std::string, std::int64_t> calls;
  std::int64_t total = -1;  // operators that it comes to; -1: not known yet
  bool entered = false;
};

std::string called(const std::string& domain, const std::string& name) {
  return (domain == "ai.onnx" ? "" : domain) + "\n" + name;
}

void read_body(pbf_reader message, std::uint32_t node_field, int depth, Body& body);

void read_node(pbf_reader message, int depth, Body& body) {
  std::string domain;
  std::string name;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes(proto::kNodeOpType):
        name = text(message);
        break;
      case bytes(proto::kNodeDomain):
        domain = text(message);
        break;
      case bytes(proto::kNodeAttribute): {
        pbf_reader attribute = message.get_message();
        while (attribute.next()) {
          const auto tag = attribute.tag_and_type();
          if (tag == bytes(proto::kAttributeGraph) || tag == bytes(proto::kAttributeGraphs)) {
            read_body(attribute.get_message(), proto::kGraphNode, depth + 1, body);
          } else {
            attribute.skip();
          }
        }
        break;
      }
      default:
        message.skip();
    }
  }
  ++body.nodes;
  ++body.calls[called(domain, name)];
}

void read_body(pbf_reader message, std::uint32_t node_field, int depth, Body& body) {
  if (depth > kMaxGraphDepth) throw Malformed{"graphs are nested too deeply"};
  while (message.next()) {
    if (message.tag_and_type() == bytes(node_field)) {
      read_node(message.get_message(), depth, body);
    } else {
      message.skip();
    }
  }
}

class Functions {
 public:
  explicit Functions(std::span<const std::byte> all) {
    pbf_reader message(reinterpret_cast<const char*>(all.data()), all.size());
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kModelGraph):
          read_body(message.get_message(), proto::kGraphNode, 0, graph_);
          break;
        case bytes(proto::kModelFunctions):
          read_function(message.get_message());
          break;
        default:
          message.skip();
      }
    }
  }

  void check() {
    if (functions_.empty()) return;
    std::int64_t nodes = graph_.nodes;
    for (const auto& [name, body] : functions_) nodes += body.nodes;
    if (total(graph_) > kAlways + kTimes * nodes) {
      throw Malformed{"the functions in it call each other so often that its " +
                      std::to_string(nodes) + " operators come to more than " +
                      std::to_string(kAlways + kTimes * nodes)};
    }
  }

 private:
  void read_function(pbf_reader message) {
    pbf_reader again = message;
    std::string name;
    std::string domain;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(proto::kFunctionName):
          name = text(message);
          break;
        case bytes(proto::kFunctionDomain):
          domain = text(message);
          break;
        default:
          message.skip();
      }
    }
    read_body(again, proto::kFunctionNode, 0, functions_[called(domain, name)]);
  }

  // Without recursion: a chain of functions may be as long as the file. A function that calls itself
  // counts nothing; ONNX Runtime refuses it.
  std::int64_t total(Body& root) {
    std::vector<Body*> open{&root};
    while (!open.empty()) {
      Body& body = *open.back();
      if (body.total >= 0) {
        open.pop_back();
        continue;
      }
      if (!body.entered) {
        body.entered = true;
        for (const auto& [name, times] : body.calls) {
          const auto it = functions_.find(name);
          if (it != functions_.end() && !it->second.entered) open.push_back(&it->second);
        }
        continue;
      }
      std::int64_t sum = body.nodes;
      for (const auto& [name, times] : body.calls) {
        const auto it = functions_.find(name);
        const std::int64_t each =
            it == functions_.end() ? 0 : std::max<std::int64_t>(0, it->second.total);
        sum = each > kMost / times ? kMost : std::min(kMost, sum + each * times);
        if (sum == kMost) break;
      }
      body.total = sum;
      open.pop_back();
    }
    return root.total;
  }

  Body graph_;
  std::unordered_map<std::string, Body> functions_;
};

}  // namespace

void check_functions(std::span<const std::byte> bytes, const std::string& name) {
  check_whole(bytes, name);
  guarded(name, [&] { Functions(bytes).check(); });
}

void check_functions(const std::string& path) {
  const MappedFile file(path, "check_functions", "Check the path.");
  check_functions(file.bytes(), path);
}

}  // namespace fairlead::onnx
