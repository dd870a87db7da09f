// What of a model lies where in the files of its checkpoint, though nobody loaded it: each parameter is
// one part of a file, several parts in order, or something else that has to be converted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fairlead/weights/file_regions.h"
#include "fairlead/weights/reserved_memory.h"
#include "fairlead/weights/stored_blocks.h"
#include "fairlead/weights/weight_folder.h"

namespace fairlead {

class PlacedWeights {
 public:
  enum class Way : std::uint8_t {
    kEmpty,   // no element
    kMapped,  // one part of a file, where that is mapped
    kJoined,  // several parts: addresses with nothing behind them
    kOther,   // of another dtype or order than in the files
  };
  struct Place {
    Way way = Way::kEmpty;
    std::size_t file = 0;     // kMapped
    std::int64_t offset = 0;  // in the file; of kJoined, among the reserved addresses
    std::int64_t bytes = 0;
  };
  // A part of a file that a tensor of the checkpoint is.
  struct Known {
    std::uint32_t tensor = 0;  // of the folder
    Dtype dtype = Dtype::kFloat32;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint64_t hash = 0;  // of what was converted
  };

  explicit PlacedWeights(std::shared_ptr<const WeightFolder> folder);

  // Where a tensor of these blocks is as `dtype`. What is kOther is remembered by `add_converted`.
  Place add(const StoredBlocks& blocks, Dtype dtype);
  void add_converted(const StoredBlocks& blocks, Dtype dtype, std::int64_t begin,
                     std::int64_t bytes, std::uint64_t hash);
  // When all were added: addresses for those that are joined; none where there are none.
  void reserve();
  [[nodiscard]] const ReservedMemory* reserved() const { return reserved_.get(); }

  // The bytes of the joined tensor that begins there; of all of them.
  void fill(std::int64_t at) const;
  void fill() const;
  [[nodiscard]] bool is_joined(std::int64_t at) const;
  void forget() const;  // whatever was filled is gone

  // Files of the checkpoint that are referred to.
  [[nodiscard]] const std::set<std::size_t>& used() const { return used_; }
  // Which memory stands for which bytes: of the files, of the joined tensors, and of the file of
  // converted ones.
  [[nodiscard]] FileRegions regions(const WeightFile* converted = nullptr,
                                    const std::string& name = {}) const;
  // What holds these bytes of a file of the checkpoint, or, file none, of the converted ones.
  [[nodiscard]] std::optional<Known> find(std::optional<std::size_t> file, std::int64_t offset,
                                          std::int64_t bytes) const;
  [[nodiscard]] const WeightFolder& folder() const { return *folder_; }

 private:
  struct Piece {
    std::size_t file = 0;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
  };
  struct Joined {
    std::int64_t at = 0;             // among the reserved addresses
    std::size_t first = 0, end = 0;  // of pieces_
  };
  void fill(const Joined& joined) const;

  std::shared_ptr<const WeightFolder> folder_;
  std::vector<Piece> pieces_;
  std::vector<Joined> joined_;  // by `at`
  std::int64_t reserved_bytes_ = 0;
  std::unique_ptr<ReservedMemory> reserved_;
  std::set<std::size_t> used_;
  // By file, the last of them what was converted; sorted by offset when somebody asks.
  mutable std::vector<std::vector<Known>> known_;
  mutable bool sorted_ = true;
};

}  // namespace fairlead
