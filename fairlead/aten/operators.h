// The table of operators: what is known of each without running it.
//
// Rows of PyTorch's own are made from its schemas (operator_rows.cpp); those of control flow, of
// other libraries and of our own are written by hand (own_operators.cpp). annotations.cpp adds what
// no schema says. What computes over graphs by operator (sizes of results, inverses of views, sizes
// that data decides, composites) is a table of functions in aten/rules.
//
// Nobody outside of this folder and of the lowerings compares names: code asks a row for a trait,
// or for being one operator (Op::cat).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/aten/ops.h"

namespace fairlead {

// How an operator's results relate to the storage of its arguments.
enum class Alias : std::uint8_t {
  kNever,     // fresh storage
  kView,      // a view of its first tensor argument
  kObserved,  // now a view, now a copy (reshape, contiguous, to): what the recording saw counts
};

// What no schema says.
enum class Trait : std::uint32_t {
  kNumberFirst = 1u << 0,  // works on a number where its second argument is a tensor: 1.0 // x
  kIdentity = 1u << 1,     // gives its first argument, in a program that only infers
  kViewsMemory = 1u << 2,  // reshape, of a tensor that lies in memory as it has to for a view
  kSqueezes = 1u << 3,     // asks which sizes are 1
  kStrided = 1u << 4,      // reads storage by strides: those of its tensor are its last argument
  kTakesApart = 1u << 5,   // gives the parts of a tensor along its last argument
  kJoins = 1u << 6,        // of a list of tensors along its last argument
  kScales = 1u << 7,       // sizes by factors that come as floats with it
  kIndexes = 1u << 8,      // by the tensors of its second argument, among which bytes are masks
  kReads = 1u << 9,        // gives Python the numbers in a tensor
  kSharesAsIs = 1u << 10,  // a view where type and strides are what they should be, else a copy
  kByParts = 1u << 11,  // moves or adds numbers: of complex ones, the real and the imaginary parts
  kExpands = 1u << 12,  // a small constant into a large one: not done before the model runs
  kPointwise = 1u << 13,    // its results are as large as its arguments broadcast together
  kKeepsAlike = 1u << 14,   // hands on its first tensor where its result has the sizes of that
  kKeepsAtZero = 1u << 15,  // the same where all of its integers are 0, too: a padding by nothing
  kUnset = 1u << 16,        // gives memory as it was found
};

// What a control-flow operator has.
struct Control {
  std::uint8_t bodies = 0;      // 0: it is none
  std::uint8_t first_list = 0;  // the arguments that are lists of tensors begin here,
  std::uint8_t lists = 0;       // are so many,
  bool carries = false;         // and the first is what a loop carries: it comes back as results
  bool counts = false;          // a body has the number of the step as its first input
  bool tests = false;           // the first body says whether there is another step
};

struct Operator {
  std::string_view name;        // "aten.add_.Tensor"
  std::string_view functional;  // "aten.add.Tensor" where it writes; empty otherwise
  int writes = -1;              // position of the argument that is written
  Alias alias = Alias::kNever;
  bool random = false;
  std::string_view params;  // "self, other, alpha=1"; nothing where no schema is known
  // Letters of the arguments, a colon, letters of the results; nothing where no schema is known:
  //   T tensor            t tensor or None      L list of tensors     l list of tensors and Nones
  //   i integer           o integer or None     I list of integers    J the same or None
  //   f float             g float or None       b flag                c flag or None
  //   s number            q number or None      x anything
  // before a letter: . has a default, @ an axis (axes) of the first tensor, ^ of a tensor of one
  // axis more, % a permutation of its axes, ~ axes that may stand twice.
  std::string_view kinds;
  std::uint32_t traits = 0;
  // Arguments that say how likely something is dropped: it draws nothing where one is 0.
  std::array<std::int8_t, 2> chances = {-1, -1};
  Control control = {};

  [[nodiscard]] bool has(Trait trait) const {
    return (traits & static_cast<std::uint32_t>(trait)) != 0;
  }
  [[nodiscard]] bool has_schema() const { return !kinds.empty(); }
};

// Every row; its place is the value of its Op.
[[nodiscard]] std::span<const Operator> operators();
// nullptr: an operator that the table does not have.
[[nodiscard]] const Operator* find_operator(std::string_view name);

struct Param {
  std::string_view name;
  bool has_default = false;
  std::string_view default_text;  // "None", "1", "[0 0]", "mean"
};
[[nodiscard]] std::vector<Param> params_of(const Operator& row);

// An operator of a node: its row, or the name of one that the table does not have. Looked up when
// it is made; copying and comparing cost nothing.
class OpName {
 public:
  OpName() = default;
  OpName(Op op) : row_(&operators()[static_cast<std::size_t>(op)]) {}
  OpName(std::string_view name);
  OpName(const std::string& name) : OpName(std::string_view(name)) {}
  OpName(const char* name) : OpName(std::string_view(name)) {}

  [[nodiscard]] const Operator* row() const { return row_; }
  [[nodiscard]] bool has(Trait trait) const { return row_ != nullptr && row_->has(trait); }
  [[nodiscard]] std::string_view text() const {
    return row_ != nullptr ? row_->name : own_ != nullptr ? std::string_view(*own_) : "";
  }
  operator std::string_view() const { return text(); }
  [[nodiscard]] std::string str() const { return std::string(text()); }

  friend bool operator==(const OpName& a, Op b) { return a.row_ == OpName(b).row_; }
  friend bool operator==(const OpName& a, const OpName& b) {
    return a.row_ == b.row_ && (a.row_ != nullptr || a.text() == b.text());
  }
  friend std::string operator+(std::string left, const OpName& right) {
    left += right.text();
    return left;
  }

 private:
  const Operator* row_ = nullptr;
  std::shared_ptr<const std::string> own_;  // where there is no row
};

}  // namespace fairlead
