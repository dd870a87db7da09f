// Reads and checks headers of safetensors files.
#include "fairlead/weights/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

using Json = simdjson::dom::element;

struct TypeRow {
  std::string_view word;
  int bits;
  std::optional<Dtype> dtype;
};

constexpr TypeRow kTypes[] = {
    {"BOOL", 8, Dtype::kBool},
    {"U8", 8, Dtype::kUint8},
    {"I8", 8, Dtype::kInt8},
    {"U16", 16, Dtype::kUint16},
    {"I16", 16, Dtype::kInt16},
    {"F16", 16, Dtype::kFloat16},
    {"BF16", 16, Dtype::kBfloat16},
    {"U32", 32, Dtype::kUint32},
    {"I32", 32, Dtype::kInt32},
    {"F32", 32, Dtype::kFloat32},
    {"U64", 64, Dtype::kUint64},
    {"I64", 64, Dtype::kInt64},
    {"F64", 64, Dtype::kFloat64},
    {"C64", 64, Dtype::kComplex64},
    {"F8_E4M3", 8, Dtype::kFloat8E4m3fn},
    {"F8_E5M2", 8, Dtype::kFloat8E5m2},
    {"F8_E4M3FNUZ", 8, Dtype::kFloat8E4m3fnuz},
    {"F8_E5M2FNUZ", 8, Dtype::kFloat8E5m2fnuz},
    {"F8_E8M0", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},
};

constexpr std::uint64_t kLengthBytes = 8;
// What the format itself allows. A million tensors need less.
constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& shown_as)
      : file_(file), shown_as_(shown_as) {}

  [[nodiscard]] std::vector<StoredTensor> read() {
    const std::uint64_t length = header_length();
    data_begin_ = static_cast<std::int64_t>(kLengthBytes + length);
    data_bytes_ = static_cast<std::int64_t>(file_.size()) - data_begin_;
    simdjson::dom::parser parser;
    Json json;
    // The bytes behind it are data: a copy has room for what simdjson reads ahead.
    const simdjson::padded_string text(reinterpret_cast<const char*>(file_.data()) + kLengthBytes,
                                       static_cast<std::size_t>(length));
    const simdjson::error_code code = parser.parse(text).get(json);
    if (code != simdjson::SUCCESS) {
      fail("a header of JSON", simdjson::error_message(code));
    }
    simdjson::dom::object rows;
    if (json.get(rows) != simdjson::SUCCESS)
      fail("a header with tensors by name", "something else");
    std::set<std::string, std::less<>> names;
    for (const auto row : rows) {
      if (row.key == kMetadata) continue;
      if (!names.emplace(row.key).second) fail("each tensor once", named(row.key) + " twice");
      tensors_.push_back(tensor(std::string(row.key), row.value));
    }
    check_places();
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw Error(ErrorCode::kInvalidInput, "[read_weights] Expected " + expected + ", got " + got +
                                              " in '" + shown_as_ +
                                              "'. Check that the file is complete.");
  }

  static std::string named(std::string_view name) {
    constexpr std::size_t kShown = 80;
    std::string shown(name.substr(0, kShown));
    // Of strangers: no line of theirs may look like one of ours.
    std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return "'" + shown + (name.size() > kShown ? "...'" : "'");
  }

  [[nodiscard]] std::uint64_t header_length() const {
    if (file_.size() < kLengthBytes) {
      fail("a safetensors file", std::to_string(file_.size()) + " bytes");
    }
    std::uint64_t length = 0;
    for (std::size_t k = kLengthBytes; k-- > 0;) {
      length = length << 8 | std::to_integer<std::uint64_t>(file_[k]);
    }
    if (length > kLargestHeader) {
      fail("a header of at most " + std::to_string(kLargestHeader) + " bytes",
           std::to_string(length));
    }
    if (length > file_.size() - kLengthBytes) {
      fail("a header of " + std::to_string(length) + " bytes",
           std::to_string(file_.size() - kLengthBytes));
    }
    return length;
  }

  [[nodiscard]] static std::optional<std::int64_t> integer(Json json) {
    std::int64_t value = 0;
    if (json.get(value) != simdjson::SUCCESS || value < 0) return std::nullopt;
    return value;
  }

  [[nodiscard]] StoredTensor tensor(std::string name, Json json) const {
    StoredTensor made;
    made.name = std::move(name);
    const std::string of = " of " + named(made.name);
    if (made.name.empty() || made.name.find("..") != std::string::npos ||
        made.name.find('\0') != std::string::npos) {
      fail("names of tensors", named(made.name));
    }
    std::string_view type;
    if (json["dtype"].get(type) != simdjson::SUCCESS) fail("a dtype" + of, "none");
    const auto* const known = std::ranges::find(kTypes, type, &TypeRow::word);
    if (known == std::end(kTypes)) fail("a known dtype" + of, named(type));
    made.type = known->word;
    made.dtype = known->dtype;
    simdjson::dom::array sizes;
    if (json["shape"].get(sizes) != simdjson::SUCCESS) fail("a shape" + of, "none");
    for (const Json item : sizes) {
      const auto size = integer(item);
      if (!size) fail("sizes in the shape" + of, simdjson::minify(item));
      made.dims.push_back(*size);
    }
    simdjson::dom::array offsets;
    if (json["data_offsets"].get(offsets) != simdjson::SUCCESS || offsets.size() != 2) {
      fail("two data_offsets" + of, "none");
    }
    const auto begin = integer(offsets.at(0).value()), end = integer(offsets.at(1).value());
    if (!begin || !end || *begin > *end) {
      fail("data_offsets" + of + " in order", simdjson::minify(offsets));
    }
    if (*end > data_bytes_) {
      fail("data" + of + " within the " + std::to_string(data_bytes_) + " bytes of data",
           "an end at " + std::to_string(*end));
    }
    made.bytes = *end - *begin;
    made.begin = data_begin_ + *begin;
    check_size(made, known->bits);
    return made;
  }

  void check_size(const StoredTensor& made, int bits) const {
    std::int64_t all = bits;
    const bool empty = std::ranges::find(made.dims, 0) != made.dims.end();
    for (const std::int64_t size : made.dims) {
      if (!empty && __builtin_mul_overflow(all, size, &all)) {
        fail("sizes of " + named(made.name) + " that fit into the file", "an absurd shape");
      }
    }
    if (empty) all = 0;
    if (all % 8 != 0 || all / 8 != made.bytes) {
      fail(std::to_string(all / 8) + " bytes of " + named(made.name) + " by its shape and dtype",
           std::to_string(made.bytes));
    }
  }

  // Each byte of the data belongs to one tensor.
  void check_places() {
    std::ranges::stable_sort(tensors_, [](const StoredTensor& a, const StoredTensor& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes;
    });
    std::int64_t at = data_begin_;
    const StoredTensor* before = nullptr;
    for (const StoredTensor& each : tensors_) {
      if (each.begin < at) {
        fail("tensors beside each other", named(each.name) + " overlapping " + named(before->name));
      }
      if (each.begin > at) {
        fail("tensors without gaps",
             std::to_string(each.begin - at) + " bytes of no tensor before " + named(each.name));
      }
      at = each.begin + each.bytes;
      if (each.bytes > 0) before = &each;
    }
    const std::int64_t end = data_begin_ + data_bytes_;
    if (at != end) {
      fail("tensors up to its end", std::to_string(end - at) + " bytes of no tensor at the end");
    }
  }

  std::span<const std::byte> file_;
  const std::string& shown_as_;
  std::int64_t data_begin_ = 0;
  std::int64_t data_bytes_ = 0;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

std::vector<StoredTensor> read_safetensors(std::span<const std::byte> file,
                                           const std::string& shown_as) {
  return Reader(file, shown_as).read();
}

}  // namespace fairlead
