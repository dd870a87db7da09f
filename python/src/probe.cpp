// Bindings of the prober: one call, which calls back once per trial.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "fairlead/probe/probe.h"
#include "sizes.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

ProbeResult run_probe(const std::vector<Leaf>& leaves, const std::vector<Sizes>& calls,
                      nb::callable trial) {
  ProbeRequest request;
  request.leaves = leaves;
  request.calls = calls;
  return probe(request, [&](const Sizes& sizes, int reference) {
    // (run, parted, reason, visible)
    const nb::object answer = trial(as_tuples(sizes), reference);
    TrialResult result;
    result.run = nb::cast<int>(answer[0]);
    result.parted = nb::cast<bool>(answer[1]);
    result.reason = nb::cast<std::string>(answer[2]);
    result.visible = nb::cast<bool>(answer[3]);
    return result;
  });
}

}  // namespace

void init_probe(nb::module_& m) {
  nb::class_<ProbedSymbol>(m, "ProbedSymbol")
      .def_ro("name", &ProbedSymbol::name)
      .def_ro("tried", &ProbedSymbol::tried)
      .def_ro("min", &ProbedSymbol::min)
      .def_ro("max", &ProbedSymbol::max)
      .def_ro("other_above", &ProbedSymbol::other_above)
      .def_ro("other_below", &ProbedSymbol::other_below)
      .def_ro("reason", &ProbedSymbol::reason);
  nb::class_<FixedDim>(m, "FixedDim")
      .def_ro("leaf", &FixedDim::leaf)
      .def_ro("axis", &FixedDim::axis)
      .def_ro("size", &FixedDim::size)
      .def_prop_ro("branches", [](const FixedDim& f) { return f.why == FixedDim::Why::kBranches; })
      .def_prop_ro("empty", [](const FixedDim& f) { return f.why == FixedDim::Why::kZero; })
      .def_ro("reason", &FixedDim::reason);
  nb::class_<ProbeResult>(m, "ProbeResult", "Which dims vary, and how they hang together.")
      .def_ro("symbols", &ProbeResult::symbols)
      .def_ro("fixed", &ProbeResult::fixed)
      .def_ro("trials", &ProbeResult::trials)
      .def_ro("base_parted", &ProbeResult::base_parted)
      .def_prop_ro("runs",
                   [](const ProbeResult& r) {
                     std::vector<int> runs;
                     for (const ProbedRun& run : r.runs) runs.push_back(run.run);
                     return runs;
                   })
      .def_prop_ro("run_values",
                   [](const ProbeResult& r) {
                     std::vector<std::vector<std::int64_t>> values;
                     for (const ProbedRun& run : r.runs) values.push_back(run.values);
                     return values;
                   })
      .def_prop_ro("shapes", [](const ProbeResult& r) { return size_rows(*r.pool, r.shapes); })
      .def("unseen_settings",
           [](const ProbeResult& r, std::size_t n) { return unseen_settings(r, n); })
      .def("sizes_at", [](const ProbeResult& r, const std::vector<std::int64_t>& values) {
        return as_tuples(sizes_at(r, values));
      });
  m.def("probe", &run_probe, "leaves"_a, "calls"_a, "trial"_a,
        "Probes alone; trial(sizes, reference) gives (run, parted, reason, visible).");
}

}  // namespace fairlead::python
