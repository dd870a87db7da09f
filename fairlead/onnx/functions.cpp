// 1. Modules are grouped by their paths with * for every number; those nearest to the top first.
// 2. Of a group the one whose operators are the most common is the template. Another is the same
//    where its nodes, found backwards from the template's last ones, are the same operators of the
//    same results; what comes from outside is an input.
// 3. What is a small constant, and the same everywhere, stands in the function.
#include "fairlead/onnx/functions.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "fairlead/base/error.h"
#include "fairlead/onnx/tensor_stream.h"

namespace fairlead::onnx {
namespace {

constexpr std::string_view kDomain = "fairlead.functions";
constexpr std::int64_t kSmallBytes = 1024;
constexpr std::size_t kFewestNodes = 3;  // a call of a product and its bias says less than they do

using Number = std::size_t;  // of a node of the main graph
constexpr Number kNone = std::numeric_limits<Number>::max();

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// "model.layers.*" of "model.layers.0".
std::string pattern_of(std::string_view path) {
  std::string text;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string_view part = path.substr(start, dot - start);
    if (start > 0) text += '.';
    text += is_number(part) ? std::string_view("*") : part;
    start = dot + 1;
  }
  return text;
}

bool has_body(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& a) {
    return std::holds_alternative<std::shared_ptr<Graph>>(a.value);
  });
}

// Values that a node reads, those that its bodies take from outside too.
void for_each_read(const Node& node, const std::function<void(TensorId)>& visit) {
  for (const TensorId id : node.inputs) {
    if (id != kAbsent) visit(id);
  }
  for (const Attribute& a : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<Graph>>(&a.value);
    if (body == nullptr || !*body) continue;
    for (const Node& inner : (*body)->nodes) for_each_read(inner, visit);
    for (const TensorId id : (*body)->outputs) visit(id);
  }
}

bool same_data(const TensorData& a, const TensorData& b) {
  if (a.dtype != b.dtype || a.dims != b.dims || a.strides != b.strides ||
      a.four_bits != b.four_bits) {
    return false;
  }
  const std::int64_t bytes = stored_bytes(a);
  return a.data == b.data || (a.strides.empty() && a.data != nullptr && b.data != nullptr &&
                              std::equal(a.data, a.data + bytes, b.data));
}

bool same_attributes(const Node& a, const Node& b) {
  const auto same = [](const Attribute& x, const Attribute& y) {
    if (x.name != y.name || x.value.index() != y.value.index()) return false;
    if (const auto* data = std::get_if<TensorData>(&x.value)) {
      return same_data(*data, std::get<TensorData>(y.value));
    }
    return std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, TensorData> ||
                        std::is_same_v<T, std::shared_ptr<Graph>>) {
            return false;
          } else {
            return value == std::get<T>(y.value);
          }
        },
        x.value);
  };
  return std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(),
                    b.attributes.end(), same);
}

// Results that one of the two leaves out are optional ones; operators of the standard may have as
// many as they are asked for, and then their number says what they compute.
bool same_results(const Node& a, const Node& b) {
  return a.outputs.size() == b.outputs.size() || !a.domain.empty();
}

struct Module {
  std::string path;
  std::vector<Number> nodes;  // in the order of execution
};

// A module as the template has it.
struct Instance {
  std::string path;
  std::vector<Number> nodes;                        // by place in the template
  std::unordered_map<TensorId, TensorId> external;  // by the template's tensor
};

struct Result {
  std::size_t place;  // of the node in the template
  std::size_t slot;
  bool operator<(const Result& other) const {
    return std::tie(place, slot) < std::tie(other.place, other.slot);
  }
};

// A function and its calls: the first is the template.
struct Fold {
  std::string pattern;
  std::vector<Instance> calls;
};

class Folder {
 public:
  Folder(Model& model, const std::map<std::string, std::string>& classes)
      : model_(model), classes_(classes), nodes_(model.graph.nodes), taken_(nodes_.size(), false) {
    for (Number n = 0; n < nodes_.size(); ++n) {
      for (const TensorId id : nodes_[n].outputs) {
        if (id != kAbsent) producers_[id] = n;
      }
      for_each_read(nodes_[n], [&](TensorId id) { readers_[id].push_back(n); });
    }
    for (std::size_t k = 0; k < model.graph.initializers.size(); ++k) {
      initializers_[model.graph.initializers[k].tensor] = k;
    }
    outputs_.insert(model.graph.outputs.begin(), model.graph.outputs.end());
  }

  std::vector<Function> run() {
    std::vector<Fold> folds;
    for (auto& [key, modules] : groups()) {
      std::erase_if(modules, [&](const Module& m) { return !is_free(m); });
      while (modules.size() > 1) {
        std::optional<Fold> fold = best(key.second, modules);
        if (!fold) break;
        folds.push_back(std::move(*fold));
        if (!order(folds)) {
          folds.pop_back();
          break;
        }
        std::set<Number> done;  // by their last nodes, which every module has
        for (const Instance& call : folds.back().calls) {
          for (const Number n : call.nodes) taken_[n] = true;
          done.insert(call.nodes.begin(), call.nodes.end());
        }
        std::erase_if(modules, [&](const Module& m) { return done.contains(m.nodes.back()); });
      }
    }
    return write(folds);
  }

 private:
  using Groups = std::map<std::pair<std::size_t, std::string>, std::vector<Module>>;

  // By depth and pattern.
  [[nodiscard]] Groups groups() const {
    std::map<std::string, std::vector<Number>> by_path;
    for (Number n = 0; n < nodes_.size(); ++n) {
      const std::string& path = nodes_[n].module;
      for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
        by_path[path.substr(0, dot)].push_back(n);
        if (dot == std::string::npos) break;
      }
    }
    Groups found;
    for (auto& [path, numbers] : by_path) {
      const std::string pattern = pattern_of(path);
      if (path.empty()) continue;
      const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '.'));
      auto& modules = found[{depth, pattern}];
      std::vector<std::vector<Number>> calls = calls_of(path, numbers);
      if (calls.empty() && pattern != path) calls.push_back(std::move(numbers));
      for (auto& call : calls) modules.push_back({path, std::move(call)});
    }
    for (auto& [key, modules] : found) {  // in the order of execution
      std::sort(modules.begin(), modules.end(),
                [](const Module& a, const Module& b) { return a.nodes.front() < b.nodes.front(); });
    }
    return found;
  }

  // Whether these nodes of a module are of it, and not all of one module within it.
  [[nodiscard]] bool is_whole(std::string_view path, const std::vector<Number>& numbers,
                              std::size_t begin) const {
    std::optional<std::string_view> within;
    for (std::size_t k = begin; k < numbers.size(); ++k) {
      const std::string_view module = nodes_[numbers[k]].module;
      if (module.size() == path.size()) return true;
      const std::string_view rest = module.substr(path.size() + 1);
      const std::string_view child = rest.substr(0, rest.find('.'));
      if (within && *within != child) return true;
      within = child;
    }
    return false;
  }

  // The nodes of a module that is called several times, call by call: the same operators of the same
  // modules again and again up to the last; what comes before them is a call too, which may have
  // more (sizes that the first one computes for all). Empty where it is called once.
  [[nodiscard]] std::vector<std::vector<Number>> calls_of(
      std::string_view path, const std::vector<Number>& numbers) const {
    const std::size_t count = numbers.size();
    const auto alike = [&](std::size_t a, std::size_t b) {
      const Node &x = nodes_[numbers[a]], &y = nodes_[numbers[b]];
      return x.op == y.op && x.module == y.module;
    };
    for (std::size_t length = kFewestNodes; 2 * length <= count; ++length) {
      std::size_t same = 0;  // nodes, from the last, that are as those one call later
      while (same + length < count && alike(count - 1 - same, count - 1 - same - length)) ++same;
      const std::size_t repeats = same / length;
      if (repeats == 0) continue;
      if (!is_whole(path, numbers, count - length)) return {};
      std::vector<std::vector<Number>> found;
      std::size_t end = count;
      for (std::size_t k = 0; k <= repeats; ++k, end -= length) {
        const auto last = numbers.begin() + static_cast<std::ptrdiff_t>(end);
        found.emplace_back(last - static_cast<std::ptrdiff_t>(length), last);
      }
      if (end > 0)
        found.emplace_back(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(end));
      return found;
    }
    return {};
  }

  [[nodiscard]] bool is_free(const Module& module) const {
    return module.nodes.size() >= kFewestNodes &&
           std::none_of(module.nodes.begin(), module.nodes.end(), [&](Number n) {
             if (taken_[n] || has_body(nodes_[n])) return true;
             return std::any_of(nodes_[n].inputs.begin(), nodes_[n].inputs.end(), [&](TensorId id) {
               const Initializer* weight = initializer(id);
               return weight != nullptr && weight->pieces > 1;
             });
           });
  }

  [[nodiscard]] const Initializer* initializer(TensorId id) const {
    const auto it = initializers_.find(id);
    return it == initializers_.end() ? nullptr : &model_.graph.initializers[it->second];
  }

  // The modules that are as most are, the template first; nothing where all differ.
  [[nodiscard]] std::optional<Fold> best(const std::string& pattern,
                                         const std::vector<Module>& modules) const {
    std::map<std::string, std::vector<const Module*>> alike;
    for (const Module& module : modules) {
      std::string operators;
      for (const Number n : module.nodes) operators += nodes_[n].op + ' ';
      alike[operators].push_back(&module);
    }
    std::vector<const std::vector<const Module*>*> kinds;
    for (const auto& [operators, same] : alike) kinds.push_back(&same);
    std::stable_sort(kinds.begin(), kinds.end(), [](const auto* a, const auto* b) {
      return a->size() > b->size() ||
             (a->size() == b->size() && a->front()->nodes.size() < b->front()->nodes.size());
    });
    for (const auto* same : kinds) {
      const Module& first = *same->front();
      Fold fold{pattern, {itself(first)}};
      if (!stands_alone(fold.calls.front())) continue;
      for (const Module& module : modules) {
        if (&module == &first) continue;
        if (auto found = matched(first, module)) fold.calls.push_back(std::move(*found));
      }
      if (fold.calls.size() > 1) return fold;
    }
    return std::nullopt;
  }

  [[nodiscard]] Instance itself(const Module& module) const {
    Instance made{module.path, module.nodes, {}};
    const std::unordered_set<Number> own(module.nodes.begin(), module.nodes.end());
    for (const Number n : module.nodes) {
      for (const TensorId id : nodes_[n].inputs) {
        if (id != kAbsent && !is_of(own, id)) made.external[id] = id;
      }
    }
    return made;
  }

  [[nodiscard]] bool is_of(const std::unordered_set<Number>& own, TensorId id) const {
    const auto it = producers_.find(id);
    return it != producers_.end() && own.contains(it->second);
  }

  // ---- one module after the pattern of another ------------------------------------------------

  struct Matching {
    const std::unordered_map<Number, std::size_t>& place;  // of the template's nodes
    const std::unordered_set<Number>& own;                 // the other's nodes
    Instance found;
    std::unordered_set<Number> used;
  };

  [[nodiscard]] std::optional<Instance> matched(const Module& pattern, const Module& other) const {
    std::unordered_map<Number, std::size_t> place;
    for (std::size_t k = 0; k < pattern.nodes.size(); ++k) place[pattern.nodes[k]] = k;
    const std::unordered_set<Number> own(other.nodes.begin(), other.nodes.end());
    Matching now{place, own, {other.path, {}, {}}, {}};
    now.found.nodes.assign(pattern.nodes.size(), kNone);
    for (std::size_t k = pattern.nodes.size(); k-- > 0;) {
      if (now.found.nodes[k] != kNone) continue;
      bool placed = false;
      for (std::size_t m = other.nodes.size(); m-- > 0 && !placed;) {
        if (nodes_[pattern.nodes[k]].op != nodes_[other.nodes[m]].op) continue;
        Matching tried = now;
        placed = fits(tried, pattern.nodes[k], other.nodes[m]);
        if (placed) {
          now.found = std::move(tried.found);
          now.used = std::move(tried.used);
        }
      }
      if (!placed) return std::nullopt;
    }
    return stands_alone(now.found) ? std::optional(std::move(now.found)) : std::nullopt;
  }

  // With all that it is made of; a list, because layers may be long.
  bool fits(Matching& now, Number pattern, Number other) const {
    std::vector<std::pair<Number, Number>> open = {{pattern, other}};
    while (!open.empty()) {
      const auto [a, b] = open.back();
      open.pop_back();
      const std::size_t place = now.place.at(a);
      if (now.found.nodes[place] != kNone) {
        if (now.found.nodes[place] != b) return false;
        continue;
      }
      const Node &x = nodes_[a], &y = nodes_[b];
      if (!now.own.contains(b) || x.op != y.op || x.domain != y.domain ||
          x.inputs.size() != y.inputs.size() || !same_attributes(x, y) || !same_results(x, y) ||
          !now.used.insert(b).second) {
        return false;
      }
      now.found.nodes[place] = b;
      for (std::size_t k = 0; k < x.inputs.size(); ++k) {
        const TensorId from = x.inputs[k], to = y.inputs[k];
        if ((from == kAbsent) != (to == kAbsent)) return false;
        if (from == kAbsent) continue;
        const auto maker = producers_.find(from);
        if (maker == producers_.end() || !now.place.contains(maker->second)) {
          const auto [known, fresh] = now.found.external.try_emplace(from, to);
          if (known->second != to || type_of(from) != type_of(to)) return false;
          continue;
        }
        const auto made = producers_.find(to);
        if (made == producers_.end() || slot_of(maker->second, from) != slot_of(made->second, to)) {
          return false;
        }
        open.emplace_back(maker->second, made->second);
      }
    }
    return true;
  }

  // A weight of another shape is another weight, and its function would have no shapes.
  [[nodiscard]] std::pair<Dtype, std::vector<std::int64_t>> type_of(TensorId id) const {
    const Initializer* weight = initializer(id);
    return {model_.tensors[static_cast<std::size_t>(id)].dtype,
            weight == nullptr ? std::vector<std::int64_t>{-1} : weight->data.dims};
  }

  [[nodiscard]] std::size_t slot_of(Number node, TensorId id) const {
    const auto& outputs = nodes_[node].outputs;
    return static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), id) -
                                    outputs.begin());
  }

  // Nothing that it is given is made of its own results.
  [[nodiscard]] bool stands_alone(const Instance& found) const {
    const std::unordered_set<Number> own(found.nodes.begin(), found.nodes.end());
    const Number first = *std::min_element(found.nodes.begin(), found.nodes.end());
    std::vector<TensorId> open;
    for (const auto& [from, to] : found.external) open.push_back(to);
    std::unordered_set<Number> seen;
    while (!open.empty()) {
      const auto maker = producers_.find(open.back());
      open.pop_back();
      if (maker == producers_.end() || maker->second < first) continue;
      if (own.contains(maker->second)) return false;
      if (!seen.insert(maker->second).second) continue;
      for_each_read(nodes_[maker->second], [&](TensorId id) { open.push_back(id); });
    }
    return true;
  }

  // ---- the graph with calls -------------------------------------------------------------------

  // Nodes and calls so that each comes after what it reads: numbers of nodes, and of calls behind
  // them; nothing where that cannot be.
  [[nodiscard]] std::optional<std::vector<Number>> order(const std::vector<Fold>& folds) const {
    std::vector<Number> unit(nodes_.size());
    for (Number n = 0; n < nodes_.size(); ++n) unit[n] = n;
    std::vector<Number> first(nodes_.size());
    for (Number n = 0; n < nodes_.size(); ++n) first[n] = n;
    for (const Fold& fold : folds) {
      for (const Instance& call : fold.calls) {
        for (const Number n : call.nodes) unit[n] = first.size();
        first.push_back(*std::max_element(call.nodes.begin(), call.nodes.end()));
      }
    }
    std::vector<std::set<Number>> after(first.size());
    std::vector<std::size_t> waits(first.size(), 0);
    for (Number n = 0; n < nodes_.size(); ++n) {
      for_each_read(nodes_[n], [&](TensorId id) {
        const auto maker = producers_.find(id);
        if (maker == producers_.end() || unit[maker->second] == unit[n]) return;
        if (after[unit[maker->second]].insert(unit[n]).second) ++waits[unit[n]];
      });
    }
    using Entry = std::pair<Number, Number>;  // where it was, what it is
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::size_t expected = 0;
    for (Number u = 0; u < first.size(); ++u) {
      if (u < nodes_.size() && unit[u] != u) continue;
      ++expected;
      if (waits[u] == 0) ready.emplace(first[u], u);
    }
    std::vector<Number> found;
    while (!ready.empty()) {
      const Number u = ready.top().second;
      ready.pop();
      found.push_back(u);
      for (const Number next : after[u]) {
        if (--waits[next] == 0) ready.emplace(first[next], next);
      }
    }
    return found.size() == expected ? std::optional(std::move(found)) : std::nullopt;
  }

  std::vector<Function> write(const std::vector<Fold>& folds) {
    std::vector<Function> functions;
    if (folds.empty()) return functions;
    const auto sequence = order(folds);
    FAIRLEAD_CHECK(sequence, "calls of functions that need each other");
    std::vector<Node> calls;
    for (const Fold& fold : folds) {
      Function function;
      function.domain = kDomain;
      function.name = name_of(fold);
      function.modules = fold.pattern;
      function.calls = static_cast<std::int64_t>(fold.calls.size());
      fill(fold, function, calls);
      functions.push_back(std::move(function));
    }
    std::vector<Node> nodes;
    for (const Number u : *sequence) {
      nodes.push_back(std::move(u < nodes_.size() ? nodes_[u] : calls[u - nodes_.size()]));
    }
    model_.graph.nodes = std::move(nodes);
    drop_unread();
    return functions;
  }

  // The class of its modules, or else the name of their list.
  [[nodiscard]] std::string name_of(const Fold& fold) {
    const std::string& path = fold.calls.front().path;
    const auto known = classes_.find(path);
    std::string name = known != classes_.end() ? known->second : std::string();
    for (std::size_t end = fold.pattern.size(); name.empty() && end > 0;) {
      const std::size_t dot = fold.pattern.rfind('.', end - 1);
      const std::size_t start = dot == std::string::npos ? 0 : dot + 1;
      if (fold.pattern.substr(start, end - start) != "*") {
        name = fold.pattern.substr(start, end - start);
      }
      end = dot == std::string::npos ? 0 : dot;
    }
    if (name.empty()) name = "module";
    const int number = ++names_[name];
    return number == 1 ? name : name + "_" + std::to_string(number);
  }

  // What its calls give to others, in the template's terms.
  [[nodiscard]] std::set<Result> results(const Fold& fold) const {
    std::set<Result> found;
    for (const Instance& call : fold.calls) {
      const std::unordered_set<Number> own(call.nodes.begin(), call.nodes.end());
      for (std::size_t k = 0; k < call.nodes.size(); ++k) {
        const auto& outputs = nodes_[call.nodes[k]].outputs;
        for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
          const auto readers = readers_.find(outputs[slot]);
          const bool read = outputs_.contains(outputs[slot]) ||
                            (readers != readers_.end() &&
                             std::any_of(readers->second.begin(), readers->second.end(),
                                         [&](Number n) { return !own.contains(n); }));
          if (outputs[slot] != kAbsent && read) found.insert({k, slot});
        }
      }
    }
    return found;
  }

  [[nodiscard]] bool is_constant(const Fold& fold, TensorId id) const {
    const Initializer* weight = initializer(id);
    return weight != nullptr && stored_bytes(weight->data) <= kSmallBytes &&
           weight->data.four_bits == FourBits::kNo &&
           std::all_of(fold.calls.begin(), fold.calls.end(),
                       [&](const Instance& call) { return call.external.at(id) == id; });
  }

  void fill(const Fold& fold, Function& function, std::vector<Node>& calls) {
    const Instance& first = fold.calls.front();
    std::unordered_map<TensorId, TensorId> local;
    std::set<std::string> names;
    const auto named = [&](TensorId id) {
      TensorInfo info = model_.tensors[static_cast<std::size_t>(id)];
      info.name = relative(info.name, first.path);
      for (int k = 2; !names.insert(info.name).second; ++k) {
        info.name += "_" + std::to_string(k);
      }
      info.shape.reset();
      model_.tensors.push_back(std::move(info));
      return static_cast<TensorId>(model_.tensors.size() - 1);
    };
    std::vector<TensorId> given;  // in the template's terms
    std::vector<Node> constants;
    for (const Number n : first.nodes) {
      for (const TensorId id : nodes_[n].inputs) {
        if (id == kAbsent || !first.external.contains(id) || local.contains(id)) continue;
        local[id] = named(id);
        if (!is_constant(fold, id)) {
          given.push_back(id);
          function.inputs.push_back(local[id]);
          continue;
        }
        Node constant;
        constant.op = "Constant";
        constant.outputs = {local[id]};
        constant.attributes = {{"value", initializer(id)->data}};
        constants.push_back(std::move(constant));
      }
    }
    // Results that some calls have and the template has not are new ones of its node.
    const std::set<Result> made = results(fold);
    std::vector<Node> body;
    for (const Number n : first.nodes) body.push_back(nodes_[n]);
    std::map<Result, TensorId> own;
    for (std::size_t k = 0; k < body.size(); ++k) {
      Node& node = body[k];
      for (std::size_t slot = 0; slot < node.outputs.size(); ++slot) {
        if (node.outputs[slot] == kAbsent) continue;
        local[node.outputs[slot]] = own[{k, slot}] = named(node.outputs[slot]);
      }
      for (const Result& each : made) {
        if (each.place != k || own.contains(each)) continue;
        if (node.outputs.size() <= each.slot) node.outputs.resize(each.slot + 1, kAbsent);
        own[each] = named(result(fold, each));
      }
    }
    for (std::size_t k = 0; k < body.size(); ++k) {
      Node& node = body[k];
      for (TensorId& id : node.inputs) {
        if (id != kAbsent) id = local.at(id);
      }
      for (std::size_t slot = 0; slot < node.outputs.size(); ++slot) {
        const auto it = own.find({k, slot});
        node.outputs[slot] = it == own.end() ? kAbsent : it->second;
      }
      node.name = relative(node.name, first.path);
      node.module = node.module.size() > first.path.size()
                        ? node.module.substr(first.path.size() + 1)
                        : std::string();
    }
    for (const Result& each : made) function.outputs.push_back(own.at(each));
    function.nodes = std::move(constants);
    std::move(body.begin(), body.end(), std::back_inserter(function.nodes));
    for (const Instance& call : fold.calls) calls.push_back(called(call, function, given, made));
  }

  // A tensor of a call that has this result.
  [[nodiscard]] TensorId result(const Fold& fold, const Result& wanted) const {
    for (const Instance& call : fold.calls) {
      const auto& outputs = nodes_[call.nodes[wanted.place]].outputs;
      if (wanted.slot < outputs.size() && outputs[wanted.slot] != kAbsent)
        return outputs[wanted.slot];
    }
    return kAbsent;
  }

  Node called(const Instance& call, const Function& function, const std::vector<TensorId>& given,
              const std::set<Result>& made) {
    Node node;
    node.op = function.name;
    node.domain = function.domain;
    node.name = scope(call.path);
    const int again = ++scopes_[node.name];
    if (again > 1) node.name += "_" + std::to_string(again);
    node.module = call.path;
    for (const TensorId id : given) node.inputs.push_back(call.external.at(id));
    for (const Result& each : made) {
      const auto& outputs = nodes_[call.nodes[each.place]].outputs;
      TensorId id = each.slot < outputs.size() ? outputs[each.slot] : kAbsent;
      if (id == kAbsent) {  // nobody reads it; a call has all of its results
        model_.tensors.push_back(
            {node.name + "/unread_" + std::to_string(each.place), Dtype::kFloat32, std::nullopt});
        id = static_cast<TensorId>(model_.tensors.size() - 1);
      }
      node.outputs.push_back(id);
    }
    return node;
  }

  // "/model/layers.0" of "model.layers.0".
  [[nodiscard]] static std::string scope(std::string_view path) {
    std::string text;
    for (std::size_t start = 0; start <= path.size();) {
      const std::size_t dot = std::min(path.find('.', start), path.size());
      const std::string_view part = path.substr(start, dot - start);
      text += is_number(part) && !text.empty() ? '.' : '/';
      text += part;
      start = dot + 1;
    }
    return text;
  }

  [[nodiscard]] static std::string relative(const std::string& name, const std::string& path) {
    for (const std::string& before : {path + ".", scope(path) + "/"}) {
      if (name.size() > before.size() && name.starts_with(before)) {
        return name.substr(before.size());
      }
    }
    return name;
  }

  // Constants that stand in functions now.
  void drop_unread() {
    std::unordered_set<TensorId> read(model_.graph.outputs.begin(), model_.graph.outputs.end());
    for (const Node& node : model_.graph.nodes) {
      for_each_read(node, [&](TensorId id) { read.insert(id); });
    }
    std::unordered_set<TensorId> inputs(model_.graph.inputs.begin(), model_.graph.inputs.end());
    std::erase_if(model_.graph.initializers, [&](const Initializer& each) {
      return !read.contains(each.tensor) && !inputs.contains(each.tensor);
    });
  }

  Model& model_;
  const std::map<std::string, std::string>& classes_;
  std::vector<Node>& nodes_;
  std::vector<bool> taken_;  // in a call
  std::unordered_map<TensorId, Number> producers_;
  std::unordered_map<TensorId, std::vector<Number>> readers_;
  std::unordered_map<TensorId, std::size_t> initializers_;
  std::unordered_set<TensorId> outputs_;
  std::map<std::string, int> names_;
  std::map<std::string, int> scopes_;  // of calls
};

}  // namespace

std::vector<Function> fold_functions(Model& model,
                                     const std::map<std::string, std::string>& classes) {
  return Folder(model, classes).run();
}

}  // namespace fairlead::onnx
