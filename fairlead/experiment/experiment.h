// The decisions of an export, sans I/O: what to run, build, write and check next, and what follows
// from what came of it. It runs nothing itself: a driver does each step and answers.
//
//   Experiment experiment(request);
//   while (!experiment.over()) experiment.answer(driver.does(experiment.step()), seconds);
//
// 1. Probe which dimensions vary, build the program, follow its questions to their other answers.
// 2. Where another program begins, it is a row of its own: opened, solved, joined, or closed.
// 3. Write the file of all programs, and check it.
// 4. What fails there narrows a dimension or closes a program (facts.h), and all begins again;
//    where nothing is learnt, the export fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "fairlead/experiment/facts.h"
#include "fairlead/experiment/steps.h"
#include "fairlead/probe/probe.h"

namespace fairlead {

class Lab;

enum class Stage : std::uint8_t { kProbe, kSolve, kGuards, kEmit, kVerify };

class Experiment {
 public:
  explicit Experiment(Request request);
  ~Experiment();
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  [[nodiscard]] const Step& step() const;
  // What came of the step, and how long it took. Throws Error where the request cannot be met.
  void answer(Answer answer, double seconds);
  [[nodiscard]] bool over() const;  // Done or Failed
  [[nodiscard]] Stage stage() const;
  [[nodiscard]] const std::vector<Fact>& ledger() const;
  // What else is known, for contract, report and driver.
  [[nodiscard]] const Lab& lab() const { return *lab_; }

 private:
  std::unique_ptr<Lab> lab_;
};

}  // namespace fairlead
