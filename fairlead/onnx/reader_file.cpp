// The summary's file access, element types and attribute texts.
#include <cstdio>
#include <limits>

#include "fairlead/base/dtype.h"
#include "fairlead/files/mapped_file.h"
#include "fairlead/onnx/proto_fields.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/onnx/reader_impl.h"

namespace fairlead::onnx {
namespace {

constexpr std::int64_t kMaxItems = 16;  // of a list attribute, and then "..."
constexpr std::size_t kMaxText = 120;

struct ElemTypeRow {
  int code;
  const char* name;
  int bits;  // 0: no fixed size
};

// The table of dtypes first; then what ONNX has and PyTorch does not export.
constexpr ElemTypeRow kElemTypes[] = {
#define X(member, name, code, bytes, kind) {code, name, 8 * (bytes)},
    FAIRLEAD_DTYPES(X)
#undef X
        {8, "string", 0},
    {21, "uint4", 4},
    {22, "int4", 4},
    {23, "float4_e2m1", 4},
    {24, "float8_e8m0", 8},
    {25, "uint2", 2},
    {26, "int2", 2},
};

}  // namespace

ModelSummary read_model_summary(const std::string& path) {
  const MappedFile file(path, "read_model_summary", "Check the path.");
  return parse_model_summary(file.bytes(), path);
}

std::string elem_type_name(int code) {
  for (const ElemTypeRow& row : kElemTypes) {
    if (row.code == code) return row.name;
  }
  return code == 0 ? "" : "type " + std::to_string(code);
}

std::optional<std::int64_t> elements_bytes(int elem_type, std::span<const std::int64_t> dims) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t bits = 0;
  for (const ElemTypeRow& row : kElemTypes) {
    if (row.code == elem_type) bits = row.bits;
  }
  std::int64_t total = bits;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) total = 0;
    if (total > 0 && total > (kMax - 7) / dim) return std::nullopt;
    total *= dim;
  }
  return (total + 7) / 8;
}

void AttributeText::append(const std::string& item) {
  if (count_ > 0 && count_ <= kMaxItems) items_ += ", ";
  if (count_ < kMaxItems) items_ += item;
  if (count_ == kMaxItems) items_ += "...";
  ++count_;
}

void AttributeText::add(std::int64_t item) { append(std::to_string(item)); }

void AttributeText::add(float item) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.9g", static_cast<double>(item));
  append(buffer);
}

void AttributeText::add(const std::string& item) {
  std::string quoted = "'";
  quoted.append(item, 0, kMaxText);
  quoted += item.size() > kMaxText ? "...'" : "'";
  append(quoted);
}

void AttributeText::add(const InitializerSummary& tensor) {
  std::string text = "tensor " + tensor.dtype;
  char separator = '[';
  for (const std::int64_t dim : tensor.dims) {
    text += separator;
    text += std::to_string(dim);
    separator = ',';
  }
  text += tensor.dims.empty() ? "[]" : "]";
  append(text);
}

void AttributeText::add_graph() { append("graph"); }

std::string AttributeText::finish() const {
  const bool is_list = count_ != 1 || type_ == proto::kTypeInts || type_ == proto::kTypeFloats ||
                       type_ == proto::kTypeStrings;
  return is_list ? "[" + items_ + "]" : items_;
}

}  // namespace fairlead::onnx
