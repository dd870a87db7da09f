// Weights that are not in the checkpoint as a model has them (of another dtype, transposed), written
// to one more file, a bounded piece at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fairlead/files/content_hash.h"
#include "fairlead/files/output_file.h"
#include "fairlead/weights/stored_blocks.h"
#include "fairlead/weights/weight_folder.h"

namespace fairlead {

class ConvertedFile {
 public:
  // `shown_as` is its name in errors.
  ConvertedFile(const WeightFolder& folder, const std::string& path, const std::string& shown_as,
                unsigned threads);

  struct Added {
    std::int64_t begin = 0;  // of the tensor in the file
    std::int64_t bytes = 0;
    std::uint64_t hash = 0;  // of its bytes, as they were before they were written
  };
  // Appends the elements in their order, as `dtype`. Throws Error(kInvalidInput), which names the
  // tensor, for a change between types that are not floats.
  Added add(Dtype dtype, const StoredBlocks& blocks);
  Added add(Dtype dtype, const std::vector<StoredPart>& parts);
  // Whole after this; the hash of its bytes, 16 digits.
  std::string close();

 private:
  void convert(const StoredPart& part, Dtype dtype, ContentHash& hash);

  const WeightFolder& folder_;
  OutputFile file_;
  ContentHash hash_;
  unsigned threads_;
};

// The elements of a part, side by side.
[[nodiscard]] std::vector<std::byte> read_part(const WeightFolder& folder, const StoredPart& part);

}  // namespace fairlead
