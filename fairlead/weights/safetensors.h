// The header of a safetensors file: which tensors lie where. The data is not looked at.
//
//   8 bytes     the length of the header, little endian
//   header      JSON: {"model.norm.weight": {"dtype": "BF16", "shape": [64], "data_offsets": [0,
//               128]}, "__metadata__": {"format": "pt"}}
//   data        the tensors without gaps; offsets count from its first byte
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/dtype.h"

namespace fairlead {

struct StoredTensor {
  std::string name;
  std::string_view type;       // as the format spells it: "BF16"
  std::optional<Dtype> dtype;  // none: a type of the format that tensors here do not have ("F4")
  std::vector<std::int64_t> dims;
  std::int64_t begin = 0;  // of its first byte, from the start of the file
  std::int64_t bytes = 0;
};

// In the order of their bytes. `file` is the whole file, of which the header alone is read;
// `shown_as` its name in errors. Throws Error(kInvalidInput) unless every tensor has the bytes that
// its type and sizes ask for, all of them in the file, none of them twice, none left over.
[[nodiscard]] std::vector<StoredTensor> read_safetensors(std::span<const std::byte> file,
                                                         const std::string& shown_as);

}  // namespace fairlead
