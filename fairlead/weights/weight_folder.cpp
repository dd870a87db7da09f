// Opens the safetensors files of a folder, by the index where there is one.
#include "fairlead/weights/weight_folder.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/files/mapped_file.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kSingle = "model.safetensors";
constexpr std::int64_t kLargestIndex = 256ll << 20;
constexpr const char* kComplete = "Check that the files are complete.";

[[noreturn]] void fail(const std::string& expected, const std::string& got,
                       const std::string& advice = kComplete) {
  throw Error(ErrorCode::kInvalidInput,
              "[read_weights] Expected " + expected + ", got " + got + ". " + advice);
}

[[noreturn]] void fail_read(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kIo,
              "[read_weights] Could not read '" + path + "': " + why + ". " + kComplete);
}

bool written_at_once(const struct ::stat& a, const struct ::stat& b) {
#if defined(__APPLE__)
  const auto x = a.st_mtimespec, y = b.st_mtimespec;
#else
  const auto x = a.st_mtim, y = b.st_mtim;
#endif
  return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec;
}

std::string reason(int number) { return std::generic_category().message(number); }

// A name of a file in the folder itself.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name.find("..") == std::string_view::npos &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

struct IndexRow {
  std::string tensor;
  std::size_t file;  // of the names
};

// What the index says, by tensor; the files that it names, in their order, go to `names`.
std::vector<IndexRow> read_index(const std::string& path, std::vector<std::string>& names) {
  const MappedFile file(path, "read_weights", kComplete);
  if (static_cast<std::int64_t>(file.bytes().size()) > kLargestIndex) {
    fail("an index of at most " + std::to_string(kLargestIndex) + " bytes",
         std::to_string(file.bytes().size()) + " in '" + path + "'");
  }
  const simdjson::padded_string text(reinterpret_cast<const char*>(file.bytes().data()),
                                     file.bytes().size());
  simdjson::dom::parser parser;
  simdjson::dom::object rows;
  if (parser.parse(text)["weight_map"].get(rows) != simdjson::SUCCESS) {
    fail("a weight_map in '" + path + "'", "none");
  }
  const auto file_of = [](simdjson::dom::element value) -> std::optional<std::string_view> {
    std::string_view name;
    const bool plain = value.get(name) == simdjson::SUCCESS && is_plain_name(name) &&
                       name.ends_with(".safetensors");
    return plain ? std::optional(name) : std::nullopt;
  };
  std::set<std::string, std::less<>> files;
  for (const auto row : rows) {
    const std::optional<std::string_view> name = file_of(row.value);
    if (!name) {
      fail("names of .safetensors files beside it in '" + path + "'",
           std::string(simdjson::minify(row.value)).substr(0, 120));
    }
    if (!files.contains(*name)) files.emplace(*name);
  }
  names.assign(files.begin(), files.end());
  std::vector<IndexRow> found;
  found.reserve(rows.size());
  for (const auto row : rows) {
    const auto at = std::ranges::lower_bound(names, *file_of(row.value));
    found.push_back({std::string(row.key), static_cast<std::size_t>(at - names.begin())});
  }
  if (found.empty()) fail("tensors in the weight_map of '" + path + "'", "none");
  std::ranges::sort(found, {}, &IndexRow::tensor);
  const auto twice = std::ranges::adjacent_find(found, {}, &IndexRow::tensor);
  if (twice != found.end())
    fail("each tensor once in '" + path + "'", "'" + twice->tensor + "' twice");
  return found;
}

bool has_pickles(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("pytorch_model") && name.ends_with(".bin")) return true;
  }
  return false;
}

}  // namespace

WeightFile::WeightFile(const std::string& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_read(path, reason(errno));
  std::string problem;
  if (::fstat(descriptor_, &opened_) != 0) {
    problem = reason(errno);
  } else if (!S_ISREG(opened_.st_mode)) {
    problem = "it is not a plain file";
  } else if (opened_.st_size > 0) {
    size_ = static_cast<std::size_t>(opened_.st_size);
    // Writable, because a tensor that is written to must not end the process; nothing is set aside
    // for that, because a checkpoint may be larger than all memory.
    void* const at =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor_, 0);
    if (at == MAP_FAILED) {
      problem = reason(errno);
    } else {
      data_ = static_cast<std::byte*>(at);
      guard_ = MappingGuard(at, size_);
    }
  }
  if (!problem.empty()) {
    ::close(descriptor_);
    fail_read(path, problem);
  }
}

WeightFile::~WeightFile() {
  guard_ = {};
  if (data_ != nullptr) ::munmap(data_, size_);
  ::close(descriptor_);
}

void WeightFile::check_unchanged() const {
  struct ::stat now {};
  if (::stat(path_.c_str(), &now) != 0) fail_read(path_, reason(errno));
  if (now.st_dev != opened_.st_dev || now.st_ino != opened_.st_ino ||
      now.st_size != opened_.st_size || !written_at_once(now, opened_)) {
    fail("'" + path_ + "' to stay as it is", "a file that changed while it was read",
         "Export again when nothing writes to it.");
  }
}

void WeightFile::read(std::int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(path_, reason(errno));
    if (got == 0) fail_read(path_, "it became shorter while it was read");
    offset += got;
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

void WeightFile::read_rows(std::int64_t offset, std::int64_t pitch, std::int64_t width,
                           std::span<std::byte> into) const {
  // Rows that are close are read with what is between them.
  constexpr std::int64_t kClose = 4096, kAtOnce = 1 << 18;
  if (width <= 0) return;
  const auto count = static_cast<std::int64_t>(into.size()) / width;
  if (width == pitch || count == 1) return read(offset, into);
  const std::int64_t many =
      pitch - width <= kClose ? std::max<std::int64_t>(kAtOnce / pitch, 1) : 1;
  std::vector<std::byte> piece;
  for (std::int64_t k = 0; k < count; k += many) {
    const std::int64_t some = std::min(many, count - k);
    std::byte* made = into.data() + k * width;
    if (some == 1) {
      read(offset + k * pitch, {made, static_cast<std::size_t>(width)});
      continue;
    }
    piece.resize(static_cast<std::size_t>((some - 1) * pitch + width));
    read(offset + k * pitch, piece);
    for (std::int64_t row = 0; row < some; ++row, made += width) {
      std::copy_n(piece.data() + row * pitch, width, made);
    }
  }
}

std::uint64_t WeightFile::hash(std::int64_t offset, std::int64_t bytes) const {
  constexpr std::int64_t kPiece = 1 << 20;
  const auto size = static_cast<std::int64_t>(size_);
  if (offset < 0 || bytes < 0 || offset > size - bytes) {
    throw Error(ErrorCode::kInvalidInput, "[export] Expected '" + path_ + "' to have bytes " +
                                              std::to_string(offset) + " to " +
                                              std::to_string(offset + bytes) + ", got a file of " +
                                              std::to_string(size) + ".");
  }
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(bytes, kPiece)));
  ContentHash found;
  for (std::int64_t done = 0; done < bytes; done += kPiece) {
    const auto some = static_cast<std::size_t>(std::min(kPiece, bytes - done));
    read(offset + done, std::span(piece).first(some));
    found.update(std::span(piece).first(some));
  }
  return found.value();
}

void WeightFile::forget(std::int64_t offset, std::int64_t bytes) const {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t begin = offset / page * page;
  if (data_ != nullptr && bytes > 0) {
    ::madvise(data_ + begin, static_cast<std::size_t>(offset + bytes - begin), MADV_DONTNEED);
  }
}

WeightFolder::WeightFolder(const std::string& folder, const std::string& file) : folder_(folder) {
  const auto in_folder = [&](const std::string& name) {
    return (fs::path(folder) / name).string();
  };
  std::error_code error;
  std::vector<IndexRow> index;
  if (!file.empty()) {
    if (!file.ends_with(".safetensors")) {
      fail("a folder with safetensors files, or one of them", "'" + in_folder(file) + "'",
           "Name a checkpoint in that format.");
    }
    names_.push_back(file);
  } else if (fs::exists(in_folder(kIndex), error)) {
    index = read_index(in_folder(kIndex), names_);
  } else if (fs::exists(in_folder(kSingle), error)) {
    names_.emplace_back(kSingle);
  } else if (has_pickles(folder)) {
    fail("safetensors files in '" + folder + "'", "pytorch_model*.bin, which is not read",
         "Convert it: python -c \"from transformers import AutoModel as A; "
         "A.from_pretrained('FOLDER').save_pretrained('NEW')\" where you trust the file.");
  } else {
    fail(std::string(kSingle) + " or " + kIndex + " in '" + folder + "'", "none");
  }
  tensors_.reserve(index.size());
  for (std::size_t k = 0; k < names_.size(); ++k) {
    if (!fs::exists(in_folder(names_[k]), error)) {
      fail("'" + in_folder(names_[k]) + "'" + (index.empty() ? "" : ", which the index names"),
           "no such file");
    }
    files_.push_back(std::make_unique<WeightFile>(in_folder(names_[k])));
    for (StoredTensor& each : read_safetensors(files_.back()->bytes(), in_folder(names_[k]))) {
      tensors_.push_back({std::move(each), k});
    }
    files_.back()->forget(0, static_cast<std::int64_t>(files_.back()->bytes().size()));
  }
  std::vector<const Tensor*> by_name;
  by_name.reserve(tensors_.size());
  for (const Tensor& each : tensors_) by_name.push_back(&each);
  const auto name_of = [](const Tensor* each) -> const std::string& { return each->stored.name; };
  std::ranges::stable_sort(by_name, {}, name_of);
  const auto twice = std::ranges::adjacent_find(by_name, {}, name_of);
  if (twice != by_name.end()) {
    fail("each tensor in one file", "'" + name_of(*twice) + "' in '" +
                                        in_folder(names_[(*twice)->file]) + "' and in '" +
                                        in_folder(names_[(*std::next(twice))->file]) + "'");
  }
  for (const auto& [tensor, file] : index) {
    const auto found = std::ranges::lower_bound(by_name, tensor, {}, name_of);
    if (found == by_name.end() || name_of(*found) != tensor || (*found)->file != file) {
      fail("'" + tensor + "' in '" + in_folder(names_[file]) + "', as the index says", "none");
    }
  }
}

std::size_t WeightFolder::add_decoded(std::string name, std::vector<std::int64_t> dims,
                                      std::shared_ptr<const DecodedTensor> decoded) {
  const std::int64_t count =
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  FAIRLEAD_CHECK(decoded != nullptr && decoded->count() == count, "other sizes than it has");
  tensors_.push_back({{std::move(name), "F32", Dtype::kFloat32, std::move(dims), 0,
                       count * static_cast<std::int64_t>(dtype_size(Dtype::kFloat32))},
                      0,
                      std::move(decoded)});
  return tensors_.size() - 1;
}

const WeightFile* WeightFolder::file_with(std::span<const std::byte> bytes) const {
  const std::less_equal<> in_order;
  for (const auto& file : files_) {
    const std::span<const std::byte> all = file->bytes();
    if (in_order(all.data(), bytes.data()) &&
        in_order(bytes.data() + bytes.size(), all.data() + all.size())) {
      return file.get();
    }
  }
  return nullptr;
}

std::span<const std::byte> WeightFolder::kept(std::span<const std::byte> bytes) {
  if (bytes.empty() || file_with(bytes) != nullptr) return bytes;
  copied_.emplace_back(bytes.begin(), bytes.end());
  return copied_.back();
}

void WeightFolder::read(const ByteRows& rows, std::span<std::byte> into) const {
  FAIRLEAD_CHECK(static_cast<std::int64_t>(into.size()) == rows.width * rows.count &&
                     rows.first >= 0 && rows.width <= rows.pitch &&
                     rows.first + (rows.count - 1) * rows.pitch + rows.width <=
                         static_cast<std::int64_t>(rows.of.size()),
                 "rows beyond their bytes");
  const WeightFile* const file = file_with(rows.of);
  if (file == nullptr) {
    for (std::int64_t k = 0; k < rows.count; ++k) {
      std::copy_n(rows.of.data() + rows.first + k * rows.pitch, rows.width,
                  into.data() + k * rows.width);
    }
    return;
  }
  file->read_rows(rows.of.data() - file->bytes().data() + rows.first, rows.pitch, rows.width, into);
}

void WeightFolder::check_unchanged() const {
  for (const auto& file : files_) file->check_unchanged();
}

}  // namespace fairlead
