// The recorder: turns what PyTorch's dispatcher shows in Python into runs of the core.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "carriers.h"
#include "fairlead/trace/answered.h"
#include "fairlead/trace/run.h"
#include "light_calls.h"

namespace fairlead::python {

namespace nb = nanobind;

// Raised out of a model that is being run when it parts from the run it is compared with. It is a
// BaseException, so that a model's own `except Exception` does not swallow it.
extern PyObject* parted_exception;
extern PyObject* enough_exception;

class Recorder final : public CarrySink {
 public:
  // `define(func)` describes an operator once: see `define` in record/operators.py for the fields.
  // `snapshot(tensor)` returns (contiguous copy, address); `complex_number(value, wide)` a 0-d
  // tensor.
  Recorder(nb::object tensor_type, nb::object size_type, nb::dict dtypes, nb::object define,
           nb::object snapshot, nb::object complex_number, nb::list library_folders);
  ~Recorder() override;

  void set_modules(nb::list modules);     // (module, path) pairs
  void set_persistent(nb::list tensors);  // (name, tensor) pairs: parameters and buffers

  // Starts a run on these input tensors. `reference` is the run to compare with, or -1.
  // With `roll`, it may take another number of steps in a loop.
  // With `carry`, sizes and values read remember where they come from (carriers.h).
  // With `lines`, questions of those lines have the answers of the reference (trace/answered.h).
  void begin(nb::list inputs, int reference, bool keep, bool roll, bool carry, bool brief,
             const std::vector<std::uint32_t>& lines);
  // The line whose question made a run, or that in progress, part from the reference at `op`.
  [[nodiscard]] std::uint32_t deciding_line(int reference, int run, std::size_t op) const;
  // The numbers of the call that runs next, whose operators may have them as arguments.
  void note_call(nb::handle func, nb::handle args, nb::handle kwargs);
  [[nodiscard]] nb::object shape_of(nb::handle tensor);  // as torch.Size; None: not of this run
  [[nodiscard]] nb::object size_of(nb::handle tensor, nb::handle axis);
  [[nodiscard]] nb::object count_of(nb::handle tensor);
  // What the last operator read, as carriers in the same nest of lists.
  [[nodiscard]] nb::object read_result(nb::handle plain);
  void add(nb::handle func, nb::handle args, nb::handle kwargs, nb::handle result);
  // Calls that are one operator (direct.cpp). `one_operator(op)`: it is never anything else;
  // `undispatched()`: a guard under which the dispatch mode sees nothing; `modes()`, `level()`: how
  // many dispatch modes there are, and whether this is within vmap.
  void set_direct(nb::object one_operator, nb::object undispatched, nb::object modes,
                  nb::object level, nb::object parameter_type);
  // After a call that went through the dispatch mode: was it one operator?
  void learn_call(nb::handle func, nb::handle args, nb::handle result);
  // The result of a call that is known to be one, which is recorded; None: not known.
  [[nodiscard]] nb::object call_directly(nb::handle func, nb::handle args);
  // While a run goes without weights: what is known of its calls, and `call(op, args, kwargs)` for
  // those that are not. None: with weights.
  void set_light(nb::object calls, nb::object call);
  void enter(nb::handle module);
  void leave();
  int end(nb::list outputs);  // the run's number
  void abort();
  void forget(int run);  // what a run that is no longer needed holds is dropped

  Run& run() override { return *run_; }
  std::uint32_t source_line() override { return source(); }
  std::uint32_t module() override { return module_stack_.back(); }
  bool is_tensor(PyObject* object) override {
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(tensor_type_.ptr())) != 0;
  }
  bool answer(const Guard& guard) override { return answers_.answer(guard); }
  CarryId dim(PyObject* tensor, Py_ssize_t axis) override;

  [[nodiscard]] std::string describe_current() const;
  [[nodiscard]] bool visible_so_far(int reference) const {
    return !run_ || !same_numbers_so_far(*run_, run_at(reference));
  }
  [[nodiscard]] bool is_persistent(nb::handle tensor) const;
  // w.data = made, in the run in progress: from then on w is what was made.
  void note_data(nb::handle tensor, nb::handle made);
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }
  [[nodiscard]] const Run& run_at(int index) const {
    return *runs_.at(static_cast<std::size_t>(index));
  }
  // Where two runs part, or kSameProgram; runs are compared once.
  [[nodiscard]] std::size_t difference(int a, int b) const;
  [[nodiscard]] std::size_t op_count(int index) const { return run_at(index).ops.size(); }
  // The first of these sizes at which a run's questions have the answers they had; -1: none.
  [[nodiscard]] int foreseen(
      int index, const std::vector<std::vector<std::vector<std::int64_t>>>& sizes) const;

 private:
  struct Op {
    std::uint32_t id = 0;
    std::vector<std::vector<Item>> defaults;  // by parameter; empty: required
    std::vector<nb::object> names;            // interned parameter names
    std::string base;                         // "topk" of aten.topk.default
    bool needs_strides = false;
  };
  struct Known {
    PyObject* weak = nullptr;
    RunValue value = kNoRunValue;
  };
  using Signature = std::array<PyTypeObject*, 6>;  // of the arguments; null behind the last
  struct DirectForm {
    Signature signature{};
    nb::object op;  // none: it is not one operator
  };
  struct Direct {
    nb::object func;
    std::vector<DirectForm> forms;
  };
  nb::object run_directly(nb::handle func, nb::handle args, const nb::object& op);
  bool signature_of(PyObject* args, Signature& signature) const;
  bool is_the_call(PyObject* args, PyObject* result) const;
  const Op& op_of(nb::handle func);
  void push(nb::handle object);
  RunValue value_of(PyObject* tensor);
  RunValue new_value(PyObject* tensor, Origin origin);
  void remember(PyObject* tensor, RunValue value);
  // Memory that was not set when it was made, in another tensor: nn.Parameter(torch.empty(..)).
  [[nodiscard]] RunValue same_memory(PyObject* tensor) const;
  struct Named {
    std::string name;
    std::int64_t memory = 0;  // where its numbers were when it was named; 0: nowhere
  };
  // A parameter that the model gave other numbers while it ran, w.data = made: what they are.
  [[nodiscard]] bool was_moved(PyObject* tensor, Named& named) const;
  [[nodiscard]] RunValue moved_to(PyObject* tensor) const;
  [[nodiscard]] bool is_sized(const OpRecord& record) const;
  void push_result(nb::handle object, const OpDef& def, bool tainted);
  void push_result_tensor(PyObject* tensor, const OpDef& def, bool tainted);
  std::uint32_t source();
  void read_strides(const OpRecord& record, nb::handle args);
  void clear_known();
  [[nodiscard]] RunValue known_value(PyObject* tensor) const;
  void note_numbers(PyObject* object, int depth);
  void bind_arguments(const Op& op, const OpRecord& record);
  void note_flag(const OpRecord& record);
  std::uint32_t bind_default(std::uint32_t at);
  std::uint32_t bind(std::uint32_t at, PyObject* source);
  [[nodiscard]] std::uint32_t skip(std::uint32_t at) const;
  [[nodiscard]] PyObject* read_nested(PyObject* plain, CarryId op, CarryId& element);

  nb::object tensor_type_, size_type_, define_, snapshot_, complex_number_;
  std::unordered_map<PyObject*, Dtype> dtypes_;
  std::vector<nb::object> holders_;  // keeps dtypes and functions alive
  std::vector<std::string> library_folders_;
  Vocabulary vocabulary_;
  std::unordered_map<PyObject*, Op> ops_;
  std::unordered_map<PyObject*, std::uint32_t> modules_;
  std::unordered_map<PyObject*, Named> persistent_;
  std::vector<nb::object> persistent_holders_;

  struct CodePlace {
    nb::object code;
    bool library = false;
    bool ours = false;
    std::string file;
    std::unordered_map<int, std::uint32_t> lines;  // by place in the code
  };
  std::unordered_map<PyObject*, CodePlace> code_;

  std::vector<std::unique_ptr<Run>> runs_;
  mutable std::map<std::pair<int, int>, std::size_t> differences_;
  std::vector<std::vector<nb::object>> run_holders_;
  // The run in progress.
  std::unique_ptr<Run> run_;
  const Run* reference_ = nullptr;
  bool keep_ = false;
  bool roll_ = false;
  bool brief_ = false;
  std::vector<nb::object> run_objects_;
  std::unordered_map<PyObject*, Known> known_;
  // The last tensors whose memory was not set when it was made. It is held, not they: PyTorch
  // detaches a result that somebody else holds, which is an operator.
  struct Layout {
    nb::object storage, strides;
    std::int64_t offset, count;
  };
  std::vector<std::pair<Layout, RunValue>> unset_;
  static Layout layout_of(PyObject* tensor);
  std::vector<std::uint32_t> module_stack_;
  std::vector<RunValue> argument_values_;
  std::vector<PyObject*> argument_tensors_;
  bool carry_ = false;
  Answers answers_;
  std::uint32_t call_first_ = 0, call_count_ = 0;  // in Run::call_numbers
  std::size_t call_ops_ = 0;                       // operators before the call
  nb::object call_args_, call_kwargs_;
  std::string_view call_name_;
  std::unordered_map<PyObject*, std::pair<nb::object, std::string>> function_names_;
  nb::object one_operator_, undispatched_, modes_, level_, parameter_type_;
  nb::object light_holder_, light_call_;
  LightCalls* light_ = nullptr;
  std::unordered_map<PyObject*, Direct> direct_;
  nb::object last_op_;                               // whose operator was recorded last
  std::unordered_map<RunValue, nb::object> shapes_;  // torch.Size of carriers, by value
};

void init_record(nb::module_& m);

}  // namespace fairlead::python
