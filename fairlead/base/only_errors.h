// Nothing but Error leaves the core: what the standard library throws at numbers of a file is made
// one at the functions that read, change and write graphs.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fairlead/base/error.h"

namespace fairlead {

// Calls `work`; `function` and `where` are named in the error. Exceptions of other kinds (those of
// a lowering of the user's) pass.
template <typename Work>
auto only_errors(std::string_view function, std::string_view where, const Work& work) {
  const auto text = [&](const std::string& got) {
    return "[" + std::string(function) + "] Expected numbers that a program can have, got " + got +
           " (" + std::string(where) + ").";
  };
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kInvalidInput, text("more than fits into memory"));
  } catch (const std::logic_error& error) {
    throw Error(ErrorCode::kInvalidInput, text(std::string("some out of range: ") + error.what()));
  }
}

}  // namespace fairlead
