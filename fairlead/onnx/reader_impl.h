// Parts of the summary that need no protobuf: element types beyond our table, attributes as text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "fairlead/onnx/reader.h"

namespace fairlead::onnx {

[[nodiscard]] std::string elem_type_name(int code);  // 1 -> "float32", 21 -> "uint4", 0 -> ""

// Bytes of that many elements; 0 for types of no fixed size, nullopt where dims are negative or the
// product does not fit.
[[nodiscard]] std::optional<std::int64_t> elements_bytes(int elem_type,
                                                         std::span<const std::int64_t> dims);

// Collects the items of one attribute: 3, [0, 2, 1], 'text', tensor float32[2,3], graph.
class AttributeText {
 public:
  void set_type(std::int32_t type) { type_ = type; }
  void add(std::int64_t item);
  void add(float item);
  void add(const std::string& item);
  void add(const InitializerSummary& tensor);
  void add_graph();
  [[nodiscard]] std::string finish() const;

 private:
  void append(const std::string& item);

  std::int32_t type_ = 0;
  std::int64_t count_ = 0;
  std::string items_;
};

}  // namespace fairlead::onnx
