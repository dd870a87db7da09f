// Python integers and floats that carry a node of the run in progress; see trace/carried.h.
//
// SizeInt is an `int` and SizeFloat a `float` to every test but `type(n) is int`. What loses the
// memory by the rules of C code is caught where Python offers a door: int(), float() and len() are
// watched while a run is recorded.
#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

#include "fairlead/trace/run.h"

namespace fairlead::python {

namespace nb = nanobind;

// Where nodes and guards go while a model runs. One at a time; null between runs.
struct CarrySink {
  virtual ~CarrySink() = default;
  virtual Run& run() = 0;
  virtual std::uint32_t source_line() = 0;
  virtual std::uint32_t module() = 0;
  virtual bool is_tensor(PyObject* object) = 0;
  // The answer that the model is given: its own, or that of another run (trace/answered.h).
  virtual bool answer(const Guard& guard) = 0;
  // The node of a dimension of a tensor that the run knows; kNoCarry where it does not.
  virtual CarryId dim(PyObject* tensor, Py_ssize_t axis) = 0;
  std::uint32_t serial = 0;  // of the run: carriers of other runs are plain numbers
  bool asks = true;          // false once the model returned: what is asked then are our questions
};

// Installs a sink, and watches the doors while there is one.
void watch(CarrySink* sink);

[[nodiscard]] bool is_carrier(PyObject* object);
// The node of a carrier of the run in progress, or a constant's; kNoCarry for what is no number.
[[nodiscard]] CarryId node_of(PyObject* object);
[[nodiscard]] CarryId carried_node(PyObject* object);  // kNoCarry for plain numbers
// A list of numbers that was read from this tensor, and what of such lists a run keeps.
void note_list(nb::handle list, nb::handle tensor);
// The tensor that a list of numbers was read from; None: not known.
[[nodiscard]] nb::object read_from(nb::handle list);
void keep_used_numbers(Run& run);
// The answer of a tensor, as a question of the run whether it is not 0.
void ask_flag(const Carry& node);
// A carrier of a plain int or float (stolen); the number itself where nothing is recorded.
[[nodiscard]] PyObject* carry(PyObject* plain, Carry node);

void init_carriers(nb::module_& m);

}  // namespace fairlead::python
