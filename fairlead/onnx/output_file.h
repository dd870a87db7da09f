// A file being written: buffered for small pieces, straight from memory for large ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fairlead::onnx {

// Throws Error(kIo) "[write_model] Could not write 'PATH': reason. advice." for a system error
// number.
[[noreturn]] void fail_write(const std::string& path, int error_number);

// Every failed call throws Error(kIo); `shown_as` is the name in the message, because the user
// knows the final name and not the temporary one. The destructor closes and leaves the file to its
// owner.
class OutputFile {
 public:
  enum class Mode {
    kReplace,  // made anew, whatever was there
    kAppend,   // written on from its end
  };
  OutputFile(const std::string& path, std::string shown_as, Mode mode = Mode::kReplace);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void pad_to(std::int64_t offset);  // zeros up to that position
  // The next `size` bytes of the file, to be filled before the next call of any kind.
  [[nodiscard]] std::byte* claim(std::size_t size);
  [[nodiscard]] std::int64_t position() const;
  void close();  // a full network disk may say so only here

 private:
  void flush();
  void write_out(const std::byte* data, std::size_t size);

  std::string shown_as_;
  int descriptor_ = -1;
  std::int64_t flushed_ = 0;
  std::size_t used_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace fairlead::onnx
