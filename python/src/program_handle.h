// The program that Python holds, recorded or imported.
#pragma once

#include "fairlead/trace/program.h"

namespace fairlead::python {

// With the pool of its expressions; what it borrows (a recorder's runs, tensors) is kept alive
// beside it.
struct ProgramHandle {
  Program program;
};

}  // namespace fairlead::python
