// Fields of ONNX files as protozero gives them, for the readers beside it: matched by number and wire
// type together, and each length checked against what is left.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>

#include "fairlead/onnx/reader.h"

namespace fairlead::onnx {

using protozero::pbf_reader;

constexpr std::uint32_t varint(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t fixed32(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed32);
}
constexpr std::uint32_t bytes(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

inline constexpr int kMaxGraphDepth = 64;  // graphs in graphs: a limit of ours, far above any model

// What is wrong with the bytes; caught at the top, where the name of the file is known.
struct Malformed {
  std::string what;
};

struct Entry {
  std::string key;
  std::string value;
};

[[nodiscard]] std::string text(pbf_reader& message);
[[nodiscard]] Entry read_entry(pbf_reader message);
// A TensorProto; `begin` is where the file begins in memory.
[[nodiscard]] InitializerSummary read_tensor(pbf_reader message, const char* begin);

[[noreturn]] void fail_parse(const std::string& name, const std::string& reason);
// Throws Error(kParse) where bytes cannot be a file of protobuf.
void check_whole(std::span<const std::byte> bytes, const std::string& name);

// `read()` with what protozero and the readers throw as Error(kParse) about the file `name`.
template <typename Read>
auto guarded(const std::string& name, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const Malformed& malformed) {
    fail_parse(name, malformed.what);
  } catch (const protozero::end_of_buffer_exception&) {
    fail_parse(name, "the bytes end inside a field");
  } catch (const protozero::exception& error) {
    fail_parse(name, error.what());
  }
}

}  // namespace fairlead::onnx
