// Handlers of signals: the lines are ready before anything happens, and nothing is asked for then.
#include "fairlead/base/last_words.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

namespace fairlead {
namespace {

struct FaultName {
  int number;
  std::string_view name;
};

constexpr std::array kFaults = {
    FaultName{SIGABRT, "SIGABRT"}, FaultName{SIGSEGV, "SIGSEGV"}, FaultName{SIGBUS, "SIGBUS"},
    FaultName{SIGFPE, "SIGFPE"},   FaultName{SIGILL, "SIGILL"},
};
constexpr std::size_t kStack = 1 << 16;

struct Prepared {
  std::array<std::string, kFaults.size()> lines;
  std::array<struct sigaction, kFaults.size()> before;
  std::vector<char> stack;
  stack_t stack_before = {};
  std::terminate_handler terminate_before = nullptr;
  int status = 1;
  int out = -1;  // standard error as it was: somebody may have put a file in its place
};

std::atomic<bool> taken = false;
Prepared prepared;

[[noreturn]] void end_with(std::size_t fault) {
  const std::string& line = prepared.lines[fault];
  // What could not be written nobody can be told either.
  [[maybe_unused]] const auto written = ::write(prepared.out, line.data(), line.size());
  ::_exit(prepared.status);
}

void on_fault(int number) {
  for (std::size_t k = 0; k < kFaults.size(); ++k) {
    if (kFaults[k].number == number) end_with(k);
  }
}

[[noreturn]] void on_terminate() { end_with(0); }

}  // namespace

LastWords::LastWords(std::string_view line, int status) {
  if (taken.exchange(true)) return;
  set_ = true;
  prepared.status = status;
  prepared.out = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  for (std::size_t k = 0; k < kFaults.size(); ++k) {
    std::string& text = prepared.lines[k] = std::string(line);
    if (const std::size_t at = text.find("{}"); at != std::string::npos) {
      text.replace(at, 2, kFaults[k].name);
    }
    text += '\n';
  }
  prepared.stack.resize(kStack);  // a thread at the end of its stack has no room for a handler
  stack_t stack = {};
  stack.ss_sp = prepared.stack.data();
  stack.ss_size = prepared.stack.size();
  ::sigaltstack(&stack, &prepared.stack_before);
  for (std::size_t k = 0; k < kFaults.size(); ++k) {
    struct sigaction action {};
    action.sa_handler = on_fault;
    action.sa_flags = SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(kFaults[k].number, &action, &prepared.before[k]);
  }
  prepared.terminate_before = std::set_terminate(on_terminate);
}

LastWords::~LastWords() {
  if (!set_) return;
  std::set_terminate(prepared.terminate_before);
  for (std::size_t k = 0; k < kFaults.size(); ++k) {
    ::sigaction(kFaults[k].number, &prepared.before[k], nullptr);
  }
  ::sigaltstack(&prepared.stack_before, nullptr);
  if (prepared.out >= 0) ::close(prepared.out);
  taken = false;
}

}  // namespace fairlead
