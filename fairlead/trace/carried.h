// Numbers that remember where they come from: expressions over the sizes and the reads of one run.
//
// While a model is recorded, `x.shape` and `t.item()` give integers that carry a node of this
// table. Python computes with them as ever: arithmetic makes further nodes, and every comparison is
// a guard. A node refers to nodes before it, so that one pass translates them all.
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead {

using CarryId = std::int32_t;
inline constexpr CarryId kNoCarry = -1;

enum class CarryKind : std::uint8_t {
  kInt,    // a constant: i
  kFloat,  // a constant: f
  kDim,    // dimension b of value a
  kRead,   // number b among the results of operator a, which reads a tensor
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kMod,
  kDiv,  // of integers or floats, to a float
  kPow,
  kNeg,
  kAbs,
  kShiftLeft,
  kShiftRight,
  kAnd,
  kBitLength,
  kTrunc,
  kFloor,
  kCeil,
  kRound,
  kToReal,
  kSqrt,
  kLog,
  kLog2,
  kExp,
};

struct Carry {
  CarryKind kind = CarryKind::kInt;
  bool real = false;     // its value is f
  CarryId a = kNoCarry;  // operands; see the kinds
  CarryId b = kNoCarry;
  union {
    std::int64_t i = 0;  // what it was in this run
    double f;
  };
};

enum class Compare : std::uint8_t {
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kKey,    // hashed: what follows may depend on which number it is exactly
  kCount,  // range(left), which is `right` long
};

[[nodiscard]] inline bool answer(Compare compare, double left, double right) {
  switch (compare) {
    case Compare::kLess:
      return left < right;
    case Compare::kLessEqual:
      return left <= right;
    case Compare::kEqual:
      return left == right;
    case Compare::kNotEqual:
      return left != right;
    case Compare::kGreater:
      return left > right;
    case Compare::kGreaterEqual:
      return left >= right;
    case Compare::kKey:
    case Compare::kCount:
      break;
  }
  return true;
}

// A question that the model asked about a number, and the answer that it went by.
struct Guard {
  Compare compare = Compare::kEqual;
  bool outcome = true;
  CarryId left = kNoCarry;
  CarryId right = kNoCarry;
  std::uint32_t op = 0;      // how many operators had run
  std::uint32_t source = 0;  // string ids
  std::uint32_t module = 0;
  bool told = false;  // of a count: the number was put into a sentence, which is mostly for people
};

}  // namespace fairlead
