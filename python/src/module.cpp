// The entry of the extension fairlead._core: a list of init functions, one per file of bindings.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace fairlead::python {
void init_cached_functions(nb::module_& m);
void init_errors(nb::module_& m);
void init_experiment(nb::module_& m);
void init_export(nb::module_& m);
void init_files(nb::module_& m);
void init_lowering(nb::module_& m);
void init_observe(nb::module_& m);
void init_probe(nb::module_& m);
void init_pt2(nb::module_& m);
void init_reader(nb::module_& m);
void init_record(nb::module_& m);
void init_report(nb::module_& m);
void init_sizes(nb::module_& m);
void init_stored(nb::module_& m);
void init_verify(nb::module_& m);
void init_weights(nb::module_& m);
}  // namespace fairlead::python

NB_MODULE(_core, m) {
#ifdef NDEBUG
  // PyTorch keeps the memory of an array that a tensor borrowed when Python ends before the tensor:
  // nothing is lost then, and nobody at a command line is to read about it.
  nb::set_leak_warnings(false);
#endif
  m.doc() = "The C++ core of Fairlead; use the package `fairlead` instead.";
  m.attr("__version__") = FAIRLEAD_VERSION;
  fairlead::python::init_errors(m);
  fairlead::python::init_sizes(m);
  fairlead::python::init_observe(m);
  fairlead::python::init_record(m);
  fairlead::python::init_cached_functions(m);
  fairlead::python::init_experiment(m);
  fairlead::python::init_probe(m);
  fairlead::python::init_files(m);
  fairlead::python::init_stored(m);
  fairlead::python::init_weights(m);
  fairlead::python::init_export(m);
  fairlead::python::init_pt2(m);
  fairlead::python::init_lowering(m);
  fairlead::python::init_reader(m);
  fairlead::python::init_verify(m);
  fairlead::python::init_report(m);
}
