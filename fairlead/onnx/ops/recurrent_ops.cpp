// Recurrent layers.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"
#include "fairlead/onnx/ops/packed_forms.h"

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

// Where an overload keeps its arguments.
// aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers,
//   float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
// aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases,
//   int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)
// aten::gru.input(Tensor input, Tensor hx, Tensor[] params, ...) -> (Tensor, Tensor), and
// rnn_tanh, rnn_relu, alike
struct Places {
  bool packed;
  [[nodiscard]] std::size_t of(std::size_t in_padded) const { return in_padded + (packed ? 1 : 0); }
};

// The gates of one direction: W, R and the sum of both biases.
struct Weights {
  Val w, r, bias, projection;
  std::int64_t hidden = 0;
};

struct Direction {
  Val y, h, c;  // [steps, sequences, width] and the last states [1, sequences, width]
};

// An LSTM whose state is projected, which ONNX has not: a Scan of its formulas. `there` [steps,
// sequences, 1] is present where sequences end at different steps: beyond its end a state stays.
Direction projected(Lowering& b, Val x, const Weights& weights, Val h, Val c, bool backwards,
                    Val there) {
  const Dtype d = b.dtype_of(x);
  Val gates = b.op("MatMul", {x, b.transpose(weights.w, {1, 0})});
  if (weights.bias.present()) gates = b.op("Add", {gates, weights.bias});
  // A Scan's runtime has to know ranks, and those of what was unpacked it does not.
  if (there.present()) gates = b.op("Reshape", {gates, b.ints({0, 0, 4 * weights.hidden})});
  const Val recurrence = b.transpose(weights.r, {1, 0});
  const Val projection = b.transpose(weights.projection, {1, 0});
  std::vector<TensorInfo> parameters(3, {"", d, std::nullopt});
  if (there.present()) parameters.push_back({"", Dtype::kBool, std::nullopt});
  const auto body = b.body(parameters, [&](const Inputs& in) -> Inputs {
    const Val sum = b.op("Add", {in[2], b.op("MatMul", {in[0], recurrence})});
    const Inputs part =
        b.ops("Split", {sum}, {d, d, d, d}, {attr("axis", -1), attr("num_outputs", 4)});
    const Val taken = b.op("Mul", {b.op("Sigmoid", {part[0]}), b.op("Tanh", {part[2]})});
    const Val cell = b.op("Add", {b.op("Mul", {b.op("Sigmoid", {part[1]}), in[1]}), taken});
    const Val shown = b.op("Mul", {b.op("Sigmoid", {part[3]}), b.op("Tanh", {cell})});
    const Val state = b.op("MatMul", {shown, projection});
    if (in.size() == 3) return {state, cell, state};
    const auto kept = [&](Val now, Val before) { return b.op("Where", {in[3], now, before}); };
    return {kept(state, in[0]), kept(cell, in[1]), state};
  });
  Inputs scanned = {b.squeeze(h, {0}), b.squeeze(c, {0}), gates};
  if (there.present()) scanned.push_back(there);
  const std::int64_t way = backwards ? 1 : 0;
  const std::vector<std::int64_t> ways(scanned.size() - 2, way);
  const Inputs out = b.ops("Scan", scanned, {d, d, d},
                           {attr("num_scan_inputs", static_cast<std::int64_t>(ways.size())),
                            {"body", body},
                            attr("scan_input_directions", ways),
                            attr("scan_output_directions", std::vector<std::int64_t>{way})});
  return {out[2], b.unsqueeze(out[0], {0}), b.unsqueeze(out[1], {0})};
}

// One ONNX node per layer, both directions in it. The directions' results stand side by side in the
// next layer's input; the last states of all layers are stacked. Packed sequences are unpacked
// before and packed again after, and ONNX's own lengths say where each of them ends.
void recurrent(Lowering& b, const Cell& cell, Places at) {
  const bool lstm = cell.op == "LSTM";
  const std::size_t layers = b.place(at.of(4), std::size_t{1} << 16);
  const std::size_t directions = b.flag(at.of(7)) ? 2 : 1;
  const bool biases = b.flag(at.of(3)), batch_first = !at.packed && b.flag(8);
  if (b.flag(at.of(6)) && b.number(at.of(5)) > 0)
    b.unsupported("dropout between layers; call model.eval() first");
  const bool half = dtype_size(b.out_dtype()) == 2 && b.avoids(Fault::kHalfRecurrence);
  const Dtype d = half ? Dtype::kFloat32 : b.kernel_dtype(cell.op, b.out_dtype());
  Inputs params = b.ins(at.of(2));
  for (Val& v : params) v = b.cast(v, d);
  const std::size_t plain = biases ? 4 : 2;
  const bool projects = params.size() == layers * directions * (plain + 1);
  const std::size_t each = projects ? plain + 1 : plain;

  Inputs states = lstm ? b.ins(at.of(1)) : Inputs{b.in(at.of(1))};
  for (Val& v : states) v = b.cast(v, d);
  const Arg& first_weight = b.node().args[at.of(2)].items[0];
  const Expr gates = b.graph().values[first_weight.value].shape[0];
  if (!is_const(gates)) b.must_be_constant("the hidden size", gates);
  const std::int64_t hidden = gates->value / static_cast<std::int64_t>(cell.order.size());

  Val x = b.in(0, d);
  Packing packing;
  if (at.packed) {
    packing = packing_of(b, b.in(1, Dtype::kInt64));
    x = unpack(b, packing, x, packing.steps, 0);
  } else if (const Expr steps = b.pool().mul(b.shape(0)[0], b.shape(0)[1]);
             !is_const(steps) && b.avoids(Fault::kRecurrenceOfNothing)) {
    const Val zero = b.zero_where(b.pool().min(steps, b.expr(1)),
                                  "the sequences of a recurrent layer have at least 1 step");
    x = b.op("Reshape", {x, b.op("Add", {b.ints({0, 0, 0}), zero})});
  }
  if (batch_first) x = b.transpose(x, {1, 0, 2});
  const Val lengths = at.packed ? b.cast(packing.lengths, Dtype::kInt32) : Val{};
  Val there;
  if (projects && at.packed) {
    const Val each = b.op("Range", {b.size_scalar(b.expr(0)), b.squeeze(packing.steps, {0}),
                                    b.size_scalar(b.expr(1))});
    there = b.op("Less", {b.unsqueeze(each, {1, 2}), b.unsqueeze(packing.lengths, {0, 2})});
  }
  const auto state_of = [&](Val state, std::size_t first, std::size_t count) {
    if (layers * directions == count) return state;
    const auto place = [&](std::size_t k) { return b.ints({static_cast<std::int64_t>(k)}); };
    return b.slice(state, 0, place(first), place(first + count));
  };
  Inputs last_h, last_c;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::size_t first = layer * directions;
    if (projects) {
      Inputs ys;
      for (std::size_t k = 0; k < directions; ++k) {
        const std::size_t p = (first + k) * each;
        Weights weights = {params[p], params[p + 1], {}, params[p + each - 1]};
        weights.hidden = hidden;
        if (biases) weights.bias = b.op("Add", {params[p + 2], params[p + 3]});
        const Direction out = projected(b, x, weights, state_of(states[0], first + k, 1),
                                        state_of(states[1], first + k, 1), k == 1, there);
        ys.push_back(out.y);
        last_h.push_back(out.h);
        last_c.push_back(out.c);
      }
      x = b.concat(ys, 2);
      continue;
    }
    Inputs w, r, bias;
    for (std::size_t k = 0; k < directions; ++k) {
      const std::size_t p = (first + k) * each;
      w.push_back(b.unsqueeze(reorder(b, params[p], cell, hidden), {0}));
      r.push_back(b.unsqueeze(reorder(b, params[p + 1], cell, hidden), {0}));
      if (!biases) continue;
      const Val joined = b.concat(
          {reorder(b, params[p + 2], cell, hidden), reorder(b, params[p + 3], cell, hidden)}, 0);
      bias.push_back(b.unsqueeze(joined, {0}));
    }
    Inputs inputs = {x, b.concat(w, 0), b.concat(r, 0), biases ? b.concat(bias, 0) : Val{},
                     lengths};
    for (const Val state : states) inputs.push_back(state_of(state, first, directions));
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
      x = b.op("Reshape", {b.transpose(out[0], {0, 2, 1, 3}), b.ints({0, 0, 2 * hidden})});
    }
    last_h.push_back(out[1]);
    if (lstm) last_c.push_back(out[2]);
  }
  if (at.packed) x = pack(b, packing, x);
  b.result(0, batch_first ? b.transpose(x, {1, 0, 2}) : x);
  b.result(1, b.concat(last_h, 0));
  if (lstm) b.result(2, b.concat(last_c, 0));
}

template <bool kPacked>
void lower_lstm(Lowering& b) {
  recurrent(b, {"LSTM", {0, 3, 1, 2}}, {kPacked});
}
template <bool kPacked>
void lower_gru(Lowering& b) {
  recurrent(b, {"GRU", {1, 0, 2}}, {kPacked});
}
template <bool kPacked>
void lower_rnn_tanh(Lowering& b) {
  recurrent(b, {"RNN", {0}}, {kPacked});
}
template <bool kPacked>
void lower_rnn_relu(Lowering& b) {
  recurrent(b, {"RNN", {0}, "Relu"}, {kPacked});
}

constexpr std::string_view kSingle = "float64 computes in float32";

constexpr OpRow kRows[] = {
    {"aten.gru.data", lower_gru<true>, "GRU", ""},
    {"aten.gru.input", lower_gru<false>, "GRU", ""},
    {"aten.lstm.data", lower_lstm<true>, "LSTM, Scan", ""},
    {"aten.lstm.input", lower_lstm<false>, "LSTM, Scan", ""},
    {"aten.rnn_relu.data", lower_rnn_relu<true>, "RNN", kSingle},
    {"aten.rnn_relu.input", lower_rnn_relu<false>, "RNN", kSingle},
    {"aten.rnn_tanh.data", lower_rnn_tanh<true>, "RNN", kSingle},
    {"aten.rnn_tanh.input", lower_rnn_tanh<false>, "RNN", kSingle},
};

}  // namespace

std::span<const OpRow> recurrent_ops() { return kRows; }

}  // namespace fairlead::onnx
