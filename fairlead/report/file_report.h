// What a report shows of an ONNX file, counted and ordered: operators by kind and by module, the
// tree of modules down to each operator, tensors by size, the layout of the files, memory while it
// runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/onnx/reader.h"

namespace fairlead::report {

// The tree in preorder by first execution; row 0 is the model. A path "layers.0.attn" is three
// rows.
struct ModuleRow {
  std::string name;  // the last part of the path
  std::int32_t parent = -1;
  std::int64_t operators = 0;  // of it and all below
  std::int64_t weight_bytes = 0;
  // What it executed itself, in order: operator k is k, submodule m is -m where it ran first.
  std::vector<std::int32_t> items;
};

// Texts repeat from layer to layer: each is a position in FileReport::strings.
struct OperatorRow {
  std::int32_t op = 0;
  std::int32_t result = 0;  // "float32[batch, 8]"
  std::int32_t attributes = 0;
  std::int32_t source = 0;  // "modeling_llama.py:246"
};

struct Count {
  std::string name;
  std::int64_t count = 0;
};

// Modules that differ only in a number: "layers.*.attn".
struct ModuleKind {
  std::string pattern;
  std::int64_t instances = 0;
  std::int64_t operators = 0;     // executed by these modules themselves
  std::vector<Count> by_kind;     // most frequent first
  std::int64_t weight_bytes = 0;  // first used there
};

struct OperatorKind {
  std::string name;  // "MatMul", "com.microsoft.Gelu"
  std::int64_t count = 0;
  std::vector<Count> by_module;  // patterns, most frequent first
};

// Tensors alike but for a number in their names.
struct TensorGroup {
  std::string pattern;
  std::string dtype;
  std::vector<std::int64_t> dims;
  std::string file;  // empty: inside the model
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

struct FileRow {
  std::string name;  // empty: the model itself
  std::int64_t bytes = 0;
  std::int64_t tensors = 0;
  std::int64_t tensor_bytes = 0;  // each place once, where several tensors share it
  std::int64_t shared_bytes = 0;  // saved by that
  bool missing = false;           // the model names it and it is not there
};

struct FileReport {
  std::vector<std::string> strings;
  std::vector<ModuleRow> modules;
  std::vector<OperatorRow> operators;
  std::vector<OperatorKind> by_kind;  // most frequent first
  std::vector<ModuleKind> by_module;  // most operators first
  std::vector<TensorGroup> tensors;   // largest first
  std::vector<Count> bytes_by_dtype;  // most bytes first
  std::vector<FileRow> files;         // the model first
};

[[nodiscard]] FileReport report_of(const onnx::ModelSummary& summary, const std::string& path);

// The most bytes that inputs, outputs and intermediate results take together when nodes run in the
// order of the file and each result is freed after its last use. Weights are not counted.
struct PeakMemory {
  std::int64_t bytes = 0;
  std::int64_t node = -1;    // where the peak is
  std::int64_t inputs = 0;   // of which the inputs of the model
  std::int64_t unknown = 0;  // results whose size the file does not say
};
[[nodiscard]] PeakMemory peak_memory(const onnx::ModelSummary& summary,
                                     const std::map<std::string, std::int64_t>& sizes);

// "model.layers.11.attn" -> "model.layers.*.attn"
[[nodiscard]] std::string pattern_of(const std::string& path);

}  // namespace fairlead::report
