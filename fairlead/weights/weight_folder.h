// The weights of a checkpoint folder where they are: safetensors files, one or several, mapped and
// never written.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fairlead/files/mapping_guard.h"
#include "fairlead/weights/decoded.h"
#include "fairlead/weights/safetensors.h"

namespace fairlead {

// A file as it was when it was opened. Its memory is private: what a program writes there is lost,
// and never reaches the file.
class WeightFile {
 public:
  // Throws Error(kIo) where it is no plain file, or cannot be opened or mapped.
  explicit WeightFile(const std::string& path);
  ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Throws Error(kInvalidInput) where the file under this name is another one by now, or was
  // written to.
  void check_unchanged() const;
  // Reads into `into`, from the file and not through the mapping: a file that became shorter is an
  // Error(kIo) and no signal.
  void read(std::int64_t offset, std::span<std::byte> into) const;
  // Rows of `width` bytes, `pitch` apart, side by side; no more than some of what is between them.
  void read_rows(std::int64_t offset, std::int64_t pitch, std::int64_t width,
                 std::span<std::byte> into) const;
  // The hash of bytes of the file, read a bounded piece at a time.
  [[nodiscard]] std::uint64_t hash(std::int64_t offset, std::int64_t bytes) const;
  // What was read through the mapping need not stay in memory.
  void forget(std::int64_t offset, std::int64_t bytes) const;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  struct ::stat opened_ {};
  MappingGuard guard_;
};

class WeightFolder {
 public:
  struct Tensor {
    StoredTensor stored;
    std::size_t file = 0;                                    // of files()
    std::shared_ptr<const DecodedTensor> decoded = nullptr;  // instead of bytes in a file
  };

  // Reads model.safetensors.index.json, or model.safetensors, and the headers; with `file` that one
  // alone. Throws Error(kInvalidInput), or kIo: a file missing, a header that does not fit its file,
  // a tensor that two files have or that the index names and no file has, a name that leads out of
  // the folder.
  explicit WeightFolder(const std::string& folder, const std::string& file = {});
  WeightFolder(const WeightFolder&) = delete;
  WeightFolder& operator=(const WeightFolder&) = delete;
  ~WeightFolder() = default;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const WeightFile& file(std::size_t k) const { return *files_.at(k); }
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::byte* data(const Tensor& tensor) const {
    return files_[tensor.file]->bytes().data() + tensor.stored.begin;
  }
  void check_unchanged() const;

  // One more tensor, of float32, that is computed of others; its number.
  std::size_t add_decoded(std::string name, std::vector<std::int64_t> dims,
                          std::shared_ptr<const DecodedTensor> decoded);
  // These bytes, for as long as the folder is there: in a file of it, or copied.
  [[nodiscard]] std::span<const std::byte> kept(std::span<const std::byte> bytes);
  // Copies rows of bytes that a file of it has, or that were copied; a few system calls each.
  void read(const ByteRows& rows, std::span<std::byte> into) const;

 private:
  // The file in which these bytes are mapped; none where they are elsewhere.
  [[nodiscard]] const WeightFile* file_with(std::span<const std::byte> bytes) const;

  std::string folder_;
  std::vector<std::string> names_;  // of the files in the folder
  std::vector<std::unique_ptr<WeightFile>> files_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::byte>> copied_;
};

}  // namespace fairlead
