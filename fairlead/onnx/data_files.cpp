// Commits models with their data, and removes data that no model names.
#include "fairlead/onnx/data_files.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/files/staging.h"
#include "fairlead/files/sync.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/weights/weight_folder.h"

namespace fairlead::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".data";
constexpr std::size_t kHashDigits = 16;
constexpr auto kGrace = std::chrono::milliseconds(500);

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

// Data in `folder` that may go: of the models `models` by its name, or named by what was replaced;
// and not named by any model that is there now.
std::set<std::string> nobodys(const std::string& folder, const std::set<std::string>& models,
                              const std::set<std::string>& replaced) {
  const std::vector<std::string> names = names_in(folder);
  std::set<std::string> found;
  for (const std::string& name : names) {
    if (replaced.contains(name) || std::ranges::any_of(models, [&](const std::string& model) {
          return is_data_name(name, model);
        })) {
      found.insert(name);
    }
  }
  for (const std::string& name : names) {
    if (found.empty()) break;
    std::error_code error;
    const fs::path path = fs::path(folder) / name;
    if (!name.ends_with(".onnx") || fs::is_directory(path, error)) continue;
    const std::optional<std::set<std::string>> kept = data_named_by(path.string());
    if (!kept) return {};  // it may name any
    for (const std::string& data : *kept) found.erase(data);
  }
  return found;
}

// What the model `name` of a folder refers to and may be removed with it: data that a model of
// Fairlead has by its name, and "model.onnx.data", which is what other writers call it.
std::set<std::string> data_of(const std::string& folder, const std::string& name) {
  const std::vector<std::string> names = names_in(folder);
  if (std::ranges::none_of(names, [](const std::string& n) { return n.ends_with(kEnding); })) {
    return {};
  }
  std::set<std::string> own =
      data_named_by((fs::path(folder) / name).string()).value_or(std::set<std::string>());
  std::erase_if(own, [&](const std::string& data) {
    return !is_data_name(data) && data != name + std::string(kEnding);
  });
  return own;
}

// Removes what nobody names: orphans now, the data of replaced models later. Without the lock a
// writer between its two renames could not be told from one that died there.
void remove_unnamed(const std::string& folder, const std::set<std::string>& models,
                    const std::set<std::string>& replaced) {
  std::set<std::string> later;
  {
    const FolderLock lock(folder);
    if (!lock.held()) return;
    for (const std::string& name : nobodys(folder, models, replaced)) {
      if (replaced.contains(name)) {
        later.insert(name);
      } else {
        lock.remove(name);
      }
    }
  }
  if (later.empty()) return;
  std::this_thread::sleep_for(kGrace);
  const FolderLock lock(folder);
  if (!lock.held()) return;
  for (const std::string& name : nobodys(folder, models, later)) lock.remove(name);
}

}  // namespace

std::string data_name(const std::string& model, const ContentHash& hash) {
  return model + "." + hash.hex() + std::string(kEnding);
}

bool is_data_name(const std::string& name, const std::string& model) {
  constexpr std::size_t kTail = 1 + kHashDigits + kEnding.size();
  if (!name.ends_with(kEnding) || name.size() <= kTail) return false;
  const std::size_t dot = name.size() - kTail;
  if (name[dot] != '.' || (!model.empty() && name.substr(0, dot) != model)) return false;
  const std::string_view digits = std::string_view(name).substr(dot + 1, kHashDigits);
  return std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::optional<std::set<std::string>> data_named_by(const std::string& path) {
  std::set<std::string> names;
  try {
    visit_initializers(path, [&](const InitializerSummary& row) {
      if (row.external && row.location.find('/') == std::string::npos) names.insert(row.location);
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kIo) return std::nullopt;
  }
  return names;
}

std::int64_t check_data(const std::string& path) {
  std::int64_t bytes = 0;
  const std::optional<std::set<std::string>> names = data_named_by(path);
  for (const std::string& name : names.value_or(std::set<std::string>())) {
    if (!is_data_name(name)) continue;
    const WeightFile file((fs::path(path).parent_path() / name).string());
    const auto size = static_cast<std::int64_t>(file.bytes().size());
    const std::string got = hash_text(file.hash(0, size));
    if (!name.ends_with("." + got + std::string(kEnding))) {
      throw Error(ErrorCode::kIo, "[export] Expected the bytes that were written to '" + name +
                                      "', got others (hash " + got +
                                      "). Export again, and check the disk.");
    }
    bytes += size;
  }
  return bytes;
}

void commit_model(Staging& staging, const std::string& data) {
  staging.sync_content();
  std::set<std::string> replaced;
  {
    const FolderLock lock(staging.parent());
    replaced = data_of(staging.parent(), staging.name());
    const bool was_there =
        !data.empty() && ::access((fs::path(staging.parent()) / data).c_str(), F_OK) == 0;
    try {
      if (!data.empty()) staging.move(data);
      staging.move(staging.name());
    } catch (const Error&) {
      // The same bytes under the same name were another's, or it is not there and nothing is
      // removed.
      if (!data.empty() && !was_there) lock.remove(data);
      throw;
    }
    staging.sync_parent();
  }
  staging.discard();
  remove_unnamed(staging.parent(), {staging.name()}, replaced);
}

void commit_files(Staging& staging, const std::vector<std::string>& names) {
  staging.sync_content();
  std::set<std::string> models, replaced;
  for (const std::string& name : names) {
    if (!name.ends_with(".onnx")) continue;
    models.insert(name);
    replaced.merge(data_of(staging.parent(), name));
  }
  {
    const FolderLock lock(staging.parent());
    for (const std::string& name : names) staging.move(name);
    staging.sync_parent();
  }
  staging.discard();
  remove_unnamed(staging.parent(), models, replaced);
}

void commit_folder(Staging& staging) {
  const fs::path final = fs::path(staging.parent()) / staging.name();
  // By folder below the target: the models that are written, and what those they replace referred
  // to.
  std::map<std::string, std::set<std::string>> models;
  std::map<std::string, std::set<std::string>> replaced;
  std::error_code error;
  for (fs::recursive_directory_iterator at(staging.folder(), error), end; !error && at != end;
       at.increment(error)) {
    const fs::path file = at->path().lexically_relative(staging.folder());
    if (file.extension() != ".onnx") continue;
    const std::string folder = (final / file.parent_path()).lexically_normal().string();
    models[folder].insert(file.filename().string());
    replaced[folder].merge(data_of(folder, file.filename().string()));
  }
  staging.commit_folder();
  for (const auto& [folder, names] : models) remove_unnamed(folder, names, replaced[folder]);
}

}  // namespace fairlead::onnx
