// Whether every initializer of a written model that lies in another file is what it should be.
#pragma once

#include <cstdint>
#include <string>

#include "fairlead/weights/placed_weights.h"

namespace fairlead::onnx {

struct ReferenceCheck {
  std::int64_t references = 0;
  std::int64_t compared = 0;  // of them, by the hash of their bytes
  std::int64_t bytes = 0;     // of those
};

// Each reference of the model at `path` is a tensor of the checkpoint, or what was made of one:
// otherwise the fault is ours, Error(kInternal). With `bytes_too` its bytes are that tensor's, by
// their hashes, where they are not in the checkpoint's own file: `folder` is where the model finds
// its files, `converted` the name of the one that was made. Throws Error(kIo) where they differ.
[[nodiscard]] ReferenceCheck check_references(const std::string& path, const PlacedWeights& placed,
                                              const std::string& folder,
                                              const std::string& converted, bool bytes_too);

}  // namespace fairlead::onnx
