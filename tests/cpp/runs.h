// Recorded runs for tests, written operator by operator as the recorder would.
//
//   Lab lab({"batch"});
//   lab.record({2}, [](Recording& r) {
//     const RunValue x = r.input(Dtype::kFloat32, {2, 8});
//     r.outputs({r.op("aten.relu.default", {tensor(x)}, {made({2, 8})})});
//   });
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/trace/program.h"
#include "fairlead/trace/run.h"

namespace fairlead::test {

using Ints = std::vector<std::int64_t>;

// An argument or a result: one item, or a list of them.
struct Given {
  Item item;
  std::string text;          // of a string
  std::vector<Given> items;  // of a list
  Ints dims;                 // of a tensor that is made
  Dtype dtype = Dtype::kFloat32;
  RunValue alias = kNoRunValue;
};

inline Given given(ItemKind kind, std::int64_t i = 0) {
  Given g;
  g.item.kind = kind;
  g.item.i = i;
  return g;
}
inline Given none() { return given(ItemKind::kNone); }
inline Given tensor(RunValue v) { return given(ItemKind::kTensor, v); }
inline Given number(std::int64_t i) { return given(ItemKind::kInt, i); }
inline Given flag(bool b) { return given(ItemKind::kBool, b ? 1 : 0); }
inline Given dtype(Dtype d) { return given(ItemKind::kDtype, static_cast<std::int64_t>(d)); }
inline Given real(double f) {
  Given g = given(ItemKind::kFloat);
  g.item.f = f;
  return g;
}
inline Given words(std::string text) {
  Given g = given(ItemKind::kString);
  g.text = std::move(text);
  return g;
}
inline Given list(std::vector<Given> items) {
  Given g = given(ItemKind::kList, static_cast<std::int64_t>(items.size()));
  g.items = std::move(items);
  return g;
}
inline Given numbers(const Ints& values) {
  std::vector<Given> items;
  for (const std::int64_t v : values) items.push_back(number(v));
  return list(std::move(items));
}
// A tensor that the operator makes; `alias`: the value it is a view of.
inline Given made(Ints dims, Dtype dtype = Dtype::kFloat32, RunValue alias = kNoRunValue) {
  Given g = given(ItemKind::kTensor, kNoRunValue);
  g.dims = std::move(dims);
  g.dtype = dtype;
  g.alias = alias;
  return g;
}
// The written argument given back by an in-place operator.
inline Given same(RunValue v) { return tensor(v); }

class Recording {
 public:
  Recording(Vocabulary& vocabulary, Run& run) : vocabulary_(vocabulary), run_(run) {}

  std::string module, source;  // of the operators that follow

  RunValue input(Dtype dtype, const Ints& dims) {
    const RunValue v = value(dtype, dims, Origin::kInput);
    run_.values[v].tainted = true;
    run_.inputs.push_back(v);
    return v;
  }

  template <typename T>
  RunValue constant(const std::vector<T>& content, Dtype dtype, const Ints& dims,
                    std::string name = {}) {
    const RunValue v = value(dtype, dims, Origin::kConstant);
    run_.values[v].constant = static_cast<std::int32_t>(run_.constants.size());
    RunConstant c;
    c.value = v;
    c.persistent = !name.empty();
    c.name = std::move(name);
    c.data = bytes_of(content);
    run_.constants.push_back(std::move(c));
    return v;
  }
  // A parameter: its bytes lie at one place in every run.
  RunValue parameter(const std::byte* data, Dtype dtype, const Ints& dims, std::string name) {
    const RunValue v = constant(std::vector<float>{}, dtype, dims, std::move(name));
    run_.constants.back().data = data;
    return v;
  }

  // Keeps a result's content, as the recorder does where no input decides it.
  template <typename T>
  void keep(RunValue v, const std::vector<T>& content) {
    RunConstant c;
    c.value = v;
    c.data = bytes_of(content);
    run_.kept.emplace(v, std::move(c));
  }

  std::vector<RunValue> ops(const std::string& name, const std::vector<Given>& args,
                            const std::vector<Given>& results) {
    OpRecord record;
    record.op = op_id(name);
    record.module = vocabulary_.intern(module);
    record.source = vocabulary_.intern(source);
    record.items = size();
    tainted_ = vocabulary_.ops[record.op].random;
    for (const Given& arg : args) push(arg);
    record.item_count = size() - record.items;
    record.results = size();
    std::vector<RunValue> values;
    for (const Given& result : results) push_result(result, values);
    record.result_count = size() - record.results;
    run_.ops.push_back(record);
    return values;
  }
  RunValue op(const std::string& name, const std::vector<Given>& args, const Given& result) {
    const auto values = ops(name, args, {result});
    return values.empty() ? kNoRunValue : values[0];
  }

  void outputs(std::vector<RunValue> values) { run_.outputs = std::move(values); }
  [[nodiscard]] Run& run() { return run_; }

 private:
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(run_.items.size()); }

  RunValue value(Dtype dtype, const Ints& dims, Origin origin) {
    ValueFact fact;
    fact.dtype = dtype;
    fact.rank = static_cast<std::uint8_t>(dims.size());
    fact.origin = origin;
    fact.dims = static_cast<std::uint32_t>(run_.dims.size());
    run_.dims.insert(run_.dims.end(), dims.begin(), dims.end());
    run_.values.push_back(fact);
    return static_cast<RunValue>(run_.values.size() - 1);
  }

  template <typename T>
  const std::byte* bytes_of(const std::vector<T>& content) {
    auto& kept = storage_->emplace_back(content.size() * sizeof(T) + 1);
    if (!content.empty()) std::memcpy(kept.data(), content.data(), content.size() * sizeof(T));
    return kept.data();
  }

  std::uint32_t op_id(const std::string& name) {
    for (std::size_t k = 0; k < vocabulary_.ops.size(); ++k) {
      if (vocabulary_.ops[k].name == name) return static_cast<std::uint32_t>(k);
    }
    OpDef def;
    def.name = name;
    vocabulary_.ops.push_back(std::move(def));
    return static_cast<std::uint32_t>(vocabulary_.ops.size() - 1);
  }

  void push(const Given& g) {
    Item item = g.item;
    if (item.kind == ItemKind::kString) item.i = vocabulary_.intern(g.text);
    if (item.kind == ItemKind::kTensor) tainted_ = tainted_ || run_.values[item.i].tainted;
    run_.items.push_back(item);
    for (const Given& part : g.items) push(part);
  }

  void push_result(const Given& g, std::vector<RunValue>& values) {
    Item item = g.item;
    if (item.kind == ItemKind::kTensor) {
      if (item.i == kNoRunValue) {
        item.i = value(g.dtype, g.dims, Origin::kOperator);
        ValueFact& fact = run_.values[item.i];
        fact.alias = g.alias;
        fact.tainted = tainted_;
        fact.producer = static_cast<std::int32_t>(run_.ops.size());
      }
      values.push_back(static_cast<RunValue>(item.i));
    }
    run_.items.push_back(item);
    for (const Given& part : g.items) push_result(part, values);
  }

  Vocabulary& vocabulary_;
  Run& run_;
  bool tainted_ = false;
  std::shared_ptr<std::deque<std::vector<std::byte>>> storage_ = all_storage();

  // Bytes live as long as the process: runs only borrow them.
  static std::shared_ptr<std::deque<std::vector<std::byte>>> all_storage() {
    static const auto storage = std::make_shared<std::deque<std::vector<std::byte>>>();
    return storage;
  }
};

// Runs of one model and the request to build its program.
class Lab {
 public:
  explicit Lab(const std::vector<std::string>& symbols) {
    request_.pool = std::make_shared<ExprPool>();
    for (const std::string& name : symbols) (void)request_.pool->symbol(name);
  }

  Vocabulary vocabulary;

  OpDef& define(const std::string& name, std::vector<std::string> params = {}) {
    OpDef def;
    def.name = name;
    def.params = std::move(params);
    vocabulary.ops.push_back(std::move(def));
    return vocabulary.ops.back();
  }
  // "aten.add_.Tensor" writes its first argument and is "aten.add.Tensor" otherwise.
  void define_in_place(const std::string& name, const std::string& functional) {
    OpDef& def = define(name);
    def.functional = functional;
    def.writes = 0;
  }

  void input(const std::string& name, const std::vector<std::string>& shape) {
    InputSpec spec{name, {}};
    for (const std::string& e : shape) spec.shape.push_back(request_.pool->parse(e));
    request_.inputs.push_back(std::move(spec));
  }

  // One run at these values of the symbols.
  void record(const Ints& values, const std::function<void(Recording&)>& model) {
    runs_.emplace_back();
    Recording recording(vocabulary, runs_.back());
    model(recording);
    request_.symbols.push_back(values);
  }
  // The same model at several settings.
  void record_all(const std::vector<Ints>& settings,
                  const std::function<void(Recording&, const Ints&)>& model) {
    for (const Ints& values : settings) record(values, [&](Recording& r) { model(r, values); });
  }

  [[nodiscard]] const Run& run(std::size_t k) const { return runs_[k]; }

  [[nodiscard]] Program build() {
    request_.vocabulary = &vocabulary;
    request_.runs.clear();
    for (const Run& run : runs_) request_.runs.push_back(&run);
    request_.output_names.clear();
    for (std::size_t k = 0; k < runs_.front().outputs.size(); ++k) {
      request_.output_names.push_back("output" + std::to_string(k));
    }
    return build_program(request_);
  }

 private:
  ProgramRequest request_;
  std::deque<Run> runs_;
};

}  // namespace fairlead::test
