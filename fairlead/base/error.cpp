// How a broken invariant is reported.
#include "fairlead/base/error.h"

#include "fairlead/base/checked_list.h"

namespace fairlead {

void fail_check(const char* expression, const char* file, int line, const std::string& detail) {
  std::string_view path(file);
  if (const auto cut = path.rfind("fairlead/"); cut != std::string_view::npos)
    path.remove_prefix(cut);
  throw Error(ErrorCode::kInternal, "[fairlead] Internal error: " + detail + " (" + expression +
                                        " is false at " + std::string(path) + ":" +
                                        std::to_string(line) +
                                        "). This is a fault in Fairlead; please report it.");
}

std::string cause_of(const Error& error) {
  if (!error.cause().empty()) return error.cause();
  const std::string text = error.what();
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

void fail_lookup(std::size_t index, std::size_t size) {
  throw LookupError(ErrorCode::kInvalidInput,
                    "[graph] Expected an axis, argument or result within a list of " +
                        std::to_string(size) + ", got number " +
                        std::to_string(static_cast<std::ptrdiff_t>(index)) +
                        ". The program does not fit its operators.");
}

}  // namespace fairlead
