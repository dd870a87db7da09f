// Zip by its specification (APPNOTE 6.3): end record, its zip64 form, central directory, local
// headers.
//
// A zip library would copy each entry into memory of its own; the weights are to stay where they
// are.
#include "fairlead/pt2/zip.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "fairlead/base/error.h"

namespace fairlead::pt2 {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50;
constexpr std::uint32_t kCentral = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::size_t kEndSize = 22;

class Reader {
 public:
  Reader(Bytes archive, std::string_view where) : archive_(archive), where_(where) {}

  [[nodiscard]] std::map<std::string, Bytes, std::less<>> entries() {
    std::uint64_t at = 0;
    std::uint64_t count = 0;
    find_directory(at, count);
    std::map<std::string, Bytes, std::less<>> found;
    for (std::uint64_t k = 0; k < count; ++k) read_entry(at, found);
    refuse_overlaps();
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& got) const {
    throw Error(ErrorCode::kParse,
                "[pt2] Expected a zip archive that torch.export.save wrote, got " + got + " (" +
                    std::string(where_) + "). Save the program again.");
  }

  // Little-endian number of `size` bytes.
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t size) const {
    if (at > archive_.size() || archive_.size() - at < size) {
      fail("one that ends in the middle of a record");
    }
    std::uint64_t value = 0;
    for (std::size_t k = size; k-- > 0;) {
      value = value << 8 | static_cast<std::uint64_t>(archive_[at + k]);
    }
    return value;
  }

  [[nodiscard]] Bytes part(std::uint64_t at, std::uint64_t size) const {
    if (at > archive_.size() || archive_.size() - at < size) {
      fail("one with an entry beyond its end");
    }
    return archive_.subspan(at, size);
  }

  void find_directory(std::uint64_t& at, std::uint64_t& count) const {
    if (archive_.empty()) fail("an empty file");
    if (archive_.size() < kEndSize) fail("a file of " + std::to_string(archive_.size()) + " bytes");
    // The end record is last, before a comment of at most 65,535 bytes.
    const std::size_t last = archive_.size() - kEndSize;
    const std::size_t first = last > 0xffff ? last - 0xffff : 0;
    std::size_t end = last;
    while (number(end, 4) != kEnd) {
      if (end == first) {
        fail(archive_.size() >= 4 && number(0, 4) == kLocal
                 ? "one that is cut off: it has no directory"
                 : "a file that is no zip archive");
      }
      --end;
    }
    count = number(end + 10, 2);
    at = number(end + 16, 4);
    if (end < 20 || number(end - 20, 4) != kLocator64) return;
    const std::uint64_t end64 = number(end - 12, 8);
    if (number(end64, 4) != kEnd64) fail("one whose directory cannot be found");
    count = number(end64 + 32, 8);
    at = number(end64 + 48, 8);
  }

  void read_entry(std::uint64_t& at, std::map<std::string, Bytes, std::less<>>& found) {
    if (number(at, 4) != kCentral) fail("one with a damaged directory");
    const std::uint64_t flags = number(at + 8, 2);
    const std::uint64_t method = number(at + 10, 2);
    std::uint64_t packed = number(at + 20, 4);
    std::uint64_t size = number(at + 24, 4);
    const std::uint64_t name_size = number(at + 28, 2);
    const std::uint64_t extra_size = number(at + 30, 2);
    const std::uint64_t comment_size = number(at + 32, 2);
    std::uint64_t local = number(at + 42, 4);
    const std::string name(as_text(part(at + 46, name_size)));
    const std::uint64_t extra = at + 46 + name_size;
    (void)part(extra, extra_size);
    read_extra64(extra, extra + extra_size, {&size, &packed, &local});
    at = extra + extra_size + comment_size;
    if (method != 0 || (flags & 1) != 0) {
      throw Error(ErrorCode::kUnsupported,
                  "[pt2] Expected stored entries, as torch.export.save writes them, got '" + name +
                      "' compressed or encrypted (" + std::string(where_) +
                      "). Save the program again instead of packing it anew.");
    }
    if (size != packed) fail("one whose entry '" + name + "' has two sizes");
    if (number(local, 4) != kLocal) fail("one whose entry '" + name + "' cannot be found");
    const std::uint64_t local_name_size = number(local + 26, 2);
    if (as_text(part(local + 30, local_name_size)) != name) {
      fail("one whose entry '" + name + "' has another name in front of its bytes");
    }
    const std::uint64_t data = local + 30 + local_name_size + number(local + 28, 2);
    // Readers differ in which of two they take.
    if (!found.emplace(name, part(data, size)).second) fail("one with two entries '" + name + "'");
    ranges_.push_back({local, data + size});
  }

  // A few bytes that are many entries may be far more than the archive.
  void refuse_overlaps() {
    std::sort(ranges_.begin(), ranges_.end());
    for (std::size_t k = 1; k < ranges_.size(); ++k) {
      if (ranges_[k].first < ranges_[k - 1].second) fail("one with entries that overlap");
    }
  }

  // Sizes and offsets that are all ones stand in the zip64 field, in this order.
  void read_extra64(std::uint64_t at, std::uint64_t end,
                    std::initializer_list<std::uint64_t*> fields) const {
    while (end - at >= 4) {
      const std::uint64_t id = number(at, 2);
      const std::uint64_t size = number(at + 2, 2);
      at += 4;
      if (size > end - at) fail("one with a damaged directory");
      if (id == 1) {
        std::uint64_t from = at;
        for (std::uint64_t* field : fields) {
          if (*field != 0xffffffff) continue;
          if (at + size - from < 8) fail("one with a damaged directory");
          *field = number(from, 8);
          from += 8;
        }
      }
      at += size;
    }
  }

  Bytes archive_;
  std::string_view where_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // of entries, with their headers
};

}  // namespace

std::map<std::string, Bytes, std::less<>> zip_entries(Bytes archive, std::string_view where) {
  return Reader(archive, where).entries();
}

}  // namespace fairlead::pt2
