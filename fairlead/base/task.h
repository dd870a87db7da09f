// A function that stops where it has to ask, and goes on where it stopped when the answer is there:
// a coroutine without threads. It starts when it is awaited, or by start().
//
//   Task<int> half() { const int n = co_await question; co_return n / 2; }
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace fairlead {

namespace detail {

struct TaskPromise {
  // Who awaits it goes on when it ends.
  struct End {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      const std::coroutine_handle<> next = ended.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] End final_suspend() const noexcept { return {}; }
  void unhandled_exception() { error = std::current_exception(); }

  std::coroutine_handle<> continuation = nullptr;
  std::exception_ptr error = nullptr;
};

}  // namespace detail

template <typename T>
class [[nodiscard]] Task;

namespace detail {

template <typename T>
struct ValuePromise : TaskPromise {
  [[nodiscard]] Task<T> get_return_object();
  void return_value(T given) { value = std::move(given); }
  T result() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
  std::optional<T> value;
};

template <>
struct ValuePromise<void> : TaskPromise {
  [[nodiscard]] Task<void> get_return_object();
  void return_void() const {}
  void result() const {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace detail

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::ValuePromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // Runs until it ends, or asks for the first time.
  void start() { handle_.resume(); }
  [[nodiscard]] bool done() const { return handle_.done(); }
  // Of a task that is done; throws what it threw.
  T result() { return handle_.promise().result(); }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) {
    handle_.promise().continuation = waiting;
    return handle_;
  }
  T await_resume() { return handle_.promise().result(); }

 private:
  Handle handle_;
};

namespace detail {

template <typename T>
Task<T> ValuePromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<ValuePromise<T>>::from_promise(*this));
}

inline Task<void> ValuePromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<ValuePromise<void>>::from_promise(*this));
}

}  // namespace detail

}  // namespace fairlead
