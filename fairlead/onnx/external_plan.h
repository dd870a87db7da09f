// Decides which initializers go to the file beside the model, and where in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "fairlead/onnx/model.h"
#include "fairlead/onnx/writer.h"
#include "fairlead/weights/file_regions.h"

namespace fairlead {
class ContentHash;
class FetchedWeights;
}  // namespace fairlead

namespace fairlead::onnx {

class SharedWeights;

// Files from this size on are written by a thread of their own (OutputFile::write_behind): smaller
// ones are written before it has started.
inline constexpr std::int64_t kWrittenBehind = 32ll << 20;

struct ExternalSlot {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::string_view
      location;  // another model's file, as SharedWeights has it; empty: the model's own
};

// What makes two tensors the same bytes. The element size matters only where there are strides.
using TensorIdentity = std::tuple<const std::byte*, std::int64_t, std::size_t,
                                  std::vector<std::int64_t>, std::vector<std::int64_t>>;

struct ExternalPlan {
  // A tensor of the file, once, at its place; in order of the offsets.
  struct Entry {
    const TensorData* tensor;
    ExternalSlot slot;
  };
  std::string location;  // the name that the model refers to, known when the file is written
  std::vector<Entry> entries;
  std::unordered_map<const TensorData*, ExternalSlot> slots;  // but for those of `shared`'s files
  std::int64_t bytes = 0;                                     // of the whole file
  std::map<TensorIdentity, ExternalSlot> known;               // by what makes a tensor the same
  const SharedWeights* shared = nullptr;
  std::set<std::string_view> others;  // names of files that are another's
  std::int64_t other_bytes = 0;       // that initializers have in those

  // Where an initializer is; none where it is inside of the model.
  [[nodiscard]] std::optional<ExternalSlot> slot(const TensorData& tensor) const;
  // The parts of `shared`'s files that an initializer in pieces is.
  [[nodiscard]] std::vector<FilePart> parts(const TensorData& tensor) const;
};

// Bytes of all initializers, those of subgraphs included.
[[nodiscard]] std::int64_t initializer_bytes(const Graph& graph);

// What lies in files that `shared` declares, however small it is; where `external` is true also
// every other initializer of kExternalTensorBytes or more. Two initializers share a slot where they are the same bytes in the same order of one
// memory; those of `shared` that lie in files already refer to them.
[[nodiscard]] ExternalPlan plan_external(const Graph& graph, bool external,
                                         const SharedWeights* shared = nullptr);

// Streams the planned tensors to `path`; `shown_as` is the name in errors, `hash` that of the
// bytes.
void write_external(const ExternalPlan& plan, const std::string& path, const std::string& shown_as,
                    ContentHash* hash, FetchedWeights* fetched);

}  // namespace fairlead::onnx
