// Stages a model beside its final name, and moves it there when asked.
#include "fairlead/onnx/writer.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/onnx/encode_model.h"
#include "fairlead/onnx/external_plan.h"
#include "fairlead/onnx/output_file.h"
#include "fairlead/onnx/shared_weights.h"

namespace fairlead::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxProtobufBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxNameInFolder = 200;  // of the 255 that file systems allow

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

std::string make_folder_beside(const std::string& path) {
  const fs::path target(path);
  const std::string name = target.filename().string().substr(0, kMaxNameInFolder);
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::string folder = (parent / ("." + name + ".fairlead-XXXXXX")).string();
  if (::mkdtemp(folder.data()) == nullptr) fail_write(path, errno);
  return folder;
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
  std::set<std::string> others;
  for (const auto& [tensor, slot] : plan.known) {
    if (!slot.location.empty()) others.insert(slot.location);
  }
  for (const std::string& name : others) {
    const std::string from = (fs::path(folder) / name).string();
    const std::string to = (fs::path(staging) / name).string();
    if (::link(from.c_str(), to.c_str()) != 0) fail_write(to, errno);
  }
}

void rename_into_place(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_write(to, errno);
}

}  // namespace

StagedModel::StagedModel(StagedModel&& other) noexcept { *this = std::move(other); }

StagedModel& StagedModel::operator=(StagedModel&& other) noexcept {
  if (this == &other) return *this;
  discard();
  folder_ = std::exchange(other.folder_, {});  // only the owner of the folder removes it
  staged_path_ = std::exchange(other.staged_path_, {});
  staged_data_ = std::exchange(other.staged_data_, {});
  final_path_ = std::exchange(other.final_path_, {});
  final_data_ = std::exchange(other.final_data_, {});
  result_ = std::exchange(other.result_, {});
  shared_ = std::move(other.shared_);
  plan_ = std::move(other.plan_);
  return *this;
}

StagedModel::~StagedModel() { discard(); }

void StagedModel::discard() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  folder_.clear();
}

void StagedModel::add_metadata(const std::string& key, const std::string& value) {
  FAIRLEAD_CHECK(!folder_.empty(), "nothing is staged");
  OutputFile file(staged_path_, final_path_, OutputFile::Mode::kAppend);
  const EncodedMessage message = encode_metadata(key, value);
  write_message(message, file);
  file.close();
  result_.model_bytes += message.size();
}

// The model is renamed last: whoever opens it under its final name finds its data there. A second
// link to the data that was there before lets a failure put it back.
void StagedModel::commit() {
  FAIRLEAD_CHECK(!folder_.empty(), "nothing is staged");
  const std::string previous = folder_ + "/previous";
  bool has_previous = false;
  if (!staged_data_.empty()) {
    has_previous = ::link(final_data_.c_str(), previous.c_str()) == 0;
    rename_into_place(staged_data_, final_data_);
  }
  if (std::rename(staged_path_.c_str(), final_path_.c_str()) != 0) {
    const int reason = errno;
    if (has_previous) {
      std::rename(previous.c_str(), final_data_.c_str());
    } else if (!staged_data_.empty()) {
      ::unlink(final_data_.c_str());
    }
    discard();
    fail_write(final_path_, reason);
  }
  discard();
  if (shared_ && plan_) {
    shared_->remember(folder_of(final_path_), plan_->location, plan_->known);
  }
}

StagedModel write_model(const Model& model, const std::string& path, ExternalData external,
                        std::shared_ptr<SharedWeights> shared) {
  check_target(path);
  const std::string name = std::filesystem::path(path).filename().string();
  // Files are referred to by their name beside the model: in another folder there are none.
  const bool beside = shared && (shared->folder().empty() || shared->folder() == folder_of(path));
  const SharedWeights* known = beside ? shared.get() : nullptr;

  bool outside =
      external == ExternalData::kAlways ||
      (external == ExternalData::kAuto && initializer_bytes(model.graph) > kAutoExternalBytes);
  ExternalPlan plan = plan_external(model.graph, outside, name + ".data", known);
  EncodedMessage message = encode_model(model, plan);
  if (message.size() > kMaxProtobufBytes && external == ExternalData::kAuto && !outside) {
    outside = true;
    plan = plan_external(model.graph, outside, name + ".data", known);
    message = encode_model(model, plan);
  }
  if (message.size() > kMaxProtobufBytes) fail_too_large(path, message.size(), outside);

  if (!plan.entries.empty()) check_target(path + ".data");

  StagedModel staged;
  staged.folder_ = make_folder_beside(path);
  staged.final_path_ = path;
  staged.staged_path_ = staged.folder_ + "/" + name;
  if (!plan.entries.empty()) {
    staged.final_data_ = path + ".data";
    staged.staged_data_ = staged.staged_path_ + ".data";
    write_external(plan, staged.staged_data_, staged.final_data_);
    staged.result_.external_bytes = plan.bytes;
    staged.result_.external_path = staged.final_data_;
  }
  link_others(plan, folder_of(path), staged.folder_);
  OutputFile file(staged.staged_path_, path);
  write_message(message, file);
  file.close();
  staged.result_.model_bytes = message.size();
  if (beside && outside) {
    plan.entries.clear();  // they point into the model
    plan.slots.clear();
    staged.shared_ = std::move(shared);
    staged.plan_ = std::make_shared<ExternalPlan>(std::move(plan));
  }
  return staged;
}

}  // namespace fairlead::onnx
