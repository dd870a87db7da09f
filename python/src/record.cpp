// Bindings of the recorder.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "fairlead/trace/outside.h"
#include "fairlead/trace/parting.h"
#include "fairlead/trace/roll.h"
#include "light_calls.h"
#include "recorder.h"

namespace fairlead::python {

using namespace nb::literals;

namespace {

nb::list views(const std::vector<OpView>& list) {
  nb::list rows;
  for (const OpView& view : list) {
    nb::dict row;
    row["number"] = view.number;
    row["op"] = view.op;
    row["arguments"] = view.arguments;
    row["results"] = view.results;
    row["module"] = view.module;
    row["source"] = view.source;
    rows.append(row);
  }
  return rows;
}

// None where the runs are one program.
nb::object parting_of(const Recorder& r, int a, int b, std::size_t context) {
  const Parting found = parting(r.vocabulary(), r.run_at(a), r.run_at(b), context);
  if (found.op == kSameProgram) return nb::none();
  nb::dict result;
  result["op"] = found.op;
  result["common"] = views(found.common);
  result["first"] = views(found.first);
  result["second"] = views(found.second);
  result["first_count"] = found.first_count;
  result["second_count"] = found.second_count;
  return result;
}

}  // namespace

void init_record(nb::module_& m) {
  parted_exception = PyErr_NewExceptionWithDoc(
      "fairlead._core.Parted", "A run executed another operator than the run it is compared with.",
      PyExc_BaseException, nullptr);
  m.attr("Parted") = nb::handle(parted_exception);
  enough_exception =
      PyErr_NewExceptionWithDoc("fairlead._core.Enough", "A brief run went as far as it should.",
                                PyExc_BaseException, nullptr);
  m.attr("Enough") = nb::handle(enough_exception);
  init_carriers(m);
  init_light_calls(m);

  nb::class_<Recorder>(m, "Recorder", "Turns dispatched operators into runs.")
      .def(nb::init<nb::object, nb::object, nb::dict, nb::object, nb::object, nb::object,
                    nb::list>(),
           "tensor_type"_a, "size_type"_a, "dtypes"_a, "define"_a, "snapshot"_a, "complex_number"_a,
           "library_folders"_a)
      .def("set_modules", &Recorder::set_modules)
      .def("set_persistent", &Recorder::set_persistent)
      .def("note_data", &Recorder::note_data)
      .def("is_persistent", &Recorder::is_persistent)
      .def("begin", &Recorder::begin, "inputs"_a, "reference"_a = -1, "keep"_a = false,
           "roll"_a = false, "carry"_a = false, "brief"_a = false,
           "lines"_a = std::vector<std::uint32_t>())
      .def("deciding_line", &Recorder::deciding_line, "reference"_a, "run"_a, "op"_a,
           "The line whose question parted two runs; 0: none.")
      .def("same_but_neutral",
           [](const Recorder& r, int a, int b) {
             return same_but_neutral(r.vocabulary(), r.run_at(a), r.run_at(b));
           })
      .def("note_call", &Recorder::note_call, nb::arg(), nb::arg(), nb::arg().none())
      .def("shape_of", &Recorder::shape_of)
      .def("size_of", &Recorder::size_of)
      .def("count_of", &Recorder::count_of)
      .def("read_result", &Recorder::read_result)
      .def("add", &Recorder::add, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none())
      .def("set_direct", &Recorder::set_direct, "one_operator"_a, "undispatched"_a, "modes"_a,
           "level"_a, "parameter_type"_a)
      .def("learn_call", &Recorder::learn_call, nb::arg(), nb::arg(), nb::arg().none())
      .def("call_directly", &Recorder::call_directly)
      .def("set_light", &Recorder::set_light, "calls"_a.none(), "call"_a.none())
      .def("enter", &Recorder::enter)
      .def("leave", &Recorder::leave)
      .def("returned", [](Recorder& recorder) { recorder.asks = false; })
      .def("end", &Recorder::end)
      .def("abort", &Recorder::abort)
      .def("forget", &Recorder::forget)
      .def("op_count", &Recorder::op_count)
      .def("foreseen", &Recorder::foreseen, "run"_a, "sizes"_a,
           "The first of these sizes at which the questions of a run have the answers they had.")
      .def("output_shape",
           [](const Recorder& r, int run, std::size_t output) {
             const Run& found = r.run_at(run);
             const RunValue v = found.outputs.at(output);
             nb::list shape;
             for (int axis = 0; axis < found.values[v].rank; ++axis)
               shape.append(found.dim(v, axis));
             return shape;
           })
      .def("operators",
           [](const Recorder& r, int run) {
             nb::set names;  // what was called, and what it is called once it is functional
             for (const OpRecord& record : r.run_at(run).ops) {
               const OpDef& def = r.vocabulary().ops[record.op];
               names.add(nb::cast(def.name.str()));
               if (!def.functional.text().empty()) names.add(nb::cast(def.functional.str()));
             }
             return names;
           })
      .def(
          "difference",
          [](const Recorder& r, int a, int b, bool rolled) -> nb::object {
            const std::size_t op = r.difference(a, b);
            if (op == kSameProgram) return nb::none();
            const Run* runs[] = {&r.run_at(a), &r.run_at(b)};
            const bool same_storage = first_other_storage(*runs[0], *runs[1]) == kSameProgram;
            if (rolled && same_storage && roll(r.vocabulary(), runs)) return nb::none();
            return nb::make_tuple(op, describe(r.vocabulary(), r.run_at(a), op),
                                  describe(r.vocabulary(), r.run_at(b), op));
          },
          "first"_a, "second"_a, "roll"_a = false)
      .def("parting", &parting_of, "first"_a, "second"_a, "context"_a = 6,
           "Both runs around the operator where they part, in words.")
      .def(
          "follows_from_outside",
          [](const Recorder& r, int a, int b) {
            nb::list rows;
            for (const FromOutside& f :
                 follows_from_outside(r.vocabulary(), r.run_at(a), r.run_at(b))) {
              rows.append(nb::make_tuple(f.what, f.place, f.source, f.is_float));
            }
            return rows;
          },
          "first"_a, "second"_a, "What differs between two runs though no operator made it.")
      .def("takes_from_outside",
           [](const Recorder& r, int run) { return takes_from_outside(r.run_at(run)); })
      .def("same_numbers",
           [](const Recorder& r, int a, int b) { return same_numbers(r.run_at(a), r.run_at(b)); })
      .def("visible_so_far", &Recorder::visible_so_far, "reference"_a,
           "Whether some number of the run in progress is another one in the reference.")
      .def("source",
           [](const Recorder& r, int run, std::size_t op) {
             const Run& found = r.run_at(run);
             return op < found.ops.size() ? r.vocabulary().strings[found.ops[op].source] : "";
           })
      .def("describe", [](const Recorder& r, int run,
                          std::size_t op) { return describe(r.vocabulary(), r.run_at(run), op); })
      .def("describe_current", &Recorder::describe_current,
           "The last operator of the run in progress.");
}

}  // namespace fairlead::python
