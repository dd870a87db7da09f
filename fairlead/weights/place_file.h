// A checkpoint's file in another folder, by the cheapest way there is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fairlead {

enum class Placed {
  kShared,  // a copy that shares the blocks of the file (FICLONE): it costs nothing
  kLinked,  // a second name of the same file
  kKernel,  // copied by the system, within the disk where it can
  kCopied,  // read and written
};

// `to` must not be there. With `link` it becomes a second name of the same file, or an error.
// `progress` is told the bytes that were copied so far, now and then. Throws Error(kIo); then `to`
// is not there.
Placed place_file(const std::string& from, const std::string& to, bool link,
                  const std::function<void(std::int64_t)>& progress = {});

}  // namespace fairlead
