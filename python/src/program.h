// The program that several files of bindings work on.
#pragma once

#include <nanobind/nanobind.h>

#include "fairlead/trace/program.h"

namespace fairlead::python {

// Recorded or imported, with the pool of its expressions; what it borrows (a recorder's runs,
// tensors) is kept alive beside it.
struct ProgramHandle {
  Program program;
  nanobind::object parts = {};  // of a joined program: those it borrows constants from
};

// Adds what emits torch sources to the class.
void init_source(nanobind::class_<ProgramHandle>& program);

}  // namespace fairlead::python
