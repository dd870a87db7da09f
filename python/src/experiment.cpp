// Bindings of the experiment: steps and answers by their lists of fields, and what a contract
// shows.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "fairlead/experiment/check_plan.h"
#include "fairlead/experiment/describe.h"
#include "fairlead/experiment/experiment.h"
#include "fairlead/experiment/fields.h"
#include "fairlead/experiment/lab.h"
#include "fairlead/experiment/program_checks.h"
#include "fairlead/experiment/transcript.h"
#include "sizes.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename E>
std::string name_of(E value) {
  return std::string(EnumNames<E>::names.at(static_cast<std::size_t>(value)));
}

template <typename E>
E named(const std::string& name) {
  const auto& names = EnumNames<E>::names;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (names[k] == name) return static_cast<E>(k);
  }
  throw nb::value_error(("no such name: " + name).c_str());
}

template <typename T, typename M>
void bind_field(nb::class_<T>& cls, const Field<T, M>& f) {
  const auto member = f.member;
  if constexpr (std::is_enum_v<M>) {
    cls.def_prop_rw(
        f.name, [member](const T& t) { return name_of(t.*member); },
        [member](T& t, const std::string& name) { t.*member = named<M>(name); });
  } else if constexpr (std::is_same_v<M, std::vector<Role>>) {
    cls.def_prop_rw(
        f.name,
        [member](const T& t) {
          std::vector<std::string> names;
          for (const Role role : t.*member) names.push_back(name_of(role));
          return names;
        },
        [member](T& t, const std::vector<std::string>& names) {
          (t.*member).clear();
          for (const std::string& name : names) (t.*member).push_back(named<Role>(name));
        });
  } else if constexpr (std::is_same_v<M, Sizes>) {
    cls.def_prop_rw(
        f.name, [member](const T& t) { return as_tuples(t.*member); },
        [member](T& t, Sizes sizes) { t.*member = std::move(sizes); });
  } else {
    cls.def_rw(f.name, member);
  }
}

// With a constructor of named fields: Ran(run=3).
template <typename T>
void bind(nb::module_& m, const char* name) {
  nb::class_<T> cls(m, name);
  cls.def("__init__", [](nb::pointer_and_handle<T> self, const nb::kwargs& given) {
    new (self.p) T();
    nb::inst_mark_ready(self.h);
    for (const auto& [key, value] : given) nb::setattr(self.h, key, value);
  });
  std::apply([&](const auto&... f) { (bind_field(cls, f), ...); },
             fields(static_cast<const T*>(nullptr)));
}

template <typename Variant, std::size_t... K>
void bind_all(nb::module_& m, const std::array<std::string_view, sizeof...(K)>& names,
              std::index_sequence<K...>) {
  (bind<std::variant_alternative_t<K, Variant>>(m, names[K].data()), ...);
}

// An experiment that may keep its transcript.
struct ExperimentHandle {
  explicit ExperimentHandle(const Request& request, bool keep) : experiment(request) {
    if (keep) transcript.emplace(request);
  }
  void answer(const Answer& given, double seconds) {
    if (transcript) transcript->add(experiment.step(), given, seconds);
    experiment.answer(given, seconds);
  }
  [[nodiscard]] const Row& row(ProgramId id) const { return experiment.lab().row(id); }

  Experiment experiment;
  std::optional<Transcript> transcript;
};

// What a report of a failed export shows: (sizes, reference, before, now) of runs that parted.
using PartingTuple = std::tuple<Sizes, int, std::string, std::string>;

std::vector<PartingTuple> partings(const ExperimentHandle& h, ProgramId id) {
  std::vector<PartingTuple> found;
  for (const Row::Parting& p : h.row(id).partings) {
    found.emplace_back(p.sizes, p.reference, p.ran.before, p.ran.now);
  }
  return found;
}

// (number, right, why it is although it differs) of checks.
using RowTuple = std::tuple<int, bool, std::string>;

std::vector<RowTuple> as_tuples(const std::vector<CheckedRow>& rows) {
  std::vector<RowTuple> found;
  for (const CheckedRow& row : rows) found.emplace_back(row.number, row.right, name_of(row.excuse));
  return found;
}

constexpr const char* kStages[] = {"probe", "solve", "guards", "emit", "verify"};

}  // namespace

void init_experiment(nb::module_& m) {
  bind<DimRequest>(m, "DimRequest");
  bind<Leaf>(m, "Leaf");
  bind<Place>(m, "Place");
  bind<Evidence>(m, "Evidence");
  bind<Fact>(m, "Fact");
  bind<Problem>(m, "Problem");
  bind<Input>(m, "Input");
  bind<Outside>(m, "Outside");
  bind<Finding>(m, "Finding");
  bind<Built::Question>(m, "Question");
  bind<Questions::Other>(m, "OtherAnswer");
  bind<EmptyDim>(m, "EmptyDim");
  bind<Request>(m, "Request");
  bind_all<Step>(m, kStepNames, std::make_index_sequence<std::variant_size_v<Step>>());
  bind_all<Answer>(m, kAnswerNames, std::make_index_sequence<std::variant_size_v<Answer>>());

  nb::class_<SymbolRow>(m, "SymbolRow")
      .def_ro("name", &SymbolRow::name)
      .def_ro("tried", &SymbolRow::tried)
      .def_ro("min", &SymbolRow::min)
      .def_ro("max", &SymbolRow::max)
      .def_prop_ro("place", [](const SymbolRow& r) -> nb::object {
        if (r.place.leaf == kNowhere) return nb::none();
        return nb::make_tuple(r.place.leaf, r.place.axis);
      });
  nb::class_<FixedRow>(m, "FixedRow")
      .def_prop_ro("leaf", [](const FixedRow& r) { return r.place.leaf; })
      .def_prop_ro("axis", [](const FixedRow& r) { return r.place.axis; })
      .def_ro("size", &FixedRow::size)
      .def_ro("reason", &FixedRow::reason)
      .def_ro("branches", &FixedRow::branches);
  nb::class_<Described>(m, "Described", "What an experiment found, for the contract.")
      .def_ro("symbols", &Described::symbols)
      .def_ro("fixed", &Described::fixed)
      .def_ro("notes", &Described::notes);

  nb::class_<Reserves::Assumed>(m, "Assumed")
      .def_ro("kind", &Reserves::Assumed::kind)
      .def_ro("what", &Reserves::Assumed::what)
      .def_ro("source", &Reserves::Assumed::source);
  nb::class_<Reserves>(m, "Reserves", "What the checks of a file do not prove of it.")
      .def_ro("notes", &Reserves::notes)
      .def_ro("assumed", &Reserves::assumed);
  m.def(
      "cause_of", [](const Finding& finding) { return cause_of(finding); }, "finding"_a,
      "Why a check failed, as part of another sentence.");
  m.def(
      "sentence_of",
      [](const Finding& finding, const std::string& nothing, const std::string& runtime,
         const std::string& model, const std::pair<std::string, std::string>& read,
         const std::string& drawn) {
        return sentence_of(finding, {runtime, model, nothing, read.first, read.second, drawn});
      },
      "finding"_a, "nothing"_a, "runtime"_a = "", "model"_a = "eager",
      "read"_a = std::pair<std::string, std::string>(), "drawn"_a = "",
      "The error of a failed check.");

  using H = ExperimentHandle;
  nb::class_<H>(m, "Experiment",
                "The decisions of an export: steps out, answers in; it runs nothing.")
      .def(nb::init<const Request&, bool>(), "request"_a, "transcript"_a = false)
      .def_prop_ro("step", [](const H& h) { return h.experiment.step(); })
      .def("answer", &H::answer, "answer"_a, "seconds"_a)
      .def_prop_ro("over", [](const H& h) { return h.experiment.over(); })
      .def_prop_ro("stage",
                   [](const H& h) { return kStages[static_cast<int>(h.experiment.stage())]; })
      .def_prop_ro("ledger", [](const H& h) { return h.experiment.ledger(); })
      .def_prop_ro(
          "programs", [](const H& h) { return h.experiment.lab().programs(); },
          "Of the file: that of the example first.")
      .def(
          "probed", [](const H& h, ProgramId id) { return h.row(id).probed; }, "program"_a,
          "As far as it is known now: a copy.")
      .def(
          "bounds", [](const H& h, ProgramId id) { return h.experiment.lab().bounds(h.row(id)); },
          "program"_a, "(symbol, min, max) outside of which the model does something else.")
      .def(
          "looked_at", [](const H& h, ProgramId id) { return h.row(id).looked_at.values; },
          "program"_a)
      .def("partings", &partings, "program"_a)
      .def(
          "rows", [](const H& h, ProgramId id) { return as_tuples(h.row(id).checks.rows); },
          "program"_a, "(number, right, why it is although it differs) of the file's checks.")
      .def("reserves",
           [](const H& h) {
             const Lab& lab = h.experiment.lab();
             return reserves(h.experiment.ledger(), lab.judge_.file());
           })
      .def(
          "sizes_of",
          [](const H& h, ProgramId id, int run) {
            const auto& known = h.row(id).sizes_of;
            const auto it = known.find(run);
            return it == known.end() ? Sizes{} : it->second;
          },
          "program"_a, "run"_a)
      .def(
          "describe",
          [](const H& h, const std::vector<std::vector<SizeExpr>>& shapes) {
            ExprPool pool;
            const std::vector<std::vector<Expr>> rows = sizes_in(pool, shapes);
            return describe(h.experiment.lab(), pool, rows);
          },
          "shapes"_a)
      .def("transcript", [](const H& h) {
        return h.transcript ? h.transcript->text(h.experiment) : std::string();
      });

  using P = ProgramChecks;
  nb::class_<P>(m, "ProgramChecks", "The checks of a file whose program was not recorded.")
      .def(
          "__init__",
          [](P* self, const ProbeResult& probed, std::int64_t weight_bytes,
             const std::vector<std::int64_t>& example, const std::vector<std::int64_t>& made_at) {
            CheckRequest request;
            request.effort = effort_for(
                {weight_bytes, 0, static_cast<std::int64_t>(probed.shapes.size())}, false);
            request.example = example;
            request.made_at = made_at;
            new (self) P(probed, std::move(request));
          },
          "probed"_a, "weight_bytes"_a, "example"_a, "made_at"_a)
      .def_prop_ro("step", [](const P& p) { return p.step(); })
      .def_prop_ro("over", &P::over)
      .def("answer", &P::answer, "answer"_a, "seconds"_a)
      .def_prop_ro("rows", [](const P& p) { return as_tuples(p.rows()); })
      .def("reserves", [](const P& p) { return reserves(p.ledger(), 0); });
  m.def(
      "replay", [](const std::string& text) { return replay(text); }, "transcript"_a,
      "Nothing where an experiment does what its transcript says; else the first difference.");
}

}  // namespace fairlead::python
