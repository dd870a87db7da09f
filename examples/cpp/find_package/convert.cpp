// A program of torch.export becomes an ONNX file, with a pass and a lowering of one's own:
//   build/convert program.pt2 model.onnx
#include <fairlead/fairlead.h>

#include <iostream>

using namespace fairlead;

// x * sigmoid(1.702 x)
void lower_quick_gelu(onnx::Lowering& b) {
  const onnx::Val x = b.in(0);
  const onnx::Val scaled = b.op("Mul", {x, b.scalar(1.702, b.dtype(0))});
  b.result(b.op("Mul", {x, b.op("Sigmoid", {scaled})}));
}

std::size_t use_quick_gelu(Graph& graph) {
  const Pattern gelu = call(Op::gelu, {any(0)});
  return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) {
    const auto found = rewriter.match(gelu, node);
    if (found) rewriter.become(node, "example.quick_gelu.default", {found->arg(0)});
    return found.has_value();
  });
}

int main(int argc, char** argv) try {
  if (argc != 3) throw Error(ErrorCode::kInvalidInput, "Usage: convert program.pt2 model.onnx");
  onnx::register_op({"example.quick_gelu.default", lower_quick_gelu, "Mul, Sigmoid", ""});
  const Pass own[] = {{"use_quick_gelu", "no gelu is left", use_quick_gelu}};
  pt2::Imported read = pt2::read_pt2(argv[1]);
  run_passes(read.program.graph, Target{}, own);
  const onnx::Model model = onnx::lower_graph(read.program.graph, {});
  onnx::write_model(model, argv[2]).commit();
  for (const onnx::Node& node : model.graph.nodes) std::cout << node.op << ' ';
  std::cout << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
