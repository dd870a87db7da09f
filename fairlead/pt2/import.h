// From a program that torch.export made to the graph: the second way in.
//
// The program is the JSON text of torch._export.serde (schema 8), from a .pt2 archive or from
// memory; its tensors are borrowed. Nodes keep their ATen overloads, arguments in schema order with
// defaults filled in; symbolic integers become expressions, in-place operators functional ones,
// subgraphs bodies.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/trace/program.h"

namespace fairlead::pt2 {

// A parameter, buffer or constant. `data` is its first element; strides in elements, empty:
// contiguous.
struct Tensor {
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  const std::byte* data = nullptr;
};

using Tensors = std::map<std::string, Tensor, std::less<>>;

// A size that may vary within the program's range constraints.
struct ImportedSymbol {
  SymbolId id = 0;           // in the graph's pool
  std::string name;          // "batch"
  std::string torch_name;    // "s77"
  std::int64_t example = 0;  // its size when the program was exported; 0: not known
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
};

// What an archive stores, for whoever runs the program itself: borrowed from it, and nothing of it
// is a pickle but the sample inputs, which nobody has to read.
struct StoredTensor {
  std::string name;
  std::size_t payload = 0;   // in Contents::payloads; tensors that share memory have one
  std::int64_t offset = 0;   // of its first element, in elements
  Tensor tensor;             // strides are always given
  bool is_constant = false;  // of data/constants rather than data/weights
  bool is_parameter = false;
  bool requires_grad = false;
};

struct Contents {
  std::string_view program;  // JSON
  std::vector<std::span<const std::byte>> payloads;
  std::vector<StoredTensor> tensors;
  std::span<const std::byte> sample_inputs;  // what torch.save made of them; empty: none
};

struct Imported {
  Program program;
  std::vector<ImportedSymbol> symbols;  // sizes of inputs, in the order of the inputs
  // Per user input of the program, in its order: the graph's input, or -1 for a number or None.
  std::vector<std::int32_t> user_inputs;
  std::string torch_version;
  std::vector<std::string> classes;  // of containers among its inputs and outputs
  Contents contents;                 // of an archive
  std::shared_ptr<const void> file;  // where tensors are borrowed from a file: keeps it mapped
};

// What is known of sizes by where they stand: (user input, axis) -> "batch", "past + sequence".
// Sizes of one name are one symbol. Others are named after the inputs they stand in.
using DimNames = std::map<std::pair<std::size_t, std::size_t>, std::string>;

// Throws Error(kParse) where the text is not a program, Error(kUnsupported) where its version or a
// node cannot be read, Error(kInvalidInput) where a tensor is missing or does not fit. `where`
// names the program.
[[nodiscard]] Imported import_program(std::string_view json, const Tensors& tensors,
                                      std::string_view where, const DimNames& names = {});

// The archive that torch.export.save writes; weights stay in the mapped file. Pickled entries are
// refused: they are code. Also throws Error(kIo).
[[nodiscard]] Imported read_pt2(const std::string& path);
// The same of bytes in memory, which must outlive the result.
[[nodiscard]] Imported read_pt2(std::span<const std::byte> archive, std::string_view where);

// Symbols with their ranges, inputs, outputs, what is written: one line each.
[[nodiscard]] std::string contract(const Imported& imported);

}  // namespace fairlead::pt2
