// The entries of a zip archive that stores them uncompressed, as PyTorch writes it: spans of its
// bytes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace fairlead::pt2 {

using Bytes = std::span<const std::byte>;

// Name -> bytes. Reads the central directory, zip64 included, and checks every offset against the
// size of the archive. Throws Error(kParse) where the bytes are no zip archive or an incomplete
// one, or where entries share a name or bytes, Error(kUnsupported) where an entry is compressed or
// encrypted. `where` names the archive.
[[nodiscard]] std::map<std::string, Bytes, std::less<>> zip_entries(Bytes archive,
                                                                    std::string_view where);

[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace fairlead::pt2
