// What an experiment asks for, and what it is told: plain values that can be written down and read
// back (transcript.h). A driver does the steps: it has the model, the recordings and the files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/experiment/facts.h"
#include "fairlead/probe/probe.h"

namespace fairlead {

// What a leaf is in a call of generation.
enum class Role : std::uint8_t { kOther, kCache, kTokens };

// A dimension of size 0 in the example, for which the model takes no other.
struct EmptyDim {
  std::size_t leaf = 0;
  std::size_t axis = 0;
  std::string text;  // what it raises
};

// What is to be exported, and how.
struct Request {
  std::vector<Leaf> leaves;  // with what the user said about each dimension
  std::vector<Role> roles;   // by leaf
  std::vector<Sizes> calls;  // of the user; the first is the example
  std::vector<EmptyDim> empty;
  std::vector<std::pair<std::string, std::int64_t>> max_size;
  std::int64_t weight_bytes = 0;
  bool bounded = false;  // the user said which dimensions are dynamic: that is not changed
  bool strict = false;
  bool verify = true;
  bool several = true;  // the file may hold several programs
  bool cache = false;   // a call of generation
  bool plain = false;   // the model is not told that it is traced
};

// The tensors of a run.
struct Input {
  enum class Kind : std::uint8_t {
    kSizes,    // those of the program's example, repeated or cut to sizes
    kCall,     // those of the user's call `number`
    kOther,    // the same as kSizes with other values, way `number`
    kChecked,  // those of check `number`
    kNext,     // those of the call that comes next in generation
  };
  Kind kind = Kind::kSizes;
  Sizes sizes;
  int number = -1;
  ProgramId of = -1;  // kOther: of whose example, where it is that of another program
};

// ---- steps --------------------------------------------------------------------------------------

// A new recording of the model, from an example of its own. -> CallFacts
struct Open {
  ProgramId program = 0;
  ProgramId parent = -1;
  Input input;
  bool plain = false;    // the model is not told that it is traced
  bool forgets = false;  // its sizes are plain integers
};

// -> Ran
struct RunModel {
  ProgramId program = 0;
  Input input;
  int reference = -1;  // the run that it is compared with
  // A run beside a reference goes without weights where that saves something.
  bool heavy = false;  // it does, by the inputs alone
  bool spare = false;  // not at all with weights: it would cost more than it may tell
  bool brief = false;  // it may end, as `enough`, after some hundred operators like the reference's
};

// Which of these sizes is the first at which a run's questions about sizes have the answers that
// they had: runs nothing. -> Foreseen
struct Foresee {
  ProgramId program = 0;
  int run = 0;
  std::vector<Sizes> sizes;
};

// Whether the model accepts the example, not told that it is traced. -> Ran
struct RunPlain {};

// The call that comes after the program's example in generation. -> CallFacts
struct NextCall {
  ProgramId program = 0;
};

// A program from runs. -> Built
struct Build {
  ProgramId program = 0;
  std::vector<int> runs;
  std::vector<std::vector<std::int64_t>> values;  // by run, then symbol
  bool kept = true;                               // false: only whether it can be built
};

// Where the program's questions have other answers. -> Questions
struct Ask {
  ProgramId program = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // by symbol
};

// Has the program require that a question of the last Ask has the answer it had. -> Met
struct Require {
  ProgramId program = 0;
  int question = 0;
};

// The file, of these programs. -> Emitted
struct Emit {
  std::vector<ProgramId> programs;
  std::vector<std::pair<std::string, std::string>> without;  // kinds of fusions, and why
};

// One call in the file's runtime, compared with eager. -> Checked
struct Check {
  enum class Kind : std::uint8_t {
    kCall,    // call `number` of the program: its example, then the user's others
    kValues,  // the example's sizes with other values, way `number`, and of that `part` alone
    kSizes,   // these values of the symbols
  };
  enum class How : std::uint8_t {
    kOwn,              // values of its own
    kExampleIntegers,  // of kSizes: integers of the example, cut or repeated
    kTraced,           // its own, and eager is told that it is traced
  };
  ProgramId program = 0;
  Kind kind = Kind::kCall;
  How how = How::kOwn;
  int number = 0;
  int part = -1;
  std::vector<std::int64_t> values;
  int seed = 0;
  bool far = false;
};

// One fact about a call that was checked. -> Looked
struct Look {
  enum class What : std::uint8_t {
    kOperators,  // which the model executes there, beside the program's first run
    kRounded,    // how far eager moves in `output` where its inputs are rounded otherwise
    kNudged,     // the same where they are moved by a few rounding steps of the largest
    kTied,       // the same of the elements alone that differ, where they are few
    kRepeated,   // how eager differs from itself in `output`
    kOutside,    // what follows the values although no operator made it
    kState,      // how the example's next call differs from the first
  };
  What what = What::kOperators;
  Check at;
  std::string output;
};

// Something that no recorded operator made.
struct Outside {
  std::string what;    // "a tensor"
  std::string place;   // the operator that takes it; none where the model returns it
  std::string source;  // its line
};

// Why a check failed.
struct Finding {
  int number = -1;  // of the check; -1: there is none
  ErrorCode code = ErrorCode::kDiscrepancy;
  Why why = Why::kDiffers;
  bool by_values = false;  // at the example's sizes
  std::string output;
  std::string text;  // how it differs
  std::string at;
  std::string before;
  std::string now;
  std::vector<Outside> outside;
};

struct Done {};

// The driver raises what it kept under this number, or what a check found, or says which of the
// user's largest sizes are of no symbol.
struct Failed {
  int problem = -1;
  Finding finding;
  std::vector<std::string> unknown;
};

using Step = std::variant<Open, RunModel, Foresee, RunPlain, NextCall, Build, Ask, Require, Emit,
                          Check, Look, Done, Failed>;

// ---- answers ------------------------------------------------------------------------------------

// An error that the driver caught, and keeps under a number.
struct Problem {
  int number = -1;  // -1: none
  ErrorCode code = ErrorCode::kInternal;
  std::string cause;  // Error::cause
};

struct CallFacts {
  Problem problem;
  bool found = true;
  Sizes sizes;
  std::string words;  // of a next call: what tells it apart from the one before
};

struct Ran {
  Problem problem;
  int run = -1;                // where it worked
  bool parted = false;         // it executes `now` where the reference executed `before`
  bool absent = false;         // there is no such input
  bool visible = true;         // some number differs from the reference
  bool enough = false;         // a brief run that was ended
  bool untold = false;         // it parted, and no question that the model asked says why
  std::int64_t operators = 0;  // that were recorded
  std::string before;
  std::string now;
  std::string error;  // the model's own
};

struct Foreseen {
  int first = -1;  // none
};

struct Built {
  enum class Kind : std::uint8_t { kSize, kValue, kKey, kRival };
  struct Question {
    std::string words;
    std::string source;
    Kind kind = Kind::kSize;
    std::string form;  // form_of, in trace/guard.h: what programs have in common
  };
  Problem problem;
  bool fragile = false;  // some answer rounds or bounds: few runs fit many such
  bool reads = false;    // it is for values that were read
  bool fitted = false;   // some integers only fit the runs
  std::int64_t operators = 0;
  std::vector<Question> questions;
  std::vector<std::vector<std::int64_t>> thin;  // settings beside which more runs would tell
  // Settings at which a number that forgot is one that no run had.
  std::vector<std::vector<std::int64_t>> unseen;

  // How many of the questions are about values that were read.
  [[nodiscard]] std::ptrdiff_t asked_of_values() const {
    return std::count_if(questions.begin(), questions.end(),
                         [](const Question& q) { return q.kind == Kind::kValue; });
  }
};

struct Questions {
  struct Other {  // the nearest setting with another answer
    int question = 0;
    int symbol = -1;
    bool bound = false;
    bool by_values = false;  // a run there may go another way, by what it reads
    bool spare = false;      // its question had this answer too, elsewhere
    bool rest = false;       // no answer: there are more than these, mostly about `symbol`
    std::string key;
    std::string family;  // the same for all steps of a loop that asks it; none where no loop does
    std::vector<std::int64_t> setting;
  };
  std::vector<Other> others;
};

struct Met {
  bool met = false;
};

// What a file has where its sorts put equal elements as the runtime's kernel does. It is left out
// as a fusion is: then they stand as PyTorch's kernels put them, which takes many operators.
inline constexpr const char* kPlainOrder = "plain order of equal elements";

struct Emitted {
  Problem problem;
  int culprit = -1;                    // the symbol without which it could be made
  std::vector<std::string> constants;  // symbols that it could only hold as constants
  std::vector<std::pair<std::string, std::int64_t>> largest;  // of symbols, as far as the file goes
  // Kinds of fusions that it has, and kPlainOrder.
  std::vector<std::string> fused;
};

// What was measured; what follows from it is decided in judging.h.
struct Checked {
  enum class Outcome : std::uint8_t {
    kEqual,    // within the tolerance
    kDiffers,  // by more, or in shape, type or number of outputs
    kFailed,   // the file computes nothing there
    kStopped,  // the file does not take it, and says so
    kRefused,  // eager itself does not accept it
    kUnable,   // nothing can be checked
    kAbsent,   // there is no such call
  };
  Problem problem;  // of kUnable
  Outcome outcome = Outcome::kEqual;
  int number = -1;       // under which its figures are kept, and its tensors where it is not equal
  int parts = 0;         // of other values that were refused: what can be changed alone
  bool draws = false;    // the model draws random numbers
  bool changes = false;  // a call changes the model
  // Where it is not equal:
  std::string at;      // in words: "batch = 3"
  std::string values;  // in words: "signs flipped"
  std::string output;  // none where there are more or fewer
  std::string text;    // how it differs
  double abs = 0;      // the largest difference; infinite where shapes differ
  double scale = 0;    // the output's largest value
  double tolerance = 0;
  double inputs = 0;  // the largest value of inputs
  // Of 64-bit integers among the output and the inputs; 0 where the output is none.
  std::int64_t least = 0;
  std::int64_t most = 0;
  bool told = false;        // the tolerance is the user's
  bool not_finite = false;  // NaN or infinite on one side only
  bool empty = false;       // nothing is left of what the values select
  bool guarded = false;     // a guard of torch.export in the program ended it
};

struct Looked {
  Problem problem;
  bool known = true;  // false: it cannot be told
  // kOperators:
  bool parted = false;     // it executes `now` where the first run executed `before`
  bool generator = false;  // the same with a generator, which is another object in each run
  bool published = false;  // in code of an installed package
  std::string before;
  std::string now;
  std::string source;  // of kState, too
  double moved = 0;    // kRounded, kNudged, kTied
  double ratio = 0;    // kTied: of an element's difference to how far eager moves it, at most
  std::string text;    // kRepeated, kState: how; none where it does not
  std::vector<Outside> outside;
};

using Answer =
    std::variant<CallFacts, Ran, Foreseen, Built, Questions, Met, Emitted, Checked, Looked>;

}  // namespace fairlead
