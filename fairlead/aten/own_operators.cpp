// Control flow, operators of other libraries, and those that only Fairlead has.
#include "fairlead/aten/operators_impl.h"

namespace fairlead {
namespace {

// clang-format off
constexpr OwnOperator kRows[] = {
    {"higher_order.cond",       {.bodies = 2, .first_list = 1}},
    {"higher_order.while_loop", {.bodies = 2, .lists = 1, .carries = true, .tests = true}},
    {"higher_order.scan",       {.bodies = 1, .lists = 2, .carries = true}},
    {"higher_order.map_impl",   {.bodies = 1, .lists = 1}},
    // Regions of a program that only set a mode.
    {"higher_order.wrap_with_set_grad_enabled"},
    {"higher_order.wrap_with_autocast"},
    {"higher_order.invoke_subgraph"},
    // A Python loop: (steps, carried...), and what it is in a recorded run.
    {"fairlead.loop",           {.bodies = 1, .first_list = 1, .lists = 1, .carries = true, .counts = true}},
    {"fairlead.require"},
    {"fairlead.tensor"},
    {"fairlead.tolist"},
    {"quantized_decomposed.dequantize_per_channel.default"},
    {"quantized_decomposed.dequantize_per_tensor.default"},
    {"quantized_decomposed.dequantize_per_tensor.tensor"},
    {"quantized_decomposed.dequantize_per_tensor.tensor2"},
    {"quantized_decomposed.dequantize_per_channel_group.default"},
    {"quantized_decomposed.dequantize_per_token.default"},
    {"quantized_decomposed.quantize_per_channel.default"},
    {"quantized_decomposed.quantize_per_tensor.default"},
    {"torchvision.deform_conv2d.default"},
    {"torchvision.nms.default"},
    {"torchvision.roi_align.default"},
    {"transformers.grouped_mm_fallback.default"},
    // What fusions (passes/fusion.h) write; fused_ops.cpp says what they take.
    {"onnxruntime.bias_gelu"},
    {"onnxruntime.fast_gelu"},
    {"onnxruntime.group_query_attention"},
    {"onnxruntime.moe"},
    {"onnxruntime.multi_head_attention"},
    {"onnxruntime.quick_gelu"},
    {"onnxruntime.rms_norm"},
    {"onnxruntime.rotary_embedding"},
    {"onnxruntime.skip_rms_norm"},
    {"onnxruntime.sum"},
};
// clang-format on

}  // namespace

std::span<const OwnOperator> own_operators() { return kRows; }

}  // namespace fairlead
