// The program that several files of bindings work on.
#pragma once

#include <nanobind/nanobind.h>

#include "fairlead/trace/program.h"

namespace fairlead::python {

// The program with the expressions' pool; keeps the recorder alive, whose runs hold the constants.
struct ProgramHandle {
  Program program;
};

// Adds what emits torch sources to the class.
void init_source(nanobind::class_<ProgramHandle>& program);

}  // namespace fairlead::python
