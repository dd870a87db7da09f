// Initializers under the names of inputs: the format's way to say that an input has a default.
#include "fairlead/onnx/default_inputs.h"

#include <memory>
#include <unordered_map>

#include "fairlead/base/error.h"

namespace fairlead::onnx {

void default_inputs(Model& model, const std::vector<std::string>& names) {
  std::unordered_map<std::string, TensorId> inputs;
  for (const TensorId id : model.graph.inputs) {
    inputs.emplace(model.tensors[static_cast<std::size_t>(id)].name, id);
  }
  for (const std::string& name : names) {
    const auto found = inputs.find(name);
    if (found == inputs.end()) {
      throw Error(ErrorCode::kInvalidInput,
                  "[default_inputs] Expected the name of an input, got '" + name +
                      "', which the model does not have.");
    }
    const TensorInfo& info = model.tensors[static_cast<std::size_t>(found->second)];
    Initializer initializer;
    initializer.tensor = found->second;
    initializer.data.dtype = info.dtype;
    bool empty = false;
    for (const Expr size : info.shape.value_or(std::vector<Expr>{})) {
      initializer.data.dims.push_back(is_const(size) ? size->value : 0);
      empty = empty || !is_const(size);
    }
    if (!empty) {
      throw Error(ErrorCode::kInvalidInput,
                  "[default_inputs] Expected an input with a size that "
                  "varies, got '" +
                      name + "', whose sizes are all fixed.");
    }
    initializer.data.owned = std::make_shared<const std::vector<std::byte>>();
    model.graph.initializers.push_back(std::move(initializer));
  }
}

}  // namespace fairlead::onnx
