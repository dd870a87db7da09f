// What an export learnt, as values: the ledger that contract and report read. A fact says where
// (a program, a dimension), what (kind, size) and why (a code with evidence); sentences are made of
// it when it is printed (describe.h).
//
// Every fact strictly narrows a place, or a program, or closes one. So an experiment ends. What the
// checks of a file do not prove (kUnproven) stands there too, and is no reason to try again.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fairlead/probe/probe.h"

namespace fairlead {

using ProgramId = int;  // 0: that of the example

constexpr std::int64_t kLargest = INT64_MAX;

// Causes. Their numbers are in no file; their names are, in transcripts.
enum class Why : std::uint8_t {
  kNone,
  kBranches,     // the model executes `now` where it executed `before`
  kRefused,      // the model raises `text`
  kUnsolved,     // no expression of the sizes explains an integer: `text`
  kDiffers,      // the file differs from eager: `text`
  kUnsupported,  // the target has no form for it: `text`
  kFailed,       // another error of ours or of the target: `text`
  kTooLarge,     // too large to be tried
  kUntried,      // there was no time, or no turn left, to try it
  kFull,         // the file holds as many programs as it may
  kEnds,         // a program that was to take every larger size has a largest one too
  kOuter,        // the program that it parts from is closed
  kDecided,      // the dimensions that chose it are fixed meanwhile
  kGuarded,      // torch.export makes a size of 1 another program
  kPlain,        // told that it is traced, the model refuses the example
  kEmpty,        // the size is 0, and the model raises `text` at 3
  kConstant,     // the file can only hold it as a constant: `text`
  kUnchosen,     // no question tells it from the program beside it
  kForgets,      // with sizes that remember, the model computes something else
  kOutside,      // something that no operator made follows the values
  kUnsteady,     // eager differs from itself: `text`
  // Why a check that differs proves nothing, or less:
  kOverflows,  // integers go beyond what double holds
  kRounds,     // eager itself `moves` as far where its inputs are rounded otherwise
  kJumps,      // the same where they are moved by a step: a tie, a threshold
  kNothing,    // nothing is selected, and there is nothing to compute with: `text`
  kTraced,     // the file has what the model computes where it is told that it is traced
  kIntegers,   // other integers than the example's stop the file: `text`
  kPackage,    // values lead elsewhere in the code of a package: `source`
  kRemembers,  // a call changes what the next one computes: `text`
};

// The sizes that a further program is for, seen from the one that it parts from.
enum class Side : std::uint8_t {
  kBelow,    // of a symbol, below a size
  kAt,       // at one size
  kAbove,    // above a size
  kAside,    // where a question has another answer
  kExample,  // those of the example
  kStep,     // the next call of generation
};

struct Evidence {
  Why why = Why::kNone;
  std::string before;  // operators, as the recorder describes them
  std::string now;
  std::string text;    // an error, the model's or ours, or what differs
  std::string at;      // the sizes, in the symbols of the program
  std::string key;     // a question: "n > 64"
  std::string source;  // the line that asks it
  std::string symbol;
  double differs = 0;  // file and eager
  double moves = 0;    // eager itself
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

enum class FactKind : std::uint8_t {
  kFixed,     // the place has one size
  kLeast,     // smaller sizes of the place are refused, or another program's
  kMost,      // larger ones
  kRequired,  // the program is for one answer to a question; size: the probing that found it
  kDoubtful,  // it should be, and cannot be required
  kSolveFor,  // integers are solved with the run at one more setting, or with one more call
  kGivenUp,   // nothing explains them there
  kOpened,    // the program is one more of the file
  kClosed,    // the program is not in the file
  kUntaken,   // no program is for this size of a symbol
  kPlain,     // the model is not told that it is traced
  kForgets,   // it is recorded with plain integers: nothing holds of it that was known before
  kUnfused,   // the file has no fusion of this kind, which made it differ
  // What a check does not prove of the file, and why; size: which file. It narrows what is known,
  // and nothing that is tried again.
  kUnproven,
};

constexpr std::size_t kNowhere = SIZE_MAX;

struct Fact {
  ProgramId of = 0;
  Place place = {kNowhere, kNowhere};
  FactKind kind = FactKind::kFixed;
  std::int64_t size = 0;
  Evidence evidence;
  std::vector<std::int64_t> setting = {};
  // Of kLeast, kMost and kRequired: whether a further program is for what they leave.
  bool taken = false;
  friend bool operator==(const Fact&, const Fact&) = default;
};

// What is known of the dimensions of one program.
struct Limits {
  std::map<Place, std::size_t> fixed;  // -> the fact
  std::map<Place, std::int64_t> least;
  std::map<Place, std::int64_t> most;
  std::map<Place, std::pair<std::string, std::int64_t>> only;  // -> symbol and its one size
};

class Ledger {
 public:
  [[nodiscard]] const std::vector<Fact>& facts() const { return facts_; }
  [[nodiscard]] bool narrows(const Fact& fact) const;
  // Whether it narrows anything: only then it is added.
  bool add(Fact fact);
  [[nodiscard]] const Limits& limits(ProgramId program) const { return limits_.at(program); }
  // Limits of a program that is opened with those of another, before facts of its own.
  Limits& inherited(ProgramId program);
  [[nodiscard]] bool is_open(ProgramId program) const {
    return limits_.contains(program) && !closed_.contains(program);
  }
  [[nodiscard]] std::size_t since() const { return since_; }
  // How many facts ask for another try.
  [[nodiscard]] std::size_t narrowed() const { return narrowed_; }
  [[nodiscard]] const Fact* closing(ProgramId program) const;

 private:
  std::vector<Fact> facts_;
  std::map<ProgramId, Limits> limits_ = {{0, {}}};
  std::set<ProgramId> closed_;
  std::size_t narrowed_ = 0;
  std::size_t since_ = 0;  // facts before it are of a model whose sizes remember
};

}  // namespace fairlead
