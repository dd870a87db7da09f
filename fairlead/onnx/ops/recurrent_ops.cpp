// Recurrent layers.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

// Rows of a weight or bias stand gate by gate: PyTorch's order -> ONNX's order.
//   LSTM: input, forget, cell, output -> input, output, forget, cell
//   GRU:  reset, update, new          -> update, reset, new
struct Cell {
  std::string_view op;
  std::vector<std::size_t> order;
  std::string_view activation = {};
};

Val reorder(Lowering& b, Val v, const Cell& cell, std::int64_t hidden) {
  if (cell.order.size() == 1) return v;
  const Ints sizes(cell.order.size(), hidden);
  const std::vector<Dtype> dtypes(cell.order.size(), b.dtype_of(v));
  const Inputs gates = b.ops("Split", {v, b.ints(sizes)}, dtypes, {attr("axis", 0)});
  Inputs moved;
  for (const std::size_t k : cell.order) moved.push_back(gates[k]);
  return b.concat(moved, 0);
}

// aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers,
// float dropout,
//   bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
// aten::gru.input(Tensor input, Tensor hx, Tensor[] params, ...) -> (Tensor, Tensor); rnn_tanh,
// rnn_relu alike
//
// One ONNX node per layer, both directions in it. The directions' results stand side by side in the
// next layer's input; the last states of all layers are stacked.
void recurrent(Lowering& b, const Cell& cell) {
  const bool lstm = cell.op == "LSTM";
  if (b.node().args.at(2).kind != ArgKind::kList) {
    b.unsupported("packed sequences; pass padded sequences to the layer");
  }
  const std::size_t layers = b.place(4, std::size_t{1} << 16);
  const std::size_t directions = b.flag(7) ? 2 : 1;
  const bool biases = b.flag(3), batch_first = b.flag(8);
  if (b.flag(6) && b.number(5) > 0)
    b.unsupported("dropout between layers; call model.eval() first");
  // ONNX Runtime crashes while it optimises a recurrent layer in float16: 16-bit ones compute in
  // float32.
  const Dtype d =
      dtype_size(b.out_dtype()) == 2 ? Dtype::kFloat32 : kernel_dtype(cell.op, b.out_dtype());
  Inputs params = b.ins(2);
  for (Val& v : params) v = b.cast(v, d);
  const std::size_t each = biases ? 4 : 2;
  if (params.size() != layers * directions * each) b.unsupported("projections (proj_size)");

  Inputs states = lstm ? b.ins(1) : Inputs{b.in(1)};
  for (Val& v : states) v = b.cast(v, d);
  const Shape& input = b.shape(0);
  const Expr sequence = input[batch_first ? 1 : 0], batch = input[batch_first ? 0 : 1];
  const Expr width = b.graph().values[b.node().args[2].items[1].value].shape[1];
  if (!is_const(width)) b.unsupported("a hidden size that varies");
  const std::int64_t hidden = width->value;
  const Expr both = b.expr(hidden * static_cast<std::int64_t>(directions));

  Val x = b.in(0, d);
  if (batch_first) x = b.transpose(x, {1, 0, 2});
  Inputs last_h, last_c;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    Inputs w, r, bias;
    for (std::size_t k = 0; k < directions; ++k) {
      const std::size_t at = (layer * directions + k) * each;
      w.push_back(b.unsqueeze(reorder(b, b.cast(params[at], d), cell, hidden), {0}));
      r.push_back(b.unsqueeze(reorder(b, b.cast(params[at + 1], d), cell, hidden), {0}));
      if (!biases) continue;
      const Val joined = b.concat({reorder(b, b.cast(params[at + 2], d), cell, hidden),
                                   reorder(b, b.cast(params[at + 3], d), cell, hidden)},
                                  0);
      bias.push_back(b.unsqueeze(joined, {0}));
    }
    Inputs inputs = {x, b.concat(w, 0), b.concat(r, 0), biases ? b.concat(bias, 0) : Val{}, {}};
    const Expr first = b.expr(static_cast<std::int64_t>(layer * directions));
    const Expr end = b.expr(static_cast<std::int64_t>((layer + 1) * directions));
    for (const Val state : states) {
      const Val s = b.cast(state, d);
      inputs.push_back(layers == 1 ? s : b.slice(s, 0, b.dim(first), b.dim(end)));
    }
    Attributes attributes = {attr("hidden_size", hidden),
                             attr("direction", directions == 2 ? "bidirectional" : "forward")};
    if (cell.op == "GRU") attributes.push_back(attr("linear_before_reset", 1));
    if (!cell.activation.empty()) {
      attributes.push_back(
          {"activations", std::vector<std::string>(directions, std::string(cell.activation))});
    }
    const std::vector<Dtype> dtypes(lstm ? 3 : 2, d);
    const Inputs out = b.ops(cell.op, inputs, dtypes, std::move(attributes));
    // [sequence, directions, batch, hidden] -> [sequence, batch, directions*hidden]
    if (directions == 1) {
      x = b.squeeze(out[0], {1});
    } else {
      x = b.reshape(b.transpose(out[0], {0, 2, 1, 3}), {sequence, batch, b.expr(2), width},
                    {sequence, batch, both});
    }
    last_h.push_back(out[1]);
    if (lstm) last_c.push_back(out[2]);
  }
  b.result(0, batch_first ? b.transpose(x, {1, 0, 2}) : x);
  b.result(1, b.concat(last_h, 0));
  if (lstm) b.result(2, b.concat(last_c, 0));
}

void lower_lstm(Lowering& b) { recurrent(b, {"LSTM", {0, 3, 1, 2}}); }
void lower_gru(Lowering& b) { recurrent(b, {"GRU", {1, 0, 2}}); }
void lower_rnn_tanh(Lowering& b) { recurrent(b, {"RNN", {0}}); }
void lower_rnn_relu(Lowering& b) { recurrent(b, {"RNN", {0}, "Relu"}); }

constexpr OpRow kRows[] = {
    {"aten.gru.input", lower_gru, "GRU", "no packed sequences"},
    {"aten.lstm.input", lower_lstm, "LSTM", "no packed sequences, no projections"},
    {"aten.rnn_relu.input", lower_rnn_relu, "RNN",
     "no packed sequences; float64 computes in float32"},
    {"aten.rnn_tanh.input", lower_rnn_tanh, "RNN",
     "no packed sequences; float64 computes in float32"},
};

}  // namespace

std::span<const OpRow> recurrent_ops() { return kRows; }

}  // namespace fairlead::onnx
