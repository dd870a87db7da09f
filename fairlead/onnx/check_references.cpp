// Compares references of a model with the checkpoint that they are to.
#include "fairlead/onnx/check_references.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/onnx/reader.h"

namespace fairlead::onnx {
namespace {

namespace fs = std::filesystem;

class Check {
 public:
  Check(const PlacedWeights& placed, const std::string& folder, const std::string& converted,
        bool bytes_too)
      : placed_(placed), folder_(folder) {
    const WeightFolder& files = placed.folder();
    for (std::size_t k = 0; k < files.names().size(); ++k) files_[files.names()[k]].number = k;
    if (!converted.empty()) files_[converted] = {};
    for (auto& [name, file] : files_) {
      if (bytes_too && !is_own(name, file)) file.path = (fs::path(folder) / name).string();
    }
  }

  void row(const InitializerSummary& given) {
    if (!given.external) return;
    ++found_.references;
    const auto file = files_.find(given.location);
    const auto known = file == files_.end()
                           ? std::nullopt
                           : placed_.find(file->second.number, given.offset, given.bytes);
    if (!known || dtype_name(known->dtype) != given.dtype || !is_part(*known, given)) {
      throw Error(ErrorCode::kInternal, "[export] Expected " + given.name + " to be a tensor of '" +
                                            placed_.folder().folder() + "', got " +
                                            std::to_string(given.bytes) + " bytes of " +
                                            given.dtype + " at " + std::to_string(given.offset) +
                                            " of " + given.location + ", where there is " +
                                            (known ? name_of(*known) : std::string("none")) +
                                            ". This is a fault in Fairlead; please report it.");
    }
    if (file->second.path.empty()) return;
    if (!compared_.emplace(&file->second, known->offset).second) return;
    ++found_.compared;
    found_.bytes += known->bytes;
    compare(file->second, *known, given);
  }

  [[nodiscard]] ReferenceCheck found() const { return found_; }

 private:
  struct File {
    std::optional<std::size_t> number;  // of the checkpoint's; none: the converted one
    std::string path;                   // of one whose bytes are compared
    std::unique_ptr<WeightFile> open;
  };

  [[nodiscard]] const std::string& name_of(const PlacedWeights::Known& known) const {
    return placed_.folder().tensors().at(known.tensor).stored.name;
  }

  // The tensor, or one of as many matrices that follow each other in it.
  [[nodiscard]] static bool is_part(const PlacedWeights::Known& known,
                                    const InitializerSummary& given) {
    return given.bytes == known.bytes || (given.bytes > 0 && known.bytes % given.bytes == 0 &&
                                          (given.offset - known.offset) % given.bytes == 0);
  }

  // The checkpoint's own file, under this name or another.
  [[nodiscard]] bool is_own(const std::string& name, const File& file) const {
    if (!file.number) return false;
    std::error_code error;
    const fs::path here = fs::path(folder_) / name;
    return !fs::exists(here, error) ||
           fs::equivalent(here, placed_.folder().file(*file.number).path(), error);
  }

  void compare(File& file, const PlacedWeights::Known& known, const InitializerSummary& given) {
    if (!file.open) file.open = std::make_unique<WeightFile>(file.path);
    const std::uint64_t got = file.open->hash(known.offset, known.bytes);
    const std::uint64_t wanted =
        file.number ? placed_.folder().file(*file.number).hash(known.offset, known.bytes)
                    : known.hash;
    if (got == wanted) return;
    throw Error(ErrorCode::kIo, "[export] Expected the bytes of " + name_of(known) + " of '" +
                                    placed_.folder().folder() + "' for " + given.name +
                                    ", got others at " + std::to_string(given.offset) + " of " +
                                    given.location + " (hash " + hash_text(got) + ", not " +
                                    hash_text(wanted) + "). Export again, and check the disk.");
  }

  const PlacedWeights& placed_;
  const std::string& folder_;
  std::map<std::string, File> files_;
  std::set<std::pair<const File*, std::int64_t>> compared_;
  ReferenceCheck found_;
};

}  // namespace

ReferenceCheck check_references(const std::string& path, const PlacedWeights& placed,
                                const std::string& folder, const std::string& converted,
                                bool bytes_too) {
  Check check(placed, folder, converted, bytes_too);
  visit_initializers(path, [&](const InitializerSummary& row) { check.row(row); });
  return check.found();
}

}  // namespace fairlead::onnx
