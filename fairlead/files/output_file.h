// A file being written: buffered for small pieces, straight from memory for large ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fairlead {

class ContentHash;
class WriteBehind;

// Throws Error(kIo) "[FUNCTION] Could not write 'PATH': reason. advice." for a system error number.
[[noreturn]] void fail_write(const std::string& path, int error_number,
                             const std::string& function = "write_model");

// Every failed call throws Error(kIo); `shown_as` is the name in the message, because the user
// knows the final name and not the temporary one, and `function` who is asked to write. The
// destructor closes and leaves the file to its owner.
class OutputFile {
 public:
  enum class Mode {
    kReplace,  // made anew, whatever was there
    kAppend,   // written on from its end
  };
  OutputFile(const std::string& path, std::string shown_as, Mode mode = Mode::kReplace,
             std::string function = "write_model");
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void pad_to(std::int64_t offset);  // zeros up to that position
  // The next `size` bytes of the file, to be filled before the next call of any kind.
  [[nodiscard]] std::byte* claim(std::size_t size);
  [[nodiscard]] std::int64_t position() const;
  // Told every byte that is written from now on; whole after close.
  void hash_into(ContentHash* hash) { hash_ = hash; }
  // A large file, of which nothing is written yet: another thread writes while the next bytes are
  // made, past the page cache (write_behind.h).
  void write_behind();
  void close();  // a full network disk may say so only here

 private:
  void flush();
  void write_out(const std::byte* data, std::size_t size);

  std::string shown_as_;
  std::string function_;
  ContentHash* hash_ = nullptr;
  int descriptor_ = -1;
  std::int64_t flushed_ = 0;
  std::size_t used_ = 0;
  std::vector<std::byte> buffer_;
  std::unique_ptr<WriteBehind> behind_;
};

}  // namespace fairlead
