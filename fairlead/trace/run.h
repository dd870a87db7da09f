// What one recorded run of a model is: operators with arguments and results, and facts about
// values.
//
// Runs of one model share a Vocabulary. Values are numbered in the order they were first met, so
// that two runs that execute the same operators number their values alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/aten/operators.h"
#include "fairlead/base/dtype.h"
#include "fairlead/trace/carried.h"

namespace fairlead {

using RunValue = std::int32_t;
inline constexpr RunValue kNoRunValue = -1;

enum class ItemKind : std::uint8_t {
  kNone,
  kTensor,  // i: RunValue
  kInt,     // i
  kFloat,   // f
  kBool,    // i: 0 or 1
  kString,  // i: string id; also device, layout, memory format
  kDtype,   // i: Dtype
  kList,    // i: number of items that follow, counting nested lists as one
};

struct Item {
  ItemKind kind = ItemKind::kNone;
  CarryId carried = kNoCarry;  // kInt, kFloat: the node of the number, where it remembered
  union {
    std::int64_t i = 0;
    double f;
  };
};

// The value of a number of whatever kind.
[[nodiscard]] inline double number_of(const Item& item) {
  return item.kind == ItemKind::kFloat ? item.f : static_cast<double>(item.i);
}

struct OpDef {
  OpName name;                      // "aten.add_.Tensor"
  OpName functional;                // "aten.add.Tensor" where it writes; empty otherwise
  std::vector<std::string> params;  // schema order
  int writes = -1;                  // position of the first argument written in place
  int written_count = 1;       // two of torch.max(x, 1, out=(values, indices)); -1: not returned
  bool drops_written = false;  // an out= argument: not an argument of the functional form
  Alias alias = Alias::kNever;
  bool random = false;  // its result is not decided by its arguments
};

struct OpRecord {
  std::uint32_t op = 0;
  std::uint32_t items = 0;  // first argument in Run::items
  std::uint32_t item_count = 0;
  std::uint32_t results = 0;  // first result in Run::items
  std::uint32_t result_count = 0;
  std::uint32_t module = 0;  // string ids
  std::uint32_t source = 0;
  // The numbers that the call in Python had which led to this operator: in Run::call_numbers.
  std::uint32_t call_numbers = 0;
  std::uint32_t call_count = 0;
};

enum class Origin : std::uint8_t { kInput, kConstant, kOperator };

struct ValueFact {
  Dtype dtype = Dtype::kFloat32;
  std::uint8_t rank = 0;
  Origin origin = Origin::kOperator;
  bool tainted = false;          // depends on an input's data or on chance
  bool sized = false;            // depends on sizes or on numbers that were read
  std::uint32_t dims = 0;        // first of `rank` sizes in Run::dims
  RunValue alias = kNoRunValue;  // the value whose storage it shares, where it is a view
  std::int32_t producer = -1;    // operator that made it
  std::int32_t constant = -1;    // index into Run::constants
};

// A tensor that came from outside the operators: a parameter, a buffer, or one made in Python.
// Bytes are borrowed; the bindings keep the tensor alive as long as the run.
struct RunConstant {
  RunValue value = kNoRunValue;
  std::string name;  // "model.embed_tokens.weight"; empty for a tensor made in Python
  const std::byte* data = nullptr;
  std::vector<std::int64_t> strides;
  bool persistent = false;  // a parameter or buffer: the same bytes in every run
};

struct Vocabulary {
  std::vector<OpDef> ops;
  std::vector<std::string> strings = {""};
  std::unordered_map<std::string, std::uint32_t> string_ids = {{"", 0}};

  std::uint32_t intern(std::string_view text);
};

struct Run {
  std::vector<OpRecord> ops;
  std::vector<Item> items;
  std::vector<ValueFact> values;
  std::vector<std::int64_t> dims;
  std::vector<RunConstant> constants;
  std::vector<RunValue> inputs;
  std::vector<RunValue> outputs;
  std::vector<Carry> carried;
  std::vector<Guard> guards;
  std::vector<CarryId> call_numbers;
  std::vector<std::pair<std::uint32_t, RunValue>> writes;  // (operator, value that it writes)
  std::vector<CarryId> ranges;  // range(n), in the order of the calls: the node of n
  // Operators before the first number that went where no memory is kept (range(n), a table by n).
  std::size_t forgot_at = SIZE_MAX;
  // Strides (in elements) and offset of values that an operator reads as raw storage (as_strided).
  std::unordered_map<RunValue, std::vector<std::int64_t>> strides;
  // Results that no input decides, kept so that they can become constants: value -> bytes.
  std::unordered_map<RunValue, RunConstant> kept;

  // A run that ended is kept: its lists need no room to grow.
  void trim();

  [[nodiscard]] std::int64_t dim(RunValue v, int axis) const {
    return dims[values[v].dims + static_cast<std::uint32_t>(axis)];
  }
};

// "aten.view.default in model.layers.0 at modeling_llama.py:246"
[[nodiscard]] std::string describe(const Vocabulary& vocabulary, const Run& run, std::size_t op);

// The first operator at which two runs differ in kind (name, argument kinds, the values read), or
// npos where they are the same program.
inline constexpr std::size_t kSameProgram = static_cast<std::size_t>(-1);
[[nodiscard]] std::size_t first_difference(const Run& a, const Run& b);
// Whether every number and size that the operators of two runs of one program handled is the same.
[[nodiscard]] bool same_numbers(const Run& a, const Run& b);
// The same of a run that was ended, as far as it went.
[[nodiscard]] bool same_numbers_so_far(const Run& ended, const Run& whole);
// Whether operator `op` of `run` is the same as in `reference`; without `results`, as far as its
// arguments go.
[[nodiscard]] bool same_operator(const Run& reference, const Run& run, std::size_t op,
                                 bool results = true);

}  // namespace fairlead
