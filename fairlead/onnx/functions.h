// Repeated modules as functions of the file: what they compute stands there once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

// Computed where a node has its name and domain. Tensors are of the model, under names of its own.
struct Function {
  std::string name;  // "LlamaDecoderLayer"
  std::string domain;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<Node> nodes;
  std::string modules;  // that are calls of it: "model.layers.*"
  std::int64_t calls = 0;
};

// Modules of one list (model.layers.0, model.layers.1) whose nodes compute the same of their inputs
// become calls of one function; weights are inputs of it. Nodes of a module that the others do not
// have (sizes that the first layer computes for all) stay before the call. `classes` names modules
// by their paths.
[[nodiscard]] std::vector<Function> fold_functions(
    Model& model, const std::map<std::string, std::string>& classes);

}  // namespace fairlead::onnx
