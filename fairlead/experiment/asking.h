// How what decides asks: it stops at a step, and goes on when the answer is there.
#pragma once

#include <coroutine>
#include <utility>
#include <variant>

#include "fairlead/base/error.h"
#include "fairlead/base/task.h"
#include "fairlead/experiment/steps.h"

namespace fairlead {

class Asking {
 public:
  template <typename A>
  Task<A> ask(Step step) {
    step_ = std::move(step);
    Answer given = co_await Asked{*this};
    A* found = std::get_if<A>(&given);
    FAIRLEAD_CHECK(found != nullptr, "the answer to another step");
    co_return std::move(*found);
  }

  // Goes on with an answer, and how long the step took.
  void take(Answer answer, double seconds) {
    seconds_ = seconds;
    clock_ += seconds;
    answer_ = std::move(answer);
    const std::coroutine_handle<> waiting = std::exchange(waiting_, nullptr);
    FAIRLEAD_CHECK(waiting, "an answer that nobody asked for");
    waiting.resume();
  }

  [[nodiscard]] bool over() const {
    return std::holds_alternative<Done>(step_) || std::holds_alternative<Failed>(step_);
  }

  Step step_ = Done{};
  double clock_ = 0;    // seconds that steps took
  double seconds_ = 0;  // the last of them

 private:
  struct Asked {
    Asking& asking;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) const { asking.waiting_ = waiting; }
    [[nodiscard]] Answer await_resume() const { return std::move(asking.answer_); }
  };

  Answer answer_;
  std::coroutine_handle<> waiting_ = nullptr;
};

}  // namespace fairlead
