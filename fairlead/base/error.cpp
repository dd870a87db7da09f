// How a broken invariant is reported.
#include "fairlead/base/error.h"

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

}  // namespace fairlead
