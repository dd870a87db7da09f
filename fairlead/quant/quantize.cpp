// Which weights are packed, and why others stay.
#include "fairlead/quant/quantize.h"

#include <cmath>
#include <string>
#include <unordered_set>

#include "fairlead/base/error.h"
#include "fairlead/quant/experts.h"
#include "fairlead/quant/matrices.h"

namespace fairlead::quant {
namespace {

// Why it stays as it is; nothing where it does not.
std::string reason(const Weight& weight, const Matrix& matrix, const Options& options) {
  const bool is_head = weight.gives_output || !weight.lookups.empty();
  if (!weight.can_be_packed()) return "it is read in other ways too";
  if (is_head && !options.head) return "the head was to stay";
  if (matrix.columns < options.format.block) return "its rows are shorter than a block";
  if (!weight.lookups.empty() && !options.contrib) {
    return "a lookup of rows needs operators of ONNX Runtime";
  }
  if (!weight.lookups.empty() && matrix.columns % options.format.block != 0) {
    return "a lookup takes whole blocks";
  }
  if (!options.contrib && matrix.columns % options.format.block != 0) {
    return "DequantizeLinear takes whole blocks";
  }
  return "";
}

}  // namespace

std::string reason(const Packed& packed) {
  if (!std::isfinite(packed.squared_size)) return "it has weights that are not finite";
  if (!std::isfinite(packed.squared_error)) return "its weights are too large";
  return "";
}

Report quantize(onnx::Model& model, const Options& options) {
  check_format(options.format);
  if (!options.contrib && model.opset < 21) {
    throw Error(ErrorCode::kInvalidInput,
                "[quantize] Expected opset 21 or newer for blocks in standard operators, got " +
                    std::to_string(model.opset) + ".");
  }
  refuse_quantized(model);
  Report report;
  const std::unordered_set<onnx::TensorId> told = quantize_experts(model, options, report);
  Matrices matrices(model);
  for (auto& [tensor, weight] : matrices.weights()) {
    if (weight.products.empty() && weight.lookups.empty())
      continue;  // nothing that could be packed
    const Matrix matrix = matrices.floats(weight);
    const std::string name = matrices.name(tensor);
    if (const std::string why = reason(weight, matrix, options); !why.empty()) {
      report.kept.emplace_back(name, why);
      continue;
    }
    const Packed packed = pack(matrix, options.format, options.threads);
    if (const std::string why = reason(packed); !why.empty()) {
      report.kept.emplace_back(name, why);
      continue;
    }
    report.layers.push_back({name, matrix.rows, matrix.columns, packed.relative_error()});
    report.bytes_before += matrix.rows * matrix.columns * std::int64_t{sizeof(float)};
    if (options.contrib) {
      matrices.pack_for_onnxruntime(tensor, weight, packed, options.format,
                                    options.int8_activations);
    } else {
      matrices.pack_in_standard_operators(tensor, weight, packed, options.format);
    }
  }
  // Convolutions, and experts that a loop takes one by one.
  for (const onnx::Initializer& each : model.graph.initializers) {
    if (each.data.dtype == Dtype::kFloat32 && each.data.dims.size() > 2 &&
        !told.contains(each.tensor)) {
      report.kept.emplace_back(matrices.name(each.tensor),
                               "it is not the matrix of a linear layer");
    }
  }
  if (report.layers.empty()) {
    throw Error(ErrorCode::kInvalidInput,
                "[quantize] Expected a model with linear layers of float32 weights, got none" +
                    (report.kept.empty() ? std::string(".")
                                         : ": " + report.kept.front().first + " stays because " +
                                               report.kept.front().second + ".") +
                    " Export it without quantize.");
  }
  report.bytes_after += matrices.bytes_added();
  matrices.finish();
  return report;
}

}  // namespace fairlead::quant
