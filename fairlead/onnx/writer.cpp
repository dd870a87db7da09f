// Stages a model beside its final name, and moves it there when asked.
#include "fairlead/onnx/writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/files/output_file.h"
#include "fairlead/files/staging.h"
#include "fairlead/onnx/data_files.h"
#include "fairlead/onnx/encode_model.h"
#include "fairlead/onnx/external_plan.h"
#include "fairlead/onnx/shared_weights.h"

namespace fairlead::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxProtobufBytes = std::numeric_limits<std::int32_t>::max();

// What can be known before any byte is written. A device or a folder must not be renamed over.
void check_target(const std::string& path) {
  if (path.empty()) {
    throw Error(
        ErrorCode::kIo,
        "[write_model] Could not write '': the path is empty. Give the name of a file, such "
        "as 'model.onnx'.");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status) || fs::path(path).filename().empty()) fail_write(path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorCode::kIo, "[write_model] Could not write '" + path +
                                    "': it is a device, a pipe or a socket. Give the name of a "
                                    "file, such as 'model.onnx'.");
  }
}

[[noreturn]] void fail_too_large(const std::string& path, std::int64_t bytes, bool external) {
  throw Error(ErrorCode::kInvalidInput,
              "[write_model] Could not write '" + path + "': the model is " +
                  std::to_string(bytes) + " bytes, and a protobuf file ends at " +
                  std::to_string(kMaxProtobufBytes) +
                  (external ? ". Move large tensor attributes to initializers."
                            : ". Let the tensors go to a file beside it (external data 'auto' or "
                              "'always')."));
}

std::string folder_of(const std::string& path) {
  return fs::absolute(fs::path(path)).parent_path().lexically_normal().string();
}

// The staged model finds the files of others beside it, as it will at its final place.
void link_others(const ExternalPlan& plan, const std::string& folder, const std::string& staging) {
  for (const std::string_view name : plan.others) {
    const std::string from = (fs::path(folder) / name).string();
    const std::string to = (fs::path(staging) / name).string();
    if (::link(from.c_str(), to.c_str()) != 0) fail_write(to, errno);
  }
}

}  // namespace

StagedModel::StagedModel() = default;
StagedModel::StagedModel(StagedModel&&) noexcept = default;
StagedModel& StagedModel::operator=(StagedModel&&) noexcept = default;
StagedModel::~StagedModel() = default;

void StagedModel::discard() {
  if (staging_) staging_->discard();
}

// Its name is that of its content, so it is known when the file is whole.
void StagedModel::write_data(ExternalPlan& plan, FetchedWeights* fetched) {
  if (plan.entries.empty()) return;
  const std::string path = staging_->folder() + "/data";
  ContentHash hash;
  write_external(plan, path, staging_->target(), &hash, fetched);
  plan.location = data_name_ = data_name(staging_->name(), hash);
  const std::string named = staging_->folder() + "/" + plan.location;
  if (std::rename(path.c_str(), named.c_str()) != 0) fail_write(staging_->target(), errno);
  result_.external_bytes = plan.bytes;
  result_.external_path = (fs::path(staging_->parent()) / plan.location).string();
}

void StagedModel::add_metadata(const std::string& key, const std::string& value) {
  FAIRLEAD_CHECK(staging_, "nothing is staged");
  OutputFile file(staged_path_, staging_->target(), OutputFile::Mode::kAppend);
  const EncodedMessage message = encode_metadata(key, value);
  write_message(message, file);
  file.close();
  result_.model_bytes += message.size();
}

void StagedModel::commit() {
  FAIRLEAD_CHECK(staging_, "nothing is staged");
  commit_model(*staging_, data_name_);
  if (shared_ && plan_) {
    shared_->remember(folder_of(staging_->target()), plan_->location, plan_->known);
  }
}

StagedModel write_model(const Model& model, const std::string& path, ExternalData external,
                        std::shared_ptr<SharedWeights> shared,
                        const std::vector<Function>* functions) {
  check_target(path);
  // Files are referred to by their name beside the model: in another folder there are none.
  const bool beside = shared && (shared->folder().empty() || shared->folder() == folder_of(path));
  const SharedWeights* known = beside ? shared.get() : nullptr;
  if (shared && !shared->files().empty() && !beside) {
    throw Error(ErrorCode::kInvalidInput, "[write_model] Expected a model in '" + shared->folder() +
                                              "', where its weights are, got '" + path +
                                              "'. Write it there.");
  }

  FetchedWeights* const fetched = shared ? shared->fetched() : nullptr;
  // What is in files that others wrote stays there in any case.
  ExternalPlan plan = plan_external(model.graph, false, known);
  const std::int64_t own_bytes = initializer_bytes(model.graph) - plan.other_bytes;
  bool outside = external == ExternalData::kAlways ||
                 (external == ExternalData::kAuto && own_bytes > kAutoExternalBytes);
  std::optional<ModelEncoder> encoder;
  if (!outside) {
    encoder.emplace(model, plan, functions);
    outside = encoder->size() > kMaxProtobufBytes && external == ExternalData::kAuto;
    if (encoder->size() > kMaxProtobufBytes && !outside) {
      fail_too_large(path, encoder->size(), outside);
    }
  }

  StagedModel staged;
  staged.staging_ = std::make_unique<Staging>(path);
  staged.staged_path_ = staged.staging_->path();
  if (outside) {
    plan = plan_external(model.graph, outside, known);
    staged.write_data(plan, fetched);
    encoder.emplace(model, plan, functions);
    if (encoder->size() > kMaxProtobufBytes) fail_too_large(path, encoder->size(), outside);
  }
  link_others(plan, folder_of(path), staged.staging_->folder());
  staged.result_.model_bytes = encoder->size();
  OutputFile file(staged.staged_path_, path);
  if (encoder->size() >= kWrittenBehind) file.write_behind();
  encoder->write(file, fetched);
  file.close();
  if (beside && outside) {
    plan.entries.clear();  // they point into the model
    plan.slots.clear();
    staged.shared_ = std::move(shared);
    staged.plan_ = std::make_shared<ExternalPlan>(std::move(plan));
  }
  return staged;
}

}  // namespace fairlead::onnx
