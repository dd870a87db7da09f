// The one exception type of the core: a code that the bindings map to a Python class, and one
// sentence.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fairlead {

enum class ErrorCode {
  kInvalidInput,  // what the caller gave cannot be used
  kUnsupported,   // an operator or form that the target cannot express
  kDiverged,      // two runs executed different operators
  kUnsolved,      // an integer or float that no expression of the sizes explains
  kDiscrepancy,   // the written file does not compute what eager computes
  kIo,            // a file could not be read or written
  kParse,         // text or bytes that are not in the format they claim
  kInternal,      // our own mistake
};

// One of the facts behind an error, for a report: the sentence names the first, the details all.
struct ErrorDetail {
  std::string kind;  // "missing operator", "unsolved number", "parting", "dimension"
  std::vector<std::pair<std::string, std::string>> fields;  // "operator", "module", "source", ...
  std::vector<std::string> values;                          // by run
};

// Sentence form: "[export] Expected X, got Y (where). What to do."
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::vector<ErrorDetail> details = {},
        std::string cause = {})
      : std::runtime_error(message),
        code_(code),
        details_(std::move(details)),
        cause_(std::move(cause)) {}
  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::vector<ErrorDetail>& details() const { return details_; }
  // What happened, as part of another sentence: neither who says it, nor what to do about it. Empty
  // where the sentence says nothing else.
  [[nodiscard]] const std::string& cause() const { return cause_; }

 private:
  ErrorCode code_;
  std::vector<ErrorDetail> details_;
  std::string cause_;
};

// The cause of an error, or what it says without the function in brackets before it.
[[nodiscard]] std::string cause_of(const Error& error);

// A number of a graph that leads beyond the end of a list (CheckedList): the callers that know the
// node name it.
class LookupError : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void fail_check(const char* expression, const char* file, int line,
                             const std::string& detail);

}  // namespace fairlead

// An invariant of ours: when it breaks the fault is in Fairlead, and the message says where to
// report it.
#define FAIRLEAD_CHECK(condition, detail)                                               \
  do {                                                                                  \
    if (!(condition)) ::fairlead::fail_check(#condition, __FILE__, __LINE__, (detail)); \
  } while (false)
