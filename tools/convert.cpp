// fairlead-convert program.pt2 model.onnx: an exported program to ONNX with no Python on the
// machine.
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/onnx/writer.h"
#include "fairlead/passes/passes.h"
#include "fairlead/pt2/import.h"

namespace {

constexpr std::string_view kHelp =
    R"(Usage: fairlead-convert [options] PROGRAM.pt2 [MODEL.onnx]

Converts a program that torch.export.save wrote to ONNX. Needs no Python and no PyTorch.
MODEL.onnx is PROGRAM.onnx by default. What is written is not run: `fairlead convert` in Python also
compares it with the program.

Options:
  --opset N                          ONNX opset, 18 to 26 (default 20)
  --external-data auto|always|never  whether weights go to a .data file (default auto)
  --text                             print the graph and write nothing
  --quiet                            print nothing but errors
  --version                          print the version
  -h, --help                         print this

Example:
  fairlead-convert program.pt2 model.onnx --opset 21

Exit codes: 0 done, 1 the program cannot be converted, 2 usage.
)";

constexpr int kSmallestOpset = fairlead::onnx::kSmallestOpset;

struct Usage {
  std::string sentence;
};

struct Request {
  std::string program, model;
  int opset = 20;
  fairlead::onnx::ExternalData external = fairlead::onnx::ExternalData::kAuto;
  bool text = false, quiet = false, help = false, version = false;
};

Request parse(const std::vector<std::string_view>& words) {
  Request request;
  std::vector<std::string> paths;
  for (std::size_t k = 0; k < words.size(); ++k) {
    std::string_view word = words[k];
    std::string_view given;
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const bool joined = equals != std::string_view::npos;
    if (joined) {
      given = word.substr(equals + 1);
      word = word.substr(0, equals);
    }
    const auto value = [&] {
      if (joined) return given;
      if (k + 1 == words.size()) throw Usage{"Expected a value after " + std::string(word)};
      return words[++k];
    };
    if (word == "-h" || word == "--help") {
      request.help = true;
    } else if (word == "--version") {
      request.version = true;
    } else if (word == "--text") {
      request.text = true;
    } else if (word == "--quiet") {
      request.quiet = true;
    } else if (word == "--opset") {
      const std::string_view text = value();
      const int newest = fairlead::RuntimeProfile{}.newest_opset();
      const auto [end, status] =
          std::from_chars(text.data(), text.data() + text.size(), request.opset);
      if (status != std::errc() || end != text.data() + text.size() ||
          request.opset < kSmallestOpset || request.opset > newest) {
        throw Usage{"Expected an opset from 18 to " + std::to_string(newest) + ", got '" +
                    std::string(text) + "'"};
      }
    } else if (word == "--external-data") {
      const std::string_view mode = value();
      using fairlead::onnx::ExternalData;
      if (mode == "auto") {
        request.external = ExternalData::kAuto;
      } else if (mode == "always") {
        request.external = ExternalData::kAlways;
      } else if (mode == "never") {
        request.external = ExternalData::kNever;
      } else {
        throw Usage{"Expected --external-data auto, always or never, got '" + std::string(mode) +
                    "'"};
      }
    } else if (word.size() > 1 && word.starts_with('-')) {
      throw Usage{"Expected an option that --help lists, got '" + std::string(word) + "'"};
    } else {
      paths.emplace_back(word);
    }
  }
  if (request.help || request.version) return request;
  if (paths.empty() || paths.size() > 2) {
    throw Usage{"Expected a program and a model, got " + std::to_string(paths.size()) + " names"};
  }
  request.program = paths[0];
  if (paths.size() == 2) {
    request.model = paths[1];
  } else {
    request.model = paths[0].ends_with(".pt2") ? paths[0].substr(0, paths[0].size() - 4) : paths[0];
    request.model += ".onnx";
  }
  return request;
}

void convert(const Request& request) {
  fairlead::pt2::Imported imported = fairlead::pt2::read_pt2(request.program);
  fairlead::Graph& graph = imported.program.graph;
  fairlead::Target target;
  target.opset = request.opset;
  fairlead::run_passes(graph, target);
  if (request.text) {
    std::fputs(to_text(graph).c_str(), stdout);
    return;
  }
  fairlead::onnx::LowerOptions options;
  options.opset = request.opset;
  fairlead::onnx::Model model = fairlead::onnx::lower_graph(graph, options);
  model.producer_version = FAIRLEAD_VERSION;
  model.metadata.emplace_back("fairlead.contract", fairlead::pt2::contract(imported));
  model.metadata.emplace_back("fairlead.checked", "not verified");
  fairlead::onnx::StagedModel staged =
      fairlead::onnx::write_model(model, request.model, request.external);
  staged.commit();
  if (request.quiet) return;
  std::printf("%s\n%s: %zu nodes, opset %d, not verified\n",
              fairlead::pt2::contract(imported).c_str(), request.model.c_str(),
              model.graph.nodes.size(), request.opset);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Request request = parse({argv + 1, argv + argc});
    if (request.help) {
      std::fputs(kHelp.data(), stdout);
    } else if (request.version) {
      std::puts("fairlead-convert " FAIRLEAD_VERSION);
    } else {
      convert(request);
    }
    return 0;
  } catch (const Usage& usage) {
    std::fprintf(stderr, "fairlead-convert: %s. See fairlead-convert --help.\n",
                 usage.sentence.c_str());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fairlead-convert: %s\n", error.what());
    return 1;
  }
}
