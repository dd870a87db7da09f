// Walks operator calls with the C API: this code runs once per operator of every recorded run.
#include "recorder.h"

#include <frameobject.h>
#include <nanobind/stl/string.h>
#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/trace/foresight.h"
#include "fairlead/trace/loops.h"

namespace fairlead::python {

PyObject* parted_exception = nullptr;
PyObject* enough_exception = nullptr;

namespace {

// Operators of a brief run: what a model does with its inputs, and some of its layers.
constexpr std::size_t kEnough = 400;

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

PyObject* attribute(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  if (found == nullptr) throw nb::python_error();
  return found;
}

nb::object call(PyObject* object, const char* method) {
  nb::object result = nb::steal(PyObject_CallMethod(object, method, nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

std::int64_t call_int(PyObject* object, const char* method) {
  return PyLong_AsLongLong(call(object, method).ptr());
}

// Where a tensor's numbers are; 0 for one that has none, or does not say.
std::int64_t address_of(PyObject* tensor) {
  try {
    return call_int(tensor, "data_ptr");
  } catch (const nb::python_error&) {
    return 0;
  }
}

bool alive(PyObject* weak, PyObject* object) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(weak, &found) != 1) return false;
  Py_DECREF(found);
  return found == object;
#else
  return PyWeakref_GetObject(weak) == object;
#endif
}

}  // namespace

Recorder::Recorder(nb::object tensor_type, nb::object size_type, nb::dict dtypes, nb::object define,
                   nb::object snapshot, nb::object complex_number, nb::list library_folders)
    : tensor_type_(std::move(tensor_type)),
      size_type_(std::move(size_type)),
      define_(std::move(define)),
      snapshot_(std::move(snapshot)),
      complex_number_(std::move(complex_number)) {
  for (auto [dtype, name] : dtypes) {
    const auto parsed = parse_dtype(nb::cast<std::string>(name));
    if (!parsed) continue;
    dtypes_.emplace(dtype.ptr(), *parsed);
    holders_.push_back(nb::borrow(dtype));
  }
  for (nb::handle folder : library_folders)
    library_folders_.push_back(nb::cast<std::string>(folder));
}

void Recorder::set_modules(nb::list modules) {
  modules_.clear();
  for (nb::handle pair : modules) {
    modules_.emplace(nb::object(pair[0]).ptr(), vocabulary_.intern(nb::cast<std::string>(pair[1])));
  }
}

void Recorder::set_persistent(nb::list tensors) {
  persistent_.clear();
  persistent_holders_.clear();
  for (nb::handle pair : tensors) {
    nb::object tensor = pair[1];
    persistent_.emplace(tensor.ptr(),
                        Named{nb::cast<std::string>(pair[0]), address_of(tensor.ptr())});
    persistent_holders_.push_back(std::move(tensor));
  }
}

bool Recorder::is_persistent(nb::handle tensor) const { return persistent_.contains(tensor.ptr()); }

void Recorder::note_data(nb::handle tensor, nb::handle made) {
  if (run_ == nullptr) return;
  const auto named = persistent_.find(tensor.ptr());
  const bool same = named != persistent_.end() && named->second.memory != 0 &&
                    address_of(made.ptr()) == named->second.memory;
  if (!same) remember(tensor.ptr(), value_of(made.ptr()));
}

void Recorder::clear_known() {
  for (auto& [object, known] : known_) Py_DECREF(known.weak);
  known_.clear();
  unset_.clear();
}

Recorder::~Recorder() {
  if (run_ && carry_) watch(nullptr);
}

void Recorder::begin(nb::list inputs, int reference, bool keep, bool roll, bool carry, bool brief,
                     const std::vector<std::uint32_t>& lines) {
  clear_known();
  carry_ = carry;
  static std::uint32_t begun = 0;  // over all recorders: a carrier knows its run by it
  serial = ++begun;
  call_first_ = call_count_ = 0;
  run_ = std::make_unique<Run>();
  run_objects_.clear();
  module_stack_.assign(1, 0);
  reference_ = reference >= 0 ? runs_.at(static_cast<std::size_t>(reference)).get() : nullptr;
  answers_ = lines.empty() || reference_ == nullptr ? Answers() : Answers(*reference_, lines);
  keep_ = keep;
  roll_ = roll;
  brief_ = brief && reference_ != nullptr;
  if (reference_ != nullptr) {
    run_->ops.reserve(reference_->ops.size());
    run_->items.reserve(reference_->items.size());
    run_->values.reserve(reference_->values.size());
    run_->dims.reserve(reference_->dims.size());
  }
  for (nb::handle input : inputs) {
    const RunValue v = new_value(input.ptr(), Origin::kInput);
    run_->values[v].tainted = true;
    run_->inputs.push_back(v);
    remember(input.ptr(), v);
  }
  asks = true;
  if (carry_) watch(this);
}

RunValue Recorder::known_value(PyObject* tensor) const {
  const auto it = known_.find(tensor);
  return it != known_.end() && alive(it->second.weak, tensor) ? it->second.value : kNoRunValue;
}

// ---- numbers that remember ----------------------------------------------------------------------

void Recorder::remember(PyObject* tensor, RunValue value) {
  auto [it, inserted] = known_.try_emplace(tensor);
  if (!inserted) Py_DECREF(it->second.weak);
  it->second.weak = PyWeakref_NewRef(tensor, nullptr);
  if (it->second.weak == nullptr) {
    known_.erase(it);
    throw nb::python_error();
  }
  it->second.value = value;
}

Recorder::Layout Recorder::layout_of(PyObject* tensor) {
  return {call(tensor, "untyped_storage"), call(tensor, "stride"),
          call_int(tensor, "storage_offset"), call_int(tensor, "nelement")};
}

RunValue Recorder::same_memory(PyObject* tensor) const {
  if (unset_.empty()) return kNoRunValue;
  const Layout own = layout_of(tensor);
  const auto address = [](const Layout& l) {
    return nb::cast<std::uintptr_t>(l.storage.attr("_cdata"));
  };
  for (const auto& [layout, value] : unset_) {
    if (own.offset == layout.offset && own.count == layout.count &&
        own.strides.equal(layout.strides) && address(own) == address(layout)) {
      return value;
    }
  }
  return kNoRunValue;
}

bool Recorder::was_moved(PyObject* tensor, Named& named) const {
  if (named.memory == 0) return false;
  const std::int64_t now = address_of(tensor);
  if (now == 0 || now == named.memory) return false;
  named.memory = -1;  // from now on: its first memory is gone, and others may get it
  return true;
}

RunValue Recorder::moved_to(PyObject* tensor) const {
  const Layout own = layout_of(tensor);
  const std::int64_t memory = address_of(tensor);
  for (const auto& [object, known] : known_) {
    if (object == tensor || !alive(known.weak, object) || address_of(object) != memory) continue;
    const Layout other = layout_of(object);
    if (own.count == other.count && own.strides.equal(other.strides)) return known.value;
  }
  return kNoRunValue;
}

RunValue Recorder::new_value(PyObject* tensor, Origin origin) {
  static PyObject* const shape_name = interned("shape");
  static PyObject* const dtype_name = interned("dtype");
  ValueFact fact;
  fact.origin = origin;
  fact.dims = static_cast<std::uint32_t>(run_->dims.size());
  const nb::object shape = nb::steal(attribute(tensor, shape_name));
  const Py_ssize_t rank = PyTuple_GET_SIZE(shape.ptr());
  fact.rank = static_cast<std::uint8_t>(rank);
  for (Py_ssize_t k = 0; k < rank; ++k) {
    run_->dims.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), k)));
  }
  const nb::object dtype = nb::steal(attribute(tensor, dtype_name));
  const auto it = dtypes_.find(dtype.ptr());
  if (it == dtypes_.end()) {
    throw Error(ErrorCode::kUnsupported, "[record] Expected a dtype that ONNX has, got " +
                                             nb::cast<std::string>(nb::str(dtype)) + ".");
  }
  fact.dtype = it->second;
  run_->values.push_back(fact);
  return static_cast<RunValue>(run_->values.size() - 1);
}

RunValue Recorder::value_of(PyObject* tensor) {
  const auto it = known_.find(tensor);
  if (it != known_.end() && alive(it->second.weak, tensor)) return it->second.value;
  auto named = persistent_.find(tensor);
  const bool moved = named != persistent_.end() && was_moved(tensor, named->second);
  if (moved) named = persistent_.end();
  if (named == persistent_.end()) {
    const RunValue made = moved ? moved_to(tensor) : same_memory(tensor);
    if (made != kNoRunValue) {
      if (!moved) remember(tensor, made);  // it may get yet other numbers
      return made;
    }
  }
  const RunValue v = new_value(tensor, Origin::kConstant);
  RunConstant constant;
  constant.value = v;
  if (named != persistent_.end()) {
    constant.name = named->second.name;
    constant.persistent = true;
    constant.data = reinterpret_cast<const std::byte*>(call_int(tensor, "data_ptr"));
    for (nb::handle s : call(tensor, "stride"))
      constant.strides.push_back(nb::cast<std::int64_t>(s));
  } else {
    const nb::object copy = snapshot_(nb::handle(tensor), true);
    constant.data = reinterpret_cast<const std::byte*>(nb::cast<std::int64_t>(copy[1]));
    run_objects_.push_back(copy);
    run_objects_.push_back(nb::borrow(tensor));  // its id must not be reused within the run
  }
  run_->values[v].constant = static_cast<std::int32_t>(run_->constants.size());
  run_->constants.push_back(std::move(constant));
  remember(tensor, v);
  return v;
}

void Recorder::push(nb::handle object) {
  PyObject* o = object.ptr();
  Item item;
  if (o == Py_None) {
    run_->items.push_back(item);
  } else if (PyBool_Check(o)) {
    item.kind = ItemKind::kBool;
    item.i = o == Py_True;
    run_->items.push_back(item);
  } else if (PyLong_Check(o)) {
    item.kind = ItemKind::kInt;
    item.i = PyLong_AsLongLong(o);
    if (item.i == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    item.carried = carried_node(o);
    run_->items.push_back(item);
  } else if (PyFloat_Check(o)) {
    item.kind = ItemKind::kFloat;
    item.f = PyFloat_AS_DOUBLE(o);
    item.carried = carried_node(o);
    run_->items.push_back(item);
  } else if (PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(tensor_type_.ptr()))) {
    const RunValue v = value_of(o);
    argument_values_.push_back(v);
    argument_tensors_.push_back(o);
    item.kind = ItemKind::kTensor;
    item.i = v;
    run_->items.push_back(item);
  } else if (PyComplex_Check(o)) {  // no number of ours: a tensor of its precision
    const bool wide =
        std::any_of(argument_values_.begin(), argument_values_.end(), [&](RunValue v) {
          const Dtype dtype = run_->values[v].dtype;
          return dtype == Dtype::kFloat64 || dtype == Dtype::kComplex128;
        });
    push(complex_number_(object, wide));
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    item.kind = ItemKind::kList;
    item.i = PySequence_Fast_GET_SIZE(o);
    run_->items.push_back(item);
    for (Py_ssize_t k = 0; k < item.i; ++k) push(PySequence_Fast_GET_ITEM(o, k));
  } else if (PyUnicode_Check(o)) {
    item.kind = ItemKind::kString;
    item.i = vocabulary_.intern(nb::cast<std::string>(object));
    run_->items.push_back(item);
  } else if (const auto it = dtypes_.find(o); it != dtypes_.end()) {
    item.kind = ItemKind::kDtype;
    item.i = static_cast<std::int64_t>(it->second);
    run_->items.push_back(item);
  } else if (PyIndex_Check(o)) {  // NumPy integers
    item.kind = ItemKind::kInt;
    const nb::object number = nb::steal(PyNumber_Index(o));
    if (!number.is_valid()) throw nb::python_error();
    item.i = PyLong_AsLongLong(number.ptr());
    run_->items.push_back(item);
  } else {  // devices, layouts, memory formats, generators
    item.kind = ItemKind::kString;
    std::string text = nb::cast<std::string>(nb::str(object));
    if (text == "meta") text = "cpu";  // as it is in a run with weights
    item.i = vocabulary_.intern(text);
    run_->items.push_back(item);
  }
}

const Recorder::Op& Recorder::op_of(nb::handle func) {
  const auto it = ops_.find(func.ptr());
  if (it != ops_.end()) return it->second;
  // (name, functional, [(parameter, has default, default)], writes, drops, alias, random, strides,
  // how many are written)
  const nb::object fields = define_(func);
  OpDef def;
  Op op;
  def.name = nb::cast<std::string>(fields[0]);
  def.functional = nb::cast<std::string>(fields[1]);
  for (nb::handle param : nb::object(fields[2])) {
    const nb::object name = param[0];
    def.params.push_back(nb::cast<std::string>(name));
    op.names.push_back(name);
    std::vector<Item> items;
    if (nb::cast<bool>(param[1])) {
      const std::size_t mark = run_->items.size();
      push(nb::object(param[2]));
      items.assign(run_->items.begin() + static_cast<std::ptrdiff_t>(mark), run_->items.end());
      run_->items.resize(mark);
    }
    op.defaults.push_back(std::move(items));
  }
  def.writes = nb::cast<int>(fields[3]);
  def.drops_written = nb::cast<bool>(fields[4]);
  def.alias = static_cast<Alias>(nb::cast<int>(fields[5]));
  def.random = nb::cast<bool>(fields[6]);
  op.needs_strides = nb::cast<bool>(fields[7]);
  def.written_count = nb::cast<int>(fields[8]);
  op.id = static_cast<std::uint32_t>(vocabulary_.ops.size());
  const std::string name = def.name.str();
  const std::size_t dot = name.find('.') + 1;
  op.base = name.substr(dot, name.find('.', dot) - dot);
  vocabulary_.ops.push_back(std::move(def));
  holders_.push_back(nb::borrow(func));
  return ops_.emplace(func.ptr(), std::move(op)).first->second;
}

void Recorder::read_strides(const OpRecord& record, nb::handle args) {
  const Item& first = run_->items[record.items];
  if (first.kind != ItemKind::kTensor) return;
  const nb::object strides = nb::object(args[0]).attr("stride")();
  std::vector<std::int64_t> numbers;
  for (nb::handle s : strides) numbers.push_back(nb::cast<std::int64_t>(s));
  numbers.push_back(nb::cast<std::int64_t>(nb::object(args[0]).attr("storage_offset")()));
  run_->strides[static_cast<RunValue>(first.i)] = std::move(numbers);
}

void Recorder::add(nb::handle func, nb::handle args, nb::handle kwargs, nb::handle result) {
  if (!run_) return;
  const Op& op = op_of(func);
  last_op_ = nb::borrow(func);
  argument_values_.clear();
  argument_tensors_.clear();
  OpRecord record;
  record.op = op.id;
  record.module = module_stack_.back();
  record.source = source();
  record.items = static_cast<std::uint32_t>(run_->items.size());
  record.call_numbers = call_first_;
  record.call_count = call_count_;
  const std::size_t positional = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  const bool named = kwargs.is_valid() && !kwargs.is_none() && PyDict_GET_SIZE(kwargs.ptr()) > 0;
  const std::size_t count = std::max(positional, op.names.size());
  for (std::size_t k = 0; k < count; ++k) {
    if (k < positional) {
      push(PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(k)));
      continue;
    }
    PyObject* value = named ? PyDict_GetItem(kwargs.ptr(), op.names[k].ptr()) : nullptr;
    if (value != nullptr) {
      push(value);
    } else if (op.defaults[k].empty()) {
      run_->items.push_back({});
    } else {
      run_->items.insert(run_->items.end(), op.defaults[k].begin(), op.defaults[k].end());
    }
  }
  record.item_count = static_cast<std::uint32_t>(run_->items.size()) - record.items;
  if (op.needs_strides) read_strides(record, args);
  if (carry_) bind_arguments(op, record);
  call_args_.reset();  // they would keep tensors alive, and only the first operator has them
  call_kwargs_.reset();

  const OpDef& def = vocabulary_.ops[op.id];
  bool tainted = def.random;
  for (const RunValue v : argument_values_) tainted = tainted || run_->values[v].tainted;
  if (def.writes >= 0 && tainted && !argument_values_.empty()) {
    for (RunValue v = argument_values_.front(); v != kNoRunValue; v = run_->values[v].alias) {
      run_->values[v].tainted = true;
    }
  }
  const bool sized = is_sized(record);
  if (def.writes >= 0 && sized && !argument_values_.empty()) {
    for (RunValue v = argument_values_.front(); v != kNoRunValue; v = run_->values[v].alias) {
      run_->values[v].sized = true;
    }
  }
  record.results = static_cast<std::uint32_t>(run_->items.size());
  push_result(result, def, tainted);
  for (std::size_t at = record.results; sized && at < run_->items.size(); ++at) {
    const Item& made = run_->items[at];
    if (made.kind == ItemKind::kTensor && made.i != kNoRunValue) {
      run_->values[static_cast<RunValue>(made.i)].sized = true;
    }
  }
  record.result_count = static_cast<std::uint32_t>(run_->items.size()) - record.results;
  if (def.writes >= 0) {
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const Item& written = run_->items[record.results + k];
      if (written.kind != ItemKind::kTensor || written.i == kNoRunValue) continue;
      run_->writes.emplace_back(static_cast<std::uint32_t>(run_->ops.size()),
                                static_cast<RunValue>(written.i));
    }
  }
  run_->ops.push_back(record);
  // Which numbers of a list count is known in the end (carrier_lists.cpp).
  const bool reads_list = def.name.has(Trait::kReads) && record.result_count > 0 &&
                          run_->items[record.results].kind == ItemKind::kList;
  if (reference_ != nullptr &&
      !same_operator(*reference_, *run_, run_->ops.size() - 1, !reads_list)) {
    if (roll_ && may_be_loop(*reference_, *run_, run_->ops.size() - 1)) {
      reference_ = nullptr;  // they are compared once the run is whole
      return;
    }
    PyErr_SetObject(parted_exception, nb::int_(run_->ops.size() - 1).ptr());
    throw nb::python_error();
  }
  note_flag(run_->ops.back());
  if (brief_ && reference_ != nullptr && run_->ops.size() >= kEnough) {
    PyErr_SetNone(enough_exception);
    throw nb::python_error();
  }
}

// Whether numbers that may be others in another run are among what an operator is given: its own,
// or those of the call in Python that led to it.
bool Recorder::is_sized(const OpRecord& record) const {
  if (!carry_) return false;
  const auto varies = [&](CarryId id) {
    if (id == kNoCarry) return false;
    const CarryKind kind = run_->carried[id].kind;
    return kind != CarryKind::kInt && kind != CarryKind::kFloat;
  };
  const auto sized = [&](RunValue v) { return run_->values[v].sized; };
  if (std::any_of(argument_values_.begin(), argument_values_.end(), sized)) return true;
  for (std::size_t at = record.items; at < run_->items.size(); ++at) {
    if (varies(run_->items[at].carried)) return true;
  }
  const auto numbers = run_->call_numbers.begin() + record.call_numbers;
  return std::any_of(numbers, numbers + record.call_count, varies);
}

// if t.any(): a question whose answer is a value of the run.
void Recorder::note_flag(const OpRecord& record) {
  if (!carry_ || record.result_count != 1) return;
  const Item& flag = run_->items[record.results];
  if (flag.kind != ItemKind::kBool) return;
  Carry node;
  node.kind = CarryKind::kRead;
  node.a = static_cast<CarryId>(run_->ops.size() - 1);
  node.b = 0;
  node.i = flag.i;
  ask_flag(node);
}

void Recorder::push_result(nb::handle object, const OpDef& def, bool tainted) {
  PyObject* o = object.ptr();
  if (PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(tensor_type_.ptr()))) {
    push_result_tensor(o, def, tainted);
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    Item item;
    item.kind = ItemKind::kList;
    item.i = PySequence_Fast_GET_SIZE(o);
    run_->items.push_back(item);
    for (Py_ssize_t k = 0; k < item.i; ++k) {
      push_result(PySequence_Fast_GET_ITEM(o, k), def, tainted);
    }
  } else {
    push(object);
  }
}

void Recorder::push_result_tensor(PyObject* tensor, const OpDef& def, bool tainted) {
  Item item;
  item.kind = ItemKind::kTensor;
  const auto it = known_.find(tensor);
  const bool known = it != known_.end() && alive(it->second.weak, tensor);
  if (known && def.writes >= 0) {
    item.i = it->second.value;
    run_->items.push_back(item);
    return;
  }
  // An operator may return its argument itself (contiguous): a new value that shares its storage,
  // so that runs in which it copied are numbered alike.
  const RunValue before = known ? it->second.value : kNoRunValue;
  const RunValue v = new_value(tensor, Origin::kOperator);
  if (def.name.has(Trait::kUnset)) {
    constexpr std::size_t kMostUnset = 8;
    if (unset_.size() == kMostUnset) unset_.erase(unset_.begin());
    unset_.emplace_back(layout_of(tensor), v);
  }
  ValueFact& fact = run_->values[v];
  fact.tainted = tainted;
  fact.producer = static_cast<std::int32_t>(run_->ops.size());
  if (known) {
    fact.alias = before;
  } else if (def.alias == Alias::kView && !argument_values_.empty()) {
    fact.alias = argument_values_.front();
  } else if (def.alias == Alias::kObserved && !argument_tensors_.empty()) {
    const std::int64_t address = call_int(tensor, "data_ptr");
    if (address != 0 && address == call_int(argument_tensors_.front(), "data_ptr")) {
      fact.alias = argument_values_.front();
    }
  }
  constexpr std::int64_t kMostKeptBytes = 8 << 20;
  if (keep_ && !tainted && fact.alias == kNoRunValue) {
    std::int64_t bytes = static_cast<std::int64_t>(dtype_size(fact.dtype));
    for (int axis = 0; axis < fact.rank; ++axis) bytes *= run_->dim(v, axis);
    if (bytes <= kMostKeptBytes) {
      // A copy: another reference to a fresh tensor would make PyTorch detach it, which is an
      // operator.
      const nb::object copy = snapshot_(nb::handle(tensor), false);
      RunConstant kept;
      kept.value = v;
      kept.data = reinterpret_cast<const std::byte*>(nb::cast<std::int64_t>(copy[1]));
      // In a run without weights what they alone decide has no bytes: it stays an operator.
      if (kept.data != nullptr || bytes == 0) {
        run_->kept.emplace(v, std::move(kept));
        run_objects_.push_back(copy);
      }
    }
  }
  remember(tensor, v);
  item.i = v;
  run_->items.push_back(item);
}

// The innermost line that is not PyTorch's or ours; PyTorch's own where there is no other.
std::uint32_t Recorder::source() {
  std::uint32_t library_line = 0;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  std::uint32_t found = 0;
  for (int depth = 0; frame != nullptr && depth < 40; ++depth) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    auto [it, inserted] = code_.try_emplace(reinterpret_cast<PyObject*>(code));
    CodePlace& place = it->second;
    if (inserted) {
      place.code = nb::borrow(reinterpret_cast<PyObject*>(code));
      place.file = nb::cast<std::string>(nb::handle(code->co_filename));
      for (const std::string& folder : library_folders_) {
        if (place.file.starts_with(folder)) place.library = true;
      }
      place.ours = !library_folders_.empty() && place.file.starts_with(library_folders_[0]);
      if (const auto cut = place.file.rfind("site-packages/"); cut != std::string::npos) {
        place.file.erase(0, cut + 14);
      }
    }
    Py_DECREF(code);
    if (!place.library || (library_line == 0 && !place.ours)) {
#if PY_VERSION_HEX >= 0x030B0000
      const int at_code = PyFrame_GetLasti(frame);  // the line of which is looked for in a table
#else
      const int at_code = PyFrame_GetLineNumber(frame);
#endif
      auto [at, fresh] = place.lines.try_emplace(at_code, 0);
      if (fresh) {
        const std::string line = std::to_string(PyFrame_GetLineNumber(frame));
        at->second = vocabulary_.intern(place.file + ":" + line);
      }
      if (!place.library) {
        found = at->second;
        Py_DECREF(frame);
        frame = nullptr;
        break;
      }
      library_line = at->second;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return found != 0 ? found : library_line;
}

std::string Recorder::describe_current() const {
  if (!run_ || run_->ops.empty()) return "the start of the run";
  return describe(vocabulary_, *run_, run_->ops.size() - 1);
}

void Recorder::enter(nb::handle module) {
  const auto it = modules_.find(module.ptr());
  module_stack_.push_back(it == modules_.end() ? module_stack_.back() : it->second);
}

void Recorder::leave() {
  if (module_stack_.size() > 1) module_stack_.pop_back();
}

int Recorder::end(nb::list outputs) {
  if (carry_) keep_used_numbers(*run_);
  if (carry_) watch(nullptr);
  shapes_.clear();
  call_args_.reset();
  call_kwargs_.reset();
  for (nb::handle output : outputs) run_->outputs.push_back(value_of(output.ptr()));
  clear_known();
  run_->trim();
  runs_.push_back(std::move(run_));
  run_holders_.push_back(std::move(run_objects_));
  run_objects_.clear();
  return static_cast<int>(runs_.size()) - 1;
}

void Recorder::abort() {
  if (run_ && carry_) watch(nullptr);
  shapes_.clear();
  call_args_.reset();
  call_kwargs_.reset();
  clear_known();
  run_.reset();
  run_objects_.clear();
}

std::uint32_t Recorder::deciding_line(int reference, int run, std::size_t op) const {
  return fairlead::deciding_line(run_at(reference), run < 0 ? *run_ : run_at(run), op);
}

int Recorder::foreseen(int index,
                       const std::vector<std::vector<std::vector<std::int64_t>>>& sizes) const {
  const Foresight foresight(vocabulary(), run_at(index));
  const auto it = std::find_if(sizes.begin(), sizes.end(),
                               [&](const auto& each) { return foresight.keeps(each); });
  return it == sizes.end() ? -1 : static_cast<int>(it - sizes.begin());
}

void Recorder::forget(int run) {
  *runs_.at(static_cast<std::size_t>(run)) = Run();
  run_holders_.at(static_cast<std::size_t>(run)).clear();
}

std::size_t Recorder::difference(int a, int b) const {
  if (a == b) return kSameProgram;
  const auto [it, fresh] = differences_.try_emplace({a, b}, kSameProgram);
  if (fresh) it->second = first_difference(run_at(a), run_at(b));
  return it->second;
}

}  // namespace fairlead::python
