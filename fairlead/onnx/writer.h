// Streams a model to a file, and its large tensors to one aligned file beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fairlead/onnx/model.h"

namespace fairlead {
class FetchedWeights;
class Staging;
}  // namespace fairlead

namespace fairlead::onnx {

class SharedWeights;
struct ExternalPlan;
struct Function;

enum class ExternalData {
  kAuto,    // external where the tensors together pass kAutoExternalBytes
  kAlways,  // every tensor of at least kExternalTensorBytes
  kNever,   // all inside; an error past protobuf's 2 GiB
};
inline constexpr std::int64_t kAutoExternalBytes = 256ll << 20;
inline constexpr std::int64_t kExternalTensorBytes = 1024;
// ONNX Runtime maps external tensors; page alignment lets it use them in place.
inline constexpr std::int64_t kExternalAlignment = 4096;

struct WriteResult {
  std::int64_t model_bytes = 0;
  std::int64_t external_bytes = 0;  // 0: no external file
  std::string external_path;        // "<path>.<hash of its content>.data"; empty: none
};

// Files staged beside their final names. The destructor removes what was not committed, so an
// error, a full disk or an interrupt leaves nothing behind; what a killed process left is removed
// by the next write of the same path.
class StagedModel {
 public:
  StagedModel();
  StagedModel(StagedModel&& other) noexcept;
  StagedModel& operator=(StagedModel&& other) noexcept;
  ~StagedModel();

  // A loadable model under a temporary name: the staged .onnx refers to its external file by the
  // final name, so both lie in a temporary folder beside the target ("model.onnx" in it).
  [[nodiscard]] const std::string& path() const { return staged_path_; }
  [[nodiscard]] const WriteResult& result() const { return result_; }
  // Adds a pair to the model's metadata, for what is known only after it was run. Throws
  // Error(kIo).
  void add_metadata(const std::string& key, const std::string& value);
  // Both files get their names: the data first, under one that no older model refers to, then the
  // model, in one step. They are on the disk when this returns. Throws Error(kIo).
  void commit();
  void discard();  // removes them; never throws

 private:
  friend StagedModel write_model(const Model&, const std::string&, ExternalData,
                                 std::shared_ptr<SharedWeights>, const std::vector<Function>*);
  void write_data(ExternalPlan& plan, FetchedWeights* fetched);
  std::unique_ptr<Staging> staging_;
  std::string staged_path_;
  std::string data_name_;  // of the external file; empty: none
  WriteResult result_;
  std::shared_ptr<SharedWeights> shared_;  // told where the weights are once they are there
  std::shared_ptr<ExternalPlan> plan_;
};

// Weights are streamed from where they lie; the peak above them is a few MB. Identical bytes
// (same pointer, dims, strides and dtype) are stored once in the external file.
// Weights that `shared` knows from models written before are not written again.
// `functions` are those that nodes of the model call.
// Throws Error(kIo) with the path and the system's reason.
[[nodiscard]] StagedModel write_model(const Model& model, const std::string& path,
                                      ExternalData external = ExternalData::kAuto,
                                      std::shared_ptr<SharedWeights> shared = nullptr,
                                      const std::vector<Function>* functions = nullptr);

}  // namespace fairlead::onnx
