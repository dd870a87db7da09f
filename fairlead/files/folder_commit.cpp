// A folder that gets its name in one step, with what was there under other names.
//
// Renaming the files one by one would leave parts of two exports beside each other when the process
// dies between two of them, so the staged folder becomes the whole of the new one:
// 1. Entries of the old folder that the new one does not have are linked into it.
// 2. The two folders change places: the one moment at which the destination changes.
// 3. What somebody put into the old folder after 1 follows; the old folder goes with the staging.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "fairlead/files/output_file.h"
#include "fairlead/files/staging.h"
#include "fairlead/files/sync.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxCarried = 10'000;  // a folder with more is somebody's home, not an export

struct Rank {
  std::string_view ending;
  int rank;
};
// clang-format off
constexpr std::array<Rank, 8> kRanks = {{
    {".data",           0},
    {".bin",            0},
    {".safetensors",    0},
    {".onnx",           2},
    {".pt2",            2},
    {".pte",            2},
    {".xml",            2},
    {"generation.json", 3},
}};
// clang-format on

// 0 where it was done, otherwise the system's error number.
int change_places(const std::string& one, const std::string& other) {
#if defined(__GLIBC__)
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0 ? 0
                                                                                           : errno;
#elif defined(__APPLE__)
  return ::renamex_np(one.c_str(), other.c_str(), RENAME_SWAP) == 0 ? 0 : errno;
#else
  return one == other ? 0 : ENOSYS;
#endif
}

// A mount point, a file system without exchange, a folder of another owner in a sticky one.
bool cannot_exchange(int error_number) {
  return error_number == ENOSYS || error_number == EINVAL || error_number == EOPNOTSUPP ||
         error_number == EXDEV || error_number == EBUSY || error_number == EPERM ||
         error_number == EACCES;
}

// Links what `to` lacks of `from`. False where something cannot be linked, or others work in there
// now.
bool carry(const fs::path& from, const fs::path& to, int& left, const Staging& staging) {
  std::error_code error;
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const fs::file_status status = at->symlink_status(error);
    if (error) return false;
    const bool is_folder = fs::is_directory(status);
    if (is_folder && is_staging_name(name)) {
      if (remove_if_dead(at->path().string())) continue;
      return false;
    }
    const fs::path place = to / name;
    const fs::file_status taken = fs::symlink_status(place, error);
    if (fs::exists(taken)) {
      if (is_folder != fs::is_directory(taken)) {
        fail_write(at->path().string(), is_folder ? EISDIR : ENOTDIR, staging.function());
      }
      if (is_folder && !carry(at->path(), place, left, staging)) return false;
      continue;
    }
    if (--left < 0) return false;
    if (!is_folder) {
      if (::link(at->path().c_str(), place.c_str()) != 0) return false;
      continue;
    }
    if (::mkdir(place.c_str(), 0777) != 0) return false;
    if (!carry(at->path(), place, left, staging)) return false;
    fs::permissions(place, status.permissions(), error);
  }
  return !error;
}

// What came into the old folder while the new one was made ready.
void carry_late(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    const fs::path place = to / at->path().filename();
    if (!fs::exists(fs::symlink_status(place, error))) {
      fs::rename(at->path(), place, error);
    }
  }
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_directory(error)) files.push_back(at->path().lexically_relative(folder));
  }
  std::ranges::stable_sort(
      files, {}, [](const fs::path& file) { return rank_of_file(file.filename().string()); });
  return files;
}

void move_one_by_one(const std::vector<fs::path>& files, const fs::path& from, const fs::path& to,
                     const Staging& staging) {
  for (const fs::path& file : files) {
    const fs::path place = to / file;
    std::error_code error;
    fs::create_directories(place.parent_path(), error);
    if (!error) fs::rename(from / file, place, error);
    if (error) fail_write(place.string(), error.value(), staging.function());
  }
  sync_tree(to.string(), staging.target(), staging.function());
}

}  // namespace

int rank_of_file(const std::string& name) {
  for (const Rank& row : kRanks) {
    if (name.ends_with(row.ending)) return row.rank;
  }
  return 1;
}

void Staging::commit_folder() {
  sync_content();
  std::error_code error;
  fs::path final = fs::path(parent_) / name_;
  if (fs::is_symlink(
          fs::symlink_status(final, error))) {  // a link stays: what it leads to is replaced
    final = fs::canonical(final, error);
    if (error) fail_write(target_, error.value(), function_);
  }
  const std::string parent =
      final.has_parent_path() ? final.parent_path().string() : std::string(".");
  {
    const FolderLock lock(parent);
    const fs::file_status before = fs::status(final, error);
    if (!fs::exists(before)) {
      const int reason = ::rename(content_.c_str(), final.c_str()) == 0 ? 0 : errno;
      if (reason != 0 && reason != ENOTEMPTY && reason != EEXIST) {
        fail_write(target_, reason, function_);
      }
      if (reason == 0) {
        sync_names(parent, target_, function_);
        discard();
        return;
      }
    } else if (!fs::is_directory(before)) {
      fail_write(target_, ENOTDIR, function_);
    }
    const std::vector<fs::path> files = files_below(content_);
    int left = kMaxCarried;
    int reason = ENOSYS;
    if (!holds_working_directory(final) && carry(final, content_, left, *this)) {
      fs::permissions(content_, fs::status(final, error).permissions(), error);
      sync_content();
      reason = change_places(content_, final.string());
    }
    if (reason == 0) {
      sync_names(parent, target_, function_);
      carry_late(content_, final);
    } else if (cannot_exchange(reason)) {
      move_one_by_one(files, content_, final, *this);
    } else {
      fail_write(target_, reason, function_);
    }
  }
  discard();
}

}  // namespace fairlead
