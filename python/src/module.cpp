// The entry of the extension fairlead._core: a list of init functions, one per file of bindings.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of Fairlead; use the package `fairlead` instead.";
  m.attr("__version__") = FAIRLEAD_VERSION;
}
