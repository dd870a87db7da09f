// What a process says when a fault ends it: PyTorch and ONNX Runtime divide integers by zero, or run
// past the end of their stack, where a file drives them there, and nobody can go on from that.
#pragma once

#include <string_view>

namespace fairlead {

// While it lives, a fault of any thread (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, std::terminate)
// writes one line to standard error as it is now, `line` with the name of the fault in place of "{}", and ends
// the process with this status. One at a time: one that is made while another lives does nothing.
class LastWords {
 public:
  LastWords(std::string_view line, int status);
  ~LastWords();  // what was there before answers again
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  bool set_ = false;
};

}  // namespace fairlead
