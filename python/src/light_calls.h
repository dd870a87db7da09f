// Calls of a run without weights: whether one touches them, and what it gave before.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace fairlead::python {

namespace nb = nanobind;

// Layers repeat, and PyTorch finds the sizes of a result without data in Python: they are kept by
// function and arguments, by sizes, strides and types of tensors.
class LightCalls {
 public:
  // `singletons`: types whose objects are the same where they are equal (torch.dtype, ..).
  LightCalls(nb::list parameters, nb::object tensor_type, nb::object parameter_type,
             nb::object device_type, nb::list singletons, nb::object empty_strided,
             nb::object meta);

  // A result like that of the same call before; None where it is not known, or touches no weight.
  [[nodiscard]] nb::object look(nb::handle func, nb::handle args, nb::handle kwargs);
  // Of the call that was looked for last: a tensor without data is among its arguments.
  [[nodiscard]] bool touches() const { return touches_; }
  // The key to keep its result by; empty where it cannot be compared.
  [[nodiscard]] nb::bytes key() const {
    return comparable_ ? nb::bytes(key_.data(), key_.size()) : nb::bytes("", 0);
  }
  // `out`: a tensor without data that shares no memory, or a list or tuple of such; None where the
  // function has to be called for it, which works on tensors without data as they are.
  void keep(nb::bytes key, nb::handle func, nb::handle out);

 private:
  struct Form {
    nb::object shape, stride, dtype;
  };
  struct Known {
    bool calls = false;  // the function is called again: a view
    std::vector<Form> results;
    PyTypeObject* list = nullptr;  // list or tuple; null: one tensor
    nb::object func;               // held: its address is in the key
  };
  template <typename T>
  void put(T value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  bool describe(PyObject* o);
  bool describe_items(PyObject* sequence);
  void describe_tensor(PyObject* tensor);
  [[nodiscard]] nb::object made(const Form& form) const;
  [[nodiscard]] bool is_tensor(PyTypeObject* type) const;

  std::unordered_set<PyObject*> parameters_;
  std::vector<nb::object> holders_;
  nb::object tensor_type_, parameter_type_, device_type_, empty_strided_, meta_, names_;
  std::unordered_set<PyObject*> singletons_;
  std::unordered_map<std::string, Known> known_;
  std::string key_;
  bool touches_ = false;
  bool as_is_ = false;  // every tensor has no data, and no device is named
  bool comparable_ = false;
};

void init_light_calls(nb::module_& m);

}  // namespace fairlead::python
