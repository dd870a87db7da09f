// Bindings of the way from recorded runs to a written model.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "fairlead/base/error.h"
#include "fairlead/experiment/guards.h"
#include "fairlead/experiment/steps.h"
#include "fairlead/onnx/default_inputs.h"
#include "fairlead/onnx/functions.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/onnx/references.h"
#include "fairlead/onnx/shared_cache.h"
#include "fairlead/onnx/shared_weights.h"
#include "fairlead/onnx/weights.h"
#include "fairlead/onnx/writer.h"
#include "fairlead/passes/dead_code.h"
#include "fairlead/passes/passes.h"
#include "fairlead/passes/precision.h"
#include "fairlead/quant/keep.h"
#include "fairlead/quant/quantize.h"
#include "fairlead/trace/join_programs.h"
#include "fairlead/trace/program.h"
#include "fairlead/weights/placed_weights.h"
#include "program.h"
#include "recorder.h"
#include "sizes.h"

namespace fairlead::python {

using namespace nb::literals;

namespace {

struct ModelHandle {
  onnx::Model model;
  FusionLog fusions = {};
  std::vector<onnx::Function> functions = {};  // that the model calls
};

// Programs share pools of expressions, which grow where one is lowered or joined: one thread at a
// time. Taken after the interpreter's lock is given back; a lowering in Python may come back here.
std::unique_lock<std::recursive_mutex> alone_with_pools() {
  static std::recursive_mutex mutex;
  return std::unique_lock(mutex);
}

// An argument at a setting, for PyTorch: tensors as (sizes, dtype).
nb::object argument_at(const Graph& graph, const Arg& arg,
                       const std::vector<std::int64_t>& setting) {
  const auto size = [&](Expr e) { return graph.pool->evaluate(e, setting); };
  switch (arg.kind) {
    case ArgKind::kValue: {
      nb::list sizes;
      for (const Expr e : graph.values[arg.value].shape) sizes.append(size(e));
      return nb::make_tuple(sizes, std::string(dtype_name(graph.values[arg.value].dtype)));
    }
    case ArgKind::kInt:
      return nb::cast(size(arg.expr));
    case ArgKind::kFloat:
      if (arg.expr != nullptr) throw Error(ErrorCode::kUnsupported, "a number that sizes decide");
      return nb::cast(arg.number);
    case ArgKind::kBool:
      return nb::cast(arg.number != 0);
    case ArgKind::kString:
      return nb::cast(arg.text);
    case ArgKind::kDtype:
      return nb::make_tuple(std::string(dtype_name(arg.dtype)));
    case ArgKind::kList: {
      nb::list items;
      for (const Arg& item : arg.items) items.append(argument_at(graph, item, setting));
      return items;
    }
    default:
      return nb::none();
  }
}

// ask(operator, arguments of several calls) -> sizes of the results of each, None where refused
// It is copied where the interpreter's lock is not held: the caller holds the reference.
AskAlone asker(nb::handle ask) {
  if (ask.is_none()) return {};
  return [ask](const Graph& graph, const Node& node,
               const std::vector<std::vector<std::int64_t>>& settings) {
    const nb::gil_scoped_acquire acquire;
    nb::list calls;
    for (const auto& setting : settings) {
      try {
        nb::list args;
        for (const Arg& arg : node.args) args.append(argument_at(graph, arg, setting));
        calls.append(args);
      } catch (const Error&) {  // no value there
        calls.append(nb::none());
      }
    }
    std::vector<std::vector<std::vector<std::int64_t>>> answers;
    for (nb::handle answer : nb::object(ask(node.op.str(), calls))) {
      answers.emplace_back();
      if (!answer.is_none()) {
        answers.back() = nb::cast<std::vector<std::vector<std::int64_t>>>(answer);
      }
    }
    return answers;
  };
}

std::unique_ptr<ProgramHandle> build(const Recorder& recorder, const std::vector<int>& runs,
                                     const std::vector<std::string>& symbols,
                                     const std::vector<std::vector<std::int64_t>>& symbol_values,
                                     const std::vector<std::string>& input_names,
                                     const std::vector<std::vector<SizeExpr>>& input_shapes,
                                     const std::vector<std::string>& output_names, bool keep_writes,
                                     const nb::object& ask) {
  ProgramRequest request;
  request.vocabulary = &recorder.vocabulary();
  for (const int run : runs) request.runs.push_back(&recorder.run_at(run));
  request.one_program = std::all_of(runs.begin(), runs.end(), [&](int run) {
    return recorder.difference(runs.front(), run) == kSameProgram;
  });
  request.pool = std::make_shared<ExprPool>();
  for (const std::string& name : symbols) (void)request.pool->symbol(name);
  request.symbols = symbol_values;
  std::vector<std::vector<Expr>> input_sizes = sizes_in(*request.pool, input_shapes);
  for (std::size_t k = 0; k < input_names.size(); ++k) {
    request.inputs.push_back({input_names[k], std::move(input_sizes.at(k))});
  }
  request.output_names = output_names;
  request.keep_writes = keep_writes;
  request.ask_alone = asker(ask);
  nb::gil_scoped_release release;
  const auto lock = alone_with_pools();
  auto handle = std::make_unique<ProgramHandle>(ProgramHandle{build_program(request)});
  // What questions are about may be required yet.
  std::vector<Expr> asked;
  for (const ProgramGuard& guard : handle->program.guards) {
    asked.push_back(guard.left);
    if (guard.right != nullptr) asked.push_back(guard.right);
  }
  remove_dead_code_but(handle->program.graph, asked);
  return handle;
}

// "size", "value": the model asked about it; "key": it was a key; "rival": ours, see guard.h
std::string kind_of(const ExprPool& pool, const ProgramGuard& guard) {
  if (guard.rival) return "rival";
  if (guard.right == nullptr) return "key";
  // What had both answers in the runs decides numbers alone.
  if (guard.both) return "size";
  for (const Expr e : {guard.left, guard.right}) {
    for (const SymbolId id : pool.symbols_of(e)) {
      if (pool.symbols()[id].kind != SymbolKind::kSize) return "value";
    }
  }
  return "size";
}

using RangeTuple = std::tuple<std::int64_t, std::int64_t>;  // min, max

std::vector<Flip> guard_flips(const ProgramHandle& h, const std::vector<RangeTuple>& symbols) {
  std::vector<SymbolRange> ranges;
  for (const auto& [min, max] : symbols) ranges.push_back({min, max});
  return flips(h.program, ranges);
}

// What the model returns; what it writes besides stands behind that.
std::vector<ValueId> returned(const ProgramHandle& h) {
  const std::vector<ValueId>& all = h.program.graph.outputs;
  return {all.begin(), all.end() - static_cast<std::ptrdiff_t>(h.program.targets.size())};
}

nb::list shapes(const ProgramHandle& h, const std::vector<ValueId>& values) {
  std::vector<std::vector<Expr>> rows;
  for (const ValueId id : values) rows.push_back(h.program.graph.values[id].shape);
  return size_rows(*h.program.graph.pool, rows);
}

nb::list ignored_inputs(const ProgramHandle& h) {
  const Graph& graph = h.program.graph;
  std::vector<bool> used(graph.values.size(), false);
  const auto use = [&](const auto& self, const Arg& a) -> void {
    if (a.kind == ArgKind::kValue) used[a.value] = true;
    for (const Arg& item : a.items) self(self, item);
  };
  for_each_node(graph.nodes, [&](const Node& node) {
    for (const Arg& a : node.args) use(use, a);
    for (const Body& body : node.bodies) {
      for (const ValueId id : body.outputs) used[id] = true;
    }
  });
  for (const ValueId id : graph.outputs) used[id] = true;
  // Values that the model read decide sizes.
  for (std::size_t k = 0; k < graph.symbol_sources.size(); ++k) {
    const SymbolSource& source = graph.symbol_sources[k];
    const SymbolKind kind = graph.pool->symbols()[k].kind;
    if (source.value != kNoValue && (kind == SymbolKind::kRead || kind == SymbolKind::kReadReal)) {
      used[source.value] = true;
    }
  }
  nb::list names;
  for (const ValueId id : graph.inputs) {
    if (!used[id]) names.append(graph.values[id].name);
  }
  return names;
}

using BoundsTuple = std::tuple<std::string, std::int64_t, std::int64_t>;  // symbol, min, max

std::unique_ptr<ModelHandle> lower(const ProgramHandle& h, int opset, const Target& target,
                                   const std::vector<BoundsTuple>& bounds,
                                   const std::shared_ptr<onnx::SharedWeights>& shared) {
  nb::gil_scoped_release release;
  const auto lock = alone_with_pools();
  onnx::LowerOptions options;
  options.opset = opset;
  options.runtime = target.runtime;
  options.order_of_equals = std::find(target.left_out.begin(), target.left_out.end(),
                                      kPlainOrder) != target.left_out.end();
  for (const auto& [symbol, min, max] : bounds) options.bounds.push_back({symbol, min, max});
  if (shared) options.stored = [&](const std::byte* begin) { return shared->stored(begin); };
  Graph graph = h.program.graph;  // what a target wants of it is not the program's
  Target wanted = target;
  wanted.opset = opset;
  FusionLog fusions = run_passes(graph, wanted);
  auto handle = std::make_unique<ModelHandle>(
      ModelHandle{onnx::lower_graph(graph, options), std::move(fusions)});
  handle->model.producer_version = FAIRLEAD_VERSION;
  if (shared) onnx::refer_to_files(handle->model, shared->files());
  return handle;
}

using PartTuple = std::pair<ProgramHandle*, std::vector<BoundsTuple>>;

std::unique_ptr<ProgramHandle> join_parts(const std::vector<PartTuple>& given) {
  nb::gil_scoped_release release;
  const auto lock = alone_with_pools();
  std::vector<ProgramPart> parts;
  for (const auto& [part, bounds] : given) {
    ProgramPart& added = parts.emplace_back();
    added.program = &part->program;
    for (const auto& [symbol, min, max] : bounds) added.bounds.push_back({symbol, min, max});
  }
  auto handle = std::make_unique<ProgramHandle>();
  handle->program = join_programs(parts);
  return handle;
}

// Without what only questions were about that the file does not ask.
nb::object join_kept(const nb::list& given) {
  std::vector<PartTuple> parts;
  for (const nb::handle item : given) {
    const PartTuple& part = parts.emplace_back(nb::cast<ProgramHandle*>(item[0]),
                                               nb::cast<std::vector<BoundsTuple>>(item[1]));
    remove_dead_code(part.first->program.graph);
  }
  if (parts.size() == 1) return nb::borrow(given[0][0]);
  auto made = join_parts(parts);
  made->parts = given;
  return nb::cast(std::move(made));
}

// The same program with what these nodes make as its outputs, to be looked at: "value_<node>".
std::unique_ptr<ProgramHandle> observing(const ProgramHandle& h,
                                         const std::vector<std::size_t>& nodes) {
  auto made = std::make_unique<ProgramHandle>(ProgramHandle{h.program});
  Graph& graph = made->program.graph;
  graph.outputs.clear();
  graph.output_names.clear();
  made->program.targets.clear();
  for (const std::size_t number : nodes) {
    graph.outputs.push_back(graph.nodes.at(number).outputs.at(0));
    graph.output_names.push_back("value_" + std::to_string(number));
  }
  remove_dead_code(graph);
  return made;
}

// (number, operator, module, source) of the nodes that make one tensor each, whose contents anyone
// can know.
nb::list program_nodes(const ProgramHandle& h) {
  nb::list rows;
  const std::vector<Node>& nodes = h.program.graph.nodes;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const Node& node = nodes[k];
    if (node.outputs.empty() || node.outputs[0] == kNoValue || !node.bodies.empty()) continue;
    if (node.op.has(Trait::kUnset)) continue;
    rows.append(
        nb::make_tuple(k, node.op.str(), std::string(node.module), std::string(node.source)));
  }
  return rows;
}

onnx::StagedModel write(const ModelHandle& h, const std::filesystem::path& path,
                        const std::string& external, std::shared_ptr<onnx::SharedWeights> shared) {
  using onnx::ExternalData;
  ExternalData mode = ExternalData::kAuto;
  if (external == "always") mode = ExternalData::kAlways;
  if (external == "never") mode = ExternalData::kNever;
  nb::gil_scoped_release release;
  return onnx::write_model(h.model, path.string(), mode, std::move(shared), &h.functions);
}

std::unique_ptr<ModelHandle> weights_as_inputs(
    const ModelHandle& h,
    const std::vector<std::tuple<std::string, std::vector<std::int64_t>>>& weights,
    bool keep_values) {
  std::vector<onnx::Weight> list;
  for (const auto& [name, dims] : weights) list.push_back({name, dims});
  nb::gil_scoped_release release;
  return std::make_unique<ModelHandle>(
      ModelHandle{onnx::weights_as_inputs(h.model, list, keep_values)});
}

// Those of branches and loops too.
template <typename Visit>
void for_each_node(const onnx::Graph& graph, const Visit& visit) {
  for (const onnx::Node& node : graph.nodes) {
    visit(node);
    for (const onnx::Attribute& a : node.attributes) {
      const auto* inner = std::get_if<std::shared_ptr<onnx::Graph>>(&a.value);
      if (inner != nullptr && *inner) for_each_node(**inner, visit);
    }
  }
}

// Those of functions once each.
template <typename Visit>
void for_each_node(const ModelHandle& h, const Visit& visit) {
  for_each_node(h.model.graph, visit);
  for (const onnx::Function& function : h.functions) {
    for (const onnx::Node& node : function.nodes) visit(node);
  }
}

// (kind, how often, {why it was refused: how often})
nb::list fusion_rows(const ModelHandle& h) {
  nb::list list;
  for (const FusionRow& row : h.fusions.rows()) {
    nb::dict refused;
    for (const auto& [why, count] : row.refused) refused[why.c_str()] = count;
    list.append(nb::make_tuple(row.kind, row.count, refused));
  }
  return list;
}

std::vector<std::string> fusions_refused_at(const ModelHandle& h,
                                            const std::map<std::string, std::int64_t>& sizes) {
  std::vector<std::int64_t> values;
  for (const Symbol& symbol : h.model.pool->symbols()) {
    const auto it = sizes.find(symbol.name);
    values.push_back(it == sizes.end() ? 1 : it->second);
  }
  return h.fusions.refused_at(*h.model.pool, values);
}

// Fields of fairlead.quantize.Quantized.
nb::dict quantize(ModelHandle& h, int bits, int block, bool symmetric, bool search, bool head,
                  bool contrib, bool int8_activations, unsigned threads, int runtime_version) {
  quant::Report report;
  {
    nb::gil_scoped_release release;
    quant::Options options;
    options.format = {bits, block, symmetric, search};
    options.head = head;
    options.contrib = contrib;
    options.int8_activations = int8_activations;
    options.threads = threads;
    options.runtime_version = runtime_version;
    report = quant::quantize(h.model, options);
  }
  nb::dict layers, kept, result;
  for (const quant::Layer& layer : report.layers) layers[layer.name.c_str()] = layer.error;
  for (const auto& [name, why] : report.kept) kept[name.c_str()] = why;
  result["layers"] = layers;
  result["kept"] = kept;
  result["bytes_before"] = report.bytes_before;
  result["bytes_after"] = report.bytes_after;
  return result;
}

// Fields of fairlead.quantize.Kept, and whether weights of different formats were put together.
nb::tuple keep(ModelHandle& h, const quant::StoredRows& stored, bool int8_activations,
               unsigned threads) {
  quant::KeptReport report;
  {
    nb::gil_scoped_release release;
    report = quant::keep(h.model, stored, int8_activations, threads);
  }
  nb::dict weights, floats, result;
  for (const auto& [name, format] : report.weights) weights[name.c_str()] = format;
  for (const auto& [name, why] : report.floats) floats[name.c_str()] = why;
  result["weights"] = weights;
  result["floats"] = floats;
  result["unread"] = report.unread;
  result["bytes_before"] = report.bytes_before;
  result["bytes_after"] = report.bytes_after;
  return nb::make_tuple(result, report.mixed);
}

nb::dict operators(const ModelHandle& h) {
  std::map<std::string, int> counts;
  for_each_node(h, [&](const onnx::Node& node) { ++counts[node.op]; });
  nb::dict result;
  for (const auto& [name, count] : counts) result[name.c_str()] = count;
  return result;
}

nb::list rows() {
  nb::list list;
  for (const onnx::OpRow& row : onnx::op_rows()) {
    list.append(
        nb::make_tuple(std::string(row.aten), std::string(row.form), std::string(row.limits)));
  }
  return list;
}

}  // namespace

void init_export(nb::module_& m) {
  m.attr("PLAIN_ORDER") = kPlainOrder;
  nb::class_<Target>(m, "Target", "An ONNX file, and what runs it.")
      .def(
          "__init__",
          [](Target* t, const std::string& runtime, int version, bool optimize, bool fuse,
             bool padding, std::vector<std::string> left_out) {
            new (t) Target{.kind = TargetKind::kOnnx,
                           .runtime = {parse_provider(runtime), version},
                           .optimize = optimize,
                           .fuse = fuse,
                           .padding = padding,
                           .left_out = std::move(left_out)};
          },
          "runtime"_a = "onnxruntime-cpu", "version"_a = 0, "optimize"_a = true, "fuse"_a = false,
          "padding"_a = false, "left_out"_a = std::vector<std::string>{},
          "runtime: \"onnxruntime-cpu\" or \"portable\"; version: 22 is ONNX Runtime 1.22, 0 the "
          "newest that is known; fuse: with operators that only ONNX Runtime has, but for the "
          "kinds "
          "in left_out; padding: also for prompts whose rows begin at different positions.")
      .def_prop_ro("newest_opset", [](const Target& t) { return t.runtime.newest_opset(); });
  auto program =
      nb::class_<ProgramHandle>(m, "Program", "The solved, functional program of a model.");
  init_source(program);
  program
      .def_prop_ro("assumptions",
                   [](const ProgramHandle& h) {
                     nb::list list;
                     for (const Assumption& a : h.program.assumptions) {
                       list.append(nb::make_tuple(a.kind, a.what, a.module, a.source));
                     }
                     for_each_node(h.program.graph.nodes, [&](const Node& node) {
                       if (!node.random) return;
                       list.append(nb::make_tuple("random", node.op.str(), std::string(node.module),
                                                  std::string(node.source)));
                     });
                     return list;
                   })
      .def_prop_ro("guards",
                   [](const ProgramHandle& h) {
                     nb::list list;
                     for (const ProgramGuard& g : h.program.guards) {
                       const ExprPool& pool = *h.program.graph.pool;
                       list.append(nb::make_tuple(words_of(pool, g), g.source, kind_of(pool, g),
                                                  form_of(pool, g)));
                     }
                     return list;
                   })
      .def("flips", &guard_flips, "symbols"_a,
           "The other sides of guards, with (min, max) of sizes.")
      .def(
          "require", [](ProgramHandle& h, const Flip& flip) { return require(h.program, flip); },
          "flip"_a, "Has the file refuse the sizes that a flip leads to; in words.")
      .def_prop_ro(
          "fitted",
          [](const ProgramHandle& h) {
            nb::list list;
            for (const Fitted& f : h.program.fitted) {
              list.append(nb::make_tuple(h.program.graph.pool->to_string(f.expr), f.what, f.op,
                                         f.module, f.source));
            }
            return list;
          },
          "Integers that fit the runs: (expression, what, operator, module, source).")
      .def_prop_ro("requirements",
                   [](const ProgramHandle& h) {
                     std::vector<std::string> words;
                     for (const Requirement& r : h.program.graph.requirements) {
                       words.push_back(r.words);
                     }
                     return words;
                   })
      .def_prop_ro("written_inputs",
                   [](const ProgramHandle& h) { return h.program.written_inputs; })
      .def_prop_ro("thin", [](const ProgramHandle& h) { return h.program.thin; })
      .def_prop_ro("unseen", [](const ProgramHandle& h) { return h.program.unseen; })
      .def_prop_ro("ambiguous", [](const ProgramHandle& h) { return h.program.ambiguous; })
      .def_prop_ro("fragile", [](const ProgramHandle& h) { return h.program.fragile; })
      .def_prop_ro("node_count",
                   [](const ProgramHandle& h) { return h.program.graph.nodes.size(); })
      .def_prop_ro("input_shapes",
                   [](const ProgramHandle& h) { return shapes(h, h.program.graph.inputs); })
      .def_prop_ro("output_shapes", [](const ProgramHandle& h) { return shapes(h, returned(h)); })
      .def_prop_ro("output_dtypes",
                   [](const ProgramHandle& h) {
                     std::vector<std::string> names;
                     for (const ValueId id : returned(h)) {
                       names.emplace_back(dtype_name(h.program.graph.values[id].dtype));
                     }
                     return names;
                   })
      .def_prop_ro("output_precision",
                   [](const ProgramHandle& h) {
                     std::vector<std::string> names;
                     for (const Dtype dtype : output_precision(h.program.graph)) {
                       names.emplace_back(dtype_name(dtype));
                     }
                     names.resize(returned(h).size());
                     return names;
                   })
      .def_prop_ro("nodes", &program_nodes)
      .def("observing", &observing, "nodes"_a, nb::keep_alive<0, 1>(),
           "The program with what these nodes make as its outputs.")
      .def_prop_ro("ignored_inputs", &ignored_inputs)
      .def(
          "text", [](const ProgramHandle& h) { return to_text(h.program.graph); },
          "The program, one line per node.")
      .def("lower", &lower, "opset"_a, "target"_a = Target{},
           "bounds"_a = std::vector<BoundsTuple>{}, "shared"_a.none() = nb::none(),
           nb::keep_alive<0, 1>());
  nb::class_<Flip>(m, "Flip", "Sizes at which a guard has another answer.")
      .def_ro("guard", &Flip::guard)
      .def_ro("setting", &Flip::setting)
      .def_ro("symbol", &Flip::symbol)
      .def_ro("bound", &Flip::bound)
      .def_ro("by_values", &Flip::by_values)
      .def_ro("spare", &Flip::spare)
      .def_ro("rest", &Flip::rest)
      .def_ro("family", &Flip::family)
      .def_ro("key", &Flip::key);
  nb::class_<ModelHandle>(m, "Model", "An ONNX model in memory.")
      .def_prop_ro("node_count",
                   [](const ModelHandle& h) {
                     std::size_t count = 0;
                     for_each_node(h, [&](const onnx::Node&) { ++count; });
                     return count;
                   })
      .def_prop_ro("operators", &operators)
      .def_prop_ro(
          "plain_orders", [](const ModelHandle& h) { return h.model.plain_orders; },
          "Sorts that put equal elements as the runtime does.")
      .def_prop_ro("fusions", &fusion_rows,
                   "What was fused: (kind, how often, why not and how often).")
      .def_prop_ro(
          "fusion_requirements",
          [](const ModelHandle& h) {
            std::vector<std::pair<std::string, std::string>> rows;
            for (const FusionRequirement& each : h.fusions.requirements()) {
              rows.emplace_back(each.kind, each.required.words);
            }
            return rows;
          },
          "What fused operators ask of sizes: (kind, words).")
      .def("quantize", &quantize, "bits"_a, "block"_a, "symmetric"_a, "search"_a, "head"_a,
           "contrib"_a, "int8_activations"_a, "threads"_a, "runtime_version"_a,
           "Stores the weights of linear layers in blocks of integers; says what that loses.")
      .def(
          "share_cache",
          [](ModelHandle& h) {
            const onnx::SharedCache found = onnx::share_cache(h.model);
            return std::make_pair(found.layers, found.why);
          },
          "Past and present may be the same memory: of how many layers, or why not.")
      .def(
          "static_cache",
          [](ModelHandle& h) {
            const onnx::SharedCache found = onnx::static_cache(h.model);
            return std::make_tuple(found.layers, found.why, found.mask, found.mask_axis);
          },
          "New keys are written into a buffer: of how many layers, or why not; the input that is "
          "as "
          "long as past and new tokens, and its axis.")
      .def_prop_ro(
          "cache_pairs",
          [](const ModelHandle& h) {
            std::vector<std::pair<std::string, std::string>> pairs;
            const auto name = [&](onnx::TensorId id) {
              return h.model.tensors[static_cast<std::size_t>(id)].name;
            };
            for (const auto& [past, present] : onnx::cache_pairs(h.model)) {
              pairs.emplace_back(name(past), name(present));
            }
            return pairs;
          },
          "Inputs of a cache that GroupQueryAttention reads, and the outputs that go on with them.")
      .def(
          "int8_cache",
          [](ModelHandle& h, const std::map<std::string, std::vector<float>>& scales) {
            onnx::int8_cache(h.model, scales);
          },
          "scales"_a,
          "A shared cache of integers, with a scale for each channel of every past input.")
      .def(
          "fold_functions",
          [](ModelHandle& h, const std::map<std::string, std::string>& classes) {
            nb::gil_scoped_release release;
            std::vector<std::tuple<std::string, std::string, std::int64_t, std::size_t>> rows;
            h.functions = onnx::fold_functions(h.model, classes);
            for (const onnx::Function& f : h.functions) {
              rows.emplace_back(f.name, f.modules, f.calls, f.nodes.size());
            }
            return rows;
          },
          "classes"_a,
          "Repeated modules become functions: (name, modules, calls, nodes of one) of each. "
          "classes: names by module.")
      .def(
          "default_inputs",
          [](ModelHandle& h, const std::vector<std::string>& names) {
            onnx::default_inputs(h.model, names);
          },
          "names"_a, "Inputs that a run may leave out: empty then, where their sizes vary.")
      .def("keep", &keep, "stored"_a, "int8_activations"_a, "threads"_a,
           "Stores weights as the checkpoint does, where it has them.")
      .def("fusions_refused_at", &fusions_refused_at, "sizes"_a,
           "Kinds of fusions that do not take these sizes, by symbol.")
      .def("add_metadata",
           [](ModelHandle& h, const std::string& key, const std::string& value) {
             h.model.metadata.emplace_back(key, value);
           })
      .def("weights_as_inputs", &weights_as_inputs, "weights"_a, "keep_values"_a,
           nb::keep_alive<0, 1>(), "A copy in which weights, given as (name, shape), are inputs.")
      .def("write", &write, "path"_a, "external_data"_a = "auto", "shared"_a.none() = nb::none());
  nb::class_<onnx::SharedWeights>(m, "SharedWeights",
                                  "Weights that several models of one folder hold, written once.")
      .def(nb::init<>())
      .def(
          "declare",
          [](onnx::SharedWeights& s, std::uintptr_t address, std::int64_t bytes) {
            s.declare(reinterpret_cast<const std::byte*>(address), bytes);
          },
          "address"_a, "bytes"_a, "Memory that neither moves nor changes while this is used.")
      .def("declare_fetched", &onnx::SharedWeights::declare_fetched, "fetched"_a.none(),
           "Weights that are elsewhere: models have them in their own order.")
      .def(
          "declare_placed",
          [](onnx::SharedWeights& s, const std::filesystem::path& folder,
             const PlacedWeights& placed, const WeightFile* converted, const std::string& name) {
            s.declare_files(folder.string(), placed.regions(converted, name));
          },
          "folder"_a, "placed"_a, "converted"_a.none(), "name"_a,
          "Memory that stands for bytes of files, which are in the folder: models there refer to "
          "them.");
  nb::class_<onnx::StagedModel>(m, "StagedModel", "A written model that has not got its name yet.")
      .def_prop_ro("path", [](const onnx::StagedModel& s) { return s.path(); })
      .def_prop_ro("model_bytes", [](const onnx::StagedModel& s) { return s.result().model_bytes; })
      .def_prop_ro("external_bytes",
                   [](const onnx::StagedModel& s) { return s.result().external_bytes; })
      .def_prop_ro("external_path",
                   [](const onnx::StagedModel& s) { return s.result().external_path; })
      .def("add_metadata", &onnx::StagedModel::add_metadata, "key"_a, "value"_a)
      .def("commit", &onnx::StagedModel::commit, nb::call_guard<nb::gil_scoped_release>())
      .def("discard", &onnx::StagedModel::discard, nb::call_guard<nb::gil_scoped_release>());
  m.def("build_program", &build, nb::keep_alive<0, 1>(), "recorder"_a, "runs"_a, "symbols"_a,
        "symbol_values"_a, "input_names"_a, "input_shapes"_a, "output_names"_a,
        "keep_writes"_a = false, "ask"_a = nb::none());
  m.def(
      "join_programs", &join_kept, "parts"_a,
      "Programs of one model, each with the bounds (symbol, min, max) of its sizes, as one "
      "program; one alone is that program.",
      nb::sig(
          "def join_programs(parts: list[tuple[Program, list[tuple[str, int, int]]]]) -> Program"));
  m.def("operator_rows", &rows, "Every lowering: (ATen name, ONNX form, limits).");
}

}  // namespace fairlead::python
