// Weights that several models of one folder hold, written once: later models refer to the file of
// the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fairlead/onnx/external_plan.h"
#include "fairlead/weights/fetched_weights.h"
#include "fairlead/weights/file_regions.h"

namespace fairlead::onnx {

// Tensors are told apart by where they lie, so only memory that its owner declares to stay as it is
// takes part: what an export made for itself may be gone, and its place taken, before the next.
class SharedWeights {
 public:
  // Memory that neither moves nor changes while this object is used.
  void declare(const std::byte* begin, std::int64_t bytes);

  // Memory that stands for bytes of files in `folder`, where they are: models there refer to them,
  // and models elsewhere are refused.
  void declare_files(const std::string& folder, FileRegions files);
  [[nodiscard]] const FileRegions& files() const { return files_; }

  // Weights that are elsewhere, and are written in their own order.
  void declare_fetched(std::shared_ptr<FetchedWeights> fetched) { fetched_ = std::move(fetched); }
  [[nodiscard]] FetchedWeights* fetched() const { return fetched_.get(); }

  // The slot of these bytes in a file that is under its final name; none where there is none.
  [[nodiscard]] std::optional<ExternalSlot> find(const TensorIdentity& tensor) const;

  // Whether bytes that begin here are, or will be, in a file in their own order.
  [[nodiscard]] bool stored(const std::byte* begin) const;

  // After a model was committed: where its tensors are. `folder` is that of the model.
  void remember(const std::string& folder, const std::string& location,
                const std::map<TensorIdentity, ExternalSlot>& placed);

  // The folder in which all models are; empty before the first.
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  [[nodiscard]] bool declared(const std::byte* begin, std::int64_t bytes) const;

  std::string folder_;
  std::map<const std::byte*, const std::byte*> memory_;  // begin -> end; no two overlap
  std::map<TensorIdentity, ExternalSlot> placed_;
  FileRegions files_;
  KeptNames locations_;  // of what is placed
  std::shared_ptr<FetchedWeights> fetched_;
};

}  // namespace fairlead::onnx
