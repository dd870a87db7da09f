// What a process says when a fault ends it.
#include "fairlead/base/last_words.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <utility>

#include <doctest/doctest.h>

using namespace fairlead;

namespace {

// (status, what it wrote to standard error) of a process that does this.
template <typename Function>
std::pair<int, std::string> ended_by(Function function) {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    for (const int number : {SIGABRT, SIGSEGV, SIGFPE}) ::signal(number, SIG_DFL);
    function();
    ::_exit(99);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {status, said};
}

}  // namespace

TEST_CASE("a fault is one line and a status, with its name") {
  for (const auto& [number, name] : {std::pair{SIGFPE, "SIGFPE"}, {SIGSEGV, "SIGSEGV"}}) {
    const auto [status, said] = ended_by([number = number] {
      const LastWords words("error: ended ({}).", 7);
      ::raise(number);
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(said == "error: ended (" + std::string(name) + ").\n");
  }
  const auto [status, said] = ended_by([] {
    const LastWords words("error: ended ({}).", 7);
    std::terminate();
  });
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(said == "error: ended (SIGABRT).\n");
}

TEST_CASE("it is said where standard error was when it was prepared") {
  const auto [status, said] = ended_by([] {
    const LastWords words("error: ended ({}).", 7);
    ::close(STDERR_FILENO);
    ::raise(SIGFPE);
  });
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(said == "error: ended (SIGFPE).\n");
}

TEST_CASE("before and behind it the system answers") {
  const auto [status, said] = ended_by([] {
    { const LastWords words("error: ended ({}).", 7); }
    ::raise(SIGFPE);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(said.empty());
}
